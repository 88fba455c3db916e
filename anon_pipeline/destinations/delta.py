"""A Delta Lake table with the rows of the current release; the metadata of each commit names the release.

Statistics of columns are switched off: the log would keep them, and with them the smallest and largest values of a
release, after its files are gone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from anon_pipeline.destinations.base import ABSENT, Release
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
from anon_pipeline.destinations.rows import BATCH_ROWS, rows_of, same_rows
from anon_pipeline.engine.lake_tables import MISREAD, delta_options
from anon_pipeline.engine.object_stores import filesystem_of, path_of
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec.locations import is_address

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: The description of a table that was made here.
OURS = "The current release of {}, put here by anon_pipeline"
NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0"}
#: The setting that names columns which have statistics all the same.
COLUMNS_WITH_STATISTICS = "delta.dataSkippingStatsColumns"
#: The folder of the log, in which checkpoints are Parquet files too.
LOG = "_delta_log/"
#: How the names of files of rows end; a file on a disk that is being written has a number behind that.
ROWS = re.compile(r"\.parquet(#[0-9]+)?$")
#: How often files are removed until none is left, and the seconds between.
CALLS, PAUSE = 5, 0.01
#: Characters in a folder's path that the library misreads, or panics at when it writes there.
UNWRITABLE = frozenset([*MISREAD, *"[]^|\\", *map(chr, range(32)), chr(127)])
#: The operations of commits that the table's own maintenance writes.
UPKEEP = ("VACUUM START", "VACUUM END")


class DeltaLakeTable:
    """`delta`, a folder or an address."""

    keeps_former = False

    def __init__(self, place: str) -> None:
        self._label, self._place = f"delta:{place}", place
        self._options = delta_options() if is_address(place) else None

    def holds(self, release: Release) -> bool:
        require_writable(self._place, self._label)
        with working(self._label):
            table = self._table(release)
            return table is not None and _says(table, release)

    def put(self, release: Release) -> None:
        import deltalake

        require_writable(self._place, self._label)
        with working(self._label):
            if not is_address(self._place):
                Path(self._place).parent.mkdir(parents=True, exist_ok=True)
            table = self._table(release)
            if table is not None:
                _switch_statistics_off(table)
            deltalake.write_deltalake(
                self._place if table is None else table,
                rows_of(release.folder / DATA),
                mode="error" if table is None else "overwrite",
                schema_mode=None if table is None else "overwrite",
                name=release.dataset if table is None else None,
                description=OURS.format(release.dataset) if table is None else None,
                configuration=NO_STATISTICS if table is None else None,
                storage_options=self._options,
                commit_properties=deltalake.CommitProperties(custom_metadata=metadata_of(release)),
            )

    def problems(self, release: Release, scratch: Path) -> list[str]:
        with working(self._label):
            table = self._table(release)
            if table is None:
                return ["the table is gone"]
            batches = table.to_pyarrow_dataset().scanner(batch_size=BATCH_ROWS).to_reader()
            found = [] if same_rows(release.folder / DATA, batches, scratch) else [HOLDS_OTHER]
            return found or ([] if _says(table, release) else [HOLDS_ANOTHER])

    def take_back(self, release: Release) -> str:
        import deltalake

        with working(self._label):
            table = self._table(release)
            if table is None:
                if left := len(self._beside([])):
                    raise InputError(
                        f"{self._label}: is no table any more, or was none yet when its writer was killed, but has "
                        f"{number_of(left, 'file', 'files')} of rows; remove {'it' if left == 1 else 'them'}, and "
                        "deliver again"
                    )
                return ABSENT
            # Where the log names no release any more, the successor was not put here just now: these rows go.
            if _release_behind(table) in (named_by(release), None):
                table.delete(commit_properties=deltalake.CommitProperties(custom_metadata={WITHDRAWN: release.version}))
            if left := self._removed(table):
                raise InputError(
                    f"{self._label}: files beside the table's own are still there ({left}); a file is only removed if "
                    "it was written and given up before now, by the clocks of those who did so; deliver again later"
                )
        return (
            "the files of all former states are removed; the log of the table still says that there was such a "
            "release, its columns and the number of its rows"
        )

    def _removed(self, table: DeltaTable) -> int:
        """Remove the files that the table no longer has; how many of them are left.

        A file that was given up in the very millisecond of the call is not old enough to be removed, nor is one that a
        clock ahead of this one gave up: the first goes with the next call.
        """
        for _ in range(CALLS):
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
            self._remove_cut_off()
            if not (left := len(self._beside(table.file_uris()))):
                return 0
            time.sleep(PAUSE)
        return left

    def _remove_cut_off(self) -> None:
        """Remove files on a disk whose writer was killed; the library passes over them."""
        if not is_address(self._place):
            for file in Path(self._place).rglob("*.parquet#*"):
                file.unlink(missing_ok=True)

    def _beside(self, own: Iterable[str]) -> list[str]:
        """Files of rows there that are not the table's own."""
        from pyarrow import fs

        if is_address(self._place):
            store, root = filesystem_of(self._place), path_of(self._place)
        else:
            store, root = fs.LocalFileSystem(), str(Path(self._place).absolute())
        names = {PurePosixPath(file).name for file in own}
        return [
            file.path
            for file in store.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
            if ROWS.search(file.path) and not file.path.startswith(f"{root}/{LOG}") and file.base_name not in names
        ]

    def remains(self, release: Release) -> bool:
        with working(self._label):
            table = self._table(release)
            return table is not None and _release_behind(table) == named_by(release)

    def _table(self, release: Release) -> DeltaTable | None:
        """The table, where there is one; a table that was not made here for this dataset is refused."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if not is_address(self._place) and not Path(self._place).exists():
            return None
        try:
            table = DeltaTable(self._place, storage_options=self._options)
        except TableNotFoundError:
            return None
        if table.metadata().description != OURS.format(release.dataset):
            raise InputError(f"{self._label}: {NOT_OURS}")
        return table


def require_writable(place: str, named: str) -> None:
    """
    Raises
    ------
    InputError
        For a folder, by its full path, that the library cannot write to.
    """
    if not is_address(place) and UNWRITABLE & set(place):
        raise InputError(
            f"{named}: the path has a %, # or ? in it, or one of [ ] ^ | \\ or a control character; call its folders "
            "otherwise"
        )


def _switch_statistics_off(table: DeltaTable) -> None:
    """Switch statistics off again where others have switched them on: the log would keep those of what comes now."""
    stated = table.metadata().configuration
    wanted = NO_STATISTICS | ({COLUMNS_WITH_STATISTICS: ""} if COLUMNS_WITH_STATISTICS in stated else {})
    if not wanted.items() <= stated.items():
        table.alter.set_table_properties(wanted)


def _newest(table: DeltaTable) -> dict[str, Any]:
    """The metadata of the newest commit that is not maintenance."""
    return next((commit for commit in table.history() if commit.get("operation") not in UPKEEP), {})


def _release_behind(table: DeltaTable) -> Named | None:
    """The release whose rows the table has, whatever others did with them since; of empty texts if it has none.

    None where the log names no release: the table's own maintenance removes its oldest commits.
    """
    return next(filter(None, map(named_in, table.history())), None)


def _says(table: DeltaTable, release: Release) -> bool:
    return metadata_of(release).items() <= _newest(table).items()
