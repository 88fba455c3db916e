"""The measures of all privacy models for a sensitive column without demands: each the worst over all classes."""

from __future__ import annotations

from anon_pipeline.privacy.alpha_k import top_share
from anon_pipeline.privacy.beta_likeness import largest_gain
from anon_pipeline.privacy.delta_disclosure import largest_disclosure
from anon_pipeline.privacy.l_diversity import entropy_l, recursive_c
from anon_pipeline.privacy.missing import as_the_most_frequent, with_and_without
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.privacy.t_closeness import distance_to_table
from anon_pipeline.privacy.value_counts import ValueCounts


def describe(classes: ClassStatistics) -> dict[str, dict[str, float]]:
    """The measures of every sensitive column, by column and name.

    `distinct_l`, `entropy_l` : fewest values and least exp(H) in a class
    `recursive_c` : (c,2)-diversity holds for every c above it; infinite if a class has one value
    `alpha` : largest share of a value in a class, the chance of the best guess
    `t` : largest earth mover's distance from the table, ordered for numbers and dates, else equal
    `beta` : largest relative gain of a value
    `delta` : largest |ln(q_s / p_s)|; infinite if a class lacks a value of the table
    `homogeneity` : share of people in classes with a single value

    A missing value counts as the value that is worst for the people: see `anon_pipeline.privacy.missing`.
    """
    return {column: _describe(histogram) for column, histogram in classes.sensitive.items()}


def _describe(histogram: Histogram) -> dict[str, float]:
    counts, readings = ValueCounts.within(as_the_most_frequent(histogram)), with_and_without(histogram)
    compared = [ValueCounts.compared(reading) for reading in readings]
    return {
        "distinct_l": float(counts.distinct.min()),
        "entropy_l": float(entropy_l(counts).min()),
        "recursive_c": float(recursive_c(counts, 2).max()),
        "alpha": float(top_share(counts).max()),
        "t": max(float(distance_to_table(reading).distance.max()) for reading in readings),
        "beta": max(float(largest_gain(value_counts).max()) for value_counts in compared),
        "delta": max(float(largest_disclosure(value_counts).max()) for value_counts in compared),
        "homogeneity": float(counts.sizes[counts.distinct == 1].sum() / counts.sizes.sum()),
    }
