"""Changes after the tree: classes get tighter, keep k people and their demands, and are found again by their tuples."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import classes, criterion, encoding, refinement, tree
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.cluster_statistics import ClusterStatistics
from anon_pipeline.anonymize.criterion import IMPORTANCE_WEIGHT, Criterion, criterion_outputs
from anon_pipeline.anonymize.hierarchy import Prefixes
from anon_pipeline.arrays import IntArray
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.tables import Cells
from anon_pipeline.workers import Workers
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import KEY, Table, tables

ADULT = Path(__file__).parents[2] / "data/adult/adult.parquet"
few = settings(max_examples=times(40))


def some_people(seed: int, people: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": draw.integers(18, 90, people),
            "income": draw.lognormal(3, 1, people).round(1),
            "town": draw.choice(list("abcdefgh"), people),
            "ill": draw.choice(["no", "no", "no", "yes"], people),
        }
    )


def counted(frame: pd.DataFrame, guidance: np.ndarray | None = None) -> Cells:
    learned = [encoding.learn_domain(str(name), frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    guidance = np.zeros((len(frame), 1)) if guidance is None else guidance
    return encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance)[0]


def error(cells: Cells, group: IntArray) -> float:
    """Squared error of the criterion within groups, from its definition."""
    outputs = criterion_outputs(cells, 1.0, 0)
    total = 0.0
    for one in np.unique(group):
        people, points = cells.counts[group == one], outputs[group == one]
        centre = np.average(points, axis=0, weights=people)
        total += float((people[:, None] * (points - centre) ** 2).sum())
    return total


def least_error(value: np.ndarray, k: int) -> float:
    """The least squared error of groups of k or more numbers (S. Hansen, S. Mukherjee, TKDE 2003), all ways tried."""
    value = np.sort(value)
    best = [0.0] + [np.inf] * len(value)
    for end in range(k, len(value) + 1):
        starts = range(max(0, end - 2 * k + 1), end - k + 1)
        best[end] = min(best[start] + float(value[start:end].var() * (end - start)) for start in starts)
    return best[-1]


@pytest.mark.long
@few
@given(st.integers(0, 9999), st.integers(2, 8), st.integers(20, 150))
def test_nobody_is_lost_and_no_class_falls_below_k(seed: int, k: int, people: int) -> None:
    cells = counted(some_people(seed, people)[["age", "town"]])
    leaf = tree.fit_tree(cells, k, 1.0, "both", 0).apply(cells.codes)
    group = refinement.refine(cells, leaf, k, 1.0)
    sizes = np.bincount(group, weights=cells.counts)
    assert sizes.min() >= k and sizes.sum() == people
    assert len(sizes) >= leaf.max() + 1  # classes are seeded, and none is given up


@pytest.mark.long
@pytest.mark.parametrize("k", [19, 20, 29])
def test_no_class_falls_below_k_when_several_people_leave_it_at_once(k: int) -> None:
    """Only of a large class may several leave at once, one of k and one more: small k never come to it."""
    for seed in range(3):
        cells = counted(some_people(seed, 2000)[["age", "income", "town"]])
        leaf = tree.fit_tree(cells, k, 1.0, "both", 0).apply(cells.codes)
        sizes = np.bincount(refinement.refine(cells, leaf, k, 1.0), weights=cells.counts)
        assert sizes.min() >= k


@pytest.mark.parametrize(
    ("limit", "effort"), [("LARGE", refinement.QUICK), ("VERY_LARGE", refinement.BRIEF), ("HUGE", refinement.SPARING)]
)
def test_larger_tables_are_worked_on_less_and_keep_what_is_promised(
    monkeypatch: pytest.MonkeyPatch, limit: str, effort: refinement.Effort
) -> None:
    cells = counted(some_people(3, 1500)[["age", "income", "town"]])
    leaf = tree.fit_tree(cells, 7, 1.0, "both", 0, weighed=True).apply(cells.codes)
    thorough = refinement.refine(cells, leaf, 7, 1.0)
    for smaller in ("LARGE", "VERY_LARGE", "HUGE"):
        monkeypatch.setattr(refinement, smaller, len(cells.counts) - (smaller == "LARGE"))
    monkeypatch.setattr(refinement, limit, len(cells.counts) - 1)
    tried = []
    of_search = refinement.LocalSearch.__init__
    monkeypatch.setattr(
        refinement.LocalSearch, "__init__", lambda *given: (tried.append(given[-1]), of_search(*given))[1]
    )
    group = refinement.refine(cells, leaf, 7, 1.0)
    assert tried == [effort]
    assert np.bincount(group, weights=cells.counts).min() >= 7
    assert error(cells, thorough) < error(cells, group) < error(cells, leaf)


@few
@given(seed=st.integers(0, 2**16), k=st.integers(1, 120))
def test_in_a_very_large_table_guidance_is_told_of_no_fewer_people_than_in_a_tree_of_its_own(seed: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    size = k + generator.integers(0, k, int(generator.integers(1, 60)))
    leaf = refinement._neighbours(np.repeat(np.arange(len(size)), 2), k)
    assert (leaf[::2] == leaf[1::2]).all()
    assert set(np.diff(leaf).tolist()) <= {0, 1}
    assert np.bincount(leaf[::2], weights=size).min() >= min(refinement.MINIMUM_LEAF_SIZE, size.sum())


def test_moves_in_a_very_large_table_do_not_depend_on_one_persons_guidance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The people of a class exchange their guidance. Classes would differ, if one person's own were used."""
    frame = some_people(5, 1500)[["age", "income", "town"]]
    draw = np.random.default_rng(5)
    cells = counted(frame, draw.integers(0, 2, (len(frame), 1)).astype(float))
    leaf = tree.fit_tree(cells, 50, 1.0, "both", 0, weighed=True).apply(cells.codes)
    exchanged = cells.guidance.copy()
    for of_leaf in range(leaf.max() + 1):
        alone = np.flatnonzero((leaf == of_leaf) & (cells.counts == 1))
        exchanged[alone] = exchanged[draw.permutation(alone)]
    other = replace(cells, guidance=exchanged)
    monkeypatch.setattr(refinement, "VERY_LARGE", len(cells.counts) - 1)
    group = refinement.refine(cells, leaf, 50, 1.0)
    assert (group == refinement.refine(other, leaf, 50, 1.0)).all()
    assert (group != leaf).any()
    monkeypatch.setattr(refinement, "_expected", lambda given, _: given.guidance)
    assert (refinement.refine(cells, leaf, 50, 1.0) != refinement.refine(other, leaf, 50, 1.0)).any()


