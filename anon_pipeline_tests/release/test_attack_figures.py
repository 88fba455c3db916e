"""What a manifest tells of attacks hides one person among those who are in no file, and keeps what others may know."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.attack.intersection import OF_WHO_FIT
from anon_pipeline.attack.membership_inference import MembershipFinding
from anon_pipeline.attack.model_answers import Question
from anon_pipeline.attack.models_audit import Effort, audit_fitted
from anon_pipeline.attack.rates import BY_KEPT_COLUMNS, LEAK, Criterion, Known, Rates, finding, known, wilson
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.singling_out import singling_out
from anon_pipeline.attack.table_audit import audit_table
from anon_pipeline.attack.targets import Tables, read_attacked
from anon_pipeline.audit.people import Bound
from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key
from anon_pipeline.learning.without_target import scored_rows
from anon_pipeline.plain_json import finite
from anon_pipeline.release import attack_figures
from anon_pipeline.release.fineness import PART_OF_A_STEP
from anon_pipeline.release.noise import NO_NOISE, Noise
from anon_pipeline.report.attacks import in_words
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.parts import Audit
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset
from benchmarks.source_figures import Recording, log_odds

KNOWLEDGE = Knowledge(("age", "city"), ("diagnosis",), ("visits",), ("age", "visits"))
MEMBERS, CONTROL = 900, 400
HELD_OUT = Audit(control="held_out")


def everybody(seed: int, n: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "city": random.choice(["Ulm", "Bonn", "Kiel"], n),
            "diagnosis": random.choice(["a", "b", "c"], n, p=[0.5, 0.35, 0.15]),
            "visits": random.integers(0, 60, n),
        }
    )


def tables(control: pd.DataFrame) -> Tables:
    members = everybody(0, MEMBERS)
    tree = AnonymizerTree(k=10)
    shown = tree.fit_transform(members[["age", "city"]], (members["age"] > 50).astype(float))
    released = shown.assign(diagnosis=members["diagnosis"], visits=members["visits"])
    return Tables(released, members, control, np.arange(MEMBERS), tree.classes_)


def content(findings: list[Any], kind: str = "held_out", **more: Any) -> dict[str, Any]:
    plain = {
        "people": MEMBERS,
        "control_kind": kind,
        "members": MEMBERS,
        "control": CONTROL,
        "findings": [one.to_json() for one in findings],
        **more,
    }
    return dict(json.loads(json.dumps(finite(plain))))


def audited(control: pd.DataFrame) -> dict[str, Any]:
    return content(audit_table(tables(control), KNOWLEDGE, targets=5_000))


def told(exact: dict[str, Any], asked: Audit = HELD_OUT, noise: Noise = NO_NOISE) -> dict[str, Any]:
    published = attack_figures.audit(exact, asked, noise)
    assert published is not None
    return published


def of_name(published: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in published["findings"] if one["name"] == name)


@pytest.mark.long
def test_what_was_learned_from_members_is_told_of_a_twin_only() -> None:
    """With one value changed a forest picks other records for many: of 20 such pairs, steps told some apart."""
    exact = audited(everybody(5, CONTROL))
    bound = {"name": "linkage", "demand": "d", "measured": 0.3, "limit": 0.4, "holds": True}
    of_twin = told(exact | {"control_kind": "twin"})
    assert of_name(of_twin, BY_KEPT_COLUMNS)["attack"]["rate"] > 0
    published = told(exact | {"bounds": [bound]})
    assert BY_KEPT_COLUMNS not in json.dumps(published)
    assert published["bounds"][0]["measured"] == 0.4  # and not what the other attacks came to, which is less


def one_value_changed(control: pd.DataFrame, pair: int) -> pd.DataFrame:
    person, column = pair % len(control), ("diagnosis", "visits")[pair % 2]
    changed = control.copy()
    others = [value for value in sorted(set(control[column])) if value != control.loc[person, column]]
    changed.loc[person, column] = others[pair % len(others)]
    return changed


class Unmoved(Noise):
    """The same for every figure, so that what differs has no noise."""

    def steps(self, value: float, step: float) -> int:
        return 0


@pytest.mark.long
def test_a_value_of_a_person_who_was_held_out_seldom_shows() -> None:
    """Of pairs of sources that differ in one value, the exact figures tell most, rounded ones few, and noise none."""
    pairs, exact_differ, told_differ, evidence = 30, 0, 0, []
    random = np.random.default_rng(0)
    for pair in range(pairs):
        control = everybody(100 + pair, CONTROL)
        one, other = audited(control), audited(one_value_changed(control, pair))
        exact_differ += one != other
        told_differ += told(one) != told(other)
        first, second = in_steps(one), in_steps(other)
        assert set(first) == set(second) and len(first) > 10
        apart = np.array([abs(first[name] - second[name]) for name in first]) / attack_figures.SCALE
        evidence += log_odds(apart, random, 200)[0].tolist()
    assert exact_differ >= 0.75 * pairs
    assert told_differ <= 0.3 * pairs
    # How often the true value becomes twenty times as likely as the other one.
    assert np.mean(np.array(evidence) > np.log(20)) < 0.02


@pytest.mark.long
def test_a_quasi_identifier_of_a_member_seldom_shows() -> None:
    """Which classes a member fits follows from the table, which is published, and from values that it does not show."""
    control, random = everybody(6, CONTROL), np.random.default_rng(3)
    plain = tables(control)
    before = audited(control)
    exact_differ, evidence = 0, []
    for pair in range(20):
        person = int(random.integers(MEMBERS))
        alike = (plain.released["age"] == plain.released["age"][person]) & (
            plain.released["city"] == plain.released["city"][person]
        )
        column = ("age", "city")[pair % 2]
        others = sorted(set(plain.original.loc[alike, column]) - {plain.original.loc[person, column]})
        if not others:  # all of the class live in one city
            column, others = "age", sorted(set(plain.original.loc[alike, "age"]) - {plain.original.loc[person, "age"]})
        changed = plain.original.copy()
        changed.loc[person, column] = others[pair % len(others)]
        after = content(audit_table(dataclasses.replace(plain, original=changed), KNOWLEDGE, targets=5_000))
        exact_differ += before != after
        first, second = in_steps(before), in_steps(after)
        # Not so minimality, of which a value can move several of the few people who are named.
        others = [name for name in first if not name[1].startswith("minimality")]
        apart = np.array([abs(first[name] - second[name]) for name in others]) / attack_figures.SCALE
        evidence += log_odds(apart, random, 200)[1].tolist()
        without = (told(one, noise=Unmoved(Key(bytes(32)), "people", "v")) for one in (before, after))
        assert len({json.dumps(one, sort_keys=True) for one in without}) == 1
    assert exact_differ >= 5
    assert np.mean(np.array(evidence) > np.log(20)) < 0.02


def in_steps(exact: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """Every figure that noise is added to, in its steps."""
    kept: dict[tuple[str, ...], float] = {}
    told(exact, noise=Recording(Key(bytes(32)), "people", "v", kept=kept))
    return kept


@given(st.integers(30, 5_000), st.floats(0, 1), st.binary(min_size=32, max_size=32))
def test_intervals_allow_for_noise(trials: int, share: float, key: bytes) -> None:
    exact = wilson(share * trials, trials)
    noise = Noise(Key(key), "people", "v", scale=attack_figures.SCALE).of("control")
    rate, rounded = (attack_figures._in_steps(exact, trials, of) for of in (noise, NO_NOISE))
    assert 0 <= rate.low <= rate.rate <= rate.high <= 1
    if rate.trials == rounded.trials and rate.rate == rounded.rate:
        assert rate.low <= rounded.low and rate.high >= rounded.high


def test_the_interval_of_a_noisy_share_holds_its_exact_share_nearly_always() -> None:
    exact, held = wilson(90, 400), 0
    for number in range(400):
        noise = Noise(Key(number.to_bytes(32, "big")), "people", "v", scale=attack_figures.SCALE)
        rate = attack_figures._in_steps(exact, 400, noise)
        held += rate.low <= exact.rate <= rate.high
    assert held >= 0.97 * 400


@pytest.mark.long
@pytest.mark.parametrize(("column", "value"), [("age", 17.0), ("city", "Kiel"), ("city", "Rom"), ("visits", 99)])
def test_what_is_found_about_members_does_not_depend_on_who_was_held_out(column: str, value: Any) -> None:
    """Figures about members are exact; so nothing about the others may have a part in them."""
    control = everybody(6, CONTROL)
    changed = control.astype({"age": float})
    changed.loc[: CONTROL // 2, column] = value
    first, second = audited(control), audited(changed)
    for one, other in zip(first["findings"], second["findings"], strict=True):
        if one["criterion"] != "membership":  # which tells both apart, and is told in steps
            assert (one["attack"], one["baseline"]) == (other["attack"], other["baseline"]), one["name"]
            of_members = [
                {name: figure for name, figure in each["details"].items() if name != "by_knowledge"}
                for each in (one, other)
            ]
            assert of_members[0] == of_members[1], one["name"]


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("linkage, 2 quasi-identifiers", "linkability"),
        ("intersection with earlier releases", "linkability"),
        ("singling out, all columns", "singling_out"),
        ("inference: diagnosis", "inference"),
        ("inference across groups: diagnosis", "inference"),
        ("similarity: visits", "inference"),
        ("membership in a register", "membership"),
    ],
)
def test_no_field_tells_one_control_person_more_or_fewer(name: str, criterion: Criterion) -> None:
    """Leak, interval, verdict, sentence and details follow from what is told of the rates."""
    every = []
    for right in (79, 80, 81):  # of 400, in steps of 5 % or 10 %
        attack = wilson(CONTROL - right if criterion == "membership" else 217, CONTROL)
        rates = Rates(attack, wilson(right, CONTROL), known(0.1, CONTROL))
        details: dict[str, Any] = {}
        if name.startswith("linkage"):
            sizes = [{"control": right / CONTROL, "random_columns_control": None, "attack": 0.5}]
            details = {"by_knowledge": sizes}
        if criterion == "membership":
            area = {"value": 0.5 + right / 1e4, "low": 0.4 + right / 1e4, "high": 0.6 + right / 1e4}
            details = {"auc": area, "auc_of_fit_alone": area, "tpr_at_fpr_0.01": attack}
        others = "as many people not in it" if criterion == "singling_out" else rates.others
        one = finding(name, criterion, Known(("age",)), "succeeds", dataclasses.replace(rates, others=others), details)
        every.append(told(content([one]))["findings"][0])
    assert every[0] == every[1] == every[2]
    assert every[0]["control"]["rate"] == pytest.approx(0.2)
    assert "against 20 % (" in every[0]["sentence"]


@pytest.mark.parametrize("attack", ["skewness: diagnosis", "minimality: diagnosis", OF_WHO_FIT])
@pytest.mark.parametrize("kind", ["twin", "held_out"])
def test_how_many_people_have_a_rare_value_is_told_in_steps(attack: str, kind: str) -> None:
    """Those of the twin's members and those of its control people add up to those of the source.

    So do the people who fit earlier releases: whoever knows all values but one could try which of them give the sum.
    """
    totals, sentences = set(), set()
    for rare in range(203, 217):
        rates = Rates(wilson(40, rare), wilson(20.5, 61), known(0.15, rare))
        one = finding(
            attack, "linkability" if attack == OF_WHO_FIT else "inference", Known(("age",)), "finds one who has", rates
        )
        published = told(content([one], kind))["findings"][0]
        trials = published["attack"]["trials"], published["control"]["trials"], published["baseline"]["trials"]
        totals.add(trials)
        for side in ("attack", "control"):
            rate = published[side]
            assert rate["successes"] == pytest.approx(rate["rate"] * rate["trials"], rel=1e-3)
        sentences.add(published["sentence"])
    assert len(sentences) == len(totals) <= 2  # 14 numbers of people, in steps of 50 and of 20


@given(st.integers(1, 5_000), st.floats(0, 1), st.integers(0, 5_000))
def test_steps_are_as_large_as_what_chance_moves_a_share_by(trials: int, share: float, more: int) -> None:
    exact = wilson(share * trials, trials)
    rate = attack_figures._in_steps(exact, trials + more, NO_NOISE)
    if not rate.trials:
        assert trials < attack_figures.step_at_least(np.sqrt(trials + more))
        return
    step = attack_figures._step(rate.trials)
    assert step >= min(1 / np.sqrt(rate.trials), 1.0) - 1e-9
    assert 1 / rate.trials <= max(step, 1e-9) * attack_figures.PART_OF_A_STEP + 1e-9 or step == 1.0
    assert rate.rate == pytest.approx(step * round(rate.rate / step), abs=1e-9)
    assert abs(rate.rate - exact.rate) <= step / 2 + 1e-9
    assert rate.low - 1e-9 <= exact.rate <= rate.high + 1e-9


@pytest.mark.long
def test_a_twin_is_told_in_four_digits_but_for_rare_values() -> None:
    exact = audited(everybody(2, CONTROL)) | {"control_kind": "twin"}
    published = told(exact, Audit())
    for before, after in zip(exact["findings"], published["findings"], strict=True):
        is_of_rare = before["name"].startswith(attack_figures.OF_SOME_PEOPLE)
        assert (before["sentence"] != after["sentence"]) == is_of_rare, before["name"]
        assert (after["attack"]["trials"] != before["attack"]["trials"]) <= is_of_rare


@pytest.mark.long
def test_rows_in_random_order_are_no_people() -> None:
    exact = audited(everybody(2, CONTROL))
    for name in ("row order", "row order within groups"):
        twin, kept_out = (of_name(told(exact | {"control_kind": kind}), name) for kind in ("twin", "held_out"))
        assert twin["sentence"] == of_name(exact, name)["sentence"]
        assert "picks the right record in 100 % of the cases" in kept_out["sentence"]
        assert "for rows in random order" in kept_out["sentence"]
        # How many people differ from all others, of whom each is tried once, follows from everybody's values.
        assert kept_out["attack"]["trials"] % 50 == 0 and kept_out["details"]["distinct_people"] is None


@pytest.mark.parametrize(("different", "told_as"), [(79, 100), (80, 100), (81, 100), (5, 1), (900, 900)])
def test_how_many_people_were_tried_by_their_rows_is_told_in_steps(different: int, told_as: int) -> None:
    """All members were, it said: of 900 people of 80 kinds, what chance gives was certain to be a leak."""
    right = round(0.6 * different)
    rates = Rates(wilson(right, different), known(0.5), known(0.5), others="rows in random order")
    one = finding("row order within groups", "linkability", Known(()), "picks", rates, {"distinct_people": different})
    published = told(content([one]))["findings"][0]
    assert published["attack"]["trials"] == told_as
    assert (published["verdict"] == LEAK) == (different == 900)


def test_a_sentence_says_what_the_figures_say() -> None:
    rates = Rates(wilson(600, 900), wilson(51, CONTROL), known(0.1, 900))
    exact = finding("inference: diagnosis", "inference", Known(("age", "city"), 0.05), "guesses it right", rates)
    published = told(content([exact]))["findings"][0]
    assert published["verdict"] == exact.verdict == LEAK
    assert published["sentence"].startswith(
        "Knowing age, city (5 % of it wrong), an attacker guesses it right in 65 % of the cases (59.3 % to 70.5 %), "
        "against 15 % (9."
    )
    assert f"gives away {100 * published['leak']['leak']:.1f} %" in published["sentence"]
    # A sentence of unknown form is not kept, since it could tell what is not to be told.
    other = content([dataclasses.replace(exact, sentence="12.75 % of others")])
    assert "12.75" not in told(other)["findings"][0]["sentence"]


def overlapping(age: int) -> dict[str, Any]:
    """Singling out in two classes whose intervals overlap; one person's age, which their class leaves open, is given.

    Each has 40 numbers of visits that nobody else of their class has; those of the first class are in the second, too.
    """
    random = np.random.default_rng(0)
    people = pd.DataFrame({"age": np.r_[random.integers(20, 40, 40), random.integers(41, 60, 40)]})
    people["visits"] = np.r_[np.arange(40), np.arange(40)]
    people.loc[40, "age"] = age
    shown = people.assign(age=["20 - 40"] * 40 + ["30 - 60"] * 40)
    others = pd.DataFrame({"age": random.integers(20, 60, 40), "visits": random.integers(100, 140, 40)})
    attacked = read_attacked(Tables(shown, people, others), Knowledge(("age",), (), ("visits",), ("age", "visits")))
    return content(singling_out(attacked)) | {"members": 80, "control": 40}


def test_whom_conditions_single_out_does_not_tell_a_members_age() -> None:
    """All conditions are tried where there are few, so that one met by two people said where one of them lies."""
    exact, told_of = [overlapping(age) for age in (35, 50)], []
    rates = [of_name(one, "singling out, all columns") for one in exact]
    assert {one["attack"]["trials"] for one in rates} == {80}
    assert rates[0]["attack"]["successes"] != rates[1]["attack"]["successes"]
    for one in exact:
        told_of.append(told(one, noise=Unmoved(Key(bytes(32)), "people", "v")))
    assert told_of[0] == told_of[1]
    first, second = in_steps(exact[0]), in_steps(exact[1])
    assert ("audit", "singling out, all columns", "attack") in first and first.keys() == second.keys()
    assert max(abs(first[name] - second[name]) for name in first) <= PART_OF_A_STEP + 1e-9
    details = of_name(told_of[0], "singling out, all columns")["details"]
    assert details["nobody_meets"] is None and details["people_meeting_one"] is None
    assert details["conditions"] == 80 and details["by_column"] == {"visits": 1.0}


def test_how_rows_follow_one_another_is_told_in_steps() -> None:
    """The source's order is that of hashes of everybody's values: of 899 pairs of rows one value moves two."""
    rates = Rates(wilson(1, 880), known(1 / 900), known(1 / 900), others="rows in random order")
    every = []
    for follow in (449, 450, 451):
        details = {"distinct_people": 880, "neighbours_in_source_order": follow / 899, "expected_links": 1.0}
        one = finding("row order", "linkability", Known(()), "picks the right record", rates, details)
        every.append(told(content([one]))["findings"][0])
    assert every[0] == every[1] == every[2]
    assert every[0]["details"]["neighbours_in_source_order"] == 0.5


@pytest.mark.parametrize("kind", ["twin", "held_out"])
def test_where_no_member_has_a_rare_value_the_others_who_have_one_are_not_counted(kind: str) -> None:
    """Of many people some are asked about: none of these may have a value that one of those in no file has."""
    every = []
    for rare in (0, 1, 2):
        rates = Rates(wilson(0, 0), wilson(rare, rare), known(0.1, 0))
        one = finding("skewness: visits", "inference", Known(("age",)), "finds one who has", rates)
        every.append(told(content([one], kind))["findings"][0])
    assert every[0] == every[1] == every[2]


def test_rows_that_nothing_tells_apart_do_not_tell_how_many_people_differ() -> None:
    rates = Rates(wilson(0, 0), known(0, 0), known(0, 0), others="rows in random order")
    one = finding("row order within groups", "linkability", Known(()), "picks", rates, {"distinct_people": 880})
    published = told(content([one]))["findings"][0]
    assert (published["verdict"], published["details"]) == ("nothing to attack", {"distinct_people": None})


def test_conditions_that_nobody_tried_stay_nothing() -> None:
    exact = finding(
        "singling out, all columns", "singling_out", Known(()), "isolates", Rates(known(0), known(0), known(0))
    )
    assert told(content([exact]))["findings"][0] == attack_figures.rounded(exact.to_json())


# The guiding model


class Remembers:
    """A classifier of its own: sure of the people that it was trained on, less sure of others."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, features: pd.DataFrame) -> np.ndarray[Any, Any]:
        yes = np.where(features["known"], 0.9, 0.6) + features["age"].to_numpy() / 1000
        return np.stack([1 - yes, yes], axis=1)


