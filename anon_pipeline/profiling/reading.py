"""How a table is read: the formats of its file and its columns, and questions about both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from anon_pipeline.engine.base import ColumnSurvey, ForeignTables, Survey
from anon_pipeline.engine.durations import units_of_durations
from anon_pipeline.engine.parquet_files import ordered_categories
from anon_pipeline.engine.records import fields_of, is_record
from anon_pipeline.engine.servers import levels_of_server
from anon_pipeline.engine.sources import kind_of
from anon_pipeline.engine.survey_files import described, is_survey_file, levels_of
from anon_pipeline.engine.text_files import NamesDifferByCapitals
from anon_pipeline.errors import number_of
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.file_format import file_format
from anon_pipeline.profiling.negatives import REMEDY, is_negative_of_accounts
from anon_pipeline.profiling.special_categories import is_of_kinds
from anon_pipeline.profiling.value_formats import MARKERS, Numbers, dates_of, numbers_of, other_values, sentinels_of
from anon_pipeline.spec import Column, ColumnType, Role, Source
from anon_pipeline.spec.source import path_parts

#: Names of columns whose digits are a code, not a quantity; codes near one another belong to one place or trade.
PLACES = ("zip", "zipcode", "postal", "postcode", "plz", "cap", "postleitzahl")
TRADES = ("naics", "nace", "isco", "isic", "soc", "occ", "occupation", "industry")
CODES = (*PLACES, *TRADES, "code", "codes", "cd", "fips", "kod", "codigo", "codice")
#: Digits and letters of a code, with at least one digit.
CODE = re.compile("(?=.*[0-9])[0-9A-Za-z -]{2,10}")
#: How codes are grouped by their first signs.
BY_FIRST_SIGNS = "hierarchy: {prefix: [5, 3, 2]}; with recode: {form: range} the table shows 101** where it has * else"
#: The most distinct whole numbers that may be codes of kinds of people.
FEW_KINDS = 20
#: The question about such numbers.
AS_KINDS = (
    "by its name it has kinds, and whole numbers may be their codes, of which a median says nothing; write "
    "categorical, or numeric if a higher one means more"
)

#: Names of columns with the number of something, such as a school or a case, and the question about them.
NUMBERS_OF = ("id", "ids", "identifier")
AS_NUMBER_OF = (
    "by its name it numbers something, and a median of such numbers says nothing; write categorical, or numeric if a "
    "higher one means more"
)


@dataclass(frozen=True)
class Reading:
    """The way in which a table is read.

    Attributes
    ----------
    source : the source with the format that was found
    asked : questions that a person must decide about the source, by its key
    formats : the formats of each column of dates
    asked_of : questions that a person must decide about a column, by column and key
    notes : findings that need no decision
    levels : the categories of each column where these are ordered, lowest first
    units : the unit of each column of durations
    labels : what a file of a survey says of each column
    """

    source: Source
    asked: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def read_table(engine: ForeignTables, table: Path, source: Source) -> tuple[Survey, Reading]:
    """Infer the formats of a table, and survey it in these formats.

    Raises
    ------
    InputError
        For a table that cannot be read, has no rows, or has a row of a person as its header.
    """
    source, asked = _found_of_file(table, source)
    if _is_partitioned(table):
        source = source.model_copy(update={"partitions": True})
    survey, source, apart = _survey(engine, table, source)
    if paths := _paths(survey, source):
        source = source.model_copy(update={"paths": {**source.paths, **paths}})
        survey = engine.survey(source, table)
    texts = {name: _texts(survey.sample.column(name)) for name in _unread(survey)}
    numbers = numbers_of(_without_others(texts))
    changes, doubts_of_numbers = _written_as(numbers, source)
    asked |= doubts_of_numbers
    columns = _Columns(list(survey.missing), notes=apart)
    for name, values in texts.items():
        others = other_values(values, numbers)
        if others:
            columns.add_numbers(name, others, survey)
        elif name not in numbers.columns or all(len(value) == len("20240131") for value in values):
            columns.add_dates(name, values)
    if tuple(columns.missing) != survey.missing or (changes and columns.missing):
        changes["missing"] = tuple(columns.missing)
    source = source.model_copy(update=changes)
    if changes or columns.formats:
        survey = engine.survey(source, table, columns.of_dates())
    if survey.empty:
        columns.notes.append(f"{number_of(survey.empty, 'row is', 'rows are')} empty throughout and counted as nobody")
    if survey.codes_with_na and "missing" not in asked:
        asked["missing"] = _asked_of_na(survey)
    for name, doubts in _doubtful_numbers(survey).items():
        columns.asked_of.setdefault(name, {}).update(doubts)
    if source.database is not None:
        levels = levels_of_server(source, table)
    else:
        levels = _levels_of_file(table) if table.is_file() else {}
    units = units_of_durations(table) if table.is_file() else {}
    labels = described(table, table.name).about if table.is_file() and is_survey_file(table) else {}
    labels = {source.rename.get(name, name): label for name, label in labels.items()}
    notes = tuple(columns.notes)
    return survey, Reading(source, asked, columns.formats, columns.asked_of, notes, levels, units, labels)


def _asked_of_na(survey: Survey) -> str:
    """The question about a text that is a code in some columns and means "not known" in others."""
    names = " and ".join(survey.codes_with_na)
    # In quotes, since YAML reads a bare ? as something else.
    everywhere, others = list(survey.missing), [mark for mark in survey.missing if mark != "NA"]
    return (
        f"NA stands among codes of two letters in {names}, where it may be Namibia, and in other columns; write "
        f"{everywhere} if it means not known everywhere, else {others} here and ['NA'] under missing of "
        "the columns in which it does"
    )


def _levels_of_file(table: Path) -> dict[str, tuple[str, ...]]:
    """The categories of the columns that a file states as ordered, lowest first."""
    if is_survey_file(table):
        return levels_of(table, table.name)
    return ordered_categories(table) if kind_of(table) == "parquet" else {}


def _is_partitioned(table: Path) -> bool:
    """Whether every Parquet file of a folder is in folders with names as in Hive, `year=2024`."""
    if not table.is_dir() or "=" in str(table.absolute()):
        return False
    within = [file.relative_to(table).parts[:-1] for file in table.rglob("*.parquet")]
    return bool(within) and all(parts and all("=" in part for part in parts) for parts in within)


def _survey(engine: ForeignTables, table: Path, source: Source) -> tuple[Survey, Source, list[str]]:
    """The survey of a table; columns whose names differ only by capitals get distinct names, with a note for each."""
    try:
        return engine.survey(source, table), source, []
    except NamesDifferByCapitals as error:
        source = source.model_copy(update={"rename": {**source.rename, **error.rename}})
        notes = [
            f"{name} is called {other}: another column differs from it by capitals only, and SQL reads both as one"
            for name, other in error.rename.items()
        ]
        return engine.survey(source, table), source, notes


def _paths(survey: Survey, source: Source) -> dict[str, str]:
    """The path of each plain field of a record without one, by column name: the field's name or, if taken, its path."""
    taken = {column.name.casefold() for column in survey.columns}
    stated = set(source.paths.values())
    paths = [
        path
        for column in survey.columns
        if is_record(column.storage)
        for path in fields_of(column.name, column.storage)
        if path not in stated
    ]
    ends = Counter(path_parts(path)[-1].casefold() for path in paths)
    named: dict[str, str] = {}
    for path in paths:
        *_, end = parts = path_parts(path)
        free = end.strip() and ends[end.casefold()] == 1 and end.casefold() not in taken
        name = end if free else "_".join(parts)
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        named[name] = path
    return named


