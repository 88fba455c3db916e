"""A state of a Delta Lake or Iceberg table as Parquet, with checks of the files that the table names.

A table is a description that names files, and may come from somebody else. Before any row is read, every file is
checked: a spec must be allowed to name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from anon_pipeline.engine.object_stores import (
    BATCH_ROWS,
    CATALOGUE_OR_STORE,
    STORE,
    asking,
    s3_endpoint,
    s3_region,
    sentence,
    write_batches,
)
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source
from anon_pipeline.spec.locations import is_address
from anon_pipeline.spec.permission import check_files

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import Table

#: Raises InputError for names of columns that cannot be used.
CheckNames = Callable[[list[str]], None]
#: Words in the libraries' messages when a table needs a feature that they lack.
NOT_BY_LIBRARY = re.compile(r"not (yet )?support|unsupported", re.IGNORECASE)
#: The class that reads Iceberg's files; a table may name another class, which would be code of its choice.
FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"
#: Characters in a folder's path that the library of Delta Lake misreads.
MISREAD = "%#?"
NOT_SUPPORTED = (
    "is written in a way that cannot be read here (deletion vectors, column mapping, equality deletes or the like); "
    "let its own engine write it anew without"
)


def store_table(
    source: Source, folder: Path, destination: Path, check_names: CheckNames, unread: Collection[str] = ()
) -> dict[str, str]:
    """Write the rows of a table as a new Parquet file, and return the state that was read.

    Parameters
    ----------
    folder : the folder of the spec, to which the table's path is relative
    unread : columns that are not read, and are missing throughout

    Raises
    ------
    InputError
        Where the table or that state of it is not there, or cannot be read.
    """
    if source.table_format == "delta":
        return _store_delta(source, folder, destination, check_names, unread)
    return _store_iceberg(source, folder, destination, check_names, unread)


def state_of_table(source: Source, folder: Path) -> list[str]:
    """The table's identity and its newest state, read without its rows; they change when the table does.

    Raises
    ------
    InputError
        Where the table is not there, or cannot be read.
    """
    with _reading(source):
        if source.table_format == "delta":
            delta = _delta(source, folder)
            return [str(delta.metadata().id), str(delta.version())]
        iceberg = _iceberg(source, folder)
        return [str(iceberg.metadata.table_uuid), str(_snapshot(source, iceberg).snapshot_id)]


def _store_delta(
    source: Source, folder: Path, destination: Path, check_names: CheckNames, unread: Collection[str]
) -> dict[str, str]:
    with _reading(source):
        table = _delta(source, folder)
        if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            raise InputError(f"{source.path}: {NOT_SUPPORTED}")
        dataset = table.to_pyarrow_dataset()
        root = str(source.delta)
        # Not `file_uris`, which escapes characters of the root in a way that is not undone when reading.
        _check_files(source, folder, [f"{root.rstrip('/')}/{file}" for file in dataset.files])
        names = dataset.schema.names
        check_names(names)
        wanted = [name for name in names if name not in unread] or names
        scanner = dataset.scanner(columns=wanted, batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    batches = _with_our_messages(source, scanner.to_reader())
    write_batches(batches, dataset.schema, destination, source.path, set(wanted))
    return {"format": "delta", "version": str(table.version())}


def _delta(source: Source, folder: Path) -> DeltaTable:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise InputError("source.delta: is a Delta Lake table; install `anon-pipeline[delta]` to read it") from None
    place = str(source.delta)
    if is_address(place):
        return DeltaTable(place, version=source.version, storage_options=delta_options())
    root = (folder / place).resolve()
    if set(MISREAD) & set(str(root)):
        raise InputError(f"source.delta: the path to {place} has a %, # or ? in it; call its folders otherwise")
    if not (root / "_delta_log").is_dir():
        raise Unavailable(f"source.delta: {place}: there is no Delta Lake table of that name beside the spec")
    return DeltaTable(str(root), version=source.version)


def delta_options() -> dict[str, str]:
    """The options that the library of Delta Lake needs for a store that is not Amazon's own."""
    endpoint = s3_endpoint()
    options = {"allow_http": str((endpoint or "").startswith("http://")).lower()}
    return options | ({"aws_endpoint": endpoint} if endpoint else {})


def _store_iceberg(
    source: Source, folder: Path, destination: Path, check_names: CheckNames, unread: Collection[str]
) -> dict[str, str]:
    with _reading(source):
        table = _iceberg(source, folder)
        snapshot = _snapshot(source, table)
        _check_files(source, folder, [as_opened(snapshot.manifest_list)])
        _check_files(source, folder, [as_opened(manifest.manifest_path) for manifest in snapshot.manifests(table.io)])
        everything = table.scan(snapshot_id=snapshot.snapshot_id)
        names = [field.name for field in everything.projection().fields]
        check_names(names)
        wanted = [name for name in names if name not in unread] or names
        scan = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(wanted))
        tasks = list(scan.plan_files())
        files = [file for task in tasks for file in (task.file, *task.delete_files)]
        _check_files(source, folder, [as_opened(file.file_path) for file in files])
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        schema = schema_to_pyarrow(everything.projection(), include_field_ids=False)
    write_batches(_with_our_messages(source, _rows(table, scan, tasks)), schema, destination, source.path, set(wanted))
    return {"format": "iceberg", "snapshot": str(snapshot.snapshot_id)}


