"""What Spark cannot do as DuckDB does is refused, in words that say what to do and quote nobody."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.spark import SparkEngine
from anon_pipeline.engine.spark_columns import columns_of_all
from anon_pipeline.engine.spark_process import harmless
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline_tests.engine.test_refused_sources import BAD_CSV
from anon_pipeline_tests.engine.test_sources import SECRET
from anon_pipeline_tests.engine.test_spark import CATEGORY, QI, of_any_columns
from anon_pipeline_tests.people import write_spec


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("Zebulon: java.lang.OutOfMemoryError: Java heap space", "Spark ran out of memory; raise the memory limit"),
        (
            "ExecutorLostFailure (executor 3 exited) Reason: Command exited with code 52 Zebulon",
            "Spark ran out of memory; raise the memory limit",
        ),
        (
            "ExecutorLostFailure (executor 3 exited) Reason: Command exited with code 1 Zebulon",
            "Spark's executors ended before their answer; they may have run out of memory",
        ),
        (
            "Job 3 cancelled because SparkContext was shut down Zebulon",
            "Spark ended before its answer; it may have run out of memory",
        ),
        ("Zebulon: No space left on device", "people.parquet: the disk is full"),
        ("Zebulon", "people.parquet: the library reported PySparkException"),
    ],
)
def test_an_error_of_spark_says_what_to_do_and_quotes_nothing(told: str, sentence: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(InputError) as raised, harmless("people.parquet"):
        raise PySparkException(told)
    assert str(raised.value) == sentence
    assert (type(raised.value) is Unavailable) is ("memory" in sentence or "disk" in sentence)  # it may pass


def refusal(engine: Engine, spec: ReleaseSpec, folder: Path) -> str:
    with pytest.raises(InputError) as error:
        engine.store_source(spec, folder / "stored.parquet")
    message = str(error.value)
    assert SECRET not in message
    assert "\n" not in message
    assert not (folder / "stored.parquet").exists()
    return message


SAME = [
    "text among numbers",
    "a number before a no-break space",
    "negative numbers of accounts",
    "text among dates",
    "infinity",
    "an infinite date",
    "columns without a role",
    "an unknown column",
    "duplicate names",
    "no people",
    "a missing target",
    "a line too long",
]


@pytest.mark.parametrize("case", SAME)
def test_a_bad_table_is_refused_in_the_same_words(spark: SparkEngine, tmp_path: Path, case: str) -> None:
    text, columns, sentence = BAD_CSV[case]
    (tmp_path / "people.csv").write_text(text)
    spec = write_spec(tmp_path, {**columns, "t": "sensitive"}, "people.csv")
    message = refusal(spark, spec, tmp_path)
    assert sentence in message
    assert message == refusal(DuckDBEngine(tmp_path / "spill"), spec, tmp_path)


@pytest.mark.parametrize(
    ("values", "said", "sentence"),
    [
        (pa.array([1, 2**64 - 1], pa.uint64()), QI, "columns.x: holds UBIGINT values, which Spark has not"),
        (pa.array([1, 2], pa.time64("us")), QI, "columns.x: holds TIME values, which Spark has not"),
        (pa.array([0.1, 2.0]), CATEGORY, "columns.x.type: is categorical, but the source holds DOUBLE values"),
        (pa.array([0.1, 2.0], pa.float32()), CATEGORY, "columns.x.type: is categorical, but the source holds FLOAT"),
        (
            pa.array([0, 1], pa.timestamp("us", "UTC")),
            CATEGORY,
            "columns.x.type: is categorical, but the source holds TIMESTAMP WITH",
        ),
        (pa.array([1, 1000], pa.timestamp("ns")), QI, "columns.x: 1 moments are finer than a microsecond"),
        (pa.array([2932897, 0], pa.date32()), CATEGORY, "columns.x: 1 dates lie outside of the years 1 to 9999"),
        (pa.array([2932897, 0], pa.date32()), QI, "columns.x: 1 dates are infinite"),
        (pa.array([2**31 - 1, 0], pa.date32()), QI, "columns.x: 1 dates are infinite"),
        (pa.array([2**31 - 1, 0], pa.date32()), CATEGORY, "columns.x: 1 dates lie outside of the years 1 to 9999"),
        (pa.array([2932897, 0], pa.date32()), "sensitive", "columns.x: 1 dates lie outside of the years 1 to 9999"),
        (pa.array(np.ones(2, np.float16)), QI, "columns.x: holds HALFFLOAT values, which Spark has not; cast or"),
        (pa.array([[1], [2]]), QI, "columns.x: holds BIGINT[] values; flatten or exclude it"),
        (pa.array([b"a", b"b"]), QI, "columns.x: holds BLOB values; flatten or exclude it"),
        (pa.array([1.0, np.inf]), QI, "columns.x: 1 value is infinite"),
    ],
)
def test_a_column_that_spark_would_change_is_refused(
    spark: SparkEngine, tmp_path: Path, values: pa.Array, said: Any, sentence: str
) -> None:
    pq.write_table(pa.table({"x": values, "q": [1, 2], "t": ["a", "b"]}), tmp_path / "people.parquet")
    roles = {"x": said, "q": QI, "t": "sensitive"}
    assert sentence in refusal(spark, write_spec(tmp_path, roles, "people.parquet"), tmp_path)


def test_a_column_with_braces_in_its_name_is_refused_by_its_name(spark: SparkEngine, tmp_path: Path) -> None:
    table = pa.table({"{x}": pa.array([1, 1000], pa.timestamp("ns")), "t": ["a", "b"]})
    pq.write_table(table, tmp_path / "people.parquet")
    spec = write_spec(tmp_path, {"{x}": QI, "t": "sensitive"}, "people.parquet")
    assert "columns.{x}: 1 moments are finer than a microsecond" in refusal(spark, spec, tmp_path)


def test_files_that_spark_would_change_or_leave_out_are_refused(spark: SparkEngine, tmp_path: Path) -> None:
    people = pa.table({"x": [1, 2], "t": ["a", "b"]})
    columns = {"x": QI, "t": "sensitive"}
    (tmp_path / "parts").mkdir()
    pq.write_table(people, tmp_path / "parts/a.parquet")
    pq.write_table(people.cast(pa.schema({"x": pa.int32(), "t": pa.string()})), tmp_path / "parts/b.parquet")
    spec = of_any_columns(write_spec(tmp_path, columns, "parts"))
    assert "columns.x: is BIGINT in one file of parts and INTEGER in another" in refusal(spark, spec, tmp_path)
    pq.write_table(people, tmp_path / "parts/b.parquet")
    pq.write_table(people.rename_columns(["${x}", "t"]), tmp_path / "variable.parquet")
    spec = write_spec(tmp_path, {"${x}": QI, "t": "sensitive"}, "variable.parquet")
    assert "columns.${x}: Spark takes ${ in a name for a variable" in refusal(spark, spec, tmp_path)
    # A folder with such a file is refused by both engines; a table of a lake may have one.
    files = [tmp_path / "parts/b.parquet", tmp_path / "parts/_c.parquet"]
    pq.write_table(people, files[1])
    with pytest.raises(InputError, match=r"^parts: Spark would leave out _c\.parquet"):
        columns_of_all(files, "parts", {"x", "t"})
    assert "there is no such file" in refusal(spark, write_spec(tmp_path, columns, "absent.parquet"), tmp_path)


def test_sparks_own_words_leave_the_engine(
    spark: SparkEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [SECRET] * 50_000, "t": ["a", "b"] * 25_000}), place, use_dictionary=False)
    with pytest.raises(InputError, match="the table could not be processed: the library reported") as told:
        spark.domains(place, {"x": ColumnType.NUMERIC})
    assert SECRET not in str(told.value)
    content = bytearray(place.read_bytes())
    content[20:220] = bytes(200)
    place.write_bytes(content)
    message = refusal(spark, write_spec(tmp_path, {"x": QI, "t": "sensitive"}, "people.parquet"), tmp_path)
    assert message.startswith("people.parquet: cannot be read")
    with pytest.raises(InputError, match=r"absent.parquet: a file could not be read"):
        spark.columns(tmp_path / "absent.parquet")
    assert capfd.readouterr() == ("", "")


def test_what_is_missing_is_named(spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    spark.rows(_a_table(tmp_path))
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="Java 17"):
        spark.rows(_a_table(tmp_path))
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o700)
    with pytest.raises(InputError, match=r"engine: spark could not be started \(PySparkRuntimeError\)"):
        spark.rows(_a_table(tmp_path))

    def fails(*_: object) -> None:
        raise AttributeError("a mistake of ours")

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", fails)
    with pytest.raises(AttributeError, match="a mistake of ours"):  # which no user can mend
        spark.rows(_a_table(tmp_path))
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    with pytest.raises(InputError, match=r"anon-pipeline\[spark\]"):
        spark.rows(_a_table(tmp_path))


def _a_table(folder: Path) -> Path:
    pq.write_table(pa.table({"x": [1]}), folder / "x.parquet")
    return folder / "x.parquet"
