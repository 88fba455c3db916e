"""The types of a source's columns, from the spec and from the source's values; values that do not fit are refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from unicodedata import normalize

from anon_pipeline.arrays import LARGEST_EXACT
from anon_pipeline.engine.account_negatives import REMEDY, with_usual_sign
from anon_pipeline.engine.records import is_record
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.spec import Column, ColumnType, ReleaseSpec, Role, did_you_mean

WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
#: Whole numbers that may be beyond a BIGINT, such as sums of DuckDB.
WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
FLOATING = {"FLOAT", "DOUBLE", *WIDE}
ZONED = "TIMESTAMP WITH TIME ZONE"
#: Moments with a time zone and nanoseconds, as pandas writes them; hardly any function of DuckDB takes them.
FINE_ZONED = "TIMESTAMPTZ_NS"
MOMENTS = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", ZONED, FINE_ZONED}
#: A number beyond this is no measurement of a person, and would overflow in later steps.
LARGEST = "1e18"
#: A float can hold every decimal with so many digits.
EXACT_DIGITS = 15

#: A column of a Parquet file may have no type, if nobody has a value. It is read as texts are.
EMPTY = '"NULL"'

PLAIN = {"VARCHAR", "BOOLEAN", "UUID", "TIME", EMPTY, *WHOLE, *FLOATING, *MOMENTS}


class Reader(Protocol):
    """The part of an engine's session that is needed to type columns."""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A small result, as Python values."""

    def storage(self, relation: str) -> dict[str, str]:
        """The columns of a relation and their types, in DuckDB's words."""

    def parsed(self, text: str, target: str) -> str:
        """A text as a DOUBLE or a TIMESTAMP by DuckDB's rules; missing where it cannot be read as such."""

    def is_nan(self, number: str) -> str:
        """Whether a number is NaN; missing where the number is missing."""

    def hashed(self, columns: Sequence[str]) -> str:
        """A 64-bit hash of the values of columns alone; each engine has its own hash."""


@dataclass(frozen=True)
class OpenSource:
    """A source as an engine sees it: a relation to select from, and the file to name in messages.

    `files` are the Parquet files that the relation reads, if it reads such files. For a table that keeps former states,
    `table` is the state that is read: its `format`, and its `version` (Delta) or `snapshot` (Iceberg). `by_values` says
    that whether numbers are whole was decided from all of them, as the source states no types. `check` looks at the
    whole file where each value is to be read by itself, and raises where one row could decide how others are read.
    """

    relation: str
    label: str
    files: tuple[Path, ...] = ()
    table: dict[str, str] | None = None
    by_values: bool = False
    check: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class TypedColumn:
    """How a column of the source becomes a column of the stored table.

    `is_text` says that its texts are stored as in the source, except those that stand for "not known". `by_values` says
    that people's values decide in which type it is stored: whole numbers or not, days or moments.
    """

    name: str
    type: ColumnType
    expression: str
    is_text: bool = False
    by_values: bool = False


def is_whole(storage: str) -> bool:
    return storage in WHOLE


def is_ordered(storage: str) -> bool:
    """Whether values of this storage type are numbers or dates."""
    return storage in {*WHOLE, *FLOATING, *MOMENTS} or storage.startswith("DECIMAL")


def coded(name: str, kind: ColumnType, storage: str, alias: str = "") -> str:
    """The value of a column as a Domain holds it: text, whole number, float, or days or microseconds since 1970."""
    column = f"{alias}.{quoted(name)}" if alias else quoted(name)
    if kind is ColumnType.CATEGORICAL:
        return column if storage == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    if kind is ColumnType.DATE:
        if storage == "DATE":
            return f"CAST(({column} - DATE '1970-01-01') AS BIGINT)"
        column = f"CAST({column} AS TIMESTAMPTZ)" if storage == FINE_ZONED else column
        return f"epoch_us(CAST({column} AS TIMESTAMP))"
    if storage.startswith("DECIMAL") and int(storage.split("(")[1].split(",")[0]) > EXACT_DIGITS:
        column = f"CAST({column} AS VARCHAR)"  # engines convert texts to the same floats, but not long decimals
    return f"CAST({column} AS {'BIGINT' if is_whole(storage) else 'DOUBLE'})"


def restored_moment(column: str, storage: str) -> str:
    """The reverse of `coded` for a date or a moment."""
    return f"DATE '1970-01-01' + CAST({column} AS INTEGER)" if storage == "DATE" else f"make_timestamp({column})"


