"""Whoever is in no released row decides no type.

The attacker knows everybody but one person, who is not drawn, held out, suppressed, or in a group that is left out. A
fraction or a time of day of that person made floats of everybody's whole numbers, or moments of everybody's days.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
import yaml

from anon_pipeline.anonymize.classes import information_loss
from anon_pipeline.anonymize.description import described, hierarchies_of
from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.recode import narrowed, summarize
from anon_pipeline.anonymize.storage import save_cells
from anon_pipeline.engine.base import ColumnFacts, SourceFacts
from anon_pipeline.home import Home
from anon_pipeline.pipeline.checks.candidate import _foreign_values
from anon_pipeline.pipeline.checks.naming import unshared_values
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.linked_releases.people import _key as groups_key
from anon_pipeline.pipeline.stages import Stage, stored_folder
from anon_pipeline.pipeline.step import Run, StepResult
from anon_pipeline.pipeline.steps.anonymized_table import recode
from anon_pipeline.pipeline.steps.attack_audit import in_units_of
from anon_pipeline.release import known_classes
from anon_pipeline.release.comparison import side_by_side
from anon_pipeline.release.publish import CLASSES, CONTROL, DATA
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Domain
from anon_pipeline_tests.end_to_end.harness import write_dataset
from anon_pipeline_tests.pipeline.test_same_release import duckdb, spark

pytestmark = pytest.mark.long

QI = "quasi_identifier"
#: Quasi-identifiers and kept columns whose types values decide, and some with steps or of another type.
COLUMNS: dict[str, Any] = {
    "age": {"role": QI},
    "born": {"role": QI, "type": "date"},
    "moved": {"role": QI, "type": "date", "hierarchy": "calendar"},
    "town": {"role": QI, "type": "categorical"},
    "code": {"role": QI, "type": "categorical"},
    "ill": {"role": "sensitive", "type": "categorical"},
    "visits": {"role": "insensitive", "type": "numeric"},
    "day": {"role": "insensitive", "type": "date"},
}
#: Types in a source.
UNITS = {"born": "TIMESTAMP", "day": "DATE", "seen": "DATE", "moved": "TIMESTAMP"}
DAYS = {"born": 9, "moved": 700, "day": 1}


def people(n: int = 40) -> pd.DataFrame:
    """People of two towns; the last one is far from all others."""
    number = np.arange(n)
    first = np.datetime64("2001-03-01")
    return pd.DataFrame(
        {
            "age": np.append(30 + number[:-1] % 5, 90),
            **{name: np.datetime_as_string(first + number % 4 * step) for name, step in DAYS.items()},
            "town": np.append(np.where(number[:-1] % 2, "Ulm", "Graz"), "Nowhere"),
            "code": number % 2 + 9,
            "ill": np.where(number % 3, "yes", "no"),
            "visits": 7 + number,
        }
    )


def odd(frame: pd.DataFrame, whom: int) -> pd.DataFrame:
    """The same people, one with fractions and times of day."""
    changed = frame.astype(object)
    changed.loc[whom, ["age", "code", "visits"]] = [90.5, 8.5, 2.25]
    changed.loc[whom, list(DAYS)] = [f"{frame[name][whom]}T07:30:00" for name in DAYS]
    return changed


def run_of(folder: Path, frame: pd.DataFrame, engine: Any = duckdb, **more: Any) -> Run:
    """A run of these people, who lie in a CSV or another file; the key is the same each time."""
    dataset = write_dataset(folder / "people", frame)
    path = more.setdefault("source", {"path": "people.csv"})["path"]
    if path.endswith(".json"):
        frame.to_json(dataset / path, orient="records", lines=True)
    elif path.endswith(".sav"):
        pyreadstat.write_sav(frame.astype(dict.fromkeys(["age", "code", "visits"], float)), dataset / path)
    (dataset / "key").write_text("5a" * 32)
    (dataset / "key").chmod(0o600)
    private = {"draws": {"file": "key"}, "privacy": {"k_anonymity": {"k": 5}}}
    plain = {"dataset": "people", "target": "ill", "columns": COLUMNS}
    (dataset / "release.yaml").write_text(yaml.safe_dump({**plain, **private, **more}))
    home = Home(folder / "home").prepare()
    return Run(ReleaseSpec.load(dataset), home, engine(home.private_folder("spill")))


def stored(run: Run, name: str) -> Path:
    folder = stored_folder(run.home, run.spec.dataset, name)
    assert folder is not None
    return folder


def storage(facts: dict[str, Any]) -> dict[str, str]:
    """The types of the columns of which values decide them."""
    return {column["name"]: column["storage"] for column in facts["columns"] if column["by_values"]}


NARROW = {"age": "BIGINT", "visits": "BIGINT"} | dict.fromkeys(DAYS, "DATE")
WIDE = {"age": "DOUBLE", "visits": "DOUBLE"} | dict.fromkeys(DAYS, "TIMESTAMP")


def test_who_is_not_drawn_decides_no_type(tmp_path: Path) -> None:
    """Who is drawn does: so the person who is odd is each of several. Strata are looked at and stay as they are."""
    found = []
    for number, (whom, strata) in enumerate([*((whom, "town") for whom in range(6)), (0, "age")]):
        (folder := tmp_path / str(number)).mkdir()
        step = {"technique": "sample", "columns": [strata], "share": 0.5}
        run = run_of(folder, odd(people(), whom), steps=[step])
        masked = [make(graph_of(run.spec), step, run) for step in graph_of(run.spec).steps[:2]][1]
        has_odd = 2.25 in pq.read_table(stored(run, "masked_data") / DATA)["visits"].to_pylist()
        assert storage(masked.facts) == (WIDE if has_odd else NARROW)
        assert masked.facts["narrowed"] == ({} if has_odd else NARROW)
        found.append(has_odd)
    assert set(found[:-1]) == {False, True} and not found[-1]


def test_who_is_held_out_decides_no_type(tmp_path: Path) -> None:
    """What others are compared with are days, too, and by the kinds that were read the draw can be made again."""
    found = []
    for whom in range(12):
        (folder := tmp_path / str(whom)).mkdir()
        run = run_of(folder, odd(people(), whom), audit={"control": "held_out"})
        raw = make(graph_of(run.spec), graph_of(run.spec).steps[0], run)
        place = stored(run, "raw_data")
        control = pq.read_table(place / CONTROL)
        held_out = 2.25 in control["visits"].to_pylist()
        assert storage(raw.facts) == (NARROW if held_out else WIDE)
        assert raw.facts["kinds"]["visits"] == "real" and raw.facts["kinds"]["day"] == "moment"
        assert pa.types.is_date32(control.schema.field("day").type) == held_out
        found.append(held_out)
        if held_out and len(set(found)) > 1:
            break
    assert set(found) == {False, True}


def candidate(run: Run, bins: dict[str, int] | None = None) -> tuple[StepResult, dict[str, bytes]]:
    """The candidate, which the checks pass, and its files: a class for each town, and who is in none is suppressed.

    `bins` are those of columns that have too many values.
    """
    raw = make(graph_of(run.spec), graph_of(run.spec).steps[0], run)
    people_stage = Stage(stored(run, "raw_data"), "", raw.facts)
    table, types = people_stage.folder / DATA, SourceFacts.from_json(raw.facts).types()
    domains = run.engine.domains(table, {name: types[name] for name in run.spec.quasi_identifiers}, bins)
    domains = described(domains, {}, hierarchies_of(run.spec))
    (batch,) = run.engine.batches(table, run.spec, types, domains)
    key, place = np.unique(batch.key, axis=0, return_inverse=True)
    counts = np.bincount(place.ravel(), weights=batch.people).astype(np.int64)
    cells = run.engine.cells(domains, key, counts, np.zeros((len(key), 1), np.int64))
    town = cells.codes[:, [domain.name for domain in domains].index("town")]
    group = np.array([-1, 0, -1, 1])[town]
    sizes = np.bincount(group[group >= 0], cells.counts[group >= 0]).astype(np.int64)
    lost = information_loss(cells, group, 2)
    predictions, tree, folder = (run.home.private_folder(name) for name in ("cells", "tree", "candidate"))
    save_cells(cells, predictions)
    Grouping(group, 0, sizes, summarize(cells, group, 2, run.spec.k, {}), lost).save(tree)
    made = recode(run, folder, people_stage, Stage(predictions, "", {}), Stage(tree, "", {}))
    shown = Stage(folder, "", made.facts)
    assert not unshared_values(run.spec, run.engine, types, people_stage, shown)["values"].any()
    assert not _foreign_values(run.spec, run.engine, people_stage, shown)["rows"].any()
    return made, {file.name: file.read_bytes() for file in folder.iterdir()}


#: What hangs on who is suppressed: it is told of the source, with noise, or it is not told.
OF_SOURCE = {"information_loss", "apart", "associations", "narrowed"}


@pytest.mark.parametrize(
    ("engine", "more"),
    [
        (duckdb, {"recode": {"form": "range"}}),
        (duckdb, {"recode": {"form": "value"}}),
        (duckdb, {"source": {"path": "people.json"}}),
        (duckdb, {"source": {"path": "people.sav"}}),
        pytest.param(spark, {"recode": {"form": "value"}}, marks=pytest.mark.slow),
    ],
    ids=["ranges", "values", "JSON", "SPSS", "spark"],
)
def test_who_is_suppressed_is_in_no_byte_of_the_tables(
    engine: Any, more: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Nor does the engine change one."""
    if engine is spark:
        request.getfixturevalue("quick_spark")
    made = []
    for name, frame, of in (("as they are", people(), duckdb), ("odd", odd(people(), 39), engine)):
        (folder := tmp_path / name).mkdir()
        run = run_of(folder, frame, of, suppression={"limit": 0.1}, **more)
        made.append(candidate(run))
    (one, files), (other, odd_files) = made
    assert set(files) >= {DATA, CLASSES} and files.keys() == odd_files.keys()
    assert {name for name in files if files[name] != odd_files[name]} == {known_classes.FILE}  # private, and as read
    assert one.facts["suppressed"] == 1
    assert {name for name in one.facts if one.facts[name] != other.facts[name]} <= OF_SOURCE
    assert one.metadata["schema"] == other.metadata["schema"]


