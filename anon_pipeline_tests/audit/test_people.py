"""The audit of a release: the twin loses nobody, control people are the same in every run, bounds fail closed."""

import json
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.audit import people as audits
from anon_pipeline.audit.people import Audited, Bound, audit, bounds, control_people, make_twin
from anon_pipeline.engine.base import Batch
from anon_pipeline.keys import Key, seed_under
from anon_pipeline.learning.problem import Fitting
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.workers import Workers
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.people import KEY

SPEC = ReleaseSpec.model_validate(harness.policy() | {"audit": {"models": False, "targets": 300}})
TYPES = {name: column.type or ColumnType.CATEGORICAL for name, column in SPEC.columns.items()}


def spec(**audit_part: Any) -> ReleaseSpec:
    return SPEC.model_copy(update={"audit": SPEC.audit.model_copy(update=audit_part)})


def batch(frame: pd.DataFrame) -> Batch:
    """As `Engine.sample` gives people: a row each, in the order of their content's hash."""
    hashes = (pd.util.hash_pandas_object(frame[SPEC.released], index=False).to_numpy() >> np.uint64(1)).astype(np.int64)
    order = np.argsort(hashes, kind="stable")
    ordered = frame.iloc[order].reset_index(drop=True)
    features = ordered[SPEC.features].astype({"age": float, "visits": float})
    empty = np.empty((len(frame), 0), dtype=np.int64)
    return Batch(features, ordered[SPEC.target], hashes[order], empty, np.ones(len(frame), dtype=np.int64))


@pytest.fixture(scope="module")
def people() -> Batch:
    return batch(harness.people(1200))


@pytest.fixture(scope="module")
def content(people: Batch) -> dict[str, Any]:
    return audit(Audited(SPEC, KEY, people, TYPES))


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as a multiset."""
    return sorted(frame[SPEC.released].astype(str).itertuples(index=False, name=None))


@pytest.mark.long
def test_what_is_found_does_not_depend_on_how_many_processes_attack(people: Batch) -> None:
    attacked = spec(models=True, people=200, shadows=4)
    told: list[tuple[int, int]] = []
    with Workers(2) as workers:
        found = audit(
            Audited(attacked, KEY, people, TYPES),
            fitting=Fitting(workers=workers, progress=lambda *count: told.append(count)),
        )
    assert found == audit(Audited(attacked, KEY, people, TYPES))
    assert told == [(count + 1, 10) for count in range(10)]  # two attacked models and four shadows of each


# Control people


@pytest.mark.parametrize(("n", "size"), [(900, 300), (1200, 400), (3000, 500), (20_000, 2000), (80_000, 5000)])
def test_a_tenth_are_control_people_at_least_500_at_most_5000_never_more_than_a_third(n: int, size: int) -> None:
    assert control_people(np.random.default_rng(0).integers(0, 2**62, n), SPEC, KEY).sum() == size


def test_nobody_is_a_control_person_of_an_empty_table() -> None:
    assert control_people(np.array([], dtype=np.int64), SPEC, KEY).tolist() == []


def test_control_people_do_not_depend_on_the_order_of_rows(people: Batch) -> None:
    """Nor does how many of equal people are; which of them makes no difference."""
    other = np.random.default_rng(1).permutation(people.hash)
    drawn = [np.sort(hashes[control_people(hashes, SPEC, KEY)]).tolist() for hashes in (people.hash, other)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("before", [3_000, 20_000, 60_000])
def test_who_joins_hardly_changes_who_the_control_people_are(before: int) -> None:
    hashes = np.random.default_rng(2).integers(0, 2**62, before + before // 100)
    first, then = control_people(hashes[:before], SPEC, KEY), control_people(hashes, SPEC, KEY)[:before]
    assert (first & then).sum() >= 0.97 * max(first.sum(), then.sum())
    assert not (first & ~then).any() or not (then & ~first).any()  # one set holds the other


def test_keys_with_the_same_seed_draw_other_control_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed of 32 bits can be tried; so nothing may depend on it, or on any other few bytes of the key."""
    derived = Key.derived

    def without_short_ones(key: Key, purpose: str, domain: str, size: int = 32) -> bytes:
        return derived(key, purpose, domain, size) if size >= 32 else bytes(size)

    monkeypatch.setattr(Key, "derived", without_short_ones)
    first, second = Key(bytes(range(32))), Key(bytes(range(1, 33)))
    assert seed_under(first, SPEC.dataset) == seed_under(second, SPEC.dataset) == 0
    hashes = np.random.default_rng(4).integers(0, 2**62, 20_000)
    one, other = (control_people(hashes, SPEC, key) for key in (first, second))
    assert one.sum() == other.sum() == 2_000
    assert 100 < (one & other).sum() < 300  # by chance a tenth of them are drawn twice


