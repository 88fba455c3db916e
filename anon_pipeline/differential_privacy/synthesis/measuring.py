"""Measuring people for a synthetic table, with noise and private choices. Only this module sees people.

First every column is counted together with the targets. Then each round fits a model to the counts so far and computes
the counts that the model expects of each pair of columns with the targets. The pair with the largest error is chosen
(exponential mechanism) and counted. The choice by the error of the current model is that of AIM (R. McKenna,
B. Mullins, D. Sheldon and G. Miklau, PVLDB 15(11), 2022). Here the targets are part of every count, so that the
synthetic table keeps what a model can learn about them. The model is kept small, so that a table of forty thousand
people takes seconds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import IntArray
from anon_pipeline.differential_privacy import mechanisms
from anon_pipeline.differential_privacy.accounting import NANO
from anon_pipeline.differential_privacy.synthesis import estimation
from anon_pipeline.differential_privacy.synthesis.coded_table import CodedTable
from anon_pipeline.differential_privacy.synthesis.estimation import Model, NoisyTable
from anon_pipeline.differential_privacy.synthesis.junction_tree import Clique, JunctionTree
from anon_pipeline.errors import InputError

#: Shares of the budget for the first counts, and for the choices of the next counts.
FIRST, CHOOSING = 0.3, 0.11
#: All targets together are part of every count as long as they have at most this many combinations.
MOST_TARGET_CELLS = 64
#: With more combinations of the targets than this, pairs are candidates without the targets too.
SMALL_TARGET = 8
#: Values whose noisy count is below this many standard deviations of the noise are counted together.
RARE = 1.5


@dataclass(frozen=True)
class Settings:
    """The cost and the columns of a measurement: public, and fixed before anything is read.

    Attributes
    ----------
    targets : places of the columns that others are to predict; empty where there is no target
    nano_rho : billionths of rho that it costs in all
    rows : the largest number of rows of one protected unit that count
    rounds : the number of pairs that are chosen and counted
    cells : the largest number of entries of the model's tables
    people : the public number of rows; None where it is noisy
    """

    targets: Clique
    nano_rho: int
    rows: int
    rounds: int
    cells: int
    people: int | None = None


@dataclass(frozen=True)
class Mechanism:
    """A mechanism whose noise was drawn, for the manifest."""

    measures: Clique | None  # None for a choice
    scale: float
    nano_rho: int


@dataclass(frozen=True)
class Measurements:
    """All that later steps know of people.

    Attributes
    ----------
    first : noisy counts over all values, in the order in which they were measured
    codes : per column the code of each value in `later`; rare values share a code
    later : noisy counts over those codes
    mechanisms : in the order in which noise was drawn
    """

    first: tuple[NoisyTable, ...]
    codes: tuple[IntArray, ...]
    later: tuple[NoisyTable, ...]
    mechanisms: tuple[Mechanism, ...]

    @property
    def nano_rho(self) -> int:
        return sum(mechanism.nano_rho for mechanism in self.mechanisms)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column in `later`."""
        return tuple(int(mapping.max()) + 1 for mapping in self.codes)

    @property
    def tables(self) -> list[NoisyTable]:
        """All noisy tables, over the codes of `later`."""
        return [*(merged(table, self.codes) for table in self.first), *self.later]


def first_sets(sizes: Sequence[int], targets: Clique) -> list[Clique]:
    """The first counts: every column with all targets, or with each target where all have too many combinations."""
    if not targets:
        return [(column,) for column in range(len(sizes))]
    others = [column for column in range(len(sizes)) if column not in targets]
    cores = _cores(sizes, targets)
    sets = [tuple(sorted({column, *core})) for column in others for core in cores]
    return sets or [tuple(sorted(core)) for core in cores]


