"""The published synthetic release: the table, the noisy counts, a model if requested, and their privacy cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anon_pipeline.differential_privacy.synthesis.made_table import protection
from anon_pipeline.differential_privacy.synthesis.stored import MEASUREMENTS
from anon_pipeline.pipeline.checks import own
from anon_pipeline.pipeline.checks.answers import require_answers
from anon_pipeline.pipeline.checks.synthetic import SYNTHETIC_CHECKS
from anon_pipeline.pipeline.metadata import Markdown
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult, log
from anon_pipeline.pipeline.steps.dp_model import ARCHIVE
from anon_pipeline.pipeline.steps.release import NEW, STANDING
from anon_pipeline.plain_json import finite
from anon_pipeline.release.publish import DATA, REPORT
from anon_pipeline.release.publish_synthetic import COUNTS, publish_synthetic
from anon_pipeline.report.synthetic_report import lead


def release(
    run: Run,
    _folder: Path,
    dp_measurements: Stage,
    synthetic_table: Stage,
    candidate_checks: Stage,
    dp_model: Stage | None = None,
    own_checks: Stage | None = None,
) -> StepResult:
    """Publish the synthetic table, if every check has been asked of these very files and has passed."""
    checks = [*require_answers(candidate_checks, SYNTHETIC_CHECKS), *own.require(run.spec, own_checks)]
    content = (dp_measurements.folder / MEASUREMENTS).read_bytes()
    token = str(json.loads(content)["token"])
    files: dict[str, Path | bytes] = {DATA: synthetic_table.folder / DATA, COUNTS: _public(content)}
    facts: dict[str, Any] = {
        "differential_privacy": protection(run.spec, content),
        "rows": {"synthetic": synthetic_table.facts["rows"]},
        "quality": synthetic_table.facts["quality"],
        "checks": checks,
    }
    if dp_model is not None:
        files[ARCHIVE] = dp_model.folder / ARCHIVE
        facts["model"] = {name: value for name, value in dp_model.facts.items() if name != "logged"}
    published = publish_synthetic(run.home, run.spec, token, files, finite(facts))
    state = NEW if published.new else STANDING
    log.info("%s: release %s %s", run.spec.dataset, published.version, state)
    privacy = published.manifest["differential_privacy"]
    return StepResult(
        {"version": published.version},
        synthetic_table.facts["rows"],
        {
            "version": published.version,
            "state": state,
            "folder": published.folder,
            "report": f"{REPORT} in that folder",
            "verdict": Markdown(lead(published.manifest)),
        },
        {"version": published.version, "epsilon": privacy["epsilon"], "delta": privacy["delta"], "new": published.new},
        published.version,
        published,
    )


STEP = StepDef(
    "release",
    ("dp_measurements", "synthetic_table", "candidate_checks"),
    frozenset({"parquet", "mlflow"}),
    release,
    needs_if_made=("dp_model", own.NAME),
)


def _public(content: bytes) -> bytes:
    """The noisy counts without the token from which versions are derived."""
    return json.dumps({name: value for name, value in json.loads(content).items() if name != "token"}).encode()
