"""A number has one noise wherever it is told, and nothing that is told follows from its exact value.

The attacker knows all values but one, the code, and all releases, but no key. The mean of two draws has less noise than
one, and a figure in four digits that is computed from an exact number tells it.
"""

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack.candidates import find_candidates
from anon_pipeline.attack.inference import outcome, similarity
from anon_pipeline.attack.intersection import OF_WHO_FIT
from anon_pipeline.attack.membership_inference import MembershipFinding
from anon_pipeline.attack.rates import Finding, Known, Rates, finding, known, wilson
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.targets import Tables, read_attacked
from anon_pipeline.keys import Key
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import attack_figures, fineness, masking_figures
from anon_pipeline.release.facts import risk_of
from anon_pipeline.release.noise import NO_NOISE, Noise
from anon_pipeline.spec.parts import Audit

MEMBERS, CONTROL = 900, 420
NOISES = [Noise(Key(place.to_bytes(32, "big")), "people", "v") for place in range(60)]


def told(findings: list[Finding], noise: Noise = NO_NOISE, kind: str = "held_out", **more: Any) -> dict[str, Any]:
    plain = [one.to_json() for one in findings] or [other().to_json()]
    content = {"people": MEMBERS, "control_kind": kind, "members": MEMBERS, "control": CONTROL, "findings": plain}
    published = attack_figures.audit(json.loads(json.dumps(finite(content | more))), Audit(control="held_out"), noise)
    assert published is not None
    return published


def other() -> Finding:
    rates = Rates(wilson(300, MEMBERS), wilson(51, CONTROL), known(0.1, MEMBERS))
    return finding("inference: diagnosis", "inference", Known(("age",)), "guesses it", rates)


def linkage(size: str, columns: int, wrong: float = 0.0, **details: Any) -> Finding:
    rates = Rates(wilson(217, MEMBERS), wilson(83, CONTROL), known(0.27, MEMBERS))
    names = tuple(f"x{place}" for place in range(columns))
    name = f"linkage, {size} quasi-identifiers" + (f", {wrong:.0%} wrong" if wrong else "")
    return finding(name, "linkability", Known(names, wrong), "picks the right record", rates, details)


def guide(others: int) -> dict[str, Any]:
    """Attacks on the guiding model, of so many control people who have a target."""
    exact = MembershipFinding("m", "loss_threshold", "label", 900, others, 0, 0.54, 0.5, 0.58, None, None, None)
    known_of = Known(("ill",))
    rates = Rates(wilson(600, 900), wilson(0.3 * others, others), wilson(540, 900))
    details = {"model": "m", "labels": 2, "nearness": {"auc": 0.54, "low": 0.5, "high": 0.58}}
    inverted = finding("model_inversion", "inference", known_of, "reconstruct a feature", rates, details)
    return {
        "members": 900,
        "non_members": others,
        "membership": [exact.to_json()],
        "bought": [],
        "inference": [inverted.to_json()],
    }


def test_no_interval_tells_how_many_control_people_have_a_target() -> None:
    """Nor does the step of an area: of 399 people areas were told in steps of .1, and of 400 in steps of .05."""
    every = {json.dumps(told([], guide=guide(others))["guide"]) for others in range(391, 410)}
    assert len(every) == 1


def test_that_people_fit_earlier_releases_does_not_tell_how_many_people_differ() -> None:
    """How often a record drawn at random is right follows from everybody's quasi-identifiers, in four digits."""
    every = set()
    for equal in (1.0267, 1.0289):  # records that are a member's, in the mean
        rates = Rates(wilson(120, 500), wilson(30, 150), known(equal / MEMBERS, MEMBERS))
        one = finding(OF_WHO_FIT, "linkability", Known(("age",)), "picks the right record", rates)
        every.add(json.dumps(told([one])))
    assert len(every) == 1


