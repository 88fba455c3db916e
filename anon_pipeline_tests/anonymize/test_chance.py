"""Chance under the key: it hangs on the key and on the people, and on nothing else."""

from dataclasses import replace

import numpy as np
import pandas as pd

from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.classes import members
from anon_pipeline.keys import Key
from anon_pipeline.tables import Cells
from anon_pipeline_tests.people import KEY


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
