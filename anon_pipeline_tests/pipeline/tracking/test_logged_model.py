"""A model logged in the home's MLflow store guides a release; one that is not there is named in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.learning.guide import train
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Fitting, Problem
from anon_pipeline.pipeline.tracking.empty_database import lay_empty_database
from anon_pipeline.pipeline.tracking.registered_model import keep_dp_model
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.spec import ColumnType, Guide


@pytest.mark.long
def test_a_logged_model_guides_and_an_absent_one_is_named(tmp_path: Path) -> None:
    tracking = Tracking(Home(tmp_path / "home").prepare())
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"age": random.integers(20, 70, 200).astype(float), "hours": random.normal(40, 9, 200)})
    target = pd.Series(np.where(frame["age"] + random.normal(0, 5, 200) > 45, "sick", "well"), dtype=object)
    before = mlflow.get_tracking_uri()
    with tracking.step("people", "run-1", "raw_data"):
        pass  # creates the schema
    try:
        mlflow.set_tracking_uri(tracking.uri)
        mlflow.set_experiment("people")
        with mlflow.start_run():
            model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(frame, target)
            logged = mlflow.sklearn.log_model(  # MLflow would load it in a new process to see what it requires
                model, name="guide", skops_trusted_types=["numpy.dtype"], pip_requirements=["scikit-learn"]
            )
            uri = logged.model_uri
    finally:
        mlflow.set_tracking_uri(before)
    types = dict.fromkeys(frame.columns, ColumnType.NUMERIC)
    fold = np.arange(200) % 5

    def guided(uri: str) -> np.ndarray:
        guide = Guide.model_validate({"model": {"mlflow": uri}, "predictions": "out_of_fold"})
        trained = train(
            Problem(frame, target, Task.CLASSIFICATION, types, 0), guide, fold, Fitting(tracking.load_model)
        )
        return trained.guidance(frame, fold)[:, 0]

    said = guided(uri)
    assert np.corrcoef(said, frame["age"])[0, 1] < -0.8  # the chance of "well" falls with age
    with pytest.raises(InputError, match=r"guide\.model\.mlflow"):
        guided("models:/nobody/7")
    assert os.environ.get("MLFLOW_DISABLE_TELEMETRY") == "true"


@pytest.mark.long
def test_a_run_that_is_open_around_it_does_not_stop_a_model_from_being_registered(tmp_path: Path) -> None:
    tracking = Tracking(Home(tmp_path / "home").prepare())
    before = mlflow.get_tracking_uri()
    lay_empty_database(tmp_path / "other.db")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'other.db'}")
    try:
        with mlflow.start_run(experiment_id="0"):  # of a notebook, in a store of its own
            model = LogisticRegression().fit([[0], [1]], ["no", "yes"])
            uri = keep_dp_model(tracking, "people", model, tmp_path / "model.zip")
        assert mlflow.get_tracking_uri().endswith("other.db")
    finally:
        mlflow.set_tracking_uri(before)
    assert uri == "models:/people/1"
    (run,) = tracking.client.search_runs([tracking.experiment("people")])
    assert (run.info.status, len(run.outputs.model_outputs)) == ("FINISHED", 1)
