"""The role proposed for one column, by its name and its values, with the reason and what a person must decide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import ColumnSurvey, Survey
from anon_pipeline.engine.records import is_record
from anon_pipeline.engine.typed import PLAIN
from anon_pipeline.errors import InputError
from anon_pipeline.profiling import identifiers, separation
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.free_text import WORDS, written_once
from anon_pipeline.profiling.identifiers import NEAR_UNIQUE, REPEATS
from anon_pipeline.profiling.numbering import no_measure
from anon_pipeline.profiling.reading import BY_FIRST_SIGNS, CODE, PLACES, TRADES, type_of
from anon_pipeline.profiling.special_categories import special_category
from anon_pipeline.profiling.survey_weights import NAMED_IN_A_SPEC, WEIGHTS, weight_of_sample
from anon_pipeline.profiling.target import PARTS, TARGET_VALUES
from anon_pipeline.spec import ColumnType, Role

#: The k of the proposed spec; a value that fewer people have is rare.
K = 10
#: Above this share of distinct values a text is too detailed for grouping, and a number may number people.
MANY_DISTINCT = 0.3
#: Up to this many distinct numbers, such as years of age, are a scale and no label, however few people there are.
SCALE = 150
#: The share of people with rare values from which on a column that is kept as it is identifies people like a name.
RARE = 0.001
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
#: The reason for a target that nobody has named.
PROPOSED_TARGET = "proposed as the target"
#: The question about a proposed target: with another target, the column would be published as it is for no reason.
AS_TARGET = "sensitive is proposed, as the target; if another column is, quasi_identifier hides it in groups"
#: A further question about the target where it is a number of many values, or a text or date.
AS_NUMBER = "a number that few share identifies as a name does: round it by a masking step"
AS_TEXT = "a text that few share may name a person: shorten it by a masking step"
#: The question about a quasi-identifier that determines the target.
SETTLES_TARGET = (
    "quasi_identifier is proposed, and by it alone a model knows {0}; write exclude if it is made from {0}, or known "
    "only afterwards"
)
NEARLY_SETTLES = (
    "quasi_identifier is proposed, and by it alone a model nearly knows {0} (Cramér's V {1:.2f}); write exclude if it "
    "is made from {0}, or known only afterwards"
)
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

#: The question about free text, which may hold names and anything else.
AS_FREE_TEXT = (
    "exclude is proposed; what people write may name somebody; quasi_identifier shows only texts that k people share, "
    "and * for all others"
)
#: The reason for a column that its label calls so.
WEIGHT_BY_LABEL = f"by its label a weight of the sample; {NAMED_IN_A_SPEC}"
#: The question about a column of a special category.
AS_SPECIAL = "exclude is proposed; quasi_identifier hides it in groups, sensitive keeps it"
#: Why texts that hardly any two people share are left out.
OWN_TEXT = "nearly every row has a value of its own"
MANY_TEXTS = "too many different texts to group by; a masking step could shorten them"
#: The question where such texts are numbers but for a few.
AS_NUMBERS = "exclude is proposed, as of texts; {0}: quasi_identifier groups the numbers"


@dataclass(frozen=True)
class Proposal:
    """A role for one column, and the reason.

    Attributes
    ----------
    question : the question that a person must decide before the spec can run; None where the proposed role is safe
    format : the format of its dates, where it is not that of SQL
    levels : its categories in their order, where the file states an order
    unit : of its numbers, where the file states durations
    asked : further questions that a person must decide about it, by key of the column
    distinct, missing : distinct values (see `ColumnSurvey`) and rows without one
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
    unit: str | None = None

    @property
    def of_own_texts(self) -> bool:
        """Whether it is left out since hardly any two people share a text of it."""
        return self.question is None and self.why.startswith((OWN_TEXT, MANY_TEXTS))

    @property
    def of_several_rows(self) -> bool:
        """Whether it seems to number people who have several rows each."""
        return self.question == SEVERAL_ROWS


#: A proposed role, the reason, and the question that a person must decide.
Proposed = tuple[Role, str, str | None]


