"""The job of a dataset, its schedules, and the retention; the sensor that watches its source is in `sensor.py`."""

from typing import TYPE_CHECKING, Any

import dagster as dg

from anon_pipeline.pipeline.automation.past_runs import QUEUED, under_way
from anon_pipeline.pipeline.automation.retention import expire
from anon_pipeline.pipeline.freshness import longest_gap
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.run_tags import DATASET_TAG
from anon_pipeline.pipeline.runtime import RUNTIME, Runtime
from anon_pipeline.pipeline.technical_names import OWNER, owners
from anon_pipeline.spec import STATISTICS, ReleaseSpec

if TYPE_CHECKING:  # Dagster exports the function but not the type it returns
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

#: The daily time of the retention, in UTC.
RETENTION_AT = "17 1 * * *"


def build_job(spec: ReleaseSpec, runtime: Runtime | None = None) -> "UnresolvedAssetJobDefinition":
    """The whole graph of a dataset, with its checks, in one process (a process per step would import for seconds).

    Steps that a release does not wait for are not part of it. The launchpad begins with the runtime's settings of the
    machine, otherwise with those of the spec.
    """
    selection: dg.AssetSelection = dg.AssetSelection.groups(spec.dataset)
    for step in graph_of(spec).steps:
        if not step.in_release:
            selection -= dg.AssetSelection.assets([spec.dataset, step.name])
    return dg.define_asset_job(
        f"{spec.dataset}_release",
        selection=selection,
        executor_def=dg.in_process_executor,
        description=f"From the source of {spec.dataset} to a checked release, or to a refusal.",
        config=_launchpad(spec, runtime),
        tags={DATASET_TAG: spec.dataset},
        metadata={OWNER: owners(spec.owner)[0]},
    )


def _launchpad(spec: ReleaseSpec, runtime: Runtime | None) -> dict[str, Any] | None:
    return None if runtime is None else {"resources": {RUNTIME: {"config": runtime.chosen(spec)}}}


def build_statistics_job(spec: ReleaseSpec, runtime: Runtime | None = None) -> "UnresolvedAssetJobDefinition | None":
    """The questions of the spec's file, the checks of the budget, and the published table; no part of a release."""
    if spec.differential_privacy is None or spec.differential_privacy.queries is None:
        return None
    return dg.define_asset_job(
        f"{spec.dataset}{STATISTICS}",
        selection=dg.AssetSelection.assets([spec.dataset, "dp_answers"], [spec.dataset, "dp_statistics"]),
        executor_def=dg.in_process_executor,
        description=f"Noisy statistics of {spec.dataset} under the budget of their people, or a refusal.",
        config=_launchpad(spec, runtime),
        tags={DATASET_TAG: spec.dataset},
        metadata={OWNER: owners(spec.owner)[0]},
    )


def build_statistics_schedule(
    spec: ReleaseSpec, job: "UnresolvedAssetJobDefinition | None"
) -> dg.ScheduleDefinition | None:
    """The schedule by which the questions are asked again, in UTC; this costs nothing if the source is unchanged.

    Raises
    ------
    InputError
        If it is no schedule: Dagster's own error would hide every other dataset.
    """
    if job is None or spec.differential_privacy is None or spec.differential_privacy.schedule is None:
        return None
    longest_gap(spec.differential_privacy.schedule, "differential_privacy.schedule")
    return dg.ScheduleDefinition(
        name=f"{spec.dataset}_statistics_schedule",
        job=job,
        cron_schedule=spec.differential_privacy.schedule,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Asks the questions of {spec.dataset} as its spec says (UTC).",
    )


def build_schedule(spec: ReleaseSpec, job: "UnresolvedAssetJobDefinition") -> dg.ScheduleDefinition | None:
    """The schedule of the spec, in UTC; it runs as soon as the daemon runs.

    A tick starts no run while another run of the dataset is queued: the queued run will read the source as it is when
    the run starts.
    """
    if spec.schedule is None:
        return None

    @dg.schedule(
        name=f"{spec.dataset}_schedule",
        job=job,
        cron_schedule=spec.schedule,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Releases {spec.dataset} at {spec.schedule!r} (UTC), as its spec says.",
    )
    def due(context: dg.ScheduleEvaluationContext, runtime: Runtime):
        for run in under_way(context.instance, runtime.place(), spec.dataset):
            if run.status in QUEUED:
                return dg.SkipReason(f"run {run.run_id[:8]} is queued, and will read the source when its turn comes")
        return dg.RunRequest()

    return due


def build_retention(spec: ReleaseSpec) -> dg.ScheduleDefinition | None:
    """The daily job that removes files which the private zone has kept for longer than the spec allows."""
    if spec.retention is None:
        return None

    @dg.op(name=f"{spec.dataset}_expire")
    def remove_what_is_older(context: dg.OpExecutionContext, runtime: Runtime) -> None:
        expired = expire(runtime.place(), spec)
        context.log.info(
            f"removed {', '.join(expired.stages) or 'no stored result'}; {expired.stories} stories of errors, "
            f"{expired.spilled} spilled files"
        )

    @dg.job(
        name=f"{spec.dataset}_retention",
        executor_def=dg.in_process_executor,
        description=f"Removes what the private zone has kept of {spec.dataset} for more than "
        f"{spec.retention.private_days} days, as its spec says.",
        tags={DATASET_TAG: spec.dataset},
        metadata={OWNER: owners(spec.owner)[0]},
    )
    def retention() -> None:
        remove_what_is_older()

    return dg.ScheduleDefinition(
        name=f"{spec.dataset}_retention_schedule",
        job=retention,
        cron_schedule=RETENTION_AT,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Looks daily for what {spec.dataset} may no longer keep.",
    )