def _rows(table: Table, scan: Any, tasks: list[Any]) -> Iterator[pa.RecordBatch]:
    """The rows of one data file after another, so that only one file is in memory."""
    from pyiceberg.io.pyarrow import ArrowScan

    reader = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
    for task in tasks:
        yield from reader.to_record_batches([task])


def _iceberg(source: Source, folder: Path) -> Table:
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io.pyarrow import PyArrowFileIO
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import Table
    except ImportError:
        raise InputError("source.iceberg: is an Iceberg table; install `anon-pipeline[iceberg]` to read it") from None
    if source.location is None:
        catalogue, _, name = str(source.iceberg).partition(".")
        return load_catalog(catalogue).load_table(name)
    place = source.location if is_address(source.location) else str((folder / source.location).resolve())
    if not is_address(place) and not Path(place).is_file():
        raise Unavailable(f"source.iceberg: {source.iceberg}: there is no such file beside the spec")
    # Not `StaticTable`, which would take the class that reads files, and the endpoint, from the table itself.
    endpoint = s3_endpoint()
    of_store = {"s3.endpoint": endpoint, "s3.region": s3_region()} if endpoint else {}
    files = PyArrowFileIO({"py-io-impl": FILE_IO, **of_store})
    metadata = FromInputFile.table_metadata(files.new_input(place))
    return Table(("table",), metadata, place, files, NoopCatalog("none"))


def _snapshot(source: Source, table: Table) -> Any:
    if source.snapshot is None:
        found = table.current_snapshot()
        if found is None:
            raise InputError(f"{source.path}: the table is empty")
        return found
    found = table.snapshot_by_id(source.snapshot)
    if found is None:
        raise InputError(f"source.snapshot: {source.path} has no snapshot {source.snapshot}, or has it no more")
    return found


def _check_files(source: Source, folder: Path, files: list[str]) -> None:
    """Check that a spec in `folder` may name the files that a table names.

    Parameters
    ----------
    files : addresses, and paths of this machine as the library will open them
    """
    for file in files:
        if not is_address(file) and not (folder / file).is_file():  # the checked file must be the one read
            raise Unavailable(f"{source.path}: there is no such object: a file of the table")
        try:
            check_files(folder, [file], (), ())
        except InputError as error:  # the name of a file may hold a value, if the table is partitioned by it
            message = str(error).removeprefix(f"{file}: ").removeprefix("source: ")
            raise InputError(f"{source.path}: one of its files {message}") from None


def as_opened(location: str) -> str:
    """A location in an Iceberg table, as the library opens it: for `file:` it cuts off ? and #, and keeps %20.

    Raises
    ------
    ValueError
        For a path that is not absolute.
    """
    path = urlsplit(location).path if location.startswith("file:///") else location
    if not is_address(path) and not path.startswith("/"):
        raise ValueError("a path that is not absolute")
    return path


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """A block in which a library reads; its messages, which may quote a row or a credential, are not passed on."""
    with asking(source.path):
        try:
            yield
        except (InputError, MemoryError, OSError, pa.ArrowException):
            raise
        except ImportError:
            raise InputError(f"{source.path}: a package that its catalogue or store needs is not installed") from None
        except Exception as error:
            raise _sentence(source, error) from None


def _sentence(source: Source, error: Exception) -> InputError:
    kind, text = type(error).__name__, str(error)
    if kind == "TableNotFoundError" or kind.startswith("NoSuch"):
        return Unavailable(f"{source.path}: there is no such table")
    if kind == "DeltaProtocolError" or isinstance(error, NotImplementedError) or NOT_BY_LIBRARY.search(text):
        return InputError(f"{source.path}: {NOT_SUPPORTED}")
    if kind == "DeltaError" and source.version is not None:
        return InputError(f"source.version: {source.path} has no version {source.version}, or has it no more")
    is_here = source.location is not None and not is_address(source.location)
    if is_here or isinstance(error, ValueError | KeyError | TypeError):
        return InputError(f"{source.path}: cannot be read as {source.table_format}: the library reported {kind}")
    place = CATALOGUE_OR_STORE if source.location is None else STORE
    return Unavailable(f"{source.path}: {sentence(error, place)}")


def _with_our_messages(source: Source, batches: Any) -> Iterator[pa.RecordBatch]:
    """The same batches; a failure while they are read raises a message of our own."""
    while True:
        with _reading(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch
