"""Putting releases to their places and taking them back, so that the copies there agree with the ledger."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from anon_pipeline.destinations import record
from anon_pipeline.destinations.base import Place, Release
from anon_pipeline.destinations.record import FAILED, PUTTING, REPLACED, STANDS, TAKEN_BACK, Copy
from anon_pipeline.errors import InputError, NotDelivered
from anon_pipeline.home import Home, scratch
from anon_pipeline.release import ledger
from anon_pipeline.spec import Destination
from anon_pipeline.spec.permission import check_destinations

log = logging.getLogger("anon_pipeline")

#: For each kind of place, the packages that must be installed, and the extra that has them.
NEEDED = {
    "database": (("adbc_driver_manager", "adbc_driver_postgresql"), "postgresql"),
    "delta": (("deltalake",), "delta"),
    "iceberg": (("pyiceberg",), "iceberg"),
}


def require_ready(destinations: Sequence[Destination], folder: Path) -> None:
    """Check before any work starts that no extra and no connection is missing, and that names of folders can be used.

    Parameters
    ----------
    folder : the folder of the spec; names of places are relative to it

    Raises
    ------
    InputError
        With the place and the remedy.
    """
    for destination in destinations:
        _require_parts(destination, folder)
        place = destination.located(folder).delta
        if place is not None:
            from anon_pipeline.destinations.delta import require_writable

            require_writable(place, f"publish: {destination.label}")


def _require_parts(destination: Destination, folder: Path) -> None:
    for kind, (packages, extra) in NEEDED.items():
        if getattr(destination, kind) is None:
            continue
        try:
            for package in packages:
                importlib.import_module(package)
        except ImportError:
            raise InputError(
                f"publish: {destination.label}: install `anon-pipeline[{extra}]` to put releases there"
            ) from None
    if destination.connection is not None:
        from anon_pipeline.engine.server_queries import address_of

        address_of(destination.connection, folder, "publish.connection")


def deliver(
    home: Home, dataset: str, version: str, stated: Iterable[Destination] = (), compare: bool = False
) -> list[str]:
    """Put a release to the stated places and to all places of its record; a withdrawn release is taken back there.

    Remaining copies of other withdrawn releases of the dataset are taken back too. A copy of this release that was
    taken back, and that somebody has put there again, is taken back once more.

    Parameters
    ----------
    stated : places whose files are named by their full path (`Destination.located`)
    compare : whether rows are read where the release seems to stand, and put again where they differ

    Returns
    -------
    The labels of the places that have the release.

    Raises
    ------
    InputError
        Where there is no such release.
    NotDelivered
        With a sentence for each place that failed; the other places have the release. Or where the system refuses to
        record what is done, as on a full disk: then nothing more is done, since no place is asked without a record.
    """
    entry = ledger.published(home, version, dataset)
    is_withdrawn = ledger.withdrawal(home, dataset, version) is not None
    standing = f"{dataset}/{version} is {'withdrawn' if is_withdrawn else 'published and stands'}"
    again = f"run again, or `anon-pipeline releases deliver {version}`"
    try:
        with home.lock(f"destinations-{dataset}"):
            failures = _followed(home, entry, stated, compare)
            stands = [copy.place.label for copy in record.read(home, dataset, version) if copy.state == STANDS]
    except OSError as error:
        raise NotDelivered(
            f"{standing}, but perhaps not every destination follows: the system refuses what is needed in the home "
            f"({error.strerror or type(error).__name__}); free disk space, or make the home writable, and then {again}"
        ) from None
    if failures:
        raise NotDelivered(f"{standing}, but not every destination follows: {'; '.join(failures)}; {again}")
    return stands


def finish_withdrawal(home: Home, dataset: str, version: str) -> list[Copy]:
    """Take back what destinations still have of a release that was withdrawn before; the copies that were there.

    Raises
    ------
    NotDelivered
        As `deliver`.
    """
    before = record.read(home, dataset, version)
    if before:
        deliver(home, dataset, version)
    return [copy for copy in record.read(home, dataset, version) if copy not in before]


def _followed(home: Home, entry: ledger.Entry, stated: Iterable[Destination], compare: bool) -> list[str]:
    """Put a release to its places, or take it back there; a sentence for each place that failed."""
    dataset, version = entry.release
    failures = _take_back_withdrawn(home, dataset, version)
    if ledger.withdrawal(home, dataset, version) is None:
        known = {copy.place.label: copy.place for copy in record.read(home, dataset, version)}
        places = known | {place.label: place for place in stated}
        failures += _put(home, Release.of(home, entry), list(places.values()), compare)
    return failures


def verify(home: Home, dataset: str | None = None, version: str | None = None) -> list[str]:
    """Compare all copies, or those of one release, with the releases; a sentence for each missing or different one."""
    problems = []
    for of, number in record.recorded(home):
        if dataset not in (None, of) or version not in (None, number):
            continue
        with home.lock(f"destinations-{of}"), scratch() as folder:
            entry = ledger.published(home, number, of)
            release, withdrawn = Release.of(home, entry), ledger.withdrawal(home, of, number) is not None
            for copy in record.read(home, of, number):
                if not withdrawn and copy.state in (REPLACED, TAKEN_BACK):
                    continue
                found = _looked_at(release, copy, withdrawn, folder)
                problems += [f"{of}/{number} at {copy.place.label}: {problem}" for problem in found]
    return problems


def _looked_at(release: Release, copy: Copy, withdrawn: bool, folder: Path) -> list[str]:
    try:
        there = _place(copy.place)
        if withdrawn:
            unfinished = copy.state != TAKEN_BACK or there.remains(release)
            return ["is there, although the release was withdrawn"] if unfinished else []
        if not release.current and not there.keeps_former:
            return []
        if release.altered():
            return ["nothing to hold it against: the folder of the release was altered"]
        return there.problems(release, folder)
    except InputError as error:
        return [_without_label(str(error), copy.place)]


def _put(home: Home, release: Release, places: list[Destination], compare: bool = False) -> list[str]:
    """Put a release to places; returns a sentence for each place that failed."""
    failures = []
    for destination in places:
        try:
            place = _place(destination)
            if not release.current and not place.keeps_former:
                record.note(home, release.dataset, release.version, destination, REPLACED)
                continue
            if not (release.current and release.has_manifest and _stands(place, release, compare)):
                record.note(home, release.dataset, release.version, destination, PUTTING)
                if altered := release.altered():
                    raise InputError(f"the folder of the release is not what it was: {altered[0]} was altered")
                place.put(release)
                log.info("%s: %s stands at %s", release.dataset, release.version, destination.label)
            record.note(home, release.dataset, release.version, destination, STANDS)
            if release.current and not place.keeps_former:
                _note_replaced(home, release, destination)
        except InputError as error:
            message = _without_label(str(error), destination)
            record.note(home, release.dataset, release.version, destination, FAILED, message)
            failures.append(f"{destination.label}: {message}")
    return failures


def _stands(place: Place, release: Release, compare: bool) -> bool:
    """Whether a release need not be put to a place again: it is there, and if `compare`, without any difference.

    Raises
    ------
    InputError
        If it is to be compared, and the release's own folder was altered.
    """
    if not place.holds(release):
        return False
    if not compare:
        return True
    if altered := release.altered():
        raise InputError(f"nothing to compare the copy with: {altered[0]} of the release's own folder was altered")
    try:
        with scratch() as folder:
            return not place.problems(release, folder)
    except InputError:  # what it lists is gone, or can no longer be read
        return False


def _note_replaced(home: Home, release: Release, destination: Destination) -> None:
    for dataset, version in list(record.recorded(home)):
        if dataset == release.dataset and version != release.version:
            for copy in record.read(home, dataset, version):
                if copy.place.label == destination.label and copy.state == STANDS:
                    record.note(home, dataset, version, destination, REPLACED)


def _take_back_withdrawn(home: Home, dataset: str, again: str) -> list[str]:
    """Take back the remaining copies of withdrawn releases of a dataset; a sentence for each place that failed.

    Parameters
    ----------
    again : the release whose places are asked although its copies were taken back
    """
    failures = []
    for of, version in list(record.recorded(home)):
        if of != dataset or ledger.withdrawal(home, of, version) is None:
            continue
        release = Release.of(home, ledger.published(home, version, of))
        for copy in record.read(home, of, version):
            if copy.state != TAKEN_BACK or version == again:
                failures += _take_back(home, release, copy)
    return failures


def _take_back(home: Home, release: Release, copy: Copy) -> list[str]:
    """Take a copy of a withdrawn release back, which may be there again; a sentence if its place failed."""
    is_noted = copy.state == TAKEN_BACK
    try:
        place = _place(copy.place)
        if is_noted and not place.remains(release):
            return _put_successor(home, release.dataset, copy.place)
        is_noted = False
        failures = _put_successor(home, release.dataset, copy.place)
        left = place.take_back(release)
        record.note(home, release.dataset, release.version, copy.place, TAKEN_BACK, left)
        log.info("%s: %s is taken back at %s; %s", release.dataset, release.version, copy.place.label, left)
    except InputError as error:
        message = _without_label(str(error), copy.place)
        # A place that is no more since its copies were taken back must not fail in every later run.
        if not is_noted:
            record.note(home, release.dataset, release.version, copy.place, FAILED, message)
        return [f"{copy.place.label}: {message}"]
    return failures


def _put_successor(home: Home, dataset: str, destination: Destination) -> list[str]:
    """Put the release that is current after a withdrawal to a place that has it, had it or should have had it.

    Returns a sentence where the place failed: then the withdrawn release is taken back all the same.
    """
    entry = ledger.current(home, dataset)
    if entry is None:
        return []
    known = {copy.place.label: copy.state for copy in record.read(home, dataset, entry.version)}
    if known.get(destination.label, TAKEN_BACK) == TAKEN_BACK:
        return []
    failures = _put(home, Release.of(home, entry), [destination])
    return [f"{failure} ({entry.version}, which is the current release now)" for failure in failures]


def _without_label(sentence: str, place: Destination) -> str:
    return sentence.removeprefix(f"{place.label}: ").removeprefix(f"{place.objects or place.delta}: ")


def _place(destination: Destination) -> Place:
    """The place that a destination names, if this service (still) allows specs to write there.

    Raises
    ------
    InputError
        Where specs may not write there, or a package is missing.
    """
    folder = Path(destination.delta).parent if destination.delta else Path()
    check_destinations(folder, [destination])
    _require_parts(destination, folder)
    if destination.objects is not None:
        from anon_pipeline.destinations.objects import ObjectPrefix

        return ObjectPrefix(destination.objects)
    if destination.database is not None:
        from anon_pipeline.destinations.postgresql import DatabaseSchema

        return DatabaseSchema(destination)
    if destination.delta is not None:
        from anon_pipeline.destinations.delta import DeltaLakeTable

        return DeltaLakeTable(destination.delta)
    from anon_pipeline.destinations.iceberg import IcebergTable

    return IcebergTable(str(destination.iceberg))
