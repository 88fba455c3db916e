"""Planted leaks are found, clean releases are left alone, and an audit tells nothing of a person."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import sklearn

from anon_pipeline.attack import inference, kept_columns, linkage
from anon_pipeline.attack.rates import LEAK, NO_CONTROL, TOO_WEAK, Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.table_audit import Earlier, audit_table
from anon_pipeline.attack.targets import Tables
from anon_pipeline.errors import InputError
from anon_pipeline_tests.attack.tables import CITIES, KNOWLEDGE, QUASI, anonymized, people

MEMBERS, CONTROL = people(1500, 1), people(700, 2)
ALL = "linkage, all quasi-identifiers"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "ITERATIONS", 5)


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    assert len({one.name for one in findings}) == len(findings)
    return {one.name: one for one in findings}


def audit(released, origin, classes=None, **options) -> dict[str, Finding]:
    return by_name(audit_table(Tables(released, MEMBERS, CONTROL, origin, classes), KNOWLEDGE, targets=700, **options))


@pytest.fixture(scope="module")
def clean() -> dict[str, Finding]:
    released, classes, origin = anonymized(MEMBERS)
    return audit(released, origin, classes)


@pytest.mark.long
def test_an_anonymized_table_gives_away_no_more_than_its_groups_do(clean):
    released, classes, origin = anonymized(MEMBERS, refine=0)
    tree_alone = audit(released, origin, classes)
    assert tree_alone[ALL].attack.high < 1 / 10
    assert tree_alone[ALL].leak.high < 1 / 10
    for found in (clean, tree_alone):
        assert found["row order"].verdict != LEAK
        assert found["inference: ill"].leak.low < 0.05


def test_where_classes_are_near_k_one_in_a_class_is_found(clean):
    _, classes, _ = anonymized(MEMBERS)
    marketer_risk = len(classes) / len(MEMBERS)
    assert marketer_risk < 1 / 10
    # Ends that k people share are wider than the class, so that some people fit another class better than their own.
    assert marketer_risk / 2 < clean[ALL].attack.low < marketer_risk
    assert clean[ALL].attack.rate < 1 / 10
    assert clean[ALL].leak.leak < 1 / 10


@pytest.mark.long
@pytest.mark.parametrize("form", ["value", "range"])
def test_a_column_left_raw_is_found(form, clean):
    released, _, origin = anonymized(MEMBERS, form=form)
    released["joined"] = MEMBERS["joined"].to_numpy()[origin]
    released["age"] = MEMBERS["age"].to_numpy()[origin]
    found = audit(released, origin)
    assert found[ALL].leak.low > 0.5 > 3 * clean[ALL].leak.high
    assert found["linkage, 2 quasi-identifiers"].verdict == LEAK
    assert found["membership in a register"].verdict == LEAK
    assert found["inference: cost"].leak.low > clean["inference: cost"].leak.high


@pytest.mark.long
def test_one_raw_column_beside_ranges_is_found(clean):
    released, _, origin = anonymized(MEMBERS, form="range")
    released["joined"] = MEMBERS["joined"].to_numpy()[origin]
    found = audit(released, origin)
    assert found[ALL].leak.low > 2 * clean[ALL].leak.high


@pytest.mark.long
def test_kept_row_order_is_found():
    released, classes, origin = anonymized(MEMBERS)
    in_order = released.iloc[np.argsort(origin)].reset_index(drop=True)
    found = audit(in_order, np.arange(len(MEMBERS)), classes)
    assert found["row order"].verdict == LEAK
    assert found["row order"].leak.low > 0.95


@pytest.mark.long
def test_a_unique_value_that_was_kept_is_found():
    table = MEMBERS.assign(weight=np.random.default_rng(0).normal(size=len(MEMBERS)))
    control = CONTROL.assign(weight=np.random.default_rng(1).normal(size=len(CONTROL)))
    released, classes, origin = anonymized(table)
    released["weight"] = table["weight"].to_numpy()[origin]
    knowledge = Knowledge(QUASI, KNOWLEDGE.sensitive, ["weight"], [*KNOWLEDGE.numeric, "weight"])
    found = by_name(audit_table(Tables(released, table, control, origin, classes), knowledge, targets=300))
    assert found["singling out, one column"].verdict == LEAK
    assert found["singling out, one column"].attack.rate > 0.9
    assert found["singling out, one column"].leak.low > 0.5


@pytest.mark.long
def test_raw_copies_of_a_tenth_of_the_rows_are_found(clean):
    released, classes, origin = anonymized(MEMBERS)
    mixed = released.astype(object)
    copied = np.arange(0, len(released), 10)
    for name in QUASI:
        mixed.loc[copied, name] = MEMBERS[name].astype(object).to_numpy()[origin[copied]]
    found = audit(mixed, origin, classes)
    assert found[ALL].leak.low > clean[ALL].leak.high
    assert found[ALL].attack.rate == pytest.approx(clean[ALL].attack.rate * 0.9 + 0.1, abs=0.04)
    assert found[ALL].details["alone"] == pytest.approx(0.1, abs=0.03)


@pytest.mark.long
def test_independent_people_of_the_same_population_leak_nothing_in_93_of_100_seeds(monkeypatch):
    """Whatever an attack is able to: with fewer trees, and without the details that are not looked at."""
    monkeypatch.setattr(kept_columns, "TREES", 3)
    monkeypatch.setattr(linkage, "RANDOM_SETS", 0)
    holds, seen, accused = Counter(), Counter(), Counter()
    for seed in range(100):
        tables = [people(n, 10 * seed + place) for place, n in enumerate((150, 150, 100))]
        released, original, control = tables
        with sklearn.config_context(skip_parameter_validation=True):
            found = audit_table(Tables(released, original, control), KNOWLEDGE, seed=seed)
        for one in found:
            if one.leak is not None:
                seen[one.name] += 1
                holds[one.name] += one.leak.low <= 0 <= one.leak.high
                accused[one.name] += one.verdict == LEAK
    assert len(seen) >= 12
    assert {name: (holds[name], seen[name]) for name in seen if holds[name] < 0.93 * seen[name]} == {}
    assert max(accused.values()) <= 6


@pytest.mark.long
def test_without_control_people_it_is_not_called_a_leak():
    released, classes, origin = anonymized(MEMBERS)
    for found in audit_table(Tables(released, MEMBERS, None, origin, classes), KNOWLEDGE, targets=200):
        if not found.name.startswith("row order"):
            assert found.control is None
            assert found.leak is None
            assert found.verdict in (NO_CONTROL, TOO_WEAK)


@pytest.mark.long
def test_neither_row_order_nor_the_tables_types_change_a_finding():
    released, classes, origin = anonymized(MEMBERS[:400])
    earlier = Earlier(released, classes)
    first = audit_table(Tables(released, MEMBERS[:400], CONTROL, origin, classes), KNOWLEDGE, [earlier], targets=150)
    draw = np.random.default_rng(0)
    rows, members, control = draw.permutation(len(released)), draw.permutation(400), draw.permutation(len(CONTROL))
    place = np.argsort(members)
    again = audit_table(
        Tables(
            released.iloc[rows].astype({"city": "category"}),
            MEMBERS[:400].iloc[members],
            CONTROL.iloc[control],
            place[origin[rows]],
            classes.sample(frac=1, random_state=0),
        ),
        KNOWLEDGE,
        [Earlier(released.iloc[rows], classes)],
        targets=150,
    )
    ordered = [one.to_json() for one in first if not one.name.startswith("row order")]
    assert ordered == [one.to_json() for one in again if not one.name.startswith("row order")]


@pytest.mark.long
def test_an_audit_holds_no_value_of_a_person(clean):
    released, classes, origin = anonymized(MEMBERS.assign(ill=[f"secret-{i % 7}" for i in range(len(MEMBERS))]))
    found = audit_table(Tables(released, MEMBERS, CONTROL, origin, classes), KNOWLEDGE, targets=100)
    told = json.dumps([one.to_json() for one in [*found, *clean.values()]], ensure_ascii=False, allow_nan=False)
    assert not any(city in told for city in CITIES)
    assert "secret" not in told
    assert "2001-" not in told


@pytest.mark.long
def test_a_foreign_tools_table_is_attacked_as_it_is():
    table = MEMBERS
    foreign = pd.DataFrame(
        {
            "age": [f"[{a // 20 * 20}, {a // 20 * 20 + 20}[" for a in table.age],
            "city": ["*" if city is None or city in CITIES[3:] else f"{{{city}, Nowhere}}" for city in table.city],
            "sex": table.sex.to_numpy(),
            "joined": [">=2001-01-01" if pd.notna(day) else "*" for day in table.joined],
            "member": "*",
            "ill": table.ill.to_numpy(),
        }
    )
    found = audit(foreign, np.arange(len(table)))
    groups = len(foreign.drop_duplicates([*QUASI]))
    assert found[ALL].details["groups"] == groups
    assert found[ALL].details["own_record"] == pytest.approx(groups / len(table), rel=0.35)
    assert "inference: cost" not in found  # it was not released
    assert audit(foreign, None)[ALL].attack.rate > 0


def test_tables_that_do_not_belong_together_are_refused():
    released, _, origin = anonymized(MEMBERS)
    with pytest.raises(InputError, match="origin has 10 entries"):
        audit(released, origin[:10])
    with pytest.raises(InputError, match="outside"):
        audit(released, origin + 1)
    with pytest.raises(InputError, match="outside"):
        audit(released, np.where(origin == 0, -2, origin))
    with pytest.raises(InputError, match="no people"):
        audit_table(Tables(released, MEMBERS[:0], CONTROL), KNOWLEDGE)
    with pytest.raises(InputError, match="lacks the columns"):
        audit_table(Tables(released, MEMBERS, CONTROL.drop(columns="age")), KNOWLEDGE)


@pytest.mark.long
def test_tiny_and_degenerate_tables_are_survived():
    tiny = pd.DataFrame({"x": [1.0, np.nan, 3.0], "c": [None, None, "a"], "s": ["u", None, "u"]})
    knowledge = Knowledge(["x", "c"], ["s"], numeric=["x"])
    for control in (None, tiny, tiny[:1], tiny[:0]):
        for released in (tiny, tiny[:1], tiny.assign(x=np.nan), tiny.assign(x="*", c="*"), tiny.drop(columns="s")):
            for one in audit_table(Tables(released, tiny, control), knowledge, earlier=[Earlier(tiny)]):
                json.dumps(one.to_json(), allow_nan=False)
