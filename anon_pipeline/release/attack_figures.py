"""The figures of attacks as a manifest tells them: what they count among people who are in no file is told in steps.

Where people are held out of a release, everything that an attack counts among them follows from the published table and
from their values. Whoever knows all of this but one value could try every value and keep those that give the published
figures. So shares of them have noise and stand in steps that one of them seldom changes, numbers in steps of about the
root of their number, and leaks, intervals, verdicts and sentences are computed from these. What a single one of them
can move far, as a threshold among the highest scores, is not told. The same holds of members then: which classes
somebody fits follows from the published table and from quasi-identifiers that it does not show. A number that several
findings state is told once: the mean of several draws would have less noise.

The control people of a twin are drawn with the private key, and so is the twin: nobody else can count them again. But
members and control people together are everybody, so what is counted in both can add up to a number of the source. That
is so for rare values, for people who fit earlier releases, and for people whom the guiding model is asked about.

Bounds are judged before, on exact figures. These stay in the private zone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anon_pipeline.attack import limits, model_inference
from anon_pipeline.attack.intersection import FEWEST, OF_WHO_FIT
from anon_pipeline.attack.intersection import NAME as INTERSECTION
from anon_pipeline.attack.membership_inference import MembershipFinding
from anon_pipeline.attack.rates import BY_KEPT_COLUMNS, NARROW, Rate, Rates, clopper_pearson, known, wilson, with_rates
from anon_pipeline.attack.roc import Z
from anon_pipeline.release.fineness import (
    PART_OF_A_STEP,
    in_steps,
    rounded,
    share_in_steps,
    step_at_least,
    without_numbers,
)
from anon_pipeline.release.noise import Noise
from anon_pipeline.spec.parts import Audit

Facts = dict[str, Any]

#: Attacks that count people whom values choose, those who have a rare value or fit earlier releases, and not the people
#: asked about.
OF_SOME_PEOPLE = ("skewness: ", "minimality: ", OF_WHO_FIT)
#: The attacks whose control is rows in random order, and not people.
OF_ROWS = "row order"
#: The scale of each draw of the noise, in steps: smaller than elsewhere, since intervals allow for it; and for how many
#: scales, which covers 95 % of all sums of two draws.
SCALE, COVERED = 0.07, 4.1
#: The attack whose blind guess follows from the classes that members fit.
OF_RANGES = "similarity: "
#: The attacks that are made with two, three, half of and all quasi-identifiers.
BY_KNOWLEDGE = "linkage, "
#: Details of a finding about members that everybody can count in the released table, and shares of the people asked.
OF_THE_TABLE = {
    "marketer_risk", "groups", "in_homogeneous_groups", "homogeneous_groups", "labels", "in_narrow_groups",
    "share_of_ranks",
}  # fmt: skip
OF_MEMBERS = {"success_among_all_that_fit", "guess_certain"}
#: Details of singling out that follow from the released table; all others count the people who meet a condition.
OF_CONDITIONS = {"conditions", "by_column"}
#: The detail of the order of rows that says how many of them follow one another as in the source.
NEIGHBOURS = "neighbours_in_source_order"
#: The most that conditions single out by luck: a condition that one of n people is expected to meet.
MOST_LUCK = math.exp(-1)


@dataclass(frozen=True)
class _Asked:
    """Who was attacked.

    Attributes
    ----------
    released : number of members
    members, control : number of people asked about at most
    members_per_control : members for each control person, of all of them
    random_columns : people who are asked about with random columns at most
    held_out : whether the control people are in no file
    beside_earlier : what earlier releases tell of all people asked about, in the release and not, where it is known
    noise : that of figures which are told in steps
    """

    released: int
    members: int
    control: int
    members_per_control: float
    random_columns: int
    held_out: bool
    beside_earlier: tuple[Rate, Rate] | None
    noise: Noise


def audit(content: Facts | None, asked: Audit, noise: Noise) -> Facts | None:
    """The results of the attacks, as `audit.people.audit` gives them, as fine as may be published."""
    if content is None:
        return None
    published = _with_reasons(content)
    noise = noise.of("audit").at_most(SCALE)
    if "control" in content and content.get("findings"):
        members, control = content["members"], content["control"]
        of = _Asked(
            released=members,
            members=min(members, asked.targets),
            control=min(control, asked.targets),
            members_per_control=members / max(control, 1),
            random_columns=max(min(control, asked.targets // 4), 1),
            held_out=content["control_kind"] == "held_out",
            beside_earlier=next(
                (
                    (Rate(**finding["attack"]), Rate(**finding["control"]))
                    for finding in content["findings"]
                    if finding["name"] == INTERSECTION and finding["control"]
                ),
                None,
            ),
            noise=noise,
        )
        # It learns from members: with one value changed it picks other records for many people, so that no step of its
        # figures hides one person.
        hidden = BY_KEPT_COLUMNS if of.held_out else None
        findings = [finding for finding in content["findings"] if finding["name"] != hidden]
        published["findings"] = _by_knowledge_as_found([_finding(finding, of) for finding in findings])
        if "guide" in content:
            published["guide"] = _guide(published["guide"], control, of.held_out, noise.of("guide"))
        if "bounds" in content:
            upper = asked.bounds_on == "upper_end"
            left_out = "linkage" if len(findings) < len(content["findings"]) else None
            published["bounds"] = [
                _bound(bound, published["findings"] if bound["name"] != left_out else [], upper)
                for bound in content["bounds"]
            ]
    return dict(rounded(published))


def checks(answers: Sequence[Facts], published: Facts | None) -> list[Facts]:
    """The answers of all checks, those on bounds of leaks with what `audit` tells of them."""
    bounds = {bound["name"]: bound["measured"] for bound in (published or {}).get("bounds") or []}
    return [
        _check(answer, bounds[answer["name"]])
        if limits.limits_leaks(answer["name"]) and bounds.get(answer["name"]) is not None
        else answer
        for answer in answers
    ]


def _check(answer: Facts, measured: float) -> Facts:
    return {**answer, "measured": measured, "sentence": f"{answer['demand']}; measured {100 * measured:.4g} %"}


def _with_reasons(content: Facts) -> Facts:
    """The same with the reasons why something was not attacked, without the numbers of a message about people.

    Of a few people with a target such a message says exactly how many they are, also of those who are in no file.
    """
    published = dict(content)
    for whom in ("models", "guide"):
        if "skipped" in content.get(whom, {}):
            published[whom] = {**content[whom], "skipped": without_numbers(content[whom]["skipped"])}
    why = content.get("skipped")
    if why is not None and not why.startswith(f"{content['people']} people "):  # their number is public
        published["skipped"] = without_numbers(why)
    return published


# The findings


def _finding(finding: Facts, of: _Asked) -> Facts:
    """A finding with the rates of people who are in no file in steps, and all that follows from these rates."""
    name, criterion = str(finding["name"]), finding["criterion"]
    attack, baseline = Rate(**finding["attack"]), Rate(**finding["baseline"])
    control = None if finding["control"] is None else Rate(**finding["control"])
    of_attack, of_control = of.noise.of(name, "attack"), of.noise.of(name, "control")
    if name.startswith(OF_SOME_PEOPLE):  # also where no member was found to be one, since others may be
        named = _some_people(attack, of.members, of_attack, _trials_of(name, "attack", of))
        others = (
            None if control is None else _some_people(control, of.control, of_control, _trials_of(name, "control", of))
        )
        if name == OF_WHO_FIT:
            named, others = _of_enough(named, others, of)
            baseline = _at_random(baseline, of) if of.held_out else baseline
        return with_rates(finding, Rates(named, others, known(baseline.rate, named.trials)))
    if control is None or not of.held_out:
        return finding
    if name.startswith(OF_ROWS):
        return _ordered(finding, attack, control, of)
    if not attack.trials:  # that nothing can be tried follows from the table
        return finding
    if criterion == "singling_out":
        return _singled_out(finding, attack, control, of)
    if criterion == "membership":
        # Half of all are said to be in the release, so what is said of members tells what is said of the others.
        named = _in_steps(attack, attack.trials, of_attack)
        rates = Rates(named, _all_but(named), known(0.5, named.trials))
        curves = _curves(finding["details"], attack.trials, of.noise.of(name))
        return {**with_rates(finding, rates), "details": curves}
    if criterion == "linkability":
        baseline = _at_random(baseline, of)
    if name.startswith(OF_RANGES):
        step = NARROW * _step(attack.trials)  # one of them moves it by so much less than a rate
        baseline = known(share_in_steps(baseline.rate, step, of.noise.of(name, "baseline")), attack.trials)
    named = _share_in_steps(attack, attack.trials, of_attack)
    published = with_rates(finding, Rates(named, _in_steps(control, of.control, of_control), baseline))
    return {**published, "details": _details(finding["details"], named, of, of.noise.of(name))}


def _ordered(finding: Facts, attack: Rate, control: Rate, of: _Asked) -> Facts:
    """How many rows stand in the source's order is drawn; how many people differ, which are the trials, is in steps.

    Which rows follow one another as in the source hangs on where each value puts a person among the others there.
    """
    noise = of.noise.of(str(finding["name"]))
    trials = min(max(_number(attack.trials, of.released, noise.of("trials")), 1), of.released)
    chance = _blind(control, trials, of, noise.of("control"))
    rates = Rates(
        clopper_pearson(round(attack.rate * trials), trials, 0.999), chance, chance, others="rows in random order"
    )
    told: Facts = {"distinct_people": None, "expected_links": rates.attack.successes}
    if (neighbours := finding["details"].get(NEIGHBOURS)) is not None:
        told[NEIGHBOURS] = _share(neighbours, trials, noise.of(NEIGHBOURS))
    details = {name: told.get(name, figure) for name, figure in finding["details"].items()}
    return {**(with_rates(finding, rates) if attack.trials else finding), "details": details}


def _trials_of(name: str, side: str, of: _Asked) -> Noise:
    """The noise of how many people there are whom an attack names; of a column they are the same in all attacks."""
    return of.noise.of("some people", name.partition(": ")[2], side)


def _some_people(rate: Rate, asked: int, noise: Noise, noise_of_trials: Noise) -> Rate:
    return _of_so_many(rate, _number(rate.trials, asked, noise_of_trials), noise)


def _of_enough(named: Rate, others: Rate | None, of: _Asked) -> tuple[Rate, Rate | None]:
    """Those who fit earlier releases, where they surely are as many as the attack asks for, and not everybody.

    Of fewer it counts nobody, and all control people in their place. Which of both it did must not show where one
    person decides it, so neither is told within two steps. Where by their told number everybody fits, what is told of
    everybody stands here: with noise of its own the same number would be told twice, and if only the very number of
    everybody were told so, a single person who does not fit would show.
    """
    if named.trials < FEWEST + 2 * _step_of_number(of.members):
        named = wilson(0.0, 0)
    if of.beside_earlier is None or others is None:
        return named, others
    everybody, every_other = of.beside_earlier
    if named.trials > of.members - _step_of_number(of.members):
        named = _share_in_steps(everybody, everybody.trials, of.noise.of(INTERSECTION, "attack"))
    step = _step_of_number(of.control)
    if others.trials < FEWEST + 2 * step or others.trials > of.control - step:
        others = _in_steps(every_other, of.control, of.noise.of(INTERSECTION, "control"))
    return named, others


def _all_but(rate: Rate) -> Rate:
    """The share of as many others: who says "in" of half of all says it of the others as seldom as often of members."""
    others = rate.trials - rate.successes
    return Rate(others, rate.trials, 1 - rate.rate, 1 - rate.high, 1 - rate.low) if rate.trials else rate


def _at_random(rate: Rate, of: _Asked) -> Rate:
    """How often a record drawn at random is right, of the people asked; all attacks of these compare with it."""
    return _blind(rate, rate.trials, of, of.noise.of("drawn at random", str(rate.trials)))


def _blind(rate: Rate, trials: int, of: _Asked, noise: Noise) -> Rate:
    """How often a record drawn at random is right: in steps, and at least once in all records."""
    return known(max(_share(rate.rate, trials, noise), 1 / of.released), trials)


def _details(details: Facts, attack: Rate, of: _Asked, noise: Noise) -> Facts:
    """What everybody can count, shares of members in steps, and what follows from the told rate; nothing else.

    Other details are of a few members, or follow from one of them, such as the fewest records that fit somebody.
    """
    told: Facts = dict.fromkeys(details)
    told |= {name: figure for name, figure in details.items() if name in OF_THE_TABLE}
    told |= {name: _share(details[name], attack.trials, noise.of(name)) for name in OF_MEMBERS & details.keys()}
    follow = {"expected_links": attack.rate * of.released, "expected_links_of_targets": attack.successes}
    told |= {name: figure for name, figure in follow.items() if name in details}
    if "by_knowledge" in details:
        told["by_knowledge"] = [
            _by_knowledge(size, of.random_columns, noise.of(str(place)))
            for place, size in enumerate(details["by_knowledge"])
        ]
    return told


def _singled_out(finding: Facts, attack: Rate, control: Rate, of: _Asked) -> Facts:
    """Every share in steps; of the luck the estimate is told, and its interval is all that luck can be.

    Conditions follow from the table. Which members meet one, and so which of them meet it alone, follows from
    quasi-identifiers that it does not show; so does how often a condition would be met blindly.

    The luck among all members is estimated from fewer control people, so that one of these weighs as much as several
    members. The ends of its exact interval solve linear programs, and one person can move them farther.
    """
    conditions, noise = attack.trials, of.noise.of(str(finding["name"]))
    step = step_at_least(max(1 / math.sqrt(conditions), max(of.members_per_control, 1) / conditions / PART_OF_A_STEP))
    rate = min(share_in_steps(control.rate, step, noise.of("control")), MOST_LUCK)
    luck = Rate(rate * conditions, conditions, rate, 0.0, MOST_LUCK)
    blind = known(_share(float(finding["baseline"]["rate"]), conditions, noise.of("baseline")), conditions)
    alone = _share_in_steps(attack, conditions, noise.of("attack"))
    details = {name: figure if name in OF_CONDITIONS else None for name, figure in finding["details"].items()}
    return {
        **with_rates(finding, Rates(alone, luck, blind, others="as many people not in it")),
        "details": details,
    }


def _by_knowledge(size: Facts, people: int, noise: Noise) -> Facts:
    return {
        name: figure if figure is None or name == "known" else _share(figure, people, noise.of(name))
        for name, figure in size.items()
    }


def _by_knowledge_as_found(findings: list[Facts]) -> list[Facts]:
    """The same, where what is right with so many columns known is told as in the finding of these, which counts it."""
    found = {
        len(finding["knowledge"]["columns"]): finding
        for finding in findings
        if finding["name"].startswith(BY_KNOWLEDGE)
        and finding["name"] != BY_KEPT_COLUMNS
        and not finding["knowledge"]["wrong"]
    }
    told = []
    for finding in findings:
        details = finding["details"]
        if details.get("by_knowledge"):
            sizes = [_as_found(size, found.get(size.get("known"))) for size in details["by_knowledge"]]
            details = {**details, "by_knowledge": sizes}
        told.append({**finding, "details": details})
    return told


def _as_found(size: Facts, finding: Facts | None) -> Facts:
    if finding is None:
        return size
    return {**size, **{side: finding[side] and finding[side]["rate"] for side in ("attack", "control")}}


def _curves(details: Facts, people: int, noise: Noise) -> Facts:
    """Areas under curves in steps; shares at a threshold follow from a few control people, and are left out."""
    return {
        name: None
        if name.startswith("tpr_at") or curve is None
        else _area(curve["value"], people, people, noise.of(name))
        for name, curve in details.items()
    }


# The guiding model


def _guide(guide: Facts, control: int, held_out: bool, noise: Noise) -> Facts:
    """The attacks on the guiding model; people without a target are not asked about, so their number is told in steps.

    The step is that of all control people, and all that follows from how many were asked follows from the told number:
    an interval in four digits tells the number that it was computed from.

    An inverted model is made of the frequent values of members and control people, so all of its rates are in steps.
    """
    if "membership" not in guide:
        return guide
    others = _number(guide["non_members"], control, noise.of("non_members"))
    return {
        **guide,
        "non_members": others,
        "membership": [_membership(finding, others, held_out, noise) for finding in guide["membership"]],
        "inference": [_inverted(finding, others, held_out, noise) for finding in guide["inference"]],
    }


def _membership(finding: Facts, others: int, held_out: bool, noise: Noise) -> Facts:
    exact = MembershipFinding.of(finding)
    published = replace(exact, non_members=others)
    if held_out:
        area = _area(exact.auc, exact.members, others, noise.of(exact.model, exact.attack))
        published = replace(
            published,
            auc=area["value"],
            auc_low=area["low"],
            auc_high=area["high"],
            at_1_percent=None,
            at_0_1_percent=None,
            epsilon=None,
        )
    return published.to_json()


def _inverted(finding: Facts, non_members: int, held_out: bool, noise: Noise) -> Facts:
    noise = noise.of(str(finding["name"]))
    attack = Rate(**finding["attack"])
    control = None if finding["control"] is None else Rate(**finding["control"])
    named = _in_steps(attack, attack.trials, noise.of("attack"))
    baseline = _of_so_many(Rate(**finding["baseline"]), named.trials, noise.of("baseline"))
    others = None if control is None else _in_steps(control, non_members, noise.of("control"))
    rates = Rates(named, others, baseline)
    published = model_inference.with_rates(finding, rates)
    if held_out:
        near = finding["details"].get("nearness")
        fewest = named.trials if others is None else min(named.trials, others.trials)
        published["details"] = {
            **finding["details"],
            "labels": None,  # one of them may be that of a single person
            "nearness": None if near is None else _area(near["auc"], fewest, fewest, noise.of("nearness"), "auc"),
        }
    return published


# Bounds


def _bound(bound: Facts, findings: Sequence[Mapping[str, Any]], upper: bool) -> Facts:
    """A bound with what the told findings say; it was judged on exact ones, so it never reads as broken if it holds.

    Where not all of its findings are told there are none here, and no more is told than that it holds.
    """
    if bound["measured"] is None or not limits.limits_leaks(bound["name"]):
        return bound
    published = limits.largest_leak(findings, bound["name"], upper)
    if bound["holds"]:
        published = bound["limit"] if published is None else min(published, bound["limit"])
    return {**bound, "measured": published}


# Steps


def _in_steps(rate: Rate, asked: int, noise: Noise) -> Rate:
    """A rate of `asked` people at most: share and number of people in steps, and an interval that allows for both.

    The successes follow from both, so that they tell no more.
    """
    return _of_so_many(rate, _number(rate.trials, asked, noise.of("trials")), noise)


def _of_so_many(rate: Rate, trials: int, noise: Noise) -> Rate:
    """The share in steps, and an interval, of a told number of people."""
    return _share_in_steps(rate, trials, noise) if trials else wilson(0.0, 0)


def _share_in_steps(rate: Rate, trials: int, noise: Noise) -> Rate:
    share, off = _share(rate.rate, trials, noise), _off(_step(trials), noise)
    least, most = (min(max(end, 0.0), 1.0) for end in (share - off, share + off))
    low, high = wilson(least * trials, trials).low, wilson(most * trials, trials).high
    return Rate(share * trials, trials, share, low, high)


def _off(step: float, noise: Noise) -> float:
    """How far a figure can be off for its step, and in 95 % of all draws for its noise."""
    return step * (0.5 + COVERED * noise.scale)


def _number(people: int, of: int, noise: Noise) -> int:
    return in_steps(people, _step_of_number(of), noise)


def _step_of_number(of: int) -> int:
    return round(step_at_least(math.sqrt(max(of, 1))))


def _share(share: float, people: int, noise: Noise) -> float:
    return share_in_steps(share, _step(people), noise)


def _step(people: int) -> float:
    """The step of a share of so many people: at least 1/sqrt(n), and of few people ten times what one of them moves."""
    people = max(people, 1)
    return min(step_at_least(max(1 / math.sqrt(people), 1 / people / PART_OF_A_STEP)), 1.0)


def _area(value: float, members: int, others: int, noise: Noise, name: str = "value") -> Facts:
    """An area under a curve in the step of the fewer people, with an interval that follows from it.

    The interval is that of J. A. Hanley and B. J. McNeil (Radiology 143, 1982), widened by how far the area can be off.
    """
    step = _step(min(members, others))
    published = share_in_steps(value, step, noise)
    above, below = published / (2 - published) - published**2, 2 * published**2 / (1 + published) - published**2
    variance = (published * (1 - published) + (members - 1) * above + (others - 1) * below) / max(members * others, 1)
    half = Z * math.sqrt(max(variance, 0.0)) + _off(step, noise)
    return {name: published, "low": max(published - half, 0.0), "high": min(published + half, 1.0)}