@dataclass(frozen=True)
class TypedPeople:
    """The people of a source who are read, and the types of their columns.

    Attributes
    ----------
    columns : how each column that is not excluded is stored
    relation : the relation to select them from
    left_out : how many have no target and are therefore left out
    """

    columns: list[TypedColumn]
    relation: str
    left_out: int


def typed_people(reader: Reader, source: OpenSource, spec: ReleaseSpec) -> TypedPeople:
    """The people who are read, and how each column that is not excluded is stored.

    People who are left out do not influence the types.

    Raises
    ------
    InputError
        For a column without a role, one the source lacks, text among numbers, infinity, an empty table, fewer than k
        rows, or a target with a single value.
    """
    storage = reader.storage(source.relation)
    check_columns(storage, source.label, spec)
    source, left_out = _with_target(reader, source, storage, spec)
    typed = []
    for name in spec.stored:
        column = spec.columns[name]
        _check_plain(name, storage[name])
        typed.append(_typed(reader, source, name, storage[name], column, spec.source.missing))
    _check_people(reader, source, spec, typed)
    _check_targets(reader, source, spec, typed)
    for column_of_weights in typed:
        if column_of_weights.name == spec.sampling_weight:
            _check_weights(reader, source, column_of_weights)
    return TypedPeople(typed, source.relation, left_out)


def _with_target(
    reader: Reader, source: OpenSource, storage: Mapping[str, str], spec: ReleaseSpec
) -> tuple[OpenSource, int]:
    """The source without the people whom the spec leaves out because they have no target, and their number."""
    if spec.missing_target != "leave_out":
        return source, 0
    _check_plain(spec.target, storage[spec.target])
    name, missing = spec.target, spec.source.missing
    target = _typed(reader, source, name, storage[name], spec.columns[name], missing).expression
    left_out = _count(reader, f"SELECT count(*) FROM {source.relation} WHERE {target} IS NULL")
    known = f"(SELECT * FROM {source.relation} WHERE {target} IS NOT NULL) AS known"
    return replace(source, relation=known), left_out


def _check_plain(name: str, storage: str) -> None:
    if is_record(storage):
        raise InputError(
            f"columns.{name}: holds records; exclude it, and name what is needed of it under source.paths, as in "
            f"postcode: {name}.postcode"
        )
    if storage not in PLAIN and not storage.startswith(("DECIMAL", "ENUM")):
        hint = ", or store texts or numbers (SQLite gets bytes of whole numbers of numpy)" if storage == "BLOB" else ""
        raise InputError(f"columns.{name}: holds {storage.split('(')[0]} values; flatten or exclude it{hint}")


def check_columns(names: Collection[str], label: str, spec: ReleaseSpec) -> None:
    """Compare the columns of a source with those of the spec.

    Raises
    ------
    InputError
        For a column without a role, one that the source lacks, or one that a step is said to make.
    """
    unnamed = [name for name in names if name not in spec.columns]
    absent = [name for name, column in spec.columns.items() if name not in names and not column.made]
    _refuse_other_forms(absent, unnamed, label)
    # If most of the spec's columns are missing, the names may be the first person's values.
    if unnamed and 2 * (len(names) - len(unnamed)) < sum(not column.made for column in spec.columns.values()):
        share = "none" if len(unnamed) == len(names) else "few"
        raise InputError(
            f"columns: {label} has {share} of the spec's columns; its first line must name them, "
            "and every line have as many fields"
        )
    for name in absent:
        if near := did_you_mean(name, unnamed):
            raise InputError(f"columns: {label} has no column {name}; {near}correct the name or remove it")
    if unnamed:
        renamed = absent and (
            f", and where one is a column of the spec that is not there ({', '.join(absent)}) under a new name, write "
            f"source.rename, such as {{{unnamed[0]}: {absent[0]}}}"
        )
        raise InputError(
            f"columns: {label} has columns without a role: {', '.join(unnamed)}; "
            f"give each a role (exclude leaves it out){renamed or ''}"
        )
    made = [name for name, column in spec.columns.items() if name in names and column.made]
    if made:
        raise InputError(
            f"columns: {label} has {', '.join(made)}, which a step is said to make; rename what the step makes"
        )
    if absent:
        raise InputError(f"columns: {label} has no column {', '.join(absent)}; correct the name or remove it")