def candidates(sizes: Sequence[int], targets: Clique) -> list[Clique]:
    """The pairs that may be counted, with the targets; where the targets have many values, also without them."""
    others = [column for column in range(len(sizes)) if column not in targets]
    pairs = list(itertools.combinations(others, 2))
    cores = _cores(sizes, targets) if targets else []
    found = [tuple(sorted({*pair, *core})) for pair in pairs for core in cores]
    if not cores or any(math.prod(sizes[column] for column in core) > SMALL_TARGET for core in cores):
        found += pairs
    if len(cores) > 1:
        found += list(itertools.combinations(targets, 2))
    return list(dict.fromkeys(found))


def _cores(sizes: Sequence[int], targets: Clique) -> list[Clique]:
    together = math.prod(sizes[target] for target in targets)
    return [tuple(sorted(targets))] if together <= MOST_TARGET_CELLS else [(target,) for target in targets]


def _of_a_round(settings: Settings, left: int, rounds: int) -> tuple[int, int]:
    """The budget for choosing and for counting a set, if so many are to be counted."""
    choosing = math.floor(settings.nano_rho * CHOOSING) // max(1, rounds)
    return choosing, left // max(1, rounds) - choosing


def measure(table: CodedTable, settings: Settings) -> Measurements:
    """Count a table of people with noise; satisfies rho-zCDP with `settings.nano_rho`.

    Raises
    ------
    InputError
        Where the share of the budget is too small to be divided.
    """
    drawn: list[Mechanism] = []
    starts = first_sets(table.sizes, settings.targets)
    share = math.floor(settings.nano_rho * FIRST) // len(starts)
    left = settings.nano_rho - share * len(starts)
    if min(share, *_of_a_round(settings, left, settings.rounds)) < 1:
        raise InputError("synthesis: the share of the budget is too small to be divided into so many measurements")
    first = [_counted(table, clique, share, settings.rows, drawn) for clique in starts]
    codes = shared_codes(table.sizes, first, settings.targets)
    merged_table = table.recoded(codes)
    sizes, measured = merged_table.sizes, [merged(noisy, codes) for noisy in first]
    total = settings.people or estimation.total_of(measured)
    model = estimation.fit(sizes, measured, total)
    open_sets = {clique: merged_table.counts(clique) for clique in candidates(sizes, settings.targets)}
    later: list[NoisyTable] = []
    # Of few columns there are fewer sets than rounds: the budget is divided by what there is to count.
    rounds = min(settings.rounds, len(open_sets))
    choosing, counting = _of_a_round(settings, left, rounds)
    for _ in range(rounds):
        sets = [clique for clique in open_sets if _stays_small(sizes, measured, clique, settings.cells)]
        if not sets:
            break
        deviation = mechanisms.gaussian_scale(settings.rows**2, counting)
        scores = [_error(model, open_sets[clique], clique, deviation) for clique in sets]
        chosen = sets[_chosen(scores, settings.rows, choosing, drawn)]
        del open_sets[chosen]
        later.append(_counted(merged_table, chosen, counting, settings.rows, drawn))
        measured.append(later[-1])
        model = estimation.fit(sizes, measured, total, model, steps=60)
    found = Measurements(tuple(first), tuple(codes), tuple(later), tuple(drawn))
    if found.nano_rho > settings.nano_rho:
        raise AssertionError("a synthetic table costs more than its share")
    return found


def _counted(table: CodedTable, columns: Clique, nano_rho: int, rows: int, drawn: list[Mechanism]) -> NoisyTable:
    """Noisy counts of some columns; one unit moves all counts together by at most `rows`, so also in L2."""
    counts = table.counts(columns)
    noisy = mechanisms.gaussian_counts(counts.ravel(), rows**2, nano_rho).reshape(counts.shape)
    deviation = mechanisms.gaussian_scale(rows**2, nano_rho)
    drawn.append(Mechanism(columns, deviation, nano_rho))
    return NoisyTable(columns, noisy.astype(np.float64), np.full(counts.shape, deviation**2))


