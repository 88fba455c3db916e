"""A table as it is to be read: how its file and its columns are written, with what is asked of either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from anon_pipeline.engine.base import ForeignTables, Survey
from anon_pipeline.engine.sources import kind_of
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.file_format import file_format
from anon_pipeline.profiling.notation import MARKERS, dates_of, numbers_of, other_values, sentinel_of
from anon_pipeline.spec import Column, ColumnType, Role, Source

#: Names of columns whose digits are a code, not a quantity; codes that lie near one another are of one place or trade.
CODES = ("zip", "zipcode", "postal", "postcode", "plz", "cap", "code", "codes", "cd", "fips", "naics", "nace", "isco",
         "isic", "soc", "occ", "occupation", "industry", "postleitzahl", "kod", "codigo", "codice")  # fmt: skip
PLACES = ("zip", "zipcode", "postal", "postcode", "plz", "cap", "postleitzahl")


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Attributes
    ----------
    source : with what was found of the file
    asked : what a person must decide of the source, by its key
    formats : per column of dates how these are written
    asked_of : what a person must decide of a column, by column and key
    notes : what was found and needs no decision
    """

    source: Source
    asked: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: Sequence[str] = ()


def read_table(engine: ForeignTables, table: Path, source: Source) -> tuple[Survey, Reading]:
    """Find out how a table is written, and survey it as it then reads.

    Raises
    ------
    InputError
        For a table that cannot be read, has no rows, or begins with a person in the place of a header.
    """
    asked: dict[str, str] = {}
    try:
        is_text = table.is_file() and kind_of(table) == "csv"
        if is_text:
            found = file_format(table, source)
            source, asked = found.source, dict(found.asked)
    except OSError:
        is_text = False  # the engine cannot read it either, and says why
    survey = engine.survey(source, table)
    texts = {name: _texts(survey.sample.column(name)) for name in _unread(survey)}
    numbers = numbers_of(_without_others(texts))
    changes: dict[str, object] = {}
    if is_text and (numbers.decimal, numbers.thousands) != (".", None) and not {"decimal", "thousands"} & _set(source):
        changes |= {"decimal": numbers.decimal} if numbers.decimal != "." else {}
        changes |= {"thousands": numbers.thousands} if numbers.thousands is not None else {}
    if is_text and numbers.question is not None:
        asked["decimal"] = numbers.question
    missing, notes = list(survey.missing), []
    columns: dict[str, Column] = {}
    asked_of: dict[str, dict[str, str]] = {}
    formats: dict[str, tuple[str, ...]] = {}
    for name, values in texts.items():
        others = other_values(values, numbers)
        if others and set(others) <= MARKERS:
            missing += [one for one in others if one not in missing]
            notes.append(f"{name} is a number but for {', '.join(map(repr, others))}, taken for missing everywhere")
        elif others:
            rows = sum(one in set(others) for one in survey.sample.column(name).to_pylist())
            asked_of.setdefault(name, {})["type"] = (
                f"{rows} rows hold {len(others)} texts among numbers; write categorical, or numeric and these texts "
                "under missing"
            )
        elif name not in numbers.columns or all(len(one) == len("20240131") for one in values):
            known = [one for one in values if one not in MARKERS]
            found_formats, question = dates_of(known)
            if found_formats and len(known) >= len(values) - 1:
                missing += [one for one in values if one in MARKERS and one not in missing]
                formats[name] = found_formats
                columns[name] = Column(role=Role.EXCLUDE, type=ColumnType.DATE, format=found_formats)
                if question is not None:
                    asked_of.setdefault(name, {})["format"] = question
    if tuple(missing) != survey.missing or (changes and missing):
        changes["missing"] = tuple(missing)
    source = source.model_copy(update=changes)
    if changes or columns:
        survey = engine.survey(source, table, columns)
    if survey.empty:
        notes.append(f"{survey.empty:,} rows are empty throughout and count as nobody")
    for name, doubts in _doubtful_numbers(survey).items():
        asked_of.setdefault(name, {}).update(doubts)
    return survey, Reading(source, asked, formats, asked_of, tuple(notes))


def _doubtful_numbers(survey: Survey) -> dict[str, dict[str, str]]:
    """What is asked of columns that read as numbers: codes, and numbers that may stand for "not known"."""
    asked: dict[str, dict[str, str]] = {}
    for one in survey.columns:
        if not one.present or one.numbers < one.present or one.codes or one.storage == "BOOLEAN":
            continue
        values = [float(value) for value in survey.sample.column(one.name).unique().drop_null().to_pylist()]
        whole = all(value == int(value) for value in values if abs(value) < 2**53)
        if named_by(one.name, CODES) and whole and one.distinct > 2:
            steps = " and hierarchy: {prefix: [5, 3, 2]}" if named_by(one.name, PLACES) else ""
            asked.setdefault(one.name, {})["type"] = (
                f"by its name a code, whose leading zeros may be lost; write categorical{steps}, or numeric if it is a "
                "quantity"
            )
        elif (marker := sentinel_of(values)) is not None:
            column = survey.sample.column(one.name).drop_null().to_pylist()
            rows = sum(float(value) == float(marker) for value in column)
            asked.setdefault(one.name, {})["missing"] = (
                f"{marker} stands in {rows} rows, far from all others; write [{marker}] if it means not known, else []"
            )
    return asked


def _unread(survey: Survey) -> list[str]:
    """The columns of texts that do not read as dates as they are."""
    return [one.name for one in survey.columns if one.storage == "VARCHAR" and one.present and one.dates < one.present]


def _without_others(texts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Values without those that stand for "not known" among numbers."""
    return {name: [one for one in values if one not in MARKERS] for name, values in texts.items()}


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [str(value) for value in column.unique().drop_null().to_pylist()]


def _set(source: Source) -> set[str]:
    return {name for name in ("decimal", "thousands") if getattr(source, name) is not None}