#: What is farther from all others than everything, yet keeps its place in the order of all values.
FAR = {"age": 9e6, "born": "2090-01-01"}


def test_how_far_somebody_who_is_suppressed_lies_is_in_no_byte(tmp_path: Path) -> None:
    """Columns of too many values are put into bins; one reached to the farthest of everybody, and so did classes."""
    made = []
    for name, values in (("near", {"age": 90, "born": "2001-04-01"}), ("far", FAR)):
        (folder := tmp_path / name).mkdir()
        frame = people()
        frame.loc[39, list(values)] = list(values.values())
        run = run_of(folder, frame, suppression={"limit": 0.1}, recode={"form": "range"})
        _, files = candidate(run, dict.fromkeys(values, 2))
        made.append({name: content for name, content in files.items() if name != known_classes.FILE})
    assert made[0] == made[1]


def test_who_is_released_decides_it(tmp_path: Path) -> None:
    """Beside somebody who is suppressed; and numbers that a text writes with a point are whole where all are."""
    frame = odd(people(), 0)
    frame["visits"] = [f"{visits}.0" for visits in people()["visits"]]
    made, _ = candidate(run_of(tmp_path, frame, suppression={"limit": 0.1}))
    shown = {column.name: column.storage for column in made.metadata["schema"].columns}
    assert shown == WIDE | {"visits": "BIGINT"} | dict.fromkeys(["town", "code", "ill"], "VARCHAR")


