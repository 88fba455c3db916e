"""Every built-in guide gives one release on every processor: other routines of BLAS, NumPy and the C library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anon_pipeline.learning import linear
from anon_pipeline.learning.models import Task, build_model
from anon_pipeline_tests.learning import dispatch
from anon_pipeline_tests.learning.models import TYPES, people
from anon_pipeline_tests.processors import plain


def settings() -> list[tuple[str, dict[str, str], tuple[str, ...]]]:
    """The order of the rows, variables for the libraries, and the models; nothing that this processor lacks.

    Every model is trained in the first three settings. The fourth is one more kernel of BLAS, which slow models do not
    use.
    """
    information = Path("/proc/cpuinfo")
    has = set(information.read_text().split()) if information.exists() else set()
    four = {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}
    return [
        ("forwards", {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, dispatch.MODELS),
        ("backwards", {"OPENBLAS_CORETYPE": "Prescott", **four, **plain()}, dispatch.MODELS),
        ("backwards", {"OPENBLAS_CORETYPE": "Haswell" if "avx2" in has else "Nehalem"}, dispatch.MODELS),
        ("forwards", {"OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "4", **plain()}, dispatch.QUICK),
    ]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[str]]]:
    said = []
    for order, variables, models in settings():
        folder = tmp_path_factory.mktemp("people")
        ended = subprocess.run(
            [sys.executable, "-m", dispatch.__name__, str(folder), order, *models],
            env=os.environ | variables,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        said.append(json.loads(ended.stdout))
    return said


@pytest.mark.slow
@pytest.mark.parametrize("target", dispatch.TARGETS)
@pytest.mark.parametrize("model", dispatch.MODELS)
def test_guidance_and_classes_are_the_same_everywhere(
    told: list[dict[str, list[str]]], model: str, target: str
) -> None:
    found = [one[f"{model}, {target}"] for one in told if f"{model}, {target}" in one]
    assert len(found) >= 3
    assert len({guidance for guidance, _ in found}) == 1
    assert len({classes for _, classes in found}) == 1


@pytest.mark.parametrize("classes", [2, 7])
@pytest.mark.parametrize("most", [2000, 1])
def test_logistic_regression_stands_at_its_optimum(classes: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the gradient of the penalised loss is nought there is nothing for a processor to stop short of."""
    monkeypatch.setattr(linear, "MOST_COEFFICIENTS", most)
    frame, labels, _ = people(400, classes=classes)
    model = build_model("linear", Task.CLASSIFICATION, TYPES, 0).fit(frame, labels)
    features, fitted = model[0].transform(frame), model[-1]
    target = np.asarray(labels)[:, None] == fitted.classes_[None, :]
    residual = (model.predict_proba(frame) - target)[:, -len(fitted.coef_) :]
    assert np.abs(residual.T @ features + fitted.coef_).max() < 1e-6
    assert np.abs(residual.sum(axis=0)).max() < 1e-6
