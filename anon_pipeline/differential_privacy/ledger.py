"""The budget's ledger as a file: lines that are only ever added, each with the hash of the one before, and signed.

A line is on the disk before anything is done because of it. Three things can then be wrong with the file. The last
line may be torn, because a process was killed or the disk was full while it was written: nothing was done because of
it, and it is dropped. Lines may be missing or altered: the chain, the head that is kept beside it and the signatures
show that. And the ledger may be a copy of another, or an older one that was put back: its folder is then not the one
that its last line names, or its file was changed since that line was written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import write_file
from anon_pipeline.release import signing

FIRST = "0" * 64
OPEN, ACCEPT, RESERVE, ANSWER = "open", "accept", "reserve", "answer"
#: A further key under which an answer is found that was given before; former versions of the program pass over it.
ALIAS = "alias"
FILE, HEAD = "ledger.jsonl", "head"
#: A file with the newest line and when the system says that the ledger was changed last. Whoever restores an older
#: ledger into its own folder can restore everything but this time.
WITNESS = "written"
#: In place of this time while a line is being written, so that a process may be killed, or the disk be full, meanwhile.
UNDER_WAY = "-"


@dataclass(frozen=True)
class Line:
    """One line of the ledger; its further entries depend on the action."""

    sequence: int
    time: str  # for people only; nothing depends on it, since a clock can be set back
    action: str
    previous: str  # SHA-256 of the line before
    entries: dict[str, Any]
    hash: str
    signature: str | None

    @classmethod
    def parse(cls, text: bytes) -> Line:
        """
        Raises
        ------
        ValueError
            For a text that is not a line of a ledger.
        """
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("is no line")
        try:
            fixed = {name: content.pop(name) for name in ("sequence", "time", "action", "previous")}
        except KeyError:
            raise ValueError("is no line") from None
        signature = content.pop("signature", None)
        return cls(**fixed, entries=content, hash=hashlib.sha256(text).hexdigest(), signature=signature)


def place_of(folder: Path) -> str:
    """The place of a ledger: numbers that a file system gives to its folders, and that a copy does not keep."""
    return str(folder.stat().st_ino)


def read(folder: Path, file: str = FILE) -> list[Line]:
    """All complete lines, oldest first; a torn last line is left out.

    Raises
    ------
    Refused
        For a line that cannot be read as one.
    """
    lines = []
    for number, text in enumerate(_whole_lines(folder / file), start=1):
        try:
            lines.append(Line.parse(text))
        except (ValueError, TypeError):
            raise Refused([f"{folder / file}: line {number} is no entry of a budget; restore it from a copy"]) from None
    return lines


def append(folder: Path, action: str, entries: dict[str, Any], after: list[Line]) -> Line:
    """Add a line after those that were read, and return once it is on the disk; the caller holds the lock.

    Raises
    ------
    InputError
        Where the ledger is signed and there is no key, or the disk is full; then nothing was added.
    """
    key = signing.signing_key()
    if key is None and any(line.signature for line in after):
        raise InputError(
            f"{folder / FILE}: is signed; set {signing.KEY_VARIABLE} or {signing.FILE_VARIABLE}, so that its next line "
            "can be signed too"
        )
    content = {
        "sequence": len(after) + 1,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "action": action,
        "previous": after[-1].hash if after else FIRST,
        **entries,
    }
    if key is not None:
        # The line before is part of what is signed, so each signature vouches for all lines above it.
        content["signature"] = key.sign(_signed_part(content)).hex()
    text = json.dumps(content, sort_keys=True).encode()
    whole = sum(len(line) + 1 for line in _whole_lines(folder / FILE))
    try:
        if after and _head(folder) != after[-1].hash:  # a process was killed between a line and its head
            write_file(folder / HEAD, after[-1].hash)
        write_file(folder / WITNESS, f"{content['previous']} {UNDER_WAY}")
        _write_at(folder / FILE, whole, text + b"\n")
        write_file(folder / HEAD, hashlib.sha256(text).hexdigest())
        write_file(folder / WITNESS, f"{hashlib.sha256(text).hexdigest()} {_changed(folder)}")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); nothing was answered") from error
    return Line.parse(text)


def problems(folder: Path, lines: list[Line], public_key: Ed25519PublicKey | None = None) -> list[str]:
    """The problems of chain, signatures, head and place, a sentence for each."""
    return [*altered(folder, lines, public_key), *_moved(folder, lines)]


def altered(folder: Path, lines: list[Line], public_key: Ed25519PublicKey | None = None) -> list[str]:
    """The problems of chain, signatures and head, a sentence for each; one that was moved has none of these."""
    found = []
    previous = FIRST
    for number, line in enumerate(lines, start=1):
        if line.previous != previous:
            found.append(f"budget line {number} does not continue line {number - 1}: a line was altered or removed")
        if line.sequence != number:
            found.append(f"budget line {number} says that it is line {line.sequence}")
        if public_key is not None and line.signature is not None and not _signature_fits(public_key, line):
            found.append(f"budget line {number} is not what was signed with this key")
        previous = line.hash
    if public_key is not None and lines and lines[-1].signature is None:  # a signature vouches for all lines above it
        found.append("the last budget line is not signed")
    return [*found, *_broken_head(folder, lines)]


def _broken_head(folder: Path, lines: list[Line]) -> list[str]:
    """A sentence where lines were cut off the end; a process may have been killed between a line and its head."""
    known = {lines[-1].hash, lines[-1].previous} if lines else {FIRST}
    return (
        []
        if _head(folder) in known
        else ["the last budget line is not the one that was written last: lines are missing"]
    )


def _head(folder: Path) -> str:
    try:
        return (folder / HEAD).read_text()
    except FileNotFoundError:
        return FIRST


def _moved(folder: Path, lines: list[Line]) -> list[str]:
    places = [line.entries["place"] for line in lines if "place" in line.entries]
    if not places:
        return []
    if places[-1] != place_of(folder):
        return ["this budget is a copy, or was restored: it lies in another place than where its last line was written"]
    return _restored(folder, lines[-1])


def _restored(folder: Path, last: Line) -> list[str]:
    """A sentence where an older ledger was put back into its folder, which has kept its place."""
    try:
        note = (folder / WITNESS).read_text()
    except FileNotFoundError:  # a former version of the program wrote the last line
        return []
    newest, _, changed = note.strip().partition(" ")
    if changed == UNDER_WAY and newest in (last.hash, last.previous):
        return []
    if (newest, changed) == (last.hash, _changed(folder)):
        return []
    return ["this budget was restored: its ledger was changed by something else since its last line was written"]


def _changed(folder: Path) -> str:
    """When the system says that the ledger was changed last, in whole seconds: file systems keep no more for certain.

    No program can set this time, and a clock that was set back only makes it another one.
    """
    return str(int((folder / FILE).stat().st_ctime))


def _signed_part(content: dict[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in content.items() if name != "signature"}, sort_keys=True).encode()


def _signature_fits(key: Ed25519PublicKey, line: Line) -> bool:
    if line.signature is None:
        return False
    names = ("sequence", "time", "action", "previous")
    content = {**{name: getattr(line, name) for name in names}, **line.entries}
    try:
        return signing.fits(key, bytes.fromhex(line.signature), _signed_part(content))
    except ValueError:
        return False


def _whole_lines(file: Path) -> list[bytes]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    return content.split(b"\n")[:-1]  # the text after the last line feed was never finished


def _write_at(file: Path, offset: int, text: bytes, sync: Callable[[int], None] = os.fsync) -> None:
    """Write a line after the complete ones, and remove it again where it cannot be written in full."""
    made = not file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, offset)
        try:
            written = 0
            while written < len(text):
                written += os.pwrite(descriptor, text[written:], offset + written)
            sync(descriptor)
        except OSError:
            os.ftruncate(descriptor, offset)
            raise
    finally:
        os.close(descriptor)
    if made:
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            sync(folder)
        finally:
            os.close(folder)
