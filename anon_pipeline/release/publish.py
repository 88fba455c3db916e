"""Publishing: the candidate becomes a release folder and a line of the ledger, or nothing changes at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import Refused
from anon_pipeline.home import Home, remove_leftovers, sha256_of, written_folder
from anon_pipeline.privacy.group_table import judge_group_table
from anon_pipeline.privacy.judge import judge_release, types_of
from anon_pipeline.release import ledger, manifest, openlineage, promises, provenance, unfinished
from anon_pipeline.release.opening import Opened, Opening
from anon_pipeline.report import release_report
from anon_pipeline.spec import ReleaseSpec, Role

DATA, CLASSES, MANIFEST, REPORT = "data.parquet", "classes.parquet", ledger.MANIFEST, "report.html"
#: Where it comes from, for other people's tools: OpenLineage events, one a line, and W3C PROV-JSON.
OPENLINEAGE, PROVENANCE = "openlineage.jsonl", "prov.json"
#: In the private zone: the people that the audit keeps out of the release.
CONTROL = "control.parquet"


@dataclass(frozen=True)
class Published:
    """A release that stands in the ledger; `new` tells whether this run put it there."""

    version: str
    folder: Path
    new: bool
    manifest: dict[str, Any]


def publish(
    home: Home,
    spec: ReleaseSpec,
    engine: Engine,
    candidate: Path,
    facts: dict[str, Any],
    remember: Callable[[str], None] | None = None,
) -> Published:
    """Publish the candidate folder (`data.parquet`, `classes.parquet`) unless the same release stands already.

    Of a table of groups there is `data.parquet` alone.

    Parameters
    ----------
    candidate : folder in the private zone whose checks have all passed
    facts : the parts of the manifest that earlier steps have measured; of the source's content hash, which `source`
        holds, only a commitment leaves
    remember : called with the version before a new release appears, to keep what the next one will be judged by

    Raises
    ------
    Refused
        If the file that was written does not hold what the spec demands, a published file was altered since, or the
        same release was withdrawn.
    InputError
        If the ledger is signed and there is no key, or the spec is silent on what a former release promised.
    """
    tables = (DATA,) if spec.aggregates else (DATA, CLASSES)
    hashes = {name: engine.content_hash(candidate / name)[1] for name in tables}
    version = manifest.version_of(spec, hashes)
    folder = home.releases / spec.dataset / version
    with home.lock("ledger"):
        unfinished.finish(home)
        if folder.exists():
            return standing(home, spec.dataset, version, folder)
        ledger.require_unaltered(home)
        promises.require_an_answer(home, spec)
        folder.parent.mkdir(exist_ok=True)
        folder.parent.chmod(0o755)
        remove_leftovers(folder.parent)
        source = dict(facts["source"])
        content_hash = source.pop("content_hash")
        opening = Opening.drawn(Opened(spec.dataset, version, facts["rows"]["source"], content_hash, spec.source.query))
        with written_folder(folder, public=True) as staged:
            for name in tables:
                shutil.copyfile(candidate / name, staged / name)
            content = {
                "format": manifest.FORMAT,
                "dataset": spec.dataset,
                "description": spec.description,
                "version": version,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "previous": ledger.last_version(home, spec.dataset),
                "spec": {name: value for name, value in spec.policy().items() if name != "seed"},
                "spec_hash": spec.policy_hash,
                **facts,
                "source": {**source, "commitment": opening.commitment},
                "verified": _count_again(spec, engine, staged),
                "content_hashes": hashes,
                "lineage": manifest.lineage(spec),
                "software": manifest.software() | {"guide": manifest.relied_on(spec)},
            }
            (staged / REPORT).write_text(release_report.render(content), encoding="utf-8")
            openlineage.write(staged / OPENLINEAGE, spec, content, engine.columns(staged / DATA), _size(staged / DATA))
            hashes_of_tables = {name: sha256_of(staged / name) for name in tables}
            (staged / PROVENANCE).write_text(provenance.render(content, hashes_of_tables), encoding="utf-8")
            content["files"] = {
                file.name: {"sha256": sha256_of(file), "bytes": _size(file)} for file in sorted(staged.iterdir())
            }
            (staged / MANIFEST).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
            if remember is not None:
                remember(version)
            opening.keep(home)
            unfinished.note(home, ledger.PUBLISH, spec.dataset, version, sha256_of(staged / MANIFEST))
        unfinished.finish(home)
    return Published(version, folder, True, content)


def _count_again(spec: ReleaseSpec, engine: Engine, staged: Path) -> list[dict[str, Any]]:
    """Judge the files that will be published, read afresh from the disk."""
    if spec.aggregates:
        verdict = judge_group_table(engine, staged / DATA, spec)
        if not verdict.holds:
            failed = [
                f"{finding.name}: {finding.failing} groups fail ({finding.demand})"
                for finding in verdict.findings
                if finding.failing
            ]
            raise Refused([*failed, *verdict.problems])
        return [{**asdict(finding), "holds": finding.holds} for finding in verdict.findings]
    storage = engine.columns(staged / DATA)
    if sorted(storage) != sorted(spec.released):
        raise Refused(["the written file has other columns than the spec releases"])
    counts = engine.classes(staged / DATA, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE))
    judgements = judge_release(engine, spec, types_of(spec, storage), counts, staged / CLASSES)
    findings = [judgement.finding for judgement in judgements]
    broken = [
        f"{finding.name}: {finding.failing} classes fail ({finding.demand})"
        for finding in findings
        if not finding.holds
    ]
    if broken:
        raise Refused(broken)
    return [{**asdict(finding), "holds": finding.holds} for finding in findings]


def _size(file: Path) -> int:
    return file.stat().st_size


def standing(home: Home, dataset: str, version: str, folder: Path) -> Published:
    """The same release stands already: verify it, and make it the current one if it no longer is.

    One that was withdrawn does not stand, nor is it published again.
    """
    withdrawn = ledger.withdrawal(home, dataset, version)
    if withdrawn is not None:
        raise Refused(
            [
                f"this is the release {dataset}/{version}, which was withdrawn on {withdrawn.time} ({withdrawn.why}); "
                "change the source or the spec"
            ]
        )
    entry = next((entry for entry in ledger.read(home) if entry.release == (dataset, version)), None)
    problems = ["the ledger does not know it"] if entry is None else ledger.verify_release(home, entry)
    if problems:
        raise Refused(
            [f"the published release {dataset}/{version} is not what it was: {problem}" for problem in problems]
        )
    if ledger.last_version(home, dataset) != version:
        unfinished.enter(home, ledger.CURRENT, dataset, version, sha256_of(folder / MANIFEST))
    return Published(version, folder, False, json.loads((folder / MANIFEST).read_text()))
