"""The blocking checks: what is asked of the stored source and of the stored candidate before anything leaves."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pandas as pd

from anon_pipeline.engine.base import Engine, Repetition, SourceFacts
from anon_pipeline.errors import Refused
from anon_pipeline.home import write_file
from anon_pipeline.pipeline import following
from anon_pipeline.pipeline.expectations import Answer, Question, ask
from anon_pipeline.pipeline.following import people_of
from anon_pipeline.pipeline.naming_check import unshared_values
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.technical_names import technical
from anon_pipeline.privacy.judge import judge_release, name_of
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.spec import ReleaseSpec, Role

#: Checks and what Dagster shows of them before they were first asked.
RAW_CHECKS = {
    "has_columns": "The stored table has the columns that the spec keeps.",
    "has_types": "Every column is stored as the type that the spec declares.",
    "has_people": "There are at least k people.",
    "has_target": "The target is known of everyone and has at least two values.",
    "has_no_person_twice": "No two rows share a value of an identifier, whichever it is.",
}
CANDIDATE_CHECKS = {
    "has_released_columns_only": "The candidate has no identifier and no excluded column.",
    "has_values_of_the_source": "The candidate holds no value that the source does not.",
    "accounts_for_every_row": "Released and suppressed rows are the rows of the source.",
    "names_shared_values_only": "Every value of a quasi-identifier that the candidate names is shared by k people.",
    "suppresses_within_the_limit": "No more rows are suppressed than the spec allows.",
}
#: What to do where the code has broken its own word.
FAULT = "nothing was published; run anonymized_table again, and if it fails again report a fault of this package"
#: What Dagster shows of a check under its technical name.
NAME = "check"
DEMAND = "Every class of the stored candidate meets this demand of the spec."


def source_checks_of(spec: ReleaseSpec) -> dict[str, str]:
    """The checks on a stored source. Where no model is trained, there is no target to ask about."""
    return {name: text for name, text in RAW_CHECKS.items() if name != "has_target" or not spec.aggregates}


def candidate_check_names(spec: ReleaseSpec) -> list[str]:
    """The checks on a candidate: one per demand of the spec, the one across releases, then the common ones."""
    across = [] if spec.across_releases is None else [following.CHECK]
    return [*(name_of(demand) for demand in spec.privacy), *across, *CANDIDATE_CHECKS]


def raw_questions(spec: ReleaseSpec, stored: SourceFacts) -> list[Question]:
    """What must hold of the stored source; `stored` was counted from its file."""
    named = pd.DataFrame([{"name": one.name, "type": one.type.value} for one in stored.columns])
    expected = spec.stored
    declared = {name: one.type.value for name, one in spec.columns.items() if one.type is not None}
    wrong = [one.name for one in stored.columns if declared.get(one.name, one.type.value) != one.type.value]
    target = next((one for one in stored.columns if one.name == spec.target), None)
    totals = pd.DataFrame(
        {
            "rows": [stored.rows],
            "wrong_types": [len(wrong)],
            # Answers are published: that there are two is told, and not how many there are.
            "target_values": [0 if target is None or target.missing else min(target.distinct, 2)],
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
            f"the target {spec.target} is known of everyone and has at least two values",
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
        ),
    ]


def _how_they_repeat(identifiers: Sequence[Repetition]) -> str:
    """Which identifiers stand in several rows and which do not, and what to do about it; never a value."""
    repeated = [one for one in identifiers if one.rows]
    told = [f"{one.name} repeats in {one.rows:,} rows, one value in {one.most:,} of them at most" for one in repeated]
    single = [one.name for one in identifiers if not one.rows]
    if single:
        told.append(f"{', '.join(single)} does not repeat, and so does not tell that rows are one person's")
    told.append("keep one row a person, else a class of k rows may be fewer people")
    told.append("a column that different people share, such as a name, has the role exclude")
    return "; ".join(told)


def candidate_questions(
    spec: ReleaseSpec, engine: Engine, stored: SourceFacts, raw: Stage, candidate: Stage
) -> list[Question]:
    """What must hold of the stored candidate: everything is counted from its file, nothing from the tree."""
    data = candidate.folder / DATA
    columns = engine.columns(data)
    counts = engine.classes(data, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE))
    questions = []
    judgements = judge_release(engine, spec, stored.types(), counts, candidate.folder / CLASSES)
    for demand, judgement in zip(spec.privacy, judgements, strict=True):
        finding = judgement.finding
        if demand.name == "k_anonymity":
            questions.append(
                Question(
                    finding.name,
                    finding.demand,
                    "ExpectColumnMinToBeBetween",
                    {"column": "class_size", "min_value": spec.k},
                    pd.DataFrame({"class_size": counts.sizes}),
                    remedy="nothing was published; run anonymizer_tree again",
                )
            )
            continue
        questions.append(
            Question(
                finding.name,
                finding.demand,
                "ExpectColumnMinToBeBetween",
                {"column": "class_holds", "min_value": 1},
                pd.DataFrame({"class_holds": judgement.holds.astype(int)}),
                measured=finding.measured if finding.measured is not None else "infinite",
                remedy=f"{finding.failing} classes fail; nothing was published: run anonymizer_tree again",
            )
        )
    foreign = _foreign_values(spec, engine, raw, candidate)
    released, suppressed = int(counts.sizes.sum()), int(candidate.facts["suppressed"])
    waiting = int(candidate.facts["waiting"])
    return [
        *questions,
        Question(
            "has_released_columns_only",
            "the candidate has the columns the spec releases, no identifier and no excluded one",
            "ExpectColumnDistinctValuesToEqualSet",
            {"column": "name", "value_set": spec.released},
            pd.DataFrame({"name": list(columns)}),
            measured=len(columns),
            remedy=FAULT,
        ),
        Question(
            "has_values_of_the_source",
            "no released row holds a value that the source does not",
            "ExpectColumnMaxToBeBetween",
            {"column": "rows", "max_value": 0},
            foreign,
            remedy=FAULT,
        ),
        Question(
            "names_shared_values_only",
            f"no value of a quasi-identifier is named that fewer than k = {spec.k} people share",
            "ExpectColumnMaxToBeBetween",
            {"column": "values", "max_value": 0},
            unshared_values(spec, engine, stored.types(), raw, candidate),
            remedy=FAULT,
        ),
        Question(
            "accounts_for_every_row",
            "released and suppressed rows add up to the source's rows",
            "ExpectColumnMaxToBeBetween",
            {"column": "unaccounted", "max_value": 0},
            pd.DataFrame({"unaccounted": [abs(stored.rows - released - suppressed - waiting)]}),
            remedy=FAULT,
        ),
        Question(
            "suppresses_within_the_limit",
            f"at most {spec.suppression.limit:.2%} of the people are suppressed",
            "ExpectColumnMaxToBeBetween",
            {"column": "suppressed", "max_value": int(spec.suppression.limit * stored.rows)},
            pd.DataFrame({"suppressed": [stored.rows - released - waiting]}),
            remedy="raise suppression.limit, or lower the demands",
        ),
    ]


def _foreign_values(spec: ReleaseSpec, engine: Engine, raw: Stage, candidate: Stage) -> pd.DataFrame:
    """Rows per column whose value lies outside the source: another category, or a number beyond its grid points."""
    data, source = candidate.folder / DATA, raw.folder / DATA
    kept = [name for name in spec.released if name not in spec.quasi_identifiers]
    foreign = engine.foreign_values(data, source, kept)
    if spec.recode.form == "range":  # then the class table is what says which texts may stand there
        ranges = candidate.folder / "ranges.parquet"
        foreign |= engine.foreign_values(data, ranges, spec.quasi_identifiers)
    else:
        bounds: dict[str, list[Any] | None] = candidate.facts["bounds"]
        foreign |= engine.foreign_values(
            data, source, [name for name in spec.quasi_identifiers if bounds[name] is None]
        )
        foreign |= engine.out_of_bounds(data, {name: bound for name, bound in bounds.items() if bound is not None})
    return pd.DataFrame({"column": list(foreign), "rows": list(foreign.values())})


def keep_answers(runtime: Runtime, spec: ReleaseSpec, name: str, of: dict[str, Stage], answers: list[Answer]) -> None:
    """Store what the checks said, tied to the very files they judged, for `release` to rely on."""
    with runtime.stages(spec).store(name, of, {}) as folder:
        write_file(folder / "answers.json", json.dumps([dataclasses.asdict(answer) for answer in answers]))


def require_answers(
    runtime: Runtime, spec: ReleaseSpec, name: str, of: dict[str, Stage], expected: list[str]
) -> list[Any]:
    """The stored answers, all of them and all passed.

    Raises
    ------
    Refused
        If an answer is missing or did not pass.
    InputError
        If the checks have judged other files than these.
    """
    stage = runtime.stages(spec).load(name, of)
    answers = json.loads((stage.folder / "answers.json").read_text())
    failed = [f"{answer['name']}: {answer['sentence']}" for answer in answers if answer["passed"] is not True]
    failed += [f"{absent}: was not asked" for absent in set(expected) - {answer["name"] for answer in answers}]
    if failed:
        raise Refused(failed)
    return list(answers)


def build_checks(spec: ReleaseSpec) -> list[dg.AssetChecksDefinition]:
    """The two batteries of checks of a dataset, both blocking; for a table of groups the first of them."""
    raw_key, candidate_key = dg.AssetKey([spec.dataset, "raw_data"]), dg.AssetKey([spec.dataset, "anonymized_table"])

    @dg.multi_asset_check(
        name=f"{spec.dataset}_source_checks",
        pool=spec.dataset,
        specs=[
            dg.AssetCheckSpec(name, asset=raw_key, blocking=True, description=description)
            for name, description in source_checks_of(spec).items()
        ],
    )
    def source_checks(context: dg.AssetCheckExecutionContext, runtime: Runtime):
        with runtime.step(context, spec, "source_checks") as noted:
            raw = runtime.stages(spec).load("raw_data")
            types = SourceFacts.from_json(raw.facts).types()
            stored = runtime.engine(spec).describe(raw.folder / DATA, spec, types)
            asked = source_checks_of(spec)
            answers = ask([one for one in raw_questions(spec, stored) if one.name in asked], runtime.processes(spec))
            keep_answers(runtime, spec, "source_checks", {"raw_data": raw}, answers)
            noted["source_checks_failed"] = sum(not answer.passed for answer in answers)
        yield from (result_of(answer, raw_key) for answer in answers)

    if spec.aggregates:
        return [source_checks]
    names = candidate_check_names(spec)
    descriptions = {following.CHECK: following.CHECK_DESCRIPTION, **CANDIDATE_CHECKS}

    @dg.multi_asset_check(
        name=f"{spec.dataset}_candidate_checks",
        pool=spec.dataset,
        specs=[
            dg.AssetCheckSpec(
                technical(name), asset=candidate_key, blocking=True, description=descriptions.get(name, DEMAND)
            )
            for name in names
        ],
    )
    def candidate_checks(context: dg.AssetCheckExecutionContext, runtime: Runtime):
        with runtime.step(context, spec, "candidate_checks") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(people_of(spec))
            candidate = stages.load("anonymized_table", {"raw_data": raw})
            stored = SourceFacts.from_json(raw.facts)
            questions = candidate_questions(spec, runtime.engine(spec), stored, raw, candidate)
            if spec.across_releases is not None:
                questions.append(following.question(spec, runtime, candidate))
            answers = ask(questions, runtime.processes(spec))
            keep_answers(runtime, spec, "candidate_checks", {"anonymized_table": candidate}, answers)
            noted["candidate_checks_failed"] = sum(not answer.passed for answer in answers)
        yield from (result_of(answer, candidate_key) for answer in answers)

    return [source_checks, candidate_checks]


def result_of(answer: Answer, asset: dg.AssetKey) -> dg.AssetCheckResult:
    """What Dagster shows of an answer."""
    measured = "not measured" if answer.measured is None else answer.measured
    return dg.AssetCheckResult(
        passed=answer.passed,
        asset_key=asset,
        check_name=technical(answer.name),
        description=answer.sentence,
        metadata={NAME: answer.name, "demand": answer.demand, "measured": measured}
        | ({"crashed": True} if answer.crashed else {}),
    )