def test_everybody_is_a_control_person_equally_often_whatever_their_hash() -> None:
    hashes = np.arange(3_000)  # neighbours, as a poor hash might give them
    often = sum(control_people(hashes, SPEC, Key(number.to_bytes(32, "big"))).astype(np.int64) for number in range(200))
    assert abs(often.mean() - 200 / 6) < 1e-9
    assert often.min() > 10
    assert often.max() < 60


def test_a_large_table_is_drawn_in_parts(people: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = control_people(people.hash, SPEC, KEY)
    monkeypatch.setattr(audits, "DRAWN_TOGETHER", 7)
    assert (control_people(people.hash, SPEC, KEY) == whole).all()


def test_equal_people_are_drawn_one_by_one() -> None:
    """Three tenths of 2,000 people of four kinds: together they are whole kinds, of which a release has nobody."""
    hashes = np.random.default_rng(3).permutation(np.repeat([11, 22, 33, 44], [1000, 600, 300, 100]))
    chosen = control_people(hashes, SPEC.replaced({"audit.share": 0.3}), KEY)
    assert chosen.sum() == 600
    share = pd.Series(chosen).groupby(hashes).mean()
    assert share.between(0.15, 0.45).all()  # of 100 people, more than three standard deviations around .3


@pytest.mark.long
def test_a_table_of_a_few_kinds_of_people_gives_nobody_away() -> None:
    """Where all people of a kind are control people, each record that is picked for one of them is a wrong one."""
    few = batch(harness.people(1200).assign(age=lambda people: people["age"] // 30 * 30, visits=1))
    findings = audit(Audited(SPEC, KEY, few, TYPES))["findings"]
    linked = [finding for finding in findings if finding["name"].startswith("linkage") and finding["control"]]
    assert linked
    assert all(finding["control"]["rate"] > 0.3 * finding["attack"]["rate"] > 0.1 for finding in linked)
    assert not [finding["sentence"] for finding in linked if finding["verdict"] == "leak"]


def test_an_attacker_knows_all_that_is_kept_but_tokens_that_need_the_key() -> None:
    policy = harness.policy()
    steps = {
        "plain": [],
        "rounded": [{"technique": "round", "to": 5}],
        "token": [{"technique": "pseudonymize"}],
        "encrypted": [{"technique": "round", "to": 5}, {"technique": "encrypt"}],
    }
    for name, of_column in steps.items():
        policy["columns"][name] = {"role": "insensitive", "type": "numeric", "steps": of_column}
    masked = ReleaseSpec.model_validate(policy)
    types = TYPES | {"plain": ColumnType.NUMERIC, "rounded": ColumnType.NUMERIC}
    types |= dict.fromkeys(("token", "encrypted"), ColumnType.CATEGORICAL)
    known = audits.knowledge_of(masked, types)
    assert known.other == ("visits", "plain", "rounded")
    assert known.quasi_identifiers == ("age", "city", "sex") and known.sensitive == ("ill",)
    assert known.numeric == ("age", "visits", "plain", "rounded")


# The twin


def test_the_twin_loses_nobody_but_the_control_people(people: Batch) -> None:
    control = control_people(people.hash, SPEC, KEY)
    twin = make_twin(Audited(SPEC, KEY, people, TYPES), control)
    everybody = pd.concat([people.features, people.target], axis=1)
    assert rows(pd.concat([twin.members, twin.control])) == rows(everybody)
    assert sorted(twin.origin.tolist()) == list(range(len(twin.members)))
    assert len(twin.released) == int((~control).sum())


def test_behind_every_released_row_stands_its_own_member(people: Batch) -> None:
    twin = make_twin(Audited(SPEC, KEY, people, TYPES), control_people(people.hash, SPEC, KEY))
    behind = twin.members.iloc[twin.origin].reset_index(drop=True)
    for name in ("ill", "visits"):
        assert (twin.released[name] == behind[name]).all()
    sizes = twin.released.groupby(SPEC.quasi_identifiers, dropna=False).size()
    assert sizes.min() >= SPEC.k


def test_a_column_of_the_twin_may_be_called_self(people: Batch) -> None:
    def renamed(text: str) -> str:
        return text.replace("visits", "self")

    policy = harness.policy()
    policy["columns"] = {renamed(name): column for name, column in policy["columns"].items()}
    named = ReleaseSpec.model_validate(policy)
    types = {renamed(name): type_ for name, type_ in TYPES.items()}
    frames = replace(people, features=people.features.rename(columns=renamed))
    twin = make_twin(Audited(named, KEY, frames, types), control_people(people.hash, named, KEY))
    assert "self" in twin.released


@pytest.mark.parametrize(
    "meaning",
    [{"hierarchy": {"prefix": [1]}}, {"levels": ["Aberdeen", "Bergen", "Cork", "Delft"]}],
    ids=["labels", "levels"],
)
def test_an_attacker_finds_what_the_twin_shows_in_its_table_of_classes(people: Batch, meaning: dict[str, Any]) -> None:
    policy = harness.policy() | {"recode": {"form": "range"}, "privacy": {"k_anonymity": {"k": 100}}}
    policy["columns"]["city"] |= meaning
    shown = ReleaseSpec.model_validate(policy)
    twin = make_twin(Audited(shown, KEY, people, TYPES), control_people(people.hash, shown, KEY))
    assert not set(twin.released["city"]) <= {"Aberdeen", "Bergen", "Cork", "Delft"}
    assert set(twin.released["city"]) <= set(twin.classes["city"])


def test_rows_of_the_twin_stand_in_the_order_of_what_they_show(people: Batch) -> None:
    shown = make_twin(Audited(SPEC, KEY, people, TYPES), control_people(people.hash, SPEC, KEY)).released.astype(str)
    assert shown.equals(shown.sort_values(SPEC.released, kind="stable"))


@pytest.mark.long
def test_the_same_people_and_seed_give_the_same_audit(people: Batch, content: dict[str, Any]) -> None:
    assert audit(Audited(SPEC, KEY, people, TYPES)) == content


# The content


def test_the_content_is_plain_data_without_a_value_of_anybody(content: dict[str, Any]) -> None:
    text = json.dumps(content, allow_nan=False)
    assert "skipped" not in content
    assert content["members"] + content["control"] == content["people"] == 1200
    assert {one["criterion"] for one in content["findings"]} == {
        "linkability", "singling_out", "inference", "membership"
    }  # fmt: skip
    assert not any(city in text for city in harness.people()["city"].unique())


@pytest.mark.long
def test_control_people_that_were_held_out_are_attacked_beside_all_who_are_in_it() -> None:
    everybody = harness.people(1200)
    content = audit(
        Audited(spec(control="held_out"), KEY, batch(everybody[:900]), TYPES), held_out=batch(everybody[900:])
    )
    assert (content["control_kind"], content["members"], content["control"]) == ("held_out", 900, 300)


@pytest.mark.long
def test_models_are_attacked_where_the_spec_wants_it() -> None:
    content = audit(Audited(spec(models=True, people=400, shadows=4), KEY, batch(harness.people(800)), TYPES))
    assert content["models"]["membership"]
    assert content["guide"]["membership"]
    (bound,) = bounds(spec(membership_auc=1.0), content)
    of_release = [one for one in content["models"]["membership"] if one["model"] == audits.RELEASE]
    assert bound.measured == max(one["auc_high"] for one in of_release)
    assert bound.holds


# Bounds

ALL = {"linkage": 1.0, "singling_out": 1.0, "attribute_inference": {"ill": 1.0}, "membership_auc": 1.0}


def test_a_bound_is_held_against_the_upper_end_of_the_strongest_attack(content: dict[str, Any]) -> None:
    linked = [one["leak"] for one in content["findings"] if one["criterion"] == "linkability"]
    highest = max(one["high"] for one in linked)
    assert max(one["leak"] for one in linked) < highest
    for limit, holds in ((highest, True), (highest - 1e-9, False)):
        (bound,) = bounds(spec(linkage=limit), content)
        assert bound.measured == highest
        assert bound.holds is holds


def test_too_few_people_are_not_attacked_and_no_bound_holds() -> None:
    content = audit(Audited(SPEC, KEY, batch(harness.people(50)), TYPES))
    assert "50 people are too few" in content["skipped"]
    assert content["findings"] == []
    found = bounds(spec(**ALL), content)
    assert [one.name for one in found] == ["linkage", "singling_out", "attribute_inference_ill", "membership_auc"]
    assert not any(one.holds for one in found)


@pytest.mark.parametrize("k", [2, 60])
def test_so_few_people_are_attacked(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four classes of k, or as many as tell a leak from chance."""

    def asked(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(audits, "control_people", asked)
    of_k = ReleaseSpec.model_validate(harness.policy() | {"privacy": {"k_anonymity": {"k": k}}})
    fewest = max(audits.FEWEST, 4 * k)
    with pytest.raises(InterruptedError):
        audit(Audited(of_k, KEY, batch(harness.people(fewest)), TYPES))
    assert "skipped" in audit(Audited(of_k, KEY, batch(harness.people(fewest - 1)), TYPES))


def test_where_no_twin_can_be_made_the_audit_says_so_and_no_bound_holds(
    people: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise audits.Refused(["no grouping meets the demand"])

    monkeypatch.setattr(audits, "make_twin", refuse)
    content = audit(Audited(SPEC, KEY, people, TYPES))
    assert "no grouping meets the demand" in content["skipped"]
    assert not any(one.holds for one in bounds(spec(**ALL), content))


def test_a_bound_on_models_that_were_not_attacked_does_not_hold(content: dict[str, Any]) -> None:
    for part in ({}, {"models": {"skipped": "too few people"}}):
        (bound,) = bounds(spec(membership_auc=1.0), {**content, **part})
        assert bound.measured is None
        assert not bound.holds


def test_a_bound_on_a_column_that_was_not_attacked_does_not_hold(content: dict[str, Any]) -> None:
    (bound,) = bounds(spec(attribute_inference={"age": 1.0}), content)
    assert not bound.holds


def test_people_of_whom_nothing_could_be_counted_do_not_pass_for_people_of_whom_nothing_is_learned() -> None:
    """By the estimate, a replay that counted nothing of anybody held every bound."""
    privacy = {"k_anonymity": {"k": 5}, "l_diversity": {"column": "ill", "l": 2}}
    asked = harness.policy() | {"privacy": privacy, "audit": {"replayed": 0.1, "bounds_on": "estimate"}}
    of_estimate = ReleaseSpec.model_validate(asked)
    for certain, undecided, holds in ((0.02, 0.05, True), (0.02, 0.09, False), (0.0, 1.0, False)):
        replayed = [{"column": "ill", "certain": certain, "undecided": undecided, "high": 1.0}]
        (bound,) = bounds(of_estimate, {"findings": [], "replayed": replayed})
        assert bound.measured == pytest.approx(certain + undecided) and bound.holds is holds


def test_without_a_demand_there_is_no_bound(content: dict[str, Any]) -> None:
    assert bounds(SPEC, content) == []


def test_what_is_no_number_holds_nothing() -> None:
    bound = Bound("linkage", "linkage is at most 1", float("nan"), 1.0)
    assert not bound.holds
    assert not replace(bound, measured=None).holds


def test_a_twin_protects_dates_as_dates() -> None:
    """Days since 1970 were numbers to a demand with dates, so that no twin could be made, and nothing was attacked."""
    policy = harness.policy()
    policy["columns"]["visits"] = {"role": "sensitive", "type": "date"}
    policy["privacy"]["l_diversity"] = {"column": "visits", "l": 2, "bins": [date(2021, 1, 1)]}
    frame = harness.people(300)
    frame["visits"] = np.where(np.arange(300) % 2, 18_262.0, 18_800.0)  # two days, of 2020 and of 2021
    of_dates = ReleaseSpec.model_validate(policy)
    audited = Audited(of_dates, KEY, batch(frame), TYPES | {"visits": ColumnType.DATE})
    twin = make_twin(audited, control_people(audited.people.hash, of_dates, KEY))
    assert len(twin.members) and (twin.classes["class_size"] >= 10).all()
    after = twin.released.assign(early=twin.released["visits"] < 18_628)
    assert (after.groupby(["age", "city", "sex"], dropna=False)["early"].nunique() == 2).all()
