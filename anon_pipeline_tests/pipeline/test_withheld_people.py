"""Whoever is withheld is in no published byte: nothing that is made of people has seen them.

The attacker knows everybody in both tables, and sees from the releases who is gone. Of those who are gone one has left
the table, and the others are withheld. Or they know everything but one value of somebody who waits for others.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.anonymize.classes import counting_withheld
from anon_pipeline.engine.base import ColumnFacts, SourceFacts
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.forgetting import forget_people
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.sequential_publication import Cohorts
from anon_pipeline.pipeline.stages import Stage, stored_folder
from anon_pipeline.pipeline.step import CheckDef
from anon_pipeline.pipeline.withheld_people import EVERYBODY, WITHHELD_PEOPLE, LeftOut, leave_out_withheld
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.cohorts import WITHHELD
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import HISTORY, Cells, Domain
from anon_pipeline_tests.end_to_end.harness import Place, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from anon_pipeline_tests.pipeline.test_sequential_publication import everybody, followed_policy

PEOPLE = everybody(124)
FORMER = PEOPLE.iloc[:120]
#: As in a first release, but the guide learns under no key, so that nothing but the people decides.
POLICY = followed_policy(departures="in_company") | {"guide": {"model": "decision_tree", "predictions": "in_sample"}}


@pytest.fixture(scope="module")
def after_one(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One release of 120 people."""
    root = tmp_path_factory.mktemp("withheld")
    place = Place(Home(root / "home"), root / "people")
    write_dataset(place.dataset, FORMER, POLICY)
    released_in_steps(place)
    return place


def candidate_of(after_one: Place, tmp_path: Path, frame: pd.DataFrame, name: str) -> tuple[Stage, Place]:
    """The candidate for the second release, of these people."""
    root = tmp_path / name
    shutil.copytree(after_one.home.root, root / "home", symlinks=True)
    place = Place(Home(root / "home"), root / "people")
    write_dataset(place.dataset, frame, POLICY)
    graph, spec = graph_of(place.spec), place.spec
    run = Runtime(home=str(place.home.root)).run(spec, {"dagster": str(uuid4()), "mlflow": uuid4().hex})
    for part in graph.parts:
        if isinstance(part, CheckDef):
            continue
        result = make(graph, part, run)
        if part.name == "anonymized_table":
            break
    folder = stored_folder(place.home, spec.dataset, "anonymized_table")
    assert folder is not None
    return Stage(folder, "", result.facts), place


def files(stage: Stage) -> tuple[bytes, bytes]:
    return (stage.folder / DATA).read_bytes(), (stage.folder / CLASSES).read_bytes()


def withhold(patched: pytest.MonkeyPatch, home: Home, whom: Sequence[int]) -> None:
    """Let the draw withhold these people."""
    hashes = release_history.hashed(
        pa.array([f"Name-{number}" for number in whom]), release_history.key(home, "people")
    )
    patched.setattr(
        sequential_publication,
        "in_company",
        lambda history, departed, person, *_: np.where(np.isin(person, hashes), WITHHELD, history),
    )


@pytest.mark.slow
def test_the_candidate_is_the_same_whoever_of_those_who_are_gone_has_left(after_one: Place, tmp_path: Path) -> None:
    """A guide that learned from the withheld grouped others by who of them was still in the table."""
    gone = [3, 17, 30, 50, 71]
    made = []
    for left in gone[:3]:
        with pytest.MonkeyPatch.context() as patched:
            withhold(patched, after_one.home, [number for number in gone if number != left])
            stage, _ = candidate_of(after_one, tmp_path, FORMER.drop(index=left), str(left))
        made.append((files(stage), stage.facts))
    assert made[0] == made[1] == made[2]
    assert made[0][1]["waiting"] == 4 and made[0][1]["suppressed"] == 0


@pytest.mark.slow
def test_nothing_about_who_waits_for_others_is_in_the_candidate(after_one: Place, tmp_path: Path) -> None:
    """Four newcomers are too few; a target, an age and a category of theirs that nobody else has."""
    stage, _ = candidate_of(after_one, tmp_path, PEOPLE, "as they are")
    changed = PEOPLE.copy()
    changed.loc[120, "ill"] = "no" if PEOPLE["ill"][120] == "yes" else "yes"
    changed.loc[121, "age"] = 104
    changed.loc[121, "city"] = "Nowhere"
    changed["visits"] = changed["visits"].astype(float)
    changed.loc[122, "visits"] = 2.5
    changed = changed.astype({"visits": str}).replace({"visits": r"\.0$"}, {"visits": ""}, regex=True)
    other, _ = candidate_of(after_one, tmp_path, changed, "changed")
    assert files(stage) == files(other) and stage.facts == other.facts
    assert stage.facts["waiting"] == 4 and stage.facts["released"] == 120


