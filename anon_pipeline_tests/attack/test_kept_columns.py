"""Kept columns that tell a quasi-identifier in any form are found, and others are not taken for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline import AnonymizerTree
from anon_pipeline.attack.kept_columns import linkage_by_kept_columns
from anon_pipeline.attack.linkage import linkage
from anon_pipeline.attack.rates import LEAK, Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.targets import Tables, read_attacked

QUASI = ["age", "city", "sex"]
Draw = np.random.Generator


def _born_in_a_code(age: np.ndarray, draw: Draw) -> list[str]:
    return [f"X{draw.integers(100, 999)}{2020 - one}{draw.integers(1, 13):02d}Q" for one in age]


#: Columns that are made of the age, and the least share of people who are found by each.
FORMS: dict[str, tuple[Callable[[np.ndarray, Draw], Any], float]] = {
    "copy": (lambda age, _: age, 0.5),
    "shifted": (lambda age, _: age + 1000, 0.5),
    "monotone": (lambda age, _: np.round(np.log(age), 6), 0.5),
    "reversed": (lambda age, _: [str(one)[::-1] for one in age], 0.5),
    "hashed": (lambda age, _: [hashlib.sha256(b"salt%d" % one).hexdigest()[:8] for one in age], 0.2),
    "months": (lambda age, draw: age * 12 + draw.integers(0, 12, len(age)), 0.5),
    "in_a_code": (_born_in_a_code, 0.4),
    "decade": (lambda age, _: age // 10, 0.14),
    "huge": (lambda age, draw: age * 10**15 + draw.integers(0, 10**14, len(age)), 0.5),
}


def people(n: int, seed: int, kept: Callable[[np.ndarray, Draw], Any]) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 90, n)
    city, sex = draw.choice(["Ulm", "Bonn", "Kiel", "Jena", "Trier", "Celle"], n), draw.choice(["f", "m"], n)
    ill = np.where(draw.random(n) < 0.1 + age / 200, "yes", "no")
    table = pd.DataFrame({"age": age, "city": city, "sex": sex, "ill": ill, "visits": draw.poisson(3, n)})
    return table.assign(kept=kept(age, draw))


def attacked(table: pd.DataFrame, members: int, origin_known: bool = True, order: int = 1) -> tuple[Finding, Finding]:
    """The attack by kept columns, and that by the classes alone."""
    inside, outside = (part.reset_index(drop=True) for part in (table[:members], table[members:]))
    tree = AnonymizerTree(k=10).fit(inside[QUASI], (inside["ill"] == "yes").to_numpy(float))
    released = inside.assign(**{name: np.asarray(shown) for name, shown in tree.transform(inside[QUASI]).items()})
    origin = np.random.default_rng(order).permutation(members)
    numeric = [name for name in ("age", "visits", "kept") if pd.api.types.is_numeric_dtype(table[name])]
    tables = Tables(
        released.iloc[origin].reset_index(drop=True), inside, outside, origin if origin_known else None, tree.classes_
    )
    read = read_attacked(tables, Knowledge(QUASI, ["ill"], ["visits", "kept"], numeric), 3)
    alone = next(one for one in linkage(read, 5000) if one.name == "linkage, all quasi-identifiers")
    return linkage_by_kept_columns(read, 5000)[0], alone


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("origin_known", [True, False])
def test_a_column_that_is_made_of_a_quasi_identifier_is_found(form: str, origin_known: bool) -> None:
    """At k = 10 nobody's record was said to be found in more than one case of ten, whatever stood beside it."""
    make, least = FORMS[form]
    found, alone = attacked(people(600, 5, make), 450, origin_known)
    assert alone.attack.rate < 0.1
    assert found.attack.rate > least and found.verdict == LEAK
    by_column = found.details["by_column"]
    assert max(by_column, key=by_column.get) == "kept"
    assert found.control is not None and found.control.rate < 0.1


@pytest.mark.long
@pytest.mark.parametrize("distinct", [2, 30, 10**6])
def test_a_column_that_has_nothing_to_do_with_them_is_not_taken_for_it(distinct: int) -> None:
    """Also where every value stands once, and whom a forest has seen would be told from whom it has not."""
    rates = [
        [
            one.attack.rate
            for one in attacked(people(600, seed, lambda age, draw: draw.integers(0, distinct, len(age))), 450)
        ]
        for seed in range(3)
    ]
    found, alone = np.mean(rates, axis=0)
    assert 0.6 * alone < found < 1.5 * alone


def _hardly_tells(age: np.ndarray, draw: Draw) -> Any:
    return age + draw.normal(0, 15, len(age))


def _seldom(age: np.ndarray, draw: Draw) -> Any:
    return np.where(draw.random(len(age)) < 0.01 + 0.04 * (age > 60), "yes", "no")


@pytest.mark.long
@pytest.mark.parametrize(("make", "step"), [(_hardly_tells, 1), (_seldom, 20)])
def test_a_column_that_tells_a_little_makes_nobody_harder_to_find(
    make: Callable[[np.ndarray, Draw], Any], step: int
) -> None:
    """A forest repeats whom it has seen, so others were taken for them; rare values were believed of everybody."""
    rates = []
    for seed in range(8):
        table = people(600, seed, make)
        found, alone = attacked(table.assign(age=table["age"] // step * step, sex="f"), 450)
        rates.append([found.attack.rate, alone.attack.rate])
    found, alone = np.mean(rates, axis=0)
    assert found > 0.85 * alone


@pytest.mark.long
def test_the_order_of_the_rows_does_not_matter() -> None:
    table = people(400, 1, FORMS["months"][0])
    first, second = (attacked(table, 300, order=order)[0].to_json() for order in (1, 2))
    assert first == second


@pytest.mark.long
def test_missing_values_and_few_people_are_no_obstacle() -> None:
    table = people(60, 2, lambda age, draw: pd.Series(age, dtype="float").mask(draw.random(len(age)) < 0.3))
    found, alone = attacked(table, 40)
    assert found.attack.rate > alone.attack.rate
    nothing, alone = attacked(table.assign(kept=np.nan), 40)
    assert nothing.attack.rate == pytest.approx(alone.attack.rate, abs=0.1)


def test_where_nothing_is_kept_or_nobody_is_known_there_is_no_attack() -> None:
    table = people(40, 3, FORMS["copy"][0])
    for knowledge, known in ((Knowledge(["age"]), table), (Knowledge(["age"], ["ill"]), table[:3])):
        assert linkage_by_kept_columns(read_attacked(Tables(table, known), knowledge), 5000) == []
