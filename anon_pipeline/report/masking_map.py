"""A map of a pair of coordinates before and after masking: the people per cell, for cells with at least k people.

The stored data has no counts, only the number of doublings of k per cell; no map tiles are fetched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray
from anon_pipeline.report.charts import AFTER, BEFORE, NAMESPACE, TEXT, count, known

#: The approximate number of cells across, and the highest level with a separate colour.
ACROSS, LEVELS = 24, 5
PANEL, GAP, HEAD = 300, 40, 24
#: Metres per degree of latitude, on a sphere.
METRES_PER_DEGREE = 111_195

Positions = tuple[FloatArray, FloatArray]


def positions_map(
    columns: Sequence[str],
    before: Positions,
    after: Positions,
    k: int,
    coarsest: float = 0.0,
    into: str | None = None,
) -> dict[str, Any] | None:
    """The cells of both states as plain data; None if no cell of the first has k people.

    Parameters
    ----------
    columns : the names of latitude and longitude
    before, after : latitudes and longitudes in degrees; n and m people, missing as NaN
    k : the fewest people in a shown cell
    coarsest : the diameter of the cells of masking, in metres; the map shows no finer cells
    into : the column that names those cells, if it replaced the two
    """
    latitude, longitude = before
    seen = ~np.isnan(latitude) & ~np.isnan(longitude)
    if not seen.any():
        return None
    extents = [np.subtract(*np.quantile(values[seen], [0.95, 0.05])) for values in before]
    middle = round(float(np.median(latitude[seen])))
    wide = 1 / max(math.cos(math.radians(middle)), 0.05)  # degrees of longitude to one of latitude
    across = max(float(extents[0]), float(extents[1]) / wide)
    size = _plain_size(max(across / ACROSS, coarsest / METRES_PER_DEGREE))
    first, then = (_cells(*positions, size, size * wide, k) for positions in (before, after))
    if not first:
        return None
    return {"columns": list(columns), "into": into, "k": k, "size": size, "before": first, "after": then}


def _plain_size(size: float) -> float:
    """The next of 1, 2, 5, 10, ... above a size, which reveals little about the outermost people."""
    if size <= 0:
        return 0.001
    power = 10.0 ** math.floor(math.log10(size))
    return next(round(step * power, 12) for step in (1, 2, 5, 10) if step * power >= size)


def _cells(latitude: FloatArray, longitude: FloatArray, height: float, width: float, k: int) -> list[list[int]]:
    """Row, column and level of each cell of at least k people, ascending; level n: k * 2^n people or more."""
    seen = ~np.isnan(latitude) & ~np.isnan(longitude)
    rows = np.floor(latitude[seen] / height).astype(np.int64)
    columns = np.floor(longitude[seen] / width).astype(np.int64)
    cells, people = np.unique(np.column_stack([rows, columns]), axis=0, return_counts=True)
    kept = people >= k
    levels: npt.NDArray[np.int64] = np.floor(np.log2(people[kept] / k)).astype(np.int64).clip(0, LEVELS - 1)
    return [[int(row), int(column), int(level)] for (row, column), level in zip(cells[kept], levels, strict=True)]


def caption(content: Mapping[str, Any]) -> str:
    """The content of a map in words."""
    columns, k = " and ".join(str(name) for name in content.get("columns") or []), content.get("k")
    side, into = content.get("size"), content.get("into")
    if "before" not in content:
        states = f"in the release, by the cells of {into}" if into else "in the release"
    else:
        states = f"before masking, and by the cells of {into} after it" if into else "before and after masking"
    cell = f" Cells are {side * METRES_PER_DEGREE / 1000:,.2g} km high." if known(side) else ""
    return (
        f"Where people are by {columns}, {states}. Each step of colour doubles the number, from {count(k)}; cells of "
        f"fewer than {count(k)} people are left empty.{cell}"
        f"{' The grouping coarsens positions further.' if 'before' in content else ''}"
    )


def map_chart(content: Mapping[str, Any]) -> str:
    """A panel per existing state, with a common scale and north up, as SVG."""
    looks = [look for look in (("before", BEFORE), ("after", AFTER)) if look[0] in content]
    states = [_three(content[kind]) for kind, _ in looks]
    cells = [cell for state in states for cell in state]
    south, north = min(cell[0] for cell in cells), max(cell[0] for cell in cells)
    west, east = min(cell[1] for cell in cells), max(cell[1] for cell in cells)
    side = PANEL / max(north - south + 1, east - west + 1)
    height = HEAD + math.ceil(side * (north - south + 1))
    body = []
    for panel, (state, (kind, fill)) in enumerate(zip(states, looks, strict=True)):
        left = panel * (PANEL + GAP)
        body.append(f'<text fill="{TEXT}" x="{left}" y="14">{kind}: {count(len(state))} cells shown</text>')
        for row, column, level in state:
            x, y = left + side * (column - west), HEAD + side * (north - row)
            shade = (min(max(level, 0), LEVELS - 1) + 1) / LEVELS
            body.append(
                f'<rect class="{kind}" fill="{fill}" fill-opacity="{shade:.1f}" x="{x:.2f}" y="{y:.2f}" '
                f'width="{side:.2f}" height="{side:.2f}"/>'
            )
    return (
        f'<svg{NAMESPACE} class="chart" role="img" viewBox="0 0 {len(looks) * (PANEL + GAP) - GAP} {height}" '
        f'font-family="system-ui, sans-serif" font-size="13"><title>Positions of people</title>'
        f"{''.join(body)}</svg>"
    )


def _three(cells: Any) -> list[tuple[int, int, int]]:
    """Cells as whole numbers, for any content of a manifest."""
    return [(int(cell[0]), int(cell[1]), int(cell[2])) for cell in cells or []]