@pytest.mark.slow
def test_who_is_withheld_is_not_forgotten_either(after_one: Place, tmp_path: Path) -> None:
    """They are still in the source, also where the source is not stored any more."""
    with pytest.MonkeyPatch.context() as patched:
        withhold(patched, after_one.home, [3, 17, 30, 50])
        _, place = candidate_of(after_one, tmp_path, FORMER.drop(index=71), "left")
    shutil.rmtree(place.home.private_folder("people", "raw_data"))
    listed = tmp_path / "gone.txt"
    listed.write_text("Name-3\nName-71\n")
    with pytest.raises(InputError, match="1 of these people are in the table of the last run"):
        forget_people(place.spec, place.home, listed)


def facts_of(found: Sequence[str]) -> SourceFacts:
    """Facts about a table, of which values decided the types of these columns."""
    columns = tuple(ColumnFacts(name, Role.INSENSITIVE, ColumnType.NUMERIC, "DOUBLE", 0, 9, True) for name in found)
    return SourceFacts(17, "", columns, ())


def test_who_may_not_be_released_is_left_out_of_the_table(tmp_path: Path) -> None:
    """Of a cohort of four fewer than five are left, and two others are company of somebody who left."""
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", FORMER, POLICY))
    history = np.array([1] * 6 + [2] * 4 + [WITHHELD] * 2 + [0] * 5)
    names = [f"Name-{number}" for number in range(len(history))]
    pq.write_table(pa.table({"age": range(len(history)), "name": names, HISTORY: history}), tmp_path / EVERYBODY)
    cohorts = Cohorts(np.arange(len(history)), history, np.zeros(3, dtype=np.int64))
    assert leave_out_withheld(cohorts, spec, facts_of(["age"]), tmp_path) == LeftOut(6, {})
    assert pq.read_table(tmp_path / DATA)["name"].to_pylist() == names[:6] + names[12:]
    assert pq.read_table(tmp_path / WITHHELD_PEOPLE).to_pydict() == {"name": names[6:12]}


def test_who_is_withheld_decides_no_type(tmp_path: Path) -> None:
    """One fraction makes floats of a column of texts, and one time of day moments; a stated type stays."""
    policy = POLICY | {"columns": POLICY["columns"] | {"day": {"role": "insensitive"}, "own": {"role": "insensitive"}}}
    policy["columns"]["own"] = {"role": "insensitive", "steps": [{"technique": "round", "to": 1}]}
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", FORMER.assign(day="2020-01-01", own=1), policy))
    history, days = np.array([1] * 6 + [WITHHELD]), np.array(["2020-01-01"] * 6 + ["2020-01-01T07"], "datetime64[us]")
    numbers = pa.array([3.0, None, 5.0, 1e17, -2.0, 0.0, 2.5])
    table = {"age": numbers, "visits": numbers, "mark": [0.5, *range(6)], "own": numbers, "name": list("abcdefg")}
    pq.write_table(pa.table(table | {"day": days, HISTORY: history}), tmp_path / EVERYBODY)
    cohorts = Cohorts(np.arange(7), history, np.zeros(2, dtype=np.int64))
    left_out = leave_out_withheld(cohorts, spec, facts_of(["age", "mark", "own", "day"]), tmp_path)
    assert left_out == LeftOut(1, {"age": "BIGINT", "day": "DATE"})
    kept = pq.read_table(tmp_path / DATA)
    assert kept["age"].to_pylist() == [3, None, 5, 10**17, -2, 0] and kept["age"].type == pa.int64()
    assert kept["day"].type == pa.date32()
    assert {kept[name].type for name in ("visits", "mark", "own")} == {pa.float64()}


def test_where_every_cohort_is_too_small_nobody_is_released(tmp_path: Path) -> None:
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", FORMER, POLICY))
    history = np.arange(8)
    cohorts = Cohorts(np.arange(8), history, np.zeros(8, dtype=np.int64))
    pq.write_table(pa.table({"name": ["x"] * 8, HISTORY: history}), tmp_path / EVERYBODY)
    with pytest.raises(InputError, match="nobody can be released: of no cohort are 5 people left"):
        leave_out_withheld(cohorts, spec, facts_of([]), tmp_path)


def test_of_who_is_withheld_all_is_lost() -> None:
    """As of somebody who is suppressed, but nothing of a column in which all have one value."""
    of = {"varied": np.array([0, 60, 40]), "constant": np.array([0, 100, 0])}
    domains = tuple(Domain(name, ColumnType.CATEGORICAL, np.array(["a", "b"]), counts) for name, counts in of.items())
    cells = Cells(domains, np.array([[1, 1], [2, 1]], np.int32), np.array([60, 40]), np.zeros((2, 1), np.int64))
    assert counting_withheld({"varied": 0.5, "constant": 0.0}, cells, 25) == {
        "varied": pytest.approx(0.6),
        "constant": 0.0,
    }
