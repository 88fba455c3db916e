"""Objects of S3, Google Cloud Storage and Azure as files of a private folder, and their descriptions by the store.

Credentials come from the places where the store's own tools look for them, never from a spec. Messages of a store or of
its library are never repeated, since they may quote a credential or the signature of a request.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.parquet_files import refuse_put_aside, refuse_table
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec.locations import parts_of

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

#: A text is copied by so many bytes at a time, and a Parquet object by so many rows.
CHUNK_BYTES, BATCH_ROWS = 8 << 20, 65_536
#: Seconds that a store has to accept a connection, and to answer; it is asked three times.
CONNECT_SECONDS, ANSWER_SECONDS, ATTEMPTS, GIVE_UP_SECONDS = 10, 60, 3, 30
#: Environment variables, also used by the store's tools, that name another server with the same protocol.
S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
S3_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
GS_ENDPOINT, AZURE_ACCOUNT, AZURE_KEY = "STORAGE_EMULATOR_HOST", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"
#: What our messages name that gave no answer.
STORE, CATALOGUE_OR_STORE = "the store", "the catalogue or the store"
#: Words in libraries' messages when a store denies access.
NOT_LET_IN = re.compile(
    r"ACCESS_DENIED|FORBIDDEN|INVALID_ACCESS_KEY|SIGNATURE|TOKEN|\b40[13]\b|PERMISSION.DENIED|UNAUTHENTICATED|CREDENTIAL"
    r"|AUTHENTICATION|AUTHORIZATION",
    re.IGNORECASE,
)
PARQUET, PARQUET_HEAD = (".parquet", ".pq"), b"PAR1"


@dataclass(frozen=True)
class StoredObject:
    """An object as its store describes it.

    Attributes
    ----------
    path : as the library names it
    name : its name below the requested address, or the last part of that address
    size : in bytes
    modified : nanoseconds since 1970
    tag : the store's identifier of its content (ETag), where it has one
    """

    path: str
    name: str
    size: int
    modified: int
    tag: str | None


@contextmanager
def fetched(address: str, scratch: Path, unread: Collection[str] = ()) -> Iterator[Path]:
    """The object of an address as a private file, or all Parquet objects below it as a folder, for the block.

    For Parquet, the `unread` columns are not fetched and all their values are missing; the others are read as ranges, a
    row group at a time. Other objects are copied as they are.

    Raises
    ------
    InputError
        Where the store cannot be reached or refuses, there is no such object, or it changes meanwhile.
    """
    with asking(address):
        store = filesystem_of(address)
        found = _objects(store, address)
    folder = Path(tempfile.mkdtemp(prefix="fetched-", dir=scratch))
    try:
        for stored in found:
            copy = folder / stored.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if _is_parquet(store, stored, address):
                _copy_parquet(store, stored, copy, address, unread)
            else:
                _copy(store, stored, copy, address)
        with asking(address):
            if _objects(store, address) != found:
                raise Unavailable(f"{address}: was changed while it was read; run again")
        alone = len(found) == 1 and found[0].path == path_of(address)
        yield folder / found[0].name if alone else folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def state_of(address: str) -> list[list[Any]]:
    """The state of the objects of an address, found without reading them: name, size, and ETag or time of each.

    Raises
    ------
    Unavailable
        Where the store cannot be reached or refuses, or there is no such object.
    """
    with asking(address):
        found = _objects(filesystem_of(address), address)
    return [[stored.name, stored.size, stored.tag or stored.modified] for stored in found]


def filesystem_of(address: str) -> FileSystem:
    """The store of an address, with the credentials and the endpoint of the environment."""
    from pyarrow import fs

    store, bucket, _ = parts_of(address)
    if store == "s3":
        endpoint = urlsplit(s3_endpoint() or "")
        return fs.S3FileSystem(
            endpoint_override=endpoint.netloc or None,
            scheme=endpoint.scheme or None,
            region=s3_region() if endpoint.netloc or _stated(S3_REGIONS) else fs.resolve_s3_region(bucket),
            connect_timeout=CONNECT_SECONDS,
            request_timeout=ANSWER_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            allow_delayed_open=True,  # a small object is one request: an upload in parts, cut off, stays in the bucket
        )
    if store == "gs":
        endpoint = urlsplit(os.environ.get(GS_ENDPOINT, ""))
        limit = timedelta(seconds=GIVE_UP_SECONDS)  # the default is a quarter of an hour
        if endpoint.netloc:
            return fs.GcsFileSystem(
                anonymous=True, endpoint_override=endpoint.netloc, scheme=endpoint.scheme, retry_time_limit=limit
            )
        return fs.GcsFileSystem(retry_time_limit=limit)
    account = bucket.partition("@")[2].partition(".")[0] or os.environ.get(AZURE_ACCOUNT)
    if not account:
        raise Unavailable(f"{address}: the account is not known; name it in {AZURE_ACCOUNT}")
    return fs.AzureFileSystem(account_name=account, account_key=os.environ.get(AZURE_KEY))


def s3_endpoint() -> str | None:
    """The URL of the server that is used instead of Amazon's."""
    return _stated(S3_ENDPOINTS)


