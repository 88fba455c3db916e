"""Maps of positions that a spec masks: published maps of the release, and private maps of before and after masking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.masking.cells import CellTechnique
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.masking.positions import PositionTechnique
from anon_pipeline.report.masking_map import Positions, positions_map
from anon_pipeline.spec import ReleaseSpec, Role


def released_maps(spec: ReleaseSpec, table: Path) -> list[dict[str, Any]]:
    """A map of each masked pair of coordinates, counted in the released table only.

    Coordinates that are released as ranges have no map.
    """
    maps = []
    for pair, cells, coarsest in _masked_pairs(spec):
        columns = pair if cells is None else (str(cells.into),)
        if spec.recode.form == "range" and any(spec.columns[name].role is Role.QUASI_IDENTIFIER for name in columns):
            continue
        positions = _positions(pq.read_table(table, columns=list(columns)), pair, cells)
        drawn = positions_map(pair, positions, positions, spec.k, coarsest, None if cells is None else cells.into)
        if drawn is not None:
            maps.append({key: value for key, value in drawn.items() if key != "before"})
    return maps


def maps_of_masking(spec: ReleaseSpec, before: pa.Table, after: pa.Table) -> list[dict[str, Any]]:
    """A map of each pair of coordinates that the steps changed, before and after, for the private zone."""
    maps = []
    for pair, cells, coarsest in _masked_pairs(spec):
        columns = set(pair) if cells is None else {str(cells.into)}
        if columns <= set(after.column_names):
            into = None if cells is None else cells.into
            maps.append(
                positions_map(
                    pair, _positions(before, pair, None), _positions(after, pair, cells), spec.k, coarsest, into
                )
            )
    return [chart for chart in maps if chart is not None]


def _masked_pairs(spec: ReleaseSpec) -> list[tuple[tuple[str, ...], CellTechnique | None, float]]:
    """Each pair of coordinates that steps mask and of which the release shows the values or the cells.

    Each comes with the step that made the cells, and the diameter of the largest cells, in metres.
    """
    of_pair: dict[tuple[str, ...], list[PositionTechnique]] = {}
    for step in spec.steps:
        if isinstance(step, PositionTechnique):
            of_pair.setdefault(step.columns, []).append(step)
    pairs = []
    for pair, techniques in of_pair.items():
        cells = [technique for technique in techniques if isinstance(technique, CellTechnique)]
        last = cells[-1] if cells and cells[-1].into is not None else None
        columns = set(pair) if last is None else {str(last.into)}
        if columns <= set(spec.released):
            pairs.append((pair, last, max((technique.side for technique in cells), default=0.0)))
    return pairs


def _positions(table: pa.Table, pair: tuple[str, ...], cells: CellTechnique | None) -> Positions:
    """The positions of people, from their coordinates or from the cells in a column."""
    if cells is None:
        latitude, longitude = (to_floats(table.column(name).combine_chunks()) for name in pair)
        return latitude, longitude
    named = table.column(str(cells.into)).drop_null().to_pylist()
    return cells.centres([name for name in named if name != "*"])