def of_guide(control: int) -> dict[str, Any]:
    random = np.random.default_rng(3)

    def people(n: int, seen: bool) -> pd.DataFrame:
        return pd.DataFrame({"known": seen, "age": random.integers(18, 80, n), "ill": random.choice(["no", "yes"], n)})

    question = Question("ill", ["known", "age"], attributes=[])
    return audit_fitted(Remembers(), people(1500, True), people(control, False), question, Effort(seed=1)).to_json()


@pytest.mark.long
def test_the_guiding_model_is_told_in_steps_where_people_were_held_out() -> None:
    exact = audited(everybody(4, CONTROL)) | {"guide": of_guide(1203)}
    published = told(exact)["guide"]
    (member,) = published["membership"]
    assert (member["non_members"], published["non_members"]) == (1200, 1200)
    assert (member["at_1_percent"], member["at_0_1_percent"], member["epsilon"]) == (None, None, None)
    assert "1 % false accusations" not in member["sentence"]  # neither a figure, nor that there are too few people
    assert member["auc"] == pytest.approx(round(member["auc"] / 0.05) * 0.05)
    before = exact["guide"]["membership"][0]
    assert member["auc_low"] <= before["auc_low"] < before["auc_high"] <= member["auc_high"]
    (inverted,) = published["inference"]
    assert inverted["details"]["labels"] is None
    assert f"{100 * exact['guide']['inference'][0]['control']['rate']:.1f} %" not in inverted["sentence"]
    twin = told(exact | {"control_kind": "twin"}, Audit())["guide"]
    assert twin["membership"][0]["auc"] == attack_figures.rounded(before["auc"])
    assert "1,200 it was not" in twin["membership"][0]["sentence"]
    assert MembershipFinding.of(before).to_json() == before


