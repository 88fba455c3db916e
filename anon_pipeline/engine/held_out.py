"""A stored table in two parts: everybody but some control people, and these."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.content import row_hashes, sample_hash
from anon_pipeline.engine.expressions import PEOPLE


class HeldOut:
    """Takes so many people of each content out of a stored table, batch by batch.

    Which of several equal people is taken makes no difference to a release.

    Parameters
    ----------
    chosen : how many people to take, by the hash of their content (`sample_hash`)
    names : the columns whose content is hashed
    """

    def __init__(self, chosen: Mapping[int, int], names: list[str]) -> None:
        self._left, self._names = dict(chosen), names
        self._hashes = np.fromiter(self._left, np.int64, len(self._left))

    def split(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The rows of those who stay, and of those who are held out; a row may be in both, with other counts."""
        hashes = sample_hash(row_hashes([rows.column(name) for name in self._names], self._names))
        people = rows.column(PEOPLE).to_numpy()
        taken = np.zeros_like(people)
        for row in np.flatnonzero(np.isin(hashes, self._hashes)):
            taken[row] = min(self._left[int(hashes[row])], people[row])
            self._left[int(hashes[row])] -= int(taken[row])
        return _counting(rows, people - taken), _counting(rows, taken)


def _counting(rows: pa.RecordBatch, people: IntArray) -> pa.RecordBatch:
    """The rows with other numbers of people, without those of nobody."""
    counted = rows.set_column(rows.schema.get_field_index(PEOPLE), rows.schema.field(PEOPLE), pa.array(people))
    return counted.filter(pa.array(people > 0))
