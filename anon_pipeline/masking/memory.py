"""The check, before it is read, that a table fits into memory where steps need all of it at once."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from anon_pipeline.errors import InputError

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
    """The bytes that a limit such as "4GB" or "50%" allows; without one, those of the machine or of its container."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        machine = min(machine, int(CONTAINER.read_text()))
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?)B?|(%))\s*", limit or "100%", re.IGNORECASE)
    if match is None:
        raise InputError(f"memory: {limit} is no amount of memory; write it as 4GB")
    if match[4]:
        return int(float(match[1]) / 100 * machine)
    return int(float(match[1]) * (1024 if match[3] else 1000) ** ("KMGT".index(match[2].upper()) + 1))
