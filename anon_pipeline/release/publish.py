"""Publishing: the candidate becomes a release folder and a line of the ledger, or nothing changes at all."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import Refused
from anon_pipeline.home import Home, remove_leftovers, sha256_of, write_file, written_folder
from anon_pipeline.privacy.judge import judge_release, types_of
from anon_pipeline.release import ledger, manifest, report
from anon_pipeline.spec import ReleaseSpec, Role

DATA, CLASSES, MANIFEST, REPORT = "data.parquet", "classes.parquet", "manifest.json", "report.html"
#: In the private zone: the people that the audit keeps out of the release.
CONTROL = "control.parquet"


@dataclass(frozen=True)
class Published:
    """A release that stands in the ledger; `new` tells whether this run put it there."""

    version: str
    folder: Path
    new: bool
    manifest: dict[str, Any]


def publish(home: Home, spec: ReleaseSpec, engine: Engine, candidate: Path, facts: dict[str, Any]) -> Published:
    """Publish the candidate folder (`data.parquet`, `classes.parquet`) unless the same release stands already.

    Parameters
    ----------
    candidate : folder in the private zone whose checks have all passed
    facts : the parts of the manifest that earlier steps have measured; `source` holds the source's content hash

    Raises
    ------
    Refused
        If the file that was written does not hold what the spec demands, or a published file was altered since.
    """
    hashes = {name: engine.content_hash(candidate / name)[1] for name in (DATA, CLASSES)}
    version = manifest.version_of(facts["source"]["content_hash"], spec, hashes)
    folder = home.releases / spec.dataset / version
    with home.lock("ledger"):
        _finish_killed(home)
        if folder.exists():
            return _standing(home, spec.dataset, version, folder)
        folder.parent.mkdir(exist_ok=True)
        folder.parent.chmod(0o755)
        remove_leftovers(folder.parent)
        with written_folder(folder, public=True) as staged:
            for name in (DATA, CLASSES):
                shutil.copyfile(candidate / name, staged / name)
            content = {
                "format": manifest.FORMAT,
                "dataset": spec.dataset,
                "description": spec.description,
                "version": version,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "previous": ledger.last_version(home, spec.dataset),
                "spec": spec.policy(),
                "spec_hash": spec.policy_hash,
                **facts,
                "verified": _count_again(spec, engine, staged),
                "content_hashes": hashes,
                "lineage": manifest.lineage(spec),
                "software": manifest.software(),
            }
            (staged / REPORT).write_text(report.render(content), encoding="utf-8")
            content["files"] = {
                name: {"sha256": sha256_of(staged / name), "bytes": (staged / name).stat().st_size}
                for name in (DATA, CLASSES, REPORT)
            }
            (staged / MANIFEST).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
            line = {"dataset": spec.dataset, "version": version, "manifest": sha256_of(staged / MANIFEST)}
            write_file(_intent(home), json.dumps(line))
        ledger.append(home, "publish", **line)
        _intent(home).unlink()
    return Published(version, folder, True, content)


def _count_again(spec: ReleaseSpec, engine: Engine, staged: Path) -> list[dict[str, Any]]:
    """Judge the files that will be published, read afresh from the disk."""
    storage = engine.columns(staged / DATA)
    if sorted(storage) != sorted(spec.released):
        raise Refused(["the written file has other columns than the spec releases"])
    counts = engine.classes(staged / DATA, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE))
    judgements = judge_release(engine, spec, types_of(spec, storage), counts, staged / CLASSES)
    findings = [judgement.finding for judgement in judgements]
    broken = [f"{one.name}: {one.failing} classes fail ({one.demand})" for one in findings if not one.holds]
    if broken:
        raise Refused(broken)
    return [{**asdict(finding), "holds": finding.holds} for finding in findings]


def _intent(home: Home) -> Path:
    """What the ledger is about to say, written down in the private zone before the release folder appears."""
    return home.private / "publishing.json"


def _finish_killed(home: Home) -> None:
    """Enter the release of a run that was killed between the folder and its line in the ledger."""
    if not _intent(home).exists():
        return
    line = json.loads(_intent(home).read_text())
    known = any(entry.manifest == line["manifest"] for entry in ledger.read(home))
    if not known and (home.releases / line["dataset"] / line["version"]).exists():
        ledger.append(home, "publish", **line)
    _intent(home).unlink()


def _standing(home: Home, dataset: str, version: str, folder: Path) -> Published:
    """The same release stands already: verify it."""
    entry = next((one for one in ledger.read(home) if (one.dataset, one.version) == (dataset, version)), None)
    problems = ["the ledger does not know it"] if entry is None else ledger.verify_release(home, entry)
    if problems:
        raise Refused([f"the published release {dataset}/{version} is not what it was: {one}" for one in problems])
    return Published(version, folder, False, json.loads((folder / MANIFEST).read_text()))
