"""k-map: every class matches at least k people of a population, whoever is in the table.

L. Sweeney: Computational disclosure control: a primer on data privacy protection, PhD thesis, MIT, 2001; K. El Emam,
F. K. Dankar: Protecting privacy using k-anonymity, JAMIA 15(5), 2008.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import number_of
from anon_pipeline.privacy.population import PopulationModel
from anon_pipeline.privacy.statistics import ClassStatistics


class KMap(PopulationModel):
    """min F_j >= k over the released classes. Monotone: the F_j of merged classes add."""

    name: ClassVar[str] = "k_map"
    k: int = Field(ge=2)

    def values(self, classes: ClassStatistics) -> FloatArray:
        return self.matching(classes).astype(float)

    def holds(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        return self.matching(classes) >= self.k

    def demand(self) -> str:
        return f"every class matches at least {self.k} people of the population"

    def impossible(self, classes: ClassStatistics) -> str | None:
        people = int(self.matching(classes).sum())
        if people < self.k:
            matched = number_of(people, "person", "people")
            return f"all classes together match {matched} of the population, fewer than k = {self.k}"
        return super().impossible(classes)