def s3_region() -> str:
    """The region for which requests are signed; most servers that are not Amazon's accept any."""
    return _stated(S3_REGIONS) or "us-east-1"


def _stated(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def path_of(address: str) -> str:
    """An address as the library of its store names it."""
    _, bucket, key = parts_of(address)
    return f"{bucket.partition('@')[0]}/{key}".rstrip("/")


@contextmanager
def asking(label: str) -> Iterator[None]:
    """A block that only asks a store: a failure in it raises a message of our own.

    Raises
    ------
    InputError
        For an object that is no intact Parquet file.
    Unavailable
        For every other failure, which may pass.
    """
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise Unavailable(f"{label}: there is no such object") from None
    except pa.ArrowInvalid as error:
        if "arquet" in str(error):
            raise InputError(f"{label}: cannot be read: it is no intact Parquet file") from None
        raise Unavailable(f"{label}: {sentence(error)}") from None
    except (OSError, pa.ArrowException) as error:
        raise Unavailable(f"{label}: {sentence(error)}") from None


def sentence(error: Exception, place: str = STORE) -> str:
    """Our message for a library's error: whether access was denied, or the place gave no answer."""
    if NOT_LET_IN.search(str(error)):
        return (
            f"{place} does not take these credentials, or they may not read this (docs/sources.md says where they lie)"
        )
    return f"{place} cannot be reached, or has ended the connection; check its address, and the endpoint if one is set"


def _objects(store: FileSystem, address: str) -> list[StoredObject]:
    """The object of an address, or the Parquet objects below it, by name."""
    from pyarrow import fs

    path = path_of(address)
    info = store.get_file_info(path)
    if info.type == fs.FileType.File and not address.endswith("/"):
        return [_described(store, info, PurePosixPath(path).name)]
    below = store.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    files = {entry.path: entry for entry in below if entry.type == fs.FileType.File}
    tables = sorted(place for place in files if place.lower().endswith(PARQUET[0]))
    if not files:
        raise Unavailable(f"{address}: there is no such object, and none below it")
    refuse_table((place.removeprefix(f"{path}/") for place in sorted(files)), address)
    if not tables:
        raise InputError(f"{address}: no object below it ends in .parquet; name one object")
    refuse_put_aside((place.removeprefix(f"{path}/") for place in tables), address)
    for place in tables:
        if {"..", "."} & set(PurePosixPath(place).parts):
            raise InputError(f"{address}: an object below it has a part of its key that is . or ..; call it otherwise")
    return [_described(store, files[place], place.removeprefix(f"{path}/")) for place in tables]


def _described(store: FileSystem, info: Any, name: str) -> StoredObject:
    with store.open_input_stream(info.path, compression=None, buffer_size=0) as stream:
        known = {key.lower(): value for key, value in (stream.metadata() or {}).items()}
    tag = known.get("etag")
    return StoredObject(info.path, name, info.size, info.mtime_ns or 0, tag.decode() if tag else None)


def _is_parquet(store: FileSystem, stored: StoredObject, label: str) -> bool:
    if stored.name.lower().endswith(PARQUET):
        return True
    with asking(label), store.open_input_file(stored.path) as file:
        return bool(file.read(len(PARQUET_HEAD)) == PARQUET_HEAD)


def _copy(store: FileSystem, stored: StoredObject, copy: Path, label: str) -> None:
    """Copy the bytes as they are; packed files stay packed."""
    with copy.open("wb") as file:
        with asking(label):
            stream = store.open_input_stream(stored.path, compression=None)
        with stream:
            while True:
                with asking(label):
                    chunk = stream.read(CHUNK_BYTES)
                if not chunk:
                    break
                file.write(chunk)


def _copy_parquet(store: FileSystem, stored: StoredObject, copy: Path, label: str, unread: Collection[str]) -> None:
    with asking(label):
        file = pq.ParquetFile(store.open_input_file(stored.path), coerce_int96_timestamp_unit="us")
        names = file.schema_arrow.names
        wanted = [name for name in names if name not in unread] or names
        batches = file.iter_batches(BATCH_ROWS, columns=None if wanted == names else wanted)
    write_batches(batches, file.schema_arrow, copy, label, set(wanted))


def write_batches(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, copy: Path, label: str, wanted: Collection[str]
) -> None:
    """Write batches that hold the `wanted` columns of a schema as a Parquet file with all of its columns.

    The columns that are not wanted have missing values only, under their names.
    """
    fields = [field if field.name in wanted else pa.field(field.name, pa.null()) for field in schema]
    written = pa.schema(fields)
    with pq.ParquetWriter(copy, written) as writer:
        while True:
            with asking(label):
                batch = next(batches, None)
            if batch is None:
                return
            known = iter(batch.columns)  # in the order of the schema; a name may stand twice, which is told later
            columns = [
                next(known).cast(field.type) if field.name in wanted else pa.nulls(len(batch)) for field in written
            ]
            writer.write_batch(pa.record_batch(columns, schema=written))
