"""The release history: the people of each class of each release, kept in private to judge the next release by.

A person is identified by a keyed hash of their identifier; the key never leaves the private zone of this home. There is
one file per release, beside the tree that it was made with. A person who is forgotten is replaced by a random number,
so that their class keeps its count and nobody can find out who it was.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.content import row_hashes
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, remove_leftovers, write_file
from anon_pipeline.release import ledger
from anon_pipeline.release.manifest import code_hash, packages
from anon_pipeline.sequential.guarantees import ABSENT, classes_of_histories, histories
from anon_pipeline.sequential.republication import Routing
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.policy import hashes_of_lists

PERSON, CLASS = "person", "class"
MEMBERS, ROUTING, MADE_FROM = "members.parquet", "routing.json", "made_from"
#: The note of people who are being forgotten, with the number that replaces each; there from before the first file is
#: changed until after the last one.
STRANGER, UNDER_WAY = "stranger", "forgetting.parquet"


@dataclass(frozen=True, eq=False)
class Membership:
    """The people of one release.

    Attributes
    ----------
    version : the release
    person : keyed hashes, ascending, shape (n,)
    class_ : the class of each, shape (n,)
    """

    version: str
    person: IntArray
    class_: IntArray

    def classes_of(self, people: IntArray) -> IntArray:
        """The class of each of some people, `ABSENT` for those who are not in this release, same shape."""
        if not len(self.person):
            return np.full(len(people), ABSENT, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.person, people), len(self.person) - 1)
        return np.where(self.person[at] == people, self.class_[at], ABSENT)


@dataclass(frozen=True, eq=False)
class Window:
    """The former releases with which a new release is compared, oldest first.

    Attributes
    ----------
    members : the people of each release whose people are known
    unknown : versions of releases of the window that were made before their people were recorded
    """

    members: tuple[Membership, ...]
    unknown: tuple[str, ...]

    def histories(self, people: IntArray) -> tuple[IntArray, IntArray]:
        """The cohorts of some people, and the number of people of each cohort who are not among them.

        Parameters
        ----------
        people : keyed hashes, shape (n,)

        Returns
        -------
        The cohort of each, 0 for newcomers, shape (n,), and the people gone from each cohort, shape (cohorts,).
        """
        seen = [member.person for member in self.members]
        departed = np.setdiff1d(np.unique(np.concatenate(seen)), people) if seen else np.empty(0, dtype=np.int64)
        everybody = np.r_[people, departed]
        history = histories([member.classes_of(everybody) for member in self.members], len(everybody))
        return history[: len(people)], np.bincount(history[len(people) :], minlength=int(history.max(initial=0)) + 1)

    def newest_classes(self) -> IntArray:
        """The class of each cohort in the newest release, `ABSENT` for none, by the cohort's number, (cohorts,)."""
        if not self.members:
            return np.full(1, ABSENT)
        people = np.unique(np.concatenate([member.person for member in self.members]))
        return classes_of_histories(self.histories(people)[0], self.members[-1].classes_of(people))


def key(home: Home, dataset: str) -> bytes:
    """The key with which identifiers are hashed; made where there is none, and no release whose people have its hashes.

    Raises
    ------
    InputError
        Where the key is gone: under another one everybody would be a newcomer, whom no former release shows.
    """
    folder = _folder(home, dataset)
    place = folder / "key"
    if not place.exists():
        if any(_members(folder)):
            raise InputError(
                f"{place}: is gone, without which nobody in former releases of {dataset} is known again; restore it "
                "from a copy"
            )
        write_file(place, secrets.token_bytes(32))
    return place.read_bytes()


def hashed(identifiers: pa.Array, key_: bytes) -> IntArray:
    """63 bits of HMAC-SHA256 per identifier, the same on every engine, shape (n,)."""
    lanes = row_hashes([identifiers], [PERSON])
    texts = np.ascontiguousarray(lanes.T).view("S16").ravel()  # sixteen bytes per value
    parts = (hmac.digest(key_, text.ljust(16, b"\0"), hashlib.sha256)[:8] for text in texts.tolist())
    return (np.frombuffer(b"".join(parts), dtype=">u8") >> np.uint64(1)).astype(np.int64)


def write(batches: Iterable[pa.RecordBatch], key_: bytes, destination: Path) -> None:
    """Write the people and classes of a candidate; `batches` hold an identifier and a class per row.

    Raises
    ------
    InputError
        Where an identifier is missing or occurs twice.
    """
    people, classes = [], []
    for batch in batches:
        identifiers = batch.column(0)
        if identifiers.null_count:
            raise InputError("person: somebody has no identifier, so nobody could follow them from release to release")
        people.append(hashed(identifiers, key_))
        classes.append(batch.column(1).to_numpy().astype(np.int64))
    person = np.concatenate(people) if people else np.empty(0, dtype=np.int64)
    class_ = np.concatenate(classes) if classes else np.empty(0, dtype=np.int64)
    order = np.argsort(person, kind="stable")
    if len(person) > 1 and (np.diff(person[order]) == 0).any():
        raise InputError("person: an identifier stands twice; keep one row a person")
    pq.write_table(pa.table({PERSON: person[order], CLASS: class_[order]}), destination)


