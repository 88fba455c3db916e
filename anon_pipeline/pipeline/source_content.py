"""The current content of a source: a stamp that changes when it is touched, and a hash that changes with the content.

Both are made with the private key of the dataset. They are stored in Dagster's cursors and tags, which everybody who
can open the UI can read. Nobody must be able to confirm a guess at the source from them.
"""

from __future__ import annotations

import json
from pathlib import Path

from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.databases import changes_beside
from anon_pipeline.engine.elsewhere import state_of_source
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home, scratch, sha256_of
from anon_pipeline.keys import private_key
from anon_pipeline.spec import ReleaseSpec

#: Shown hexadecimal digits of a hash.
DIGITS = 32


def is_asked_in_full(spec: ReleaseSpec) -> bool:
    """Whether a change can only be found by reading all rows: on a server without `source.changed`."""
    return spec.source.database is not None and spec.source.changed is None


def policy_of(spec: ReleaseSpec, home: Home) -> str:
    """A keyed hash of everything that a release depends on, except the content of its source."""
    return _keyed(spec, home, "policy", spec.input_hash)


def stamp_of(spec: ReleaseSpec, home: Home) -> str | None:
    """A keyed hash of name, size and time of each file of the source; None if it has no files on this machine.

    Raises
    ------
    Unavailable
        Where the source is not there.
    """
    if not spec.source.is_file:
        return None
    try:
        seen = [[file.name, (stat := file.stat()).st_size, stat.st_mtime_ns] for file in _files(spec)]
    except OSError:
        raise _absent(spec) from None
    return _keyed(spec, home, "stamp", seen)


def content_of(spec: ReleaseSpec, home: Home, engine: Engine) -> str:
    """A keyed hash of the source's content: of its files, its rows, or the state that a store, table or server reports.

    Raises
    ------
    Unavailable
        Where the source is not there.
    InputError
        If it cannot be read, or must not be read for this purpose alone.
    """
    if is_asked_in_full(spec):
        return content_of_rows(spec, home, _rows(spec, home, engine))
    if not spec.source.is_file:
        return _keyed(spec, home, "answer", state_of_source(spec.source, spec.folder))
    try:
        hashes = [[_place(spec, file), sha256_of(file)] for file in _files(spec)]
    except OSError:
        raise _absent(spec) from None
    return _keyed(spec, home, "files", hashes)


def content_of_rows(spec: ReleaseSpec, home: Home, content_hash: str) -> str:
    """The keyed hash of a server's content if it is read in full, from the hash of the rows."""
    return _keyed(spec, home, "rows", content_hash)


def _rows(spec: ReleaseSpec, home: Home, engine: Engine) -> str:
    if spec.is_synthetic:
        raise InputError(
            f"{spec.source.path}: nobody is read to find out about a change of a synthetic release's source; "
            "state source.changed"
        )
    with scratch(home.private_folder("scratch")) as folder:
        return engine.store_source(spec, folder / "people.parquet").content_hash


def _files(spec: ReleaseSpec) -> list[Path]:
    source = spec.source_path
    if source.is_dir():
        return sorted(source.rglob("*.parquet"))
    return [source, *changes_beside(source)]


def _place(spec: ReleaseSpec, file: Path) -> str | None:
    """The path of a file's folder in the source if it gives a column; otherwise None, as names do not matter."""
    return str(file.parent.relative_to(spec.source_path)) if spec.source.partitions else None


def _absent(spec: ReleaseSpec) -> Unavailable:
    return Unavailable(f"{spec.source.path} is not there")


def _keyed(spec: ReleaseSpec, home: Home, what: str, content: object) -> str:
    return private_key(spec, home).derived(f"source seen: {what}", json.dumps(content)).hex()[:DIGITS]