def test_a_group_that_is_left_out_decides_no_type(tmp_path: Path) -> None:
    """And the groups are known beside other releases, though the source is still read with times of day."""
    step = {"technique": "aggregate", "columns": ["age", "day"], "threshold": 5}
    alike, files = people().assign(day="2001-03-01"), []
    for name, frame in (("as they are", alike), ("odd", odd(alike, 39))):
        (folder := tmp_path / name).mkdir()
        run = run_of(folder, frame, steps=[step])
        for part in graph_of(run.spec).steps[:3]:
            made = make(graph_of(run.spec), part, run)
        files.append((stored(run, "aggregated_table") / DATA).read_bytes())
        assert made.facts["report"]["facts"]["people_left_out"] > 1
    assert files[0] == files[1]
    assert groups_key((date(2001, 3, 1), 30, None)) == groups_key((datetime(2001, 3, 1), 30.0, float("nan")))
    assert groups_key((datetime(2001, 3, 1, 7),)) == (datetime(2001, 3, 1, 7),)


def test_a_class_is_known_by_what_was_read(tmp_path: Path) -> None:
    """Beside another release of the same people, of whom somebody who is not drawn has a fraction."""
    file = tmp_path / "known.parquet"
    whole, days = pa.array([30, 31, None]), pa.array([date(2001, 3, 1), None, date(1960, 1, 2)])
    town, group = pa.array(["Ulm", "Graz", "Ulm"]), pa.array([0, 1, 1])
    names = ["age", "born", "town"]
    batch = pa.record_batch([whole, days, town, group], names=[*names, "class"])
    known_classes.write([batch], names, file, {"age": "BIGINT", "born": "DATE"})
    read = [whole.cast(pa.float64()), days.cast(pa.timestamp("us")), town]
    assert known_classes.classes_of(read, names, file, -1).tolist() == [0, 1, 1]
    assert known_classes.classes_of([whole, days, town], names, file, -1).tolist() == [-1, -1, -1]


