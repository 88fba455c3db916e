"""Privacy costs in one currency: whole billionths of rho, and for thresholds whole units of 1e-18 of delta.

rho is that of zero-concentrated differential privacy (Bun and Steinke, TCC 2016). The costs of all questions add up,
also where a question depends on earlier answers, as long as the total is fixed beforehand. Whole numbers add up
exactly, so that a hundred questions of a hundredth each are the whole budget and not a little more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from anon_pipeline.errors import InputError

NANO, ATTO = 10**9, 10**18
#: Beyond this rho (an epsilon of over 1,000) nothing is private any more, and numbers lose their meaning.
LARGEST_RHO = 1000 * NANO


@dataclass(frozen=True)
class Cost:
    """An amount that is spent or may be spent: billionths of rho, and units of 1e-18 of the delta of thresholds."""

    nano_rho: int
    atto_delta: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.nano_rho + other.nano_rho, self.atto_delta + other.atto_delta)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.nano_rho - other.nano_rho, self.atto_delta - other.atto_delta)

    def within(self, other: Cost) -> bool:
        """Whether both parts of this cost are at most those of the other."""
        return self.nano_rho <= other.nano_rho and self.atto_delta <= other.atto_delta


def nano_of(rho: float) -> int:
    """A stated rho in billionths, rounded down, so that no more is spent than was stated.

    Raises
    ------
    InputError
        Where nothing is left after rounding, or rho is far too large.
    """
    if not math.isfinite(rho) or rho <= 0:
        raise InputError(f"rho: {rho:g} is no positive number")
    nano = math.floor(Fraction(repr(float(rho))) * NANO)
    if not 1 <= nano <= LARGEST_RHO:
        raise InputError(f"rho: {rho:g} is not between 1e-9 and {LARGEST_RHO // NANO}")
    return nano


def atto_of(delta: float) -> int:
    """A stated delta in units of 1e-18, rounded down."""
    return math.floor(Fraction(repr(float(delta))) * ATTO)


def epsilon_of(nano_rho: int, delta: float) -> float:
    """The smallest epsilon for which rho implies (epsilon, delta), rounded up in its last digits.

    The minimum over alpha > 1 of alpha rho + (ln(1/delta) + (alpha - 1) ln(1 - 1/alpha) - ln alpha) / (alpha - 1)
    (Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12), which is convex near its minimum.
    """
    if nano_rho == 0:
        return 0.0
    rho = nano_rho / NANO

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        alpha = 1 + excess
        return alpha * rho + (-math.log(delta) - math.log(alpha)) / excess + math.log1p(-1 / alpha)

    # Every alpha gives a true bound, so a search that stops early costs a digit and never the guarantee.
    grid = [-9 + step * 0.25 for step in range(140)]
    best = min(grid, key=at)
    low, high = best - 0.25, best + 0.25
    for _ in range(120):
        third = (high - low) / 3
        if at(low + third) <= at(high - third):
            high -= third
        else:
            low += third
    return max(0.0, min(at(best), at((low + high) / 2)) * (1 + 1e-12))


@cache
def nano_for(epsilon: float, delta: float) -> int:
    """The largest rho, in billionths, that implies (epsilon, delta).

    Raises
    ------
    InputError
        Where epsilon is not positive, or so small or large that no rho in billionths corresponds to it.
    """
    if not math.isfinite(epsilon) or epsilon <= 0:
        raise InputError(f"epsilon: {epsilon:g} is no positive number")
    low, high = 0, LARGEST_RHO
    if epsilon_of(high, delta) < epsilon:
        raise InputError(f"epsilon: {epsilon:g} protects nobody; write one of at most 10")
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_of(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    if low == 0:
        raise InputError(f"epsilon: {epsilon:g} is too small to answer anything")
    return low


def split(nano_rho: int, parts: int) -> list[int]:
    """Equal shares of a cost, fixed beforehand; the remainder of the division is left unspent."""
    return [nano_rho // parts] * parts
