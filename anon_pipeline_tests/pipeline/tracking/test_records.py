"""What Dagster and MLflow know of a run: schema, lineage, counts and accuracy; every run brought to an end."""

import json
from typing import Any

import dagster as dg
import mlflow
import pandas as pd
import pytest
import yaml

from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.tracking.runs import DAGSTER_RUN, DATASET, PARENT, STEP, Tracking
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
    metrics = children["utility"].data.metrics
    for metric in ("accuracy", "balanced_accuracy", "roc_auc"):
        before, after, difference = (metrics[f"{metric}_{when}"] for when in ("before", "after", "difference"))
        assert difference == pytest.approx(after - before)
        low, high = (metrics[f"{metric}_difference_{end}"] for end in ("low", "high"))
        assert low <= difference <= high


@pytest.fixture(scope="module")
def parent(template: Place) -> Any:
    """The run of the release in MLflow."""
    runs = Tracking(template.home).client.search_runs(["1"], f"tags.{STEP} = 'release'")
    return next(run for run in runs if PARENT not in run.data.tags)


def test_the_release_says_what_was_asked_and_a_handful_of_figures(template: Place, parent: Any) -> None:
    manifest = json.loads((template.release / "manifest.json").read_text())
    assert parent.info.run_name == f"people {template.release.name}"
    asked = {"k": "10", "spread": "1.0", "spec_hash": manifest["spec_hash"], "guide_model": "decision_tree"}
    assert asked.items() <= parent.data.params.items()
    assert not any("seed" in name and value.isdigit() for name, value in parent.data.params.items())
    assert len(parent.data.metrics) == 12
    assert parent.data.metrics["smallest_class"] == manifest["measured"]["class_sizes"]["smallest"]
    assert parent.data.metrics["accuracy_after"] == manifest["utility"]["metrics"]["accuracy"]["after"]["mean"]


def test_source_and_release_are_datasets_that_confirm_no_guess(template: Place, parent: Any) -> None:
    """The private hash of the source would: whoever guesses the table could look whether it is that."""
    manifest = json.loads((template.release / "manifest.json").read_text())
    inputs = {used.tags[0].value: used.dataset for used in parent.inputs.dataset_inputs}
    assert set(inputs) == {"source", "release"}
    assert manifest["source"]["commitment"].startswith(inputs["source"].digest)
    assert inputs["release"].digest == template.release.name
    (record,) = (template.home.private / "people/raw_data").glob("*/record.json")
    facts = json.loads(record.read_text())["facts"]
    told = "".join(repr(dict(dataset)) for dataset in inputs.values())
    assert facts["content_hash"] not in told and facts["read"] not in told
    assert json.loads(inputs["release"].profile) == {"num_rows": 400}


def test_report_and_chart_lie_with_the_release(template: Place, parent: Any) -> None:
    files = {file.path for file in Tracking(template.home).client.list_artifacts(parent.info.run_id)}
    assert files == {"report.html", "class_sizes.svg"}


def test_the_guide_is_registered_with_a_signature_and_without_rows(template: Place, parent: Any) -> None:
    tracking = Tracking(template.home)
    (version,) = tracking.client.search_model_versions("name = 'people-guide'")
    assert version.run_id == parent.info.run_id
    folder = tracking.artifacts("people") / "models" / parent.outputs.model_outputs[0].model_id / "artifacts"
    description = yaml.safe_load((folder / "MLmodel").read_text())
    columns = [(column["name"], column["type"]) for column in json.loads(description["signature"]["inputs"])]
    assert columns == [("age", "double"), ("city", "string"), ("sex", "string"), ("visits", "double")]
    assert {file.name for file in folder.iterdir()} == {"MLmodel", "model.pkl", "python_env.yaml", "requirements.txt"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
    mlflow.set_tracking_uri(tracking.uri)
    mlflow.set_registry_uri(tracking.uri)
    asked = pd.DataFrame({"age": [30.0], "city": ["Cork"], "sex": [None], "visits": [2.0]})
    assert mlflow.pyfunc.load_model("models:/people-guide/1").predict(asked)[0] in ("yes", "no")
