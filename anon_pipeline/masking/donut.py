"""Table techniques that move positions into a ring around them: of stated radii, or wide enough to hold k people."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.masking.base import Fact
from anon_pipeline.masking.draws import Draws
from anon_pipeline.masking.numbers import two_digits
from anon_pipeline.masking.positions import MovingTechnique
from anon_pipeline.masking.sphere import arc_of_chord, area_uniform, unit_vectors

#: An eighth of the circumference of the Earth: no masking moves people further.
FARTHEST = 5_000_000
Metres = Annotated[float, Field(ge=0, le=FARTHEST)]


class Donut(MovingTechnique):
    """Every position moves to a random place at least `inner` and at most `outer` metres away, uniformly by area.

    Donut masking (K. Hampton et al.: Mapping health data: improved privacy protection with donut method geomasking,
    American Journal of Epidemiology 172(9), 2010), on the sphere.
    """

    technique: Literal["donut"] = "donut"
    inner: Metres = Field(description="the least distance in metres")
    outer: Metres = Field(description="the largest distance in metres")

    meaning: ClassVar[str] = "moves a position to a random place between two distances"
    use_when: ClassVar[str] = "maps must look right, and population is about as dense everywhere"

    @model_validator(mode="after")
    def _is_a_ring(self) -> Donut:
        if not self.inner < self.outer:
            raise ValueError("inner: must be less than outer")
        return self

    @override
    def distance(self, reach: FloatArray, draws: Draws) -> FloatArray:
        n = len(reach)
        return area_uniform(draws.uniform(), np.full(n, self.inner), np.full(n, self.outer))


class PopulationDonut(MovingTechnique):
    """Every position moves within the circle around it that k people of the table live in.

    Population-adaptive donut masking (W. Allshouse et al.: Geomasking sensitive health data and privacy protection: an
    evaluation using an E911 database, Geocarto International 25(6), 2010). The outer radius reaches the k-th person,
    who moves counted among them, rounded up to two digits, and is at least `least` metres; the inner is `inner_share`
    of it. Where others come or go and make it another radius, the move is drawn anew. Nearest people are found by a
    k-d tree on unit vectors, whose order is that of great circles.
    """

    technique: Literal["population_donut"] = "population_donut"
    k: int = Field(ge=2, le=10_000, description="how many people of the table must live within the outer radius")
    inner_share: float = Field(default=0.1, ge=0, lt=1, description="the inner radius as a part of the outer")
    least: Metres = Field(default=100, gt=0, description="the least outer radius in metres")

    meaning: ClassVar[str] = "moves a position within a circle that k people of the table live in"
    use_when: ClassVar[str] = "town and country stand in one table: dense places need small moves, sparse ones large"

    @override
    def reach(self, latitude: FloatArray, longitude: FloatArray, people: IntArray, place: str) -> FloatArray:
        if int(people.sum()) < self.k:
            raise InputError(
                f"{place}.k: the table has {number_of(int(people.sum()), 'person', 'people')} with a position, fewer "
                f"than k = {self.k}"
            )
        outer = np.maximum(_radius_of(latitude, longitude, people, self.k), self.least)
        if float(outer.max()) > FARTHEST:
            raise InputError(f"{place}.k: a position has no {self.k} people within 5,000 km; take a smaller k")
        digit = 10.0 ** (np.floor(np.log10(outer)) - 1)
        return np.ceil(outer / digit) * digit

    @override
    def distance(self, reach: FloatArray, draws: Draws) -> FloatArray:
        return area_uniform(draws.uniform(), self.inner_share * reach, reach)

    @override
    def facts(self, reach: FloatArray, moved: FloatArray) -> dict[str, Fact]:
        radius = {"median_radius": two_digits(np.median(reach)), "largest_radius": two_digits(reach.max())}
        return {**super().facts(reach, moved), **radius}


def _radius_of(latitude: FloatArray, longitude: FloatArray, people: IntArray, k: int) -> FloatArray:
    """Metres to the k-th person from each of m positions, the people at the position itself counted; shape (m,)."""
    from scipy.spatial import cKDTree

    points = unit_vectors(latitude, longitude)
    tree = cKDTree(points)
    radius = np.zeros(len(points))
    pending, neighbours = np.arange(len(points)), min(k, 8, len(points))
    while len(pending):  # most places have few people, so that few neighbours are often enough
        chords, nearest = tree.query(points[pending], k=np.arange(1, neighbours + 1))
        counted = np.cumsum(people[nearest], axis=1)
        enough = counted[:, -1] >= k
        reached = (counted >= k).argmax(axis=1)
        radius[pending[enough]] = arc_of_chord(chords[enough, reached[enough]])
        pending, neighbours = pending[~enough], min(4 * neighbours, len(points))
    return radius