# Bounds


@pytest.mark.parametrize("measured", [0.3001, 0.39, 0.4])
def test_a_bound_is_told_by_what_is_told_and_never_reads_as_broken(measured: float) -> None:
    rates = Rates(wilson(300, 900), wilson(51, CONTROL), known(0.1, 900))
    exact = finding("inference: diagnosis", "inference", Known(("age",)), "guesses it right", rates)
    bound = Bound("attribute_inference_diagnosis", "at most 40 %", measured, 0.4)
    bounds = [{**dataclasses.asdict(bound), "holds": bound.holds}]
    published = told(content([exact], bounds=bounds))
    (of_bound,) = published["bounds"]
    assert of_bound["holds"] is True
    assert of_bound["measured"] == min(published["findings"][0]["leak"]["high"], 0.4)
    answers = [
        {"name": bound.name, "demand": bound.demand, "measured": measured, "sentence": f"measured {measured}"},
        {"name": "k_anonymity", "measured": 7, "sentence": "7"},
    ]
    first, second = attack_figures.checks(answers, published)
    assert first["measured"] == of_bound["measured"]
    assert first["sentence"] == f"at most 40 %; measured {100 * of_bound['measured']:.4g} %"
    assert second == answers[1]


@pytest.mark.long
def test_the_report_is_written_from_what_is_told() -> None:
    exact = audited(everybody(5, CONTROL)) | {"guide": of_guide(500)}
    published = told(exact)
    assert "attacker succeeds" not in json.dumps(published)  # every sentence is of a known form
    words = in_words(published)
    assert words is not None
    assert len(words.rows) == len(exact["findings"]) - 1  # that which learns from members is not told
    assert words.picture.startswith("<svg")


