"""All noise of differential privacy is drawn here, by OpenDP, and nowhere else.

Inputs and outputs are whole numbers: floats have gaps whose pattern reveals the number to which the noise was added
(Mironov, CCS 2012). Every function gets the sensitivity and a share of the budget, builds the mechanism, and asks
OpenDP for its cost at that sensitivity. A cost above the share is a mistake in this program, and nothing is drawn. The
random bits come from the system, never from a seed: whoever knows a seed can remove the noise.

References: the discrete Gaussian is that of Canonne, Kamath and Steinke (NeurIPS 2020), thresholds for groups that
nobody listed are those of Rogers (arXiv 2309.09170), the noisy maximum is the exponential mechanism of McSherry and
Talwar.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from anon_pipeline.differential_privacy.accounting import ATTO, NANO
from anon_pipeline.errors import InputError

IntArray = npt.NDArray[np.int64]
Group = TypeVar("Group", bound=Hashable)

#: Counts and sums beyond this could overflow during the computation; with noise of this scale a number is useless.
LARGEST = 2**60
LARGEST_SCALE = 2.0**50


@cache
def _library() -> Any:
    try:
        import opendp.prelude as library
    except ImportError:
        raise InputError("differential privacy needs a library: `pip install 'anon-pipeline[dp]'`") from None
    library.enable_features("contrib")
    return library


def require_library() -> None:
    """Check that OpenDP is installed before anything is reserved.

    Raises
    ------
    InputError
        Where the extra `dp` is not installed.
    """
    _library()


def gaussian_scale(squared_sensitivity: int, nano_rho: int) -> float:
    """The standard deviation of Gaussian noise that costs no more than the share at this squared L2 sensitivity."""
    if squared_sensitivity < 1 or nano_rho < 1:
        raise ValueError("sensitivity and share are at least 1")
    scale = math.sqrt(squared_sensitivity * NANO / (2 * nano_rho)) * (1 + 1e-12)
    if scale > LARGEST_SCALE:
        raise InputError("the share of the budget is too small for bounds as wide as these; spend more, or bound less")
    return scale


def gaussian_counts(counts: npt.ArrayLike, squared_sensitivity: int, nano_rho: int) -> IntArray:
    """Whole numbers with discrete Gaussian noise; satisfies rho-zCDP.

    Parameters
    ----------
    counts : shape (n,), of at most 2^60 in absolute value; they can be sums of fixed-point numbers too
    squared_sensitivity : the largest squared L2 distance between the vectors of two neighbouring tables
    nano_rho : the share of the budget that this whole vector may cost
    """
    values = _whole(counts)
    if not len(values):
        return values
    library = _library()
    scale = gaussian_scale(squared_sensitivity, nano_rho)
    mechanism = library.m.make_gaussian(
        library.vector_domain(library.atom_domain(T="i64")), library.l2_distance(T="f64"), scale=scale
    )
    _assert_within(mechanism.map(_root_up(squared_sensitivity)), nano_rho)
    return np.asarray(mechanism(values.tolist()), dtype=np.int64)


def noisy_max_scale(sensitivity: int, nano_rho: int, monotonic: bool = False) -> float:
    """The scale of Gumbel noise at which the choice of the maximum costs no more than the share.

    The choice is bounded-range (Dong et al., ICML 2020): range r costs r^2 / 8 of rho.
    """
    reach = sensitivity if monotonic else 2 * sensitivity
    return max(reach / math.sqrt(8 * nano_rho / NANO) * (1 + 1e-12), 1e-9)


def noisy_max(scores: npt.ArrayLike, sensitivity: int, nano_rho: int, monotonic: bool = False) -> int:
    """The position of approximately the largest score (exponential mechanism); satisfies rho-zCDP.

    Parameters
    ----------
    scores : whole numbers, shape (n,); rounding a score before would double its sensitivity
    sensitivity : how much the score of one candidate may differ between neighbouring tables
    monotonic : whether one more person moves all scores in one direction only
    """
    values = _whole(scores)
    mechanism, rho = _noisy_max(sensitivity, noisy_max_scale(sensitivity, nano_rho, monotonic), monotonic)
    _assert_within(rho, nano_rho)
    return int(mechanism(values.tolist()))


@lru_cache(maxsize=64)
def _noisy_max(sensitivity: int, scale: float, monotonic: bool) -> tuple[Any, float]:
    """The mechanism, which holds no state, and what a draw from it costs; to make it takes longer than to draw."""
    library = _library()
    mechanism = library.m.make_noisy_max(
        library.vector_domain(library.atom_domain(T="i64")),
        library.linf_distance(T="i64", monotonic=monotonic),
        library.zero_concentrated_divergence(),
        scale=scale,
    )
    return mechanism, mechanism.map(sensitivity)


def smallest_threshold(groups: int, rows: int, nano_rho: int, atto_delta: int) -> int:
    """The noisy count from which on groups that nobody listed are shown.

    Parameters
    ----------
    groups, rows : the largest number of groups of one person, and of their rows in each
    nano_rho, atto_delta : the share of rho, and of the probability that a group of one person is shown
    """
    scale = gaussian_scale(groups * rows * rows, nano_rho)
    for threshold in range(rows + 1, rows + 64 * math.ceil(scale) + 64):
        if _threshold_costs(groups, rows, scale, threshold)[1] <= Fraction(atto_delta, ATTO):
            return threshold
    raise InputError("delta: is too small for a threshold; leave more of it to thresholds")


def noisy_groups(
    counts: Mapping[Group, int], groups: int, rows: int, nano_rho: int, atto_delta: int
) -> dict[Group, int]:
    """Noisy counts of groups that nobody listed beforehand; groups below the threshold are left out.

    Parameters
    ----------
    counts : rows per group, each at least 1
    groups, rows, nano_rho, atto_delta : as `smallest_threshold`
    """
    scale = gaussian_scale(groups * rows * rows, nano_rho)
    threshold = smallest_threshold(groups, rows, nano_rho, atto_delta)
    mechanism = _threshold_mechanism(scale, threshold)
    rho, delta = mechanism.map(_distance(groups, rows))
    _assert_within(rho, nano_rho)
    if Fraction(delta) > Fraction(atto_delta, ATTO):
        raise AssertionError("a threshold costs more delta than its share")
    # OpenDP gets numbers in place of the keys; only the keys of groups that it returns are looked up.
    keys = list(counts)
    values = _whole([counts[key] for key in keys])
    released = mechanism(dict(enumerate(values.tolist())))
    return {keys[number]: int(count) for number, count in sorted(released.items())}


def quantile_scores(histogram: npt.ArrayLike, part: int, whole: int) -> IntArray:
    """How well each value of a grid serves as the quantile part/whole, in whole numbers, 0 at best, shape (n,).

    A score is minus the distance of a value's rows from the quantile, in parts of a row: 0 where it is among them, else
    whole * below - part * rows or that up to the next value, whichever is nearer to 0. (The difference of the rows
    below and above a value does not do: of a column of which 55 % are 0, it prefers all values that nobody has above 0
    to 0.) One more row moves a score by at most max(part, whole - part).
    """
    edges = _from_quantile(histogram, part, whole)
    scores: IntArray = -np.maximum(0, np.maximum(edges[:-1], -edges[1:]))
    return scores


def _from_quantile(histogram: npt.ArrayLike, part: int, whole: int) -> IntArray:
    """Where the rows of each value begin, and those of the last one end, counted from the quantile, shape (n + 1,)."""
    rows = _whole(histogram)
    edges: IntArray = whole * np.concatenate(([0], np.cumsum(rows))) - part * rows.sum()
    return edges


def quantile(histogram: npt.ArrayLike, part: int, whole: int, rows: int, nano_rho: int) -> int:
    """The position of approximately the quantile part/whole on a public grid; satisfies rho-zCDP.

    Parameters
    ----------
    histogram : rows per value of the grid, shape (n,)
    rows : the largest number of rows of a person that are counted
    """
    return noisy_max(quantile_scores(histogram, part, whole), rows * max(part, whole - part), nano_rho)


def quantile_end_scores(histogram: npt.ArrayLike, part: int, whole: int, off: int) -> IntArray:
    """How well each value of a grid serves as an end of an interval of the quantile part/whole, shape (n + 1,).

    Rows are counted from the quantile, in parts of a row: the value at position i covers the range from
    whole * below(i) - part * rows up to where the next value begins. A score is minus the distance from this range to
    `off`, so it is 0 for the value that covers `off`. One more row moves all these numbers by at most
    max(part, whole - part). Where `off` is below 0, the first score belongs to the range below the grid; otherwise the
    last score belongs to the range above it. So some score is 0 however few rows there are.
    """
    edges = _from_quantile(histogram, part, whole)
    far = np.array([np.iinfo(np.int64).max // 4])
    edges = np.concatenate((-far, edges)) if off < 0 else np.concatenate((edges, far))
    scores: IntArray = -np.maximum(0, np.maximum(edges[:-1] - off, off - edges[1:]))
    return scores


def quantile_end(histogram: npt.ArrayLike, part: int, whole: int, rows: int, nano_rho: int, off: int) -> int:
    """The position of a value about `off` before (below 0) or after the quantile part/whole; satisfies rho-zCDP."""
    scores = quantile_end_scores(histogram, part, whole, off)
    chosen = noisy_max(scores, rows * max(part, whole - part), nano_rho)
    return max(0, chosen - 1) if off < 0 else min(chosen, len(scores) - 2)


def _threshold_mechanism(scale: float, threshold: int) -> Any:
    library = _library()
    return library.m.make_gaussian_threshold(
        library.map_domain(library.atom_domain(T="i64"), library.atom_domain(T="i64")),
        library.l02inf_distance(library.absolute_distance(T="f64")),
        scale=scale,
        threshold=threshold,
    )


@cache
def _threshold_costs(groups: int, rows: int, scale: float, threshold: int) -> tuple[float, Fraction]:
    rho, delta = _threshold_mechanism(scale, threshold).map(_distance(groups, rows))
    return float(rho), Fraction(delta)


def _distance(groups: int, rows: int) -> tuple[int, float, float]:
    return groups, _root_up(groups * rows * rows), float(rows)


def _root_up(square: int) -> float:
    """The square root of a whole number, rounded up."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)


def _whole(values: npt.ArrayLike | Sequence[int]) -> IntArray:
    array = np.asarray(values)
    if array.size and (array.dtype.kind not in "iu" or int(np.abs(array).max()) > LARGEST):
        raise ValueError("noise is added to whole numbers of at most 2^60 in size")
    return array.astype(np.int64).reshape(-1)


def _assert_within(rho: float, nano_rho: int) -> None:
    if Fraction(rho) > Fraction(nano_rho, NANO):
        raise AssertionError("a mechanism costs more than its share")
