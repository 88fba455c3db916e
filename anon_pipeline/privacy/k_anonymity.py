"""k-anonymity: every class has at least k people (Samarati and Sweeney 1998)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import number_of
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.statistics import ClassStatistics


class KAnonymity(PrivacyModel):
    """min f_j >= k. P. Samarati, L. Sweeney: Protecting privacy when disclosing information (1998)."""

    name: ClassVar[str] = "k_anonymity"
    k: int = Field(ge=2)

    def values(self, classes: ClassStatistics) -> FloatArray:
        return classes.sizes.astype(float)

    def holds(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        return classes.sizes >= self.k

    def demand(self) -> str:
        return f"every class has at least {self.k} people"

    def impossible(self, classes: ClassStatistics) -> str | None:
        return (
            f"the table has {number_of(classes.n, 'person', 'people')}, fewer than k = {self.k}"
            if classes.n < self.k
            else None
        )