@pytest.mark.parametrize(("little", "stays"), [(0.0, False), (1.0, True)])
def test_a_large_table_that_loses_next_to_nothing_stays_as_the_tree_has_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, little: float, stays: bool
) -> None:
    cells = counted(some_people(3, 600)[["age", "income", "town"]])
    leaf = tree.fit_tree(cells, 5, 1.0, "both", 0, weighed=True).apply(cells.codes)
    monkeypatch.setattr(refinement, "LARGE", len(cells.counts) - 1)
    lost = np.mean(list(classes.information_loss(cells, leaf, int(leaf.max()) + 1).values()))
    monkeypatch.setattr(refinement, "LITTLE", np.nextafter(lost, little))
    with caplog.at_level("INFO"):
        assert (refinement.refine(cells, leaf, 5, 1.0) == leaf).all() == stays
    assert ("need not be made tighter" in caplog.text) == stays
    monkeypatch.setattr(refinement, "LARGE", len(cells.counts))
    assert (refinement.refine(cells, leaf, 5, 1.0) != leaf).any()  # a small one is worked on however little it loses


@few
@given(st.integers(0, 9999))
def test_parts_have_their_tuples_in_one_order_in_whatever_order_the_cells_come(seed: int) -> None:
    """Tables with hierarchies have cells whose codes do not ascend."""
    cells = counted(some_people(seed, 60)[["age", "income", "town"]])
    leaf = np.random.default_rng(seed).integers(0, 4, len(cells.counts))
    leaf = np.unique(leaf, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(leaf))

    def tuples(cells: Cells, leaf: IntArray) -> list[list[int]]:
        return [cells.codes[members].tolist() for members, _ in refinement._parts(cells, leaf)]

    assert tuples(cells.part(order), leaf[order]) == tuples(cells, leaf)


