"""Samples of people by their content: the same people in any order of rows, and equal people are drawn one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import Batch
from anon_pipeline.engine.batches import chosen_rows
from anon_pipeline.engine.content import draws_of

#: The most people who are drawn at once; a row may stand for any number of them.
DRAWN_TOGETHER = 1_000_000


def sample_of(batches: Iterable[Batch], size: int) -> Batch:
    """The `size` people of the smallest draws (`draws_of`), a row each, in the order of their hash.

    Where the rows of equal people are one row, the sample depends on who is in the batches alone. If equal people were
    drawn together, a large table of few columns would be judged by a few kinds of people.
    """
    people: list[Batch] = []
    draws: list[IntArray] = []
    gathered, largest = 0, None
    for batch in batches:
        for row, number in _numbered(batch.people):
            draw = draws_of(batch.hash[row], number)
            place = _smallest(draw, size) if largest is None else np.flatnonzero(draw <= largest)
            people.append(chosen_rows(batch, row[place]))
            draws.append(draw[place])
            gathered += len(place)
            if gathered > 2 * size + 100_000:
                joined, drawn = _joined(people), np.concatenate(draws)
                place = _smallest(drawn, size)
                people, draws = [chosen_rows(joined, place)], [drawn[place]]
                gathered, largest = len(place), draws[0].max()
    joined = _joined(people)
    place = _smallest(np.concatenate(draws), size)
    chosen = chosen_rows(joined, place[np.argsort(joined.hash[place], kind="stable")])
    return replace(chosen, people=np.ones(len(place), dtype=np.int64))


def _numbered(people: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Of every person, part by part: the row that stands for them, and their number among the people of that row."""
    ends = np.cumsum(people)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, max(total, 1), DRAWN_TOGETHER):  # of nobody there is one part, too
        person = np.arange(start, min(start + DRAWN_TOGETHER, total))
        row = np.searchsorted(ends, person, side="right")
        yield row, person - (ends[row] - people[row])


def _smallest(draws: IntArray, size: int) -> IntArray:
    """The places of the `size` smallest draws, in any order."""
    if len(draws) <= size:
        return np.arange(len(draws))
    place: IntArray = np.argpartition(draws, size - 1)[:size]
    return place


def _joined(parts: list[Batch]) -> Batch:
    hashes, keys, people = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("hash", "key", "people")
    )
    features, target, digits = (
        pd.concat([getattr(part, name) for part in parts], ignore_index=True)
        for name in ("features", "target", "digits")
    )
    return Batch(features, target, hashes, keys, people, digits)
