"""How finely a published figure is told, so that it does not tell single people apart.

A figure in all its digits is a hash of what it was counted from: who knows all but one row tries every value that the
last may have, and keeps the one that gives these digits. Figures of the released tables may be exact, since anybody can
count them again. Of the others, those that hang on the private key's draws cannot be counted again and have a few
digits; those that are counted from the source alone are told in steps that hide one person among n, most of the time.
None of this is differential privacy: a figure that lies just beside the end of a step can still tell.
"""

from __future__ import annotations

import math
from typing import Any

DIGITS = 4

#: Where estimates of how many people are unique in the population stand.
ESTIMATES = "population_uniqueness"

#: Of fewer people nothing that is counted from the source alone is told.
FEWEST = 100


def rounded(content: Any) -> Any:
    """The same plain data with every float to 4 significant digits."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return float(f"{content:.{DIGITS}g}") if isinstance(content, float) and math.isfinite(content) else content


def coarse(content: Any, people: int) -> Any:
    """The same plain data in steps that one of n people seldom moves: None for each number of fewer than 100 people.

    Shares and correlations, which one person moves by about 1/n, are told in steps of at least 1/sqrt(n); whole
    numbers count people and are told in steps of at least sqrt(n). Steps are 1, 2 or 5 times a power of ten.
    """
    if isinstance(content, dict):
        return {key: coarse(value, people) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [coarse(value, people) for value in content]
    if isinstance(content, bool) or not isinstance(content, int | float) or not math.isfinite(content):
        return content
    if people < FEWEST:
        return None
    if isinstance(content, int):
        least = round(_step(math.sqrt(people)))
        return least * round(content / least)
    return float(f"{step_of(people) * round(content / step_of(people)):.{DIGITS}g}") + 0.0


def step_of(people: int) -> float:
    """The step in which shares of so many people are told."""
    return _step(1 / math.sqrt(people))


def associations(content: dict[str, Any], people: int) -> dict[str, Any]:
    """How columns hang together in the source and in the release, in steps of one size, to be compared."""
    pairs = [
        {**pair, **{when: coarse(pair[when], people) for when in ("before", "after")}} for pair in content["pairs"]
    ]
    return {**content, "step": step_of(people) if people >= FEWEST else None, "pairs": pairs}


def risk(before: dict[str, Any], people: int) -> dict[str, Any] | None:
    """The risk of the source, coarsely; None of few people.

    Estimates of the population's uniques are told to two digits, and without the parameters that were fitted.
    """
    if people < FEWEST:
        return None
    coarsened: dict[str, Any] = coarse(
        {name: figure for name, figure in before.items() if name != ESTIMATES}, people
    ) | {"records": people}
    if ESTIMATES in before:
        coarsened[ESTIMATES] = {
            name: {**estimate, "parameters": {}, **{what: _two_digits(estimate[what]) for what in ("uniques", "share")}}
            for name, estimate in before[ESTIMATES].items()
        }
    return coarsened


def beside_population(risk: dict[str, Any]) -> dict[str, Any]:
    """The risks that are counted in the population table as well, whose people are not released: to two digits."""
    journalist = {what: _two_digits(share) for what, share in risk["journalist"].items()}
    return {"journalist": journalist, "marketer": _two_digits(risk["marketer"])}


def weighted(risk: dict[str, Any], people: int) -> dict[str, Any]:
    """The risk of a weighted sample whose weights are released, as bounds: risks are at most, people at least so much.

    A class has few people, one of whom is a good part of its weight: of people whose weights a reader has not, two
    digits would tell that part. Bounds are 1, 2 or 5 times a power of ten, and never say that people are safer than
    they are. Of fewer than 100 people nothing is told.
    """
    if people < FEWEST:
        return {}
    at_least = {what: _step_below(risk[what]) for what in ("population", "smallest_class")}
    return {"weighted": at_least | {what: min(1.0, _step(risk[what])) for what in ("max", "mean")}}


def utility(content: dict[str, Any]) -> dict[str, Any]:
    """Scores of models, whose folds are drawn under the private key; how many people a group has, coarsely.

    Those of other targets stand under `targets`, in the same form.
    """
    coarsened: dict[str, Any] = rounded(content)
    coarsened |= (
        {"targets": {name: utility(of_target) for name, of_target in content["targets"].items()}}
        if "targets" in content
        else {}
    )
    for group in coarsened.get("subgroups") or []:
        group["people"] = coarse(group["people"], content["rows"])
    return coarsened


def masking(reports: list[dict[str, Any]] | None, people: int) -> list[dict[str, Any]] | None:
    """What each step did, what it cost coarsely: that is counted from values that are not released."""
    if reports is None:
        return None
    return [
        {**report, "costs": coarse(report["costs"], people), "linkage": _linkage(report["linkage"], people)}
        for report in reports
    ]


def _two_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")


def _linkage(linkage: dict[str, Any] | None, people: int) -> dict[str, Any] | None:
    return None if linkage is None else {**linkage, "rate": coarse(float(linkage["rate"]), people)}


def _step_below(most: float) -> float:
    """The largest of 1, 2, 5, 10, ... times a power of ten that is at most so large."""
    power = 10.0 ** math.floor(math.log10(most) + 1e-9)
    return next(float(f"{times * power:.1g}") for times in (5, 2, 1) if times * power <= most * (1 + 1e-9))


def _step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, ... times a power of ten that is at least so large."""
    power = 10.0 ** math.floor(math.log10(least) + 1e-9)
    return next(float(f"{times * power:.1g}") for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
