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
from anon_pipeline.pipeline.tracking import Tracking
from anon_pipeline.spec import ColumnType, Guide


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
            logged = mlflow.sklearn.log_model(model, name="guide", skops_trusted_types=["numpy.dtype"])
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
