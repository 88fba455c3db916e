"""Cuts of merged classes: both halves hold, the key decides which, and what lies apart is parted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import cuts, encoding
from anon_pipeline.anonymize.axes import split_features
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.criterion import criterion_outputs
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.tables import Cells
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import KEY

DEMAND = LDiversity(column="ill", l=2, kind="distinct")


def counted(frame: pd.DataFrame, ill: pd.Series) -> tuple[Cells, ClassStatistics]:
    learned = [encoding.learn_domain(str(name), frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((len(frame), 1)))
    return cells, encoding.count_sensitive(cells, cell, ill.to_frame("ill"))


def halves(cells: Cells, people: ClassStatistics, group: IntArray, least: int, key: Key = KEY) -> list[IntArray]:
    features = split_features(cells, "both")
    points = cuts.rounded(criterion_outputs(cells, 1.0, 0))
    cutter = cuts.Cutter(features, cells.codes, points, Chance.of(key, cells), DEMAND.holds, least)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0])
    return list(cutter.halves(people, order, starts))


def some_people(seed: int, n: int) -> tuple[pd.DataFrame, pd.Series]:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": draw.integers(18, 90, n), "town": draw.choice(list("abcdefgh"), n)})
    return frame, pd.Series(draw.choice(["no", "no", "yes"], n))


@settings(max_examples=times(40))
@given(st.integers(0, 9999), st.integers(20, 120), st.integers(1, 4), st.integers(1, 6), st.sampled_from([60, 10**6]))
def test_both_halves_hold_and_have_enough_people(seed: int, n: int, classes: int, least: int, together: int) -> None:
    cells, people = counted(*some_people(seed, n))
    group = np.random.default_rng(seed).integers(0, classes, len(cells.counts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "TOGETHER", together)  # few classes at a time, or all
        found = halves(cells, people, group, least)
    assert len({group[half[0]] for half in found}) == len(found)  # a class is cut once
    for half in found:
        (one,) = set(group[half].tolist())
        rest = np.setdiff1d(np.flatnonzero(group == one), half)
        for part in (half, rest):
            assert cells.counts[part].sum() >= least
            assert (people.sensitive["ill"].counts[part].sum(axis=0) > 0).all()


def test_how_many_are_worked_on_together_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, people = counted(*some_people(3, 400))
    group = np.random.default_rng(3).integers(0, 12, len(cells.counts))
    expected = [sorted(half.tolist()) for half in halves(cells, people, group, 3)]
    monkeypatch.setattr(cuts, "TOGETHER", 100)
    assert sorted(sorted(half.tolist()) for half in halves(cells, people, group, 3)) == sorted(expected)


def test_the_key_decides_where_a_class_is_cut() -> None:
    cells, people = counted(*some_people(1, 60))
    whole = np.zeros(len(cells.counts), dtype=np.int64)

    def cut(number: int) -> tuple[int, ...]:
        (half,) = halves(cells, people, whole, 5, Key(bytes([number]) * 32))
        return tuple(sorted(half.tolist()))

    assert cut(1) == cut(1)
    assert len({cut(number) for number in range(12)}) > 6


def test_what_lies_apart_is_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two crowds of twenty, far from each other in two columns, go to two halves when chance does not say otherwise."""
    monkeypatch.setattr(cuts, "CUTS", 1)
    draw = np.random.default_rng(0)
    crowd = np.repeat([0, 1], 20)
    frame = pd.DataFrame({"age": 20 + 40 * crowd + draw.integers(0, 10, 40), "pay": 100 * crowd + draw.random(40)})
    cells, people = counted(frame, pd.Series(["no", "yes"] * 20))
    (half,) = halves(cells, people, np.zeros(len(cells.counts), dtype=np.int64), 5)
    old = np.flatnonzero(cells.domains[0].values[cells.codes[:, 0] - 1] >= 60)
    assert sorted(half.tolist()) in (sorted(old.tolist()), sorted(np.setdiff1d(np.arange(len(cells.counts)), old)))
