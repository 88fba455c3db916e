"""Scores of predictions against the truth, and intervals for their mean over folds. Plain arithmetic on arrays.

A score that is not defined (an AUC where a class is missing) is None, and every mean with it is None too, so that it
never looks like a valid number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray


@dataclass(frozen=True)
class Estimate:
    """A score over the folds: the mean with its 95 % interval, and the value in each fold. None: not defined."""

    mean: float | None
    low: float | None
    high: float | None
    per_fold: tuple[float | None, ...]


@dataclass(frozen=True)
class Comparison:
    """One score: on the raw table, on the anonymized one, and the paired difference after - before."""

    before: Estimate
    after: Estimate
    difference: Estimate


@dataclass(frozen=True)
class Scale:
    """A transformation of the possible values of a score, low < score < high, to the whole line; with its slope."""

    low: float
    high: float
    to_line: Callable[[float], float]
    from_line: Callable[[float], float]
    slope: Callable[[float], float]


def _exp(line: float) -> float:
    return math.exp(min(line, 700.0))  # beyond it a float has no number


def _share(line: float) -> float:
    return 1 / (1 + _exp(-line))


#: Shares on the scale of log odds, and differences of shares.
SHARE = Scale(0, 1, lambda x: math.log(x / (1 - x)), _share, lambda x: 1 / (x * (1 - x)))
DIFFERENCE = Scale(-1, 1, math.atanh, math.tanh, lambda x: 1 / (1 - x * x))
#: Errors on the scale of logarithms, and scores of at most 1 on that of the logarithm of 1 - score.
ERROR = Scale(0, math.inf, math.log, _exp, lambda x: 1 / x)
AT_MOST_ONE = Scale(-math.inf, 1, lambda x: -math.log(1 - x), lambda y: 1 - _exp(-y), lambda x: 1 / (1 - x))

#: The scale of each score for its interval, and the scale of its difference.
SCALES: dict[str, tuple[Scale, Scale | None]] = {
    "accuracy": (SHARE, DIFFERENCE),
    "balanced_accuracy": (SHARE, DIFFERENCE),
    "roc_auc": (SHARE, DIFFERENCE),
    "calibration_error": (SHARE, DIFFERENCE),
    "calibration_error_of_numbers": (ERROR, None),
    "r2": (AT_MOST_ONE, None),
    "mae": (ERROR, None),
}


def compared(before: Sequence[float | None], after: Sequence[float | None], score: str) -> Comparison:
    """The comparison of a score, by its name in `SCALES`, that was computed in each fold before and after."""
    paired = [difference(then, first) for first, then in zip(before, after, strict=True)]
    scale, of_difference = SCALES[score]
    return Comparison(estimate(before, scale), estimate(after, scale), estimate(paired, of_difference))


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's predictions for some people, and the truth.

    Attributes
    ----------
    truth, predicted
        Labels or numbers, shape (n,).
    probabilities
        Shape (n, c), a column per class; None for a regression, and where the model gives none.
    """

    truth: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    probabilities: FloatArray | None

    def scores(self, classes: npt.NDArray[np.object_] | None) -> dict[str, float | None]:
        """All scores of the predictions; `classes` is None for a regression."""
        if classes is None:
            return regression_scores(self.truth, self.predicted)
        return classification_scores(self.truth, self.predicted, self.probabilities, classes)

    def of(self, rows: npt.NDArray[np.bool_]) -> Answers:
        """The answers for some of these people, a mask of shape (n,)."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return Answers(self.truth[rows], self.predicted[rows], probabilities)


def estimate(per_fold: Sequence[float | None], scale: Scale | None = None) -> Estimate:
    """The mean of one score over the J folds of one cross-validation, with a corrected t interval.

    The training parts of the folds overlap, so their scores vary together and the plain variance s2 / J of the mean
    is too small. Nadeau and Bengio ("Inference for the Generalization Error", Machine Learning 52, 2003) replace it by
    (1/J + n_test/n_train) s2, where s2 is the sample variance (divisor J - 1). In J folds n_test/n_train = 1/(J - 1).
    The interval is mean +- t(.975, J - 1) times the root of that. Scores with limits are first put on a scale without
    limits (the delta method), so that no interval holds impossible values. With two or three folds it is very wide, as
    it should be.
    """
    from scipy.special import stdtrit

    values = tuple(None if value is None or not math.isfinite(value) else float(value) for value in per_fold)
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return Estimate(None, None, None, values)
    folds = len(known)
    mean = math.fsum(known) / folds
    if folds == 1:
        return Estimate(mean, None, None, values)
    variance = math.fsum((value - mean) ** 2 for value in known) / (folds - 1)
    reach = float(stdtrit(folds - 1, 0.975)) * math.sqrt((1 / folds + 1 / (folds - 1)) * variance)
    if scale is None or reach == 0 or not scale.low < mean < scale.high:
        return Estimate(mean, mean - reach, mean + reach, values)
    middle, reach = scale.to_line(mean), reach * scale.slope(mean)
    return Estimate(mean, scale.from_line(middle - reach), scale.from_line(middle + reach), values)


def classification_scores(
    truth: npt.NDArray[np.object_],
    predicted: npt.NDArray[np.object_],
    probabilities: FloatArray | None,
    classes: npt.NDArray[np.object_],
) -> dict[str, float | None]:
    """Accuracy, balanced accuracy (mean recall over the classes present) and ROC AUC.

    Parameters
    ----------
    truth, predicted
        Labels, shape (n,).
    probabilities
        Shape (n, c), a column per class; None where the model has none, and then the AUC is None.
    classes
        Shape (c,), sorted. If there are two, the second is the positive class; if there are more, the AUC is the plain
        mean of one-versus-rest over the classes present.
    """
    hit = predicted == truth
    present = [column for column, label in enumerate(classes) if (truth == label).any()]
    recalls = [float(hit[truth == classes[column]].mean()) for column in present]
    auc = None
    if probabilities is not None and len(present) > 1:
        columns = [1] if len(classes) == 2 else present
        auc = float(np.mean([_auc(truth == classes[column], probabilities[:, column]) for column in columns]))
    return {"accuracy": float(hit.mean()), "balanced_accuracy": float(np.mean(recalls)), "roc_auc": auc}


def _auc(positive: npt.NDArray[np.bool_], score: FloatArray) -> float:
    """The share of pairs of a positive and a negative in which the positive scores higher; ties count half.

    Computed from ranks, like Mann and Whitney's U (J. A. Hanley and B. J. McNeil, Radiology 143, 1982). scikit-learn's
    function takes thirty times as long for hundreds of people, and there are hundreds of subgroups and folds.
    """
    from scipy.stats import rankdata

    ranks, positives = rankdata(score), int(positive.sum())
    higher = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    return higher / (positives * (len(positive) - positives))


def regression_scores(truth: FloatArray, predicted: FloatArray) -> dict[str, float | None]:
    """R2 (None where the truth does not vary, or so little that no float tells) and mean absolute error.

    Both arguments have the shape (n,).
    """
    error = truth - predicted
    spread = float(((truth - truth.mean()) ** 2).sum())
    varies = bool((truth != truth[0]).any()) and spread > 0
    return {"r2": 1 - float((error**2).sum()) / spread if varies else None, "mae": float(np.abs(error).mean())}


def difference(after: float | None, before: float | None) -> float | None:
    """after - before, where both are defined."""
    return None if after is None or before is None else after - before