def of_who_fit(members: int, control: int) -> list[Finding]:
    """Of so many people who fit earlier releases; of fewer than 100 the attack counts nobody, or all control people."""
    everybody = wilson(150, MEMBERS), wilson(38, CONTROL)
    named = wilson(0.4 * members, members) if members >= 100 else wilson(0, 0)
    others = wilson(0.4 * control, control) if control >= 100 else everybody[1]
    blind, name = known(0.001, MEMBERS), "intersection with earlier releases"
    return [
        finding(of, "linkability", Known(("age",)), "picks it", rates)
        for of, rates in ((name, Rates(*everybody, blind)), (OF_WHO_FIT, Rates(named, others, blind)))
    ]


@pytest.mark.parametrize("kind", ["twin", "held_out"])
def test_that_a_hundred_people_fit_earlier_releases_does_not_show(kind: str) -> None:
    for noise in (NO_NOISE, *NOISES[:9]):
        assert len({json.dumps(told(of_who_fit(99 + more, 300), noise, kind)) for more in (0, 1)}) == 1
        assert len({json.dumps(told(of_who_fit(300, 99 + more), noise, kind)) for more in (0, 1)}) == 1
    many = told(of_who_fit(300, 300), kind=kind)["findings"][1]
    assert (many["attack"]["trials"], many["control"]["trials"]) == (300, 300)


def test_that_everybody_fits_earlier_releases_does_not_show() -> None:
    """Told as everybody is where all fit, and with other noise where all but one do, it ruled out either."""
    everybody = wilson(150, MEMBERS), wilson(38, CONTROL)
    blind, name = known(0.001, MEMBERS), "intersection with earlier releases"
    for missing in (0, 1):
        fit = wilson(150, MEMBERS - missing), wilson(38, CONTROL - missing)
        findings = [
            finding(of, "linkability", Known(("age",)), "picks it", Rates(*rates, blind))
            for of, rates in ((name, everybody), (OF_WHO_FIT, fit))
        ]
        for noise in NOISES:
            of_all, of_fitting = told(findings, noise)["findings"]
            assert [of_all[of] for of in ("attack", "control")] == [of_fitting[of] for of in ("attack", "control")]


def test_a_bound_on_a_twin_does_not_tell_how_many_fit_earlier_releases() -> None:
    """Members and control people who fit add up to a number of the source, so their rates are told in steps."""
    every = set()
    for members in (291, 300, 309):
        findings = of_who_fit(members, 150)
        leak = findings[1].leak
        assert leak is not None
        exact = max(one.leak.high for one in findings if one.leak is not None)
        bound = {"name": "linkage", "demand": "d", "measured": exact, "limit": 0.9, "holds": True}
        every.add(json.dumps(told(findings, kind="twin", bounds=[bound])["bounds"]))
    assert len(every) == 1


def similar(age: int) -> Finding:
    """Of 15 classes of 20 people, of which the first two overlap in ages of 28 to 30.

    The first has incomes near each other; those of the second are spread among the third's.
    """
    ages = np.r_[np.arange(20) % 11 + 20, np.arange(20) % 6 + 28, np.repeat(np.arange(50, 63), 20)]
    income = np.r_[np.arange(20), np.arange(20, 60, 2), np.arange(21, 60, 2), np.arange(60, 300)]
    people = pd.DataFrame({"age": ages, "income": income})
    people.loc[0, "age"] = age
    shown = people.assign(age=np.repeat(["20 - 30", "28 - 33", *map(str, range(50, 63))], 20))
    others = people.sample(100, random_state=1)
    attacked = read_attacked(Tables(shown, people, others), Knowledge(("age",), ("income",), (), ("age", "income")))
    assert attacked.control is not None
    sensitive = outcome(attacked, 0, attacked.members, attacked.control)
    guessed = [find_candidates(attacked.release, each.codes) for each in (attacked.members, attacked.control)]
    return similarity(attacked, sensitive, guessed[0], guessed[1], attacked.members, attacked.control)


