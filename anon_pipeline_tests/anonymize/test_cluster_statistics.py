"""What it is said to cost where cells enter or leave classes is what the objective says afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import cluster_statistics
from anon_pipeline.anonymize.cluster_statistics import ClusterStatistics
from anon_pipeline.anonymize.criterion import Criterion, criterion_outputs
from anon_pipeline.arrays import IntArray
from anon_pipeline.tables import Cells
from anon_pipeline_tests.anonymize.test_refinement import counted, error, some_people
from anon_pipeline_tests.examples import times

few = settings(max_examples=times(40))
tabulated = pytest.mark.parametrize("tabulated", [0, 30, 256])  # no numbers are tabulated, ages are, incomes are, too


def some_classes(seed: int, weighed: bool = False) -> tuple[Cells, ClusterStatistics]:
    draw = np.random.default_rng(seed)
    frame = some_people(seed, 60)[["age", "income", "town"]]
    frame["age"] = frame["age"] // 4
    frame.loc[draw.random(60) < 0.1, "age"] = np.nan
    cells = counted(frame, draw.normal(size=(60, 1)) + (frame["town"] < "d").to_numpy()[:, None])
    group = draw.permutation(np.arange(len(cells.counts)) % 6)
    criterion = Criterion(cells, 1.0, 0, at_once=False, weighed=weighed)
    return cells, ClusterStatistics(criterion, group)


def within(cells: Cells, group: IntArray, weighed: bool) -> float:
    """Squared error of the criterion within classes, and their set cover, from the definitions."""
    outputs = Criterion(cells, 1.0, 0, weighed=weighed).of()
    total = 0.0
    for one in np.unique(group):
        people, points, codes = cells.counts[group == one], outputs[group == one], cells.codes[group == one]
        total += float((people[:, None] * (points - np.average(points, axis=0, weights=people)) ** 2).sum())
        for column, domain in enumerate(cells.domains):
            if domain.positions is None:
                cover = len(np.unique(codes[:, column])) / (len(domain.values) - 1)
            else:
                positions = domain.without_extremes.positions
                known = positions[codes[codes[:, column] > 0, column] - 1]
                cover = np.ptp(known) / np.ptp(positions) if len(known) else 0.0
            total += 2.0 * people.sum() * cover
    return total


@pytest.mark.long
@few
@tabulated
@given(st.integers(0, 9999), st.booleans())
def test_a_move_costs_what_it_is_said_to_cost(tabulated: int, seed: int, weighed: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_statistics, "TABULATED", tabulated)
        cells, clusters = some_classes(seed, weighed)
    clusters.weigh_cover(2.0, 0.0)
    draw = np.random.default_rng(seed)
    for cell in draw.integers(0, len(clusters.group), 5).tolist():
        to = int((clusters.group[cell] + draw.integers(1, 6)) % 6)
        before = clusters.group.copy()
        said = float(
            (clusters.insertion_cost(np.array([cell]), np.array([to])) - clusters.removal_cost(np.array([cell])))[0]
        )
        objective = clusters.objective()
        clusters.change(np.array([cell]), np.array([to]))
        assert clusters.objective() - objective == pytest.approx(said, abs=1e-3)
        assert within(cells, clusters.group, weighed) - within(cells, before, weighed) == pytest.approx(said, abs=1e-3)


@pytest.mark.long
@few
@tabulated
@given(st.integers(0, 9999), st.sampled_from([0.0, 0.5, 0.8]))
def test_all_classes_near_are_compared_as_one_by_one(tabulated: int, seed: int, decay: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_statistics, "TABULATED", tabulated)
        patch.setattr(cluster_statistics, "TOGETHER", 7)
        _, clusters = some_classes(seed)
        for cover in (False, True):
            if cover:
                clusters.weigh_cover(2.0, decay)
            near = clusters.near(4)
            choice, costs = clusters.choices(near, 3)
            everyone = np.arange(len(clusters.group))
            one_by_one = np.stack([clusters.insertion_cost(everyone, near[clusters.group, rank]) for rank in range(4)])
            assert costs == pytest.approx(np.sort(one_by_one, axis=0)[:3], abs=1e-9)
            for rank in range(3):
                assert costs[rank] == pytest.approx(clusters.insertion_cost(everyone, choice[rank]), abs=1e-9)


@few
@given(st.integers(0, 9999))
def test_after_many_changes_the_sums_are_those_of_a_new_arrangement(seed: int) -> None:
    cells, clusters = some_classes(seed)
    draw = np.random.default_rng(seed)
    for _ in range(10):
        cell = draw.choice(len(clusters.group), 4, replace=False)
        clusters.change(cell, draw.integers(0, 6, 4))
    changed, everyone = clusters.objective(), np.arange(len(clusters.group))
    distance = clusters.distance(everyone, clusters.group)
    clusters.arrange(clusters.group)
    assert clusters.objective() == pytest.approx(changed, abs=1e-6)
    assert clusters.distance(everyone, clusters.group) == pytest.approx(distance, abs=1e-6)
    assert float(clusters.error(clusters.group, everyone).sum()) == pytest.approx(
        error(cells, clusters.group), abs=1e-3
    )


def test_the_nearest_classes_come_first() -> None:
    cells, clusters = some_classes(1)
    outputs = criterion_outputs(cells, 1.0, 0)
    of_class = [clusters.group == one for one in range(6)]
    centre = np.stack([np.average(outputs[one], axis=0, weights=cells.counts[one]) for one in of_class])
    apart = ((centre[:, None] - centre) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (clusters.near(48) == np.argsort(apart, axis=1)[:, :5]).all()


@pytest.mark.parametrize(("less", "looked_up"), [(0, True), (1, False)])
def test_a_column_of_as_many_numbers_as_are_tabulated_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, less: int, looked_up: bool
) -> None:
    cells, _ = some_classes(1)
    present = [len(np.unique(cells.codes[:, column])) for column in (0, 1)]
    monkeypatch.setattr(cluster_statistics, "TABULATED", max(present) - less)
    _, clusters = some_classes(1)
    assert [span.tabulated is not None for span in clusters._spans] == [
        looked_up or number < max(present) for number in present
    ]
