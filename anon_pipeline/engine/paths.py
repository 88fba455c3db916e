"""Paths in SQL for DuckDB, so that each path means exactly the file of that name.

DuckDB reads `*`, `?` and `[` in a path as a pattern, `~` as a home folder and `s3:` as an address. So it gets absolute
paths only. A file whose name could be a pattern is opened here, and DuckDB gets its descriptor. Without `PLAIN`, DuckDB
would read folders named `age=40` as columns; but a path says nothing about the people in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anon_pipeline.engine.sql import literal

#: An option for every reader of files: names of folders are not columns.
PLAIN = "hive_partitioning=false"

#: The packing of a file, by the end of its name; the descriptor of a file does not show it.
PACKED = {".gz": "gzip", ".zst": "zstd"}


@contextmanager
def exactly(*paths: Path) -> Iterator[list[str]]:
    """The SQL literals under which DuckDB reads these files, and no others, while the block lasts.

    Raises
    ------
    OSError
        Where a file cannot be opened.
    """
    with ExitStack() as kept:
        yield [literal(_name(path, kept)) for path in paths]


def packing(path: Path) -> str:
    """How DuckDB is to unpack a CSV, as an option of its reader."""
    return f"compression={literal(PACKED.get(path.suffix.lower(), 'none'))}"


def _name(path: Path, kept: ExitStack) -> str:
    name = str(path.absolute())
    if not re.search(r"[*?\[]", name) and name.isprintable():
        return name
    return f"/dev/fd/{kept.enter_context(path.open('rb')).fileno()}"
