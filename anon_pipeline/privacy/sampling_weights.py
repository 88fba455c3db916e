"""Re-identification risk in a population of which only a weighted sample is known: the individual risk of a record.

A survey's weight says how many people of the population a row stands for. The sum of the weights of a class estimates
how many people of the population are in it (F_j), which nobody has counted. Given this estimate and the f_j rows of the
class, F_j is taken to be negative binomial, with f_j successes of probability p_j = f_j over the sum of the weights.

R. Benedetti, L. Franconi: Statistical and technological solutions for controlled data dissemination, Pre-proceedings of
New Techniques and Technologies for Statistics, vol. 1 (1998) 225-232; S. Polettini: Some remarks on the individual risk
methodology, Joint ECE/Eurostat work session on statistical data confidentiality, Luxembourg (2003); it is what sdcMicro
calls individual risk (M. Templ, A. Kowarik, B. Meindl, Journal of Statistical Software 67(4), 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anon_pipeline.arrays import FloatArray, IntArray

#: For classes of at least so many rows, a quadrature with few nodes gives the integral to ten digits.
LARGE = 40


@dataclass(frozen=True)
class WeightedRisk:
    """Risk of the records of a weighted sample.

    Attributes
    ----------
    population : the sum of the weights: people of the population
    smallest_class : people of the population in the smallest class, by the weights
    max, mean : of the individual risk over records, in (0, 1]; the mean is the share of records that is expected to be
        matched with the right person
    """

    population: float
    smallest_class: float
    max: float
    mean: float


def individual_risk(sizes: IntArray, weights: FloatArray) -> FloatArray:
    """E(1/F_j | f_j): the chance that a record of class j is matched with the right person of the population.

    (p/f) 2F1(1, 1; f+1; q), with p = f / sum of weights and q = 1 - p. With f = 1 that is -(p/q) ln p, with p = 1 it
    is 1/f. (By Euler's transformation of (p^f / f) 2F1(f, f; f+1; q), which overflows where f is large.)

    Parameters
    ----------
    sizes : integers of shape (J,), the f_j >= 1
    weights : shape (J,), the sum of the weights in each class. A class cannot have fewer people in the population than
        in the sample, so less than f_j counts as f_j

    Returns
    -------
    shape (J,), in (0, 1]
    """
    f = sizes.astype(np.float64)
    p = f / np.maximum(weights, f)
    risk = np.empty(len(f))
    for integrate, chosen in (
        (_by_series, p > 0.5),
        (_by_recurrence, (p <= 0.5) & (f < LARGE)),
        (_by_quadrature, (p <= 0.5) & (f >= LARGE)),
    ):
        risk[chosen] = integrate(f[chosen], p[chosen])
    return risk


def _by_series(f: FloatArray, p: FloatArray) -> FloatArray:
    """The hypergeometric series, whose terms fall at least as fast as q^k; scipy's gives infinity for some f and q."""
    total, term = np.ones(len(f)), np.ones(len(f))
    for k in range(1, 60):
        term = term * (1 - p) * k / (f + k)
        total += term
    return np.asarray(p / f * total, dtype=np.float64)


def _by_recurrence(f: FloatArray, p: FloatArray) -> FloatArray:
    """p I_f of the integrals I_f of v^(f-1) / (p + q v), v from 0 to 1: I_1 = -ln(p) / q, I_(f+1) = (1/f - p I_f) / q.

    Errors shrink by p/q at every step.
    """
    integral = -np.log(p) / (1 - p)
    for step in range(1, LARGE):
        integral = np.where(step < f, (1 / step - p * integral) / (1 - p), integral)
    return np.asarray(p * integral, dtype=np.float64)


def _by_quadrature(f: FloatArray, p: FloatArray) -> FloatArray:
    """The same integral over s = -f ln v: that of e^-s / (p + q e^(-s/f)) / f, a power series times e^-s."""
    nodes, shares = np.polynomial.laguerre.laggauss(24)
    people = p[:, np.newaxis] + (1 - p)[:, np.newaxis] * np.exp(-nodes / f[:, np.newaxis])
    return np.asarray(p / f * (shares / people).sum(axis=1), dtype=np.float64)


def weighted_risk(sizes: IntArray, weights: FloatArray) -> WeightedRisk:
    """The individual risks of a table of classes; shapes as in `individual_risk`. A table without classes has none."""
    if not len(sizes):
        return WeightedRisk(0.0, 0.0, 0.0, 0.0)
    risk, people = individual_risk(sizes, weights), np.maximum(weights, sizes)
    mean = float(np.sort(sizes * risk).sum()) / int(sizes.sum())  # sorted: the same in any order of classes
    return WeightedRisk(float(np.sort(people).sum()), float(people.min()), float(risk.max()), mean)
