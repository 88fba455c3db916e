"""Places of tables: as a person names them on a command line, and as a spec in another folder names them."""

from __future__ import annotations

import os
from pathlib import Path

from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source
from anon_pipeline.spec.locations import ICEBERG_METADATA, is_address

#: How the address of a server begins, except for PostgreSQL, which also has a form without such a beginning.
SERVERS = {"mysql://": "mysql", "mariadb://": "mysql"}
#: One of these is in every address of a SQL Server.
SQL_SERVER = ("server=", "addr=", "address=")


def keys_of_place(place: str) -> dict[str, str]:
    """The key of `source` for the place of a table.

    A place is a file, a folder or an address; `delta:PLACE` and `iceberg:PLACE` are tables of these formats. A folder
    of either format on this machine is recognized.

    Raises
    ------
    InputError
        For a folder of an Iceberg table, which has many states.
    """
    for table in ("delta", "iceberg"):
        if place.startswith(f"{table}:"):
            return {table: place.removeprefix(f"{table}:")}
    if place.endswith(ICEBERG_METADATA):
        return {"iceberg": place}
    if is_address(place):
        return {"path": place}
    if (Path(place) / "_delta_log").is_dir():
        return {"delta": place}
    if states := sorted((Path(place) / "metadata").glob(f"*{ICEBERG_METADATA}")):
        raise InputError(f"{place}: is an Iceberg table; name the state to read, such as {states[-1]}")
    return {"path": place}


def kind_of_server(variable: str) -> str:
    """The kind of server whose address is in an environment variable."""
    address = os.environ.get(variable, "").strip().lower()
    for beginning, kind in SERVERS.items():
        if address.startswith(beginning):
            return kind
    return "sqlserver" if any(part.lstrip().startswith(SQL_SERVER) for part in address.split(";")) else "postgresql"


def seen_from(folder: Path, source: Source) -> Source:
    """A source that was named from here, as a spec in `folder` names it."""
    place = source.location
    if place is None or is_address(place):
        return source
    key = source.table_format or "path"
    stated = source.model_dump(exclude_unset=True) | {
        key: Path(os.path.relpath(Path(place).resolve(), folder.resolve())).as_posix()
    }
    if key != "path":
        del stated["path"]  # implied by the other key
    return Source.model_validate(stated)
