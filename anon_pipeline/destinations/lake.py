"""Shared parts of Delta Lake and Iceberg tables of releases: the metadata of a state, and the handling of errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from anon_pipeline.destinations.base import Release
from anon_pipeline.engine.object_stores import STORE, asking, sentence
from anon_pipeline.errors import InputError, Unavailable

#: Keys in the metadata of a state; they name the release whose rows it has.
VERSION, MANIFEST_HASH = "anon_pipeline.version", "anon_pipeline.manifest_sha256"
#: The key in the metadata of a state without rows; it names the release that was taken back.
WITHDRAWN = "anon_pipeline.withdrawn"
#: Version and manifest hash of a release: two homes make the same version, each with a manifest of its own.
Named = tuple[str, str]
#: How libraries quote an error of the system.
OF_SYSTEM = re.compile(r"\(os error ([0-9]+)\)")
#: Exceptions of both libraries where another writer commits first.
CONFLICTS = ("CommitFailedError", "CommitFailedException", "ValidationException")
#: What a library in Rust raises where it finds itself in the wrong; it is no `Exception`.
PANIC = "PanicException"
NOT_OURS = "is a table that is no release of this dataset; name another, which need not exist"
HOLDS_OTHER = "the table holds other rows"
HOLDS_ANOTHER = "the newest state of the table is not this release"


def metadata_of(release: Release) -> dict[str, str]:
    """The metadata of a state that names the release."""
    return {VERSION: release.version, MANIFEST_HASH: release.manifest_hash}


def named_by(release: Release) -> Named:
    """The release as the metadata of a state names it."""
    return release.version, release.manifest_hash


def named_in(metadata: Mapping[str, Any]) -> Named | None:
    """The release that a state's metadata name, of empty texts where it was taken back; None where they name none."""
    if VERSION in metadata:
        return str(metadata[VERSION]), str(metadata.get(MANIFEST_HASH))
    return ("", "") if WITHDRAWN in metadata else None


@contextmanager
def working(label: str, place: str = STORE) -> Iterator[None]:
    """A block in which a library works; its messages never leave it, since they may quote a row or a credential.

    Parameters
    ----------
    place : what may not have answered

    Raises
    ------
    InputError
        If the same would fail again.
    Unavailable
        If it may pass.
    """
    with asking(label):
        try:
            yield
        except (InputError, MemoryError, FileNotFoundError, pa.ArrowException):
            raise
        except ImportError:
            raise InputError(f"{label}: a package that its catalogue or store needs is not installed") from None
        except Exception as error:
            kind, reason = type(error).__name__, _of_system(error)
            if reason is not None:
                raise Unavailable(f"{label}: cannot be written or read ({reason})") from None
            if isinstance(error, OSError):
                raise
            if kind in CONFLICTS:
                raise Unavailable(f"{label}: somebody else changed the table at the same time; deliver again") from None
            if kind.startswith("NoSuch") or isinstance(error, ValueError | KeyError | TypeError | NotImplementedError):
                raise InputError(f"{label}: the table cannot be written or read: the library reported {kind}") from None
            raise Unavailable(f"{label}: the library reported {kind}; {sentence(error, place)}") from None
        except BaseException as error:
            if type(error).__name__ != PANIC:
                raise
            raise InputError(f"{label}: the table cannot be written or read: the library reported {PANIC}") from None


def _of_system(error: Exception) -> str | None:
    """What the system says of a failure, such as that the disk is full; None where the library does not quote it."""
    quoted = OF_SYSTEM.search(str(error))
    number = int(quoted[1]) if quoted is not None else getattr(error, "errno", None)
    return None if number is None else os.strerror(number)
