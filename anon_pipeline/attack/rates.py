"""Shares with intervals, the leak of an attack (its success beyond the control's), and the finding that reports both.

The attacks themselves are in other modules. Intervals are 95 % unless `confidence` says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from anon_pipeline import errors
from anon_pipeline.errors import InputError

#: The criteria of Opinion 05/2014 of the Article 29 Working Party (WP 216), and membership, which it does not name.
Criterion = Literal["linkability", "singling_out", "inference", "membership"]

LEAK = "leak"
NO_LEAK = "no leak found"
TOO_WEAK = "attack too weak to tell"
NO_CONTROL = "no control group: leak cannot be separated from statistics"
NOTHING = "nothing to attack"

#: The attack of linkage that also reads kept columns; and from which share of a quasi-identifier's variance on a column
#: that tells it is named. Reports and published figures treat this attack apart.
BY_KEPT_COLUMNS, NAMED_FROM = "linkage, all quasi-identifiers, kept columns", 0.1

#: Of the attack of similarity: a group's values are similar if no more than this share of all people have a value
#: between its least and greatest. So often at most is such a claim right of anybody.
NARROW = 0.1


@dataclass(frozen=True)
class Rate:
    """A share in [0, 1] of `trials` with its interval; `successes` is a sum of probabilities where they are known."""

    successes: float
    trials: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Leak:
    """(attack - control) / (1 - control) with its interval; at most 1, cut off at -1, below which it has no meaning."""

    leak: float
    low: float
    high: float


def wilson(successes: float, trials: int, confidence: float = 0.95) -> Rate:
    """The score interval of E. B. Wilson (JASA 22, 1927); a sum of probabilities as `successes` makes it too wide."""
    _check_counts(successes, trials)
    if trials == 0:
        return Rate(0.0, 0, 0.0, 0.0, 1.0)
    z = _normal_quantile((1 + confidence) / 2)
    share, spread = successes / trials, z * z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(max(share * (1 - share), 0.0) / trials + spread / (4 * trials))
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    high = 1.0 if successes >= trials else min(1.0, centre + half)
    return Rate(float(successes), trials, share, low, high)


@cache
def _normal_quantile(share: float) -> float:
    """The quantile of the standard normal distribution; a few are asked for again and again."""
    return float(stats.norm.ppf(share))


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Rate:
    """The exact interval of C. J. Clopper and E. S. Pearson (Biometrika 26, 1934)."""
    _check_counts(successes, trials)
    if trials == 0:
        return Rate(0.0, 0, 0.0, 0.0, 1.0)
    tail = (1 - confidence) / 2
    low = float(stats.beta.ppf(tail, successes, trials - successes + 1)) if successes > 0 else 0.0
    high = float(stats.beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return Rate(float(successes), trials, successes / trials, low, high)


def _check_counts(successes: float, trials: int) -> None:
    if not (trials >= 0 and -1e-9 <= successes <= trials + 1e-9):
        raise InputError("a rate needs 0 <= successes <= trials")


def measured(probabilities: npt.ArrayLike) -> Rate:
    """The mean of each person's probability of success, shape (n,), with a Wilson interval."""
    values = np.asarray(probabilities, dtype=np.float64)
    return wilson(float(np.clip(values.sum(), 0.0, len(values))), len(values))


def known(share: float, trials: int = 0) -> Rate:
    """A share that is calculated and not measured, so that its interval is a point."""
    return Rate(share * trials, trials, share, share, share)


def difference(first: Rate, second: Rate) -> tuple[float, float, float]:
    """first - second and its interval by square-and-add (R. G. Newcombe, Statistics in Medicine 17, 1998)."""
    gap = first.rate - second.rate
    down = math.hypot(first.rate - first.low, second.high - second.rate)
    up = math.hypot(first.high - first.rate, second.rate - second.low)
    return gap, gap - down, gap + up