@pytest.mark.long
@few
@given(st.integers(0, 9999), st.integers(2, 8), st.integers(20, 150))
def test_without_the_set_cover_the_error_only_falls(seed: int, k: int, people: int) -> None:
    cells = counted(some_people(seed, people)[["age", "income", "town"]])
    leaf = tree.fit_tree(cells, k, 1.0, "both", 0).apply(cells.codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "COVER", 0.0)
        group = refinement.refine(cells, leaf, k, 1.0)
    assert error(cells, group) <= error(cells, leaf) + 1e-6


@pytest.mark.long
@few
@given(st.integers(0, 9999), st.integers(2, 5), st.integers(20, 60))
def test_along_one_number_it_is_between_the_tree_and_the_optimum(seed: int, k: int, people: int) -> None:
    frame = some_people(seed, people)[["income"]]
    cells = counted(frame)
    leaf = tree.fit_tree(cells, k, 1.0, "both", 0).apply(cells.codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "COVER", 0.0)
        found = error(cells, refinement.refine(cells, leaf, k, 1.0))
    value = np.repeat(cells.domains[0].without_extremes.values[cells.codes[:, 0] - 1], cells.counts)
    assert least_error(value, k) / value.var() <= found + 1e-6 <= error(cells, leaf) + 2e-6


def test_each_goes_where_it_costs_least() -> None:
    cells = counted(pd.DataFrame({"at": [0, 1, 2, 3, 40, 41, 42, 43, 44]}))
    group = refinement.refine(cells, np.array([0, 0, 0, 1, 1, 0, 1, 1, 1]), 3, 1.0)
    assert group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_a_class_is_seeded_from_people_who_can_be_spared() -> None:
    # Five and four people at k = 3, of whom two and one stand together elsewhere.
    cells = counted(pd.DataFrame({"at": [0, 1, 2, 100, 101, 102, 200, 201, 202]}))
    group = refinement.refine(cells, np.array([0, 0, 0, 0, 0, 1, 1, 1, 1]), 3, 1.0)
    assert sorted(map(tuple, (np.flatnonzero(group == one) for one in range(3)))) == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]


@pytest.mark.parametrize(("rank", "members_of_seed"), [(0, {300, 301, 302}), (3, {-202, -201, -200})])
def test_other_seeds_are_taken_the_next_time(rank: int, members_of_seed: set[int]) -> None:
    at = np.array([-202, -201, -200, 0, 1, 2, 300, 301, 302, -902, -901, -900])
    cells = counted(pd.DataFrame({"at": at}))  # in the order of the numbers
    at = np.sort(at)
    first = np.repeat([1, 0], [3, 9])
    part = refinement.LocalSearch(ClusterStatistics(Criterion(cells, 1.0, 0, at_once=False), first), 3, 0.0)
    part._near = part.clusters.near(refinement.THOROUGH.near)
    assert part._seed_clusters(rank)
    assert set(at[part.clusters.group == 2].tolist()) == members_of_seed


def test_pairs_exchange_members_when_nobody_can_be_spared() -> None:
    cells = counted(pd.DataFrame({"at": [0, 1, 100, 101, 200, 201]}))
    group = refinement.refine(cells, np.array([0, 1, 1, 2, 0, 2]), 2, 1.0)
    assert group[0] == group[1] and group[2] == group[3] and group[4] == group[5]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "SWAPPED", 0)
        assert (refinement.refine(cells, np.array([0, 1, 1, 2, 0, 2]), 2, 1.0) == [0, 1, 1, 2, 0, 2]).all()


