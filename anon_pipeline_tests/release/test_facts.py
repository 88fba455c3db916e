"""What a manifest says is put together from stored facts alone, and each figure as finely as may be told."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.anonymize.classes import information_loss, loss_as_told
from anon_pipeline.engine.base import ColumnFacts, SourceFacts
from anon_pipeline.engine.binning import bins_of
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release.facts import Evidence, GroupEvidence, facts_of_groups, facts_of_people, losses
from anon_pipeline.release.noise import NO_NOISE
from anon_pipeline.spec import ColumnType, Role
from anon_pipeline.tables import Cells, Domain
from anon_pipeline_tests.release.lineage_facts import SPEC, STORAGE

THIRD = 1 / 3


def stored(rows: int, **more: Any) -> dict[str, Any]:
    """Facts of a step that stored people, with a count of each column's gaps that nobody is to read."""
    columns = tuple(
        ColumnFacts(name, SPEC.columns[name].role, ColumnType.CATEGORICAL, STORAGE.get(name, "VARCHAR"), 917, 918)
        for name in SPEC.columns
    )
    facts = json.loads(json.dumps(SourceFacts(rows, "f" * 64, columns, ()).to_json(), default=str))
    return {**facts, "read": "a" * 64, "held_out": 0, **more}


def evidence(**changes: Any) -> Evidence:
    loss = {"age": THIRD, "place": 0.5}
    candidate = {
        "released": 900, "suppressed": 60, "waiting": 0, "columns": {}, "marginals": {},
        "associations": {
            "pairs": [
                {"columns": ["age", "ill"], "measure": "spearman", "before": THIRD, "after": THIRD, "people": 960,
                 "apart": (900, 400)},
            ],
        },
        "information_loss": loss, "apart": {"age": 900, "place": 300},
    }  # fmt: skip
    of = Evidence(
        source=stored(1000),
        people=stored(960, held_out=40),
        candidate=candidate,
        utility={"rows": 960, "metrics": {"accuracy": THIRD}},
        coarsened={},
        distinct_people=ClassStatistics(sizes=np.ones(960, dtype=np.int64)),
        classes=ClassStatistics(sizes=np.full(90, 10, dtype=np.int64)),
        beside_population=None,
        examples=[{"people": 10, "recoded": {"age": "40"}, "kept": {}}],
        attacks={"findings": [{"rate": THIRD}]},
        across_releases=None,
        maps=[],
        checks=[{"name": "k_anonymity", "passed": True}],
        runs={"dagster": "d", "mlflow": "m"},
        noise=NO_NOISE,
    )
    return dataclasses.replace(of, **changes)


def test_what_attacks_count_among_people_held_out_is_told_in_steps() -> None:
    rate = {"successes": 30.0, "trials": 300, "rate": 0.1, "low": 0.07, "high": 0.14}
    of_control = {"successes": 7.0, "trials": 300, "rate": 7 / 300, "low": 0.011, "high": 0.047}
    exact = {
        "name": "linkage, all quasi-identifiers", "criterion": "linkability", "attack": rate, "control": of_control,
        "knowledge": {"columns": ["age"], "wrong": 0.0}, "baseline": {**rate, "rate": 0.001}, "verdict": "leak",
        "leak": {"leak": 0.0785, "low": 0.04, "high": 0.1234567}, "sentence": "7 of 300", "details": {},
    }  # fmt: skip
    bound = {"name": "linkage", "demand": "at most 50 %", "measured": 0.1234567, "limit": 0.5, "holds": True}
    attacks = {
        "control_kind": "held_out", "members": 900, "control": 300, "findings": [exact], "bounds": [bound],
    }  # fmt: skip
    check = {"name": "linkage", "demand": "at most 50 %", "measured": 0.1234567, "sentence": "measured 12.35 %"}
    facts = facts_of_people(SPEC, evidence(attacks=attacks, checks=[check]))
    assert facts["audit"]["findings"][0]["control"]["rate"] == 0.0
    assert facts["audit"]["bounds"][0]["measured"] == facts["checks"][0]["measured"] == 0.1948
    told = json.dumps(facts["audit"]) + json.dumps(facts["checks"])
    assert not any(figure in told for figure in ("7 of 300", "0.0233", "0.1234", "12.3", "0.0785"))


