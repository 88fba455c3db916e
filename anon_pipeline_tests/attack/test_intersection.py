"""Newcomers do not hide that people of earlier releases are found by two releases together.

The attacker knows that a person stood in both. Of a table of mostly new people the mean success over everybody is that
of one release alone, so it says nothing of the people whom the attack is about.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack.intersection import NAME, OF_WHO_FIT, Earlier, intersection
from anon_pipeline.attack.limits import largest_leak
from anon_pipeline.attack.rates import NOTHING, Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.targets import Tables, read_attacked

PEOPLE, KNOWN = 2_000, Knowledge(["x"], ["s"], numeric=["x"])


def in_tens(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(x=[f"[{x // 10 * 10}, {x // 10 * 10 + 9}]" for x in table.x])


def attacked(former: int, values: int = 100 * PEOPLE, control: int = 300) -> list[Finding]:
    """The findings about people of whom the first of each ten, `former` in all, stood in an earlier release too."""
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"x": np.arange(PEOPLE), "s": draw.integers(0, values, PEOPLE)})
    gone = pd.DataFrame({"x": np.arange(PEOPLE), "s": draw.integers(0, values, PEOPLE)})
    others = pd.DataFrame({"x": np.arange(control), "s": draw.integers(0, values, control)})
    stood = (table.x % 10 == 0) & (table.x < 10 * former)
    earlier = in_tens(pd.concat([table[stood], gone[~stood]], ignore_index=True))
    tables = Tables(in_tens(table), table, others if control else None, np.arange(PEOPLE))
    return intersection(read_attacked(tables, KNOWN), [Earlier(earlier)], table, tables.control, PEOPLE)


def test_newcomers_do_not_hide_that_the_others_are_found() -> None:
    everybody, who_fit = attacked(200)
    assert (everybody.name, who_fit.name) == (NAME, OF_WHO_FIT)
    assert everybody.attack.rate < 0.2
    assert who_fit.attack.trials == pytest.approx(200, abs=5)  # nearly no newcomer fits by chance
    assert who_fit.attack.rate > 0.95
    assert who_fit.leak is not None and who_fit.leak.low > 0.9


def test_a_bound_on_linkage_limits_the_success_among_them() -> None:
    findings = [each.to_json() for each in attacked(200)]
    assert (largest_leak(findings, "linkage", upper=False) or 0) > 0.9


def test_where_everybody_fits_they_are_found_as_often_as_everybody() -> None:
    everybody, who_fit = attacked(200, values=1)
    assert (who_fit.attack, who_fit.control) == (everybody.attack, everybody.control)
    assert who_fit.attack.rate == pytest.approx(1 / 10)


def test_of_fewer_than_a_hundred_nothing_is_told() -> None:
    _, who_fit = attacked(90)
    assert (who_fit.attack.trials, who_fit.verdict, who_fit.leak) == (0, NOTHING, None)


def test_few_control_people_who_fit_are_not_taken_for_all() -> None:
    everybody, who_fit = attacked(200)
    assert who_fit.control == everybody.control is not None


def test_how_many_fit_is_told_as_nothing_but_their_number() -> None:
    """A detail could be of a few of them; the rates are told in steps (`release/test_attack_figures.py`)."""
    _, who_fit = attacked(200, control=0)
    assert who_fit.control is None
    assert who_fit.details == {"earlier_releases": 1}
