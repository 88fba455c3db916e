"""What a spec says of a synthetic release: its share of the budget, what its rows must serve for, a model beside it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from anon_pipeline.spec.parts import Strict

#: Parts of a spec that are about grouping people, and say nothing of a synthetic table.
OF_GROUPED_RELEASES = (
    "privacy", "steps", "suppression", "guide", "grouping", "recode", "person", "across_releases",
    "utility", "audit", "sampling_fraction", "frontier",
)  # fmt: skip


class Synthesis(Strict):
    """How a synthetic table is made; every value here is chosen without looking at the data.

    `epsilon` (with the delta of the budget) or `rho` is what one release takes of the budget; all of it where neither
    is stated.
    """

    epsilon: float | None = Field(default=None, gt=0, le=100)
    rho: float | None = Field(default=None, ge=1e-6, le=100)
    targets: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=4)  # the spec's target if absent
    rounds: int = Field(default=24, ge=1, le=500)  # pairs of columns that are chosen and counted
    cells: int = Field(default=40_000, ge=100, le=10_000_000)  # numbers that the model may hold

    @model_validator(mode="after")
    def _states_one_share(self) -> Synthesis:
        if self.epsilon is not None and self.rho is not None:
            raise ValueError("states epsilon or rho, not both")
        if self.targets is not None and len(set(self.targets)) < len(self.targets):
            raise ValueError("targets: a column stands twice; name each once")
        return self


class PublishedModel(Strict):
    """A model of the target that is published with a synthetic release, and costs nothing beside it.

    `naive_bayes` comes from the noisy counts themselves, `synthetic` is boosting trained on the synthetic table.
    """

    kind: Literal["naive_bayes", "synthetic"] = "naive_bayes"
