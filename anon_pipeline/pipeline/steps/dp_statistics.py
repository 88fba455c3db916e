"""The published table of noisy statistics, with their privacy cost."""

from __future__ import annotations

import json
from pathlib import Path

from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.statistics import ANSWERS, publish
from anon_pipeline.pipeline.checks.answers import require_answers
from anon_pipeline.pipeline.checks.budget import BUDGET_CHECKS
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import Run, StepDef, StepResult
from anon_pipeline.pipeline.steps.release import NEW, STANDING


def release(run: Run, _folder: Path, dp_answers: Stage, budget_checks: Stage) -> StepResult:
    """Publish the answers, if every check has been asked of these very answers and has passed."""
    require_answers(budget_checks, BUDGET_CHECKS)
    answers = json.loads((dp_answers.folder / ANSWERS).read_text())
    state = Budget(run.home, Allowance.of(asked_of(run.spec))).state()
    published = publish(run.home, run.spec, answers, state)
    privacy = published.manifest["differential_privacy"]
    return StepResult(
        {"version": published.version},
        metadata={
            "version": published.version,
            "state": NEW if published.new else STANDING,
            "folder": published.folder,
            "epsilon": privacy["epsilon"],
            "delta": privacy["delta"],
        },
        metrics={"version": published.version, "epsilon": privacy["epsilon"], "new": published.new},
        data_version=published.version,
        published=published,
    )


STEP = StepDef("dp_statistics", ("dp_answers", "budget_checks"), frozenset({"csv"}), release, in_release=False)
