"""Objects of a real server of the S3 protocol: read as the same files are, by range, and told of in sentences."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from anon_pipeline.engine import object_stores
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.object_stores import fetched, state_of
from anon_pipeline.engine.sources import opened_at
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source
from anon_pipeline_tests.object_store import ACCESS_KEY, SECRET, ObjectStore

MOMENT = datetime(2024, 2, 29, 12, 30, 1, 500, UTC)
PEOPLE = pa.table({"age": [30, 40, None], "city": ["Cork", None, "Delft"], "name": ["Ann", "Ben", "Cid"]})
#: A column of every plain type that a Parquet file may have.
EVERY_TYPE = pa.table(
    {
        "tiny": pa.array([1, None], pa.int8()),
        "unsigned": pa.array([2**63, None], pa.uint64()),
        "single": pa.array([0.1, None], pa.float32()),
        "number": pa.array([0.1, None], pa.float64()),
        "decimal": pa.array([Decimal("1.20"), None], pa.decimal128(9, 2)),
        "yes": pa.array([True, None]),
        "text": pa.array(["a", None], pa.large_string()),
        "coded": pa.array(["a", None]).dictionary_encode(),
        "day": pa.array([date(1900, 2, 28), None]),
        "clock": pa.array([time(12, 30), None], pa.time64("us")),
        "moment": pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("us")),
        "zoned": pa.array([MOMENT, None], pa.timestamp("ms", "UTC")),
        "fine": pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("ns")),
    }
)


def parquet(table: pa.Table, **how: Any) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written, **how)
    return written.getvalue()


def rows_of(source: Source, path: Path, scratch: Path) -> tuple[list[Any], list[Any]]:
    """Columns with their types, and rows, as the engine sees a source."""
    with ExitStack() as stack:
        connection = stack.enter_context(duckdb.connect())
        connection.execute("SET TimeZone='UTC'")
        found = stack.enter_context(opened_at(connection, source, path, scratch))
        described = connection.execute(f"DESCRIBE FROM {found.relation}").fetchall()
        return [row[:2] for row in described], connection.execute(f"FROM {found.relation} ORDER BY ALL").fetchall()


CSV = b"age,city\n30,Cork\n40,\n"
FILES: dict[str, bytes] = {
    "every_type.parquet": parquet(EVERY_TYPE),
    "old_moments.parquet": parquet(EVERY_TYPE.select(["moment", "fine"]), use_deprecated_int96_timestamps=True),
    "without_an_end": parquet(PEOPLE),
    "people.csv": CSV,
    "people.csv.gz": gzip.compress(CSV),  # stays packed: its name says so
    "people.jsonl": b'{"age": 30, "city": "Cork"}\n{"age": 40, "city": null}\n',
}


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_an_object_is_read_as_the_same_file_is(object_store: ObjectStore, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    address = object_store.put(f"same/{name}", FILES[name])
    of_file = rows_of(Source(path=name), tmp_path / name, tmp_path)
    assert rows_of(Source(path=address), tmp_path, tmp_path) == of_file
    assert [file.name for file in tmp_path.iterdir()] == [name], "nothing is left"


@pytest.mark.long
def test_objects_below_a_prefix_are_read_as_the_same_folder_is(object_store: ObjectStore, tmp_path: Path) -> None:
    for year in ("2023", "2024"):
        file = tmp_path / f"people/year={year}/part.parquet"
        file.parent.mkdir(parents=True)
        file.write_bytes(parquet(PEOPLE.append_column("row", pa.array([f"{year}-{row}" for row in range(3)]))))
        address = object_store.put(f"folder/year={year}/part.parquet", file.read_bytes())
    object_store.put("folder/_SUCCESS", b"")
    for how in ({}, {"partitions": True}):
        of_folder = rows_of(Source(path="people", **how), tmp_path / "people", tmp_path)
        assert rows_of(Source(path="s3://clinic/folder/", **how), tmp_path, tmp_path) == of_folder
    address = object_store.put("folder/year=2024/other.parquet", parquet(pa.table({"other": [1]})))
    with pytest.raises(InputError, match=r"year=2024/other\.parquet has the column other, which"):
        rows_of(Source(path="s3://clinic/folder"), tmp_path, tmp_path)
    object_store.delete(address.removeprefix("s3://clinic/"))


@pytest.mark.long
def test_columns_that_are_left_out_never_leave_the_store(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An excluded column of long texts is the greater part of the object, and is not asked for."""
    noise = pa.array([f"{row * 7919 % 100_003:06}" * 20 for row in range(20_000)])
    content = parquet(pa.table({"age": range(20_000), "note": noise}), compression="none", use_dictionary=False)
    address = object_store.put("wide.parquet", content)
    asked: list[int] = []
    open_store = object_stores.filesystem_of

    class Counted:
        def __init__(self, address: str) -> None:
            self._store = open_store(address)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def open_input_file(self, path: str) -> pa.PythonFile:
            file = self._store.open_input_file(path)

            class Reads(io.RawIOBase):
                def read(self, size: int = -1) -> bytes:
                    asked.append(size)
                    return bytes(file.read(size))

                seek, tell, size = file.seek, file.tell, file.size

                def readable(self) -> bool:
                    return True

                def seekable(self) -> bool:
                    return True

            return pa.PythonFile(Reads(), mode="r")

    monkeypatch.setattr(object_stores, "filesystem_of", Counted)
    with fetched(address, tmp_path, {"note"}) as file:
        assert pq.read_table(file).column("note").null_count == 20_000
        assert pq.read_table(file).column("age").to_pylist() == list(range(20_000))
    assert 0 < sum(asked) < len(content) / 4


