"""Who was drawn into a release that holds a part of its people only: the draw is made again, under the same key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.audit.people import control_people
from anon_pipeline.engine.content import row_hashes, sample_hash
from anon_pipeline.home import Home
from anon_pipeline.keys import Key, KeySource, Secrets, private_key
from anon_pipeline.masking.base import Technique
from anon_pipeline.masking.execution import Resources, people_left
from anon_pipeline.pipeline.linked_releases.same_people import Linked


def drawn_people(home: Home, table: Linked, people: pa.Table) -> BoolArray:
    """Who was drawn, shape (n,).

    Parameters
    ----------
    people : those of whom the draw was made, with all columns that its spec reads, as they were stored for it

    Raises
    ------
    InputError
        If its key cannot be had, or a step cannot be carried out.
    """
    spec, folder = table.spec, table.spec.folder if table.folder is None else table.folder
    key = _key(home, table)
    if any(step.technique == "sample" for step in spec.steps):
        columns = {name: cast(tuple[Technique, ...], spec.columns[name].steps) for name in table.types}
        steps = {name: of_column for name, of_column in columns.items() if of_column}
        resources = Resources(table.dataset, key, Secrets(folder=folder), folder, ())
        return people_left(people, table.types, steps, cast(tuple[Technique, ...], spec.steps), resources)
    hashes = _hashes(people, spec.released)
    # Of people who are equal in that release so many are held out; which, their other columns settle, in any order.
    order = np.lexsort((_hashes(people, people.column_names), hashes))
    drawn = np.ones(len(hashes), dtype=bool)
    drawn[order] = ~control_people(hashes[order], spec.model_copy(update={"dataset": table.dataset}), key)
    return drawn


def _hashes(people: pa.Table, names: Sequence[str]) -> IntArray:
    return sample_hash(row_hashes([people.column(name).combine_chunks() for name in names], names))


def _key(home: Home, table: Linked) -> Key:
    """The key of its dataset; a file is relative to the folder of its own spec."""
    spec = table.spec
    if spec.draws is None:
        return private_key(spec.model_copy(update={"dataset": table.dataset}), home)
    folder = spec.folder if table.folder is None else table.folder
    return Secrets(folder=folder).key(KeySource.model_validate(spec.draws.model_dump()))
