"""The check, before it is read, that a table fits into memory where steps need all of it at once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from anon_pipeline.errors import InputError
from anon_pipeline.workers import bytes_of, bytes_of_machine

#: The fewest bytes that a value takes while steps work on it. Measured with a million people of eight columns, half of
#: them texts: 38 bytes for aggregation, 39 for sampling, 51 for rank swapping.
BYTES_PER_VALUE = 38

#: The file in which Linux states the memory that a container may use; "max" where there is no limit.
CONTAINER = Path("/sys/fs/cgroup/memory.max")


def require_memory(rows: int, columns: int, usable: int) -> None:
    """Refuse a table that does not fit into memory, since the process would be killed.

    Parameters
    ----------
    rows : people, not stored rows
    usable : bytes, as `usable_memory` returns them

    Raises
    ------
    InputError
        With the least memory that it would take, and what to do.
    """
    needed = rows * columns * BYTES_PER_VALUE
    if needed > usable:
        raise InputError(
            f"steps: some need the whole table in memory, and {rows:,} people with {columns} columns take at least "
            f"{needed / 1e9:,.1f} GB where {usable / 1e9:,.1f} GB may be used; raise engine.memory_limit or --memory, "
            "exclude columns, or use steps that go row by row"
        )


def usable_memory(limit: str | None) -> int:
    """The bytes that a limit such as "4GB" or "50%" allows; without one, those of the machine or of its container.

    Raises
    ------
    InputError
        For a limit that is no amount of memory.
    """
    machine = bytes_of_machine()
    with suppress(OSError, ValueError):
        machine = min(machine, int(CONTAINER.read_text()))
    return bytes_of(limit or "100%", machine)
