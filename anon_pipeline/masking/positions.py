"""Base classes of techniques on a pair of latitude and longitude: reading the pair, and refusing impossible ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.masking.base import NUMERIC, Applied, Columns, Context, Fact, TableTechnique
from anon_pipeline.masking.draws import Draws
from anon_pipeline.masking.numbers import from_floats, to_floats, two_digits, with_fractions
from anon_pipeline.masking.sphere import distances


class PositionTechnique(TableTechnique):
    """A technique on two columns, latitude first, in degrees (WGS 84 is taken for a sphere)."""

    accepts: ClassVar = NUMERIC

    @model_validator(mode="after")
    def _names_a_pair(self) -> Self:
        if len(self.columns) != 2:
            raise ValueError("columns: are two, the latitude and the longitude")
        return self

    def read(self, columns: Columns, context: Context) -> tuple[FloatArray, FloatArray, IntArray]:
        """Latitude and longitude of the rows that have both, and the positions of these rows.

        Raises
        ------
        InputError
            Where one is outside of -90 to 90 or -180 to 180 degrees.
        """
        latitude, longitude = (to_floats(columns[name]) for name in self.columns)
        for name, values, limit in zip(self.columns, (latitude, longitude), (90, 180), strict=True):
            outside = int((np.abs(values) > limit).sum())
            if outside:
                raise InputError(
                    f"{context.place}.columns: {number_of(outside, f'value of {name} lies', f'values of {name} lie')} "
                    f"beyond {limit} degrees; name the latitude first, then the longitude, both in degrees"
                )
        known = np.flatnonzero(~np.isnan(latitude) & ~np.isnan(longitude))
        return latitude[known], longitude[known], known

    def written(
        self, columns: Columns, known: IntArray, latitude: FloatArray, longitude: FloatArray, digits: int
    ) -> Columns:
        """The pair with new values in the known rows; where one of the two is missing, the other is removed too."""
        masked = {}
        for name, values in zip(self.columns, (latitude, longitude), strict=True):
            column = np.full(len(columns[name]), np.nan)
            column[known] = np.round(values, digits)
            type_ = columns[name].type
            masked[name] = from_floats(column, with_fractions(type_) if self.is_locally_private else type_)
        return masked


class MovingTechnique(PositionTechnique):
    """A technique that moves every position by a random distance in a random direction."""

    digits: int = Field(default=6, ge=0, le=12, description="decimals of a degree that are shown; 5 are about a metre")
    one_move_per: Literal["place", "row"] = Field(
        default="place", description="whether equal positions move together; moved apart, their mean gives them away"
    )
    random: ClassVar[bool] = True

    @abstractmethod
    def distance(self, reach: FloatArray, draws: Draws) -> FloatArray:
        """The distance in metres by which to move each of m positions of this `reach`, shape (m,)."""

    def reach(
        self,
        latitude: FloatArray,
        longitude: FloatArray,  # noqa: ARG002 - a technique that uses other people's positions needs these
        people: IntArray,  # noqa: ARG002
        place: str,  # noqa: ARG002
    ) -> FloatArray:
        """A radius in metres around each of m positions, of `people` each, if other people decide it; else 0."""
        return np.zeros(len(latitude))

    def facts(self, reach: FloatArray, moved: FloatArray) -> dict[str, Fact]:
        """Facts to report about the reach of positions and about the metres by which people were moved."""
        return {
            "places": len(reach),
            "mean_metres": two_digits(moved.mean()),
            "median_metres": two_digits(np.median(moved)),
        }

    def apply(self, columns: Columns, context: Context) -> Applied:
        from anon_pipeline.masking.sphere import moved

        latitude, longitude, known = self.read(columns, context)
        if self.one_move_per == "place":
            places, of_row, people = _places(latitude, longitude)
            draws = context.draws.of(latitude[places], longitude[places])
        else:
            places, of_row = np.arange(len(known)), np.arange(len(known))
            people, draws = np.ones(len(known), dtype=np.int64), context.draws.at(known)
        here, there = latitude[places], longitude[places]
        if not len(places):
            return Applied(self.written(columns, known, latitude, longitude, self.digits), facts={"places": 0})
        reach = self.reach(here, there, people, context.place)
        draws = draws.given(reach)  # two moves in one direction, one farther than the other, would point at the origin
        new = moved(here, there, self.distance(reach, draws), 2 * np.pi * draws.uniform())
        latitude_after, longitude_after = (np.round(half[of_row], self.digits) for half in new)
        facts = self.facts(reach, distances(latitude, longitude, latitude_after, longitude_after))
        return Applied(self.written(columns, known, latitude_after, longitude_after, self.digits), facts=facts)


def _places(latitude: FloatArray, longitude: FloatArray) -> tuple[IntArray, IntArray, npt.NDArray[np.int64]]:
    """One row of each distinct position, the number of each row's position, and the rows per position."""
    order = np.lexsort((longitude, latitude))
    changes = (np.diff(latitude[order]) != 0) | (np.diff(longitude[order]) != 0)
    first = np.r_[True, changes] if len(order) else np.zeros(0, dtype=bool)
    of_row = np.empty(len(order), dtype=np.int64)
    of_row[order] = np.cumsum(first) - 1
    return order[first], of_row, np.bincount(of_row, minlength=int(first.sum()))
