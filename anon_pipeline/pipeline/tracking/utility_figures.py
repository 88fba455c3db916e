"""The metrics of a utility measurement: one number per name, so that MLflow's tables can compare releases."""

from typing import Any

from anon_pipeline.learning.scores import Comparison
from anon_pipeline.learning.subgroups import Subgroup
from anon_pipeline.learning.utility import SMALLER_IS_BETTER, Utility


def utility_figures(measured: Utility) -> dict[str, Any]:
    """Metrics by name: scores with intervals, also of further models, calibration, and the group that loses most."""
    figures = _figures("", measured.metrics)
    for model, metrics in measured.further_models.items():
        figures |= _figures(f"{model}_", metrics)
    if measured.calibration is not None:
        figures |= _figures("", {"calibration_error": measured.calibration.error})
    score = next(iter(measured.metrics))
    sign = 1 if score in SMALLER_IS_BETTER else -1

    def loss(group: Subgroup) -> float:
        mean = group.metrics[score].difference.mean
        return float("-inf") if mean is None else sign * mean

    worst = max(measured.subgroups, key=loss, default=None)
    if worst is not None and worst.metrics[score].difference.mean is not None:
        figures[f"worst_subgroup_{score}_difference"] = worst.metrics[score].difference.mean
        figures["worst_subgroup"] = f"{worst.column}: {worst.value}"
    return figures


def _figures(prefix: str, metrics: dict[str, Comparison]) -> dict[str, Any]:
    figures = {}
    for metric, comparison in metrics.items():
        for when in ("before", "after", "difference"):
            measure = getattr(comparison, when)
            name = f"{prefix}{metric}_{when}"
            figures[name], figures[f"{name}_low"], figures[f"{name}_high"] = measure.mean, measure.low, measure.high
    return figures
