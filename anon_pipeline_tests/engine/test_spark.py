"""Spark and DuckDB give one and the same release: every number and hash that an engine hands on is compared."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine.base import ClassCounts, Engine, Recoding
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.spark import SparkEngine
from anon_pipeline.engine.spark_process import _megabytes
from anon_pipeline.errors import InputError
from anon_pipeline.learning.cells import StoredPeople, folds_of_sample, guided_cells
from anon_pipeline.learning.guide import train
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import Problem
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.release import known_classes
from anon_pipeline.sequential.followed_content import content_of
from anon_pipeline.sequential.release_history import hashed
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.tables import HISTORY, Domain
from anon_pipeline_tests.engine.test_duckdb import ODD_NAMES
from anon_pipeline_tests.people import COLUMNS, KEY, random_frame, write_spec
from anon_pipeline_tests.quick_spark import ARROW_ROWS

QI = "quasi_identifier"
CATEGORY = {"role": QI, "type": "categorical"}
ADULT = Path(__file__).parents[2] / "data/adult"
#: Of Adult, for whom Spark needs several batches of rows, each way (`ARROW_ROWS` of quick_spark.py).
PEOPLE = 5 * ARROW_ROWS // 2


# ------------------------------------------------------------------ the same release


#: How a release says its values. Ranges pass the engine as any other text of a class does.
VALUES, VALUES_AND_RANGES = ("value",), ("value", "range")


def way(
    engine: Engine,
    spec: ReleaseSpec,
    folder: Path,
    tree: AnonymizerTree | None = None,
    forms: tuple[str, ...] = VALUES,
) -> dict[str, Any]:
    """The whole way of a source through an engine, and all that it hands on; a tree that is given is taken as fitted.

    Since cells are compared too, one tree is as good as the other.
    """
    folder.mkdir()
    table = folder / "stored.parquet"
    facts = engine.store_source(spec, table)
    types = facts.types()
    said: dict[str, Any] = {"facts": [vars(one) | {"storage": None} for one in facts.columns]}
    said |= {"rows": facts.rows, "content": facts.content_hash, "duplicates": facts.duplicate_persons}
    sample = engine.sample(table, spec, types, spec.guide.sample)
    said |= {"sample": sample.hash, "features": sample.features, "target": sample.target}
    folded, guide = folds_of_sample(sample.hash, spec.guide, KEY)
    features = {name: types[name] for name in spec.features}
    trained = train(
        Problem(sample.features, sample.target, task_of(types[spec.target]), features, spec.seed), guide, folded.fold
    )
    cells = guided_cells(StoredPeople(engine, table, spec, types), trained, folded, 1.0)
    said |= {"domains": cells.domains, "cells": engine.count_cells(table, cells.domains)}
    said |= {"codes": cells.codes, "counts": cells.counts, "guidance": cells.guidance}
    said["protected"] = engine.sensitive_of_cells(table, cells, [spec.target])
    tree = tree or tree_of(spec, KEY).fit_cells(cells, statistics_of(said["protected"]))
    class_of_cell = tree.partition_.apply(cells.codes)
    for form in forms:
        file = folder / f"{form}.parquet"
        shown = recoded_table(tree.summaries_, form)
        content = engine.write_release(table, Recoding(cells, class_of_cell, shown), spec.released, file)
        assert content == engine.content_hash(file)
        said |= {f"{form}s": content, f"{form}s released": pq.read_table(file)}
    tree.classes_.to_parquet(folder / "classes.parquet", index=False)
    said["published classes"] = engine.content_hash(folder / "classes.parquet")
    release = folder / "value.parquet"
    said["classes"] = engine.classes(release, spec.quasi_identifiers, [spec.target])
    said["foreign"] = engine.foreign_values(release, table, [spec.target])
    ordered = [name for name in spec.quasi_identifiers if types[name] is ColumnType.NUMERIC]
    said["outside"] = engine.out_of_bounds(release, {name: [0, 40] for name in ordered[:3]})
    return said | {"tree": tree}


def plain(value: Any) -> Any:
    """A value that `==` compares as a whole."""
    if isinstance(value, Domain):
        ranges = (None if one is None else one.tolist() for one in (value.lows, value.highs))
        return value.name, value.type, value.values.tolist(), value.values.dtype.kind, value.counts.tolist(), *ranges
    if isinstance(value, ClassCounts):
        order = np.lexsort([value.sizes])  # classes as a set: their numbers are the engine's affair
        histograms = {name: plain(one) for name, one in value.sensitive.items()}
        return plain(value.classes), value.sizes[order].tolist(), histograms, value.ordered
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.astype(object).where(value.notna(), None).reset_index(drop=True).to_dict()
    if isinstance(value, pa.Table):
        return value.to_pylist()
    if isinstance(value, np.ndarray):
        return value.dtype.kind, value.tolist()
    if isinstance(value, AnonymizerTree):
        return None  # compared by what it says
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in one if plain(one[name]) != plain(other[name])]


def same_on_both(
    spark: SparkEngine, folder: Path, spec: ReleaseSpec, forms: tuple[str, ...] = VALUES
) -> dict[str, Any]:
    found = way(spark, spec, folder / "spark", forms=forms)
    expected = way(DuckDBEngine(folder / "spill", threads=2), spec, folder / "duckdb", forms=forms)
    assert differences(found, expected) == []
    return found


def repeated(values: list[Any], kind: pa.DataType | None, n: int, seed: int) -> pa.Array:
    """The values, missing ones among them, in a random order."""
    place = np.random.default_rng(seed).integers(0, len(values), n)
    return pa.array([values[one] for one in place], kind)


TEXTS = [
    "Ulm",
    "Łódź",
    "東京",
    "\U0001d518lm",
    "\ue000",
    "é",
    "e\u0301",
    "a\\b",
    "it's",
    "${x}",
    "*",
    " ",
    "a\nb",
    None,
    "",
]
MOMENTS = [datetime(2020, 2, 29, 12, 30, 0, 500), datetime(1969, 7, 20), datetime(1000, 1, 1, 23, 59, 59, 999999), None]
N = 240

ODD_VALUES: dict[str, tuple[Any, list[Any], pa.DataType]] = {
    "flag": (QI, [True, False, None], pa.bool_()),
    "tiny": (QI, [-128, 127, 0, None], pa.int8()),
    "unsigned": (QI, [0, 2**32 - 1, 7], pa.uint32()),
    "byte": ("insensitive", [0, 255, None], pa.uint8()),
    "day": (QI, [date(2020, 2, 29), date(1, 1, 1), date(9999, 12, 31), None], pa.date32()),
    "day as text": ({**CATEGORY}, [date(2020, 2, 29), date(1, 1, 1), date(9999, 12, 31), None], pa.date32()),
    "moment": (QI, MOMENTS, pa.timestamp("us")),
    "moment as text": ({**CATEGORY}, MOMENTS, pa.timestamp("us")),
    "zoned": (QI, MOMENTS, pa.timestamp("us", "America/New_York")),
    "nanoseconds": (QI, MOMENTS[:2], pa.timestamp("ns")),
    "seconds": ("insensitive", [datetime(2020, 2, 29, 1)], pa.timestamp("s")),
    "price": (QI, [Decimal("0.10"), Decimal("-1234.55"), None], pa.decimal128(12, 2)),
    "price as text": ({**CATEGORY}, [Decimal("0.000001"), Decimal("-0.050000"), None], pa.decimal128(12, 6)),
    "long price": (
        QI,
        [Decimal("12345.67"), Decimal("0.3"), Decimal("-1e-18"), Decimal("672349.123456789012345678")],
        pa.decimal128(38, 18),
    ),
    "kept price": ("sensitive", [Decimal("12345678901234567890.12"), Decimal("0.01")], pa.decimal128(30, 2)),
    "single": (QI, [0.1, -0.0, 0.0, float("nan"), 2.5, None], pa.float32()),
    "fraction": (QI, [0.1, -0.0, 0.0, float("nan"), 1e-300, 0.1 + 0.2, 123456789.12345679, None], pa.float64()),
    "kept fraction": ("sensitive", [-0.0, 0.0, float("nan"), 1e300, None], pa.float64()),
    "whole": (QI, [-(10**17), 10**17, 0, None], pa.int64()),
    "whole as text": ({**CATEGORY}, [-(2**63), 2**63 - 1, 7], pa.int64()),
    "text": (QI, TEXTS, pa.string()),
    "token": (QI, [bytes(16), bytes(range(160, 176)), None], pa.uuid()),
    "coded": ("insensitive", TEXTS, pa.dictionary(pa.int32(), pa.string())),
    "never known": ({**CATEGORY}, [None], pa.string()),
    "left out": ("exclude", [[1]], pa.list_(pa.int64())),
    "time left out": ("exclude", [None], pa.time64("ns")),
    "number left out": ("exclude", [2**64 - 1], pa.uint64()),
}


def odd_table() -> tuple[pa.Table, dict[str, Any]]:
    columns = {
        name: repeated(values, kind, N, seed) for seed, (name, (_, values, kind)) in enumerate(ODD_VALUES.items())
    }
    roles = {name: role for name, (role, _, _) in ODD_VALUES.items()} | {"t": "sensitive"}
    return pa.table({**columns, "t": ["a", "b", "a"] * (N // 3)}), roles


def test_odd_values_give_one_release(spark: SparkEngine, tmp_path: Path) -> None:
    table, roles = odd_table()
    pq.write_table(table, tmp_path / "people.parquet")
    source = {"missing": ["*"]}
    spec = write_spec(tmp_path, roles, "people.parquet", k=5, guide={"model": "decision_tree"}, source=source)
    released = same_on_both(spark, tmp_path, spec, VALUES_AND_RANGES)["values released"]
    assert released.num_rows == N
    types = {field.name: field.type for field in released.schema}  # those of the source, where Spark has them
    for name in ("flag", "tiny", "day", "moment", "price", "long price", "kept price", "single", "whole", "text"):
        assert types[name] == ODD_VALUES[name][2], name


#: Kinds of columns that are quasi-identifiers here; all other kinds are kept as they are.
GROUPED_KINDS = {"negative", "zoned", "tenths", "string", "moment", "text", "date"}


def test_columns_of_every_kind_odd_names_wide_keys_and_bins_give_one_release(
    spark: SparkEngine, tmp_path: Path
) -> None:
    """In one table: what a run costs on Spark hangs on its queries, which are as many for a table of few columns."""
    generator = np.random.default_rng(0)
    names = [*ODD_NAMES[1:5], "a.b", "a`b", '"', "x\\y", "#"]
    frame = random_frame(generator, N, {name: name for name in COLUMNS}, 4, 0.1)
    frame["unknown"] = frame["unknown"].astype(float)
    columns: dict[str, Any] = {name: generator.integers(0, 3, N).astype(str) for name in names}
    columns |= {f"x{one}": generator.choice(generator.integers(-(2**30), 2**30, 9), N) for one in range(2)}
    columns["far apart"] = generator.choice([-(10**17), 0, 10**17], N)
    columns["near unique"] = generator.normal(1e6, 1e3, N)
    columns["kept"] = generator.choice([0.1, 0.2], N)
    frame = frame.assign(**columns, t=["a", "b"] * (N // 2))
    frame.to_parquet(tmp_path / "p?ople {1}.parquet", index=False)
    roles: dict[str, Any] = {name: QI if name in GROUPED_KINDS else "insensitive" for name in COLUMNS}
    roles |= dict.fromkeys(columns, QI) | {"kept": "insensitive", "t": "sensitive"}
    roles |= {name: {**CATEGORY} for name in names}
    spec = write_spec(tmp_path, roles, "p?ople {1}.parquet", k=5, guide={"model": "decision_tree"})
    found = same_on_both(spark, tmp_path, spec)
    assert list(found["classes"].classes) == spec.quasi_identifiers
    table, types = tmp_path / "duckdb/stored.parquet", {"near unique": ColumnType.NUMERIC, "x0": ColumnType.NUMERIC}
    bins = {"near unique": 7}
    coarse = [one.domains(table, types, bins) for one in (spark, DuckDBEngine(tmp_path / "spill", threads=2))]
    assert plain(coarse[0]) == plain(coarse[1])
    assert spark.count_cells(table, coarse[0]) == DuckDBEngine(tmp_path / "spill").count_cells(table, coarse[1])


def test_a_csv_with_names_and_a_population_give_one_release(spark: SparkEngine, tmp_path: Path) -> None:
    lines = ["name;age;born;seen;income;height;city;t"]
    generator = random.Random(1)
    for number in range(N):
        born = generator.choice(["2020-01-31", "2019-2-3", "2019/12/01", ""])
        seen = generator.choice(["2020-01-31 10:30", "2020-01-31T10:30:00.1234567Z", "2020-01-31", "?"])
        income = generator.choice([" 1e3", "+-5", "1_000.5", "nan", "?", ".5"])
        height = generator.choice(["1.5", "2", '"7\n"', ""])
        city = generator.choice(["", "Łódź", '"a;b"', '"q""q"', '"a\nb"', "007"])
        lines.append(
            f"P{number % 200};{generator.randrange(20, 30)};{born};{seen};{income};{height};{city};{'ab'[number % 2]}"
        )
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    dated = {"role": QI, "type": "date"}
    roles = {
        "name": "identifier",
        "age": QI,
        "born": dated,
        "seen": dated,
        "income": QI,
        "height": QI,
        "city": QI,
        "t": "sensitive",
    }
    source = {"missing": ["?"], "delimiter": ";"}
    spec = write_spec(tmp_path, roles, "people.csv", k=5, guide={"model": "decision_tree"}, source=source)
    found = same_on_both(spark, tmp_path, spec)
    assert found["duplicates"] == 80
    assert [one["type"] for one in found["facts"]][1:6] == ["numeric", "date", "date", "numeric", "numeric"]
    types = {one["name"]: one["type"] for one in found["facts"]}
    population_table = [
        one.population_table(spec, types, "people.csv") for one in (spark, DuckDBEngine(tmp_path / "spill"))
    ]
    pd.testing.assert_frame_equal(*population_table)
    assert not list(tmp_path.rglob("source.parquet"))  # the converted source is gone, and all that passed by
    assert not list((tmp_path / "spill").glob("session-*"))


def test_adult_gives_one_release_on_every_engine_for_every_order(spark: SparkEngine, tmp_path: Path) -> None:
    text = (ADULT / "release.yaml").read_text().replace("gradient_boosting", "decision_tree")
    ways: list[dict[str, Any]] = []
    people = pd.read_parquet(ADULT / "adult.parquet").sample(PEOPLE, random_state=0)
    for name, engine in (
        ("spark", spark),
        ("one", DuckDBEngine(tmp_path / "spill", threads=1)),
        ("four", DuckDBEngine(tmp_path / "spill", threads=4)),
    ):
        folder = tmp_path / f"adult {name}"
        folder.mkdir()
        (folder / "release.yaml").write_text(text)
        shuffled = people if name == "one" else people.sample(frac=1, random_state=len(ways))
        shuffled.to_parquet(folder / "adult.parquet", index=False)
        ways.append(way(engine, ReleaseSpec.load(folder), tmp_path / name, ways[0]["tree"] if ways else None))
    assert differences(ways[0], ways[1]) == []
    assert differences(ways[1], ways[2]) == []
    assert ways[0]["values"][0] == PEOPLE


def of_any_columns(spec: ReleaseSpec) -> ReleaseSpec:
    """The spec, of a folder whose files may differ in their columns."""
    return spec.model_copy(update={"source": spec.source.model_copy(update={"union_by_name": True})})


def test_a_folder_of_files_that_lack_columns_gives_one_table(spark: SparkEngine, tmp_path: Path) -> None:
    place = tmp_path / "parts" / "deep %20"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1, 2], "y": ["a", None], "t": ["a", "b"]}), tmp_path / "parts/1.parquet")
    pq.write_table(pa.table({"t": ["a"] * 2, "x": [1, 3], "z": [1.5, 2.5]}), place / "2.parquet")
    spec = of_any_columns(write_spec(tmp_path, {"x": QI, "y": QI, "z": "insensitive", "t": "sensitive"}, "parts"))
    facts = [one.store_source(spec, tmp_path / "s.parquet") for one in (spark, DuckDBEngine(tmp_path / "spill"))]
    assert facts[0] == facts[1]
    assert facts[0].rows == 4


def test_people_without_a_target_are_left_out_on_both(spark: SparkEngine, tmp_path: Path) -> None:
    columns = {"x": [1, None, 3, 4], "u": pa.array([1, 2, 3, 2], pa.uint8()), "t": ["a", None, "b", "?"]}
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    roles = {"x": QI, "u": QI, "t": "sensitive"}
    spec = write_spec(tmp_path, roles, "people.parquet", source={"missing": ["?"]}, missing_target="leave_out")
    facts = [one.store_source(spec, tmp_path / "s.parquet") for one in (spark, DuckDBEngine(tmp_path / "spill"))]
    assert facts[0].content_hash == facts[1].content_hash
    assert [(one.rows, one.left_out) for one in facts] == [(2, 2)] * 2


def test_moments_written_the_old_way_are_the_same_moments(spark: SparkEngine, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(MOMENTS, pa.timestamp("us")), "t": ["a", "b"] * 2})
    pq.write_table(table, tmp_path / "people.parquet", use_deprecated_int96_timestamps=True)
    spec = write_spec(tmp_path, {"x": {**CATEGORY}, "t": "sensitive"}, "people.parquet")
    facts = [one.store_source(spec, tmp_path / "s.parquet") for one in (spark, DuckDBEngine(tmp_path / "spill"))]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_the_whole_numbers_of_their_file(spark: SparkEngine, tmp_path: Path, unit: str) -> None:
    """Spark refused them, "flatten or exclude it"; DuckDB reads the numbers, as the pages say."""
    stays = pa.array([90_000_000_000, None, -5_000_000_000, 0]).cast(pa.duration("ns"))
    table = pa.table({"x": stays.cast(pa.duration(unit)), "t": ["a", "b"] * 2})
    pq.write_table(table, tmp_path / "people.parquet")
    spec = write_spec(tmp_path, {"x": QI, "t": "sensitive"}, "people.parquet")
    facts = [one.store_source(spec, tmp_path / "s.parquet") for one in (spark, DuckDBEngine(tmp_path / "spill"))]
    assert facts[0] == facts[1]
    assert [column.storage for column in facts[0].columns] == ["BIGINT", "VARCHAR"]


# ------------------------------------------------------------------ what a text means

PIECES = {
    "DOUBLE": [*"0199_.eE+- \t\n", "inf", "nan", "INFINITY", "(1)", "d", "\u00a0", "12", "9007199254740993", "1e400"],
    "TIMESTAMP": ["2020", "-", "/", "01", "31", "1", " ", "T", "10", ":", "30", "59.5", ".1234567", "Z", "+02", "UTC"],
}


@pytest.mark.parametrize("target", PIECES)
def test_a_text_is_the_same_number_or_date_or_none(spark: SparkEngine, tmp_path: Path, target: str) -> None:
    generator = random.Random(target)
    texts = {"".join(generator.choices(PIECES[target], k=generator.randint(1, 7))) for _ in range(20_000)}
    for _ in range(5_000):
        day = "-".join(
            [f"{generator.randint(1, 9999):04}", str(generator.randint(1, 13)), str(generator.randint(1, 31))]
        )
        clock = ":".join(f"{generator.randint(0, 60):02}" for _ in range(generator.randint(2, 3)))
        texts |= {day, f"{day} {clock}", f"{day}T{clock}.{generator.randint(0, 10**8)}Z"}
        texts |= {repr(generator.uniform(-1, 1) * 10 ** generator.randint(-320, 308))}
    table = pa.table({"text": sorted(texts)})
    read: list[dict[str, Any]] = []
    for engine in (DuckDBEngine(tmp_path / "spill"), spark):
        with engine._session() as session:
            session.register("texts", table)
            value = session.parsed('"text"', target)
            value = f"CASE WHEN NOT isnan({value}) THEN {value} END" if target == "DOUBLE" else value
            rows = session.arrow(f'SELECT "text" AS x, {value} AS y FROM texts')
            values = rows.column("y").cast(pa.int64()) if target == "TIMESTAMP" else rows.column("y")
            read.append(dict(zip(rows.column("x").to_pylist(), values.to_pylist(), strict=True)))
    expected, found = read
    taken = {text: value for text, value in found.items() if value is not None}
    assert len(taken) > 2_000
    assert {text: expected[text] for text in taken} == taken
    refused = {text for text, value in expected.items() if value is not None} - set(taken)
    if target == "DOUBLE":
        assert all("_" in text and len(text) > 19 for text in refused)
    else:  # dates that say more, or less, than a date and a time
        assert len(refused) < len(taken) / 10


# ------------------------------------------------------------------ Spark itself


@pytest.mark.long
def test_the_package_imports_without_spark(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules.update(pyspark=None, sqlglot=None, py4j=None); import anon_pipeline.pipeline.runtime"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("limit", "megabytes"), [("4GB", 3814), ("4GiB", 4096), ("512 MB", 488), ("1.5TiB", 1572864)])
def test_memory_is_counted_as_duckdb_does(limit: str, megabytes: int) -> None:
    assert _megabytes(limit) == megabytes
    assert 0 < _megabytes("50%") < _megabytes("100%")
    with pytest.raises(InputError, match="memory: lots is no amount"):
        _megabytes("lots")


# ------------------------------------------------------------------ people who are followed


def test_people_are_followed_alike(spark: SparkEngine, tmp_path: Path) -> None:
    """By a number and by a text."""
    numbers = pa.array(range(1000, 1000 + N), pa.int64())
    ages = repeated([20, 21, 30, None], pa.int64(), N, 1)
    table = pa.table({"number": numbers, "text": numbers.cast(pa.string()), "age": ages, "t": ["a", "b"] * (N // 2)})
    pq.write_table(table, tmp_path / "people.parquet")
    roles = {"number": "identifier", "text": "identifier", "age": QI, "t": "sensitive"}
    spec = write_spec(tmp_path, roles, "people.parquet", k=5, guide={"model": "decision_tree"})
    found: list[list[Any]] = []
    for engine in (spark, DuckDBEngine(tmp_path / "spill")):
        folder = tmp_path / engine.name
        folder.mkdir()
        types = engine.store_source(spec, folder / "stored.parquet").types()
        columns, odd = ["number", "age", "t"], lambda rows: rows.column("number").to_numpy() % 2 == 1
        told: list[Any] = [content_of(folder / "stored.parquet", columns, odd)]
        for one in ("number", "text"):
            identifiers = engine.values(folder / "stored.parquet", one)
            told.append(np.sort(np.concatenate([hashed(some, b"k" * 32) for some in identifiers])).tolist())
            followed = folder / f"followed by {one}.parquet"
            engine.add_column(
                folder / "stored.parquet", one, HISTORY, lambda some: hashed(some, b"k" * 32) % 3, followed
            )
            domains = engine.domains(followed, {"age": types["age"], HISTORY: ColumnType.NUMERIC})
            told += [plain(domain) for domain in domains]
        sample = engine.sample(followed, spec, types, N)
        folded, guide = folds_of_sample(sample.hash, spec.guide, KEY)
        trained = train(
            Problem(sample.features, sample.target, task_of(types["t"]), {"age": types["age"]}, 0), guide, folded.fold
        )
        cells = guided_cells(StoredPeople(engine, followed, spec, types), trained, folded, 1.0, followed=True)
        assert [plain(domain) for domain in cells.domains] == [plain(domain) for domain in domains]
        classes = np.arange(len(cells.counts))
        for one in ("number", "text"):
            people = pa.Table.from_batches(list(engine.classes_of_people(followed, cells, classes, one)))
            class_of = dict(zip(*(column.to_pylist() for column in people.columns), strict=True))
            assert len(class_of) == N
            told.append(class_of)
        distinct = engine.classes_of_people(followed, cells, classes, "age", "t", distinct=True)
        known_classes.write(distinct, ["age", "t"], folder / "known.parquet")
        told += [cells.codes.tolist(), cells.counts.tolist(), pq.read_table(folder / "known.parquet").to_pydict()]
        found.append(told)
    assert found[0] == found[1]
