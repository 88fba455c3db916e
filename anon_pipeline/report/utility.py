"""The cost of a release in accuracy, for all models and groups of people, in words and numbers as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anon_pipeline.report.charts import NOT_MEASURED, count, known, minus
from anon_pipeline.report.wording import part, plain_name

#: The name, the explanation and the format of each score.
METRICS = {
    "accuracy": ("Accuracy", "people predicted rightly", "share"),
    "balanced_accuracy": ("Balanced accuracy", "the same, every value of the target counting alike", "share"),
    "roc_auc": ("ROC AUC", "0.5 is guessing, 1 is perfect ranking", "plain"),
    "r2": ("R\u00b2", "share of the target's variance explained", "plain"),
    "mae": ("Mean absolute error", "in units of the target, of dates in days; smaller is better", "error"),
    "calibration_error": ("Calibration error", "how far off a stated probability is; smaller is better", "share"),
    "bias": ("Calibration error", "how far off a stated number is, in units of the target, of dates in days", "error"),
}
SMALLER_IS_BETTER = {"mae", "calibration_error", "bias"}
HEADLINES = ("roc_auc", "accuracy", "r2")
#: Errors of numbers below this are told with more decimals: of a target such as a concentration all are small.
SMALL_ERROR = 0.001
#: The most groups that get a sentence.
MOST_SENTENCES = 3
#: The fewest folds for which a t interval over their scores is reliable.
ENOUGH = 5


@dataclass(frozen=True)
class Score:
    """One score before and after, in words and as cells of a table (value, interval)."""

    name: str
    meaning: str
    before: tuple[str, str]
    after: tuple[str, str]
    difference: tuple[str, str]
    sentence: str
    loss: float  # how much worse it is after; minus infinity if not measured


def intro(utility: Mapping[str, Any], masked: bool = False, missing: str | None = None) -> str:
    """The method of the scores; for a masked table, with the note that they exclude the cost of masking.

    `missing` names the target if people without one are released; they are not scored.
    """
    model = utility.get("model")
    kind = f"{plain_name(str(model))} model" if model else "model"
    state = "they are after masking" if masked else "they are"
    text = f"A {kind} was trained twice: once on the people as {state}, once on them as they are released."
    everybody = f"all {count(utility.get('rows'))} people"
    people = everybody if missing is None else f"{count(utility.get('rows'))} of the people whose {missing} is known"
    if known(utility.get("folds")) and known(utility.get("rows")):
        text += (
            f" Both then predicted the same people, whom neither had seen, in {count(utility['folds'])} rounds "
            f"that cover {people}. In each round the classes were formed anew."
        )
    if masked:
        text += " What the masking itself cost such a model is not measured."
    return text


def of_few_folds(utility: Mapping[str, Any]) -> str | None:
    """A caution about scores from fewer than `ENOUGH` folds; None if there were enough."""
    folds = utility.get("folds")
    if not known(folds) or folds >= ENOUGH:
        return None
    return (
        f"Accuracy was measured in {count(folds)} folds only: so few scores hardly say how far they scatter, and the "
        f"intervals are rough. {ENOUGH} folds or more tell more (utility.folds)."
    )


def scores(metrics: Mapping[str, Any]) -> list[Score]:
    """Every score of a release, in the order of the manifest."""
    return [_score(name, metric) for name, metric in metrics.items()]


@dataclass(frozen=True)
class Group:
    """A group of people, its size, the change of the accuracy for it, and the step in which that is stated."""

    name: str
    people: str
    change: str
    step: str
    loss: float  # minus infinity if not measured


def models(utility: Mapping[str, Any]) -> list[tuple[str, Score]]:
    """The headline score of each model, the guide's first; empty if there is only the guide."""
    further = part(utility, "further_models")
    measured = {str(utility.get("model")): part(utility, "metrics"), **further} if further else {}
    headlines = [(plain_name(name), headline(metrics)) for name, metrics in measured.items()]
    return [(name, score) for name, score in headlines if score is not None]


