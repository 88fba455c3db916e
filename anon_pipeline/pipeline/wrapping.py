"""The graph in Dagster: an asset per step and blocking checks per battery, each in the frame of `Runtime.step`."""

from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from anon_pipeline.pipeline import refusals
from anon_pipeline.pipeline.documentation import described
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.freshness import freshness
from anon_pipeline.pipeline.graph import Graph
from anon_pipeline.pipeline.metadata import Lineage, Markdown, Schema
from anon_pipeline.pipeline.run_tags import made_and_told
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.step import DESTINATIONS, RELEASE, CheckDef, StepDef, StepResult
from anon_pipeline.pipeline.technical_names import owners, technical
from anon_pipeline.pipeline.tracking.logged_guide import keep_guide
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.pipeline.tracking.tracked_release import record
from anon_pipeline.release import manifest
from anon_pipeline.spec import ReleaseSpec

#: The label of a check's original name, which Dagster shows under its technical name.
NAME = "check"
#: The label in the metadata of a check that crashed, and so says nothing about the data.
CRASHED = "crashed"
#: The tag for an asset's zone of the home, for selections in Dagster: `tag:anon_pipeline/zone=public`.
ZONE_TAG, PUBLISHERS = "anon_pipeline/zone", (RELEASE, DESTINATIONS, "dp_statistics")
#: The label of the URI of a guide in MLflow, in Dagster and MLflow.
LOGGED = "logged_model"
#: The labels under which Dagster itself finds these.
LABELS = {"schema": "dagster/column_schema", "lineage": "dagster/column_lineage"}


def asset_of(graph: Graph, step: StepDef) -> dg.AssetsDefinition:
    """A step as an asset, under a key that starts with the name of the dataset."""
    spec = graph.spec

    @dg.asset(
        name=step.name,
        key_prefix=spec.dataset,
        group_name=spec.dataset,
        owners=owners(spec.owner),
        code_version=manifest.code_hash()[:12],
        pool=spec.dataset,  # steps of one dataset run one after the other, however they are started
        deps=[dg.AssetKey([spec.dataset, name]) for name in graph.steps_before(step)],
        kinds=set(step.kinds),
        tags={ZONE_TAG: "public" if step.name in PUBLISHERS else "private"},
        description=described(step, graph),
        freshness_policy=freshness(spec) if step.name == RELEASE else None,
    )
    def made(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, step.name) as metrics:
            run = runtime.run(spec, _ids(context, metrics))
            result = made_and_told(partial(make, graph, step, run), step, run, context.instance, context.run.run_id)
            metrics.update(result.metrics)
            tracked = _track(runtime.tracking(), metrics, spec, result)
        return dg.MaterializeResult(
            data_version=None if result.data_version is None else dg.DataVersion(result.data_version),
            metadata={**_metadata(graph, step, result), **tracked},
        )

    return made


def checks_of(graph: Graph, checks: CheckDef) -> dg.AssetChecksDefinition:
    """A battery of checks, which block the steps after the step that they check."""
    spec, asset = graph.spec, dg.AssetKey([graph.spec.dataset, checks.of])

    @dg.multi_asset_check(
        name=f"{spec.dataset}_{checks.name}",
        pool=spec.dataset,
        specs=[
            dg.AssetCheckSpec(technical(name), asset=asset, blocking=True, description=description)
            for name, description in checks.checks(spec).items()
        ],
    )
    def asked(context: dg.AssetCheckExecutionContext, runtime: Runtime):
        with runtime.step(context, spec, checks.name) as metrics:
            answers = answer(graph, checks, runtime.run(spec, _ids(context, metrics)))
            failed = [check_answer for check_answer in answers if not check_answer.passed]
            metrics[f"{checks.name}_failed"] = len(failed)
        if failed:
            refusals.keep(runtime.place(), spec, context.run.run_id, checks.name, answers=answers)
        yield from (_result_of(check_answer, asset) for check_answer in answers)

    return asked


def _ids(context: Any, metrics: dict[str, Any]) -> dict[str, str]:
    return {"dagster": context.run.run_id, "mlflow": metrics["mlflow_run"]}


def _track(tracking: Tracking, metrics: dict[str, Any], spec: ReleaseSpec, result: StepResult) -> dict[str, str]:
    """Log a step's release or guide to MLflow; returns the metadata about it for Dagster."""
    parent = metrics["mlflow_run"]
    if result.published is not None:
        record(tracking, parent, spec, result.published)
    if result.guide is None:
        return {}
    metrics[LOGGED] = keep_guide(tracking, spec.dataset, parent, result.guide.model, result.guide.types)
    return {LOGGED: metrics[LOGGED]}


def _metadata(graph: Graph, step: StepDef, result: StepResult) -> dict[str, Any]:
    """The metadata of a step's result, as Dagster's values."""
    sources = graph.sources(step)

    def dagster_value(value: Any) -> Any:
        match value:
            case Markdown(text):
                return dg.MetadataValue.md(text)
            case Path():
                return dg.MetadataValue.path(str(value))
            case Schema(columns):
                return dg.TableSchema(
                    [dg.TableColumn(column.name, column.storage, column.description) for column in columns]
                )
            case Lineage(upstream, columns):
                key = dg.AssetKey([graph.spec.dataset, sources[upstream]])
                return dg.TableColumnLineage(
                    {name: [dg.TableColumnDep(key, source) for source in of] for name, of in columns.items()}
                )
        return value

    rows = {} if result.rows is None else {"dagster/row_count": result.rows}
    return {**rows, **{LABELS.get(label, label): dagster_value(value) for label, value in result.metadata.items()}}


def _result_of(check_answer: Answer, asset: dg.AssetKey) -> dg.AssetCheckResult:
    """An answer as a check result of Dagster."""
    measured: Any = "not measured" if check_answer.measured is None else check_answer.measured
    measured = measured if check_answer.applies else "not applicable"
    return dg.AssetCheckResult(
        passed=check_answer.passed,
        asset_key=asset,
        check_name=technical(check_answer.name),
        description=check_answer.sentence,
        metadata={NAME: check_answer.name, "demand": check_answer.demand, "measured": measured}
        | ({CRASHED: True} if check_answer.crashed else {}),
    )
