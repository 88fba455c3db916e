"""What Dagster and MLflow know of a run: schema, lineage, counts and accuracy; every run brought to an end."""

from typing import Any

import dagster as dg
import pytest

from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.tracking import DAGSTER_RUN, DATASET, PARENT, STEP, Tracking
from anon_pipeline_tests.end_to_end.harness import ASSETS, Place

STEPS = {*ASSETS, "source_checks", "candidate_checks"}


@pytest.fixture(scope="module")
def metadata(template: Place) -> dict[str, dict[str, Any]]:
    """The metadata of each asset's latest materialization, as the UI shows it."""
    with open_instance(template.home) as instance:
        events = {name: instance.get_latest_materialization_event(dg.AssetKey(["people", name])) for name in ASSETS}
    return {
        name: dict(event.asset_materialization.metadata)
        for name, event in events.items()
        if event is not None and event.asset_materialization is not None
    }


def test_every_asset_is_materialized(metadata: dict[str, dict[str, Any]]) -> None:
    assert set(metadata) == set(ASSETS)


@pytest.mark.parametrize("name", ["raw_data", "anonymized_table", "release"])
def test_tables_have_rows_and_a_schema(metadata: dict[str, dict[str, Any]], name: str) -> None:
    assert metadata[name]["dagster/row_count"].value == 400
    schema = metadata[name]["dagster/column_schema"].schema
    assert {column.name for column in schema.columns} == {"age", "city", "sex", "ill", "visits"}
    assert all(column.type for column in schema.columns)


@pytest.mark.parametrize(("name", "upstream"), [("anonymized_table", "raw_data"), ("release", "anonymized_table")])
def test_released_columns_name_the_columns_they_come_from(
    metadata: dict[str, dict[str, Any]], name: str, upstream: str
) -> None:
    lineage = metadata[name]["dagster/column_lineage"].value.deps_by_column
    assert {
        column: [(one.asset_key.path[-1], one.column_name) for one in deps] for column, deps in lineage.items()
    } == {column: [(upstream, column)] for column in ("age", "city", "sex", "ill", "visits")}


def test_class_sizes_and_accuracy_are_shown(metadata: dict[str, dict[str, Any]]) -> None:
    for name in ("anonymizer_tree", "anonymized_table", "release"):
        assert metadata[name]["smallest_class"].value >= 10
        assert "10-19" in metadata[name]["class_sizes"].value
    for name in ("utility", "release"):
        assert "| accuracy |" in metadata[name]["scores"].value


def test_no_metadata_is_a_table_of_people(metadata: dict[str, dict[str, Any]]) -> None:
    kinds = {type(value).__name__ for shown in metadata.values() for value in shown.values()}
    assert "TableMetadataValue" not in kinds
    text = "".join(str(value) for shown in metadata.values() for value in shown.values())
    assert "Aberdeen" not in text


def test_all_checks_are_recorded_as_passed(template: Place) -> None:
    with open_instance(template.home) as instance:
        (run,) = instance.get_runs()
        events = [log.dagster_event for log in instance.all_logs(run.run_id) if log.dagster_event is not None]
    evaluations = [
        event.asset_check_evaluation_data for event in events if event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]
    assert len(evaluations) >= 9
    assert all(one.passed and one.blocking for one in evaluations)
    assert all(one.metadata["measured"].value != "not measured" for one in evaluations)


def test_mlflow_has_a_parent_for_the_release_and_a_child_for_each_step(template: Place) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(Tracking(template.home).uri)
    experiment = client.get_experiment_by_name("people")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert all(run.info.end_time for run in runs)
    assert len({run.data.tags[DAGSTER_RUN] for run in runs}) == 1
    assert {run.data.tags[DATASET] for run in runs} == {"people"}
    (parent,) = [run for run in runs if PARENT not in run.data.tags]
    children = {run.data.tags[STEP]: run for run in runs if run is not parent}
    assert set(children) == STEPS
    assert len(runs) == 1 + len(STEPS)
    assert {run.data.tags[PARENT] for run in children.values()} == {parent.info.run_id}
    assert {run.data.tags["version"] for run in runs} == {template.release.name}
    for run in (parent, children["utility"]):
        for metric in ("accuracy", "balanced_accuracy", "roc_auc"):
            before, after, difference = (run.data.metrics[f"{metric}_{w}"] for w in ("before", "after", "difference"))
            assert difference == pytest.approx(after - before)
            low, high = (run.data.metrics[f"{metric}_difference_{end}"] for end in ("low", "high"))
            assert low <= difference <= high
