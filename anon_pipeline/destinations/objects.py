"""A prefix of an object store: the files of a release below its version, the manifest last, then the pointer.

A reader of the pointer finds a release whose manifest names every file. Once a pointer led to a release, none of its
objects is changed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from anon_pipeline.destinations.base import Release
from anon_pipeline.engine.object_stores import CHUNK_BYTES, asking, filesystem_of, path_of
from anon_pipeline.errors import InputError
from anon_pipeline.release.ledger import MANIFEST, POINTER

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class ObjectPrefix:
    """`objects: s3://bucket/prefix`, or an address of another store."""

    keeps_former = True

    def __init__(self, address: str) -> None:
        self._address = address

    def holds(self, release: Release) -> bool:
        with asking(self._address):
            store = filesystem_of(self._address)
            sizes = self._sizes(store, release)
            expected = {name: facts["bytes"] for name, facts in release.files.items()}
            return (
                _read(store, self._pointer(release)) == _pointed(release)
                and self._manifest_hash(store, release) == release.manifest_hash
                and {name: size for name, size in sizes.items() if name != MANIFEST} == expected
            )

    def put(self, release: Release) -> None:
        with asking(self._address):
            store = filesystem_of(self._address)
            there = self._manifest_hash(store, release)
            if there not in (None, release.manifest_hash):
                raise InputError(
                    f"{self._address}: has a release {release.version} that another home has put there; name another "
                    "prefix"
                )
            for name in release.files:
                if there is None or _hash_of(store, self._object(release, name)) != release.files[name]["sha256"]:
                    _copy(store, release.folder / name, self._object(release, name))
            _copy(store, release.folder / MANIFEST, self._object(release, MANIFEST))
            if release.current:
                _write(store, self._pointer(release), _pointed(release))

    def problems(self, release: Release, scratch: Path) -> list[str]:
        del scratch
        with asking(self._address):
            store = filesystem_of(self._address)
            hashes = {name: str(facts["sha256"]) for name, facts in release.files.items()}
            hashes[MANIFEST] = release.manifest_hash
            found = []
            for name, expected in hashes.items():
                there = _hash_of(store, self._object(release, name))
                if there != expected:
                    found.append(f"{name} is gone" if there is None else f"{name} was altered")
            added = sorted(set(self._sizes(store, release)) - set(hashes))
            found += [f"{len(added)} objects were added"] if added else []
            if release.current and _read(store, self._pointer(release)) != _pointed(release):
                found.append(f"{POINTER} does not lead to it")
            return found

    def take_back(self, release: Release) -> str:
        with asking(self._address):
            store = filesystem_of(self._address)
            if self._is_of_another_home(store, release):
                return "the release of this version there is another home's, and stays"
            if self._leads_there(store, release):
                store.delete_file(self._pointer(release))
            # The manifest is removed first: without it the other objects are no release.
            left = sorted(self._sizes(store, release), key=lambda name: name != MANIFEST)
            for name in left:
                store.delete_file(self._object(release, name))
        return "a bucket that keeps versions of its objects keeps those of the release, until they are removed there"

    def remains(self, release: Release) -> bool:
        with asking(self._address):
            store = filesystem_of(self._address)
            if self._is_of_another_home(store, release):
                return False
            return bool(self._sizes(store, release)) or self._leads_there(store, release)

    def _is_of_another_home(self, store: FileSystem, release: Release) -> bool:
        """Whether a whole release of the same dataset and version is there that this home has not put there.

        Two homes make the same version of the same table by the same spec, and each has a manifest of its own. A
        manifest that is none, or that names other files than there are, is ours and was altered.
        """
        content = _read(store, self._object(release, MANIFEST))
        if content is None or hashlib.sha256(content).hexdigest() == release.manifest_hash:
            return False
        try:
            manifest = json.loads(content)
            named = {str(name): str(facts["sha256"]) for name, facts in manifest["files"].items()}
            is_same = (manifest["dataset"], manifest["version"]) == (release.dataset, release.version)
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        return is_same and all(_hash_of(store, self._object(release, name)) == hash_ for name, hash_ in named.items())

    def _object(self, release: Release, name: str) -> str:
        return f"{path_of(self._address)}/{release.dataset}/{release.version}/{name}"

    def _pointer(self, release: Release) -> str:
        return f"{path_of(self._address)}/{release.dataset}/{POINTER}"

    def _leads_there(self, store: FileSystem, release: Release) -> bool:
        """Whether a reader of the pointer is led to a release, with whatever end of a line somebody has written it."""
        return (_read(store, self._pointer(release)) or b"").strip() == _pointed(release).strip()

    def _manifest_hash(self, store: FileSystem, release: Release) -> str | None:
        return _hash_of(store, self._object(release, MANIFEST))

    def _sizes(self, store: FileSystem, release: Release) -> dict[str, int]:
        """The sizes in bytes of all objects below a version, by name."""
        from pyarrow import fs

        root = self._object(release, "").rstrip("/")
        below = store.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        return {info.path.removeprefix(f"{root}/"): info.size for info in below if info.type == fs.FileType.File}


def _pointed(release: Release) -> bytes:
    """The content of the pointer: the version, and a line feed."""
    return f"{release.version}\n".encode()


def _copy(store: FileSystem, file: Path, to: str) -> None:
    with file.open("rb") as content, store.open_output_stream(to, compression=None) as stream:
        while chunk := content.read(CHUNK_BYTES):
            stream.write(chunk)


def _write(store: FileSystem, to: str, content: bytes) -> None:
    with store.open_output_stream(to, compression=None) as stream:
        stream.write(content)


def _read(store: FileSystem, path: str) -> bytes | None:
    """The content of an object of at most `CHUNK_BYTES`, such as a pointer or a manifest; None where there is none."""
    try:
        with store.open_input_stream(path, compression=None) as stream:
            content: bytes = stream.read(CHUNK_BYTES)
            return content
    except FileNotFoundError:
        return None


def _hash_of(store: FileSystem, path: str) -> str | None:
    """SHA-256 of an object in hexadecimal; None where there is none."""
    digest = hashlib.sha256()
    try:
        with store.open_input_stream(path, compression=None) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()
