"""What a release costs in accuracy, in words and numbers as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anon_pipeline.release.charts import NOT_MEASURED, count, known, minus
from anon_pipeline.release.wording import part, plain_name

#: How each score is called, explained and written.
METRICS = {
    "accuracy": ("Accuracy", "people predicted rightly", "share"),
    "balanced_accuracy": ("Balanced accuracy", "the same, every value of the target counting alike", "share"),
    "roc_auc": ("ROC AUC", "0.5 is guessing, 1 is perfect ranking", "plain"),
    "r2": ("R\u00b2", "share of the target's variance explained", "plain"),
    "mae": ("Mean absolute error", "in units of the target; smaller is better", "plain"),
}
SMALLER_IS_BETTER = {"mae"}
HEADLINES = ("roc_auc", "accuracy", "r2")


@dataclass(frozen=True)
class Score:
    """One score before and after, in words and as cells of a table (value, interval)."""

    name: str
    meaning: str
    before: tuple[str, str]
    after: tuple[str, str]
    difference: tuple[str, str]
    sentence: str


def intro(utility: Mapping[str, Any], masked: bool = False) -> str:
    """How the scores were come by; of a table that was masked, that what masking cost is not in them."""
    model = utility.get("model")
    kind = f"{plain_name(str(model))} model" if model else "model"
    state = "they are after masking" if masked else "they are"
    text = f"A {kind} was trained twice: once on the people as {state}, once on them as they are released."
    if known(utility.get("folds")) and known(utility.get("rows")):
        text += (
            f" Both then predicted the same people, whom neither had seen, in {count(utility['folds'])} rounds "
            f"that cover all {count(utility['rows'])} people. In each round the classes were formed anew."
        )
    if masked:
        text += " What the masking itself cost such a model is not measured."
    return text


def scores(metrics: Mapping[str, Any]) -> list[Score]:
    """Every score of a release, in the order of the manifest."""
    return [_score(name, one) for name, one in metrics.items()]


def headline(metrics: Mapping[str, Any]) -> Score | None:
    """The score that speaks for all; None where its difference was not measured."""
    name = next((one for one in HEADLINES if known(part(metrics, one, "difference").get("mean"))), None)
    return None if name is None else _score(name, metrics[name])


def _score(metric: str, comparison: Any) -> Score:
    name, meaning, form = METRICS.get(metric, (plain_name(metric).capitalize(), "", "plain"))
    before, after, difference = (part(comparison, when) for when in ("before", "after", "difference"))
    return Score(
        name=name,
        meaning=meaning,
        before=_estimate(before, form),
        after=_estimate(after, form),
        difference=_estimate(difference, form, change=True),
        sentence=_comparison(metric, name, before, after, difference, form),
    )


def _comparison(
    metric: str,
    name: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    difference: Mapping[str, Any],
    form: str,
) -> str:
    """One score in words."""
    mean, low, high = (difference.get(part) for part in ("mean", "low", "high"))
    start = f"{name} was {_level(before.get('mean'), form)} before and {_level(after.get('mean'), form)} after"
    if not known(mean):
        return f"{name}: the difference was not measured."
    if not (known(low) and known(high)):
        return f"{start}; how sure that difference is was not measured."
    interval = f"95\u00a0% interval {_interval(low, high, form, _change)}"
    if low <= 0 <= high:
        return f"{start}: no difference that can be told from chance ({interval})."
    worse = (mean > 0) == (metric in SMALLER_IS_BETTER)
    return f"{start}: {'a loss' if worse else 'a gain'} of {_change(abs(mean), form).removeprefix('+')} ({interval})."


def _estimate(estimate: Mapping[str, Any], form: str, change: bool = False) -> tuple[str, str]:
    write = _change if change else _level
    low, high = estimate.get("low"), estimate.get("high")
    interval = _interval(low, high, form, write) if known(low) and known(high) else ""
    return write(estimate.get("mean"), form), interval


def _interval(low: float, high: float, form: str, write: Callable[[Any, str], str]) -> str:
    """Both ends, with their unit once."""
    first, unit = write(low, form), re.search(r"\u00a0%$| points$", write(high, form))
    return f"{first.removesuffix(unit.group() if unit else '')} to {write(high, form)}"


def _level(value: Any, form: str) -> str:
    if not known(value):
        return NOT_MEASURED
    return f"{minus(f'{100 * value:.2f}')}\u00a0%" if form == "share" else minus(_digits(value))


def _change(value: Any, form: str) -> str:
    if not known(value):
        return NOT_MEASURED
    text = f"{100 * value:+.2f}" if form == "share" else _digits(value, "+")
    text = minus(text if text.strip("+-0.") else text.removeprefix("+"))
    return f"{text} points" if form == "share" else text


def _digits(value: float, sign: str = "") -> str:
    return (
        f"{value:{sign},.0f}"
        if abs(value) >= 10_000
        else f"{value:{sign}.4f}"
        if abs(value) < 10
        else f"{value:{sign}.2f}"
    )
