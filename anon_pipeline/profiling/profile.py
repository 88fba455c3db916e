"""The roles proposed for the columns of an unknown table together, with reasons; a person decides about them.

Everything is judged on a sample of bounded size (`Survey`); only rows, missing and distinct values are counted in the
whole table. A proposal contains names and numbers, never a value of a person.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import Survey
from anon_pipeline.engine.plain_tables import JSON_FILES
from anon_pipeline.engine.records import is_record
from anon_pipeline.errors import InputError
from anon_pipeline.profiling import identifiers, separation
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.infinity import question_of_infinity
from anon_pipeline.profiling.negatives import REMARK, has_negatives_of_accounts
from anon_pipeline.profiling.proposal import (
    AS_NUMBERS,
    NEARLY_SETTLES,
    SETTLES_TARGET,
    SEVERAL_ROWS,
    K,
    Proposal,
    as_named_target,
    is_fine,
    proposal_of,
    read_labels,
    share_text,
    texts_of,
)
from anon_pipeline.profiling.reading import PLACES, TRADES, Reading
from anon_pipeline.profiling.separation import Key
from anon_pipeline.profiling.several_rows import number_of_a_person
from anon_pipeline.profiling.target import PARTS, TARGET_VALUES, proposed_target
from anon_pipeline.profiling.value_formats import has_offsets
from anon_pipeline.spec import ColumnType, Role

#: The remark on moments in texts that have an offset from UTC.
WITHOUT_OFFSETS = "read as the clocks show, without the offset from UTC; write all in UTC if they must be compared"
#: The Cramér's V from which on a column counts as a stand-in for another, and as one that nearly settles the target.
STANDS_IN, NEARLY = 0.3, 0.9
#: A table of this many rows is compared column by column at hardly any cost.
SMALL_TABLE = 2_000
#: The most quasi-identifiers that can be grouped well; of more, those most associated with the target are proposed.
MOST_GROUPED = 12
#: Cramér's V with the target below which a column says nothing of it: that much comes about by chance.
SAYS_SOMETHING = 0.02


@dataclass(frozen=True)
class Profile:
    """The profile of a table.

    Attributes
    ----------
    rows, looked_at : rows of the table, and of the sample
    missing : texts that mean "not known"
    determines : pairs (a, b) of columns: whoever knows a also knows b
    key : the quasi-identifiers that distinguish people best, without numbers each of which does so alone
    target : the column proposed as target, or the one that was named
    target_named : whether a person has named it, so that it is not asked for
    read : the format of the file, by key of the source
    asked : questions that a person must decide about the source, by its key
    is_wide : whether more columns could be grouped than are proposed
    notes : findings about the file that need no decision
    others : the share of people who have another value of the target than the most frequent one
    """

    rows: int
    looked_at: int
    missing: tuple[str, ...]
    columns: tuple[Proposal, ...]
    determines: tuple[tuple[str, str], ...]
    key: Key | None
    target: str | None
    read: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    target_named: bool = False
    is_wide: bool = False
    others: float = 1.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def profile(survey: Survey, reading: Reading, named: str | None = None) -> Profile:
    """Propose a role for every column of a surveyed table.

    Parameters
    ----------
    reading : the way in which the table was read
    named : the target, where a person has named it

    Raises
    ------
    InputError
        For a named target that is no column, or that has not two values.
    """
    target = proposed_target(survey) if named is None else _named_target(survey, named)
    codes = {name: separation.codes_of(survey.sample.column(name)) for name in survey.sample.column_names}
    proposals = {column.name: proposal_of(survey, column, codes[column.name], target) for column in survey.columns}
    if named is not None:
        proposals[named] = as_named_target(proposals[named])
    read_labels(proposals, reading.labels)
    _ask_about_a_persons_number(survey, proposals, codes, target)
    _leave_one_identifier(proposals)
    fine = {column.name for column in survey.columns if is_fine(column)}
    # A record has a value for each combination of its fields, so a field that varies alone would pass as its code.
    records = {column.name for column in survey.columns if is_record(column.storage)}
    compared = [
        name
        for name, proposal in proposals.items()
        if proposal.role is not Role.IDENTIFIER
        and name not in records
        and 2 <= proposal.distinct <= max(TARGET_VALUES, _most_compared(survey.sample.num_rows))
    ]
    of_compared = {name: codes[name] for name in compared}
    fine_not_compared = {
        name: codes[name]
        for name, proposal in proposals.items()
        if name in fine and proposal.role is Role.QUASI_IDENTIFIER and name not in compared
    }
    determined = [
        (known, code)
        for known, code in separation.functional_dependences(of_compared) + separation.equivalences(fine_not_compared)
        if separation.is_seen_often_enough(codes[known], codes[code])
    ]
    _leave_out_codes(proposals, determined, target)
    comparable = _comparable(survey, proposals, of_compared)
    _name_stand_ins(proposals, comparable)
    notes = _leave_out_many(proposals, codes | comparable, target, fine)
    _ask_about_what_settles(proposals, determined, comparable, target)
    grouped = {
        name: codes[name]
        for name, proposal in proposals.items()
        if proposal.role is Role.QUASI_IDENTIFIER and name not in fine
    }
    _ask_about_words_among_numbers(proposals, reading)
    for name, proposal in proposals.items():
        written = reading.formats.get(name, ()), reading.asked_of.get(name, {})
        levels = reading.levels.get(name, ()) if proposal.type is ColumnType.CATEGORICAL else ()
        infinite = question_of_infinity(survey.sample.column(name), proposal.type)
        asked, unit = _still_asked(proposal, {**written[1], **infinite}), reading.units.get(name)
        why = proposal.why
        if "type" not in written[1] and _holds_negatives_of_accounts(survey, proposal):
            why += f"; {REMARK}"
        if not reading.source.path.lower().endswith(JSON_FILES) and _is_read_without_offsets(survey, proposal):
            why += f"; {WITHOUT_OFFSETS}"
        proposals[name] = replace(proposal, why=why, format=written[0], asked=asked, levels=levels, unit=unit)
    return Profile(
        survey.rows,
        survey.sample.num_rows,
        survey.missing,
        tuple(proposals.values()),
        tuple(determined),
        separation.greedy_key(grouped),
        target if target is not None and proposals[target].role is Role.SENSITIVE else None,
        reading.source.model_dump(mode="json", exclude_defaults=True, exclude={"path", "missing", "delta", "iceberg"}),
        reading.asked,
        (*reading.notes, *notes),
        named is not None,
        bool(notes),
        1.0 if target is None else _share_of_others(survey.sample.column(target)),
    )


def _share_of_others(column: pa.ChunkedArray) -> float:
    """The share of people who have a value, and not the most frequent one."""
    people = column.drop_null().value_counts().field("counts").to_numpy()
    return float(people.sum() - people.max(initial=0)) / max(1, len(column))


def _most_compared(rows: int) -> int:
    """The most distinct values of a column that is compared with others; in a small table, half the number of rows."""
    return max(min(rows // 2, SMALL_TABLE // 2), rows // 10)


def _leave_out_many(
    proposals: dict[str, Proposal], codes: Mapping[str, IntArray], target: str | None, fine: Collection[str]
) -> tuple[str, ...]:
    """Leave out the quasi-identifiers least associated with the target, if there are too many to group; with a note.

    Of those that say nothing of it, numbers nearly unique to a person come last, and else the first in the table stay.

    The reason of each that is left out names its cost, if there is one: the share of people who would then share all
    grouped columns with few others, with this column and without.

    Parameters
    ----------
    codes : the codes of every column; numbers of many values are cut into quantiles
    fine : the numbers that hardly two people share
    """
    grouped = [name for name, proposal in proposals.items() if proposal.role is Role.QUASI_IDENTIFIER]
    if len(grouped) <= MOST_GROUPED:
        return ()
    of_target = dict(separation.stand_ins(target, codes, grouped, SAYS_SOMETHING)) if target is not None else {}
    order = sorted(grouped, key=lambda name: (-of_target.get(name, 0.0), name in fine))
    together = separation.joined([codes[name] for name in order[:MOST_GROUPED]])
    few = share_text(separation.in_rare_values(together, K))
    for name in order[MOST_GROUPED:]:
        with_it = share_text(separation.in_rare_values(separation.joined([together, codes[name]]), K))
        why = f"{MOST_GROUPED} others are grouped already, as many as can be grouped well"
        if with_it != few:
            why += (
                f"; with it, too, {with_it} in place of {few} of the people would share all that is grouped with fewer "
                f"than {K - 1} others"
            )
        proposals[name] = replace(proposals[name], role=Role.EXCLUDE, why=why, question=None)
    is_fine_last = any(name in fine for name in grouped)
    first = "the first, numbers nearly unique to a person last," if is_fine_last else "the first"
    chosen = "those that say most of the target" if of_target else first
    return (
        f"{len(grouped)} columns could be known to others, more than can be grouped well: {chosen} are proposed as "
        "quasi-identifiers, and the others are left out; the reason of each says what it would cost, if anything",
    )


def _ask_about_words_among_numbers(proposals: dict[str, Proposal], reading: Reading) -> None:
    """Ask about texts that are left out since hardly two people share one, where all but a few are numbers."""
    for name, proposal in proposals.items():
        doubt = reading.asked_of.get(name, {}).get("type")
        if proposal.of_own_texts and doubt is not None:
            question = AS_NUMBERS.format(doubt.partition(";")[0])
            proposals[name] = replace(proposal, role=Role.EXCLUDE, question=question)


def _holds_negatives_of_accounts(survey: Survey, proposal: Proposal) -> bool:
    column = survey.sample.column(proposal.name)
    is_text = proposal.type is ColumnType.CATEGORICAL and pa.types.is_string(column.type)
    return is_text and has_negatives_of_accounts(texts_of(column))


def _is_read_without_offsets(survey: Survey, proposal: Proposal) -> bool:
    column = survey.sample.column(proposal.name)
    return proposal.type is ColumnType.DATE and pa.types.is_string(column.type) and has_offsets(texts_of(column))


def _still_asked(proposal: Proposal, asked: Mapping[str, str]) -> Mapping[str, str]:
    """Questions about the format of a column, unless the column is not used."""
    if proposal.role in (Role.EXCLUDE, Role.IDENTIFIER) and proposal.question is None:
        return {}
    return {key: asked[key] for key in asked if key != "type" or not proposal.of_several_rows}


def names_are_values(survey: Survey) -> bool:
    """Whether the names of the columns are a row that was taken for a header: a third of them occur as values."""
    columns = [survey.sample.column(column.name) for column in survey.columns]
    recurring = sum(
        surveyed.name in set(texts_of(column)) for surveyed, column in zip(survey.columns, columns, strict=True)
    )
    direct = any(identifiers.names_somebody(column.name) for column in survey.columns)
    return direct or 3 * recurring >= max(3, len(columns))


def _named_target(survey: Survey, named: str) -> str:
    """The target that a person has named, if it can be one."""
    column = next((column for column in survey.columns if column.name == named), None)
    if column is None:
        names = [column.name for column in survey.columns]
        more = f" and {len(names) - MOST_GROUPED} more" if len(names) > MOST_GROUPED else ""
        raise InputError(f"--target: there is no column {named}; there are {', '.join(names[:MOST_GROUPED])}{more}")
    if column.distinct < 2 or is_record(column.storage):
        raise InputError(f"--target: {named} has not two different values to predict; name another column")
    return named


def _ask_about_a_persons_number(
    survey: Survey, proposals: dict[str, Proposal], codes: Mapping[str, IntArray], target: str | None
) -> None:
    """Where no name is that of a person's number, ask about a number that seems to be the one of several rows each."""
    if any(proposal.of_several_rows for proposal in proposals.values()):
        return
    eligible = [
        name
        for name, proposal in proposals.items()
        if proposal.role in (Role.QUASI_IDENTIFIER, Role.EXCLUDE)
        and proposal.question is None
        and name != target
        and not named_by(name, (*PLACES, *TRADES, *PARTS))
    ]
    sample = survey.sample.drop_columns([target]) if target is not None else survey.sample
    number = number_of_a_person(sample, codes, eligible)
    if number is not None:
        name, why = number
        proposals[name] = replace(proposals[name], role=Role.IDENTIFIER, why=why, question=SEVERAL_ROWS)


