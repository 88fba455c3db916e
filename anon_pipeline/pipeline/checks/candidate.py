"""The checks on the candidate for release: everything is counted from its file, and nothing is read from the tree."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pandas as pd

from anon_pipeline.anonymize.policy import mean_loss
from anon_pipeline.engine.base import ClassCounts, Engine, SourceFacts
from anon_pipeline.errors import number_of
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.checks.naming import unshared_values
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.linked_releases import rows as linked_rows
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, CheckDef, Run
from anon_pipeline.privacy.delta_presence import DeltaPresence
from anon_pipeline.privacy.judge import Finding, judge_release, names_of, told_of_presence
from anon_pipeline.release.facts import losses
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.spec import Demand, ReleaseSpec, Role

log = logging.getLogger(__name__)

#: The checks, with the description that Dagster shows before they are first asked.
CANDIDATE_CHECKS = {
    "has_released_columns_only": "The candidate has no identifier and no excluded column.",
    "has_values_of_the_source": "Kept values are the people's own, and classes show nothing beyond their values.",
    "accounts_for_every_row": "Released, suppressed and waiting rows are the rows that were grouped.",
    "names_shared_values_only": "Every value of a quasi-identifier that the candidate names is shared by k people.",
    "suppresses_within_the_limit": "No more rows are suppressed than the spec allows.",
    "loses_within_the_limit": "No more information is lost than the spec allows.",
}
#: The remedy where the code itself is at fault.
FAULT = "nothing was published; run anonymized_table again, and if it fails again report a fault of this package"
#: The tree has counted a demand by its own classes already, and they held.
NOT_AS_GROUPED = "run anonymizer_tree again, and if it fails again report a fault of this package"
DEMAND = "Every class of the stored candidate meets this demand of the spec."


def checks_of(spec: ReleaseSpec) -> dict[str, str]:
    """The checks on a candidate: one per demand of the spec, the one across releases, then the common ones."""
    across = (
        {} if spec.across_releases is None else {sequential_publication.CHECK: sequential_publication.CHECK_DESCRIPTION}
    )
    beside = {linked_rows.CHECK: linked_rows.CHECK_DESCRIPTION}
    return {**dict.fromkeys(names_of(spec.privacy), DEMAND), **across, **CANDIDATE_CHECKS, **beside}


def ask_candidate(run: Run, raw_data: Stage, people: Stage, anonymized_table: Stage) -> list[Question]:
    """The questions to a stored candidate, alone and together with other releases."""
    stored = SourceFacts.from_json(people.facts)
    questions = candidate_questions(run, stored, people, anonymized_table)
    questions.append(linked_rows.question(run, raw_data, anonymized_table))
    if run.spec.across_releases is not None:
        questions.append(sequential_publication.question(run, anonymized_table))
    return questions


CHECKS = CheckDef(
    "candidate_checks", "anonymized_table", ("raw_data", PEOPLE, "anonymized_table"), checks_of, ask_candidate
)


def candidate_questions(run: Run, stored: SourceFacts, people: Stage, candidate: Stage) -> list[Question]:
    """The questions to the stored candidate; `stored` are the facts about the people who were grouped."""
    spec, engine, data = run.spec, run.engine, candidate.folder / DATA
    counts = engine.classes(data, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE))
    return [
        *_demands(spec, engine, stored, counts, candidate),
        *_contents(spec, engine, stored, people, candidate),
        *_rows(spec, stored.rows, int(counts.sizes.sum()), candidate),
        _worth(run, counts, candidate),
    ]


def _demands(
    spec: ReleaseSpec, engine: Engine, stored: SourceFacts, counts: ClassCounts, candidate: Stage
) -> Iterator[Question]:
    """A question per demand of the spec on the classes."""
    judgements = judge_release(engine, spec, stored.types(), counts, candidate.folder / CLASSES)
    if all(judgement.finding.holds for judgement in judgements):
        _warn_of_ends(spec, told_of_presence(engine, spec, stored.types(), candidate.folder / CLASSES))
    for name, demand, judgement in zip(names_of(spec.privacy), spec.privacy, judgements, strict=True):
        finding = judgement.finding
        if demand.name == "k_anonymity":
            yield Question(
                name,
                finding.demand,
                "ExpectColumnMinToBeBetween",
                {"column": "class_size", "min_value": spec.k},
                pd.DataFrame({"class_size": counts.sizes}),
                remedy=f"nothing was published; {NOT_AS_GROUPED}",
            )
            continue
        yield Question(
            name,
            finding.demand,
            "ExpectColumnMinToBeBetween",
            {"column": "class_holds", "min_value": 1},
            pd.DataFrame({"class_holds": judgement.holds.astype(int)}),
            measured=finding.measured if finding.measured is not None else "infinite",
            remedy=f"{number_of(finding.failing, 'class fails', 'classes fail')}; nothing was published: "
            + _what_helps(demand, finding),
        )


def _what_helps(demand: Demand, finding: Finding) -> str:
    """Merged classes are counted by the tree when they are made, and by the wider intervals that they show here."""
    if isinstance(demand, DeltaPresence) and finding.measured is not None and finding.measured < demand.min:
        return (
            "intervals of classes that were merged hold people of other classes as well, of whom fewer are in the "
            "table; lower the min of delta_presence (with 0 this does not happen)"
        )
    return NOT_AS_GROUPED


def _warn_of_ends(spec: ReleaseSpec, told: int) -> None:
    if told:
        log.warning(
            "%s: delta_presence: %s of classes %s that of so few people of the population that who is in the table can "
            "be told more surely than is demanded; make columns coarse before, in both tables (docs/demands.md)",
            spec.dataset,
            number_of(told, "end or category", "ends and categories"),
            "is" if told == 1 else "are",
        )


def _contents(
    spec: ReleaseSpec, engine: Engine, stored: SourceFacts, people: Stage, candidate: Stage
) -> Iterator[Question]:
    """Questions on columns and values."""
    columns = engine.columns(candidate.folder / DATA)
    yield Question(
        "has_released_columns_only",
        "the candidate has the columns the spec releases, no identifier and no excluded one",
        "ExpectColumnDistinctValuesToEqualSet",
        {"column": "name", "value_set": spec.released},
        pd.DataFrame({"name": list(columns)}),
        measured=len(columns),
        remedy=FAULT,
    )
    yield Question(
        "has_values_of_the_source",
        "every kept value is one of the grouped people's, and no class shows a category or a number beyond theirs, "
        "to the next step",
        "ExpectColumnMaxToBeBetween",
        {"column": "rows", "max_value": 0},
        _foreign_values(spec, engine, people, candidate),
        remedy=FAULT,
    )
    yield Question(
        "names_shared_values_only",
        f"no value of a quasi-identifier is named that fewer than k = {spec.k} people share",
        "ExpectColumnMaxToBeBetween",
        {"column": "values", "max_value": 0},
        unshared_values(spec, engine, stored.types(), people, candidate),
        remedy=FAULT,
    )


def _rows(spec: ReleaseSpec, rows: int, released: int, candidate: Stage) -> Iterator[Question]:
    """Questions on the numbers of released, suppressed and withheld people."""
    suppressed, withheld = int(candidate.facts["suppressed"]), int(candidate.facts["waiting"])
    yield Question(
        "accounts_for_every_row",
        "rows that are released, suppressed or held back add up to those that were grouped",
        "ExpectColumnMaxToBeBetween",
        {"column": "unaccounted", "max_value": 0},
        pd.DataFrame({"unaccounted": [abs(rows - released - suppressed - withheld)]}),
        remedy=FAULT,
    )
    yield Question(
        "suppresses_within_the_limit",
        f"at most {100 * spec.suppression.limit:g} % of the people are suppressed",
        "ExpectColumnMaxToBeBetween",
        {"column": "suppressed", "max_value": int(spec.suppression.limit * rows)},
        pd.DataFrame({"suppressed": [rows - released - withheld]}),
        remedy="raise suppression.limit, or lower the demands",
    )


def _worth(run: Run, counts: ClassCounts, candidate: Stage) -> Question:
    """Whether any information is left in the quasi-identifiers, since demands can remove all of it."""
    lost, most = mean_loss(candidate.facts["information_loss"]), run.spec.grouping.most_lost
    told = losses(candidate.facts, run.noise(candidate.facts["version"]))["mean"]
    return Question(
        "loses_within_the_limit",
        f"at most {100 * most:g} % of the quasi-identifiers' variance is lost",
        "ExpectColumnMaxToBeBetween",
        {"column": "lost", "max_value": most},
        pd.DataFrame({"lost": [lost]}),
        measured=min(told, most) if lost <= most else max(told, most),  # judged before noise, and never told otherwise
        remedy=f"the number of classes is {counts.sizes.size:,}: lower the demands, or set grouping.most_lost to 1 if "
        "that is what you want",
        of_share=True,
    )


def _foreign_values(spec: ReleaseSpec, engine: Engine, people: Stage, candidate: Stage) -> pd.DataFrame:
    """Rows per column whose value is not in the source: another category, or a number beyond its grid points."""
    data, source = candidate.folder / DATA, people.folder / DATA
    kept = [name for name in spec.released if name not in spec.quasi_identifiers]
    foreign = engine.foreign_values(data, source, kept)
    if spec.recode.form == "range":  # then the class table has the texts that are allowed there
        ranges = candidate.folder / "ranges.parquet"
        foreign |= engine.foreign_values(data, ranges, spec.quasi_identifiers)
    else:
        bounds: dict[str, list[Any] | None] = candidate.facts["bounds"]
        foreign |= engine.foreign_values(
            data, source, [name for name in spec.quasi_identifiers if bounds[name] is None]
        )
        foreign |= engine.out_of_bounds(data, {name: bound for name, bound in bounds.items() if bound is not None})
    return pd.DataFrame({"column": list(foreign), "rows": list(foreign.values())})
