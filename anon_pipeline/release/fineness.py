"""The coarsening of published figures, so that they do not reveal single people.

A figure with all its digits is a hash of the rows that it was counted from. An attacker who knows all rows but one can
try every possible value of the last row, and keep the one that gives these digits. Figures of the released tables may
be exact, since anybody can count them again. Other figures are of two kinds. Those that depend on random draws by the
private key cannot be counted again, and have a few digits. Those that are counted from the source alone are told with
noise, in steps that one person seldom moves a figure across (`Noise`). None of this is differential privacy, as nothing
bounds what one person can do to a figure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from typing import Any

from anon_pipeline.privacy.risk import BUCKETS
from anon_pipeline.privacy.uniqueness import MOST_FOR_PITMAN
from anon_pipeline.release.noise import NO_NOISE, Noise
from anon_pipeline.tables import nearly_constant

DIGITS = 4

#: A number in a sentence that is no part of a name such as x7, and what stands in its place.
NUMBER, LEFT_OUT = re.compile(r"(?<!\w)\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?!\w)"), "…"

#: The key of the estimates of unique people in the population.
ESTIMATES = "population_uniqueness"

#: The measures of association that can be negative.
SIGNED = {"pearson", "spearman"}

#: For fewer people, no figure that is counted from the source alone is published.
FEWEST = 100

#: So many steps of unique people are told only where there are some, but for noise of one in five hundred.
SURELY = 3

#: The step in which people are counted before the step of a figure follows from their number.
DECIDING = 4

#: One person moves a figure by at most this part of its step, where one can move it far.
PART_OF_A_STEP = 0.1
#: The same of the loss of a column, which one person seldom moves as far.
PART_OF_A_LOSS = 0.25


def rounded(content: Any) -> Any:
    """The same plain data with every float rounded to 4 significant digits."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return float(f"{content:.{DIGITS}g}") if isinstance(content, float) and math.isfinite(content) else content


