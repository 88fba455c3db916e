"""Proposed roles of the columns of an unknown table, with reasons; a person decides about them.

Everything is judged on a sample of bounded size (`Survey`); only rows, missing and distinct values are counted in the
whole table. A proposal contains names and numbers, never a value of a person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import ColumnSurvey, Survey
from anon_pipeline.engine.records import is_record
from anon_pipeline.engine.typed import PLAIN
from anon_pipeline.errors import InputError
from anon_pipeline.profiling import identifiers, separation
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.identifiers import NEAR_UNIQUE, REPEATS
from anon_pipeline.profiling.numbering import no_measure
from anon_pipeline.profiling.reading import BY_FIRST_SIGNS, CODE, PLACES, TRADES, Reading, type_of
from anon_pipeline.profiling.separation import Key
from anon_pipeline.profiling.several_rows import number_of_a_person
from anon_pipeline.profiling.special_categories import special_category
from anon_pipeline.profiling.target import PARTS, TARGET_VALUES, proposed_target
from anon_pipeline.spec import ColumnType, Role

#: The k of the proposed spec; a value that fewer people have is rare.
K = 10
#: Above this share of distinct values a text is too detailed for grouping, and a number may number people.
MANY_DISTINCT = 0.3
#: Up to this many distinct numbers, such as years of age, are a scale and no label, however few people there are.
SCALE = 150
#: The share of people with rare values from which on a column that is kept as it is identifies people like a name.
RARE = 0.001
#: The Cramér's V from which on a column counts as a stand-in for another.
STANDS_IN = 0.3
#: A table of this many rows is compared column by column at hardly any cost.
SMALL_TABLE = 2_000
#: The number of distinct values of a column that are compared with lists of words.
VALUES_READ = 300

#: The reason for a number that measures something of a person, and that hardly two people share.
FINE_NUMBER = "a number nearly unique to a person: grouped it is shared, kept as it is it would undo the grouping"
#: The question where one person seems to have several rows.
SEVERAL_ROWS = (
    "identifier is proposed, and no person may stand twice: a class of k rows must be k people; make one row a person, "
    "or write exclude if it numbers something else"
)
#: The question about a column that numbers people, a few of whom stand in several rows.
A_FEW_TWICE = (
    "identifier is proposed, and a run refuses it as long as a person stands twice, as in some rows here; keep one row "
    "a person, or write exclude if it numbers something else"
)
#: The reason why a column that nearly names people is left out, and is no identifier.
IT_REPEATS = "it repeats, so it cannot show that no person stands twice"
#: The question about a proposed target: with another target, the column would be published as it is for no reason.
AS_TARGET = "sensitive is proposed, as the target; if another column is, quasi_identifier hides it in groups"
#: A further question about the target where it is a number of many values, or a text or date.
AS_NUMBER = "a number that few share identifies as a name does: round it by a masking step"
AS_TEXT = "a text that few share may name a person: shorten it by a masking step"
#: The question about a column of moments that hardly any two people share.
AS_MOMENT = (
    "quasi_identifier is proposed, which groups moments into spans; exclude leaves it out; kept as it is, whoever was "
    "there at that moment finds the person"
)
#: The question about codes of places or trades that hardly any two people share.
AS_CODE = (
    "exclude is proposed; a code's first signs can be grouped: write quasi_identifier, with type: categorical and "
    f"{BY_FIRST_SIGNS}"
)
#: The most quasi-identifiers that can be grouped well; of more, those most associated with the target are proposed.
MOST_GROUPED = 12


@dataclass(frozen=True)
class Proposal:
    """A role for one column, and the reason.

    Attributes
    ----------
    question : the question that a person must decide before the spec can run; None where the proposed role is safe
    format : the format of its dates, where it is not that of SQL
    levels : its categories in their order, where the file states an order
    asked : further questions that a person must decide about it, by key of the column
    distinct, missing : distinct values (estimated for a sampled table) and rows without one
    """

    name: str
    role: Role
    type: ColumnType
    why: str
    question: str | None
    distinct: int
    missing: int
    format: tuple[str, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
    levels: tuple[str, ...] = ()


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
    proposals = {column.name: _proposal(survey, column, codes[column.name], target) for column in survey.columns}
    if named is not None:
        proposals[named] = _as_named_target(proposals[named])
    _ask_about_a_persons_number(survey, proposals, codes, target)
    _leave_one_identifier(proposals)
    fine = {column.name for column in survey.columns if _is_fine(column)}
    compared = [
        name
        for name, proposal in proposals.items()
        if proposal.role is not Role.IDENTIFIER
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
    grouped = {
        name: codes[name]
        for name, proposal in proposals.items()
        if proposal.role is Role.QUASI_IDENTIFIER and name not in fine
    }
    for name, proposal in proposals.items():
        written = reading.formats.get(name, ()), reading.asked_of.get(name, {})
        levels = reading.levels.get(name, ()) if proposal.type is ColumnType.CATEGORICAL else ()
        proposals[name] = replace(proposal, format=written[0], asked=_still_asked(proposal, written[1]), levels=levels)
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
    )


def _most_compared(rows: int) -> int:
    """The most distinct values of a column that is compared with others; in a small table, half the number of rows."""
    return max(min(rows // 2, SMALL_TABLE // 2), rows // 10)


def _leave_out_many(
    proposals: dict[str, Proposal], codes: Mapping[str, IntArray], target: str | None, fine: Collection[str]
) -> tuple[str, ...]:
    """Leave out the quasi-identifiers least associated with the target, if there are too many to group; with a note.

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
    of_target = dict(separation.stand_ins(target, codes, grouped, 0)) if target is not None else {}
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


