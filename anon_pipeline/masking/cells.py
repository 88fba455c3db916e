"""Table techniques that show the cell of a grid in place of a position: a square grid, or H3's hexagons."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import Applied, Columns, Context
from anon_pipeline.masking.positions import PositionTechnique
from anon_pipeline.masking.sphere import RADIUS
from anon_pipeline.spec import ColumnType

#: Decimals of a degree in the name of a cell: the last one is about a metre.
DIGITS = 5


class CellTechnique(PositionTechnique):
    """A technique that shows cells: their centres in the two columns, or their names in one column in place of both."""

    into: str | None = Field(
        default=None, min_length=1, description="a column for the cell's name, which takes the place of the two"
    )

    @property
    def made_column(self) -> str | None:
        return self.into

    @property
    def of_own_values(self) -> bool:
        return True

    def objection(self, kinds: Mapping[str, ColumnType]) -> str | None:
        if self.into in kinds and self.into not in self.columns:
            return f"into: there is a column {self.into} already; name another"
        return None

    def columns_after(self, kinds: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        if self.into is None:
            return dict(kinds)
        return {name: kind for name, kind in kinds.items() if name not in self.columns} | {
            self.into: ColumnType.CATEGORICAL
        }

    @property
    @abstractmethod
    def side(self) -> float:
        """The approximate width of a cell in metres."""

    @abstractmethod
    def centres(self, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Latitude and longitude of the centres of named cells in degrees, for a map; each of shape (m,)."""

    def named(self, columns: Columns, known: IntArray, names: list[str]) -> Applied:
        """The column `into` with the names of the cells of the known rows."""
        cells = np.full(len(columns[self.columns[0]]), None, dtype=object)
        cells[known] = names
        column = {str(self.into): pa.array(cells.tolist(), pa.string())}
        dropped = tuple(name for name in self.columns if name != self.into)
        return Applied(column, dropped=dropped, facts={"cells": len(set(names))})


class GridCell(CellTechnique):
    """Positions become the cell of a grid whose sides are about so many metres, everywhere on the globe.

    Spatial aggregation (M. Armstrong, G. Rushton, D. Zimmerman: Geographically masking health data to preserve
    confidentiality, Statistics in Medicine 18(5), 1999). Bands of latitude of one height are cut into equal cells, so
    many to a band that these are about square; a cell is named by its south-west corner.
    """

    technique: Literal["grid_cell"] = "grid_cell"
    metres: float = Field(ge=1, le=1_000_000, description="the side of a cell")

    meaning: ClassVar[str] = "shows the cell of a square grid that a position lies in"
    use_when: ClassVar[str] = "areas of one size will do, and readers have no H3"

    def apply(self, columns: Columns, context: Context) -> Applied:
        latitude, longitude, known = self.read(columns, context)
        south, west, height, width = grid(latitude, longitude, self.metres)
        if self.into is not None:
            names = [f"{s:.{DIGITS}f},{w:.{DIGITS}f}" for s, w in zip(south.tolist(), west.tolist(), strict=True)]
            return self.named(columns, known, names)
        centres = self.written(columns, known, south + height / 2, west + width / 2, DIGITS)
        cells = len(np.unique(np.column_stack([south, west]), axis=0)) if len(known) else 0
        return Applied(centres, facts={"cells": cells})

    @property
    def side(self) -> float:
        return self.metres

    def centres(self, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        corners = np.array([name.split(",") for name in names], dtype=np.float64).reshape(len(names), 2)
        height = 180 / _bands(self.metres)
        latitude = corners[:, 0] + height / 2  # well within the band, although the edge was rounded
        return latitude, corners[:, 1] + grid(latitude, corners[:, 1], self.metres)[3] / 2


class H3Cell(CellTechnique):
    """Positions become the hexagon of H3 they lie in, of which there are 16 sizes.

    H3 (https://h3geo.org), Uber 2018: the mean edge is 1.4 km at resolution 7, 531 m at 8, 201 m at 9; every cell
    belongs to one of the next coarser resolution (`h3_parents`), which makes a hierarchy.
    """

    technique: Literal["h3_cell"] = "h3_cell"
    resolution: int = Field(ge=0, le=15, description="from 0, the coarsest, to 15")

    meaning: ClassVar[str] = "shows the H3 hexagon that a position lies in"
    use_when: ClassVar[str] = "readers work with H3, or the cells are to be a hierarchy for the grouping"

    def apply(self, columns: Columns, context: Context) -> Applied:
        h3 = _h3(context.place)
        latitude, longitude, known = self.read(columns, context)
        points = zip(latitude.tolist(), longitude.tolist(), strict=True)
        names = [h3.latlng_to_cell(lat, lon, self.resolution) for lat, lon in points]
        if self.into is not None:
            return self.named(columns, known, names)
        centres = self.written(columns, known, *self.centres(names), DIGITS)
        return Applied(centres, facts={"cells": len(set(names))})

    @property
    def side(self) -> float:
        return float(2 * _h3("h3_cell").average_hexagon_edge_length(self.resolution, unit="m"))

    def centres(self, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        h3 = _h3("h3_cell")
        centre = {name: h3.cell_to_latlng(name) for name in set(names)}
        centres = np.array([centre[name] for name in names]).reshape(len(names), 2)
        return centres[:, 0], centres[:, 1]


def grid(
    latitude: FloatArray, longitude: FloatArray, metres: float
) -> tuple[FloatArray, FloatArray, float, FloatArray]:
    """South and west edge of each point's cell in degrees, shape (n,); the common height and each width."""
    bands = _bands(metres)
    height = 180 / bands
    band = np.minimum(np.floor((latitude + 90) / height), bands - 1)
    south = band * height - 90
    around = 2 * np.pi * RADIUS * np.cos(np.radians(south + height / 2))
    width = 360 / np.round(around / metres)  # also at the poles three cells and more
    west = np.floor(((longitude + 180) % 360) / width) * width - 180
    return south, west, height, width


def _bands(metres: float) -> int:
    """The number of bands of latitude of about this height, 20 for the highest that is allowed."""
    return round(np.pi * RADIUS / metres)


def h3_parents(cells: Iterable[str], resolutions: Iterable[int]) -> dict[str, tuple[str, ...]]:
    """For each cell, the cells of coarser resolutions that contain it: a hierarchy for grouping.

    Parameters
    ----------
    cells : names of H3 cells
    resolutions : from fine to coarse, none finer than the cells
    """
    h3 = _h3("h3_cell")
    wanted = tuple(resolutions)
    return {cell: tuple(h3.cell_to_parent(cell, resolution) for resolution in wanted) for cell in dict.fromkeys(cells)}


def _h3(place: str) -> Any:
    try:
        import h3  # type: ignore[import-untyped]
    except ImportError:
        raise InputError(f"{place}: h3_cell needs the package h3; run `pip install 'anon-pipeline[geo]'`") from None
    return h3