def coarse(content: Any, people: int, noise: Noise, signed: bool = False) -> Any:
    """The same plain data, in steps that one of n people seldom changes; None for fewer than 100 people.

    Shares and correlations, which one person changes by about 1/n, are told in steps of at least 1/sqrt(n). Whole
    numbers count people and are told in steps of at least sqrt(n); of n people no more than n are told, since the last
    step may end beyond them. Steps are 1, 2 or 5 times a power of ten.

    Parameters
    ----------
    noise : that of the figures, by their keys
    signed : whether shares can be negative, as correlations and differences are
    """
    if isinstance(content, dict):
        return {key: coarse(value, people, noise.of(str(key)), signed) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [coarse(value, people, noise.of(str(place)), signed) for place, value in enumerate(content)]
    if isinstance(content, bool) or not isinstance(content, int | float) or not math.isfinite(content):
        return content
    if people < FEWEST:
        return None
    if isinstance(content, int):
        told = in_steps(content, round(step_at_least(math.sqrt(people))), noise)
        return min(told, people) if content <= people else told
    return share_in_steps(content, step_of(people), noise, signed)


def in_steps(number: int, step: int, noise: Noise) -> int:
    """A number of people in whole steps, after noise."""
    return step * max(noise.steps(number, step), 0)


def share_in_steps(share: float, step: float, noise: Noise, signed: bool = False) -> float:
    """A share in whole steps, after noise: from 0, or from -1 if it can be negative, to 1."""
    told = min(max(step * noise.steps(share, step), -1.0 if signed else 0.0), 1.0)
    return float(f"{told:.{DIGITS}g}")


def lost(shares: dict[str, Any], people: int, noise: Noise) -> dict[str, Any]:
    """Shares of the variance that are lost, in the step of the people, also for few.

    They compare what classes show with values that they hide; in all digits they would tell who knows the other values
    the last one.
    """
    return {
        name: share_in_steps(share, step_of(people), noise.of(name))
        if share is not None and math.isfinite(share)
        else None
        for name, share in shares.items()
    }


def step_of_loss(people: int, apart: int) -> float | None:
    """The step in which the loss of a column is told, of which so many people have another value than most.

    The variance is theirs, so that one of them more or less moves the loss by up to one over their number. None for
    fewer than ten, or of fewer than 100 people for a tenth of them: such a column counts as one of a single value.
    """
    step = step_at_least(max(1 / math.sqrt(max(1, people)), 1 / max(1, apart) / PART_OF_A_LOSS))
    return None if step > 1 or nearly_constant(apart, people) else step


def without_numbers(sentence: str) -> str:
    """The message of an error as others may read it: any number in it may have been measured on people."""
    return NUMBER.sub(LEFT_OUT, sentence)


def step_of(people: int) -> float:
    """The step to which shares of so many people are rounded."""
    return step_at_least(1 / math.sqrt(max(1, people)))


def associations(content: dict[str, Any], people: int, noise: Noise) -> dict[str, Any]:
    """The associations in the source, with noise, and in the release, in the same step so that they can be compared.

    A pair has the same noise in whichever order the spec names its columns, and whichever of them is sensitive. Its
    step follows from the people of whom both values are known, and from how many of them differ, with noise as
    well: one of them would else decide it. If these are few, nothing is said of the pair; that it has no association,
    since a column is constant, is told as one of 0. A measure that cannot be negative is the root of a share, which one
    person can move far near 0; so its square is told in steps.
    """
    pairs = []
    for pair in content["pairs"]:
        of_pair, signed = noise.of("associations", *sorted(pair["columns"])), pair["measure"] in SIGNED
        apart = dict(zip(pair["columns"], pair["apart"], strict=True))
        step = step_of_pair(in_steps(pair["people"], DECIDING, of_pair.of("people")), apart, noise)
        told: dict[str, float | None] = {"before": None, "after": None}
        if step is not None:
            told["before"] = strength(pair["before"] or 0.0, signed, step, of_pair)
            if pair["after"] is not None:  # which who has the release can count again
                told["after"] = strength(pair["after"], signed, step, NO_NOISE)
        pairs.append({name: value for name, value in pair.items() if name not in ("people", "apart")} | told)
    return {**content, "step": step_of(people) if people >= FEWEST else None, "pairs": pairs}


def step_of_pair(people: int, apart: dict[str, int], noise: Noise) -> float | None:
    """The step of an association of so many people, of whom so many differ by column; None where these are few.

    A column has the same noise in all pairs: it is not to be averaged over them.
    """
    differ = min(in_steps(number, DECIDING, noise.of("apart", name)) for name, number in apart.items())
    return None if people < FEWEST else step_of_loss(people, differ)


def strength(value: float, signed: bool, step: float, noise: Noise) -> float:
    """The strength of an association, told after noise: a signed one in steps, else the root of a share in steps."""
    if signed:
        return share_in_steps(value, step, noise, signed)
    return float(f"{math.sqrt(share_in_steps(value**2, step, noise)):.{DIGITS}g}")


def risk(before: dict[str, Any], people: int, noise: Noise) -> dict[str, Any] | None:
    """The re-identification risk of the source, coarsened; None for few people.

    One person decides the largest risk, so it is what the told number of unique people says: 1 if there must be any,
    else unknown. A class that grows by one person takes all its people into another range of sizes, and so their number
    is told in larger steps. Estimates of the population's uniques follow the number of unique people as well, and say
    the share of the population in steps; whether an estimator converged, and on what, can depend on one person.
    """
    if people < FEWEST:
        return None
    noise = noise.of("risk")
    plain = {name: figure for name, figure in before.items() if name not in (ESTIMATES, "records", "marketer")}
    coarsened: dict[str, Any] = (
        coarse(plain, people, noise) | {"records": people} | _by_class_size(before, people, noise)
    )
    if "classes" in before:  # the mean is their number over that of the people, and the marketer's risk is the mean
        mean = share_in_steps(coarsened["classes"] / people, step_of(people), NO_NOISE)
        coarsened["prosecutor"] |= {"mean": mean}
        coarsened |= {"marketer": None if before["marketer"] is None else mean}
    some_are_unique = (coarsened.get("unique_records") or 0) >= SURELY * step_at_least(math.sqrt(people))
    for of in ("prosecutor", "journalist"):
        if coarsened.get(of):
            coarsened[of] |= {"max": 1.0 if some_are_unique and of == "prosecutor" else None}
    if "share_above" in before.get("prosecutor", {}):
        above = _share_above(before["prosecutor"]["share_above"], people, noise)
        coarsened["prosecutor"] |= {"share_above": above}
    if ESTIMATES in before:
        pairs = coarsened.get("records_by_class_size", {}).get("2")
        coarsened[ESTIMATES] = _estimates(before[ESTIMATES] if some_are_unique else {}, pairs, people, noise)
    return coarsened


def moved_together(number: int, people: int, moved: int, noise: Noise) -> int | None:
    """A number of people in steps, of whom one person can move so many; None where no step would hide them."""
    step = round(step_at_least(max(math.sqrt(people), moved / PART_OF_A_STEP)))
    return None if max(step, FEWEST) > people else min(in_steps(number, step, noise), people)


def _by_class_size(before: dict[str, Any], people: int, noise: Noise) -> dict[str, Any]:
    """People by the size of their class; the largest class of each range can be moved by one person."""
    if "records_by_class_size" not in before:
        return {}
    told = {}
    largest = [*(following - 1 for following in BUCKETS[1:]), BUCKETS[-1]]
    for (sizes, of), most in zip(before["records_by_class_size"].items(), largest, strict=True):
        name = "unique_records" if most == 1 else sizes  # the same figure has the same noise
        told[sizes] = moved_together(of, people, most, noise.of(name))
    return {"records_by_class_size": told}


def _share_above(shares: dict[str, float], people: int, noise: Noise) -> dict[str, float | None]:
    """The shares of people whose risk is above a threshold, and so whose class is smaller than one over it.

    A share above a lower threshold is at least that above a higher one, which noise would not know.
    """
    told: dict[str, float | None] = dict.fromkeys(shares)
    least = 0.0
    for threshold, share in sorted(shares.items(), key=lambda above: -float(above[0])):
        step = step_at_least(max(1 / math.sqrt(people), 1 / float(threshold) / people / PART_OF_A_STEP))
        of_threshold = noise.of("share_above", threshold)
        if step <= 1:
            told[threshold] = least = max(share_in_steps(share, step, of_threshold), least)
    return told


def _estimates(estimates: dict[str, Any], pairs: int | None, people: int, noise: Noise) -> dict[str, Any]:
    """What is told of the estimates of the population's uniques; `pairs` are people in classes of two, as told.

    Without pairs the SNB estimate does not converge, and with the first it does: it is told from three steps of such
    people on. Dankar's rule takes the smaller of two, so its share is that of what is told of them.
    """
    told = {name: _estimate(estimate, people, noise.of(ESTIMATES, name)) for name, estimate in estimates.items()}
    step = step_at_least(max(math.sqrt(people), 2 / PART_OF_A_STEP))
    if "snb" in told and pairs is not None and pairs < SURELY * step:
        told["snb"] |= {"uniques": None, "share": None}
    if "dankar" in told and told["dankar"]["share"] is not None:
        shares = [told[of]["share"] for of in ("zayatz", "snb") if of in told]
        told["dankar"] |= _of_population(None if None in shares else min(shares, default=None), told["dankar"])
    return told


def _estimate(estimate: dict[str, Any], people: int, noise: Noise) -> dict[str, Any]:
    """An estimate of the population's uniques, of which the share is rounded to the step of the people.

    Pitman's is not told, and neither is that of the rule that takes it for small samples: where few people share
    anything, one pair more halves it.
    """
    of_pitman = estimate["model"] == "pitman" or (
        estimate["model"] == "dankar" and estimate["sampling_fraction"] <= MOST_FOR_PITMAN
    )
    named = {what: estimate[what] for what in ("model", "sampling_fraction", "population")}
    return named | _of_population(None if of_pitman else coarse(estimate["share"], people, noise), named)


def _of_population(share: float | None, of: dict[str, Any]) -> dict[str, Any]:
    return {"uniques": None if share is None else _two_digits(share * of["population"]), "share": share}


def beside_population(risk: dict[str, Any]) -> dict[str, Any]:
    """The risks, with two digits for those that also count the population table, whose people are not released."""
    journalist = {what: _two_digits(share) for what, share in risk["journalist"].items()}
    return {"journalist": journalist, "marketer": _two_digits(risk["marketer"])}


def weighted(risk: dict[str, Any], people: int) -> dict[str, Any]:
    """The risk of a weighted sample whose weights are released, as upper bounds of risks and lower bounds of people.

    A class has few people, so that one of them has a large part of its weight. If a reader does not have the weights of
    the others, two digits would reveal that part. Bounds are 1, 2 or 5 times a power of ten, and never state a lower
    risk than the true one. For fewer than 100 people, nothing is published.
    """
    if people < FEWEST:
        return {}
    at_least = {what: _step_below(risk[what]) for what in ("population", "smallest_class")}
    return {"weighted": at_least | {what: min(1.0, step_at_least(risk[what])) for what in ("max", "mean")}}


def utility(content: dict[str, Any], noise: Noise) -> dict[str, Any]:
    """Rounded scores of models, whose folds are drawn with the private key, and the change for groups of people.

    A group is defined by the source, and the people of a class may come from several. So its scores would say what the
    class hides: the share of the group with each value of the target, and an error that is one person's. Only the
    difference of the accuracy is published, in steps of 1/sqrt(people of the group), and for 100 people or more.
    Calibration is coarsened, too. Scores of other targets are under `targets`, in the same form.

    Parameters
    ----------
    noise : that of the sizes of groups, which are counted in the source
    """
    coarsened: dict[str, Any] = rounded(content)
    if content.get("calibration"):
        coarsened["calibration"] = _calibration(content["calibration"], content["rows"], content["task"])
    if "targets" in content:
        of_targets = content["targets"].items()
        coarsened["targets"] = {name: utility(of, noise.of("targets", name)) for name, of in of_targets}
    if "subgroups" in content:
        groups = [group for group in content["subgroups"] or [] if "accuracy" in group["metrics"]]
        told = [
            _difference_of(group, content["rows"], noise.of("subgroups", group["column"], group["value"]))
            for group in groups
        ]
        _tell_once(told, Counter(group["column"] for group in groups), content["rows"])
        coarsened["subgroups"] = [group for group in told if group is not None]
    return coarsened


def _difference_of(group: dict[str, Any], rows: int, noise: Noise) -> dict[str, Any] | None:
    """A group of people, by how much more often or seldom they are predicted rightly, and the step of that.

    Whether the group is told, and in which step, follows from how many people it has with noise: one of them would else
    decide it. None for few.
    """
    counting = in_steps(group["people"], DECIDING, noise.of("counting"))
    if counting < FEWEST or rows < FEWEST:
        return None
    change = group["metrics"]["accuracy"]["difference"]["mean"]
    difference = {"mean": coarse(change, counting, NO_NOISE, signed=True)}  # of folds and models that are drawn
    people = coarse(group["people"], rows, noise.of("people"))
    named = {"column": group["column"], "value": group["value"], "people": people}
    return named | {"step": step_of(counting), "metrics": {"accuracy": {"difference": difference}}}


def _tell_once(told: list[dict[str, Any] | None], groups: Counter[str], rows: int) -> None:
    """Of two groups that hold everybody, the second has those whom the first has not: it is the same number."""
    for first, second in pairwise(told):
        if first and second and first["column"] == second["column"] and groups[first["column"]] == 2:
            second["people"] = coarse(rows - first["people"], rows, NO_NOISE)


def _calibration(measured: dict[str, Any], rows: int, task: str) -> dict[str, Any]:
    """The calibration error, and for classes what was predicted of groups of 100 people or more, and what was true.

    A true share of 0 would say that nobody of a group has the value, to all who can tell from the release that somebody
    belongs to it. True shares are therefore rounded to a `step` of 1/sqrt(people of the group), where one person in a
    group hardly shows. The mean of numbers can be one person's, so regressions publish the error alone.
    """
    published: dict[str, Any] = {"of": measured["of"], "error": rounded(measured["error"])}
    if task == "regression" or rows < FEWEST:
        return published
    groups = {when: _of_many(measured[when]) for when in ("before", "after")}
    fewest = min(min(of["people"]) for of in groups.values())
    curves = {
        when: {
            "people": coarse(of["people"], rows, NO_NOISE),
            "predicted": rounded(of["predicted"]),
            "observed": coarse(of["observed"], fewest, NO_NOISE),
        }
        for when, of in groups.items()
    }
    return published | curves | {"step": step_of(fewest)}


def _of_many(groups: dict[str, Any]) -> dict[str, list[Any]]:
    """The same groups in the same order, each joined with the next until it has 100 people."""
    joined: list[tuple[int, float, float]] = []
    for people, predicted, observed in zip(groups["people"], groups["predicted"], groups["observed"], strict=True):
        if joined and joined[-1][0] < FEWEST:
            joined[-1] = _together(joined[-1], (people, predicted, observed))
        else:
            joined.append((people, predicted, observed))
    if len(joined) > 1 and joined[-1][0] < FEWEST:
        joined[-2:] = [_together(*joined[-2:])]
    return dict(zip(("people", "predicted", "observed"), map(list, zip(*joined, strict=True)), strict=True))


def _together(first: tuple[int, float, float], second: tuple[int, float, float]) -> tuple[int, float, float]:
    people = first[0] + second[0]
    predicted, observed = ((first[0] * first[i] + second[0] * second[i]) / people for i in (1, 2))
    return people, predicted, observed


def _two_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")


def _step_below(most: float) -> float:
    """The largest of 1, 2, 5, 10, ... times a power of ten that is at most `most`."""
    power = 10.0 ** math.floor(math.log10(most) + 1e-9)
    return next(float(f"{times * power:.1g}") for times in (5, 2, 1) if times * power <= most * (1 + 1e-9))


def step_at_least(least: float) -> float:
    """The smallest of 1, 2, 5, 10, ... times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(float(f"{times * power:.1g}") for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
