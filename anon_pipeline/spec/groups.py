"""Steps of a spec that count people by groups: what a table of groups cannot have, and what it would tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anon_pipeline.spec.parts import NO_ROWS, Column, MaskingStep, Role

if TYPE_CHECKING:
    from anon_pipeline.spec.release import ReleaseSpec


def require_no_rows(spec: ReleaseSpec) -> None:
    """Check that the spec of a table of groups demands nothing of rows of people, and k people of every group.

    Raises
    ------
    ValueError
        If it does not hold.
    """
    place = f"steps.{len(spec.steps) - 1}"
    threshold = spec.steps[-1].smallest_group or 0
    if threshold < spec.k:
        raise ValueError(
            f"{place}.threshold: is {threshold}, and k = {spec.k} asks for more people in every group; raise it "
            f"to {spec.k}"
        )
    for demand in spec.privacy:
        if demand.name != "k_anonymity":
            raise ValueError(f"privacy.{demand.name}: {NO_ROWS}; take it out")
    if spec.audit.bounds:
        raise ValueError(f"audit: sets bounds on attacks, and {NO_ROWS}; take them out")
    if spec.across_releases is not None:
        raise ValueError(f"across_releases: {NO_ROWS}; take it out")
    if spec.frontier is not None:
        raise ValueError(f"frontier: {NO_ROWS}; take it out")
    if spec.suppression.limit:
        raise ValueError(f"suppression.limit: {NO_ROWS}; the threshold of {place} says which groups are left out")


def require_everybody(spec: ReleaseSpec) -> None:
    """Check that nobody is left out for want of a target where readers know how many should be counted.

    The difference of what they know and what is shown would be how many have no target, however few these are: people
    who are left out before groups are made are in no group, and so have no company.

    Raises
    ------
    ValueError
        If somebody may be.
    """
    place, step = f"steps.{len(spec.steps) - 1}", spec.steps[-1]
    told = spec.quasi_identifiers if step.stated_known is None else step.stated_known
    known = [name for name in step.grouped_by if name in told]
    if spec.missing_target == "leave_out" and known:
        raise ValueError(
            f"missing_target: readers know how many people share their {known[0]}, and a table without those who have "
            f"no {spec.target} would tell how many these are; write release, so that they are counted, and hidden as "
            f"all others, or say in {place}.known what readers know"
        )


def require_unknown_means(steps: Sequence[MaskingStep], columns: Mapping[str, Column]) -> None:
    """Check that no mean is of values that readers know of everybody, by groups that they do not know.

    Hardly two ways to choose so many of few people have the same mean, so that it tells who is in the group.

    Raises
    ------
    ValueError
        If one is.
    """
    for number, step in enumerate(steps):
        known = {name for name in step.used if name in columns and columns[name].role is Role.QUASI_IDENTIFIER}
        grouped_by = [name for name in step.used if name not in step.averaged]
        unknown = [name for name in grouped_by if name not in known]
        told = [name for name in step.averaged if name in known]
        if told and unknown:
            raise ValueError(
                f"steps.{number}.means: readers know everybody's {told[0]}, and its mean would tell them who has which "
                f"{unknown[0]}; take it out, give it another role if they do not know it, or say in `known` what they "
                "know"
            )
