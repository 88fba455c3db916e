"""Upkeep of a code location, beside its datasets: alerts to their operators, and the pruning of ended runs.

Each part reads `operations.yaml` whenever it runs, so that a change needs no restart.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation.alerts import Alert, send_once
from anon_pipeline.pipeline.automation.endings import ending_of
from anon_pipeline.pipeline.automation.operations import FILE, Operations
from anon_pipeline.pipeline.automation.pruning import Pruning
from anon_pipeline.pipeline.freshness import late_after
from anon_pipeline.pipeline.run_tags import DATASET_TAG
from anon_pipeline.pipeline.runtime import BAD_INPUT, EXIT_CODE
from anon_pipeline.pipeline.step import RELEASE
from anon_pipeline.spec import ReleaseSpec

#: Seconds between two searches for failed runs, and for late releases.
LOOK_FOR_FAILED, LOOK_FOR_LATE = 30, 300
#: The daily time of the pruning, in UTC.
PRUNE, PRUNE_AT = "prune", "37 1 * * *"


def build_alerts_of_runs(home: Home, specs: Sequence[ReleaseSpec]) -> dg.SensorDefinition:
    """Alerts once about every run that failed or was refused, also if the command line started it."""
    datasets = {spec.dataset for spec in specs}

    @dg.run_status_sensor(
        name="alerts_of_runs",
        run_status=dg.DagsterRunStatus.FAILURE,
        monitor_all_code_locations=True,  # otherwise runs of the command line, which belong to none, are missed
        minimum_interval_seconds=LOOK_FOR_FAILED,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Tells the targets of {FILE} of runs that failed or were refused.",
    )
    def run_has_failed(context: dg.RunStatusSensorContext) -> None:
        run = context.dagster_run
        dataset = _dataset_of(run, datasets)
        if dataset is None:
            return
        try:
            operations = Operations.of(home)
        except InputError as error:  # the tick fails, which shows; Dagster does not look at the run again
            context.instance.report_engine_event(f"No alert of the run was sent: {error}", run)
            raise
        if not operations.alerts:
            return
        ending = ending_of(context.instance, run.run_id)
        alert = Alert(run.run_id, dataset, ending.event, ending.sentence, f"{operations.address}/runs/{run.run_id}")
        for target, outcome in (send_once(home, operations.alerts, alert) or {}).items():
            context.instance.report_engine_event(f"Alert of the run to {target}: {outcome}.", run)

    return run_has_failed


def _dataset_of(run: dg.DagsterRun, datasets: set[str]) -> str | None:
    """The dataset of a run; None if the run belongs to another code location."""
    if DATASET_TAG in run.tags:
        return run.tags[DATASET_TAG]
    if run.job_name == PRUNE:
        return PRUNE
    keys = [*(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ())]
    return next((key.path[0] for key in keys if key.path[0] in datasets), None)


def build_alerts_of_late_releases(home: Home, specs: Sequence[ReleaseSpec]) -> dg.SensorDefinition | None:
    """Alerts once about a release that is missing after its scheduled time; None without schedules.

    The time limits are those by which Dagster marks the asset `release` as late. For a dataset without a release, the
    time is counted from the first evaluation of this sensor.
    """
    scheduled = {spec.dataset: late.total_seconds() for spec in specs if (late := late_after(spec)) is not None}
    if not scheduled:
        return None

    @dg.sensor(
        name="alerts_of_late_releases",
        minimum_interval_seconds=LOOK_FOR_LATE,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Tells the targets of {FILE} of releases that are late by their schedules.",
    )
    def release_is_late(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        operations = Operations.of(home)
        first_looks: dict[str, float] = json.loads(context.cursor or "{}")
        now = datetime.now(UTC).timestamp()
        sent = []
        for dataset, late in scheduled.items():
            key = dg.AssetKey([dataset, RELEASE])
            last = context.instance.get_latest_materialization_event(key)
            since = last.timestamp if last is not None else first_looks.setdefault(dataset, now)
            if now - since < late or not operations.alerts:
                continue
            address = f"{operations.address}/assets/{dataset}/{RELEASE}"
            alert = Alert(f"late-{dataset}-{since:.0f}", dataset, "late", _since(last, since), address)
            outcomes = send_once(home, operations.alerts, alert) or {}
            sent += [f"{dataset} is late; {target}: {outcome}" for target, outcome in outcomes.items()]
        context.update_cursor(json.dumps(first_looks))
        return dg.SkipReason("; ".join(sent) or "nothing is late that was not told before")

    return release_is_late


def _since(last: dg.EventLogEntry | None, since: float) -> str:
    when = datetime.fromtimestamp(since, UTC).strftime("%d %B %Y, %H:%M UTC")
    if last is None:
        return f"the schedule asks for releases, and there has been none since {when}"
    return f"the last release came on {when}, and by its schedule another was due since"


def build_prune_job(home: Home, specs: Sequence[ReleaseSpec]) -> dg.JobDefinition:
    """The job that removes ended runs and superseded results by the settings of the home, as `anon-pipeline prune`."""

    @dg.op(name="prune_home")
    def remove_what_is_old(context: dg.OpExecutionContext) -> None:
        try:
            pruned = Pruning(home, Operations.of(home).prune, specs).prune(context.instance)
        except InputError as error:
            raise dg.Failure(str(error), metadata={EXIT_CODE: BAD_INPUT}, allow_retries=False) from None
        context.log.info(f"removed {pruned}")

    @dg.job(
        name=PRUNE,
        executor_def=dg.in_process_executor,
        description=f"Removes ended runs from Dagster and MLflow, and superseded private results, as {FILE} says.",
    )
    def prune() -> None:
        remove_what_is_old()

    return prune


def build_prune_schedule(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """The daily schedule of the pruning, in UTC; it runs as soon as the daemon runs."""
    return dg.ScheduleDefinition(
        name="prune_schedule",
        job=job,
        cron_schedule=PRUNE_AT,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Looks daily for runs and results that need not be kept.",
    )
