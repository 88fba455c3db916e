"""The checks on the stored source, before anything is made from it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from anon_pipeline.engine.base import Repetition, SourceFacts
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ReleaseSpec, Role

#: The checks, with the description that Dagster shows before they are first asked.
SOURCE_CHECKS = {
    "has_columns": "The stored table has the columns that the spec keeps.",
    "has_types": "Every column is stored as the type that the spec declares.",
    "has_people": "There are at least k people.",
    "has_target": "The target is known of everyone, unless the spec releases others, and has at least two values.",
    "has_no_person_twice": "No two rows share a value of an identifier, whichever it is.",
}


def checks_of(spec: ReleaseSpec) -> dict[str, str]:
    """The checks on a stored source. If no model is trained, there is no target to check."""
    return {name: text for name, text in SOURCE_CHECKS.items() if name != "has_target" or not spec.aggregates}


def ask_source(run: Run, raw_data: Stage) -> list[Question]:
    """The questions to a stored source, counted from its file."""
    types = SourceFacts.from_json(raw_data.facts).types()
    stored = run.engine.describe(raw_data.folder / DATA, run.spec, types)
    asked = checks_of(run.spec)
    return [question for question in source_questions(run.spec, stored) if question.name in asked]


CHECKS = CheckDef("source_checks", "raw_data", ("raw_data",), checks_of, ask_source)


def source_questions(spec: ReleaseSpec, stored: SourceFacts) -> list[Question]:
    """The questions to the stored source; `stored` was counted from its file."""
    named = pd.DataFrame([{"name": column.name, "type": column.type.value} for column in stored.columns])
    expected = spec.stored
    declared = {name: column.type.value for name, column in spec.columns.items() if column.type is not None}
    wrong = [
        column.name for column in stored.columns if declared.get(column.name, column.type.value) != column.type.value
    ]
    target = next((column for column in stored.columns if column.name == spec.target), None)
    of_everyone = spec.missing_target != "release"
    unknown = target is None or (of_everyone and target.missing)
    totals = pd.DataFrame(
        {
            "rows": [stored.rows],
            "wrong_types": [len(wrong)],
            # Answers are published, so this one reveals that there are two values, but not how many there are.
            "target_values": [0 if target is None or unknown else min(target.distinct, 2)],
            "duplicate_persons": [stored.duplicate_persons],
        }
    )
    return [
        Question(
            "has_columns",
            f"the stored table has the {len(expected)} columns that the spec keeps",
            "ExpectColumnDistinctValuesToEqualSet",
            {"column": "name", "value_set": expected},
            named,
            measured=len(stored.columns),
            remedy="run raw_data again",
        ),
        Question(
            "has_types",
            "no column is stored as another type than the spec declares",
            "ExpectColumnMaxToBeBetween",
            {"column": "wrong_types", "max_value": 0},
            totals,
            remedy="correct the type in the spec",
            idle="" if declared else "the spec declares no type",
        ),
        Question(
            "has_people",
            f"at least k = {spec.k} people",
            "ExpectColumnMinToBeBetween",
            {"column": "rows", "min_value": spec.k},
            totals,
            remedy="nothing can be released from so few",
        ),
        Question(
            "has_target",
            f"the target {spec.target} {'is known of everyone and ' * of_everyone}has at least two values",
            "ExpectColumnMinToBeBetween",
            {"column": "target_values", "min_value": 2},
            totals,
            remedy="choose another target",
        ),
        Question(
            "has_no_person_twice",
            "no row shares an identifier with another, each identifier taken alone",
            "ExpectColumnMaxToBeBetween",
            {"column": "duplicate_persons", "max_value": 0},
            totals,
            remedy=_how_they_repeat(stored.identifiers),
            idle="" if spec.with_role(Role.IDENTIFIER) else "no column has the role identifier",
        ),
    ]


def _how_they_repeat(identifiers: Sequence[Repetition]) -> str:
    """Which identifiers repeat in several rows and which do not, and what to do about it; never a value."""
    repeated = [identifier for identifier in identifiers if identifier.rows]
    sentences = [
        f"{identifier.name} repeats in {identifier.rows:,} rows, one value in {identifier.most:,} of them at most"
        for identifier in repeated
    ]
    single = [identifier.name for identifier in identifiers if not identifier.rows]
    if single:
        sentences.append(f"{', '.join(single)} does not repeat, and so does not tell that rows are one person's")
    sentences.append("keep one row a person, else a class of k rows may be fewer people")
    sentences.append("a column that different people share, such as a name, has the role exclude")
    return "; ".join(sentences)