def _is_fine(column: ColumnSurvey) -> bool:
    """Whether a column is a number of so many different values that hardly two people share one."""
    many = column.distinct > SCALE and column.distinct / column.known > MANY_DISTINCT
    return many and type_of(column) is ColumnType.NUMERIC


def _still_asked(proposal: Proposal, asked: Mapping[str, str]) -> Mapping[str, str]:
    """Questions about the format of a column, unless the column is not used."""
    if proposal.role in (Role.EXCLUDE, Role.IDENTIFIER) and proposal.question is None:
        return {}
    return {key: asked[key] for key in asked if key != "type" or proposal.question != SEVERAL_ROWS}


def names_are_values(survey: Survey) -> bool:
    """Whether the names of the columns are a row that was taken for a header: a third of them occur as values."""
    columns = [survey.sample.column(column.name) for column in survey.columns]
    recurring = sum(
        surveyed.name in set(_texts(column)) for surveyed, column in zip(survey.columns, columns, strict=True)
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


def _as_named_target(proposal: Proposal) -> Proposal:
    """The target that a person has named is kept as it is; only values that few share are still asked about.

    Raises
    ------
    InputError
        For a column that names people.
    """
    if proposal.role is Role.IDENTIFIER or proposal.question == SEVERAL_ROWS:
        raise InputError(f"--target: {proposal.name} names people ({proposal.why}) and is not released; name another")
    why = "the target" if proposal.why == "proposed as the target" else f"the target; {proposal.why}"
    asked = AS_NUMBER if proposal.type is ColumnType.NUMERIC else AS_TEXT
    question = f"sensitive is proposed, as the target; {asked}" if proposal.distinct > TARGET_VALUES else None
    return replace(proposal, role=Role.SENSITIVE, why=why, question=question)


#: A proposed role, the reason, and the question that a person must decide.
Proposed = tuple[Role, str, str | None]


def _proposal(survey: Survey, column: ColumnSurvey, codes: IntArray, target: str | None) -> Proposal:
    kind = type_of(column)
    if column.known == 0:
        proposed: Proposed | None = Role.EXCLUDE, "empty", None
    elif is_record(column.storage):
        proposed = Role.EXCLUDE, "holds records; their fields are columns of their own (source.paths)", None
    elif column.storage not in PLAIN and not column.storage.startswith(("DECIMAL", "ENUM")):
        proposed = Role.EXCLUDE, "holds lists or bytes, which cannot be grouped", None
    else:
        values = _texts(survey.sample.column(column.name))
        proposed = (
            _as_code(column, values)
            or _as_identifier(survey, column, kind, values)
            or _as_special_category(column, kind, values, target)
        )
    role, why, question = proposed or _by_its_spread(survey, column, kind, codes, target)
    return Proposal(column.name, role, kind, why, question, column.distinct, survey.rows - column.known)


def _as_code(column: ColumnSurvey, values: list[str]) -> Proposed | None:
    """The role of codes of places or trades that hardly any two people share, which name nobody; None for others."""
    if column.distinct <= MANY_DISTINCT * column.known or not named_by(column.name, (*PLACES, *TRADES)):
        return None
    if not all(CODE.fullmatch(value.strip()) for value in values):
        return None
    return Role.EXCLUDE, "by its name a code of a place or a trade, which hardly two people share", AS_CODE


def _repeats(survey: Survey, column: ColumnSurvey) -> bool:
    """Whether some rows share a value; of a sampled table, whose distinct values are an estimate, nothing is known."""
    return column.distinct < column.known and survey.sample.num_rows == survey.rows


def _as_identifier(survey: Survey, column: ColumnSurvey, kind: ColumnType, values: list[str]) -> Proposed | None:
    """The role of a column that names people, by its name or its values; None for other columns."""
    unique = column.distinct / column.known
    direct = identifiers.by_name(column.name, unique)
    if kind is not ColumnType.DATE:
        direct = identifiers.by_values(values) or direct
    if direct is None:
        return None
    if unique > NEAR_UNIQUE and not (direct.shared and _repeats(survey, column)):
        return Role.IDENTIFIER, direct.why, A_FEW_TWICE if _repeats(survey, column) else None
    if direct.of_one_person and unique > REPEATS:
        return Role.IDENTIFIER, f"{direct.why}; it repeats", SEVERAL_ROWS
    return Role.EXCLUDE, f"{direct.why}; {IT_REPEATS}", None


def _as_special_category(
    column: ColumnSurvey, kind: ColumnType, values: list[str], target: str | None
) -> Proposed | None:
    """The role of a column of a special category of personal data; None for other columns."""
    few = values[:: max(1, len(values) // VALUES_READ)]
    special = special_category(column.name, few if kind is ColumnType.CATEGORICAL else [])
    if special is None:
        return None
    why = f"by its {special.by} {special.category}, a special category of personal data (GDPR, Art. 9)"
    if column.name == target:
        return Role.SENSITIVE, why, "sensitive is proposed, as the target"
    return Role.EXCLUDE, why, "exclude is proposed; quasi_identifier hides it in groups, sensitive keeps it"


def _by_its_spread(
    survey: Survey, column: ColumnSurvey, kind: ColumnType, codes: IntArray, target: str | None
) -> Proposed:
    """The role of any other column, by its name and by how well it distinguishes people."""
    unique = column.distinct / column.known
    if column.distinct == 1 and column.known == survey.rows:
        return Role.INSENSITIVE, "the same for everyone", None
    if named_by(column.name, PARTS):
        return Role.EXCLUDE, "by its name it says which part of the data a row came from", None
    if unique > NEAR_UNIQUE and kind is ColumnType.CATEGORICAL:
        why = "nearly every row has a value of its own"
        repeats = _repeats(survey, column)
        return (Role.EXCLUDE, f"{why}; {IT_REPEATS}", None) if repeats else (Role.IDENTIFIER, why, None)
    if column.name == target:
        asked = AS_TARGET if column.distinct <= TARGET_VALUES else f"{AS_TARGET}; {AS_NUMBER}"
        return Role.SENSITIVE, "proposed as the target", asked
    if kind is ColumnType.CATEGORICAL and unique > MANY_DISTINCT:
        return Role.EXCLUDE, "too many different texts to group by; a masking step could shorten them", None
    if _is_fine(column):
        numbers = no_measure(column.name, survey.sample.column(column.name))
        return (Role.EXCLUDE, numbers, None) if numbers is not None else (Role.QUASI_IDENTIFIER, FINE_NUMBER, None)
    if kind is ColumnType.DATE and unique > MANY_DISTINCT and _has_times_of_day(survey, column):
        return Role.QUASI_IDENTIFIER, "a moment, nearly unique to a person", AS_MOMENT
    why = f"could be known to others, and tells {share_text(separation.separation(codes))} of the pairs of people apart"
    rare = separation.in_rare_values(codes, K)
    if kind is ColumnType.NUMERIC and rare >= RARE:
        why += f"; {share_text(rare)} have a value that fewer than {K} share, which identifies as a name does"
    if kind is ColumnType.CATEGORICAL and named_by(column.name, PLACES):
        why += f"; its first signs can be grouped by {BY_FIRST_SIGNS}"
    return Role.QUASI_IDENTIFIER, why, None


def _has_times_of_day(survey: Survey, column: ColumnSurvey) -> bool:
    moments = [text for text in _texts(survey.sample.column(column.name))[:VALUES_READ] if ":" in text]
    return any(not re.search(r"[T ]00:00(:00)?(\.0*)?$", text) for text in moments)


def _ask_about_a_persons_number(
    survey: Survey, proposals: dict[str, Proposal], codes: Mapping[str, IntArray], target: str | None
) -> None:
    """Where no name is that of a person's number, ask about a number that seems to be the one of several rows each."""
    if any(proposal.question == SEVERAL_ROWS for proposal in proposals.values()):
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
    if any(proposal.question == SEVERAL_ROWS for proposal in proposals.values()):
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


def _worth(proposal: Proposal) -> tuple[bool, bool]:
    """The sort key of equivalent columns, the one to keep first: a column with a question, then a text."""
    return proposal.question is None, proposal.type is not ColumnType.CATEGORICAL


def _name_stand_ins(proposals: dict[str, Proposal], codes: Mapping[str, IntArray]) -> None:
    """Name at each column of a special category its stand-ins, and at each stand-in the column it stands in for."""
    special = [
        name for name, proposal in proposals.items() if proposal.question not in (None, SEVERAL_ROWS) and name in codes
    ]
    candidates = [name for name in codes if proposals[name].role is not Role.EXCLUDE or name in special]
    for name in special:
        stand_ins = separation.stand_ins(name, codes, candidates, STANDS_IN)
        if stand_ins:
            listed = ", ".join(f"{stand_in} ({v:.2f})" for stand_in, v in stand_ins)
            proposals[name] = replace(proposals[name], why=f"{proposals[name].why}; stand-ins by Cramér's V: {listed}")
        for stand_in, v in stand_ins:
            if stand_in in special:  # it has its own reason
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


def _texts(column: pa.ChunkedArray) -> list[str]:
    """The distinct values of a column as texts, in the order of their first row."""
    return [str(value) for value in column.unique().drop_null().to_pylist()]


def share_text(share: float) -> str:
    """The text of a share of people or pairs; nearly all is not rounded up to all."""
    return "nearly 100 %" if 0.9995 <= share < 1 else f"{100 * share:.1f} %"
