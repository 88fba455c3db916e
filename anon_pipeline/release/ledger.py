"""The ledger: a line per release, return or withdrawal, each with the hash of the line before; the whole is signed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anon_pipeline.errors import InputError, Refused, Unavailable
from anon_pipeline.home import Home, relink, remove_leftovers, sha256_of, write_file
from anon_pipeline.release import signing
from anon_pipeline.visible import on_one_line

FIRST = "0" * 64
#: An existing release is entered again, as the current one, if the source has returned to its former content.
PUBLISH, WITHDRAW, CURRENT = "publish", "withdraw", "current"
#: What a folder of a release holds: its description, its table, and the table of its classes.
MANIFEST, DATA, CLASSES = "manifest.json", "data.parquet", "classes.parquet"
#: The link to the folder of the current release, beside the releases of a dataset.
POINTER = "current"
#: A note in the private zone on the entry that a command is making, so that the next one can complete it
#: (release/unfinished.py).
UNFINISHED = "unfinished.json"


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    sequence: int
    time: str
    action: str
    dataset: str
    version: str
    manifest: str  # SHA-256 of manifest.json
    previous: str  # SHA-256 of the line before
    why: str | None = None  # the reason of a withdrawal; lines of releases have no such field

    @classmethod
    def parsed(cls, line: str) -> Entry:
        """A line as an entry; its names lead into no other folder.

        Raises
        ------
        ValueError
            For a line that is none.
        """
        try:
            entry = cls(**json.loads(line))
        except (TypeError, RecursionError):
            raise ValueError("no entry") from None
        texts = (entry.time, entry.action, entry.dataset, entry.version, entry.manifest, entry.previous)
        if type(entry.sequence) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("fields of other types")
        if not all(re.fullmatch(r"\w+", name) for name in entry.release):
            raise ValueError("no names of a dataset and a version")
        return entry

    @property
    def release(self) -> tuple[str, str]:
        return self.dataset, self.version


def read(home: Home) -> list[Entry]:
    """All lines, oldest first, without checking them.

    Raises
    ------
    InputError
        For a line that is no entry; `verify` says more.
    """
    entries = []
    for number, line in enumerate(_lines(home), start=1):
        try:
            entries.append(Entry.parsed(line))
        except ValueError:
            raise InputError(
                f"{home.ledger}: line {number} is no ledger entry; run `anon-pipeline releases verify`"
            ) from None
    return entries


def standing(home: Home, dataset: str) -> list[Entry]:
    """The releases of a dataset that were not withdrawn, oldest first."""
    entries = read(home)
    withdrawn = {entry.release for entry in entries if entry.action == WITHDRAW}
    return [
        entry
        for entry in entries
        if entry.action == PUBLISH and entry.dataset == dataset and entry.release not in withdrawn
    ]


def published(home: Home, version: str, dataset: str | None) -> Entry:
    """The line that published a version.

    Raises
    ------
    InputError
        Where there is none, or, without a dataset, more than one.
    """
    entries = [
        entry
        for entry in read(home)
        if entry.action == PUBLISH and entry.version == version and dataset in (None, entry.dataset)
    ]
    if not entries:
        if any(entry.dataset == version for entry in read(home)):
            raise InputError(
                f"{version}: is a dataset; name a version of it, as `anon-pipeline releases current {version}` prints"
            )
        folder = Path(version).name
        if folder != version and any(entry.version == folder for entry in read(home)):
            raise InputError(f"{version}: is a path, which may lead to a copy; name the version {folder}")
        raise InputError(f"{version}: there is no such release; see `anon-pipeline releases list`")
    if len(entries) > 1:
        names = ", ".join(entry.dataset for entry in entries)
        raise InputError(f"{version}: {names} have such a release; say which with --dataset")
    return entries[0]


def current(home: Home, dataset: str) -> Entry | None:
    """The line that made a release the current one of its dataset: the newest whose release was not withdrawn."""
    entries = read(home)
    withdrawn = {entry.release for entry in entries if entry.action == WITHDRAW}
    of_dataset = [entry for entry in entries if entry.dataset == dataset and entry.action != WITHDRAW]
    return next((entry for entry in reversed(of_dataset) if entry.release not in withdrawn), None)


def last_version(home: Home, dataset: str) -> str | None:
    """The current release of a dataset."""
    entry = current(home, dataset)
    return None if entry is None else entry.version


def point(home: Home, dataset: str) -> None:
    """Make the pointer of a dataset lead to its current release, atomically; the caller holds the lock "ledger"."""
    entry, pointer = current(home, dataset), home.releases / dataset / POINTER
    if entry is None:
        pointer.unlink(missing_ok=True)
    elif _led_to(pointer) != entry.version:
        relink(pointer, entry.version)


def _led_to(pointer: Path) -> str | None:
    return os.readlink(pointer) if pointer.is_symlink() else None


def withdrawal(home: Home, dataset: str, version: str) -> Entry | None:
    """The line that withdrew a release, or None."""
    return next(
        (entry for entry in read(home) if entry.action == WITHDRAW and entry.release == (dataset, version)), None
    )


def append(home: Home, action: str, dataset: str, version: str, manifest: str, why: str | None = None) -> Entry:
    """Add a line and sign the ledger, if there is a key; the caller holds the lock "ledger".

    Raises
    ------
    InputError, Refused
        As `require_unaltered`.
    """
    finish_killed(home)
    require_unaltered(home)
    lines = _lines(home)
    entry = Entry(
        sequence=len(lines) + 1,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        action=action,
        dataset=dataset,
        version=version,
        manifest=manifest,
        previous=hash_of(lines[-1]) if lines else FIRST,
        why=why,
    )
    lines.append(json.dumps({name: value for name, value in vars(entry).items() if value is not None}, sort_keys=True))
    content = "".join(f"{line}\n" for line in lines)
    key = signing.signing_key()
    # Ledger, signature and head are three files. The new head and signature are stored first, so that the next
    # command can complete a killed one, without signing anything that it has not made itself.
    seal = {"head": hash_of(lines[-1]), "signature": None if key is None else key.sign(content.encode()).hex()}
    write_file(_seal(home), json.dumps(seal))
    # The ledger is written as a whole and renamed, so that a kill never leaves half a line.
    remove_leftovers(home.releases, of=home.ledger.name)
    write_file(home.ledger, content, public=True)
    finish_killed(home)
    return entry


def finish_killed(home: Home) -> None:
    """Write signature and head for the last line, if a command was killed before it did so.

    The caller holds the lock "ledger".
    """
    if not _seal(home).exists():
        return
    seal = json.loads(_seal(home).read_text())
    if _head_of(home) == seal["head"]:  # otherwise the line was never written, and its command must be repeated
        if seal["signature"] is not None:
            write_file(signature_file(home), bytes.fromhex(seal["signature"]), public=True)
        write_file(_head(home), seal["head"])
    _seal(home).unlink()


def require_unaltered(home: Home) -> None:
    """Refuse to continue a ledger, and so to sign it, if it is not the one that was written and signed last.

    Raises
    ------
    Refused
        If it was altered.
        InputError
        If it is signed, and there is no key to sign it again.
    """
    problems = _broken_head(home)
    if signature_file(home).exists():
        key = signing.signing_key()
        if key is None:
            raise Unavailable(
                f"{home.ledger}: is signed; set {signing.KEY_VARIABLE} or {signing.FILE_VARIABLE}, so that it can be "
                "signed again with its next line"
            )
        problems += _broken_signature(home, key.public_key())
    if problems:
        raise Refused([f"{problem}; {_how_to_restore(home)}" for problem in problems])


def lacks_its_key(home: Home) -> bool:
    """Whether it is signed, and there is no key to sign it again, so that no line can be added.

    Raises
    ------
    InputError
        If it is signed, and what should be the key is none.
    """
    return signature_file(home).exists() and signing.signing_key() is None


def _how_to_restore(home: Home) -> str:
    """What to restore; a private zone from an older backup knows a former line as the last one."""
    lines = _lines(home)
    with suppress(OSError):
        if _head(home).read_text() in {FIRST, *map(hash_of, lines[:-1])}:
            return (
                f"{home.private} knows a former line as the last: if it is from an older backup, restore it from one "
                f"that is as new as the ledger; if the lines since are not of this home, restore {home.releases} from "
                "a copy"
            )
    return f"restore {home.releases} from a copy"


def sign(home: Home) -> int:
    """Sign the ledger as it is, with a first or a new key; the caller holds the lock "ledger". Returns its lines.

    Raises
    ------
    InputError
        Without a key, or without a ledger.
    Refused
        If the ledger or releases were altered.
    """
    key = signing.signing_key()
    if key is None:
        raise InputError(
            f"signing key: neither {signing.KEY_VARIABLE} nor {signing.FILE_VARIABLE} is set; {signing.HOW}"
        )
    lines = _lines(home)
    if not lines:
        raise InputError(f"{home.ledger}: there is nothing to sign yet; the first release will be signed")
    if problems := verify(home):
        raise Refused(problems)
    write_file(signature_file(home), key.sign(home.ledger.read_bytes()), public=True)
    return len(lines)


def signature_file(home: Home) -> Path:
    """The detached signature of the whole ledger, 64 bytes."""
    return home.ledger.with_name(home.ledger.name + ".sig")


def _head(home: Home) -> Path:
    """The file with the hash of the newest line, in the private zone, since no later line confirms that line."""
    return home.private / "ledger.head"


def _seal(home: Home) -> Path:
    """The file with head and signature of a ledger that is being written."""
    return home.private / "ledger.seal"


def _head_of(home: Home) -> str:
    lines = _lines(home)
    return hash_of(lines[-1]) if lines else FIRST


def hash_of(line: str) -> str:
    """SHA-256 of a line of the ledger, in hexadecimal, with which the next line begins its chain."""
    return hashlib.sha256(line.encode()).hexdigest()


def verify(home: Home, public_key: Ed25519PublicKey | None = None) -> list[str]:
    """Check every line and every file that it covers again, and with a public key the signature.

    Returns
    -------
    One sentence per problem; an empty list if ledger and folders are unaltered.
    """
    problems: list[str] = [] if public_key is None else _broken_signature(home, public_key)
    previous = FIRST
    published: dict[tuple[str, str], Entry] = {}
    withdrawn: set[tuple[str, str]] = set()
    for number, line in enumerate(_lines(home), start=1):
        try:
            entry = Entry.parsed(line)
        except ValueError:
            problems.append(f"ledger line {number} is not readable")
            previous = hash_of(line)
            continue
        if entry.previous != previous:
            problems.append(f"ledger line {number} does not continue line {number - 1}: a line was altered or removed")
        if entry.sequence != number:
            problems.append(f"ledger line {number} says that it is line {entry.sequence}")
        previous = hash_of(line)
        if entry.action == PUBLISH and entry.release not in published:
            published[entry.release] = entry
        elif not _same_manifest(published.get(entry.release), entry) or entry.release in withdrawn:
            problems.append(f"ledger line {number} is neither of a new release nor of one that stands before")
        elif entry.action == WITHDRAW:
            withdrawn.add(entry.release)
        elif entry.action != CURRENT:
            problems.append(f"ledger line {number} publishes a release that stands before")
    for release, entry in published.items():
        broken = verify_release(home, entry, withdrawn=release in withdrawn)
        problems += [f"{entry.dataset}/{entry.version}: {problem}" for problem in broken]
    return [*problems, *_broken_head(home), *_broken_pointers(home), *_unknown(home, set(published))]


@contextmanager
def undisturbed(home: Home) -> Iterator[None]:
    """Block writers while the ledger is checked, in one's own home: others cannot, and an auditor's copy has none."""
    if not home.is_own or not os.access(home.private, os.W_OK):
        yield
        return
    with home.lock("ledger"):
        yield


def _same_manifest(published: Entry | None, withdrawn: Entry) -> bool:
    return published is not None and published.manifest == withdrawn.manifest


def _broken_signature(home: Home, key: Ed25519PublicKey) -> list[str]:
    """The problem if the ledger differs from the one that the owner of this key signed last."""
    try:
        content, signatures = home.ledger.read_bytes(), [signature_file(home).read_bytes()]
    except OSError:
        return ["the ledger or its signature is gone"]
    if home.keeps(_seal(home)) and (under_way := json.loads(_seal(home).read_text())["signature"]):
        signatures.append(bytes.fromhex(under_way))
    fits = any(signing.fits(key, signature, content) for signature in signatures)
    return [] if fits else ["the ledger is not what was signed with this key"]


def _broken_head(home: Home) -> list[str]:
    """The problem if the newest line differs from the one that this home wrote last; none if the home is not available.

    A command that was killed just after it wrote the ledger has left a note on its line.
    """
    try:
        expected = {_head(home).read_text()}
    except OSError:
        return []
    if home.keeps(_seal(home)):
        expected.add(json.loads(_seal(home).read_text())["head"])
    return [] if _head_of(home) in expected else ["the last ledger line is not the one that was written last"]


def _unknown(home: Home, listed: set[tuple[str, str]]) -> list[str]:
    """Files and folders among the releases that are in no line, hidden or not, and links to other places.

    A write that is running or was killed has a hidden name, too; the next command that writes removes it.
    """
    top = sorted(home.releases.glob("*"))
    datasets = {path for path in top if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")}
    paths = sorted([*top, *(path for dataset in datasets for path in dataset.glob("*"))])
    pointers = {dataset / POINTER for dataset in datasets}
    known = {home.ledger, signature_file(home), *datasets, *(pointer for pointer in pointers if pointer.is_symlink())}
    unknown = [path for path in paths if path not in known and (path.parent.name, path.name) not in listed]
    links = [path for path in paths if path.is_symlink() and path not in {*unknown, *pointers}]
    return [
        *(f"{_named(home, path)}: the ledger does not know it" for path in unknown),
        *(f"{_named(home, path)}: is a link; what is published lies here itself" for path in links),
    ]


def _named(home: Home, path: Path) -> str:
    """A path below the releases for a line of its own: whoever writes there could otherwise add lines by a name."""
    return on_one_line(str(path.relative_to(home.releases)))


def _broken_pointers(home: Home) -> list[str]:
    """Pointers to another release than the current one; the next command repairs the pointer of a killed one."""
    if home.keeps(home.private / UNFINISHED):
        return []
    pointers = [pointer for pointer in sorted(home.releases.glob(f"*/{POINTER}")) if pointer.is_symlink()]
    return [
        f"{_named(home, pointer)}: leads to {on_one_line(str(_led_to(pointer)))}, and not to the current release"
        for pointer in pointers
        if _led_to(pointer) != last_version(home, pointer.parent.name)
    ]


def verify_release(home: Home, entry: Entry, withdrawn: bool = False) -> list[str]:
    """Check the files of one release against its manifest again, and the manifest against the ledger.

    A withdrawn release has its manifest only.
    """
    folder = home.releases / entry.dataset / entry.version
    file = folder / MANIFEST
    if not file.is_file():
        return [f"{MANIFEST} is gone"]
    if sha256_of(file) != entry.manifest:
        return [f"{MANIFEST} was altered"]
    present = {path.name for path in folder.iterdir()} - {MANIFEST}
    if withdrawn:
        return [f"{on_one_line(name)} is there, although the release was withdrawn" for name in sorted(present)]
    try:
        files = {name: facts["sha256"] for name, facts in json.loads(file.read_text())["files"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{MANIFEST} does not name the release's files"]
    problems = [f"{on_one_line(name)} is a link to another place" for name in sorted(_links(folder))]
    for name, known in files.items():
        if not (folder / name).is_file():
            problems.append(f"{on_one_line(name)} is gone")
        elif sha256_of(folder / name) != known:
            problems.append(f"{on_one_line(name)} was altered")
    return [*problems, *(f"{on_one_line(name)} was added" for name in sorted(present - set(files)))]


def _links(folder: Path) -> set[str]:
    """Names of links in a folder: their targets can change although the folder does not."""
    return {path.name for path in folder.iterdir() if path.is_symlink()}


def _lines(home: Home) -> list[str]:
    if not home.ledger.exists():
        return []
    # Only a line feed ends a line, and a byte that is not text shows an alteration.
    return home.ledger.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
