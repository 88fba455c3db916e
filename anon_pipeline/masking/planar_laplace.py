"""The table technique that moves positions by planar Laplace noise (geo-indistinguishability)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator
from scipy.special import lambertw
from typing_extensions import override

from anon_pipeline.masking.base import Applied, Columns, Context, Fact, Guarantee
from anon_pipeline.masking.order import FloatArray
from anon_pipeline.masking.positions import MovingTechnique
from anon_pipeline.masking.sphere import HALF_CIRCUMFERENCE
from anon_pipeline.tables import IntArray


class PlanarLaplace(MovingTechnique):
    """Every position moves by planar Laplace noise: places within r metres of each other are alike up to e^(epsilon r).

    M. Andrés, N. Bordenabe, K. Chatzikokolakis, C. Palamidessi: Geo-indistinguishability: differential privacy for
    location-based systems, CCS 2013. The radius is -(W((p - 1) / e) + 1) / epsilon with p uniform and W the lower
    branch of Lambert's function. State epsilon per metre, or, as there, a `level` l that holds within a `radius`:
    epsilon = l / radius. Distances go along great circles, which is the plane as long as they are small against the
    Earth. Several positions of one person add up their epsilons.
    """

    technique: Literal["planar_laplace"] = "planar_laplace"
    epsilon: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="per metre")
    level: float | None = Field(default=None, gt=0, le=50, description="epsilon at the distance `radius`")
    radius: float | None = Field(default=None, gt=0, le=1_000_000, description="in metres, with `level`")

    meaning: ClassVar[str] = "moves a position by noise under which near places cannot be told apart"
    guarantee: ClassVar[Guarantee] = "local DP"
    use_when: ClassVar[str] = "each position needs a promise that holds whatever else is known"

    # Moved together, two people would be seen to stand at one place, however much noise there is.
    one_move_per: Literal["place", "row"] = Field(
        default="row", description="whether equal positions move apart; the guarantee needs it"
    )

    @model_validator(mode="after")
    def _has_one_scale(self) -> PlanarLaplace:
        if (self.epsilon is None) != (self.level is not None and self.radius is not None):
            raise ValueError("epsilon: give either epsilon per metre, or level and radius")
        if self.epsilon is not None and (self.level is not None or self.radius is not None):
            raise ValueError("epsilon: stands beside level or radius; give one or the other")
        return self

    @property
    def epsilon_per_metre(self) -> float:
        return self.epsilon if self.epsilon is not None else (self.level or 0.0) / (self.radius or 1.0)

    @override
    def distance(
        self,
        latitude: FloatArray,
        longitude: FloatArray,
        people: IntArray,
        context: Context,
    ) -> tuple[FloatArray, dict[str, Fact]]:
        metres = laplace_radius(context.draws.uniform(len(latitude)), self.epsilon_per_metre)
        return np.minimum(metres, HALF_CIRCUMFERENCE), {"epsilon_per_metre": self.epsilon_per_metre}

    def apply(self, columns: Columns, context: Context) -> Applied:
        applied = super().apply(columns, context)
        notes = ["geo-indistinguishability: epsilon is per metre; that a position is missing is shown as it is"]
        if self.one_move_per == "place":
            notes.append("equal positions move together, which shows that they were equal: no guarantee")
        is_kept: Guarantee = "local DP" if self.one_move_per == "row" else "none"
        return Applied(applied.columns, facts=applied.facts, notes=tuple(notes), guarantee=is_kept)


def laplace_radius(uniform: FloatArray, epsilon: float) -> FloatArray:
    """Radii of planar Laplace noise from uniform numbers, shape (n,): Gamma(2, 1 / epsilon)."""
    radius: FloatArray = -(lambertw((uniform - 1) / np.e, k=-1).real + 1) / epsilon
    return radius
