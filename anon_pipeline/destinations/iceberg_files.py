"""The files of an Iceberg table: those that snapshots name, and the removal of those that none does."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

#: How the names of files end that hold rows or are made of them.
OF_ROWS = (".parquet", ".orc", ".avro", ".puffin")
METADATA = ".metadata.json"
#: What is said where files that no snapshot names are left.
NOT_LISTED = ", but its store is reached by a library that lists no files: some of a killed writer may be left"
NOT_NAMED = (
    ", but a file that lists those of another state is gone, and some of a killed writer may be left: it is not known "
    "which files are that state's"
)
SHARED = ", but another table has files in the same folder, and some of a killed writer may be left among them"


def files_of(table: Table, snapshots: list[Snapshot], whole: bool = False) -> set[str]:
    """Every file of some snapshots.

    Parameters
    ----------
    whole : whether all files that list others must be there; otherwise those that were removed already are not read

    Raises
    ------
    FileNotFoundError
        If `whole`, where such a file is gone.
    """
    gone: tuple[type[Exception], ...] = () if whole else (FileNotFoundError,)
    found: set[str] = set()
    for snapshot in snapshots:
        found.add(snapshot.manifest_list)
        manifests: list[ManifestFile] = []
        with suppress(*gone):
            manifests = snapshot.manifests(table.io)
        for manifest in manifests:
            found.add(manifest.manifest_path)
            with suppress(*gone):
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                found |= {entry.data_file.file_path for entry in entries}
    return found


def remove_unnamed(table: Table) -> str:
    """Remove files of rows in the table's folder that no snapshot names; what is to be said of those that are left.

    A writer that is killed, or whose commit is refused because another was first, leaves its files there, and whoever
    has counted values leaves statistics of snapshots that are no more. What another writer is about to commit is
    removed too, as from a Delta Lake table: the tables are those of releases, and the next delivery writes it again.
    Where a file that lists others is gone, nothing is removed: those that it listed would seem to be nobody's.
    """
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(table.io, PyArrowFileIO):
        return NOT_LISTED
    scheme, host, folder = PyArrowFileIO.parse_location(table.location(), table.io.properties)
    store = table.io.fs_by_scheme(scheme, host)
    there = _listed(store, folder)
    table.refresh()  # after the list: what was committed meanwhile is named
    if not _is_alone(table, [file.removeprefix(folder) for file in there]):
        return SHARED
    numbers = {snapshot.snapshot_id for snapshot in table.snapshots()}
    statistics = [*table.metadata.statistics, *table.metadata.partition_statistics]
    try:
        named = files_of(table, table.snapshots(), whole=True)
    except FileNotFoundError:
        return NOT_NAMED
    named |= {file.statistics_path for file in statistics if file.snapshot_id in numbers}
    # By their names, which are nobody else's: engines write the same folder in several ways (s3 and s3a).
    names = {PurePosixPath(file).name for file in named}
    for file in there:
        if file.endswith(OF_ROWS) and PurePosixPath(file).name not in names:
            with suppress(FileNotFoundError):
                store.delete_file(file)
    return ""


def _listed(store: FileSystem, folder: str) -> list[str]:
    from pyarrow import fs

    below = store.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return [file.path for file in below if file.type == fs.FileType.File]


def _is_alone(table: Table, there: list[str]) -> bool:
    """Whether all metadata in the folder are this table's: a table that was renamed keeps its files where they are.

    Parameters
    ----------
    there : the files, by their paths in the folder
    """
    from pyiceberg.serializers import FromInputFile

    known = {table.metadata_location, *(former.metadata_file for former in table.metadata.metadata_log)}
    found = {f"{table.location().rstrip('/')}/{file.lstrip('/')}" for file in there if file.endswith(METADATA)}
    return all(
        FromInputFile.table_metadata(table.io.new_input(file)).table_uuid == table.metadata.table_uuid
        for file in found - known
    )
