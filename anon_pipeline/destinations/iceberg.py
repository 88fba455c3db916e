"""An Iceberg table with the rows of the current release; each release is a snapshot, tagged with its version."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from anon_pipeline.destinations.base import ABSENT, Release
from anon_pipeline.destinations.iceberg_files import files_of, remove_unnamed
from anon_pipeline.destinations.lake import (
    HOLDS_ANOTHER,
    HOLDS_OTHER,
    NOT_OURS,
    WITHDRAWN,
    Named,
    metadata_of,
    named_by,
    named_in,
    working,
)
from anon_pipeline.destinations.rows import rows_of, same_rows
from anon_pipeline.engine.object_stores import CATALOGUE_OR_STORE
from anon_pipeline.errors import InputError
from anon_pipeline.home import scratch
from anon_pipeline.release.publish import DATA

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

#: The property of a table that was made here: the dataset whose releases it holds.
OF_DATASET = "anon_pipeline.dataset"
#: No statistics of columns beside the files: catalogues and engines copy them.
PROPERTIES = {"write.metadata.metrics.default": "none"}
#: How properties begin that name a column which has statistics all the same.
OF_A_COLUMN = "write.metadata.metrics.column."


class IcebergTable:
    """`iceberg: catalogue.namespace.table`; pyiceberg's own configuration has the catalogue."""

    keeps_former = False

    def __init__(self, name: str) -> None:
        self._label = f"iceberg:{name}"
        self._catalogue, _, self._name = name.partition(".")

    def holds(self, release: Release) -> bool:
        with working(self._label, CATALOGUE_OR_STORE):
            table = self._table(release)
            return table is not None and _says(table, release)

    def put(self, release: Release) -> None:
        with working(self._label, CATALOGUE_OR_STORE):
            rows = rows_of(release.folder / DATA)
            table = self._table(release) or self._new_table(release, rows.schema)
            self._require_lists(table)
            if not _is_complete(table, release):
                _switch_statistics_off(table)
                _overwrite(table, rows, release)
            _tag(table, release)

    def problems(self, release: Release, scratch: Path) -> list[str]:
        with working(self._label, CATALOGUE_OR_STORE):
            table = self._table(release)
            if table is None:
                return ["the table is gone"]
            batches = table.scan().to_arrow_batch_reader()
            found = [] if same_rows(release.folder / DATA, batches, scratch) else [HOLDS_OTHER]
            return found or ([] if _says(table, release) else [HOLDS_ANOTHER])

    def take_back(self, release: Release) -> str:
        with working(self._label, CATALOGUE_OR_STORE):
            table = self._table(release)
            if table is None:
                return ABSENT
            newest = table.current_snapshot()
            if newest is not None and _release_behind(table, newest) in (named_by(release), None):
                self._require_lists(table)
                _empty(table, release)
            if (tag := table.refs().get(release.version)) is not None and _is_of(table, tag.snapshot_id, release):
                table.manage_snapshots().remove_tag(release.version).commit()
            _expire(table, release)
            unnamed = remove_unnamed(table)
        return (
            f"its snapshots are expired and their files removed{unnamed}; older metadata files of the table still say "
            "that there was such a release, its columns and the number of its rows"
        )

    def remains(self, release: Release) -> bool:
        with working(self._label, CATALOGUE_OR_STORE):
            table = self._table(release)
            return table is not None and any(
                _release_behind(table, snapshot) == named_by(release) for snapshot in table.snapshots()
            )

    def _require_lists(self, table: Table) -> None:
        """Require the files that list those of the newest state, without which the library commits nothing."""
        newest = table.current_snapshot()
        try:
            files_of(table, [] if newest is None else [newest], whole=True)
        except FileNotFoundError:
            raise InputError(
                f"{self._label}: files that list those of its newest state are gone; restore them, or drop the table "
                "with all its files, and deliver again"
            ) from None

    def _table(self, release: Release) -> Table | None:
        """The table, where there is one; a table that was not made here for this dataset is refused."""
        catalogue = self._open()
        if not catalogue.table_exists(self._name):
            return None
        table = catalogue.load_table(self._name)
        if table.properties.get(OF_DATASET) != release.dataset:
            raise InputError(f"{self._label}: {NOT_OURS}")
        return table

    def _new_table(self, release: Release, schema: pa.Schema) -> Table:
        catalogue = self._open()
        catalogue.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        return catalogue.create_table(self._name, schema, properties={OF_DATASET: release.dataset, **PROPERTIES})

    def _open(self) -> Catalog:
        from pyiceberg.catalog import load_catalog

        return load_catalog(self._catalogue)


def _release_of(snapshot: Snapshot) -> Named | None:
    """The release that a snapshot has, or will have once it is complete; None where it names none."""
    return None if snapshot.summary is None else named_in(snapshot.summary.additional_properties)