@pytest.mark.parametrize(("role", "is_told"), [(Role.EXCLUDE, False), (Role.INSENSITIVE, True)])
def test_what_follows_from_weights_is_told_where_they_are_released(role: Role, is_told: bool) -> None:
    weight = SPEC.columns["place"].model_copy(update={"role": role, "type": ColumnType.NUMERIC})
    spec = SPEC.model_copy(update={"columns": {**SPEC.columns, "weight": weight}, "sampling_weight": "weight"})
    of = evidence()
    risk = {"population": 90_000.0, "smallest_class": 400.0, "max": 0.0123, "mean": 0.0045}
    after = facts_of_people(spec, dataclasses.replace(of, candidate=of.candidate | {"weighted": risk}))
    assert ("weighted" in after["measured"]["risk"]["after"]) == is_told


def test_people_held_out_are_of_the_stated_share_of_the_population() -> None:
    """Of a fifth of 5,000 people 400 are held out: the population is not what the 600 are a fifth of."""
    spec = SPEC.model_copy(update={"sampling_fraction": 0.2})

    def estimate(held_out: int) -> dict[str, Any]:
        classes = ClassStatistics(sizes=np.full(60, 10, dtype=np.int64))
        of = evidence(source=stored(600), people=stored(600, held_out=held_out), classes=classes)
        told: dict[str, Any] = facts_of_people(spec, of)["measured"]["risk"]["after"]["population_uniqueness"]["zayatz"]
        return told

    assert estimate(0)["population"] == 3000 and estimate(0)["sampling_fraction"] == 0.2
    assert estimate(400)["population"] == pytest.approx(5000)
    assert estimate(400)["sampling_fraction"] == pytest.approx(0.12)


def test_everybody_of_the_stated_share_counts_whom_the_release_does_not_show() -> None:
    """A fifth of 5,000 people: 100 of them have no target, 60 are withheld, and 40 are suppressed.

    The population was said to be what those who are left are a fifth of: 4,200 people, and 4,000 after grouping.
    """
    spec = SPEC.model_copy(update={"sampling_fraction": 0.2, "missing_target": "leave_out"})
    of = evidence(
        source=stored(900, left_out=100),
        people=stored(900),
        distinct_people=ClassStatistics(sizes=np.r_[np.ones(640, dtype=np.int64), np.full(100, 2)]),
        classes=ClassStatistics(sizes=np.full(80, 10, dtype=np.int64)),
    )
    risk = facts_of_people(spec, of)["measured"]["risk"]
    before, after = (risk[when]["population_uniqueness"]["zayatz"] for when in ("before", "after"))
    assert before["population"] == after["population"] == pytest.approx(5000)
    assert before["sampling_fraction"] == pytest.approx(840 / 5000)
    assert after["sampling_fraction"] == pytest.approx(800 / 5000)
    # Zayatz, 640 classes of one and 100 of two: c1 / pi * c1 / (c1 + 2 c2 (N - n) / (N - 1)), N = 5,000, n = 840.
    uniques = 640 / (840 / 5000) * 640 / (640 + 2 * 100 * 4160 / 4999)
    assert before["share"] == pytest.approx(uniques / 5000, abs=0.025)  # told in steps of .05
    assert before["uniques"] == 3000  # of 4,200 people it was 2,500


def test_how_many_have_no_target_does_not_follow_from_the_share_of_the_population() -> None:
    spec = SPEC.model_copy(update={"sampling_fraction": 0.2, "missing_target": "leave_out"})
    told = [
        facts_of_people(spec, evidence(source=stored(900, left_out=left_out)))["measured"]["risk"]
        for left_out in (100, 101)
    ]
    assert told[0] == told[1]


