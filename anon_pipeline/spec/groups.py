"""Steps of a spec that count people by groups: what their figures would tell of people whose group is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon_pipeline.spec.parts import Column, MaskingStep, Role


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
