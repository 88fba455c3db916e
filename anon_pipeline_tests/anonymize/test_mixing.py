"""Classes that are paired by what the guidance lets expect: who bears which value does not decide with whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from anon_pipeline.anonymize import classes, encoding, mixing
from anon_pipeline.anonymize import ladder as ladders
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.ladder import ladder
from anon_pipeline.anonymize.mixing import PEOPLE, Mixing
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.keys import Key
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import KEY


def repair_of(n: int = 600, t: float = 0.3, said: float = 8.0) -> Repair:
    """People of whom the older are more often ill; the guide says by how much, the more plainly the less `said` is."""
    random = np.random.default_rng(1)
    age = random.integers(18, 80, n)
    people = pd.DataFrame({"age": age, "city": random.choice(["Ulm", "Bonn", "Kiel", "Jena"], n)})
    ill = pd.DataFrame({"ill": np.where(age + random.normal(0, 15, n) > 50, "yes", "no")})
    learned = [encoding.learn_domain(name, people[name]) for name in people.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    guidance = 1 / (1 + np.exp((50 - age) / said))
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance[:, None])
    tree = AnonymizerTree(k=5, demands=[TCloseness(column="ill", t=t)])
    return tree.repair_of(cells, encoding.count_sensitive(cells, cell, ill))


REPAIR = repair_of()


def lost(repair: Repair, key: Key = KEY) -> float:
    group = repair.repaired(key)
    return float(np.mean(list(classes.information_loss(repair.cells, group, int(group.max()) + 1).values())))


def exchanged(people: ClassStatistics, first: tuple[int, int], second: tuple[int, int]) -> ClassStatistics:
    """The people after two of them, each a cell and a value, have exchanged their values."""
    counts = people.sensitive["ill"].counts.toarray()
    for (cell, less), (_, more) in ((first, second), (second, first)):
        counts[cell, less] -= 1
        counts[cell, more] += 1
    return replace(people, sensitive={"ill": replace(people.sensitive["ill"], counts=sparse.csr_array(counts))})


@pytest.mark.long
@settings(max_examples=times(15))
@given(st.data())
def test_an_exchange_changes_the_ladder_only_where_it_is_said_to(data: st.DataObject) -> None:
    counts = REPAIR.people.sensitive["ill"].counts.toarray()
    well, ill = (data.draw(st.sampled_from(np.flatnonzero(counts[:, value]).tolist())) for value in (0, 1))
    mixing = REPAIR.mixing()
    assert mixing is not None
    people = exchanged(REPAIR.people, (well, 0), (ill, 1))
    after = replace(REPAIR, people=people).mixing()
    assert after is not None
    moved = mixing.moved_by("ill", (well, 0), (ill, 1))
    assert moved == (not np.array_equal(after.lines["ill"], mixing.lines["ill"]))
    if not moved:
        rungs = [
            ladder(bearing, REPAIR.class_of_cell, REPAIR.outputs, REPAIR.holds, None, expected)
            for bearing, expected in ((REPAIR.people, mixing), (people, after))
        ]
        assert [rung.group.tolist() for rung in rungs[0]] == [rung.group.tolist() for rung in rungs[1]]


def test_people_of_one_tuple_exchange_their_values_unnoticed_and_those_far_apart_do_not() -> None:
    counts, mixing = REPAIR.people.sensitive["ill"].counts.toarray(), REPAIR.mixing()
    assert mixing is not None
    both = np.flatnonzero((counts > 0).all(axis=1))
    assert len(both) > 20 and not any(mixing.moved_by("ill", (cell, 0), (cell, 1)) for cell in both)
    order = np.argsort(mixing.leverage[:, 0])
    far = [(low, high) for low in order[:40] if counts[low, 0] for high in order[-40:] if counts[high, 1]]
    said = [mixing.moved_by("ill", (low, 0), (high, 1)) for low, high in far]
    slopes = []
    for low, high in far:
        moved = counts.astype(float)
        moved[[low, high], [0, 1]] -= 1
        moved[[low, high], [1, 0]] += 1
        slopes.append((moved.T @ mixing.leverage).T)
    line = mixing.lines["ill"][1:]
    assert said == [bool((np.abs(slope - line) > mixing.step / 2 + 1e-9).any()) for slope in slopes]


def test_hardly_any_exchange_within_a_class_changes_it() -> None:
    counts = REPAIR.people.sensitive["ill"].counts.toarray()
    mixing = REPAIR.mixing()
    assert mixing is not None
    group = REPAIR.repaired(KEY)
    moved = [
        mixing.moved_by("ill", (well, 0), (ill, 1))
        for well in np.flatnonzero(counts[:, 0])
        for ill in np.flatnonzero((counts[:, 1] > 0) & (group == group[well]))
    ]
    assert len(moved) > 1000
    assert np.mean(moved) < 0.02


def test_a_mixture_is_found_where_near_people_are_alike_in_their_values() -> None:
    assert lost(replace(REPAIR, mixes=False)) > 0.6
    assert lost(REPAIR) < 0.4


def test_where_nearness_costs_little_the_nearest_are_paired() -> None:
    easy = repair_of(t=0.5)
    assert np.array_equal(easy.repaired(KEY), replace(easy, mixes=False).repaired(KEY))


@pytest.mark.parametrize("people", ["few", "without guidance"])
def test_nothing_is_expected_of_few_people_or_without_guidance(people: str) -> None:
    repair = repair_of(PEOPLE - 1) if people == "few" else REPAIR
    cells = repair.cells if people == "few" else replace(repair.cells, guidance=repair.cells.guidance * 0)
    assert Mixing.of(cells, repair.people) is None
    assert Mixing.of(REPAIR.cells, REPAIR.people) is not None


def test_guidance_that_says_nothing_of_the_values_mixes_nothing() -> None:
    """What is expected is then the same of every class, and no pair is better than another."""
    cells = REPAIR.cells
    noise = np.random.default_rng(2).normal(0, 1, cells.guidance.shape)
    blind = replace(REPAIR, cells=replace(cells, guidance=(noise * 2**20).astype(np.int64) * cells.counts[:, None]))
    assert np.array_equal(blind.repaired(KEY), replace(blind, mixes=False).repaired(KEY))


def test_values_and_cells_are_as_many_as_the_lines_allow_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, people = REPAIR.cells, REPAIR.people
    monkeypatch.setattr(mixing, "CELLS", len(cells.counts))
    monkeypatch.setattr(mixing, "VALUES", 2)
    assert Mixing.of(cells, people) is not None
    assert Mixing.of(cells, replace(people, sensitive={})) is None
    monkeypatch.setattr(mixing, "VALUES", 1)
    assert Mixing.of(cells, people) is None
    monkeypatch.setattr(mixing, "VALUES", 2)
    monkeypatch.setattr(mixing, "CELLS", len(cells.counts) - 1)
    assert Mixing.of(cells, people) is None


@pytest.mark.parametrize(("people_a_step", "finest", "step"), [(64, 64, 1 / 8), (64, 4, 1 / 4), (300, 64, 1 / 2)])
def test_lines_are_rounded_to_the_share_of_enough_people(
    monkeypatch: pytest.MonkeyPatch, people_a_step: int, finest: int, step: float
) -> None:
    """Six hundred people are more than eight times 64, and twice 300."""
    monkeypatch.setattr(mixing, "PEOPLE_A_STEP", people_a_step)
    monkeypatch.setattr(mixing, "FINEST", finest)
    found = Mixing.of(REPAIR.cells, REPAIR.people)
    assert found is not None and found.step == step
    assert all((lines / step % 1 == 0).all() for lines in found.lines.values())


@pytest.mark.parametrize(
    ("near", "mixed", "taken"),
    [(2.25, 0.0, "near"), (2.3, 0.0, "mixed"), (4.0, 3.0, "mixed"), (4.0, 3.01, "near"), (0.0, 0.0, "near")],
)
def test_mixed_pairs_are_taken_where_near_ones_are_dear_and_mixed_ones_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, near: float, mixed: float, taken: str
) -> None:
    """As shares of what the classes have lost already, which is 1, or nothing where near pairs lose nothing."""
    expected = {"near": (near, float(near > 0)), "mixed": (mixed, float(near > 0))}
    monkeypatch.setattr(ladders, "_rungs", lambda *given: "near" if given[-1] is None else "mixed")
    monkeypatch.setattr(ladders, "_expected_loss", lambda rungs, *_: expected[rungs])
    found = ladder(REPAIR.people, REPAIR.class_of_cell, REPAIR.outputs, REPAIR.holds, None, REPAIR.mixing())
    assert found == taken


@pytest.mark.parametrize(
    ("guidance", "size", "counts"),
    [
        (0.0, 4, [2, 2]),  # two people are just enough to be expected
        (0.0, 3, [0, 0]),
        (0.5, 8, [6, 2]),
        (1.0, 40, [40, 0]),  # beyond all and none a line says nothing more
        (-1.0, 40, [0, 40]),
    ],
)
def test_how_many_people_of_each_value_are_expected(guidance: float, size: int, counts: list[int]) -> None:
    lines = {"ill": np.array([[0.5, 0.5], [0.5, -0.5]])}
    expected = Mixing(np.zeros((1, 1)), 1, 0.5, lines, lines, np.zeros((1, 1)))
    seen: list[list[list[int]]] = []

    def holds(found: ClassStatistics) -> np.ndarray:
        seen.append(found.sensitive["ill"].counts.toarray().tolist())
        return found.sizes > 0

    sizes = np.array([float(size)])
    assert expected.holds(REPAIR.people, sizes, np.array([[guidance * size]]), holds).tolist() == [True]
    assert seen == [[counts]]


def test_shares_beyond_all_are_cut_before_they_are_made_one() -> None:
    lines = {"ill": np.array([[1.5, 0.25]])}
    expected = Mixing(np.zeros((1, 0)), 0, 0.25, lines, lines, np.zeros((1, 0)))
    seen: list[list[list[int]]] = []

    def holds(found: ClassStatistics) -> np.ndarray:
        seen.append(found.sensitive["ill"].counts.toarray().tolist())
        return found.sizes > 0

    expected.holds(REPAIR.people, np.array([100.0]), np.zeros((1, 0)), holds)
    assert seen == [[[80, 20]]]