def test_into_how_many_bins_a_column_was_coarsened_is_not_told() -> None:
    """A common value leaves bins empty, and one person more or less with it another one: an exact figure of the source.

    Of 60 random tables of 400 people, half of them with one number, 43 told some other number of one person by it.
    """
    bins = {len(_bins(zeros)) for zeros in (206, 207)}
    assert bins == {34, 33}
    told = [facts_of_people(SPEC, evidence(coarsened={"age": number}))["coarsened"] for number in bins]
    assert told == [["age"], ["age"]]


def _bins(zeros: int) -> Domain:
    """400 people in 64 bins, of whom so many have no income."""
    incomes = np.r_[np.zeros(zeros), np.arange(1, 401 - zeros)]
    values, people = np.unique(incomes, return_counts=True)
    counted = pa.RecordBatch.from_pydict({"value": values, "people": people})
    return bins_of("income", ColumnType.NUMERIC, "DOUBLE", [counted], 400, 64)


def test_rows_add_up_from_source_to_release() -> None:
    rows = facts_of_people(SPEC, evidence())["rows"]
    assert rows == {
        "source": 1040, "sampled_out": 40, "held_out": 40, "released": 900, "suppressed": 60, "waiting": 0,
    }  # fmt: skip
    assert rows["released"] + rows["suppressed"] == 960


@pytest.mark.parametrize("choice", [None, "release", "leave_out"])
def test_who_has_no_target_is_told_in_steps_and_only_where_they_are_left_out(choice: str | None) -> None:
    spec = SPEC.model_copy(update={"missing_target": choice})
    told = [facts_of_people(spec, evidence(source=stored(1000, left_out=left)))["rows"] for left in (0, 1, 130)]
    if choice == "leave_out":
        assert [rows["without_target"] for rows in told] == [0, 0, 150]  # nobody or one: the same
        last = {"technique": "aggregate", "guarantee": "k", "facts": {}}
        groups = GroupEvidence(stored(80, left_out=7), stored(80, masking=[]), {"groups": 7}, last, [], {}, NO_NOISE)
        assert facts_of_groups(spec, groups)["rows"]["without_target"] is None  # of so few people
    else:
        assert all("without_target" not in rows for rows in told)


def test_the_table_of_a_lake_is_named_where_there_is_one() -> None:
    assert "table" not in facts_of_people(SPEC, evidence())["source"]
    table = {"format": "delta", "version": "3"}
    assert facts_of_people(SPEC, evidence(source=stored(1000, table=table)))["source"]["table"] == table


def test_no_figure_of_the_source_has_all_its_digits() -> None:
    facts = facts_of_people(SPEC, evidence(people=stored(960, held_out=40, masking=[masked_step()])))
    text = json.dumps({name: one for name, one in facts.items() if name != "source"}, default=str)
    assert "0.333333" not in text
    assert facts["utility"]["metrics"]["accuracy"] == facts["audit"]["findings"][0]["rate"] == 0.3333
    assert facts["measured"]["associations"]["pairs"][0]["before"] in (0.3, 0.35)
    assert "917" not in json.dumps(facts, default=str) and "918" not in json.dumps(facts, default=str)


def test_risk_is_that_of_cells_before_and_of_classes_after() -> None:
    risk = facts_of_people(SPEC, evidence())["measured"]["risk"]
    assert risk["before"]["prosecutor"]["max"] == 1 and risk["after"]["prosecutor"]["max"] == 0.1


