"""The promises of former releases of a dataset, and whether a spec drops them silently. Nothing is measured here."""

from __future__ import annotations

import json

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger
from anon_pipeline.spec import ReleaseSpec


def require_an_answer(home: Home, spec: ReleaseSpec) -> None:
    """Refuse a spec that drops `across_releases` without a reason, if a former release was made under this demand.

    That release promised its readers that later releases would leave everybody enough candidates. A withdrawn release
    counts, too, since readers may still have it.

    Raises
    ------
    InputError
        If the spec no longer demands it and does not say why.
        Refused
        If a former manifest differs from the published one, so that its promises are not known.
    """
    if spec.across_releases is not None or spec.across_releases_ended is not None:
        return
    for entry in ledger.read(home):
        if entry.action != ledger.PUBLISH or entry.dataset != spec.dataset:
            continue
        manifest = home.releases / entry.dataset / entry.version / ledger.MANIFEST
        if not manifest.is_file() or sha256_of(manifest) != entry.manifest:
            raise Refused(
                [
                    f"the manifest of {entry.dataset}/{entry.version} is not what was published, so that nobody can "
                    "tell what it promised; run `anon-pipeline releases verify`"
                ]
            )
        if json.loads(manifest.read_text(encoding="utf-8"))["spec"].get("across_releases") is not None:
            raise InputError(
                f"across_releases: the release {entry.version} was made under it and this spec is silent; demand it "
                "again, or say why it ends, for everybody to read: across_releases_ended: <why>"
            )
