"""The promises of former releases of a dataset, and whether a spec drops them silently. Nothing is measured here."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger
from anon_pipeline.spec import AcrossReleases, ReleaseSpec, Role


def require_an_answer(home: Home, spec: ReleaseSpec) -> None:
    """Refuse a spec that drops or lowers `across_releases` without a reason, if a former release was made under it.

    That release promised its readers that later releases would leave everybody enough candidates. A withdrawn release
    counts, too, since readers may still have it. A reason that a release was made under is none for less than that one.

    Raises
    ------
    InputError
        If the spec no longer demands it, or less, and does not say why.
        Refused
        If a former manifest differs from the published one, so that its promises are not known.
    """
    asked, why = spec.across_releases, spec.across_releases_lowered
    if spec.across_releases_ended is not None:
        return
    for version, promised, known_reason in _promises(home, spec.dataset):
        if asked is None:
            raise InputError(
                f"across_releases: the release {version} was made under it and this spec is silent; demand it "
                "again, or say why it ends, for everybody to read: across_releases_ended: <why>"
            )
        if (less := _less(asked, promised)) is not None and why in (None, known_reason):
            stale = "" if why is None else f" (the reason that is written was one for {version} already)"
            raise InputError(
                f"across_releases.{less}, less than the release {version} was made under; demand as much, or say why "
                f"it is lowered, for everybody to read: across_releases_lowered: <why>{stale}"
            )


def known_by_former(home: Home, spec: ReleaseSpec, versions: Collection[str]) -> list[str]:
    """The columns that a spec keeps as they are, though one of these releases grouped people by them.

    That release took its readers to know them. Whoever does tells the rows of a class apart, as no candidates are that
    are counted by classes.
    """
    former = set[str]()
    for version in versions:
        manifest = home.releases / spec.dataset / version / ledger.MANIFEST
        columns = json.loads(manifest.read_text(encoding="utf-8"))["spec"]["columns"]
        former |= {name for name, column in columns.items() if column["role"] == Role.QUASI_IDENTIFIER}
    return [name for name in spec.with_role(Role.SENSITIVE, Role.INSENSITIVE) if name in former]


def _promises(home: Home, dataset: str) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """The version and the demand of each former release that was made under one, oldest first.

    And why it demanded less than others before it, if it did.
    """
    for entry in ledger.read(home):
        if entry.action != ledger.PUBLISH or entry.dataset != dataset:
            continue
        manifest = home.releases / dataset / entry.version / ledger.MANIFEST
        if not manifest.is_file() or sha256_of(manifest) != entry.manifest:
            raise Refused(
                [
                    f"the manifest of {dataset}/{entry.version} is not what was published, so that nobody can "
                    "tell what it promised; run `anon-pipeline releases verify`"
                ]
            )
        policy = json.loads(manifest.read_text(encoding="utf-8"))["spec"]
        if (promised := policy.get("across_releases")) is not None:
            yield entry.version, promised, policy.get("across_releases_lowered")


def _less(asked: AcrossReleases, promised: dict[str, Any]) -> str | None:
    """What a spec demands less of than a former release did, in words; None if of nothing.

    The reserve and the choice of the tree are no promises: the candidates of a window are counted whatever they are.
    """
    for name, now in (("k", asked.k), ("window", asked.window)):
        if now < promised.get(name, now):
            return f"{name} is {now} in place of {promised[name]}"
    if promised.get("departures") == "in_company" != asked.departures:
        return f"departures is {asked.departures} in place of in_company"
    return None
