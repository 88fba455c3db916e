"""People who are withheld leave the table before anything is learned from it, grouped or measured.

Whoever is withheld is in no released row. A model that had learned from them would group others by their values, and
whoever knows all people and groups again could tell who of those who are gone was still in the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine import found_types
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.session import BATCH_ROWS
from anon_pipeline.errors import InputError
from anon_pipeline.pipeline.sequential_publication import Cohorts, smallest_cohort
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential.cohorts import may_be_released
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import HISTORY

#: The table with everybody's cohort, until those who are withheld are left out of it.
EVERYBODY = "everybody.parquet"
#: The identifiers of those who are withheld, of whom no later step knows.
WITHHELD_PEOPLE = "withheld.parquet"


@dataclass(frozen=True)
class LeftOut:
    """What leaving people out has done.

    Attributes
    ----------
    people : how many are withheld
    storage : the types of the columns that have another one without them, by name
    """

    people: int
    storage: dict[str, str]


def leave_out_withheld(cohorts: Cohorts, spec: ReleaseSpec, people: SourceFacts, folder: Path) -> LeftOut:
    """Write the people who can be released, and in another file the identifiers of those who are withheld.

    Parameters
    ----------
    people : the facts about the table, of which columns values decided the types of
    folder : has the table with everybody's cohort, which is gone afterwards

    Raises
    ------
    InputError
        If nobody can be released.
    """
    everybody, destination, k = folder / EVERYBODY, folder / DATA, smallest_cohort(spec)
    stays = may_stay(cohorts, spec)
    staying = np.unique(cohorts.history[stays])
    if not len(staying):
        raise InputError(f"nobody can be released: of no cohort are {k} people left")
    schema = pq.read_schema(everybody)
    identifiers = pa.schema([schema.field(str(spec.person))])
    if stays.all():
        pq.write_table(identifiers.empty_table(), folder / WITHHELD_PEOPLE)
        everybody.rename(destination)
        return LeftOut(0, {})
    number = 0
    with (
        pq.ParquetWriter(destination, schema) as inside,
        pq.ParquetWriter(folder / WITHHELD_PEOPLE, identifiers) as outside,
    ):
        for rows, chosen in _batches(everybody, staying):
            inside.write_batch(rows.filter(chosen))
            outside.write_batch(rows.select(identifiers.names).filter(pc.invert(chosen)))
            number += len(rows) - int(pc.sum(chosen).as_py() or 0)
    everybody.unlink()
    return LeftOut(number, found_types.narrow(destination, found_types.typed_by_values(spec, people)))


def may_stay(cohorts: Cohorts, spec: ReleaseSpec) -> BoolArray:
    """Who can be released, of the people of a table, shape (n,)."""
    return may_be_released(cohorts.history, np.ones(len(cohorts.history), dtype=np.int64), smallest_cohort(spec))


def _batches(table: Path, staying: IntArray) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """A table with everybody's cohort, in batches, and who is in one of the cohorts `staying`."""
    with pq.ParquetFile(table) as file:
        for rows in file.iter_batches(BATCH_ROWS):
            yield rows, pa.array(np.isin(rows.column(HISTORY).to_numpy(), staying))
