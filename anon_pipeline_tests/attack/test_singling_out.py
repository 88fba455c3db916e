"""Which conditions are chosen to single somebody out, and how much luck is foretold for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack import singling_out
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.targets import Tables, read_attacked

#: Control people who meet each condition, their number, that of the people, and the luck: low, rate and high.
LUCK = [
    ([0, 1, 0, 2, 0, 0, 6, 1, 7, 30] * 4, 100, 1000, (0.0, 0.07036849769, 0.255211202)),
    ([0] * 30 + [1] * 20 + [2] * 8 + [3] * 2, 300, 1000, (0.003291884, 0.226267925, 0.354336151)),
    ([3, 4, 5, 6, 7, 8, 9, 2, 6, 6] * 10, 900, 1000, (0.0, 0.02212927793, 0.367879441)),
    ([0] * 95 + [1] * 5, 50, 2000, (0.0, 0.2706705665, 0.367879441)),
    ([1, 5], 10, 20, (7.79e-07, 0.0362797056, 0.36492286)),
]


@pytest.mark.parametrize(("counts", "control", "people", "luck"), LUCK)
def test_luck_is_the_same_in_every_version(
    counts: list[int], control: int, people: int, luck: tuple[float, float, float]
) -> None:
    found = singling_out.by_luck(np.array(counts), control, people)
    assert (found.low, found.rate, found.high) == pytest.approx(luck, rel=1e-4, abs=1e-8)
    assert (found.successes, found.trials) == (pytest.approx(found.rate * len(counts)), len(counts))


def test_without_conditions_there_is_no_luck() -> None:
    found = singling_out.by_luck(np.array([], dtype=int), 10, 20)
    assert (found.trials, found.rate, found.high) == (0, 0, 0)


def test_counts_that_vary_just_as_chance_would_are_taken_for_those_of_a_single_weight() -> None:
    assert singling_out._gamma_estimate(np.array([0, 2]), 2, 1.0) == pytest.approx(np.exp(-1))
    little = singling_out._gamma_estimate(np.array([0, 0, 2, 0, 1, 1, 0, 3]), 8, 0.5)
    mean, excess = 0.875 / 0.5, (1.109375 - 0.875) / 0.25
    shape = mean**2 / excess
    assert little == pytest.approx(mean * (shape / (shape + mean)) ** (shape + 1))
    assert singling_out._gamma_estimate(np.zeros(3, dtype=int), 5, 1.0) == 0
    assert singling_out._gamma_estimate(np.array([], dtype=int), 5, 1.0) == 0


def test_of_many_conditions_the_seed_draws_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singling_out, "CONDITIONS", 4)
    table = pd.DataFrame({"x": [1] * 30, "s": np.arange(30)})
    it = read_attacked(Tables(table, table), Knowledge(["x"], ["s"], numeric=["x"]), 3)
    one_column, every = singling_out.univariate(it), singling_out.multivariate(it)
    chosen = [[int(np.flatnonzero(c.masks[0])[0]) for c in conditions] for conditions in (one_column, every)]
    first, second = (np.sort(np.random.default_rng([3, stream]).permutation(30)[:4]) for stream in (5, 6))
    names = it.kept[0].values.tolist()  # as texts: in another order than the rows
    assert chosen == [[place + 1 for place in first], [names.index(str(row)) + 1 for row in by_row(it, second)]]
    assert [condition.columns for condition in one_column] == [(1,)] * 4
    assert [condition.columns for condition in every] == [(1, 0)] * 4


def by_row(it, chosen: np.ndarray) -> list[int]:
    """The rows of these places among all rows in the order of their kept values."""
    return np.argsort(it.kept_codes[:, 0])[chosen].tolist()


def test_records_that_only_several_columns_isolate_are_told_by_none() -> None:
    table = pd.DataFrame({"x": [1, 1, 1, 2], "s": list("aabb"), "t": list("cddc")})
    it = read_attacked(Tables(table, table), Knowledge(["x"], ["s", "t"], numeric=["x"]))
    assert singling_out.alone_by_column(it) == {"s": 2 / 4, "t": 2 / 4}
    single = pd.DataFrame({"x": [1, 1, 1], "s": list("aab"), "t": list("ccc")})
    it = read_attacked(Tables(single, single), Knowledge(["x"], ["s", "t"], numeric=["x"]))
    assert singling_out.alone_by_column(it) == {"s": 1.0, "t": 0.0}
    nobody = pd.concat([single, single])
    it = read_attacked(Tables(nobody, nobody), Knowledge(["x"], ["s", "t"], numeric=["x"]))
    assert singling_out.alone_by_column(it) == {"s": 0.0, "t": 0.0}


def test_blind_guessing_is_the_luck_of_independent_columns() -> None:
    table = pd.DataFrame({"x": [1, 1, 2, 2], "s": list("aabc")})
    control = pd.DataFrame({"x": [1, 2, 2, 2, 2], "s": list("abbbb")})
    it = read_attacked(Tables(table, table, control), Knowledge(["x"], ["s"], numeric=["x"]))
    one_column, every = singling_out.singling_out(it)
    shares = {name: float(it.kept[0].shares[code]) for name, code in (("b", 2), ("c", 3))}
    luck = [4 * w * (1 - w) ** 3 for w in shares.values()]
    assert one_column.baseline.rate == pytest.approx(np.mean(luck))
    assert (one_column.attack.rate, one_column.attack.trials) == (1, 2)
    assert one_column.control is not None
    assert one_column.control.rate == 0  # the first four control people: none has a "c", and more than one a "b"
    assert one_column.details["people_meeting_one"]["max"] == 1
    assert (every.details["conditions"], every.details["nobody_meets"]) == (2, 0)


@pytest.mark.parametrize(("others", "measured"), [(3, False), (4, True), (5, True)])
def test_as_many_control_people_as_members_are_enough_to_measure_the_luck(others: int, measured: bool) -> None:
    table = pd.DataFrame({"x": [1, 1, 2, 2], "s": list("aabc")})
    control = pd.DataFrame({"x": [1] * others, "s": ["b", *"a" * (others - 1)]})
    it = read_attacked(Tables(table, table, control), Knowledge(["x"], ["s"], numeric=["x"]))
    found = singling_out.singling_out(it)[0].control
    assert found is not None
    assert (found.rate in (0, 0.5)) == measured  # a single "b" or none of the first four, and no "c"
    assert found.trials == 2