def _release_behind(table: Table, snapshot: Snapshot) -> Named | None:
    """The release whose rows a snapshot has, whatever others did with them since; of empty texts if it has none.

    None where no snapshot before it names a release.
    """
    before: Snapshot | None = snapshot
    while before is not None:
        if (named := _release_of(before)) is not None:
            return named
        before = None if before.parent_snapshot_id is None else table.snapshot_by_id(before.parent_snapshot_id)
    return None


def _is_of(table: Table, number: int, release: Release) -> bool:
    """Whether a snapshot has the rows of a release, or of none that is named."""
    snapshot = table.snapshot_by_id(number)
    return snapshot is None or _release_behind(table, snapshot) in (named_by(release), None)


def _says(table: Table, release: Release) -> bool:
    """Whether the current snapshot is this release, and its tag points to it."""
    newest, tag = table.current_snapshot(), table.refs().get(release.version)
    return (
        newest is not None
        and tag is not None
        and tag.snapshot_id == newest.snapshot_id
        and _release_of(newest) == named_by(release)
    )


def _is_complete(table: Table, release: Release) -> bool:
    """Whether the newest state lacks its tag only: it names the release, and its rows are there and those of the file.

    A writer that was killed before the tag has left such a state.
    """
    newest = table.current_snapshot()
    if newest is None or _release_of(newest) != named_by(release):
        return False
    try:
        with scratch() as folder:
            return same_rows(release.folder / DATA, table.scan().to_arrow_batch_reader(), folder)
    except (FileNotFoundError, pa.ArrowInvalid):
        return False


def _switch_statistics_off(table: Table) -> None:
    """Switch statistics off again where others have switched them on.

    The next release's files would name the smallest and largest values of this one's as those of a removed file.
    """
    of_columns = [name for name in table.properties if name.startswith(OF_A_COLUMN)]
    if of_columns or not PROPERTIES.items() <= table.properties.items():
        with table.transaction() as transaction:
            transaction.remove_properties(*of_columns)
            transaction.set_properties(PROPERTIES)


def _empty(table: Table, release: Release) -> None:
    """Remove all rows, in a commit that names the release taken back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a warning that there were no rows to delete
        table.delete(snapshot_properties={WITHDRAWN: release.version})


def _overwrite(table: Table, rows: pa.RecordBatchReader, release: Release) -> None:
    """Replace the rows of the table by these, in one commit; the columns too, where they differ."""
    with warnings.catch_warnings(), table.transaction() as transaction:
        warnings.simplefilter("ignore", UserWarning)  # a warning that there were no rows to delete
        if not table.schema().as_arrow().remove_metadata().equals(rows.schema):
            with transaction.update_schema(allow_incompatible_changes=True) as change:
                for name in table.schema().as_struct().fields:
                    change.delete_column((name.name,))
            with transaction.update_schema(allow_incompatible_changes=True) as change:
                change.union_by_name(rows.schema)
        transaction.overwrite(rows, snapshot_properties=metadata_of(release))


def _tag(table: Table, release: Release) -> None:
    newest, tag = table.current_snapshot(), table.refs().get(release.version)
    if newest is None or (tag is not None and tag.snapshot_id == newest.snapshot_id):
        return
    if tag is not None:
        table.manage_snapshots().remove_tag(release.version).commit()
    table.manage_snapshots().create_tag(newest.snapshot_id, release.version).commit()


def _expire(table: Table, release: Release) -> None:
    """Expire the snapshots of a release and those that others made of it; remove the files that no other has."""
    expired = [
        snapshot for snapshot in table.snapshots() if _release_behind(table, snapshot) in (named_by(release), None)
    ]
    if not expired:
        return
    kept = [snapshot for snapshot in table.snapshots() if snapshot not in expired]
    files = files_of(table, expired) - files_of(table, kept)
    # Files are removed first: if the process is killed, the snapshots still name the files that are left.
    for file in sorted(files, key=lambda file: (file.endswith(".avro"), Path(file).name.startswith("snap-"))):
        with suppress(FileNotFoundError):
            table.io.delete(file)
    numbers = {snapshot.snapshot_id for snapshot in expired}
    _remove_references(table, numbers)
    table.maintenance.expire_snapshots().by_ids(list(numbers)).commit()


def _remove_references(table: Table, snapshots: set[int]) -> None:
    """Remove the tags and branches of others that lead to some snapshots: a snapshot that has one is never expired."""
    for name, reference in table.refs().items():
        if reference.snapshot_id in snapshots:
            managed = table.manage_snapshots()
            remove = managed.remove_tag if reference.snapshot_ref_type == "tag" else managed.remove_branch
            remove(name).commit()