def test_a_bin_of_whole_numbers_encloses_what_is_in_it() -> None:
    """Somebody who is suppressed may be in a bin with others."""
    values, counts = np.array([1.5, 7.0]), np.array([0, 3, 4])
    lows, highs = np.array([-1.0, 5.5]), np.array([2.25, 9.0])
    domain = Domain("age", ColumnType.NUMERIC, values, counts, "DOUBLE", lows, highs)
    found = narrowed(domain, "BIGINT")
    assert [of.tolist() for of in (found.values, found.low, found.high)] == [[1, 7], [-1, 5], [3, 9]]
    assert found.values.dtype == found.high.dtype == np.int64 and found.storage == "BIGINT"
    day = 86_400_000_000
    moments = replace(domain, type=ColumnType.DATE, values=np.array([-1, day]), lows=np.array([-day, 0]), highs=None)
    found = narrowed(replace(moments, highs=np.array([0, day + 1])), "DATE")
    assert [of.tolist() for of in (found.values, found.low, found.high)] == [[-1, 1], [-1, 0], [0, 2]]


def test_days_of_a_release_are_found_among_moments_of_the_source() -> None:
    """By attacks with former releases, and where a steward looks at both."""
    day = 86_400_000_000
    facts = {name: ColumnFacts(name, Role.INSENSITIVE, ColumnType.DATE, of, 0, 2) for name, of in UNITS.items()}
    frame = pd.DataFrame({"born": [1.0, 2.0], "day": [day + 1.0, 2.0 * day], "seen": [3.0, 4.0], "moved": ["a", "b"]})
    shown = {"born": "DATE", "day": "TIMESTAMP", "seen": "DATE", "moved": "VARCHAR"}
    found = in_units_of(SourceFacts(2, "", tuple(facts.values()), ()), frame, shown)
    assert found.to_dict("list") == {"born": [day, 2 * day], "day": [1, 2], "seen": [3, 4], "moved": ["a", "b"]}
    before = Domain("born", ColumnType.DATE, np.array([0, 900 * day]), np.array([0, 6, 6]), "TIMESTAMP")
    after = Domain("born", ColumnType.DATE, np.array([0, 900]), np.array([0, 5, 7]), "DATE")
    assert side_by_side(before, after, 5)[1:] == ((6, 6), (5, 7))
    assert side_by_side(after, before, 5)[1:] == ((5, 7), (6, 6))