class Elsewhere(Workers):
    """Workers whose tasks and results pass through pickle, as between processes; it counts the tasks of each call."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.asked: list[int] = []

    def map(self, function: Any, tasks: Any, progress: Any = None) -> Any:
        self.asked.append(len(tasks))
        return [pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(task))))) for task in tasks]


@pytest.mark.long
@pytest.mark.parametrize("large", [0, 10**6])
def test_parts_of_a_large_table_are_improved_side_by_side(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes are those that one process finds."""
    monkeypatch.setattr(refinement, "LARGE", large)
    monkeypatch.setattr(refinement, "CLASSES", 10)
    monkeypatch.setattr(refinement, "NUMBERS", 0)  # 64 classes at a time, or fewer
    monkeypatch.setattr(refinement, "TASKS", 1)
    cells = counted(some_people(5, 1500), np.random.default_rng(1).random((1500, 1)))
    alone = AnonymizerTree(k=3).fit_cells(cells)
    for count in (2, 3):
        workers = Elsewhere(count)
        found = AnonymizerTree(k=3).fit_cells(cells, workers=workers)
        assert (found.partition_.apply(cells.codes) == alone.partition_.apply(cells.codes)).all()
        assert len(workers.asked) > 10 // count if not large else not workers.asked, "few parts are made at a time"
        assert all(asked <= count for asked in workers.asked)


@pytest.mark.long
@few
@given(st.integers(0, 9999), st.integers(2, 3), st.integers(20, 80))
def test_what_an_exchange_is_said_to_save_it_saves(seed: int, k: int, people: int) -> None:
    cells = counted(some_people(seed, people)[["age", "town"]])
    leaf = tree.fit_tree(cells, k, 1.0, "both", 0).apply(cells.codes)
    part = refinement.LocalSearch(ClusterStatistics(Criterion(cells, 1.0, 0, at_once=False), leaf), k, 0.0)
    part._near = part.clusters.near(refinement.THOROUGH.near)
    part._rank_candidates()
    cell, other, saved = part._pairs(np.ones(part.clusters.classes, dtype=bool))
    for one, two, said in list(zip(cell, other, saved, strict=True))[:20]:
        exchanged = leaf.copy()
        exchanged[[one, two]] = leaf[[two, one]]
        assert said == pytest.approx(error(cells, leaf) - error(cells, exchanged), abs=1e-3)


@pytest.mark.long
@few
@given(st.integers(0, 9999), st.integers(2, 5))
def test_demands_are_met_after_the_changes(seed: int, k: int) -> None:
    people = some_people(seed, 150)
    frame, ill = people[["age", "town"]], people[["ill"]]
    demands = [LDiversity(column="ill", l=2)]
    for refine in (0, 1000):
        found = AnonymizerTree(k=k, demands=demands, key=KEY, refine=refine).fit(frame, sensitive=ill)
        group = found.apply(frame)
        assert ill["ill"].groupby(group).nunique().min() == 2
        assert np.bincount(group).min() >= k


@pytest.mark.long
def test_demands_are_met_at_less_cost() -> None:
    people = some_people(1, 2000)
    demands = [LDiversity(column="ill", l=2)]
    lost = [
        sum(
            AnonymizerTree(k=5, demands=demands, key=KEY, refine=refine)
            .fit(people[["age", "income", "town"]], sensitive=people[["ill"]])
            .information_loss_.values()
        )
        for refine in (0, 5000)
    ]
    assert lost[1] < 0.95 * lost[0]


