"""A number far from all others decides neither the classes nor what a release says that it has lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.classes import information_loss, loss_as_released, loss_as_told
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.anonymize.recode import equivalence_classes, recoded_table
from anon_pipeline.arrays import IntArray
from anon_pipeline.release.fineness import lost
from anon_pipeline.release.noise import NO_NOISE
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain

N, K = 400, 10
INCOMES = (3e5, 5e5, 7e5, 1e6, 1e7, 1e9)


def released(income: float, seed: int) -> tuple[dict[str, float], IntArray]:
    """What is told to be lost where the last person has this income, and everybody's class."""
    random = np.random.default_rng(seed)
    incomes = np.r_[np.round(random.lognormal(10.5, 0.4, N - 1)), income].astype(np.int64)
    frame = pd.DataFrame({"age": random.integers(18, 80, N), "income": incomes, "town": random.choice(list("abcd"), N)})
    tree = AnonymizerTree(k=K).fit(frame)
    learned = [learn_domain(name, frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, _ = count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((N, 1)))
    alike = equivalence_classes(recoded_table(tree.summaries_, "value"))
    told = loss_as_told(cells, tree.partition_.apply(cells.codes), tree.information_loss_, alike)
    return lost(told, N, NO_NOISE), tree.apply(frame)


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_what_is_lost_does_not_tell_a_lone_extreme(seed: int) -> None:
    """Who knows everything but one income groups for each that it can be, and compares what is told to be lost."""
    told = [released(income, seed)[0] for income in INCOMES]
    assert all(one == told[0] for one in told)
    assert told[0]["income"] <= 0.35  # of all others nothing more is lost because of it


@pytest.mark.long
def test_classes_are_the_same_wherever_a_lone_extreme_lies() -> None:
    classes = [released(income, 3)[1] for income in INCOMES]
    assert all((one == classes[0]).all() for one in classes)


def domain_of(values: list[float], kind: ColumnType = ColumnType.NUMERIC) -> Domain:
    return Domain("x", kind, np.array(values), np.r_[0, np.ones(len(values), dtype=np.int64)])


def test_a_number_counts_as_no_farther_out_than_once_more_the_range_of_others() -> None:
    assert domain_of([0, 1, 2, 3, 4, 5, 6, 50]).without_extremes.values.tolist() == [0, 1, 2, 3, 4, 5, 6, 8]
    assert domain_of([-50, 0, 1, 2, 3, 4, 5, 6]).without_extremes.values.tolist() == [-2, 0, 1, 2, 3, 4, 5, 6]
    for values in ([0, 1, 2, 3, 4, 5, 6, 7], [1.5], [0, 1]):
        domain = domain_of([float(value) for value in values])
        assert domain.without_extremes is domain
    few = Domain("x", ColumnType.NUMERIC, np.array([0, 1, 9]), np.array([0, 90, 1, 1]))
    assert few.without_extremes is few  # nearly all have the same number
    ends = np.array([-(2**63), *range(10), 2**63 - 1])
    assert Domain("x", ColumnType.NUMERIC, ends, np.ones(13, dtype=np.int64)).without_extremes.values[-1] == 15
    assert domain_of([1, 2, 3, 4, 5, 6, 7, 99], ColumnType.CATEGORICAL).without_extremes.values[-1] == 99


def test_where_nothing_is_extreme_the_loss_is_told_as_it_is() -> None:
    domain, code = learn_domain("x", pd.Series([0.0, 10.0, 20.0, 30.0]))
    cells, _ = count_cells((domain,), code[:, None], np.zeros((4, 1)))
    group, alike = np.array([0, 0, 1, -1]), np.array([0, 0])
    apart = information_loss(cells, group, 2)
    assert loss_as_told(cells, group, apart, alike) == loss_as_released(cells, group, apart, alike)
