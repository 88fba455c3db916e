"""What MLflow keeps of a utility measurement: every score under a name of its own, and the group that loses most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anon_pipeline.learning.models import Task
from anon_pipeline.learning.utility import Utility
from anon_pipeline.pipeline.tracking.utility_figures import utility_figures
from anon_pipeline.spec import ColumnType, Guide
from anon_pipeline_tests.learning.test_utility import destroy, measure, table

PARTS = ("before", "after", "difference")


@pytest.fixture(scope="module")
def measured() -> Utility:
    guide = Guide(model="decision_tree", folds=2)
    return measure(
        table(Task.CLASSIFICATION),
        Task.CLASSIFICATION,
        destroy,
        guide=guide,
        further_models=("linear",),
        columns={"job": ColumnType.CATEGORICAL},
    )


@pytest.mark.long
def test_every_score_of_every_model_has_a_name(measured: Utility) -> None:
    figures = utility_figures(measured)
    for prefix, metrics in (("", measured.metrics), ("linear_", measured.further_models["linear"])):
        for metric, comparison in metrics.items():
            for part in PARTS:
                name, estimate = f"{prefix}{metric}_{part}", getattr(comparison, part)
                assert (figures[name], figures[f"{name}_low"]) == (estimate.mean, estimate.low)
    assert figures["linear_roc_auc_before"] != figures["roc_auc_before"]
    assert figures["calibration_error_after"] == measured.calibration.error.after.mean  # type: ignore[union-attr]


@pytest.mark.long
@pytest.mark.parametrize("task", list(Task))
def test_the_worst_group_is_the_one_that_loses_most(task: Task) -> None:
    found = measure(table(task), task, destroy, columns={"job": ColumnType.CATEGORICAL})
    score = next(iter(found.metrics))
    differences = {f"{one.column}: {one.value}": one.metrics[score].difference.mean for one in found.subgroups}
    figures = utility_figures(found)
    assert len(differences) > 1
    assert figures[f"worst_subgroup_{score}_difference"] == differences[figures["worst_subgroup"]]
    assert figures[f"worst_subgroup_{score}_difference"] == min(differences.values())  # type: ignore[type-var]


def test_without_groups_none_is_the_worst(measured: Utility) -> None:
    assert not any("worst" in name for name in utility_figures(replace(measured, subgroups=())))
