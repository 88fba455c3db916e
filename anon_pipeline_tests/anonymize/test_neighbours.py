"""The cheapest partners of classes: exactly where all are compared, and nearly so where blocks are."""

from __future__ import annotations

import numpy as np
import pytest

from anon_pipeline.anonymize import neighbours


@pytest.mark.long
@pytest.mark.parametrize("width", [1, 3, 40, 299])
def test_the_nearest_classes_are_those_of_ward_and_the_lower_number_on_a_tie(width: int) -> None:
    """Each cost by itself, every pair sorted; a third of the classes are doubles of each other, far from the origin."""
    random = np.random.default_rng(width)
    mean = 1e3 + random.integers(0, 3, (300, 2)) + random.normal(0, 1e-6, (300, 2)).round(6)
    mean[::3] = mean[0]
    weight = random.integers(2, 5, 300).astype(float)
    asking = np.sort(random.choice(300, 140, replace=False))
    pairs, costs = neighbours.nearest(mean, weight, asking, width)
    square = np.einsum("jo,jo->j", mean, mean)
    expected = []
    for one in asking.tolist():
        others = [other for other in range(300) if other != one]
        cost_of = {
            other: max(square[one] + square[other] - 2 * np.einsum("o,o->", mean[one], mean[other]), 0)
            * (weight[one] * weight[other] / (weight[one] + weight[other]))
            for other in others
        }
        expected += [
            (one, other, cost_of[other]) for other in sorted(others, key=lambda other: (cost_of[other], other))[:width]
        ]
    assert [(one, other) for one, other in pairs.tolist()] == [(one, other) for one, other, _ in expected]
    assert costs.tolist() == [cost_of for *_, cost_of in expected]


@pytest.mark.long
@pytest.mark.parametrize(("classes", "equal", "dearer"), [(5_000, 0.9, 1.05), (12_000, 0.7, 1.3)])
def test_blocks_find_nearly_what_comparing_all_finds(
    classes: int, equal: float, dearer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes in three dimensions, numbered along a curve that visits neighbours after each other."""
    random = np.random.default_rng(0)
    mean = random.random((classes, 3))
    side = round((classes / 23) ** (1 / 3))  # some 23 classes in each cube
    by_cube = (np.floor(mean * side) * [side**2, side, 1]).sum(axis=1)
    mean = mean[np.argsort(by_cube, kind="stable")]
    asking = np.flatnonzero(random.random(classes) < 0.3)
    pairs, costs = neighbours.nearest(mean, np.full(classes, 10.0), asking, 3)
    assert pairs[:, 0].tolist() == np.repeat(asking, 3).tolist()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    monkeypatch.setattr(neighbours, "ALL", 10**9)
    exact, least = neighbours.nearest(mean, np.full(classes, 10.0), asking, 3)
    assert (pairs == exact).all(axis=1).mean() > equal
    assert costs.sum() < dearer * least.sum()