def test_which_classes_a_member_fits_does_not_show_in_a_blind_guess_at_a_range() -> None:
    exact = [similar(age) for age in (22, 29)]
    assert exact[0].baseline.rate != exact[1].baseline.rate
    blind = [told([one])["findings"][0]["baseline"]["rate"] for one in exact]
    assert blind[0] == blind[1] == pytest.approx(0.06)  # in steps of .01


def test_what_a_record_drawn_at_random_gives_has_one_noise_in_all_attacks() -> None:
    """Six findings and more compare with it; with noise of their own their mean had two fifths of it."""
    again = Rates(wilson(120, MEMBERS), wilson(30, CONTROL), known(0.27, MEMBERS))
    earlier = finding("intersection with earlier releases", "linkability", Known(("x0",)), "picks it", again)
    fit = finding(
        OF_WHO_FIT, "linkability", Known(("x0",)), "picks it", Rates(again.attack, again.control, known(0.27, MEMBERS))
    )
    findings = [linkage("2", 2), linkage("all", 9), linkage("all", 9, 0.05), linkage("all", 9, 0.1), earlier, fit]
    drawn = set()
    for noise in NOISES:
        rates = {one["baseline"]["rate"] for one in told(findings, wider(noise))["findings"]}
        assert len(rates) == 1
        drawn |= rates
    assert len(drawn) > 1


def wider(noise: Noise) -> Noise:
    """With a scale at which steps differ often."""
    return Wide(noise.key, noise.dataset, noise.version)


class Wide(Noise):
    def at_most(self, scale: float) -> Noise:
        return dataclasses.replace(self, scale=1.0)


def test_who_says_in_of_half_of_all_says_so_of_all_the_others() -> None:
    """So that the share of control people is one less that of members, and no second draw of it."""
    for noise in NOISES:
        rates = Rates(wilson(232.4, 400), wilson(167.6, 400), known(0.5, 400))
        one = finding("membership in a register", "membership", Known(("age",)), "says it", rates)
        (published,) = told([one], wider(noise))["findings"]
        assert published["attack"]["rate"] + published["control"]["rate"] == pytest.approx(1)
        assert published["attack"]["low"] + published["control"]["high"] == pytest.approx(1, abs=1e-3)
        assert published["attack"]["trials"] == published["control"]["trials"]


def test_what_is_right_with_some_columns_known_is_told_once() -> None:
    sizes = [
        {"known": known_of, "attack": 217 / 900, "control": 83 / 420, "random_columns_attack": None}
        for known_of in (2, 3, 4)
    ]
    findings = [linkage("2", 2), linkage("all", 4, by_knowledge=sizes), linkage("all", 4, 0.05)]
    for noise in NOISES:
        two, every, _ = told(findings, wider(noise))["findings"]
        first, _, last = every["details"]["by_knowledge"]
        for one, of in ((first, two), (last, every)):
            assert (one["attack"], one["control"]) == (of["attack"]["rate"], of["control"]["rate"])


@pytest.mark.parametrize("kind", ["twin", "held_out"])
def test_how_many_have_a_rare_value_has_one_noise_in_all_attacks(kind: str) -> None:
    several = set()
    for noise in NOISES:
        rates = Rates(wilson(40, 137), wilson(15, 45), known(0.15, 137))
        findings = [
            finding(f"{attack}: {column}", "inference", Known(("age",)), "finds one", rates)
            for attack in ("skewness", "minimality")
            for column in ("illness", "drug")
        ]
        numbers = [
            (one["attack"]["trials"], one["control"]["trials"])
            for one in told(findings, wider(noise), kind)["findings"]
        ]
        assert numbers[0] == numbers[2] and numbers[1] == numbers[3]
        several.add(numbers[0] == numbers[1])
    assert several == {True, False}


def test_how_many_are_asked_of_an_inverted_model_is_told_once() -> None:
    for noise in NOISES:
        (inverted,) = told([], wider(noise), guide=guide(400))["guide"]["inference"]
        assert inverted["attack"]["trials"] == inverted["baseline"]["trials"]