def proposal_of(survey: Survey, column: ColumnSurvey, codes: IntArray, target: str | None) -> Proposal:
    """The role of a column that is looked at by itself.

    Parameters
    ----------
    codes : the codes of the column in the sample, shape (n,)
    target : the column that is taken for the target, if there is one
    """
    kind = type_of(column)
    if column.known == 0:
        proposed: Proposed | None = Role.EXCLUDE, "empty", None
    elif is_record(column.storage):
        proposed = Role.EXCLUDE, "holds records; their fields are columns of their own (source.paths)", None
    elif column.storage not in PLAIN and not column.storage.startswith(("DECIMAL", "ENUM")):
        proposed = Role.EXCLUDE, "holds lists or bytes, which cannot be grouped", None
    else:
        values = texts_of(survey.sample.column(column.name))
        proposed = (
            _as_code(column, values)
            or _as_identifier(column, kind, values)
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


def _repeats(column: ColumnSurvey) -> bool:
    """Whether some rows share a value, of a column with so many distinct values that they are counted exactly."""
    return column.distinct < column.known


def _as_identifier(column: ColumnSurvey, kind: ColumnType, values: list[str]) -> Proposed | None:
    """The role of a column that names people, by its name or its values; None for other columns."""
    unique = column.distinct / column.known
    direct = identifiers.by_name(column.name, unique)
    if kind is not ColumnType.DATE:
        direct = identifiers.by_values(values) or direct
    if direct is None:
        return None
    if unique > NEAR_UNIQUE and not (direct.shared and _repeats(column)):
        return Role.IDENTIFIER, direct.why, A_FEW_TWICE if _repeats(column) else None
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
    if column.name == target:
        return Role.SENSITIVE, _special(special.by, special.category), "sensitive is proposed, as the target"
    return Role.EXCLUDE, _special(special.by, special.category), AS_SPECIAL


def _special(by: str, category: str) -> str:
    return f"by its {by} {category}, a special category of personal data (GDPR, Art. 9)"


def read_labels(proposals: dict[str, Proposal], labels: Mapping[str, str]) -> None:
    """Propose otherwise for columns of which the label says what the name does not, and nobody is asked about yet."""
    for name, label in labels.items():
        proposal = proposals.get(name)
        if proposal is None or proposal.role is not Role.QUASI_IDENTIFIER or proposal.question is not None:
            continue
        special = special_category(label, [])
        if special is not None:
            why = _special("label", special.category)
            proposals[name] = replace(proposal, role=Role.EXCLUDE, why=why, question=AS_SPECIAL)
        elif proposal.type is ColumnType.NUMERIC and named_by(label, WEIGHTS):
            proposals[name] = replace(proposal, role=Role.EXCLUDE, why=WEIGHT_BY_LABEL)


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
        why = OWN_TEXT
        repeats = _repeats(column)
        return (Role.EXCLUDE, f"{why}; {IT_REPEATS}", None) if repeats else (Role.IDENTIFIER, why, None)
    if column.name == target:
        asked = AS_TARGET if column.distinct <= TARGET_VALUES else f"{AS_TARGET}; {AS_NUMBER}"
        return Role.SENSITIVE, PROPOSED_TARGET, asked
    if kind is ColumnType.CATEGORICAL and unique > MANY_DISTINCT:
        return Role.EXCLUDE, MANY_TEXTS, None
    if kind is ColumnType.CATEGORICAL and (once := written_once(survey.sample.column(column.name))):
        return Role.EXCLUDE, f"free text: {once:,} texts of {WORDS} words or more stand in one row each", AS_FREE_TEXT
    if kind is ColumnType.NUMERIC and (weight := weight_of_sample(column.name, survey.sample.column(column.name))):
        shared = ", nearly unique to a person" if is_fine(column) else ""
        return Role.EXCLUDE, f"{weight[0]}{shared}; {NAMED_IN_A_SPEC}", weight[1]
    if is_fine(column):
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
    """Whether some dates of a column have a time of day other than midnight."""
    moments = [text for text in texts_of(survey.sample.column(column.name))[:VALUES_READ] if ":" in text]
    return any(not re.search(r"[T ]00:00(:00)?(\.0*)?$", text) for text in moments)


def is_fine(column: ColumnSurvey) -> bool:
    """Whether a column is a number of so many different values that hardly two people share one."""
    many = column.distinct > SCALE and column.distinct / column.known > MANY_DISTINCT
    return many and type_of(column) is ColumnType.NUMERIC


def as_named_target(proposal: Proposal) -> Proposal:
    """The target that a person has named is kept as it is; only values that few share are still asked about.

    Raises
    ------
    InputError
        For a column that names people.
    """
    if proposal.role is Role.IDENTIFIER or proposal.of_several_rows:
        raise InputError(f"--target: {proposal.name} names people ({proposal.why}) and is not released; name another")
    why = "the target" if proposal.why == PROPOSED_TARGET else f"the target; {proposal.why}"
    asked = AS_NUMBER if proposal.type is ColumnType.NUMERIC else AS_TEXT
    question = f"sensitive is proposed, as the target; {asked}" if proposal.distinct > TARGET_VALUES else None
    return replace(proposal, role=Role.SENSITIVE, why=why, question=question)


def texts_of(column: pa.ChunkedArray) -> list[str]:
    """The distinct values of a column as texts, in the order of their first row."""
    return [str(value) for value in column.unique().drop_null().to_pylist()]


def share_text(share: float) -> str:
    """The text of a share of people or pairs; nearly all is not rounded up to all."""
    return "nearly 100 %" if 0.9995 <= share < 1 else f"{100 * share:.1f} %"