def _chosen(scores: Sequence[int], rows: int, nano_rho: int, drawn: list[Mechanism]) -> int:
    """The position of approximately the largest score; one unit moves each score by at most `rows`."""
    drawn.append(Mechanism(None, mechanisms.noisy_max_scale(rows, nano_rho), nano_rho))
    return mechanisms.noisy_max(np.array(scores), rows, nano_rho)


def _error(model: Model, counts: IntArray, columns: Clique, deviation: float) -> int:
    """The error of the model on some columns, in people, less the error that the noise of a count would cause.

    The model's counts are rounded first, so that the distance is a whole number and one more row moves it by one. A
    count that is not a finite number would break that, so it counts as 0, whatever the table holds.
    """
    expected = np.nan_to_num(np.rint(model.counts(columns)), nan=0.0, posinf=0.0, neginf=0.0).astype(np.int64)
    noise = math.ceil(math.sqrt(2 / math.pi) * deviation * counts.size)
    return int(np.abs(counts - expected).sum()) - noise


def _stays_small(sizes: Sequence[int], measured: Sequence[NoisyTable], clique: Clique, cells: int) -> bool:
    return JunctionTree.over(sizes, [*(table.columns for table in measured), clique]).cells <= cells


def shared_codes(sizes: Sequence[int], first: Sequence[NoisyTable], targets: Clique) -> list[IntArray]:
    """Codes in which the rare values of a column share one; of a target, only a rare missing value shares a code.

    A value is rare if its noisy count is below `RARE` standard deviations. Only noisy counts are used, so this costs
    nothing. The code of a missing value is the last one; where it alone is rare, it shares the commonest value's code.
    """
    codes = [np.arange(size, dtype=np.int64) for size in sizes]
    for column, size in enumerate(sizes):
        about = [table for table in first if column in table.columns]
        if not about:
            continue
        counts, variance = column_counts(about, column)
        rare = counts < RARE * np.sqrt(variance)
        if column in targets:
            rare[:-1] = False
        if 1 < rare.sum() < size:
            codes[column] = np.where(rare, size - rare.sum(), np.cumsum(~rare) - 1)
        elif rare[-1] and size > 1:
            codes[column][-1] = counts[:-1].argmax()
    return codes


def column_counts(tables: Sequence[NoisyTable], column: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy counts of one column and their variance: means over the tables that have it, by inverse variance."""
    sums, variances = [], []
    for table in tables:
        summed_out = tuple(place for place, other in enumerate(table.columns) if other != column)
        sums.append(table.counts.sum(axis=summed_out))
        variances.append(table.variance.sum(axis=summed_out))
    weights = 1 / np.array(variances)
    return (weights * np.array(sums)).sum(axis=0) / weights.sum(axis=0), 1 / weights.sum(axis=0)


def merged(table: NoisyTable, codes: Sequence[IntArray]) -> NoisyTable:
    """A table over shared codes: counts and variances of values that share a code are added."""
    counts, variance = table.counts, table.variance
    for axis, column in enumerate(table.columns):
        mapping = codes[column]
        if len(mapping) == mapping.max() + 1:
            continue
        indicator = np.zeros((int(mapping.max()) + 1, len(mapping)))
        indicator[mapping, np.arange(len(mapping))] = 1
        counts, variance = (
            np.moveaxis(np.tensordot(indicator, array, axes=(1, axis)), 0, axis) for array in (counts, variance)
        )
    return NoisyTable(table.columns, counts, variance)


def described(measurements: Measurements, names: Sequence[str]) -> list[dict[str, object]]:
    """The mechanisms, for the manifest: the columns that each measured, its noise and its cost."""
    return [
        {
            "measures": "which columns are counted next"
            if mechanism.measures is None
            else [names[column] for column in mechanism.measures],
            "mechanism": "exponential mechanism (Gumbel)" if mechanism.measures is None else "discrete Gaussian",
            "scale": mechanism.scale,
            "rho": mechanism.nano_rho / NANO,
        }
        for mechanism in measurements.mechanisms
    ]
