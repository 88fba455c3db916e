"""What a run of Dagster says of itself in tags, whoever started it: the content it reads, and the release it makes.

So a run that was asked for one content and found another counts for what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import dagster as dg

from anon_pipeline.errors import InputError
from anon_pipeline.pipeline.source_content import (
    content_of,
    content_of_rows,
    is_asked_in_full,
    policy_of,
    stamp_of,
)
from anon_pipeline.pipeline.step import RELEASE, Run, StepDef, StepResult

#: Runs that carry the same value of this tag go one after the other (dagster.yaml).
DATASET_TAG = "anon_pipeline/dataset"
#: Keyed hashes (source_content.py) of what the run reads, and of the policy that it follows.
CONTENT_TAG, POLICY_TAG = "anon_pipeline/content", "anon_pipeline/policy"
#: The version of the release that the run made, or found there already.
VERSION_TAG = "anon_pipeline/version"
#: The value of a tag about which nothing can be said.
UNKNOWN = "unknown"


def made_and_told(
    make: Callable[[], StepResult], step: StepDef, run: Run, instance: dg.DagsterInstance, run_id: str
) -> StepResult:
    """Make a step; the one that reads the source tells what it reads, the one that publishes its version."""
    if step.reads_source:
        return _read_and_told(make, run, instance, run_id)
    result = make()
    if step.name == RELEASE:
        instance.add_run_tags(run_id, {VERSION_TAG: str(result.facts["version"])})
    return result


def _read_and_told(make: Callable[[], StepResult], run: Run, instance: dg.DagsterInstance, run_id: str) -> StepResult:
    """Make the first step; a source that is replaced meanwhile counts as read by nobody."""
    spec, home = run.spec, run.home
    # The dataset's own, too: a run of single assets has no job that brings it.
    policy = {DATASET_TAG: spec.dataset, POLICY_TAG: policy_of(spec, home), VERSION_TAG: UNKNOWN}
    if is_asked_in_full(spec):  # the rows that were read tell; until then, the content that the run was asked for
        instance.add_run_tags(run_id, policy)
        result = make()
        if "read" in result.facts:
            instance.add_run_tags(run_id, {CONTENT_TAG: content_of_rows(spec, home, result.facts["read"])})
        return result
    before, stamp = UNKNOWN, None
    with suppress(InputError):  # the step itself says it better
        stamp, before = stamp_of(spec, home), content_of(spec, home, run.engine)
    instance.add_run_tags(run_id, {**policy, CONTENT_TAG: before})
    result = make()
    if stamp is None or stamp != stamp_of(spec, home):
        with suppress(InputError):
            if content_of(spec, home, run.engine) == before:
                return result
        instance.add_run_tags(run_id, {CONTENT_TAG: UNKNOWN})
    return result