def test_a_population_brings_the_journalist_and_the_marketer_and_tells_little_of_its_people() -> None:
    def risk(extra: int) -> dict[str, Any]:
        population = np.full(90, 37, dtype=np.int64)
        population[4] += extra
        boxes = ClassStatistics(sizes=np.full(90, 10, dtype=np.int64), population=population)
        after: dict[str, Any] = facts_of_people(SPEC, evidence(beside_population=boxes))["measured"]["risk"]["after"]
        return after

    assert risk(0)["journalist"] == {"max": 0.027, "mean": 0.027}
    assert risk(0)["marketer"] == 0.027
    of_source = facts_of_people(
        SPEC, evidence(beside_population=ClassStatistics(np.array([9]), population=np.array([99])))
    )
    assert of_source["measured"]["risk"]["before"]["marketer"] is None  # not that of the source alone
    assert risk(1) == risk(0)  # one person more, whom nobody releases
    alone = facts_of_people(SPEC, evidence())["measured"]["risk"]["after"]
    assert alone["journalist"] is None and alone["marketer"] == alone["prosecutor"]["mean"]


def test_without_an_audit_or_masking_the_manifest_says_so() -> None:
    facts = facts_of_people(SPEC, evidence(attacks=None))
    assert facts["audit"] is None and facts["masking"] is None


def masked_step(**facts: Any) -> dict[str, Any]:
    change = {"other": "pay", "before": THIRD, "after": 0.0, "signed": True, "people": 960}
    correlations = [change | {"apart": (900, 900), "apart_after": (900, 900)}]
    measured = {"changed": THIRD, "distance": THIRD, "measure": "m", "correlations": correlations}
    costs = {"age": measured | {"people": 960, "known": 960}}
    linkage = {"rate": THIRD, "rows": 500, "pool": 960}
    return {"technique": "round", "guarantee": "none", "facts": facts, "costs": costs, "linkage": linkage}


def test_a_release_of_groups_tells_neither_what_is_left_out_nor_what_single_rows_cost() -> None:
    groups = {"groups": 7, "smallest": 12}
    last = {"technique": "aggregate", "guarantee": "k", "facts": {"groups": 7, "groups_left_out": 2}}
    masked = stored(960, masking=[masked_step()])
    facts = facts_of_groups(SPEC, GroupEvidence(stored(1000), masked, groups, last, [], {}, NO_NOISE))
    assert facts["rows"] == {"source": 1000, "sampled_out": 40, "released": 7}
    assert "groups_left_out" not in json.dumps(facts["masking"])
    assert all(step["costs"] == {} and step["linkage"] is None for step in facts["masking"])


def test_an_identifier_is_named_and_its_storage_is_not() -> None:
    (name,) = [one for one in facts_of_people(SPEC, evidence())["source"]["columns"] if one["role"] is Role.IDENTIFIER]
    assert name == {"name": "name", "role": Role.IDENTIFIER}


@pytest.mark.parametrize("kind", [ColumnType.CATEGORICAL, ColumnType.NUMERIC])
@pytest.mark.parametrize("alike", [0, 1, 2, 5, 20, 40])
def test_what_is_lost_of_a_column_seldom_tells_one_rare_value(kind: ColumnType, alike: int) -> None:
    """The only person with another value has all of the column's variance, which the class hides: 0 became 1."""
    apart, people, group_of = 0, 1000, np.arange(1000)
    for table in range(40):
        random = np.random.default_rng(table)
        group = group_of // int(random.integers(5, 30))
        others, told = random.permutation(people - 1)[:alike], []
        for last in (1, 2):
            code = np.ones((people, 1), dtype=np.int32)
            code[others] = 2
            code[-1] = last
            values = np.array([0.0, 1.0]) if kind is ColumnType.NUMERIC else np.array(["no", "yes"], dtype=object)
            counts = np.bincount(code[:, 0], minlength=3)
            cells = Cells((Domain("x", kind, values, counts),), code, np.ones(people, np.int64), code)
            alone = np.arange(int(group.max()) + 1)
            lost = loss_as_told(cells, group, information_loss(cells, group, len(alone)), alone)
            candidate = {"released": people, "suppressed": 0, "waiting": 0, "information_loss": lost}
            told.append(losses(candidate | {"apart": {"x": cells.domains[0].apart}}, NO_NOISE))
        apart += told[0] != told[1]
    assert apart <= 0.2 * 40