def _found_of_file(table: Path, source: Source) -> tuple[Source, dict[str, str]]:
    """The source with the format of a text file, and the questions about it."""
    try:
        if not table.is_file() or kind_of(table) != "csv":
            return source, {}
        read = file_format(table, source)
    except OSError:
        return source, {}  # the engine cannot read it either, and raises an error with the reason
    return read.source, dict(read.asked)


@dataclass
class _Columns:
    """Findings about columns of texts so far.

    Attributes
    ----------
    missing : texts that mean "not known"
    formats, asked_of, notes : as in `Reading`
    """

    missing: list[str]
    formats: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked_of: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_numbers(self, name: str, others: Sequence[str], survey: Survey) -> None:
        """Add a column of numbers; `others` are its few other values."""
        if all(value in MARKERS or not value.strip() for value in others):
            self.missing += [marker for marker in others if marker not in self.missing]
            self.notes.append(
                f"{name} is a number but for {', '.join(map(repr, others))}, taken for missing everywhere"
            )
            return
        rows = sum(value in set(others) for value in survey.sample.column(name).to_pylist())
        hold, texts = ("row holds" if rows == 1 else "rows hold"), ("text" if len(others) == 1 else "texts")
        remedy = f"numeric and {'this' if len(others) == 1 else 'these'} {texts} under missing"
        if any(map(is_negative_of_accounts, others)):  # a number that is declared missing would be lost
            remedy = REMEDY
        self.asked_of.setdefault(name, {})["type"] = (
            f"{rows} {hold} {len(others)} {texts} among numbers; write categorical, or {remedy}"
        )

    def add_dates(self, name: str, values: Sequence[str]) -> None:
        """Add a column of dates, if its values are dates."""
        known = [value for value in values if value not in MARKERS]
        formats, question = dates_of(known)
        if not formats or len(known) < len(values) - 1:
            return
        self.missing += [value for value in values if value in MARKERS and value not in self.missing]
        self.formats[name] = formats
        if question is not None:
            self.asked_of.setdefault(name, {})["format"] = question

    def of_dates(self) -> dict[str, Column]:
        return {
            name: Column(role=Role.EXCLUDE, type=ColumnType.DATE, format=formats)
            for name, formats in self.formats.items()
        }


