"""Tables of Delta Lake and Iceberg on disk, written by the libraries' own writers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from anon_pipeline_tests.skips import require_package


def write_delta(place: Path | str, *states: pa.Table, **options: str) -> None:
    """A Delta Lake table whose versions 0, 1, ... are the states."""
    deltalake = require_package("deltalake")
    for state in states:
        deltalake.write_deltalake(str(place), state, mode="overwrite", storage_options=options or None)


def write_iceberg(folder: Path, *states: pa.Table, properties: dict[str, str] | None = None) -> tuple[Path, list[int]]:
    """An Iceberg table with these states: the file of its metadata, and the snapshot of each state."""
    sql = require_package("pyiceberg.catalog.sql")
    folder.mkdir(parents=True)
    catalogue = sql.SqlCatalog("hospital", uri=f"sqlite:///{folder}/catalogue.db", warehouse=f"file://{folder}")
    catalogue.create_namespace("clinic")
    table = catalogue.create_table("clinic.people", schema=states[0].schema, properties=properties or {})
    snapshots = []
    for state in states:
        table.overwrite(state)
        snapshots.append(table.current_snapshot().snapshot_id)
    return Path(table.metadata_location.removeprefix("file://")), snapshots
