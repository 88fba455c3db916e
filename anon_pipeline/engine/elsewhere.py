"""The state of a source that is no file of this machine, found without reading its rows."""

from __future__ import annotations

from pathlib import Path

from anon_pipeline.engine.lake_tables import state_of_table
from anon_pipeline.engine.object_stores import state_of
from anon_pipeline.engine.servers import changes_of_server
from anon_pipeline.spec import Source


def state_of_source(source: Source, folder: Path) -> object:
    """Plain data that changes when the source does; None for a server without `source.changed`.

    Parameters
    ----------
    folder : the folder of the spec, to which places are relative

    Raises
    ------
    InputError
        Where the source cannot be reached or refuses.
    """
    if source.database is not None:
        return changes_of_server(source, folder)
    return state_of(source.path) if source.table_format is None else state_of_table(source, folder)