def leak_of(attack: Rate, control: Rate) -> Leak | None:
    """The leak of the release itself: (attack - control) / (1 - control).

    This is 1 - (1 - attack) / (1 - control); the ratio's interval is computed from those of its two parts (MOVER-R,
    A. Donner and G. Y. Zou, Statistical Methods in Medical Research 21, 2012). None where the attack succeeds on every
    control person, since then nothing is left to leak, or where nobody was attacked.
    """
    if attack.trials == 0 or control.trials == 0 or control.rate >= 1:
        return None
    a, a_low, a_high = 1 - attack.rate, 1 - attack.high, 1 - attack.low
    c, c_low, c_high = 1 - control.rate, 1 - control.high, 1 - control.low
    low, high = _ratio_bound(a, c, a_low, c_high, -1), _ratio_bound(a, c, a_high, c_low, 1)
    estimate = 1 - a / c
    return Leak(max(-1.0, estimate), max(-1.0, min(1 - high, estimate)), max(-1.0, min(1.0, max(1 - low, estimate))))


def _ratio_bound(a: float, c: float, a_end: float, c_end: float, side: int) -> float:
    """The bound of a / c that pairs the end `a_end` of the numerator with `c_end` of the denominator."""
    below = c_end * (2 * c - c_end)
    under_root = (a * c) ** 2 - a_end * c_end * (2 * a - a_end) * (2 * c - c_end)
    if c_end <= 0 or below <= 0:  # the denominator may be zero; its own ends bound the ratio
        return a_end / c_end if c_end > 0 else math.inf
    return max(0.0, (a * c + side * math.sqrt(max(under_root, 0.0))) / below)


def judged(attack: Rate, control: Rate | None, baseline: Rate) -> tuple[Leak | None, str]:
    """The leak and the verdict; only an attack that beats blind guessing can show that there is no leak."""
    if attack.trials == 0:
        return None, NOTHING
    if control is None or control.trials == 0:
        beaten = difference(attack, baseline)[1] > 0
        return None, NO_CONTROL if beaten else TOO_WEAK
    leak = leak_of(attack, control)
    if difference(attack, baseline)[1] <= 0:
        return leak, TOO_WEAK
    return leak, LEAK if leak is not None and leak.low > 0 else NO_LEAK


@dataclass(frozen=True)
class Known:
    """The knowledge of an attacker about a person: the columns, and the share of these cells that are wrong."""

    columns: tuple[str, ...]
    wrong: float = 0.0


@dataclass(frozen=True)
class Rates:
    """How often an attack succeeds, and the rates it is compared with.

    Attributes
    ----------
    attack : success on people in the release
    control : success on people who are not in it, None where there are none
    baseline : success of a naive guess
    others : whom the control is about, in words
    """

    attack: Rate
    control: Rate | None
    baseline: Rate
    others: str = "people not in it"


