"""delta-presence: nobody learns with much certainty that a person of the population is in the table, or is not.

M. E. Nergiz, M. Atzori, C. Clifton: Hiding the presence of individuals from shared databases, SIGMOD 2007.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import number_of
from anon_pipeline.privacy.exact import as_written, compare
from anon_pipeline.privacy.population import PopulationModel
from anon_pipeline.privacy.statistics import ClassStatistics


class DeltaPresence(PopulationModel):
    """min <= f_j / F_j <= max for every person of the population.

    A person in no class is present with the chance 0. With min > 0 one such person breaks the demand, and as it is a
    demand on the whole population, then no class holds.

    Monotone: (f_1 + f_2) / (F_1 + F_2) lies between f_1 / F_1 and f_2 / F_2, and who is in no class stays outside. That
    needs F_j that add; a merged class shown as one wide box takes in people of neither part, and can fall below min.
    """

    name: ClassVar[str] = "delta_presence"
    larger_is_safer: ClassVar[bool] = False
    min: float = Field(ge=0, le=1)
    max: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> DeltaPresence:
        if self.min > self.max:
            raise ValueError("min: is above max, so no chance of presence lies between them")
        return self

    def values(self, classes: ClassStatistics) -> FloatArray:
        """f_j / F_j, infinite where nobody of the population matches."""
        with np.errstate(divide="ignore"):
            presence: FloatArray = np.divide(classes.sizes, self.matching(classes))
        return presence

    def holds(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        people = self.matching(classes)
        within = compare(classes.sizes, as_written(self.max), people) <= 0
        within &= compare(classes.sizes, as_written(self.min), people) >= 0
        return within & (not self._breaks_outside(classes))

    def measured(self, classes: ClassStatistics) -> float:
        """The chance of presence that lies furthest outside the two limits, or nearest to one of them."""
        presence = self.values(classes)
        if classes.population_unmatched:
            presence = np.append(presence, 0.0)
        if self.min > 0:
            return float(presence[np.argmin(np.minimum(presence - self.min, self.max - presence))])
        return float(presence.max())

    def demand(self) -> str:
        least, most = 100 * self.min, 100 * self.max
        return f"every person of the population is in the table with a chance from {least:g} % to {most:g} %"

    def impossible(self, classes: ClassStatistics) -> str | None:
        reason = super().impossible(classes)
        if reason is not None:
            return reason
        if self._breaks_outside(classes):
            match = number_of(int(classes.population_unmatched or 0), "person matches", "people match")
            return (
                f"of the population, {match} no class, so their chance of presence is 0, below min = {self.min:g}; "
                "narrow the population to those who could be in the table"
            )
        # The mean of the presences, n / sum F_j, is the same for every grouping, and lies between the extremes.
        everybody = classes.merge(np.zeros(len(classes.sizes), dtype=np.int64), 1)
        if self.holds(everybody).all():
            return None
        share = float(self.values(everybody)[0])
        return (
            f"the table holds {share:.6g} of the people of the population who match a class, "
            f"which is not from {self.min:g} to {self.max:g}"
        )

    def _breaks_outside(self, classes: ClassStatistics) -> bool:
        return self.min > 0 and bool(classes.population_unmatched)
