"""The base of all privacy models: a demand, a value measured in each class, and a comparison of the two."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import Demand


class PrivacyModel(Demand):
    """One demand on every equivalence class.

    A subclass states its parameters as fields, names itself in `name` and says how a class is measured and judged.
    """

    #: Whether merging two classes that hold always gives one that holds, and merging any class with one that holds
    #: never makes the worst value worse. Enforcement by merging is then sure to end.
    monotone: ClassVar[bool] = True
    #: Whether large measured values are the good ones (k, l) or the bad ones (t, beta).
    larger_is_safer: ClassVar[bool] = True

    @abstractmethod
    def values(self, classes: ClassStatistics) -> FloatArray:
        """The measured quantity in each class, shape (J,)."""

    @abstractmethod
    def holds(self, classes: ClassStatistics) -> npt.NDArray[np.bool_]:
        """Whether each class meets the demand, shape (J,), decided on exact counts where that is possible."""

    @abstractmethod
    def demand(self) -> str:
        """The demand in words, for reports: "every class has at least 10 people"."""

    def impossible(self, classes: ClassStatistics) -> str | None:  # noqa: ARG002 (for subclasses)
        """The reason why no grouping of these people can meet the demand, if there is a known one; None otherwise.

        `classes` may be any grouping of the table, for example everybody in one class.
        """
        return None

    def measured(self, classes: ClassStatistics) -> float:
        """The worst value over all classes."""
        values = self.values(classes)
        return float(values.min() if self.larger_is_safer else values.max())


def privacy_models(demands: Sequence[Demand]) -> list[PrivacyModel]:
    """The demands of a spec as privacy models.

    Raises
    ------
    TypeError
        For a demand that was registered and is no privacy model.
    """
    models = [demand for demand in demands if isinstance(demand, PrivacyModel)]
    if len(models) < len(demands):
        raise TypeError("a class under PRIVACY_MODELS is no PrivacyModel")
    return models
