"""t-closeness: the distribution of a sensitive column in every class is near its distribution in the table.

N. Li, T. Li, S. Venkatasubramanian: t-closeness: privacy beyond k-anonymity and l-diversity, ICDE 2007.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.emd import Transport, equal_distance, hierarchical_distance, ordered_distance
from anon_pipeline.privacy.exact import as_written, compare
from anon_pipeline.privacy.hierarchy import Hierarchy, subtrees
from anon_pipeline.privacy.sensitive import SensitiveModel
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.privacy.value_counts import ValueCounts


class TCloseness(SensitiveModel):
    """The earth mover's distance from every class to the table is at most t.

    Where no `distance` is named it is `hierarchical` if there is a hierarchy, `ordered` for numbers and dates, `equal`
    for other columns and for those of the type `categorical`, whose numbers are codes. For the ordered distance a
    missing value has the first rank. Where values are missing the class is held against the table a second time, both
    without them.

    Monotone: the earth mover's distance to the fixed table is convex, and a merged class is a mean of the two.
    """

    name: ClassVar[str] = "t_closeness"
    larger_is_safer: ClassVar[bool] = False
    t: float = Field(ge=0, le=1)
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    hierarchy: Hierarchy | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> TCloseness:
        if self.distance == "hierarchical" and self.hierarchy is None:
            raise ValueError("hierarchy: is missing; the hierarchical distance is measured along it")
        if self.distance in ("equal", "ordered") and self.hierarchy is not None:
            raise ValueError(f"hierarchy: has no meaning for the distance {self.distance}; remove one of them")
        return self

    def values_in(self, classes: ClassStatistics) -> FloatArray:
        return self._transport(classes).distance

    def holds_in(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        transport = self._transport(classes)
        return compare(transport.work, as_written(self.t), transport.scale) <= 0

    def demand(self) -> str:
        kind = f"{self.distance or 'hierarchical'} " if self.distance or self.hierarchy else ""
        return (
            f"the {kind}earth mover's distance of {self.column} to the whole table is at most {self.t:g} in every class"
        )

    def impossible(self, classes: ClassStatistics) -> str | None:
        """A single class of everybody meets every t; t = 0 is refused, since it leaves little but that class."""
        if self.t == 0 and np.count_nonzero(self.histogram(classes).total) > 1:
            return (
                f"t = 0 asks every class to show {self.column} exactly as the whole table does, which leaves little "
                "but one class of everybody"
            )
        return super().impossible(classes)

    def _transport(self, classes: ClassStatistics) -> Transport:
        histogram = self.histogram(classes)
        if self.hierarchy is not None:
            return self._along(self.hierarchy, histogram)
        if self.distance == "ordered" and not histogram.ordered:
            raise InputError(
                f"privacy.{self.name}.distance: {self.column!r} holds neither numbers nor dates, so its values have no "
                "order; choose equal, or hierarchical with a hierarchy"
            )
        return distance_to_table(histogram, ordered=None if self.distance is None else self.distance == "ordered")

    def _along(self, hierarchy: Hierarchy, histogram: Histogram) -> Transport:
        present = [value for value, count in zip(histogram.values, histogram.total, strict=True) if count]
        try:
            return hierarchical_distance(ValueCounts.compared(histogram), subtrees(hierarchy, present))
        except KeyError as missing:
            raise InputError(
                f"privacy.{self.name}.hierarchy: lacks {missing.args[0]} of the {len(present)} values of "
                f"{self.column!r}; give each a place (a number that is a text in the table needs quotes)"
            ) from None


def distance_to_table(histogram: Histogram, *, ordered: bool | None = None) -> Transport:
    """The distance of each class to the table; if `ordered` is None, ordered for numbers and dates, else equal.

    Numbers of a column of categories are codes: how far apart two of them are says nothing.
    """
    counts = ValueCounts.compared(histogram)
    along = histogram.ordered and not histogram.categorical if ordered is None else ordered
    return ordered_distance(counts) if along else equal_distance(counts)