@pytest.mark.long
@pytest.mark.parametrize("at_once", [3, 500])
def test_classes_that_are_looked_at_apart_keep_their_people(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(refinement, "CLASSES", at_once)
    cells = counted(some_people(4, 400)[["age", "income", "town"]])
    leaf = tree.fit_tree(cells, 5, 1.0, "both", 0).apply(cells.codes)
    group = refinement.refine(cells, leaf, 5, 1.0)
    assert np.bincount(group, weights=cells.counts).min() >= 5
    assert error(cells, group) < error(cells, leaf)


@pytest.mark.long
@few
@given(tables())
def test_a_tree_as_it_is_can_be_asked_for(table: Table) -> None:
    for parameters in ({"spread": 0.0}, {"refine": 0}, {"refine": 1}):
        found = AnonymizerTree(k=table.k, **parameters).fit(table.frame, table.guidance)  # type: ignore[arg-type]
        assert not len(found.partition_.elsewhere) or len(found.sizes_) == 1


def test_a_strict_hierarchy_is_left_as_the_tree_has_it() -> None:
    frame = pd.DataFrame({"zip": [f"{number:05d}" for number in np.random.default_rng(0).integers(0, 400, 200) * 83]})
    found = AnonymizerTree(k=5, hierarchies={"zip": Prefixes(lengths=(3, 1), strict=True)}).fit(frame)
    assert not len(found.partition_.elsewhere)


def test_tuples_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = some_people(5, 300)[["age", "income", "town"]]
    fitted = AnonymizerTree(k=5).fit(frame)
    expected = fitted.apply(frame)
    assert len(fitted.partition_.elsewhere) > 20
    monkeypatch.setattr(classes, "hash_of_codes", lambda codes: codes[:, 2].astype(np.uint64) % 2)
    assert (AnonymizerTree(k=5).fit(frame).apply(frame) == expected).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("importance_weight", "most"), [(0.0, 0.87), (IMPORTANCE_WEIGHT, 0.91)]
)  # weights by importance cost variance
def test_adult_loses_less_and_shows_narrower_ranges(
    monkeypatch: pytest.MonkeyPatch, importance_weight: float, most: float
) -> None:
    monkeypatch.setattr(criterion, "IMPORTANCE_WEIGHT", importance_weight)
    people = pd.read_parquet(ADULT).replace("?", None).iloc[:8000]
    frame = people[["age", "education", "occupation", "marital_status", "native_country"]]
    guidance = people["age"].to_numpy() / 90
    losses, covers = [], []
    for refine in (0, 50_000):
        found = AnonymizerTree(k=20, refine=refine, form="range").fit(frame, guidance)
        losses.append(np.mean(list(found.information_loss_.values())))
        table = found.classes_
        different = sum(table[f"{name}_values"].map(len) / frame[name].nunique() for name in frame if name != "age")
        covers.append(float(np.average(different + (table["age_high"] - table["age_low"]) / 73, weights=found.sizes_)))
    assert losses[1] < most * losses[0]
    assert covers[1] < 0.95 * covers[0]


@given(st.data())
def test_entries_are_sorted_by_group_and_distance_and_cell(data: st.DataObject) -> None:
    entry = st.tuples(st.integers(0, 5), st.integers(0, 2_000_000), st.integers(0, 9))
    entries = data.draw(st.lists(entry, min_size=1, max_size=30))
    of, steps, cell = (np.array(column) for column in zip(*entries, strict=True))
    sorted_of, sorted_cell, apart = refinement._by_distance(of, cell, steps / 1e6)
    found = list(zip(sorted_of.tolist(), np.rint(apart * 1e6).astype(int).tolist(), sorted_cell.tolist(), strict=True))
    assert found == sorted(entries)


@pytest.mark.parametrize("far", [3e10, 1e11, 1e30])
def test_entries_that_are_very_far_come_last_in_their_group_and_not_in_another(far: float) -> None:
    of, cell = np.array([0, 5, 0, 5, 1]), np.array([9, 2, 3, 1, 4])
    sorted_of, sorted_cell, apart = refinement._by_distance(of, cell, np.array([far, far, 1.0, 0.5, far]))
    assert (sorted_of.tolist(), sorted_cell.tolist()) == ([0, 0, 1, 5, 5], [3, 9, 4, 1, 2])
    assert apart[[0, 3]].tolist() == [1.0, 0.5] and (apart[[1, 2, 4]] >= 1e10).all()