def _doubtful_numbers(survey: Survey) -> dict[str, dict[str, str]]:
    """Questions about columns that read as numbers: whether they are codes, and numbers that may mean "not known"."""
    asked: dict[str, dict[str, str]] = {}
    for surveyed in survey.columns:
        if type_of(surveyed) is not ColumnType.NUMERIC:
            continue
        values = [float(value) for value in survey.sample.column(surveyed.name).unique().drop_null().to_pylist()]
        whole = all(value == int(value) for value in values if abs(value) < 2**53)
        if named_by(surveyed.name, CODES) and whole and surveyed.distinct > 2:
            steps = f" and {BY_FIRST_SIGNS}" if named_by(surveyed.name, PLACES) else ""
            asked.setdefault(surveyed.name, {})["type"] = (
                "by its name a code, whose leading zeros may be lost; write numeric if it is a quantity, else "
                f"categorical{steps}"
            )
            continue
        if named_by(surveyed.name, NUMBERS_OF) and whole and surveyed.distinct > 2:
            asked.setdefault(surveyed.name, {})["type"] = AS_NUMBER_OF
            continue
        if is_of_kinds(surveyed.name) and whole and 2 < surveyed.distinct <= FEW_KINDS:
            asked.setdefault(surveyed.name, {})["type"] = AS_KINDS
        if markers := sentinels_of(values):
            column = survey.sample.column(surveyed.name).drop_null().to_pylist()
            rows = number_of(sum(float(value) in map(float, markers) for value in column), "row", "rows")
            said = "stands" if len(markers) == 1 else "stand"
            means = "it means" if len(markers) == 1 else "they mean"
            below = all(marker.startswith("-") for marker in markers)
            where = "where no other number is negative" if below else "far from all others"
            asked.setdefault(surveyed.name, {})["missing"] = (
                f"{', '.join(markers)} {said} in {rows}, {where}; write [{', '.join(markers)}] if "
                f"{means} not known, else []"
            )
    return asked


def type_of(column: ColumnSurvey) -> ColumnType:
    """The type of a column whose format is known."""
    if column.present and column.numbers == column.present and not column.codes and column.storage != "BOOLEAN":
        return ColumnType.NUMERIC
    return ColumnType.DATE if column.present and column.dates == column.present else ColumnType.CATEGORICAL


def _unread(survey: Survey) -> list[str]:
    """The columns of texts that cannot be read as dates without a format."""
    return [
        column.name
        for column in survey.columns
        if column.storage == "VARCHAR" and column.present and column.dates < column.present
    ]


def _without_others(texts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The values of each column without those that mean "not known" among numbers."""
    return {name: [value for value in values if value not in MARKERS] for name, values in texts.items()}


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [str(value) for value in column.unique().drop_null().to_pylist()]


def _written_as(numbers: Numbers, source: Source) -> tuple[dict[str, object], dict[str, str]]:
    """What is added to a source on the format of numbers, and the questions about it.

    Columns of texts may have numbers in a format for people, in a database as well as in a file.
    """
    changes: dict[str, object] = {"symbols": numbers.symbols} if numbers.symbols and not source.symbols else {}
    if source.decimal is not None or source.thousands is not None:
        return changes, {}
    changes |= {"decimal": numbers.decimal} if numbers.decimal != "." else {}
    changes |= {"thousands": numbers.thousands} if numbers.thousands is not None else {}
    return changes, {"decimal": numbers.question} if numbers.question is not None else {}