def _leave_one_identifier(proposals: dict[str, Proposal]) -> None:
    """Where a person's number repeats, leave out the other identifiers: together with them it would not repeat."""
    if any(proposal.of_several_rows for proposal in proposals.values()):
        for name, proposal in proposals.items():
            if proposal.role is Role.IDENTIFIER and proposal.question is None:
                proposals[name] = replace(proposal, role=Role.EXCLUDE)


def _leave_out_codes(proposals: dict[str, Proposal], determined: list[tuple[str, str]], target: str | None) -> None:
    """Keep one of two columns that determine each other; name at the other columns the columns that they determine."""
    left_out: set[str] = set()
    for first, second in determined:
        if (second, first) in determined and not {first, second} & left_out:
            kept, code = sorted((first, second), key=lambda name: (name != target, *_worth(proposals[name])))
            if proposals[code].role is not Role.EXCLUDE and code != target:
                left_out.add(code)  # it must not in turn leave out the column that it encodes
                why = f"a code of {kept}; kept as it is it would tell what the grouping of {kept} hides"
                proposals[code] = replace(proposals[code], role=Role.EXCLUDE, why=why, question=None)
    for name, proposal in proposals.items():
        known_too = [b for a, b in determined if a == name and (b, a) not in determined]
        if known_too and proposal.role is not Role.EXCLUDE:
            why = f"{proposal.why}; who knows it knows {', '.join(known_too)}"
            proposals[name] = replace(proposal, why=why)