def read(file: Path, version: str = "") -> Membership:
    """Read the people that `write` wrote."""
    table = pq.read_table(file)
    return Membership(version, table.column(PERSON).to_numpy(), table.column(CLASS).to_numpy())


def origin(home: Home, spec: ReleaseSpec, content_hash: str) -> str:
    """A keyed hash of policy, lists, people and code, by which a release is known that would be made again as it was.

    Another version of the code, or of a package, may group the same people otherwise: that is another release, which
    has to hold beside the one that was made before.

    Parameters
    ----------
    content_hash : that of the people who may be released (`followed_content`)
    """
    lists = [f"{place} {hash_}" for place, hash_ in sorted(hashes_of_lists(spec).items())]
    software = [code_hash(), json.dumps(packages(), sort_keys=True)]
    content = " ".join([*software, spec.policy_hash, content_hash, *lists]).encode()
    return hmac.digest(key(home, spec.dataset), content, hashlib.sha256).hex()


def remember(home: Home, dataset: str, version: str, members: Path, routing: Path, made_from: str) -> None:
    """Store the people and the tree of a release; called before it is published, so that none is published without."""
    folder = _folder(home, dataset) / version
    folder.mkdir(mode=0o700, exist_ok=True)
    write_file(folder / MADE_FROM, made_from)
    for source, name in ((members, MEMBERS), (routing, ROUTING)):
        write_file(folder / name, source.read_bytes())


def window(home: Home, spec: ReleaseSpec, made_from: str | None = None) -> Window:
    """The newest releases of a dataset that the demand `across_releases` covers, without the one to be made.

    A withdrawn release counts, since its readers still have it, and one that returned as the current one counts from
    its return. The current one counts however long ago it was made: where all after it were withdrawn, whoever has it
    gets the next one beside it. The newest one is the one to be made if it stands and was made from the same people
    under the same policy (`made_from`): beside itself it could become another release. If it returned, its return does
    not count then.

    Raises
    ------
    InputError
        Where the recorded people of a release are missing, or do not agree with its manifest.
    """
    asked = spec.across_releases
    assert asked is not None  # noqa: S101 (called only with this demand)
    lines = [
        entry
        for entry in ledger.read(home)
        if entry.dataset == spec.dataset and entry.action in (ledger.PUBLISH, ledger.CURRENT)
    ]
    published = [entry.version for entry in lines if entry.action == ledger.PUBLISH]
    if made_from is not None and published and _was_made_from(home, spec.dataset, published[-1]) == made_from:
        lines = [entry for entry in lines if (entry.action, entry.version) != (ledger.PUBLISH, published[-1])]
    if made_from is not None and lines and _was_made_from(home, spec.dataset, lines[-1].version) == made_from:
        lines.pop()
    newest_first = list(dict.fromkeys(entry.version for entry in reversed(lines)))[: asked.window - 1]
    current = ledger.last_version(home, spec.dataset)
    if current is not None and (made_from is None or _was_made_from(home, spec.dataset, current) != made_from):
        newest_first.append(current)  # those after it were withdrawn: the next one follows both them and it
    members, unknown = [], []
    for version in (version for version in published if version in newest_first):
        manifest = home.releases / spec.dataset / version / "manifest.json"
        try:
            content = json.loads(manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InputError(
                f"{spec.dataset}/{version}: its manifest cannot be read; run `anon-pipeline releases verify`"
            ) from None
        if not content.get("across_releases"):
            unknown.append(version)
            continue
        file = _folder(home, spec.dataset) / version / MEMBERS
        try:
            membership = read(file, version)
        except (OSError, pa.ArrowInvalid):
            raise InputError(
                f"{spec.dataset}/{version}: who is in this release is no longer known in this home, so no release can "
                "be held against it; restore private/memberships from a copy"
            ) from None
        if len(membership.person) != content["rows"]["released"]:
            raise InputError(f"{spec.dataset}/{version}: the people kept of this release are not those it released")
        members.append(membership)
    return Window(tuple(members), tuple(unknown))


def may_be_made_again(home: Home, dataset: str) -> dict[str, str]:
    """What the releases were made from that `window` leaves out if they are made again, by version: the newest first.

    These are the newest one and the current one, where they stand and it is known.
    """
    published = [
        entry.version for entry in ledger.read(home) if entry.dataset == dataset and entry.action == ledger.PUBLISH
    ]
    asked = dict.fromkeys([*published[-1:], ledger.last_version(home, dataset)])
    origins = {version: _was_made_from(home, dataset, version) for version in asked if version is not None}
    return {version: made_from for version, made_from in origins.items() if made_from}


def _was_made_from(home: Home, dataset: str, version: str) -> str | None:
    """What a release that stands was made from; None for others, and for one from before this was kept."""
    file = _folder(home, dataset) / version / MADE_FROM
    stands = version in {entry.version for entry in ledger.standing(home, dataset)}
    return file.read_text(encoding="ascii") if stands and file.exists() else None


def members(home: Home, dataset: str, version: str) -> Path:
    """Where the people of a release are kept, if they are."""
    return _folder(home, dataset) / version / MEMBERS


def routing(home: Home, dataset: str, version: str) -> Routing:
    """The tree that a release was made with."""
    return Routing.load(_folder(home, dataset) / version / ROUTING)


def known(home: Home, dataset: str, identifiers: pa.Array) -> BoolArray:
    """Which of some people are in the history of a release, shape (n,); a missing identifier is nobody's.

    Whom a `forget` that was killed has replaced already is still known, since it is not finished.
    """
    folder = _folder(home, dataset)
    if not any(_members(folder)):
        return np.zeros(len(identifiers), dtype=bool)
    people = hashed(identifiers, key(home, dataset))
    result: BoolArray = _are_there(folder, people) & np.asarray(identifiers.is_valid())
    return result


def forget(home: Home, dataset: str, identifiers: pa.Array) -> int:
    """Replace people by random numbers in the history of every release; returns the number of entries.

    A person has the same number in all of them. So their classes keep their counts, and those who stayed are still
    known to have lost one of their history, for whom company may be needed. With another number in each release it
    would seem that somebody of another history left each, and nobody theirs.

    They must be removed from the source first; a person who comes back is a newcomer.
    """
    replaced = finish_forgetting(home, dataset)
    folder = _folder(home, dataset)
    if not any(_members(folder)):
        return replaced
    people = np.unique(hashed(identifiers, key(home, dataset)))
    people = people[_are_there(folder, people)]
    if not len(people):
        return replaced
    strangers = (np.frombuffer(os.urandom(8 * len(people)), dtype=np.uint64) >> np.uint64(1)).astype(np.int64)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({PERSON: people, STRANGER: strangers}), sink)
    write_file(folder / UNDER_WAY, sink.getvalue().to_pybytes())
    return replaced + finish_forgetting(home, dataset)


