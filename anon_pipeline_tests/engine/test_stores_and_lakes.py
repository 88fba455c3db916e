"""What is told of a lake's or a store's failure, which endpoint is asked, and what is made of a folder of objects."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from anon_pipeline.engine import lake_tables, object_stores
from anon_pipeline.engine.parquet_files import parquet_relation
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source


class DeltaError(Exception):
    """By the name of the library's own."""


class DeltaProtocolError(Exception):
    """By the name of the library's own."""


class TableNotFoundError(Exception):
    """By the name of the library's own."""


class NoSuchIcebergTableError(Exception):
    """By the name of the library's own."""


DELTA, ICEBERG = Source(delta="people"), Source(iceberg="lake/v1.metadata.json")
IN_A_STORE = Source(iceberg="s3://clinic/lake/v1.metadata.json")
IN_A_CATALOGUE = Source(iceberg="hospital.clinic.people")
OLD = Source(delta="people", version=9)
DELTA_IN_A_STORE, OLD_IN_A_STORE = Source(delta="s3://clinic/people"), Source(delta="s3://clinic/people", version=9)
NOT_SUPPORTED, NO_VERSION, NO_TABLE = "is written in a way that", "has no version 9", "there is no such table"
CANNOT, AWAY = "cannot be read as", ": the store cannot be reached"
NO_CATALOGUE = ": the catalogue or the store cannot be reached, or has"


@pytest.mark.parametrize(
    ("source", "error", "sentence", "lasting"),
    [
        (DELTA, TableNotFoundError(), NO_TABLE, False),
        (IN_A_CATALOGUE, NoSuchIcebergTableError(), NO_TABLE, False),
        (OLD, DeltaProtocolError(), NOT_SUPPORTED, True),
        (DELTA, NotImplementedError(), NOT_SUPPORTED, True),
        (ICEBERG, ValueError("is not yet supported"), NOT_SUPPORTED, True),
        (DELTA, RuntimeError("Unsupported reader feature"), NOT_SUPPORTED, True),
        (OLD, DeltaError("x"), NO_VERSION, True),
        (DELTA, DeltaError("x"), f"{CANNOT} delta: the library reported DeltaError", True),
        (OLD, RuntimeError("x"), CANNOT, True),
        (DELTA_IN_A_STORE, DeltaError("x"), AWAY, False),
        (OLD_IN_A_STORE, DeltaError("x"), NO_VERSION, True),
        (OLD_IN_A_STORE, RuntimeError("x"), AWAY, False),
        (ICEBERG, RuntimeError("x"), f"{CANNOT} iceberg: the library reported RuntimeError", True),
        (IN_A_STORE, RuntimeError("x"), AWAY, False),
        (IN_A_CATALOGUE, RuntimeError("x"), NO_CATALOGUE, False),
        (IN_A_STORE, ValueError("x"), CANNOT, True),
        (IN_A_STORE, KeyError("x"), CANNOT, True),
        (DELTA, TypeError("x"), f"{CANNOT} delta: the library reported TypeError", True),
    ],
)
def test_a_failure_of_a_lake_is_told_by_its_kind(
    source: Source, error: Exception, sentence: str, lasting: bool
) -> None:
    told = lake_tables._sentence(source, error)
    assert sentence in str(told)
    assert isinstance(told, Unavailable) != lasting


def test_a_package_that_is_missing_is_told() -> None:
    told = "a package that its catalogue or store needs is not installed"
    with pytest.raises(InputError, match=told), lake_tables._reading(DELTA):
        raise ImportError


def test_only_files_that_are_there_are_named_by_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()
    lake_tables._check_files(DELTA, tmp_path, ["a.parquet", str(tmp_path / "a.parquet"), "s3://clinic/a.parquet"])
    with pytest.raises(Unavailable, match=r"^delta:people: there is no such object: a file of the table"):
        lake_tables._check_files(DELTA, tmp_path, ["a.parquet", "b.parquet"])


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (Source(iceberg="v9.metadata.json"), "source.iceberg: v9.metadata.json: there is no such file beside the spec"),
        (DELTA, "source.delta: people: there is no Delta Lake table of that name beside the spec"),
    ],
)
def test_a_lake_that_is_not_there_is_told_by_its_name(source: Source, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "people").mkdir()
    for ask in (
        lambda: lake_tables.state_of_table(source, tmp_path),
        lambda: lake_tables.store_table(source, tmp_path, tmp_path / "stored.parquet", lambda names: None),
    ):
        with pytest.raises(Unavailable) as told:
            ask()
        assert str(told.value) == sentence


