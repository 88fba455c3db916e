"""The risk that a released record is re-identified, or its sensitive value guessed: exact, from class sizes alone.

Estimates about a population without a known table belong in `uniqueness`. Demands that can refuse a release are the
privacy models beside this module. `dataclasses.asdict` of the results here is ready for JSON.

Risks are those of K. El Emam: Guide to the De-Identification of Personal Health Information (2013). A record's risk is
the probability of picking the right person among all who look alike. It is 1/f_j for a prosecutor, who knows that the
person is in the table, and 1/F_j for a journalist, who does not. A marketer wants to match many people, no matter whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.missing import as_the_most_frequent, is_open
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram

#: Classes of 20, 11, 5 and 3: the customary least cell sizes, and 0.09 as the European Medicines Agency and Health
#: Canada ask of published trial data.
THRESHOLDS = (0.05, 0.09, 0.2, 0.33)

#: The smallest size in each bucket of class sizes, wherever people are counted by the size of their class.
BUCKETS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class ProsecutorRisk:
    """Attributes, all in [0, 1]: `max` and `mean` over records of 1/f_j; `share_above` of records by threshold."""

    max: float
    mean: float
    share_above: Mapping[str, float]


@dataclass(frozen=True)
class JournalistRisk:
    """Attributes, all in (0, 1]: `max` over records of 1/F_j; `mean` as El Emam defines it, see `journalist`."""

    max: float
    mean: float


@dataclass(frozen=True)
class ReidentificationRisk:
    """The risks of one table.

    Attributes
    ----------
    records : n
    classes : J
    unique_records : records alone in their class
    prosecutor, journalist, marketer : see the functions of these names; journalist is None without a population
    records_by_class_size : number of records in classes of each range of sizes, for a plot before and after
    """

    records: int
    classes: int
    unique_records: int
    prosecutor: ProsecutorRisk
    journalist: JournalistRisk | None
    marketer: float
    records_by_class_size: Mapping[str, int]


@dataclass(frozen=True)
class AttributeInference:
    """How well the values of one sensitive column can be guessed from membership in a class.

    Attributes
    ----------
    best_guess : mean over records of max q_s: how often the most frequent value of a person's class is the right one
    baseline : max p_s: how often the most frequent value of the table is, without looking at the class
    homogeneous : share of records in a class where everybody has the same value, where the guess is certain
    """

    best_guess: float
    baseline: float
    homogeneous: float


def prosecutor(sizes: IntArray, thresholds: Sequence[float] = THRESHOLDS) -> ProsecutorRisk:
    """Risk of a person known to be in the table: 1/f_j.

    Parameters
    ----------
    sizes : integers of shape (J,), the f_j >= 1; an empty table has no risk
    thresholds : in (0, 1]; a record counts when 1/f_j is strictly above. 0.2 is a fifth, so a class of 5 is not above.
    """
    n = _people(sizes)
    if n == 0:
        return ProsecutorRisk(0.0, 0.0, {str(threshold): 0.0 for threshold in thresholds})
    above = {}
    for threshold in thresholds:
        limit = 1 / Fraction(str(threshold))  # the decimal as written: 1 / 0.07 in floats is not 100/7
        largest = -(-limit.numerator // limit.denominator) - 1  # the largest f with f < 1 / threshold
        above[str(threshold)] = int(sizes[sizes <= largest].sum()) / n
    return ProsecutorRisk(max=1 / int(sizes.min()), mean=len(sizes) / n, share_above=above)


def journalist(sizes: IntArray, population: IntArray) -> JournalistRisk:
    """Risk of a person of the population who may or may not be in the table: 1/F_j.

    The mean is the larger of two figures. One is J / sum F_j, for an intruder who picks a person of the population and
    looks the person up in the table. The other is the mean of 1/F_j over records, for an intruder who picks a record
    and looks it up in the population.

    Parameters
    ----------
    sizes : integers of shape (J,), the f_j
    population : integers of shape (J,), the F_j >= 1: people of the population who match class j
    """
    n = _people(sizes)
    _check_population(sizes, population)
    if n == 0:
        return JournalistRisk(0.0, 0.0)
    from_population = len(sizes) / int(population.sum())
    return JournalistRisk(max=1 / int(population.min()), mean=max(from_population, marketer(sizes, population)))


def marketer(sizes: IntArray, population: IntArray | None = None) -> float:
    """Expected share of records matched rightly when all are matched: (1/n) sum f_j / F_j.

    Parameters
    ----------
    sizes : integers of shape (J,), the f_j
    population : integers of shape (J,), the F_j >= 1; None where the table itself is the population, which gives J/n
    """
    n = _people(sizes)
    if population is not None:
        _check_population(sizes, population)
    if n == 0:
        return 0.0
    if population is None:
        return len(sizes) / n
    return float(np.sort(sizes / population).sum()) / n  # sorted: the same to the last bit in any order of classes


def records_by_class_size(sizes: IntArray) -> dict[str, int]:
    """Number of records in classes of 1, 2, 3-4, 5-9, 10-19, 20-49, 50-99, 100-199, 200-499, 500-999, 1000+."""
    _people(sizes)
    labels = []
    for low, following in zip(BUCKETS, (*BUCKETS[1:], None), strict=True):
        if following is None:
            labels.append(f"{low}+")
        else:
            labels.append(str(low) if following == low + 1 else f"{low}-{following - 1}")
    bucket = np.searchsorted(BUCKETS, sizes, side="right") - 1
    records = np.zeros(len(BUCKETS), dtype=np.int64)  # bincount's weights are floats, which end at 2^53
    np.add.at(records, bucket, sizes)
    return dict(zip(labels, records.tolist(), strict=True))


def reidentification_risk(classes: ClassStatistics) -> ReidentificationRisk:
    """All risks of a table at once; the journalist's only where `classes.population` is known."""
    sizes, population = classes.sizes, classes.population
    return ReidentificationRisk(
        records=_people(sizes),
        classes=len(sizes),
        unique_records=int((sizes == 1).sum()),
        prosecutor=prosecutor(sizes),
        journalist=None if population is None else journalist(sizes, population),
        marketer=marketer(sizes, population),
        records_by_class_size=records_by_class_size(sizes),
    )


