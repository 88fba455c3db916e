"""Publishing: the candidate becomes a release folder and a line of the ledger, or nothing changes at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import Refused, number_of
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.privacy.group_table import judge_group_table
from anon_pipeline.privacy.judge import judge_release, types_of
from anon_pipeline.release import ledger, manifest, openlineage, promises, provenance
from anon_pipeline.release.descriptors import written
from anon_pipeline.release.difference import changes
from anon_pipeline.release.exported_report import manifest_of
from anon_pipeline.release.ledger import CLASSES as CLASSES  # for those who read what is published here
from anon_pipeline.release.ledger import DATA as DATA
from anon_pipeline.release.opening import Opened, Opening
from anon_pipeline.release.publication import Published, head, publish_folder
from anon_pipeline.release.spec_folders import keep_folder
from anon_pipeline.report import release_report
from anon_pipeline.spec import ReleaseSpec, Role
from anon_pipeline.spec.policy import hashes_of_lists

REPORT = "report.html"
#: Its origin, for other tools: OpenLineage events, one per line, and W3C PROV-JSON.
OPENLINEAGE, PROVENANCE = "openlineage.jsonl", "prov.json"
#: The file in the private zone with the people whom the audit keeps out of the release.
CONTROL = "control.parquet"


def publish(
    home: Home,
    spec: ReleaseSpec,
    engine: Engine,
    candidate: Path,
    facts: dict[str, Any],
    remember: Callable[[str], None] | None = None,
) -> Published:
    """Publish the candidate folder (`data.parquet`, `classes.parquet`) unless the same release is already published.

    A table of groups has `data.parquet` only.

    Parameters
    ----------
    candidate : folder in the private zone whose checks have all passed
    facts : the parts of the manifest that earlier steps have measured; `source` holds the source's content hash, of
        which only a commitment is published, and its kinds, which are not published
    remember : called with the version before a new release appears, to extend the release history

    Raises
    ------
    Refused
        If the written file does not meet the demands of the spec, a published file was altered, or the same release was
        withdrawn.
    InputError
        If the ledger is signed and there is no key, or the spec silently drops the promise of a former release.
    """
    tables = (DATA,) if spec.aggregates else (DATA, CLASSES)
    hashes = {name: engine.content_hash(candidate / name)[1] for name in tables}
    version = manifest.version_of(spec, hashes)
    source = dict(facts["source"])
    content_hash, kinds = source.pop("content_hash"), source.pop("kinds", None)
    rows, lists = facts["rows"]["source"], hashes_of_lists(spec) or None
    opened = Opened(spec.dataset, version, rows, content_hash, spec.source.query, lists)
    opening = Opening.drawn(opened, kinds)

    def write(staged: Path) -> dict[str, Any]:
        for name in tables:
            shutil.copyfile(candidate / name, staged / name)
        content = {
            **head(home, spec, version),
            "spec": {name: value for name, value in spec.policy().items() if name != "seed"},
            "spec_hash": spec.policy_hash,
            **facts,
            "source": {**source, "commitment": opening.commitment},
            "verified": _count_again(spec, engine, staged),
            "content_hashes": hashes,
            "lineage": manifest.lineage(spec),
            "software": manifest.software() | {"guide": manifest.relied_on(spec)},
        }
        content["changes"] = _changes(home, content)
        (staged / REPORT).write_text(release_report.render(content), encoding="utf-8")
        size = (staged / DATA).stat().st_size
        openlineage.write(staged / OPENLINEAGE, spec, content, engine.columns(staged / DATA), size)
        hashes_of_tables = {name: sha256_of(staged / name) for name in tables}
        (staged / PROVENANCE).write_text(provenance.render(content, hashes_of_tables), encoding="utf-8")
        written.write(staged, content, tables)
        return content

    def keep() -> None:
        if remember is not None:
            remember(version)
        opening.keep(home)

    published = publish_folder(
        home,
        spec.dataset,
        version,
        write,
        allowed=lambda: promises.require_an_answer(home, spec),
        keep=keep,
    )
    keep_folder(home, spec)
    return published


def _changes(home: Home, content: dict[str, Any]) -> list[dict[str, Any]]:
    """The changes since the previous release, by both manifests; empty if there is none."""
    if content["previous"] is None:
        return []
    former = manifest_of(home, ledger.published(home, content["previous"], content["dataset"]))
    return [asdict(change) for change in changes(former, content)] if former.get("kind") is None else []


def _count_again(spec: ReleaseSpec, engine: Engine, staged: Path) -> list[dict[str, Any]]:
    """Check the files that will be published, read again from the disk."""
    if spec.aggregates:
        verdict = judge_group_table(engine, staged / DATA, spec)
        if not verdict.holds:
            failed = [
                f"{finding.name}: {number_of(finding.failing, 'group fails', 'groups fail')} ({finding.demand})"
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
    broken = [finding for finding in findings if not finding.holds]
    if broken:
        raise Refused(
            [
                f"{finding.name}: {number_of(finding.failing, 'class fails', 'classes fail')} ({finding.demand})"
                for finding in broken
            ],
            [f"{finding.name}: {finding.demand}" for finding in broken],
        )
    return [{**asdict(finding), "holds": finding.holds} for finding in findings]