def test_a_table_without_a_snapshot_is_empty() -> None:
    empty = SimpleNamespace(current_snapshot=lambda: None)
    with pytest.raises(InputError, match="the table is empty"):
        lake_tables._snapshot(ICEBERG, empty)  # type: ignore[arg-type]


# ------------------------------------------------------------------ stores

STATED = [*object_stores.S3_ENDPOINTS, *object_stores.S3_REGIONS, object_stores.GS_ENDPOINT]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The file systems that are asked for, by name; nothing is connected to."""
    from pyarrow import fs

    for name in (*STATED, object_stores.AZURE_ACCOUNT, object_stores.AZURE_KEY):
        monkeypatch.delenv(name, raising=False)
    asked: list[tuple[str, dict[str, Any]]] = []
    for name in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem"):
        monkeypatch.setattr(fs, name, lambda _name=name, **said: asked.append((_name, said)))
    monkeypatch.setattr(fs, "resolve_s3_region", lambda bucket: f"region of {bucket}")
    return asked


@pytest.mark.parametrize(
    ("variables", "endpoint", "scheme", "region"),
    [
        ({}, None, None, "region of clinic"),
        ({"AWS_REGION": "eu-1"}, None, None, "eu-1"),
        ({"AWS_DEFAULT_REGION": "eu-2"}, None, None, "eu-2"),
        ({"AWS_ENDPOINT_URL": "http://here:9"}, "here:9", "http", "us-east-1"),
        ({"AWS_ENDPOINT_URL": "http://here", "AWS_ENDPOINT_URL_S3": "https://there"}, "there", "https", "us-east-1"),
        ({"AWS_ENDPOINT_URL": "http://here:9", "AWS_REGION": "eu-1"}, "here:9", "http", "eu-1"),
    ],
)
def test_the_environment_says_which_server_of_the_s3_protocol_is_asked(
    made: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    endpoint: str | None,
    scheme: str | None,
    region: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    object_stores.filesystem_of("s3://clinic/people.csv")
    ((name, said),) = made
    assert name == "S3FileSystem"
    assert (said["endpoint_override"], said["scheme"], said["region"]) == (endpoint, scheme, region)
    url = f"{scheme}://{endpoint}" if endpoint else None
    insecure = {"allow_http": "true" if scheme == "http" else "false"}
    assert lake_tables.delta_options() == insecure | ({"aws_endpoint": url} if url else {})


def test_other_stores_have_endpoints_and_accounts_too(
    made: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    object_stores.filesystem_of("gs://clinic/people.csv")
    monkeypatch.setenv(object_stores.GS_ENDPOINT, "http://here:9")
    object_stores.filesystem_of("gs://clinic/people.csv")
    object_stores.filesystem_of("az://people@hospital.blob.core.windows.net/x.csv")
    monkeypatch.setenv(object_stores.AZURE_ACCOUNT, "clinic")
    object_stores.filesystem_of("az://people/x.csv")
    plain, emulated, stated, known = made
    assert "endpoint_override" not in plain[1] and "anonymous" not in plain[1]
    emulator = {"anonymous": True, "endpoint_override": "here:9", "scheme": "http"}
    assert emulated[0] == "GcsFileSystem"
    assert {name: emulated[1][name] for name in emulator} == emulator
    assert stated == ("AzureFileSystem", {"account_name": "hospital", "account_key": None})
    assert known == ("AzureFileSystem", {"account_name": "clinic", "account_key": None})


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this machine in the place of a bucket."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    monkeypatch.setattr(object_stores, "filesystem_of", lambda _: LocalFileSystem())
    monkeypatch.setattr(object_stores, "path_of", lambda address: str(tmp_path / address[5:].rstrip("/")))
    return folder


def test_a_folder_of_objects_stays_a_folder_even_with_a_single_object(bucket: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for place in (
        "one/deep/a.parquet",
        "two/a.PARQUET",
        "two/deep/b.parquet",
        "two/so/deep/c.parquet",
        "two/notes.txt",
    ):
        (bucket / place).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), bucket / place)
    for address, names in (
        ("s3://bucket/one/deep/a.parquet", None),
        ("s3://bucket/one", ["deep/a.parquet"]),
        ("s3://bucket/one/", ["deep/a.parquet"]),
        ("s3://bucket/two", ["a.PARQUET", "deep/b.parquet", "so/deep/c.parquet"]),
    ):
        with object_stores.fetched(address, scratch) as here:
            if names is None:
                assert (here.name, here.is_file()) == ("a.parquet", True)
            else:
                found = sorted(file.relative_to(here).as_posix() for file in here.rglob("*") if file.is_file())
                assert found == names
        state = object_stores.state_of(address)
        assert [name for name, *_ in state] == (names or ["a.parquet"])
        assert all(size == (bucket / "one/deep/a.parquet").stat().st_size for _, size, _ in state)
        assert list(scratch.iterdir()) == []


def test_what_was_fetched_may_be_gone_already(bucket: Path, tmp_path: Path) -> None:
    (bucket / "a.csv").touch()
    with object_stores.fetched("s3://bucket/a.csv", tmp_path) as here:
        shutil.rmtree(here.parent)
    info = SimpleNamespace(path=str(bucket / "a.csv"), size=0, mtime_ns=None)
    assert object_stores._described(LocalFileSystem(), info, "a.csv").modified == 0, "no store says when"


@pytest.mark.parametrize(
    ("objects", "address", "sentence"),
    [
        ([], "s3://bucket/nobody", "there is no such object, and none below it"),
        (["a.csv"], "s3://bucket/", "no object below it ends in .parquet"),
        (["p/_delta_log/0.json", "p/a.parquet"], "s3://bucket/p", "is a Delta Lake table"),
        (["p/metadata/v1.metadata.json", "p/a.parquet"], "s3://bucket/p", "is an Iceberg table"),
        (["p/_temporary/0/b.parquet", "p/a.parquet"], "s3://bucket/p", "holds _temporary/0/b.parquet, whose name"),
    ],
)
def test_what_is_no_folder_of_parquet_objects_is_told(
    bucket: Path, objects: list[str], address: str, sentence: str
) -> None:
    for place in objects:
        (bucket / place).parent.mkdir(parents=True, exist_ok=True)
        (bucket / place).touch()
    with pytest.raises(InputError, match=sentence):
        object_stores.state_of(address)


def test_a_copy_of_an_object_is_no_further_people(bucket: Path, tmp_path: Path) -> None:
    for place, first in (("p/a", 0), ("p/b", 1), ("p/old/c", 0)):
        (bucket / place).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": range(first, first + 10)}), bucket / f"{place}.parquet")
    source = Source(path="s3://bucket/p/")
    with (
        object_stores.fetched(source.path, tmp_path) as here,
        duckdb.connect() as connection,
        pytest.raises(InputError, match=r"^s3://bucket/p/: old/c\.parquet is a copy of a\.parquet, byte for byte"),
        parquet_relation(connection, source, here, source.path),
    ):
        raise AssertionError("it was read")


def test_columns_that_are_not_wanted_are_missing_under_their_names(bucket: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), bucket / "p.parquet")
    for unread, expected in (
        ((), {"a": [1, 2], "b": ["x", "y"]}),
        (("a",), {"a": [None, None], "b": ["x", "y"]}),
        (("b", "c"), {"a": [1, 2], "b": [None, None]}),
        (("a", "b"), {"a": [1, 2], "b": ["x", "y"]}),
    ):
        with object_stores.fetched("s3://bucket/p.parquet", tmp_path, unread) as here:
            assert pq.read_table(here).to_pydict() == expected


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (FileNotFoundError(), Unavailable, "there is no such object"),
        (pa.ArrowInvalid("Parquet magic bytes not found"), InputError, "it is no intact Parquet file"),
        (pa.ArrowInvalid("x"), Unavailable, AWAY),
        (OSError("x"), Unavailable, AWAY),
        (OSError("403"), Unavailable, "does not take these credentials"),
        (InputError("as it was"), InputError, "as it was"),
    ],
)
def test_a_failure_of_a_store_is_told_by_its_kind(error: Exception, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as told, object_stores.asking("p"):
        raise error
    assert type(told.value) is kind