@pytest.mark.parametrize("change", ["rewrite", "delete"])
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_an_object_that_changes_or_vanishes_while_it_is_read_is_told(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str
) -> None:
    content = {"people.csv": CSV, "people.parquet": parquet(PEOPLE)}[name]
    key = f"changes/{name}"
    address = object_store.put(key, content)

    def meanwhile(copy: Callable[..., None]) -> Callable[..., None]:
        def changed(*arguments: Any) -> None:
            copy(*arguments)
            if change == "rewrite":
                object_store.put(key, content.replace(b"Cork", b"Kork"))  # of the same length
            else:
                object_store.delete(key)

        return changed

    for copying in ("_copy", "_copy_parquet"):
        monkeypatch.setattr(object_stores, copying, meanwhile(getattr(object_stores, copying)))
    expected = {"rewrite": "was changed while it was read", "delete": "there is no such object"}[change]
    with pytest.raises(Unavailable, match=expected), fetched(address, tmp_path):
        pytest.fail("it was handed on")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_state_of_an_object_is_its_content_where_the_store_says_so(object_store: ObjectStore) -> None:
    address = object_store.put("state.csv", CSV)
    before = state_of(address)
    object_store.put("state.csv", CSV)
    assert state_of(address) == before, "the same content again"
    object_store.put("state.csv", CSV.replace(b"40", b"41"))
    assert state_of(address) != before


def test_where_the_store_does_not_say_it_the_state_is_when_it_was_written(tmp_path: Path) -> None:
    """The file system of this machine has no tags."""
    (tmp_path / "state.csv").write_bytes(CSV)
    os.utime(tmp_path / "state.csv", ns=(1, 2_000))
    files = LocalFileSystem()
    described = object_stores._described(files, files.get_file_info(str(tmp_path / "state.csv")), "state.csv")
    assert (described.size, described.modified, described.tag) == (len(CSV), 2_000, None)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("s3://clinic/nobody.csv", "there is no such object"),
        ("s3://nobucket/people.csv", "there is no such object"),
        ("s3://clinic/texts", "no object below it ends in .parquet; name one object"),
        ("s3://clinic/broken.parquet", "it is no intact Parquet file"),
    ],
)
def test_what_cannot_be_read_is_told(object_store: ObjectStore, tmp_path: Path, address: str, sentence: str) -> None:
    object_store.put("texts/people.csv", CSV)
    object_store.put("broken.parquet", b"PAR1 and no more")
    with pytest.raises(InputError) as told:
        rows_of(Source(path=address), tmp_path, tmp_path)
    assert str(told.value) == f"{address}: {told.value.args[0].removeprefix(f'{address}: ')}"
    assert sentence in str(told.value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "s3://clinic/people.csv"),
        ({"STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"}, "gs://clinic/people.csv"),
        ({"AZURE_STORAGE_ACCOUNT": ""}, "az://clinic/people.csv"),
    ],
)
def test_a_store_that_is_not_there_is_told_without_its_credentials(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str
) -> None:
    monkeypatch.setattr(object_stores, "ATTEMPTS", 1)
    monkeypatch.setattr(object_stores, "GIVE_UP_SECONDS", 1)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Unavailable, match=r"cannot be reached|AZURE_STORAGE_ACCOUNT") as told:
        state_of(address)
    assert told.value.__cause__ is None
    assert ACCESS_KEY not in str(told.value)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    "said",
    [
        "When reading: AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
        "AWS Error INVALID_ACCESS_KEY_ID during GetObject operation: AKIA",
        "AWS Error SIGNATURE_DOES_NOT_MATCH: AWSAccessKeyId=AKIA",
        "google::cloud::Status(UNAUTHENTICATED: token)",
        "Azure Error: 403 Server failed to authenticate the request",
    ],
)
def test_a_store_that_lets_nobody_in_is_told_apart_from_one_that_is_not_there(said: str) -> None:
    assert "does not take these credentials" in object_stores.sentence(OSError(said))
    assert "AKIA" not in object_stores.sentence(OSError(said))


def test_an_account_of_azure_stands_in_the_address_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(object_stores.AZURE_ACCOUNT, raising=False)
    monkeypatch.setenv(object_stores.AZURE_KEY, "a2V5")
    with pytest.raises(Unavailable, match=r"az://people/x\.csv: the account is not known; name it in AZURE"):
        object_stores.filesystem_of("az://people/x.csv")
    monkeypatch.setenv(object_stores.AZURE_ACCOUNT, "clinic")
    assert object_stores.filesystem_of("az://people/x.csv").type_name == "abfs"


@pytest.mark.long
def test_a_whole_run_reads_an_object_like_a_file(object_store: ObjectStore, tmp_path: Path) -> None:
    """The engine's survey, too, which `init` and `profile` look by."""
    address = object_store.put("survey.csv", CSV)
    survey = DuckDBEngine(tmp_path / "spill").survey(Source(path=address), tmp_path)
    assert [column.name for column in survey.columns] == ["age", "city"]
