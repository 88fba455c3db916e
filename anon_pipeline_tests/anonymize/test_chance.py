"""Chance under the key: it hangs on the key and on the people, and on nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.classes import members
from anon_pipeline.keys import Key
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Cells, Domain
from anon_pipeline_tests.people import KEY

DAY = 86_400_000_000


def cells_of(frame: pd.DataFrame) -> tuple[Cells, np.ndarray]:
    learned = [encoding.learn_domain(name, frame[name]) for name in frame.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    return encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((len(frame), 1)))


def people(n: int = 200) -> pd.DataFrame:
    random = np.random.default_rng(4)
    return pd.DataFrame({"age": random.integers(20, 60, n), "town": random.choice(["Ulm", "Bonn", None], n)})


def drawn(frame: pd.DataFrame, key: Key = KEY) -> dict[tuple[object, ...], float]:
    cells, cell = cells_of(frame)
    chance = Chance.of(key, cells)
    numbers = chance.uniform("a", chance.joined(members(np.arange(len(cells.counts)), len(cells.counts))))
    return {
        tuple(map(str, row)): number for row, number in zip(frame.itertuples(index=False), numbers[cell], strict=True)
    }


def test_people_of_other_tables_change_nothing() -> None:
    """A value more shifts every code of a column; what is drawn for people must not follow."""
    frame = people()
    more = pd.concat([pd.DataFrame({"age": [19, 19], "town": ["Aachen", "Zell"]}), frame], ignore_index=True)
    before, after = drawn(frame), drawn(more)
    assert all(after[one] == number for one, number in before.items())


@pytest.mark.parametrize(
    ("type_", "alone", "beside"),
    [
        (ColumnType.NUMERIC, ([20, -7, 10**15], "BIGINT"), ([20.0, -7.0, 1e15, 20.5], "DOUBLE")),
        (ColumnType.DATE, ([0, 11000, -400], "DATE"), ([0, 11000 * DAY, -400 * DAY, DAY // 3], "TIMESTAMP")),
        (ColumnType.CATEGORICAL, (["20", "7"], "BIGINT"), (["20.0", "7.0", "20.5"], "DOUBLE")),
        (ColumnType.CATEGORICAL, (["20", "20.0", "x"], "VARCHAR"), (["20", "20.0", "x", "20.5"], "VARCHAR")),
    ],
)
def test_a_strangers_fraction_or_hour_draws_nobody_anew(
    type_: ColumnType, alone: tuple[list[Any], str], beside: tuple[list[Any], str]
) -> None:
    """It makes floats of whole numbers and moments of days; with a second answer, what had to stay could be told."""
    drawn = []
    for values, storage in (alone, beside):
        n, kind = len(values), object if type_ is ColumnType.CATEGORICAL else None
        domain = Domain("x", type_, np.array(values, dtype=kind), np.r_[0, np.ones(n, dtype=np.int64)], storage)
        codes = np.arange(1, n + 1, dtype=np.int32)[:, None]
        chance = Chance.of(KEY, Cells((domain,), codes, np.ones(n, dtype=np.int64), np.zeros((n, 1), np.int64)))
        drawn.append(chance.members.tolist())
    assert drawn[1][: len(drawn[0])] == drawn[0]
    assert len(set(map(tuple, drawn[1]))) == len(drawn[1])


def test_other_people_other_keys_and_other_decisions_have_other_numbers() -> None:
    cells, _ = cells_of(people())
    chance, other = Chance.of(KEY, cells), Chance.of(Key(bytes(32)), cells)
    numbers = chance.members
    assert len(np.unique(numbers, axis=0)) == len(numbers)
    assert (chance.uniform("a", numbers) != chance.uniform("b", numbers)).all()
    assert (other.members != numbers).any(axis=1).all()
    doubled = Chance.of(KEY, replace(cells, counts=cells.counts + 1))
    assert (doubled.members != numbers).any(axis=1).all()


def test_numbers_are_uniform() -> None:
    cells, _ = cells_of(pd.DataFrame({"age": np.arange(20_000)}))
    chance = Chance.of(KEY, cells)
    uniform = np.sort(chance.uniform("a", chance.members))
    assert np.abs(uniform - (np.arange(20_000) + 0.5) / 20_000).max() < 0.02


def test_without_a_key_nothing_is_left_to_chance() -> None:
    cells, _ = cells_of(people())
    chance = Chance.none(cells)
    assert (chance.uniform("a", chance.members) == 1).all()