def _ask_about_what_settles(
    proposals: dict[str, Proposal],
    determined: list[tuple[str, str]],
    codes: Mapping[str, IntArray],
    target: str | None,
) -> None:
    """Ask about categories that determine the target, and columns that nearly do: a model would read nothing else."""
    if target is None:
        return
    grouped = [
        name
        for name, proposal in proposals.items()
        if proposal.role is Role.QUASI_IDENTIFIER and proposal.question is None
    ]
    texts = {name for name in grouped if proposals[name].type is ColumnType.CATEGORICAL}
    settling = {known for known, settled in determined if settled == target} & texts
    compared = [name for name in grouped if name in codes] if target in codes else []
    nearly = dict(separation.stand_ins(target, codes, compared, NEARLY))
    for name in settling:
        proposals[name] = replace(proposals[name], question=SETTLES_TARGET.format(target))
    for name in nearly.keys() - settling:
        proposals[name] = replace(proposals[name], question=NEARLY_SETTLES.format(target, nearly[name]))


def _worth(proposal: Proposal) -> tuple[bool, bool]:
    """The sort key of equivalent columns, the one to keep first: a column with a question, then a text."""
    return proposal.question is None, proposal.type is not ColumnType.CATEGORICAL


def _name_stand_ins(proposals: dict[str, Proposal], codes: Mapping[str, IntArray]) -> None:
    """Name at each column that a person must decide about its stand-ins, and at each of them what it stands in for."""
    undecided = [
        name
        for name, proposal in proposals.items()
        if proposal.question is not None and not proposal.of_several_rows and name in codes
    ]
    candidates = [name for name in codes if proposals[name].role is not Role.EXCLUDE or name in undecided]
    for name in undecided:
        stand_ins = separation.stand_ins(name, codes, candidates, STANDS_IN)
        if stand_ins:
            listed = ", ".join(f"{stand_in} ({v:.2f})" for stand_in, v in stand_ins)
            proposals[name] = replace(proposals[name], why=f"{proposals[name].why}; stand-ins by Cramér's V: {listed}")
        for stand_in, v in stand_ins:
            if stand_in in undecided:  # it has its own reason
                continue
            why = f"{proposals[stand_in].why}; stands in for {name} (Cramér's V {v:.2f})"
            proposals[stand_in] = replace(proposals[stand_in], why=why)


def _comparable(
    survey: Survey, proposals: Mapping[str, Proposal], codes: Mapping[str, IntArray]
) -> dict[str, IntArray]:
    """The codes of columns whose association can be measured; numbers of many values are cut into quantiles."""
    comparable = {}
    for name, proposal in proposals.items():
        if proposal.role is Role.IDENTIFIER or proposal.distinct < 2:
            continue
        if proposal.type is ColumnType.NUMERIC and proposal.distinct > TARGET_VALUES:
            column = survey.sample.column(name).to_pandas()
            numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            comparable[name] = separation.quantile_codes(numbers)
        elif name in codes:
            comparable[name] = codes[name]
    return comparable