def calibration(utility: Mapping[str, Any]) -> list[str]:
    """Sentences on whether the model's predicted probabilities are right."""
    measured = part(utility, "calibration")
    if not measured:
        return []
    if utility.get("task") == "regression":
        meaning = "Where the model says 30, the mean of the truth should be 30."
    else:
        what = f"{measured['of']} has a chance of" if measured.get("of") is not None else "its own answer is right with"
        meaning = f"Where the model says that {what} 30\u00a0%, that should be so of 30 people in a hundred."
    score = _score("bias" if utility.get("task") == "regression" else "calibration_error", part(measured, "error"))
    return [meaning, score.sentence]


def groups(utility: Mapping[str, Any]) -> list[Group]:
    """The groups of people, those that lose most first."""
    subgroups = []
    for subgroup in utility.get("subgroups") or []:
        mean, step = part(subgroup, "metrics", "accuracy", "difference").get("mean"), subgroup.get("step")
        change = (
            f"{minus(f'{100 * mean:+g}')} points" if known(mean) and mean else "none" if known(mean) else NOT_MEASURED
        )
        stated = f"{100 * step:g} points" if known(step) else NOT_MEASURED
        name = f"{subgroup['column']}: {subgroup['value']}"
        subgroups.append(Group(name, count(subgroup["people"]), change, stated, -mean if known(mean) else -math.inf))
    return sorted(subgroups, key=lambda group: -group.loss)


def group_sentences(utility: Mapping[str, Any]) -> list[str]:
    """Sentences on groups for which the release works less well: an introduction, then the groups that lose most."""
    subgroups = groups(utility)
    if not subgroups:
        return []
    lost = [group for group in subgroups if group.loss > 0]
    number = f"Of {count(len(subgroups))} groups, each alike in one column,"
    hidden = "Changes are rounded, those of small groups more, so that a single person seldom shows in them."
    if not lost:
        return [f"{number} none loses accuracy by more than half of the step in which its change is stated. {hidden}"]
    counted = f"{count(len(lost))} lose{'s' * (len(lost) == 1)} accuracy, some perhaps by chance"
    sentences = [
        f"{group.name} ({group.people} people): accuracy {group.change}, in steps of {group.step}"
        for group in lost[:MOST_SENTENCES]
    ]
    return [f"{number} {counted}. {hidden} Those who lose most:", *sentences]


def headline(metrics: Mapping[str, Any]) -> Score | None:
    """The headline score; None if its difference was not measured."""
    name = next((score for score in HEADLINES if known(part(metrics, score, "difference").get("mean"))), None)
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
        loss=_loss(metric, difference.get("mean")),
    )


def _loss(metric: str, change: Any) -> float:
    if not known(change):
        return -math.inf
    return change if metric in SMALLER_IS_BETTER else -change


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
    """Both ends of an interval, with their unit once."""
    first, unit = write(low, form), re.search(r"\u00a0%$| points$", write(high, form))
    return f"{first.removesuffix(unit.group() if unit else '')} to {write(high, form)}"


def _level(value: Any, form: str) -> str:
    if not known(value):
        return NOT_MEASURED
    return f"{minus(f'{100 * value:.2f}')}\u00a0%" if form == "share" else minus(_digits(value, form))


def _change(value: Any, form: str) -> str:
    if not known(value):
        return NOT_MEASURED
    text = f"{100 * value:+.2f}" if form == "share" else _digits(value, form, "+")
    text = minus(text if text.strip("+-0.") else text.removeprefix("+"))
    return f"{text} points" if form == "share" else text


def small_error(value: float, sign: str = "") -> str:
    """A number near zero, but not zero, with four digits that say something."""
    return f"{value:{sign}.{3 - math.floor(math.log10(abs(value)))}f}"


def _digits(value: float, form: str, sign: str = "") -> str:
    if form == "error" and 0 < abs(value) < SMALL_ERROR:
        return small_error(value, sign)
    return (
        f"{value:{sign},.0f}"
        if abs(value) >= 10_000
        else f"{value:{sign}.4f}"
        if abs(value) < 10
        else f"{value:{sign}.2f}"
    )
