"""What is told of masking steps: what is stated, and costs so coarsely that one person seldom shows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from anon_pipeline.release import masking_figures
from anon_pipeline.release.noise import NO_NOISE
from anon_pipeline_tests.release.test_fineness import NOISES, likely_alike


def test_a_masking_step_has_the_same_noise_whatever_steps_come_before_it() -> None:
    """Else each step that a spec gets for another column tells the costs of all others once more."""
    change = {"other": "y", "before": 0.6, "after": 0.2, "signed": True, "people": 5_000}
    change |= {"apart": (2_500, 2_500), "apart_after": (2_500, 2_500)}
    cost = {"changed": 0.31, "distance": 0.17, "measure": "m", "people": 5_000, "known": 5_000}
    cost |= {"correlations": [change]}
    of = {"technique": "round", "guarantee": "none", "facts": {}, "linkage": {"rate": 0.4, "rows": 500, "pool": 5_000}}
    age, income = ({**of, "columns": (name,), "costs": {name: cost}} for name in ("age", "income"))
    again = 0
    for noise in NOISES[:40]:
        (alone,) = masking_figures.masking([income], noise) or []
        before, after, twice = masking_figures.masking([age, income, income], noise) or []
        assert after == alone
        again += (before["costs"]["age"] == after["costs"]["income"]) + (twice == after)
    assert again < 8


def test_one_person_decides_neither_which_correlation_is_told_nor_in_which_step_a_cost() -> None:
    """Of numbers a change has whole steps, of a category roots: which was larger followed from the last value."""
    number = {"other": "y", "before": 0.6, "after": 0.2, "signed": True, "people": 150}
    category = number | {"other": "c", "signed": False}
    many = {"apart": (149, 149), "apart_after": (149, 149)}

    def told(more: float, known: int) -> list[Counter[Any]]:
        changes = [number | many, category | many | {"before": 0.6 + more}]
        cost = {"changed": 0.1, "distance": 0.25, "measure": "m", "people": 450, "known": known}
        costs = {"x": cost | {"correlations": changes}}
        report = {"technique": "round", "guarantee": "none", "facts": {}, "linkage": None, "costs": costs}
        made = [(masking_figures.masking([report], each) or [{}])[0]["costs"]["x"] for each in NOISES[:300]]
        of_numbers = Counter(round(cost["correlation"] * 10, 2).is_integer() for cost in made)
        in_steps = Counter(cost["distance"] is None or round(cost["distance"] * 10, 6).is_integer() for cost in made)
        return [of_numbers, in_steps, Counter(cost["distance"] is None for cost in made)]

    less, more = told(-0.01, 399), told(0.01, 400)
    assert all(likely_alike(*pair) for pair in zip(less, more, strict=True))
    assert min(less[0].values()) > 30 and min(less[1].values()) > 30
    few, enough = told(0.0, 99), told(0.0, 100)
    assert likely_alike(few[2], enough[2]) and min(few[2].values()) > 30


def test_of_a_masking_step_only_what_is_stated_leaves_the_house() -> None:
    """What it counted of people can be exact, as how many were rare: one person's value can be read off it."""
    plain = {"costs": {}, "linkage": None, "notes": ["a note"], "guarantee": "none"}
    counted = {"categories": 3, "least_retention": 0.7123456789, "rows_hidden": 6, "deviation": 2600.0, "cells": 24}
    of_noise, of_pram, of_mdav = masking_figures.masking(
        [
            {**plain, "technique": "noise", "facts": {**counted, "epsilon": 2.0, "key_id": "a"}},
            {**plain, "technique": "pram", "guarantee": "local DP", "facts": {**counted, "epsilon": 2.0}},
            {**plain, "technique": "mdav", "guarantee": "k", "facts": {"groups": 7, "rows_hidden": 1}},
        ],
        NO_NOISE,
    ) or [{}, {}, {}]
    assert of_noise["facts"] == {"epsilon": 2.0, "key_id": "a"} and of_noise["notes"] == ["a note"]
    assert of_pram["facts"] == {"categories": 3, "least_retention": 0.7123456789, "epsilon": 2.0}
    assert (of_mdav["facts"], of_mdav["guarantee"], of_mdav["notes"]) == ({}, "none", [])
    groups = {**plain, "technique": "aggregate", "facts": {"groups": 7, "groups_left_out": 2, "people_left_out": 30}}
    assert masking_figures.stated(groups)["facts"] == {"groups": 7, "people_left_out": 30}


def test_what_a_masking_step_cost_is_told_in_the_step_of_those_it_was_measured_on() -> None:
    change = {"other": "y", "before": 0.8123, "after": -0.1, "signed": True, "people": 10_000}
    change |= {"apart": (5_000, 5_000), "apart_after": (5_000, 5_000)}
    cost = {
        "changed": 0.1234,
        "distance": 0.1234,
        "measure": "m",
        "correlations": [change],
        "people": 10_000,
        "known": 400,
    }
    told = {"changed": 0.12, "distance": 0.1, "measure": "m", "correlation": 0.91}
    report = {"technique": "round", "guarantee": "none", "facts": {}, "costs": {"x": cost}, "linkage": None}
    linked = {**report, "linkage": {"rate": 0.1234, "rows": 500, "pool": 10_000}}
    assert masking_figures.masking(None, NO_NOISE) is None
    assert masking_figures.masking([report, linked], NO_NOISE) == [
        {**report, "costs": {"x": told}},
        {**report, "costs": {"x": told}, "linkage": {"rate": 0.1, "rows": 500, "pool": 10_000}},
    ]
    # The squares are rounded of what cannot be negative: .66 and .01.
    unsigned = cost | {"correlations": [change | {"signed": False}]}
    (of_shares,) = masking_figures.masking([{**report, "costs": {"x": unsigned}}], NO_NOISE) or []
    assert of_shares["costs"]["x"]["correlation"] == pytest.approx(0.66**0.5 - 0.1, abs=1e-3)


def test_nothing_is_told_of_a_masking_step_that_few_people_show() -> None:
    change = {
        "other": "y",
        "before": 0.8,
        "after": 0.1,
        "signed": True,
        "people": 97,
        "apart": (90, 90),
        "apart_after": (90, 90),
    }
    cost = {"changed": 0.1, "distance": 0.2, "measure": "m", "correlations": [change], "people": 97, "known": 97}
    linkage = {"rate": 0.5, "rows": 99, "pool": 99}
    plain = {"technique": "round", "guarantee": "none", "facts": {}}
    (told,) = masking_figures.masking([{**plain, "costs": {"x": cost}, "linkage": linkage}], NO_NOISE) or []
    assert told["costs"]["x"] == {"changed": None, "distance": None, "measure": "m", "correlation": None}
    assert told["linkage"]["rate"] is None
    (told,) = (
        masking_figures.masking([{**plain, "costs": {"x": cost | {"correlations": []}}, "linkage": None}], NO_NOISE)
        or []
    )
    assert told["costs"]["x"]["correlation"] is None
