"""The calibration of a model: if it predicts 30 %, does the predicted class occur for 30 people in 100?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray
from anon_pipeline.learning.scores import Answers, Comparison, compared

#: The answers are put into so many groups of about equally many people.
BINS = 10


@dataclass(frozen=True)
class Reliability:
    """Groups of people by the model's prediction, in ascending order; every tuple has one entry per group.

    Attributes
    ----------
    people : number of people
    predicted : the mean prediction
    observed : the mean of the truth: the share of people for whom the prediction came true, or the mean number
    """

    people: tuple[int, ...]
    predicted: tuple[float, ...]
    observed: tuple[float, ...]


@dataclass(frozen=True)
class Calibration:
    """The model's predictions and the truth, before and after.

    Attributes
    ----------
    of : the value whose probability is predicted: the target's second value where it has two; None where the target has
        more values (the probability that the model's answer is right) or is a number (regression)
    before, after : the answers of all folds together
    error : the expected calibration error, fold by fold
    """

    of: str | None
    before: Reliability
    after: Reliability
    error: Comparison


def calibration(
    before: Sequence[Answers], after: Sequence[Answers], classes: npt.NDArray[np.object_] | None, smallest: int = 1
) -> Calibration | None:
    """Reliability in ten groups, and the error in each fold; None where there are no probabilities.

    Parameters
    ----------
    before, after : the answers in each fold, of the same people
    classes : the target's values, sorted; None for a regression
    smallest : fewest people in a group
    """
    if classes is not None and any(answer.probabilities is None for answer in (*before, *after)):
        return None
    pairs = [[_foretold(answer, classes) for answer in answers] for answers in (before, after)]
    errors = [[error_of(reliability(*foretold, smallest)) for foretold in answers] for answers in pairs]
    kind = "calibration_error" if classes is not None else "calibration_error_of_numbers"
    whole = [tuple(np.concatenate(parts) for parts in zip(*answers, strict=True)) for answers in pairs]
    return Calibration(
        of=str(classes[1]) if classes is not None and len(classes) == 2 else None,
        before=reliability(whole[0][0], whole[0][1], smallest),
        after=reliability(whole[1][0], whole[1][1], smallest),
        error=compared(errors[0], errors[1], kind),
    )


def reliability(predicted: FloatArray, observed: FloatArray, smallest: int = 1) -> Reliability:
    """Ten groups of about equally many people, fewer where they would be smaller than `smallest`; shapes (n,).

    People with the same prediction are in the same group, so that their order decides nothing.
    """
    people = len(predicted)
    ascending = np.sort(predicted)
    # By the middle place among all: equal answers go to the group in which most of them are.
    first, last = np.searchsorted(ascending, predicted, "left"), np.searchsorted(ascending, predicted, "right")
    group = (first + last - 1) * BINS // (2 * people)
    counts = np.bincount(group, minlength=BINS)
    merged = _merged(counts, smallest)[group]
    sizes = np.bincount(merged)
    return Reliability(
        people=tuple(sizes.tolist()),
        predicted=tuple((np.bincount(merged, weights=predicted) / sizes).tolist()),
        observed=tuple((np.bincount(merged, weights=observed) / sizes).tolist()),
    )


def error_of(reliability: Reliability) -> float:
    """The expected calibration error: the mean over people of |predicted - observed| of their group.

    Naeini, Cooper, Hauskrecht: Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015; here the
    groups have equally many people instead of equal widths. A perfect model has a small error too, by chance.
    """
    people, predicted, observed = (
        np.array(figures) for figures in (reliability.people, reliability.predicted, reliability.observed)
    )
    return float((people * np.abs(predicted - observed)).sum() / people.sum())


def _foretold(answers: Answers, classes: npt.NDArray[np.object_] | None) -> tuple[FloatArray, FloatArray]:
    """The prediction for each person as a number, and the truth, shape (n,) each."""
    truth: npt.NDArray[Any] = answers.truth
    if classes is None or answers.probabilities is None:
        return answers.predicted.astype(np.float64), truth.astype(np.float64)
    if len(classes) == 2:
        return answers.probabilities[:, 1], (truth == classes[1]).astype(np.float64)
    likeliest = answers.probabilities.argmax(axis=1)
    return answers.probabilities.max(axis=1), (truth == classes[likeliest]).astype(np.float64)


def _merged(counts: npt.NDArray[np.int64], smallest: int) -> npt.NDArray[np.int64]:
    """The new number of each group; groups are merged with the next until each has `smallest` people."""
    number, gathered = 0, 0
    merged = np.zeros(len(counts), dtype=np.int64)
    for place, count in enumerate(counts):
        merged[place] = number
        gathered += int(count)
        if gathered >= max(smallest, 1):
            number, gathered = number + 1, 0
    return np.minimum(merged, max(number - 1, 0))  # people left over at the end join the last group