def _refuse_other_forms(absent: Collection[str], unnamed: Collection[str], label: str) -> None:
    """Tell of names that look the same: Unicode writes ö in two ways, and files of macOS often have the second one."""
    there = {normalize("NFC", name): name for name in unnamed}
    for name in absent:
        if (other := there.get(normalize("NFC", name))) is not None:
            raise InputError(
                f'columns: {label} writes {name} in another form of Unicode; write "{ascii(other)[1:-1]}" in the '
                "spec, with the quotes"
            )


def typed_quasi_identifiers(
    reader: Reader, source: OpenSource, spec: ReleaseSpec, types: Mapping[str, ColumnType]
) -> list[TypedColumn]:
    """The quasi-identifiers of another table of people, such as a population, with the types of the source.

    Raises
    ------
    InputError
        For a column that the table lacks or that holds values of another type.
    """
    storage = reader.storage(source.relation)
    absent = [name for name in spec.quasi_identifiers if name not in storage]
    if absent:
        raise InputError(f"{source.label}: has no column {', '.join(absent)}; a population has all quasi-identifiers")
    typed = []
    for name in spec.quasi_identifiers:
        column = spec.columns[name].model_copy(update={"type": types[name]})
        found = _typed(reader, source, name, storage[name], column, spec.source.missing)
        if found.type is ColumnType.NUMERIC and storage[name].startswith("DECIMAL"):
            found = replace(found, expression=_told_apart(reader, source, name, found.expression))
        typed.append(found)
    return typed


def _told_apart(reader: Reader, source: OpenSource, name: str, value: str) -> str:
    """Decimals of a population that are later taken for floats, as whole numbers where these lose digits.

    Raises
    ------
    InputError
        Where there are fractions as well, so that floats would take several people's numbers for one.
    """
    if not _count(reader, f"SELECT count(*) FROM {source.relation} WHERE abs({value}) > {LARGEST_EXACT}"):
        return value
    if parts := _count(reader, f"SELECT count(*) FROM {source.relation} WHERE {value} <> floor({value})"):
        raise InputError(
            f"columns.{name}: {source.label} has numbers beyond 2^53, and {number_of(parts, 'fraction', 'fractions')} "
            "among them; floats take several such numbers for one, so store whole numbers"
        )
    return f"({value})::BIGINT"


def _typed(
    reader: Reader,
    source: OpenSource,
    name: str,
    storage: str,
    column: Column,
    missing: tuple[str, ...],
) -> TypedColumn:
    value, storage = _in_usual_types(quoted(name), storage)
    value, storage = _whole_of_these(reader, source, value, storage)
    is_text = storage == "VARCHAR" or storage.startswith("ENUM")
    if is_text:
        markers = ", ".join(literal(marker) for marker in ("", *missing))
        value = f"CASE WHEN {value}::VARCHAR NOT IN ({markers}) THEN {value}::VARCHAR END"
    kind = column.type
    if kind is None:
        kind = detected(reader, source, value) if is_text else natural_type(storage)
    if kind is ColumnType.CATEGORICAL:
        if storage == "TIMESTAMP_NS":
            value = f"({value})::TIMESTAMP"  # rounded to the microsecond, like a column of dates
        return TypedColumn(name, kind, value, storage == "VARCHAR", source.by_values and storage == "DOUBLE")
    if kind is ColumnType.DATE:
        grouped = column.role is Role.QUASI_IDENTIFIER
        moments = _moments(reader, source, name, storage, value, grouped)
        return TypedColumn(name, kind, moments, by_values=storage != "DATE")
    if storage == "BOOLEAN" or storage in MOMENTS or storage in ("UUID", "TIME"):
        raise InputError(f"columns.{name}.type: is numeric, but the source holds {storage} values; change the type")
    if is_text:
        # DuckDB trims blanks of every alphabet, and reads no number that has one.
        whole = f"regexp_full_match(trim({value}, ' '), '[+-]?[0-9]{{1,18}}')"
        if _count(reader, f"SELECT count(*) FROM {source.relation} WHERE NOT {whole}"):
            value = _parsed(reader, source, name, value, "DOUBLE", "number")
            storage = "DOUBLE"
        else:
            value, storage = f"({value})::BIGINT", "BIGINT"
    number = f"({value})::DOUBLE"
    grouped = column.role is Role.QUASI_IDENTIFIER
    large, fault = (
        (f"abs({number}) > {LARGEST}", f"infinite or beyond {LARGEST}") if grouped else (f"isinf({number})", "infinite")
    )
    beyond = _count(reader, f"SELECT count(*) FROM {source.relation} WHERE NOT {reader.is_nan(number)} AND {large}")
    if beyond:
        raise InputError(
            f"columns.{name}: {number_of(beyond, 'value is', 'values are')} {fault}; replace them by numbers or "
            "missing values (infinity as the column's missing: [inf]), or declare the column categorical"
        )
    if grouped and (storage in WIDE or (storage.startswith("DECIMAL") and storage.endswith(",0)"))):
        value = f"({value})::BIGINT"  # whole numbers stay whole in classes; none is beyond `LARGEST`
    if storage in ("FLOAT", "DOUBLE"):
        # NaN is a missing value, and there is one zero.
        value = f"CASE WHEN NOT {reader.is_nan(f'({value})::DOUBLE')} THEN ({value})::DOUBLE + 0.0 END"
        value = f"({value})::FLOAT" if storage == "FLOAT" else value
    return TypedColumn(name, kind, value, by_values=is_text or source.by_values)


