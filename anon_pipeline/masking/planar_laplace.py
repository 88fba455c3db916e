"""The table technique that moves positions by planar Laplace noise (geo-indistinguishability)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.arrays import FloatArray
from anon_pipeline.masking.base import Applied, Columns, Context, Fact, Guarantee
from anon_pipeline.masking.draws import Draws
from anon_pipeline.masking.numbers import two_digits
from anon_pipeline.masking.positions import MovingTechnique
from anon_pipeline.masking.sphere import RADIUS

#: The number of bisections after which a radius is as exact as a float.
HALVINGS = 56


class PlanarLaplace(MovingTechnique):
    """Every position moves by planar Laplace noise: places within r metres of each other are alike up to e^(epsilon r).

    M. Andrés, N. Bordenabe, K. Chatzikokolakis, C. Palamidessi: Geo-indistinguishability: differential privacy for
    location-based systems, CCS 2013. The noise is that of the sphere, with a density by area of e^(-epsilon r) at r
    metres along a great circle: for distances small against the Earth that of the plane, and for tiny epsilon the same
    everywhere. State epsilon per metre, or, as there, a `level` l that holds within a `radius`: epsilon = l / radius.
    Several positions of one person add up their epsilons.
    """

    technique: Literal["planar_laplace"] = "planar_laplace"
    epsilon: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="per metre")
    level: float | None = Field(default=None, gt=0, le=50, description="epsilon at the distance `radius`")
    radius: float | None = Field(default=None, gt=0, le=1_000_000, description="in metres, with `level`")

    meaning: ClassVar[str] = "moves a position by noise under which near places cannot be told apart"
    guarantee: ClassVar[Guarantee] = "local DP"
    use_when: ClassVar[str] = "each position needs a promise that holds whatever else is known"

    # Moved together, two people could be seen to share a place, however much noise there is.
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

    @property
    @override
    def is_locally_private(self) -> bool:
        return self.one_move_per == "row"

    @override
    def distance(self, reach: FloatArray, draws: Draws) -> FloatArray:
        return radius_beyond(draws.beyond(), self.epsilon_per_metre)

    @override
    def facts(self, reach: FloatArray, moved: FloatArray) -> dict[str, Fact]:
        expected = expected_radius(self.epsilon_per_metre)  # drawn ones could reveal the last person's position
        return {"epsilon_per_metre": self.epsilon_per_metre, "expected_metres": two_digits(expected)}

    @override
    def apply(self, columns: Columns, context: Context) -> Applied:
        applied = super().apply(columns, context)
        notes = ["geo-indistinguishability: epsilon is per metre; that a position is missing is shown as it is"]
        if not self.is_locally_private:
            notes = ["equal positions move together, which shows that they were equal: no guarantee"]
        is_kept: Guarantee = "local DP" if self.is_locally_private else "none"
        return Applied(applied.columns, facts=applied.facts, notes=tuple(notes), guarantee=is_kept)


def laplace_radius(uniform: FloatArray, epsilon: float) -> FloatArray:
    """Radii in metres of Laplace noise on the sphere from uniform numbers, shape (n,)."""
    return radius_beyond(1 - uniform, epsilon)


def radius_beyond(part: FloatArray, epsilon: float) -> FloatArray:
    """The radius in metres beyond which this part of all noise lies, shape (n,).

    The density is proportional to e^(-epsilon r) sin(r / R) from 0 to half the circumference; by area it is
    e^(-epsilon r). With t = r / R and a = epsilon R the part of all noise beyond t is
    (e^(-a t) (cos t + a sin t) + e^(-a pi)) / (1 + e^(-a pi)). This is solved by bisection below the radius in the
    plane, Gamma(2, 1 / epsilon), since a sphere has less area at the same radius.
    """
    scale = epsilon * RADIUS
    wanted = part * (1 + np.exp(-scale * np.pi)) - np.exp(-scale * np.pi)
    low, high = np.zeros(len(part)), np.minimum(planar_radius_beyond(part, epsilon) / RADIUS, np.pi)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = np.exp(-scale * middle) * (np.cos(middle) + scale * np.sin(middle)) > wanted
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    radius: FloatArray = (low + high) / 2 * RADIUS
    return radius


def planar_radius_beyond(part: FloatArray, epsilon: float) -> FloatArray:
    """The radius in the plane beyond which this part of all noise lies, by the lower branch of Lambert's function."""
    with np.errstate(over="ignore"):  # a result beyond all distances on Earth does no harm
        from scipy.special import lambertw  # a quarter of a second, which commands that only read a spec save

        radius: FloatArray = -(lambertw(-part / np.e, k=-1).real + 1) / epsilon
    return radius


def expected_radius(epsilon: float) -> float:
    """The mean of `laplace_radius` in metres: 2 / epsilon where that is small compared with the Earth."""
    return float(laplace_radius((np.arange(10_000) + 0.5) / 10_000, epsilon).mean())
