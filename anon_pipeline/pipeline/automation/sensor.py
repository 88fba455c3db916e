"""The sensor of a dataset: it looks at the source and the endings of past runs, and starts a run if one is needed."""

import json
import os
import time
from typing import TYPE_CHECKING

import dagster as dg

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation.next_run import Action, decide
from anon_pipeline.pipeline.automation.past_runs import known, newest
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.run_tags import CONTENT_TAG, POLICY_TAG
from anon_pipeline.pipeline.runtime import Runtime, internal_error
from anon_pipeline.pipeline.source_content import content_of, is_asked_in_full, policy_of, stamp_of
from anon_pipeline.spec import ReleaseSpec

if TYPE_CHECKING:  # Dagster exports the function but not the type it returns
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

#: Seconds between two evaluations; a server that has to be read in full is read once an hour.
SECONDS_VARIABLE = "ANON_PIPELINE_SENSOR_SECONDS"
SECONDS, SECONDS_IN_FULL = 60, 3_600


def build_sensor(spec: ReleaseSpec, job: "UnresolvedAssetJobDefinition", anew: dg.JobDefinition) -> dg.SensorDefinition:
    """The sensor: it starts a run if the current release was not made from the source's content by the spec's policy.

    The run follows the plan of steps and checks that Dagster made when it loaded them. If the spec has other steps or
    checks now, the job `anew` runs instead.

    Each content is released once, also if its runs are killed; `next_run.py` decides when a run is started. The sensor
    is switched on in the UI.
    """

    @dg.sensor(
        name=f"{spec.dataset}_source_sensor",
        jobs=[job, anew],
        minimum_interval_seconds=_seconds(spec),
        description=f"Releases what {spec.source.path} holds whenever that, or the policy, is not the current release.",
    )
    def look(context: dg.SensorEvaluationContext, runtime: Runtime):
        try:
            # The spec as it is now, not as the code location loaded it: a changed policy is a reason to run.
            now = _reloaded(spec)
            return _next(context, runtime, now, job.name if _listed(now) == _listed(spec) else anew.name)
        except InputError as error:
            return dg.SkipReason(str(error))
        except Exception as error:  # a library's message may quote a person, and the page of a tick shows it
            return dg.SkipReason(internal_error(runtime.place(), f"{spec.dataset}-sensor.txt", error))

    return look


def _next(
    context: dg.SensorEvaluationContext, runtime: Runtime, spec: ReleaseSpec, job: str
) -> dg.RunRequest | dg.SkipReason:
    home = runtime.place()
    content, policy = _content(context, runtime, spec, home), policy_of(spec, home)
    found = known(context.instance, home, spec.dataset, content, policy)
    decision = decide(found, time.time())
    if decision.action is not Action.RUN:
        return dg.SkipReason(f"{spec.source.path}: {decision.why}")
    context.log.info(f"{spec.source.path}: {decision.why}")
    # The key is new after every run, and the same for a tick that is repeated after a kill.
    key = f"{content}-{policy[:12]}-{newest(context.instance, spec.dataset)[:8]}"
    return dg.RunRequest(run_key=key, job_name=job, tags={CONTENT_TAG: content, POLICY_TAG: policy})


def _reloaded(spec: ReleaseSpec) -> ReleaseSpec:
    """The spec, read again from its file.

    Raises
    ------
    InputError
        If it cannot be used, or now belongs to another dataset.
    """
    now = ReleaseSpec.load(spec.folder)
    if now.dataset != spec.dataset:
        raise InputError(f"{spec.folder}: is the dataset {now.dataset} now; reload the code location")
    return now


def _listed(spec: ReleaseSpec) -> set[str]:
    """The names of all steps and checks that a plan of Dagster lists."""
    graph = graph_of(spec)
    return {step.name for step in graph.steps} | {name for checks in graph.checks for name in checks.checks(spec)}


def _content(context: dg.SensorEvaluationContext, runtime: Runtime, spec: ReleaseSpec, home: Home) -> str:
    """The keyed hash of the source's content; files that are unchanged since the last tick are not read again."""
    stamp, asked = stamp_of(spec, home), policy_of(spec, home)
    cursor = json.loads(context.cursor or "{}")
    if stamp is not None and (cursor.get("stamp"), cursor.get("asked")) == (stamp, asked):
        return str(cursor["content"])
    content = content_of(spec, home, runtime.engine(spec))
    context.update_cursor(json.dumps({"stamp": stamp, "asked": asked, "content": content}))
    return content


def _seconds(spec: ReleaseSpec) -> int:
    """Seconds between two evaluations."""
    least = SECONDS_IN_FULL if is_asked_in_full(spec) else SECONDS
    return int(os.environ.get(SECONDS_VARIABLE) or least)