@dataclass(frozen=True)
class Finding:
    """The result of an attack; every figure is an aggregate.

    Attributes
    ----------
    name : the attack
    criterion : the criterion that it measures
    knowledge : the attacker's knowledge
    attack : success on people in the release
    control : success on people who are not in it, None where there are none
    baseline : success of a naive guess
    leak : the leak of the release itself, None without control people
    verdict : one of `LEAK`, `NO_LEAK`, `TOO_WEAK`, `NO_CONTROL`, `NOTHING`
    sentence : the result in words, for a steward
    details : further aggregates, ready for JSON
    """

    name: str
    criterion: Criterion
    knowledge: Known
    attack: Rate
    control: Rate | None
    baseline: Rate
    leak: Leak | None
    verdict: str
    sentence: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Data that JSON can hold: no NaN, no infinity, no numpy type."""
        return {name: _json(getattr(self, name)) for name in self.__dataclass_fields__}


def finding(
    name: str,
    criterion: Criterion,
    knowledge: Known,
    success: str,
    rates: Rates,
    details: Mapping[str, Any] | None = None,
) -> Finding:
    """Judge an attack; `success` completes "an attacker ...", as in "picks the right record"."""
    attack, control, baseline = rates.attack, rates.control, rates.baseline
    leak, verdict = judged(attack, control, baseline)
    sentence = _sentence(knowledge, success, rates, leak, verdict)
    return Finding(name, criterion, knowledge, attack, control, baseline, leak, verdict, sentence, dict(details or {}))


def with_rates(plain: Mapping[str, Any], rates: Rates) -> dict[str, Any]:
    """A finding as plain data, with other rates, such as coarser ones; leak, verdict and sentence follow from them.

    Parameters
    ----------
    plain : plain data, as of `Finding.to_json`
    rates : its `others` are in the words of the finding's sentence
    """
    control = None if plain["control"] is None else Rate(**plain["control"])
    exact = Rates(Rate(**plain["attack"]), control, Rate(**plain["baseline"]), rates.others)
    leak, verdict = judged(rates.attack, rates.control, rates.baseline)
    asked = Known(tuple(plain["knowledge"]["columns"]), plain["knowledge"]["wrong"])
    # The words before the figures are those of the attack; the figures follow them.
    before = None if plain["leak"] is None else Leak(**plain["leak"])
    words, figures = str(plain["sentence"]), _figures(exact, before, plain["verdict"])
    # A sentence that ends otherwise could keep a figure that is not to be told, so none of it is kept.
    opening = words.removesuffix(figures) if words.endswith(figures) else f"{_opening(asked)} succeeds"
    changed = {"attack": rates.attack, "control": rates.control, "baseline": rates.baseline, "leak": leak}
    sentence = _nothing(asked) if verdict == NOTHING else f"{opening}{_figures(rates, leak, verdict)}"
    return {
        **plain,
        **{name: _json(value) for name, value in changed.items()},
        "verdict": verdict,
        "sentence": sentence,
    }


def _sentence(knowledge: Known, success: str, rates: Rates, leak: Leak | None, verdict: str) -> str:
    if verdict == NOTHING:
        return _nothing(knowledge)
    return f"{_opening(knowledge)} {success}{_figures(rates, leak, verdict)}"


def _opening(knowledge: Known) -> str:
    about = _about(knowledge)
    return f"{about}{'an' if about else 'An'} attacker"


def _nothing(knowledge: Known) -> str:
    return f"{_about(knowledge) or 'Here '}an attacker finds nothing to try."


def _about(knowledge: Known) -> str:
    """ "Knowing age, city (5 % of it wrong), " """
    about = ""
    if knowledge.columns:
        several = len(knowledge.columns) > 4
        names = f"{len(knowledge.columns)} columns" if several else ", ".join(knowledge.columns)
        wrong = f" ({percent(knowledge.wrong)} of it wrong)" if knowledge.wrong else ""
        about = f"Knowing {names}{wrong}, "
    return about


def _figures(rates: Rates, leak: Leak | None, verdict: str) -> str:
    """How often an attack succeeds, the end of its sentence."""
    attack, control = rates.attack, rates.control
    text = f" in {percent(attack.rate)} of the cases ({_range(attack)})"
    text += "" if control is None else f", against {percent(control.rate)} ({_range(control)}) for {rates.others}"
    text += f"; blind guessing gives {percent(rates.baseline.rate)}."
    closing = {
        LEAK: "" if leak is None else f" The release itself gives away {percent(leak.leak)} ({_range(leak)}).",
        NO_LEAK: " No more than general statistics tell.",
        TOO_WEAK: " That is no better than guessing, so it shows neither a leak nor its absence.",
        NO_CONTROL: " Without people to compare with, how much of this the release gives away is unknown.",
        NOTHING: "",  # the sentence has no such end then
    }
    return text + closing[verdict]


def percent(share: float) -> str:
    """A share as a text: "14.2 %", with more digits below 10 %; the ends are told as `errors.percent` tells them."""
    digits = 1 if abs(share) >= 0.0995 else 2 if abs(share) >= 0.00995 else 3
    return errors.percent(share, digits).replace("%", " %")


def _range(interval: Rate | Leak) -> str:
    return f"{percent(interval.low)} to {percent(interval.high)}"


def quantiles(values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> dict[str, float] | None:
    """Smallest, quartiles and largest of some aggregate; None where there are no values."""
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers):
        return None
    at = np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]) if weights is None else _weighted(numbers, np.asarray(weights))
    return dict(zip(("min", "q25", "median", "q75", "max"), map(float, at), strict=True))


def _weighted(values: npt.NDArray[np.float64], weights: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.minimum(np.searchsorted(reached, [0, 0.25, 0.5, 0.75, 1]), len(values) - 1)]


def _json(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {name: _json(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(name): _json(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return [_json(item) for item in value.tolist()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