def finish_forgetting(home: Home, dataset: str) -> int:
    """Put strangers for the people of a `forget` that was killed, in what it had not changed; the number of entries.

    The numbers are noted before the first file is changed, and the note goes after the last one. Without it a second
    call would take other numbers in the rest of the files, and the person would be a stranger of two histories.

    The caller holds the lock of the dataset's steps, under which releases are remembered too.
    """
    folder = _folder(home, dataset)
    # What a killed write has left names people too, or even who became which stranger.
    for place in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        remove_leftovers(place)
    note = folder / UNDER_WAY
    if not note.exists():
        return 0
    pairs = pq.read_table(note)
    people, strangers = (pairs.column(name).to_numpy() for name in (PERSON, STRANGER))
    replaced = 0
    for file in _members(folder):
        membership = read(file)
        named = np.isin(membership.person, people)
        if not named.any():
            continue
        person = membership.person.copy()
        person[named] = strangers[np.searchsorted(people, person[named])]
        order = np.argsort(person, kind="stable")
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({PERSON: person[order], CLASS: membership.class_[order]}), sink)
        write_file(file, sink.getvalue().to_pybytes())
        replaced += int(named.sum())
    note.unlink()
    return replaced


def _are_there(folder: Path, people: IntArray) -> BoolArray:
    """Which people are in a release, or in the note of a `forget` that was killed, shape (n,)."""
    there = np.zeros(len(people), dtype=bool)
    for file in [*_members(folder), *folder.glob(UNDER_WAY)]:
        there |= np.isin(people, pq.read_table(file, columns=[PERSON]).column(PERSON).to_numpy())
    return there


def _members(folder: Path) -> Iterator[Path]:
    """The files of the people of every release; not by `glob`, which ends at the first folder that it may not enter.

    Raises
    ------
    PermissionError
        Where there is such a folder: its people would be told as forgotten.
    """
    for file in (release / MEMBERS for release in sorted(folder.iterdir())):
        try:
            file.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield file


def _folder(home: Home, dataset: str) -> Path:
    return home.private_folder(dataset, "memberships")
