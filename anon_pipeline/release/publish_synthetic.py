"""Publishing a synthetic release: what was made of noisy counts, and nothing that tells more of people than they do.

There is no commitment to the source, no exact size, no figure of utility or of attacks: each would be an answer about
people that nobody paid for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from anon_pipeline.home import Home, remove_leftovers, sha256_of, write_file, written_folder
from anon_pipeline.release import ledger, manifest, promises, unfinished
from anon_pipeline.release.publish import DATA, MANIFEST, REPORT, Published, standing
from anon_pipeline.report import synthetic_report
from anon_pipeline.spec import ReleaseSpec

#: The noisy counts, so that who has the release can draw from them what the table does not show.
COUNTS = "measurements.json"
KIND = "synthetic"


def publish_synthetic(
    home: Home, spec: ReleaseSpec, token: str, files: Mapping[str, Path | bytes], facts: dict[str, Any]
) -> Published:
    """Publish these files unless the same release stands already.

    Parameters
    ----------
    token : was drawn with the noise; the version hangs on it, on the policy and on the table, and on no source
    files : by name, where each lies or what is in it; `data.parquet` among them
    facts : the parts of the manifest that earlier steps have made

    Raises
    ------
    Refused
        If a published file was altered since, or the same release was withdrawn.
    InputError
        If the ledger is signed and there is no key, or the spec is silent on what a former release promised.
    """
    data = files[DATA]
    table_hash = sha256_of(data) if isinstance(data, Path) else hashlib.sha256(data).hexdigest()
    version = hashlib.sha256(json.dumps([token, spec.policy_hash, table_hash]).encode()).hexdigest()[:12]
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
        with written_folder(folder, public=True) as staged:
            for name, file_content in files.items():
                if isinstance(file_content, Path):
                    shutil.copyfile(file_content, staged / name)
                else:
                    write_file(staged / name, file_content)
            content = {
                "format": manifest.FORMAT,
                "kind": KIND,
                "dataset": spec.dataset,
                "description": spec.description,
                "version": version,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "previous": ledger.last_version(home, spec.dataset),
                "spec": spec.policy(),
                "spec_hash": spec.policy_hash,
                **facts,
                "software": _software(),
            }
            (staged / REPORT).write_text(synthetic_report.render(content), encoding="utf-8")
            content["files"] = {
                file.name: {"sha256": sha256_of(file), "bytes": file.stat().st_size}
                for file in sorted(staged.iterdir())
            }
            (staged / MANIFEST).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
            unfinished.note(home, ledger.PUBLISH, spec.dataset, version, sha256_of(staged / MANIFEST))
        unfinished.finish(home)
    return Published(version, folder, True, content)


def _software() -> dict[str, Any]:
    """What made the release, the library of noise among it."""
    software = manifest.software()
    return software | {"packages": {**software["packages"], "opendp": metadata.version("opendp")}}