def shares(sizes: list[int], noise: Noise) -> dict[str, Any]:
    """What is told of each estimate of unique people in the population, of which the table is a fifth."""
    before = risk_of(ClassStatistics(sizes=np.array(sizes)), 0.2)
    told_of = fineness.risk(before, sum(sizes), noise)
    assert told_of is not None
    return {name: estimate["share"] for name, estimate in told_of["population_uniqueness"].items()}


def test_a_rule_that_takes_one_of_two_estimates_tells_it_with_the_same_noise() -> None:
    drawn = set()
    for noise in NOISES:
        estimates = shares([1] * 200 + [2] * 100, noise)
        assert estimates["dankar"] == min(estimates["zayatz"], estimates["snb"])
        drawn.add(estimates["dankar"])
    assert len(drawn) > 3


def test_whether_an_estimate_converges_does_not_tell_whether_three_people_are_alike_or_two() -> None:
    """Of 400 people who are nearly all unique the SNB estimate needs a pair: one person more or less makes it."""
    without, with_one = ([shares(sizes, noise) for noise in NOISES] for sizes in ([1] * 397 + [3], [1] * 398 + [2]))
    for name in ("snb", "dankar"):
        assert {one[name] is None for one in without} == {one[name] is None for one in with_one} == {True}
    assert {one["zayatz"] is None for one in without} == {False}


def test_a_pair_of_columns_has_one_noise_in_either_order() -> None:
    """A spec that names the two in another order, or makes one of them sensitive, would tell the pair once more."""
    pair = {"measure": "spearman", "before": 0.413, "after": 0.4, "people": 400, "apart": (300, 200)}
    drawn = set()
    for noise in NOISES:
        orders = [
            {"pairs": [pair | {"columns": ["age", "income"]}]},
            {"pairs": [pair | {"columns": ["income", "age"], "apart": (200, 300)}]},
        ]
        first, second = (fineness.associations(content, 400, noise)["pairs"][0]["before"] for content in orders)
        assert first == second
        drawn.add(first)
    assert len(drawn) > 3


def test_a_cost_has_one_noise_however_columns_are_put_into_steps() -> None:
    """Each order of the columns of a step, and each division of it into several, would tell all its costs once more."""
    cost = {"changed": 0.31, "distance": 0.17, "measure": "m", "people": 5_000, "known": 5_000, "correlations": []}
    linked = {"rate": 0.4, "rows": 500, "pool": 5_000}
    of = {"technique": "round", "guarantee": "none", "facts": {}, "linkage": linked}
    both, turned, alone = (
        {**of, "columns": columns, "costs": dict.fromkeys(columns, cost)}
        for columns in (("age", "income"), ("income", "age"), ("age",))
    )
    again = 0
    for noise in NOISES:
        (first,), (second,), (third,) = (
            masking_figures.masking([report], noise) or [] for report in (both, turned, alone)
        )
        assert first["costs"] == second["costs"] and first["linkage"] == second["linkage"]
        assert first["costs"]["age"] == third["costs"]["age"]
        again += first["costs"]["age"] == first["costs"]["income"]
    assert again < 12


def test_two_groups_that_hold_everybody_are_counted_with_one_noise() -> None:
    """How many are women is how many of all are not men."""
    change = {"accuracy": {"difference": {"mean": 0.01}}}
    sizes = {"sex": (300, 450), "city": (200, 250, 300)}
    groups = [
        {"column": column, "value": str(place), "people": people, "metrics": change}
        for column, of in sizes.items()
        for place, people in enumerate(of)
    ]
    sums = set()
    for noise in NOISES:
        men, women, *cities = fineness.utility({"rows": 750, "subgroups": groups}, noise)["subgroups"]
        assert men["people"] + women["people"] == 750
        sums.add(sum(city["people"] for city in cities))
    assert len(sums) > 1
