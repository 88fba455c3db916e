"""Paths that people name, as DuckDB reads them: each means exactly the file that bears that name.

DuckDB takes `*`, `?` and `[` in a path for a pattern, `~` for a home and `s3:` for a place elsewhere. So it is given
absolute paths only, and a file whose name could be a pattern as the descriptor under which it is open here. Folders
named `age=40` are columns to it unless `PLAIN` is said; a path says nothing about the people in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anon_pipeline.engine.sql import literal

#: For every reader of files: the names of folders are no columns.
PLAIN = "hive_partitioning=false"

#: What a file is packed with, by the end of its name; the descriptor of a file has no such name.
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
