"""The permissions of a spec: the code that it may run, and the files and addresses that it may name.

A spec may come from somebody else, so the person who runs it gives these permissions, not the spec.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, data_folder
from anon_pipeline.spec.destination import Destination
from anon_pipeline.spec.locations import is_address, parts_of

#: Set to 1, it allows specs to import the code that they name; `--allow-code` does so for one command.
ALLOW_CODE = "ANON_PIPELINE_ALLOW_CODE"
#: Folders, separated as in PATH. If set, a spec may name files in its own folder, the data folder and these only.
ALLOW_FILES = "ANON_PIPELINE_ALLOW_FILES"
#: Beginnings of addresses, separated by blanks. If this or `ALLOW_FILES` is set, a spec may name objects below these
#: only.
ALLOW_OBJECTS = "ANON_PIPELINE_ALLOW_OBJECTS"


def allow_code() -> None:
    """Let specs import code, in this process and those that it starts."""
    os.environ[ALLOW_CODE] = "1"


def require_code(field: str, name: str) -> None:
    """
    Raises
    ------
    InputError
        If the person who runs a spec has not allowed it to import code.
    """
    if os.environ.get(ALLOW_CODE) != "1":
        raise InputError(
            f"{field}: {name} is code, and a spec runs code only where you allow it; if you trust the spec and the "
            f"code, add --allow-code, or set {ALLOW_CODE}=1 for a service"
        )


def refuse_private(path: Path, named: str) -> None:
    """
    Raises
    ------
    InputError
        For a path in the private zone, which holds people of other datasets, or a path that contains the zone.
    """
    path, private = path.resolve(), Home.default().private.resolve()
    if path.is_relative_to(private) or private.is_relative_to(path):
        raise InputError(f"{named}: leads into the private zone, and no spec may name what lies there")


def check_address(address: str, field: str = "source") -> None:
    """
    Raises
    ------
    InputError
        For an address that a spec may not name: see `parts_of` and `ALLOW_OBJECTS`.
    """
    try:
        parts_of(address)
    except ValueError as error:
        raise InputError(f"{field}: {error}") from None
    beginnings = _beginnings()
    if beginnings is None or any(
        address == beginning or address.startswith(beginning.rstrip("/") + "/") for beginning in beginnings
    ):
        return
    raise InputError(f"{address}: begins with no address that specs may name; put it into {ALLOW_OBJECTS}")


def _beginnings() -> list[str] | None:
    """The allowed beginnings of all addresses; None if not restricted."""
    stated = os.environ.get(ALLOW_OBJECTS)
    return None if stated is None and os.environ.get(ALLOW_FILES) is None else (stated or "").split()


def _check_service(label: str) -> None:
    beginnings = _beginnings()
    if beginnings is None or any(
        label == beginning or label.startswith((f"{beginning}/", f"{beginning}.")) for beginning in beginnings
    ):
        return
    raise InputError(f"publish: {label}: is no place that specs may write to; put it into {ALLOW_OBJECTS}")


def check_destinations(folder: Path, destinations: Sequence[Destination]) -> None:
    """Refuse places that a spec in `folder` may not write to.

    A folder must be in that of the spec, in the data folder or in those of `ALLOW_FILES`, and never in the home. A
    server or a catalogue must fit `ALLOW_OBJECTS` like an address: `postgresql:NAME/schema`,
    `iceberg:catalogue.namespace`.

    Raises
    ------
    InputError
        If there is such a place, which the message names.
    """
    for destination in destinations:
        place = destination.objects or destination.delta
        if place is None:
            _check_service(destination.located(folder).label)
            continue
        if is_address(place):
            check_address(place, "publish")
            continue
        path, home = (folder / place).resolve(), Home.default().root.resolve()
        if path.is_relative_to(home) or home.is_relative_to(path):
            raise InputError(f"publish: {place}: leads into the home, which holds the releases themselves")
        stated = os.environ.get(ALLOW_FILES, "")
        allowed = [folder, data_folder(), *(Path(root) for root in stated.split(os.pathsep) if root)]
        if not any(path.is_relative_to(root.resolve()) for root in allowed):
            raise InputError(
                f"publish: {place}: lies neither with the spec nor in the folder of the datasets; name its folder in "
                f"{ALLOW_FILES} to let specs write there"
            )


def check_files(folder: Path, tables: Sequence[str], lists: Sequence[str], keys: Sequence[str]) -> None:
    """Refuse files that a spec in `folder` may not name.

    Parameters
    ----------
    tables : the source and a population, which may be in any folder, since naming them is intended
    lists : hierarchies, whose words are published; must be in the folder of the spec or in an allowed folder
    keys : files of keys, which are not published; may be in any folder

    Raises
    ------
    InputError
        If there is such a file, which the message names.
    """
    for address in filter(is_address, tables):
        check_address(address)
    tables = [name for name in tables if not is_address(name)]
    for name in (*tables, *lists, *keys):
        refuse_private(folder / name, name)
    stated = os.environ.get(ALLOW_FILES)
    allowed = [folder, data_folder(), *(Path(root) for root in (stated or "").split(os.pathsep) if root)]
    for name in lists if stated is None else (*tables, *lists):
        if not any((folder / name).resolve().is_relative_to(root.resolve()) for root in allowed):
            raise InputError(
                f"{name}: lies neither with the spec nor in the folder of the datasets; move it there, or name its "
                f"folder in {ALLOW_FILES}"
            )
