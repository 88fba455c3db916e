"""Synthetic releases in a spec: the share of the budget, the targets of the rows, and a published model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from anon_pipeline.spec.differential_privacy import DifferentialPrivacy
from anon_pipeline.spec.parts import Column, Strict

#: Parts of a spec that are about grouping people, and do not apply to a synthetic table.
OF_GROUPED_RELEASES = (
    "privacy", "steps", "suppression", "guide", "grouping", "recode", "person", "across_releases",
    "utility", "audit", "sampling_fraction", "sampling_weight", "frontier", "missing_target", "linked_tables_accepted",
)  # fmt: skip


class Synthesis(Strict):
    """How a synthetic table is made; every value here is chosen without looking at the data.

    `epsilon` (with the delta of the budget) or `rho` is the part of the budget that one release takes; if neither is
    stated, it takes the whole budget.
    """

    #: The parts that are in the published policy of a synthetic release.
    published: ClassVar[Any] = {
        **dict.fromkeys(("dataset", "description", "owner", "release", "target"), True),
        **dict.fromkeys(("approver", "purpose", "recipients", "license"), True),
        **dict.fromkeys(("differential_privacy", "synthesis", "model"), True),
        "columns": {"__all__": {"role", "type", "why"}},
    }

    epsilon: float | None = Field(default=None, gt=0, le=100)
    rho: float | None = Field(default=None, ge=1e-6, le=100)
    targets: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=4)  # the spec's target if absent
    rounds: int = Field(default=24, ge=1, le=500)  # number of pairs of columns that are chosen and counted
    cells: int = Field(default=40_000, ge=100, le=10_000_000)  # numbers that the model may hold

    @model_validator(mode="after")
    def _states_one_share(self) -> Synthesis:
        if self.epsilon is not None and self.rho is not None:
            raise ValueError("states epsilon or rho, not both")
        if self.targets is not None and len(set(self.targets)) < len(self.targets):
            raise ValueError("targets: a column stands twice; name each once")
        return self


class PublishedModel(Strict):
    """A model of the target that is published with a synthetic release, at no further cost of budget.

    `naive_bayes` comes from the noisy counts themselves, `synthetic` is boosting trained on the synthetic table.
    """

    kind: Literal["naive_bayes", "synthetic"] = "naive_bayes"


def require_synthetic(
    stated: Set[str],
    asked: DifferentialPrivacy | None,
    columns: Mapping[str, Column],
    released: Sequence[str],
    target: str,
    targets: Sequence[str],
) -> DifferentialPrivacy:
    """Refuse parts that a synthetic release cannot have, and missing parts that it needs.

    Parameters
    ----------
    stated : the parts that the spec states
    target, targets : the column that the spec's models predict, and those that the table keeps predictable

    Raises
    ------
    ValueError
        With a sentence.
    """
    if asked is None:
        raise ValueError("differential_privacy: is missing; a synthetic release states unit, budget and domains")
    foreign = [name for name in OF_GROUPED_RELEASES if name in stated]
    if foreign:
        raise ValueError(f"{foreign[0]}: is of grouped releases, and this one is synthetic; take it out")
    if not released:
        raise ValueError("columns: none is released; give some a role other than identifier and exclude")
    for name, column in columns.items():
        if column.steps or column.made:
            raise ValueError(f"columns.{name}: a synthetic release has no masking steps; take them out")
    for name in released:
        if name not in asked.domains or asked.domains[name].unknown:
            raise ValueError(
                f"differential_privacy.domains.{name}: is missing; a synthetic table has values that are public "
                "beforehand: state range, bins or values, or give the column the role exclude"
            )
    for place, names in (("target", [target] if target else []), ("synthesis.targets", targets)):
        for name in names:
            if name not in released:
                raise ValueError(f"{place}: {name!r} is no column that is released")
    if "model" in stated and not target:
        raise ValueError("model: needs a target; name the column that it predicts")
    return asked


def require_grouped(synthesis: Synthesis | None, model: PublishedModel | None, target: str) -> None:
    """Refuse parts of synthetic releases in the spec of a grouped one, which needs a target.

    Raises
    ------
    ValueError
        With a sentence.
    """
    for name, section in (("synthesis", synthesis), ("model", model)):
        if section is not None:
            raise ValueError(f"{name}: is of synthetic releases; add release: synthetic, or take it out")
    if not target:
        raise ValueError("target: is missing; name the column that models will predict from the release")