def test_what_was_not_attacked_is_told_so() -> None:
    assert attack_figures.audit(None, HELD_OUT, NO_NOISE) is None
    skipped = {"people": 40, "control_kind": "held_out", "findings": [], "skipped": "40 people are too few"}
    assert told(skipped) == skipped


def test_why_models_were_not_attacked_does_not_tell_how_many_have_a_target(tmp_path: Path) -> None:
    """The attacker knows all but whether one person has a target, and this person was held out: in no file.

    The reason said how many of the control people have one. Every other reason is the message of an error, too.
    """
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", spec=policy() | {"missing_target": "release"}))
    reasons = set()
    for known_of in (7, 8):
        with pytest.raises(InputError) as error:
            scored_rows(spec, pd.Series(["yes"] * known_of + [None] * (CONTROL - known_of), dtype=object))
        assert f"is known of {known_of} of" in str(error.value)
        why = {"skipped": str(error.value)}
        no_twin = f"no twin could be made without the control people: {error.value}"
        published = told({**content([], models=why, guide=why), "skipped": no_twin})
        reasons.add((published["models"]["skipped"], published["guide"]["skipped"], published["skipped"]))
    ((models, guide, twin),) = reasons
    assert models == guide
    assert models.startswith("target: ill is known of … of … people, too few")
    assert twin.endswith(models)