def _whole_of_these(reader: Reader, source: OpenSource, value: str, storage: str) -> tuple[str, str]:
    """Numbers and their type: whole where all people who are read have whole ones, whatever others in the file have.

    Where a file states no types, one fraction of somebody who is not read has made floats of the column.
    """
    if not source.by_values or storage not in ("DOUBLE", *WIDE):
        return value, storage
    number = f"({value})::DOUBLE"
    no_whole = f"({reader.is_nan(number)} OR {number} <> floor({number}) OR abs({number}) >= {LARGEST})"
    if _count(reader, f"SELECT count(*) FROM {source.relation} WHERE {no_whole}"):
        return value, storage
    return f"({value})::BIGINT", "BIGINT"


def _in_usual_types(value: str, storage: str) -> tuple[str, str]:
    """A column in a type that every function takes, and that type."""
    if storage == EMPTY:
        return f"CAST({value} AS VARCHAR)", "VARCHAR"
    return (f"CAST({value} AS TIMESTAMPTZ)", ZONED) if storage == FINE_ZONED else (value, storage)


def _moments(reader: Reader, source: OpenSource, name: str, storage: str, value: str, grouped: bool) -> str:
    """The values of a column of dates: days where all of them are, moments elsewhere.

    Groups of people have dates that few libraries can hold if those of people are beyond the year 9999.
    """
    is_text = storage == "VARCHAR" or storage.startswith("ENUM")
    if not is_text and storage not in MOMENTS:
        raise InputError(f"columns.{name}.type: is date, but the source holds {storage}; change the type")
    if is_text:
        value = _parsed(reader, source, name, value, "TIMESTAMP", "date")
    moment = f"({value})::TIMESTAMP"
    fits = f"(isfinite({moment}) AND year({moment}) BETWEEN 1 AND 9999)" if grouped else f"isfinite({moment})"
    unfit = _count(reader, f"SELECT count(*) FROM {source.relation} WHERE NOT {fits}")
    if unfit:
        fault = "infinite or lie outside of the years 1 to 9999" if grouped else "infinite"
        raise InputError(f"columns.{name}: {unfit} dates are {fault}; replace them by dates or missing values")
    days = _count(reader, f"SELECT count(*) FROM {source.relation} WHERE {value} <> ({value})::DATE")
    return f"({value})::DATE" if not days else f"({value})::TIMESTAMP"


def natural_type(storage: str) -> ColumnType:
    """The column type for a storage type where the spec states none."""
    if storage in MOMENTS:
        return ColumnType.DATE
    return ColumnType.NUMERIC if is_ordered(storage) else ColumnType.CATEGORICAL


def detected(reader: Reader, source: OpenSource, value: str) -> ColumnType:
    """A column of texts is numeric if all texts are numbers, unless a leading zero or the length shows a code."""
    code = f"({reader.parsed(value, 'DOUBLE')} IS NULL OR regexp_matches(trim({value}), '^[+-]?(0[0-9]|[0-9]{{19}})'))"
    query = f"SELECT count(*) FILTER (WHERE {value} IS NOT NULL AND {code}), count({value}) FROM {source.relation}"
    codes, known = reader.rows(query)[0]
    return ColumnType.NUMERIC if known and not codes else ColumnType.CATEGORICAL


