"""The publication of a synthetic release: only content that is derived from the noisy counts.

There is no commitment to the source, no exact size, no figure of utility or of attacks: each would be an answer about
people that costs privacy budget, but was not charged.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from anon_pipeline.home import Home, sha256_of, write_file
from anon_pipeline.release import manifest, promises
from anon_pipeline.release.descriptors import written
from anon_pipeline.release.publication import Published, head, publish_folder
from anon_pipeline.release.publish import DATA, REPORT
from anon_pipeline.release.spec_folders import keep_folder
from anon_pipeline.report import synthetic_report
from anon_pipeline.spec import ReleaseSpec

#: The file of the noisy counts, from which readers can derive figures that the table does not show.
COUNTS = "measurements.json"
KIND = "synthetic"


def publish_synthetic(
    home: Home, spec: ReleaseSpec, token: str, files: Mapping[str, Path | bytes], facts: dict[str, Any]
) -> Published:
    """Publish these files unless the same release is already published.

    Parameters
    ----------
    token : drawn with the noise; the version depends on it, on the policy and on the table, but not on the source
    files : path or content of each file, by name; includes `data.parquet`
    facts : the parts of the manifest that earlier steps have made

    Raises
    ------
    Refused
        If a published file was altered, or the same release was withdrawn.
    InputError
        If the ledger is signed and there is no key, or the spec silently drops the promise of a former release.
    """
    data = files[DATA]
    table_hash = sha256_of(data) if isinstance(data, Path) else hashlib.sha256(data).hexdigest()
    version = hashlib.sha256(json.dumps([token, spec.policy_hash, table_hash]).encode()).hexdigest()[:12]

    def write(staged: Path) -> dict[str, Any]:
        for name, content in files.items():
            if isinstance(content, Path):
                shutil.copyfile(content, staged / name)
            else:
                write_file(staged / name, content)
        content_of_manifest = {
            **head(home, spec, version),
            "kind": KIND,
            "spec": spec.policy(),
            "spec_hash": spec.policy_hash,
            **facts,
            "software": _software(),
        }
        (staged / REPORT).write_text(synthetic_report.render(content_of_manifest), encoding="utf-8")
        written.write(staged, content_of_manifest, (DATA,))
        return content_of_manifest

    allowed = partial(promises.require_an_answer, home, spec)
    published = publish_folder(home, spec.dataset, version, write, allowed=allowed)
    keep_folder(home, spec)
    return published


def _software() -> dict[str, Any]:
    """The software that made the release, including the library for noise."""
    software = manifest.software()
    return software | {"packages": {**software["packages"], "opendp": metadata.version("opendp")}}