def attribute_inference(classes: ClassStatistics) -> dict[str, AttributeInference]:
    """How well a person's sensitive values can be guessed from the class, by column.

    A missing value counts as the most frequent one of its class, and for the baseline of the table.
    """
    n = _people(classes.sizes)
    inferred = {}
    for column, written in classes.sensitive.items():
        histogram = as_the_most_frequent(written)
        if n == 0:
            inferred[column] = AttributeInference(0.0, 0.0, 0.0)
            continue
        most = np.asarray(histogram.counts.max(axis=1).toarray(), dtype=np.int64).ravel()
        inferred[column] = AttributeInference(
            best_guess=int(most.sum()) / n,  # sum_j f_j max_s q_js = sum_j max_s n_js: no rounding before the end
            baseline=_most_frequent(written) / n,
            homogeneous=int(classes.sizes[most == classes.sizes].sum()) / n,
        )
    return inferred


def _most_frequent(histogram: Histogram) -> int:
    """People of the table with its most frequent value, the missing among them."""
    total = histogram.total
    return int(total[0] + total[1:].max(initial=0) if is_open(histogram) else total.max())


def _people(sizes: IntArray) -> int:
    """n; a size below 1 is a mistake in earlier code."""
    if len(sizes) and int(sizes.min()) < 1:
        raise ValueError("every class size must be at least 1")
    return int(sizes.sum())


def _check_population(sizes: IntArray, population: IntArray) -> None:
    if len(population) != len(sizes):
        raise ValueError(f"{len(sizes)} classes, but population counts for {len(population)}")
    if len(population) and int(population.min()) < 1:
        raise ValueError("a released class matches nobody in the population: its table does not hold this sample")