def _parsed(reader: Reader, source: OpenSource, name: str, value: str, target: str, singular: str) -> str:
    parsed = reader.parsed(value, target)
    bad = _count(reader, f"SELECT count(*) FROM {source.relation} WHERE {value} IS NOT NULL AND {parsed} IS NULL")
    if bad:
        what = f"columns.{name}: {number_of(bad, f'value is no {singular}', f'values are no {singular}s')}"
        signed = f"{parsed} IS NULL AND {reader.parsed(f'({with_usual_sign(value)})', target)} IS NOT NULL"
        if target == "DOUBLE" and (some := _count(reader, f"SELECT count(*) FROM {source.relation} WHERE {signed}")):
            if some == bad:
                what = f"columns.{name}: {number_of(bad, 'value seems', 'values seem')} to be negative"
            else:
                what += f"; {number_of(some, 'of them seems', 'of them seem')} to be negative"
            raise InputError(f"{what}, written as accounts do: {REMEDY}, or declare the column categorical")
        raise InputError(
            f"{what}; declare the column categorical, list its missing markers under source.missing, or correct them"
        )
    return parsed


def check_size(rows: int, label: str, spec: ReleaseSpec) -> None:
    """
    Raises
    ------
    InputError
        For a table of nobody, or of fewer people than k.
    """
    if rows == 0:
        nobody = "the table is empty" if spec.source.where is None else "no row of the table meets source.where"
        raise InputError(f"{label}: {nobody}")
    if rows < spec.k:
        raise InputError(f"{label}: the table has {number_of(rows, 'row', 'rows')}, fewer than k = {spec.k}")


def _check_people(reader: Reader, source: OpenSource, spec: ReleaseSpec, typed: list[TypedColumn]) -> None:
    target = next(column for column in typed if column.name == spec.target)
    rows, known, distinct = reader.rows(
        f"SELECT count(*), count(value), count(DISTINCT value) FROM "
        f"(SELECT {target.expression} AS value FROM {source.relation}) AS target"
    )[0]
    check_size(rows, source.label, spec)
    if spec.aggregates:  # no model is trained, so there need be no target
        return
    if known < rows and spec.missing_target is None:
        raise InputError(
            f"target: {spec.target} is missing in {number_of(rows - known, 'row', 'rows')}; say missing_target: "
            "leave_out (these people are not in the release) or missing_target: release (they are, and nothing is "
            "learnt from them), or choose another target"
        )
    if distinct < 2:
        raise InputError(f"target: {spec.target} has one value only, so there is nothing to learn; choose another")
    if target.type is ColumnType.CATEGORICAL and distinct > max(100, rows // 10):
        raise InputError(
            f"target: {spec.target} has {distinct} different texts in {rows} rows; declare it numeric or choose another"
        )


def _check_targets(reader: Reader, source: OpenSource, spec: ReleaseSpec, typed: list[TypedColumn]) -> None:
    """Refuse numbers whose squares no float holds, where models learn to predict them."""
    for column in typed:
        if column.name not in {spec.target, *spec.guide.targets} or column.type is not ColumnType.NUMERIC:
            continue
        beyond = _count(
            reader, f"SELECT count(*) FROM {source.relation} WHERE abs(CAST({column.expression} AS DOUBLE)) > {LARGEST}"
        )
        if beyond and not spec.aggregates:
            raise InputError(
                f"columns.{column.name}: {number_of(beyond, 'value is', 'values are')} beyond {LARGEST}, and models "
                "are to predict them; replace them by numbers or missing values, or choose another unit"
            )


def _check_weights(reader: Reader, source: OpenSource, column: TypedColumn) -> None:
    place = f"sampling_weight: {column.name}"
    if column.type is not ColumnType.NUMERIC:
        raise InputError(f"{place} holds texts; a weight is a number of people, so declare it numeric or correct it")
    rows, known, fits, people = reader.rows(
        f"SELECT count(*), count(CASE WHEN value > 0 THEN 1 END), count(CASE WHEN value <= {LARGEST} THEN 1 END), "
        f"sum(CASE WHEN value <= {LARGEST} THEN value ELSE 0 END) FROM "
        f"(SELECT CAST({column.expression} AS DOUBLE) AS value FROM {source.relation}) AS weights"
    )[0]
    if known < rows:
        raise InputError(
            f"{place} is missing or not above 0 in {number_of(rows - known, 'row', 'rows')}; correct them, or leave "
            f"these rows out (source.where: {column.name} > 0)"
        )
    if fits < rows:
        raise InputError(
            f"{place} is beyond {LARGEST} in {number_of(rows - fits, 'row', 'rows')}; a weight is a number of people, "
            "so correct them"
        )
    if people < rows * (1 - 1e-9):
        raise InputError(
            f"{place} adds up to fewer people than the table has; a weight says how many people of the population a "
            "row stands for, so multiply weights that were scaled to another sum by people per row"
        )


def _count(reader: Reader, query: str) -> int:
    return int(reader.rows(query)[0][0])
