"""The graph: the list of the steps and checks that a spec has, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anon_pipeline.pipeline.checks import audit as audit_bounds
from anon_pipeline.pipeline.checks import budget, candidate, group, own, source, synthetic
from anon_pipeline.pipeline.step import PEOPLE, CheckDef, StepDef
from anon_pipeline.pipeline.steps import (
    aggregated_table,
    anonymized_table,
    anonymizer_tree,
    attack_audit,
    declared_source,
    destinations,
    dp_answers,
    dp_measurements,
    dp_model,
    dp_statistics,
    followed_people,
    frontier,
    group_release,
    masked_data,
    predictions,
    raw_data,
    release,
    synthetic_release,
    synthetic_table,
    trained_model,
    utility,
)
from anon_pipeline.spec import ReleaseSpec

Part = StepDef | CheckDef


def graph_of(spec: ReleaseSpec) -> Graph:
    """The steps and checks of a dataset. A further step needs a file in `steps/` and a line here."""
    statistics: tuple[Part, ...] = ()
    if spec.differential_privacy is not None and spec.differential_privacy.queries is not None:
        statistics = (dp_answers.STEP, budget.CHECKS, dp_statistics.STEP)
    copies = [destinations.STEP] * bool(spec.publish)
    if spec.is_synthetic:
        return Graph(
            spec,
            (
                declared_source.STEP,
                dp_measurements.STEP,
                synthetic_table.STEP,
                synthetic.CHECKS,
                *own.checks_beside(spec, synthetic.CHECKS),
                *[dp_model.STEP] * (spec.model is not None),
                synthetic_release.STEP,
                *copies,
                *statistics,
            ),
        )
    if spec.aggregates:
        return Graph(
            spec,
            [
                raw_data.STEP,
                source.CHECKS,
                masked_data.STEP,
                aggregated_table.STEP,
                group.CHECKS,
                *own.checks_beside(spec, group.CHECKS),
                group_release.STEP,
                *copies,
                *statistics,
            ],
        )
    parts: list[tuple[Part, bool]] = [
        (raw_data.STEP, True),
        (source.CHECKS, True),
        (masked_data.STEP, spec.masks),
        (followed_people.STEP, spec.across_releases is not None),
        (trained_model.STEP, True),
        (predictions.STEP, True),
        (anonymizer_tree.STEP, True),
        (anonymized_table.STEP, True),
        (candidate.CHECKS, True),
        *((part, True) for part in own.checks_beside(spec, candidate.CHECKS)),
        (utility.step_of(spec), True),
        (attack_audit.STEP, spec.audit.enabled),
        (audit_bounds.CHECKS, spec.audit.enabled and bool(audit_bounds.checks_of(spec))),
        (release.STEP, True),
        *((part, True) for part in copies),
        (frontier.STEP, spec.frontier is not None),
        *((part, True) for part in statistics),
    ]
    return Graph(spec, [part for part, asked_for in parts if asked_for])


@dataclass(frozen=True)
class Graph:
    """The steps and checks of a dataset, each after the ones that it needs."""

    spec: ReleaseSpec
    parts: Sequence[Part]

    @property
    def steps(self) -> list[StepDef]:
        return [part for part in self.parts if isinstance(part, StepDef)]

    @property
    def checks(self) -> list[CheckDef]:
        return [part for part in self.parts if isinstance(part, CheckDef)]

    def named(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def sources(self, part: Part) -> dict[str, str]:
        """The inputs of a part: the parts whose results it takes, by the names of its needs."""
        before = list(self.parts[: list(self.parts).index(part)])
        names = {step.name: step.name for step in before}
        for step in before:
            if isinstance(step, StepDef) and step.makes_people:
                names[PEOPLE] = step.name
        further = part.needs_if_made if isinstance(part, StepDef) else ()
        return {need: names[need] for need in (*part.needs, *further) if need in part.needs or need in names}

    def steps_before(self, step: StepDef) -> list[str]:
        """The steps before this one: those whose results it needs, and those whose checks it relies on."""
        needed = [self.named(name) for name in self.sources(step).values()]
        return list(dict.fromkeys(step.of if isinstance(step, CheckDef) else step.name for step in needed))

    @property
    def people(self) -> str:
        """The step whose result is the table of people to group: from the source, masked, or with their cohorts."""
        return [step.name for step in self.steps if step.makes_people][-1]
