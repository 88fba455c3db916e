"""What a class does not show is lost, however much alike its members are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.classes import information_loss, loss_as_told
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.anonymize.recode import Summary, equivalence_classes, hidden_values, recoded_table, summarize
from anon_pipeline.anonymize.recoding_statistics import column_statistics
from anon_pipeline.arrays import IntArray
from anon_pipeline.tables import Cells


def grouped(
    frame: pd.DataFrame, group: list[int], k: int, levels: dict[str, list[int]] | None = None
) -> tuple[Cells, IntArray, list[Summary]]:
    """A table whose rows are in these groups; `levels` has the places of a column's values in their order."""
    learned = [learn_domain(name, frame[name]) for name in frame]
    domains = tuple(domain if domain.ordered else replace(domain, storage="VARCHAR") for domain, _ in learned)
    order = levels or {}
    domains = tuple(
        replace(domain, levels=np.array(order[domain.name])) if domain.name in order else domain for domain in domains
    )
    cells, row = count_cells(domains, np.stack([code for _, code in learned], axis=1), np.zeros((len(frame), 1)))
    class_of_cell = np.empty(len(cells.counts), dtype=np.int64)
    class_of_cell[row] = group
    return cells, class_of_cell, summarize(cells, class_of_cell, max(group) + 1, k, {})


def told(
    frame: pd.DataFrame, group: list[int], k: int, form: str = "value", levels: dict[str, list[int]] | None = None
) -> dict[str, float]:
    """What is told to be lost."""
    cells, class_of_cell, summaries = grouped(frame, group, k, levels)
    recoded = recoded_table(summaries, form)
    exact = information_loss(cells, class_of_cell, max(group) + 1, summaries)
    hidden = hidden_values(summaries, recoded, form)
    return loss_as_told(cells, class_of_cell, exact, equivalence_classes(recoded), hidden)


def lost_of_a_number(shown: pd.Series, truth: pd.Series, group: list[int]) -> float:
    """The variance about the mean of each group that shows a number, and about that of all people in the others."""
    known = truth.notna()
    middle = truth.groupby(group).transform("mean").where(shown.notna(), truth.mean())
    return float(((truth - middle)[known] ** 2).sum() / ((truth - truth.mean())[known] ** 2).sum())


@pytest.mark.parametrize("form", ["value", "range"])
def test_a_column_that_no_class_shows_has_lost_all(form: str) -> None:
    """Of ten people in each class one has a pension: the table shows none, and the classes have no variance."""
    group = [place for place in range(6) for _ in range(10)]
    pension = [float(100 * place) if row == 0 else np.nan for place in range(6) for row in range(10)]
    towns = [f"town {row}" for row in range(60)]
    age = [float(20 + 10 * place) for place in range(6) for _ in range(10)]
    lost = told(pd.DataFrame({"age": age, "pension": pension, "town": towns}), group, 10, form)
    assert lost == pytest.approx({"age": 0.0, "pension": 1.0, "town": 1.0})


def test_two_different_towns_in_a_class_are_all_lost() -> None:
    """In classes of two the Gini impurity within is half of the whole, and the table shows `*`."""
    group = [place for place in range(20) for _ in range(2)]
    frame = pd.DataFrame({"age": [float(place) for place in group], "town": [f"town {row}" for row in range(40)]})
    cells, class_of_cell, summaries = grouped(frame, group, 2)
    assert recoded_table(summaries, "value")["town"].to_pylist() == ["*"] * 20
    assert information_loss(cells, class_of_cell, 20)["town"] == pytest.approx(20 / 39)
    assert told(frame, group, 2)["town"] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_of_a_number_is_what_the_shown_classes_leave(seed: int) -> None:
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(12), 6)
    number = pd.Series(np.where(random.random(72) < 0.5, random.integers(0, 9, 72) + group, np.nan))
    frame = pd.DataFrame({"number": number, "class": group.astype(float)})
    _, _, summaries = grouped(frame, group.tolist(), 6)
    shown = recoded_table(summaries, "value").to_pandas()["number"]
    assert 0 < shown.isna().sum() < 12
    expected = lost_of_a_number(pd.Series(shown.to_numpy()[group]), number, group.tolist())
    assert told(frame, group.tolist(), 6)["number"] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_of_a_category_is_what_the_shown_classes_leave(seed: int) -> None:
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(24), 3)
    town = pd.Series(random.choice(list("abcdefgh"), 72))
    frame = pd.DataFrame({"town": town, "class": group.astype(float)})
    _, _, summaries = grouped(frame, group.tolist(), 3)
    shown = recoded_table(summaries, "value").to_pandas()["town"].to_numpy()[group]
    assert 0 < (shown == "*").sum() < 72
    ones = pd.get_dummies(town).astype(float)
    means = ones.groupby(group).transform("mean").to_numpy()
    middle = np.where((shown == "*")[:, None], ones.mean().to_numpy(), means)
    expected = ((ones - middle) ** 2).to_numpy().sum() / ((ones - ones.mean()) ** 2).to_numpy().sum()
    assert told(frame, group.tolist(), 3)["town"] == pytest.approx(expected)


def test_that_a_class_has_mostly_no_level_hides_the_levels_of_the_others() -> None:
    size = pd.Series(["low"] * 3 + [None] * 7 + ["high"] * 3 + [None] * 7, dtype=object)
    group = [0] * 10 + [1] * 10
    frame = pd.DataFrame({"size": size, "class": [float(place) for place in group]})
    cells, class_of_cell, summaries = grouped(frame, group, 3, {"size": [1, 0]})
    assert recoded_table(summaries, "value")["size"].to_pylist() == [None, None]
    assert information_loss(cells, class_of_cell, 2)["size"] == 0.0
    assert told(frame, group, 3, levels={"size": [1, 0]})["size"] == pytest.approx(1.0)


def test_in_a_table_of_ranges_no_value_is_told_of_who_has_no_range() -> None:
    """Most of the first class have no number and it has no median, but it shows a range; the second shows `*`."""
    number = pd.Series([10.0, 20.0, 20.0, 30.0, *[np.nan] * 6, 20.0, *[np.nan] * 9, *[20.0] * 10, *[np.nan] * 10])
    group = [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10
    frame = pd.DataFrame({"number": number, "class": [float(place) for place in group]})
    _, _, summaries = grouped(frame, group, 1)
    sizes = np.full(4, 10)
    ranges = recoded_table(summaries, "range")
    assert ranges["number"].to_pylist() == ["[10.0, 30.0] or missing", "* or missing", "20.0", "missing"]
    assert recoded_table(summaries, "value")["number"].to_pylist() == [None, None, 20.0, None]
    assert column_statistics(summaries, sizes, {})["number"]["withheld"] == 0.75
    hidden = hidden_values(summaries, ranges, "range")
    assert column_statistics(summaries, sizes, {}, hidden)["number"]["withheld"] == 0.5
