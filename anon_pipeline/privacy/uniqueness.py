"""Estimates from a sample of how many people are unique in the whole population: four published estimators.

Risks from a known population table are exact and belong in `risk`. Everything here works on the frequencies of class
sizes (at most sqrt(2n) distinct ones) and never on people, so a hundred million people take no longer than a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import gammaln, psi

from anon_pipeline.arrays import FloatArray, IntArray

#: From this argument on the asymptotic series of digamma and log-gamma are exact to the last bit of a float.
ASYMPTOTIC = 100.0
#: beta of the slide negative binomial is sought between 1 / (1 + exp(36)) and 1 less that, the last float before 1.
LOGIT_RANGE = 36.0
#: Up to this sampling fraction `dankar` prefers Pitman's formula.
MOST_FOR_PITMAN = 0.1


@dataclass(frozen=True)
class SizeFrequencies:
    """How many classes there are of each size: the frequencies of frequencies.

    Attributes
    ----------
    size : int64 array of shape (D,), the distinct class sizes, ascending
    count : int64 array of shape (D,), the c_i: number of classes of that size, all positive
    """

    size: IntArray
    count: IntArray

    @classmethod
    def of(cls, sizes: npt.ArrayLike) -> SizeFrequencies:
        """From the sizes of the J classes, in any order, shape (J,)."""
        given = np.asarray(sizes)
        if given.size == 0:
            return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or given.min() < 1:
            raise ValueError("class sizes must be a one-dimensional array of positive integers")
        size, count = np.unique(given, return_counts=True)
        return cls(size.astype(np.int64), count.astype(np.int64))

    def of_size(self, size: int) -> int:
        """c_i for i = `size`."""
        return int(self.count[self.size == size].sum())

    @property
    def classes(self) -> int:
        """J, the number of classes."""
        return int(self.count.sum())

    @property
    def n(self) -> int:
        """People in the sample."""
        return int((self.size * self.count).sum())


@dataclass(frozen=True)
class PopulationUniqueness:
    """The result of one estimator; `dataclasses.asdict` of it is ready for JSON.

    Attributes
    ----------
    model : `zayatz`, `pitman` or `snb`; `dankar` names the rule, `chosen` then names the estimator it took
    sampling_fraction : pi = n/N
    population : N = n/pi, in people
    uniques : estimated number of people who are unique in the population, in [0, c_1 + N - n]; None if not converged
    share : uniques / N; None if not converged
    converged : whether the estimator's equations have a solution
    parameters : the fitted parameters by name
    chosen : see `model`
    """

    model: str
    sampling_fraction: float
    population: float
    uniques: float | None
    share: float | None
    converged: bool
    parameters: Mapping[str, float] = field(default_factory=dict)
    chosen: str | None = None


def zayatz(classes: SizeFrequencies, sampling_fraction: float) -> PopulationUniqueness:
    """Equivalence-class estimator: Bayes' rule with the sample's class sizes as the population's.

    A class of F = j people has exactly one in a sample of n out of N with hypergeometric probability
    p_j = j C(N-j, n-1) / C(N, n), and p_1 = n/N. With c_j / J as the prior of F = j, a sample unique is a population
    unique with probability c_1 p_1 / sum_j c_j p_j; there are c_1 sample uniques, and one population unique in 1/pi is
    sampled, so the estimate is (c_1 / pi) times that probability. Divided by p_1:
    p_j / p_1 = j prod_{t=1}^{j-1} (N-n+1-t) / (N-t).

    L. Zayatz: Estimation of the number of unique population elements using a sample (US Census Bureau, 1991).
    """
    population, known = _begin("zayatz", classes, sampling_fraction)
    if known is not None:
        return known
    unique = classes.of_size(1)
    unsampled = population - classes.n
    # Of a class larger than that, more than one person would have to be in the sample.
    possible = classes.size <= unsampled + 1
    size, count = classes.size[possible].astype(float), classes.count[possible]
    logarithm = log_gamma_difference(unsampled + 1, size - 1) - log_gamma_difference(population, size - 1)
    weight = float((count * size * np.exp(logarithm)).sum())
    uniques = unique / sampling_fraction * (unique / weight) if unique else 0.0
    return _end("zayatz", classes, sampling_fraction, uniques)


def pitman(classes: SizeFrequencies, sampling_fraction: float) -> PopulationUniqueness:
    """Pitman's sampling formula as superpopulation, theta and alpha by maximum likelihood.

    The n people come one by one. After i people in u classes, the next person opens a new class with probability
    (theta + u alpha) / (theta + i), and joins a class of size j with probability (j - alpha) / (theta + i), where
    0 <= alpha < 1 and theta > -alpha. So the log-likelihood of J classes is

        l = sum_{i=1}^{J-1} ln(theta + i alpha) - sum_{i=1}^{n-1} ln(theta + i)
            + sum_j c_j sum_{i=1}^{j-1} ln(i - alpha)
        dl/dtheta = sum_{i=1}^{J-1} 1 / (theta + i alpha) - sum_{i=1}^{n-1} 1 / (theta + i)
        dl/dalpha = sum_{i=1}^{J-1} i / (theta + i alpha) - sum_j c_j sum_{i=1}^{j-1} 1 / (i - alpha)

    and the number of uniques among N people is Gamma(theta+1) / Gamma(theta+alpha) N^alpha for large N (Hoshino),
    here never more than can be (see `_end`).

    Newton's method on the two equations needs a good start and otherwise fails silently. Here dl/dtheta = 0 is solved
    for theta at every alpha, and the derivative of that profile, dl/dalpha, is solved for alpha. These are two nested
    bracketed searches, which cannot leave the region. Maxima on its border are legitimate: alpha = 0 is Ewens'
    formula; if all people are unique, the likelihood is 1 at alpha = 1; if all are in one class, it is 1 at
    theta = alpha = 0.

    N. Hoshino: Applying Pitman's sampling formula to microdata disclosure risk assessment, J. Official Statistics 17
    (2001) 499-520. J. Pitman: Exchangeable and partially exchangeable random partitions (1995).
    """
    population, known = _begin("pitman", classes, sampling_fraction)
    if known is not None:
        return known
    fit = _fit_pitman(classes)
    if fit is None:
        return _end("pitman", classes, sampling_fraction, None)
    theta, alpha = fit
    uniques = (
        math.exp(float(log_gamma_difference(theta + 1, 1 - alpha)) + alpha * math.log(population))
        if theta + alpha > 0
        else 0.0
    )
    return _end("pitman", classes, sampling_fraction, uniques, {"theta": theta, "alpha": alpha})


def snb(classes: SizeFrequencies, sampling_fraction: float) -> PopulationUniqueness:
    """Slide negative binomial: a population class has F = 1 + (negative binomial) people.

    P(F = 1 + x) = C(alpha + x - 1, x) beta^alpha (1 - beta)^x, so of K population classes K beta^alpha are unique, and
    F has the generating function G(z) = z beta^alpha (1 - b z)^-alpha with b = 1 - beta. If each person is sampled with
    probability pi, the sampled number f has G(1 - pi + pi z), so P(f = 1) = pi G'(1 - pi) and
    P(f = 2) = pi^2 / 2 G''(1 - pi). With D = (1 - pi) b the two moment equations are

        c_1 = K pi beta^alpha (1 - D)^-(alpha+1) (1 - D + alpha D)
        c_2 = K pi^2 / 2 alpha b beta^alpha (1 - D)^-(alpha+2) (2 - D + alpha D)

    K comes from `classes_in_population`. Divided by each other they give, with r = 2 c_2 / (pi c_1), a quadratic

        b D alpha^2 + (b (2 - D) - r (1 - D) D) alpha - r (1 - D)^2 = 0

    with exactly one positive root for each beta, which leaves the first equation in beta alone: a bracketed search.
    No solution means not converged. (ARX's ModelSNB multiplies by (1 - D)^(alpha+2) where this divides.)

    G. Chen, S. Keller-McNulty: Estimation of identification disclosure risk in microdata, J. Official Statistics 14
    (1998) 79-95.
    """
    population, known = _begin("snb", classes, sampling_fraction)
    if known is not None:
        return known
    c1, c2, pi = classes.of_size(1), classes.of_size(2), sampling_fraction
    if c1 == 0:
        return _end("snb", classes, pi, 0.0)
    k = classes_in_population(classes, pi)
    if c2 == 0:
        # alpha = 0: every population class is one person. That fits only if the sample's uniques say so too.
        if not math.isclose(c1, k * pi, rel_tol=1e-9):
            return _end("snb", classes, pi, None, {"classes": k})
        return _end("snb", classes, pi, k, {"alpha": 0.0, "beta": 1.0, "classes": k})
    ratio = 2 * c2 / (pi * c1)

    def alpha_and_gap(logit: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """alpha at this logit of beta, and the logarithm of the first equation's right side over its left."""
        beta, b = 1 / (1 + np.exp(-np.asarray(logit, dtype=float))), 1 / (1 + np.exp(np.asarray(logit, dtype=float)))
        d, kept = (1 - pi) * b, pi + (1 - pi) * beta  # kept = 1 - d, without cancellation
        square, linear, constant = b * d, b * (2 - d) - ratio * kept * d, ratio * kept * kept
        root = np.sqrt(linear * linear + 4 * square * constant)
        # The two forms of the positive root; each is free of cancellation on its side.
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = np.where(linear > 0, 2 * constant / (linear + root), (root - linear) / (2 * square))
        gap = (
            math.log(pi * k / c1)
            - alpha * (np.logaddexp(0, -np.asarray(logit, dtype=float)) + np.log1p(-d))
            + np.log1p(alpha * d / kept)
        )
        return alpha, gap

    grid = np.linspace(-LOGIT_RANGE, LOGIT_RANGE, 721)
    logit = _crossings(lambda x: alpha_and_gap(x)[1], grid)
    if not logit:
        return _end("snb", classes, pi, None, {"classes": k})
    fits_found = []
    for crossing in logit:
        alpha, beta = float(alpha_and_gap(crossing)[0]), 1 / (1 + math.exp(-crossing))
        uniques = k * math.exp(-alpha * math.log1p(math.exp(-crossing)))
        people = k * (1 + alpha * math.exp(-crossing))
        fits_found.append((abs(math.log(people / population)), uniques, alpha, beta))
    # Where several pairs fit c_1, c_2 and K, the one whose population is nearest to N in size.
    _, uniques, alpha, beta = min(fits_found)
    return _end("snb", classes, pi, uniques, {"alpha": alpha, "beta": beta, "classes": k})


def classes_in_population(classes: SizeFrequencies, sampling_fraction: float) -> float:
    """K, the number of classes in the population: Shlosser's estimator as modified by Haas and Stokes.

    J + c_1 (sum i pi^2 (1-pi^2)^(i-1) c_i / sum (1-pi)^i ((1+pi)^i - 1) c_i)
          (sum (1-pi)^i c_i / sum i pi (1-pi)^(i-1) c_i)^2, never more than N.

    P. J. Haas, L. Stokes: Estimating the number of classes in a finite population, JASA 93 (1998) 1475-1487.
    """
    pi, unique = sampling_fraction, classes.of_size(1)
    if unique == 0 or pi == 1:
        return float(classes.classes)
    size, count = classes.size.astype(float), classes.count.astype(float)
    # Powers as exp(i log1p(-x)), since (1 - x) would round a small x away.
    missed = np.exp(size * math.log1p(-pi))
    once_in_two = size * pi**2 * np.exp((size - 1) * math.log1p(-(pi**2)))
    found_again = np.exp(size * math.log1p(-(pi**2))) * -np.expm1(size * (math.log1p(-pi) - math.log1p(-(pi**2))))
    once = size * pi * np.exp((size - 1) * math.log1p(-pi))
    ratio = float((missed * count).sum() / (once * count).sum())
    unseen = unique * float((once_in_two * count).sum() / (found_again * count).sum()) * ratio**2
    return float(min(classes.classes + unseen, classes.n / pi))


def dankar(classes: SizeFrequencies, sampling_fraction: float) -> PopulationUniqueness:
    """The rule that takes the estimator which did best on six clinical data sets.

    No sample unique: 0. pi <= 0.1: Pitman, or Zayatz where Pitman does not converge. Otherwise the smaller of Zayatz
    and SNB, of which SNB counts only if it converges.

    F. K. Dankar, K. El Emam, A. Neisa, T. Roffey: Estimating the re-identification risk of clinical data sets, BMC
    Medical Informatics and Decision Making 12:66 (2012).
    """
    candidates = [zayatz(classes, sampling_fraction)]  # 0 where there is no sample unique, and always a number
    if classes.of_size(1):
        if sampling_fraction <= MOST_FOR_PITMAN:
            preferred = pitman(classes, sampling_fraction)
            candidates = [preferred] if preferred.converged else candidates
        else:
            candidates.append(snb(classes, sampling_fraction))
    estimates = [(estimate.uniques, estimate) for estimate in candidates if estimate.uniques is not None]
    uniques, taken = min(estimates, key=lambda estimate: estimate[0])
    return PopulationUniqueness(
        model="dankar",
        sampling_fraction=sampling_fraction,
        population=taken.population,
        uniques=uniques,
        share=taken.share,
        converged=True,
        parameters=taken.parameters,
        chosen=taken.model,
    )


def population_uniqueness(sizes: npt.ArrayLike, sampling_fraction: float) -> dict[str, PopulationUniqueness]:
    """All estimators and the rule, by name.

    Parameters
    ----------
    sizes : integers of shape (J,), the f_j of the released classes
    sampling_fraction : pi = n/N in (0, 1]; at 1 the sample is the population and every answer is exact
    """
    classes = SizeFrequencies.of(sizes)
    return {model.__name__: model(classes, sampling_fraction) for model in (zayatz, pitman, snb, dankar)}


def _population(classes: SizeFrequencies, sampling_fraction: float) -> float:
    """N = n / pi. N is a whole number of people, so a difference from one by rounding is undone, a larger one kept."""
    population = classes.n / sampling_fraction
    nearest = float(round(population))
    return nearest if math.isclose(population, nearest, rel_tol=1e-12) else population


def _begin(model: str, classes: SizeFrequencies, sampling_fraction: float) -> tuple[float, PopulationUniqueness | None]:
    """N, and the answer where nothing needs an estimate: an empty sample, or a sample that is the population."""
    if not 0 < sampling_fraction <= 1:
        raise ValueError(f"the sampling fraction must be above 0 and at most 1, not {sampling_fraction}")
    if sampling_fraction == 1 or classes.n == 0:
        return float(classes.n), _end(model, classes, sampling_fraction, classes.of_size(1))
    return _population(classes, sampling_fraction), None


def _end(
    model: str,
    classes: SizeFrequencies,
    sampling_fraction: float,
    uniques: float | None,
    parameters: Mapping[str, float] | None = None,
) -> PopulationUniqueness:
    """The answer; `uniques` is None where the estimator's equations have no solution."""
    population = _population(classes, sampling_fraction)
    if uniques is not None:
        # A person unique in the population is unique in the sample or not in it. Fitted models may not respect that.
        uniques = min(max(float(uniques), 0.0), classes.of_size(1) + (population - classes.n))
    share = None if uniques is None else uniques / population if population else 0.0
    return PopulationUniqueness(
        model, sampling_fraction, population, uniques, share, uniques is not None, parameters or {}
    )


def _fit_pitman(classes: SizeFrequencies) -> tuple[float, float] | None:
    """theta and alpha of the highest likelihood; None where no maximum was found."""
    n, j = classes.n, classes.classes
    if j == n:
        return 0.0, 1.0
    if j == 1:
        return 0.0, 0.0
    size, count = classes.size.astype(float), classes.count.astype(float)

    def best_theta(alpha: float) -> float:
        """The root of dl/dtheta: +infinite at -alpha, negative from some theta on since J < n."""

        def score(x: float) -> float:  # x = ln(theta + alpha)
            theta = math.exp(x) - alpha
            first = 1 / math.exp(x)  # the term i = 1, which theta near -alpha would round away
            rest = _sum_of_inverses(theta + 2 * alpha, alpha, j - 2)
            # Scaled by theta + alpha: the bare derivative underflows any tolerance where theta is large.
            return math.exp(x) * (first + rest - float(digamma_difference(theta + 1, n - 1)))

        low, high = -1.0, 1.0
        while score(low) < 0:
            low = 2 * low
        while score(high) > 0:
            high = 2 * high
        return math.exp(float(brentq(score, low, high, xtol=1e-13, rtol=1e-14))) - alpha

    def score(alpha: float) -> float:
        theta = best_theta(alpha)
        joined = float((count * digamma_difference(1 - alpha, size - 1)).sum())
        return _weighted_sum_of_inverses(theta, alpha, j) - joined

    def log_likelihood(alpha: float) -> float:
        theta = best_theta(alpha)
        opened = (
            (j - 1) * math.log(theta)
            if alpha == 0
            else (j - 1) * math.log(alpha) + float(log_gamma_difference(theta / alpha + j, j - 1))
        )
        joined = float((count * log_gamma_difference(size - alpha, size - 1)).sum())
        return opened - float(log_gamma_difference(theta + n, n - 1)) + joined

    # dl/dalpha falls to minus infinity towards 1 as J < n, so where it is positive at 0 there is a maximum inside. With
    # the grid, several maxima are found.
    grid = np.concatenate([[0.0], np.linspace(0.02, 0.98, 25), 1 - np.logspace(-2, -12, 11)])
    values = [score(float(alpha)) for alpha in grid]
    maxima = [] if values[0] > 0 else [0.0]
    for i in range(len(grid) - 1):
        if values[i] > 0 >= values[i + 1]:
            maxima.append(float(brentq(score, grid[i], grid[i + 1], xtol=1e-14, rtol=1e-13)))
    if not maxima:
        return None
    alpha = maxima[0] if len(maxima) == 1 else max(maxima, key=log_likelihood)
    return best_theta(alpha), alpha


def _sum_of_inverses(start: float, step: float, terms: int) -> float:
    """sum_{i=0}^{terms-1} 1 / (start + i step), for start > 0 and step >= 0."""
    if terms <= 0:
        return 0.0
    if step * terms < 1e-8 * start:  # to first order; the next is below rounding
        return terms / start * (1 - step * (terms - 1) / (2 * start))
    return float(digamma_difference(start / step, terms)) / step


def _weighted_sum_of_inverses(theta: float, alpha: float, j: int) -> float:
    """sum_{i=1}^{J-1} i / (theta + i alpha)."""
    m = j - 1
    if alpha * j < 1e-4 * theta:
        # i alpha / (theta + i alpha) = 1 - theta / (theta + i alpha) would cancel; a series in alpha / theta instead.
        powers = (
            m * (m + 1) / 2,
            m * (m + 1) * (2 * m + 1) / 6,
            (m * (m + 1) / 2) ** 2,
            m * (m + 1) * (2 * m + 1) * (3 * m * m + 3 * m - 1) / 30,
        )
        return math.fsum((-alpha / theta) ** k * power for k, power in enumerate(powers)) / theta
    inverses = 1 / (theta + alpha) + _sum_of_inverses(theta + 2 * alpha, alpha, m - 1)
    return (m - theta * inverses) / alpha


def _crossings(function: Callable[[Any], Any], grid: FloatArray) -> list[float]:
    """The zeros of a continuous function; the grid must be fine enough to separate them."""
    values = function(grid)
    crossings = [float(x) for x, value in zip(grid, values, strict=True) if value == 0]
    for i in np.flatnonzero(values[1:] * values[:-1] < 0):
        crossings.append(float(brentq(lambda x: float(function(x)), grid[i], grid[i + 1], xtol=1e-13)))
    return crossings


def digamma_difference(x: float, m: npt.ArrayLike) -> Any:
    """psi(x + m) - psi(x) for x > 0 and m >= 0, m whole: sum_{i=0}^{m-1} 1 / (x + i).

    Parameters
    ----------
    x : float
    m : number, or array of any shape, which is the shape of the result
    """
    m = np.asarray(m, dtype=float)
    if x < ASYMPTOTIC:
        return psi(x + m) - psi(x)
    y = x + m  # psi(x) = ln x - 1/(2x) - 1/(12 x^2) + 1/(120 x^4) - ...; ln y - ln x would lose the digits of m / x
    return np.log1p(m / x) + m / (2 * x * y) + (x**-2 - y**-2) / 12 - (x**-4 - y**-4) / 120


def log_gamma_difference(x: npt.ArrayLike, d: npt.ArrayLike) -> FloatArray:
    """ln Gamma(x) - ln Gamma(x - d) for 0 <= d < x, elementwise; at x = 1e10 gammaln itself is off by 1e-5."""
    x, d = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(d, dtype=float))
    y = x - d
    large = y >= ASYMPTOTIC
    # Stirling's series, arranged so that the large parts of the two logarithms cancel before they are computed.
    u, v = np.where(large, x, 2 * ASYMPTOTIC), np.where(large, y, ASYMPTOTIC)
    gap = u - v
    tail = (1 / u - 1 / v) / 12 - (u**-3 - v**-3) / 360 + (u**-5 - v**-5) / 1260
    stirling = gap * np.log(u) - (v - 0.5) * np.log1p(-gap / u) - gap + tail
    return np.asarray(np.where(large, stirling, gammaln(x) - gammaln(y)), dtype=np.float64)
