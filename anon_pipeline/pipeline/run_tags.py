"""The tags of a run of Dagster, however it was started: the content that it reads, and the release that it makes.

So a run that was started for one content and found another counts for the content that it found.
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

#: Runs with the same value of this tag run one after the other (dagster.yaml).
DATASET_TAG = "anon_pipeline/dataset"
#: Keyed hashes (source_content.py) of the content that the run reads, and of its policy.
CONTENT_TAG, POLICY_TAG = "anon_pipeline/content", "anon_pipeline/policy"
#: The version of the release that the run made, or that existed already.
VERSION_TAG = "anon_pipeline/version"
#: The value of a tag whose value is not known.
UNKNOWN = "unknown"


def made_and_told(
    make: Callable[[], StepResult], step: StepDef, run: Run, instance: dg.DagsterInstance, run_id: str
) -> StepResult:
    """Make a step; the one that reads the source tags the content, the one that publishes tags the version."""
    if step.reads_source:
        return _read_and_tagged(make, run, instance, run_id)
    result = make()
    if step.name == RELEASE:
        instance.add_run_tags(run_id, {VERSION_TAG: str(result.facts["version"])})
    return result


def _read_and_tagged(make: Callable[[], StepResult], run: Run, instance: dg.DagsterInstance, run_id: str) -> StepResult:
    """Make the first step; if the source is replaced meanwhile, no content counts as read."""
    spec, home = run.spec, run.home
    # The tag of the dataset, too: a run of single assets has no job that sets it.
    policy = {DATASET_TAG: spec.dataset, POLICY_TAG: policy_of(spec, home), VERSION_TAG: UNKNOWN}
    if is_asked_in_full(spec):  # known from the rows after reading; until then, the content asked for
        instance.add_run_tags(run_id, policy)
        result = make()
        if "read" in result.facts:
            instance.add_run_tags(run_id, {CONTENT_TAG: content_of_rows(spec, home, result.facts["read"])})
        return result
    before, stamp = UNKNOWN, None
    with suppress(InputError):  # the step itself reports it better
        stamp, before = stamp_of(spec, home), content_of(spec, home, run.engine)
    instance.add_run_tags(run_id, {**policy, CONTENT_TAG: before})
    result = make()
    if stamp is None or stamp != stamp_of(spec, home):
        with suppress(InputError):
            if content_of(spec, home, run.engine) == before:
                return result
        instance.add_run_tags(run_id, {CONTENT_TAG: UNKNOWN})
    return result
