"""Reading people for differential privacy: codes of public domains in place of values, and no row that fails.

No error may depend on the content of a row, since a question that fails would reveal it. A text that is no number, or
a value that no domain lists, is missing. A number beyond its range counts as the end of the range.

No value may be read in another way because of what other rows hold, since one row would then move every figure, far
beyond the noise. So engines read each value by itself, and a value has one text, however its column is stored.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from anon_pipeline.engine.databases import changes_beside
from anon_pipeline.engine.elsewhere import state_of_source
from anon_pipeline.engine.quoting import STRAY_QUOTE, StrayQuote
from anon_pipeline.engine.sql import float_text, literal, quoted
from anon_pipeline.engine.typed import FINE_ZONED, FLOATING, MOMENTS, Reader, is_whole
from anon_pipeline.errors import InputError
from anon_pipeline.home import sha256_of
from anon_pipeline.keys import Key
from anon_pipeline.spec import ColumnType, DifferentialPrivacy, PublicDomain, ReleaseSpec, Role

#: The end of a message about a source that breaks after the reservation; it names no line, as lines are people.
BROKEN = (
    "could not be read to its end; what the question costs stays spent, since failing may depend on the people in it; "
    "`anon-pipeline profile` says what is wrong"
)

#: The same of a file in which one row could decide where the fields of others end.
STRAY = f"{STRAY_QUOTE}; what the question costs stays spent, since failing may depend on the people in it"

#: What is said of the budget where the source changed, before and after the reservation.
UNSPENT = "nothing was spent"
SPENT = "nothing was answered, and what the question costs stays spent"


def broken(error: InputError) -> str:
    """Why a source could not be counted after the reservation, without the engine's words."""
    return STRAY if isinstance(error, StrayQuote) else BROKEN


class Counting(Protocol):
    """An engine that can count people in a source, without storing the source first."""

    def aggregated(self, spec: ReleaseSpec, query: Callable[[Reader, str], str], reads_rows: bool = True) -> pa.Table:
        """The result of a query over a source; `query` makes its text from a reader and the relation to select from."""


def asked_of(spec: ReleaseSpec) -> DifferentialPrivacy:
    """The section `differential_privacy` of the spec.

    Raises
    ------
    InputError
        Where the spec has no such section.
    """
    if spec.differential_privacy is None:
        raise InputError(
            f"{spec.folder / 'release.yaml'}: has no section differential_privacy: unit, budget and public domains "
            "are decided before anything is asked (docs/differential-privacy.md); `anon-pipeline init OTHER_NAME "
            "--from TABLE --noise` writes one to fill in"
        )
    return spec.differential_privacy


def readable(spec: ReleaseSpec) -> ReleaseSpec:
    """The spec for reading: columns with a public domain are read though excluded, and are numbers where it has some.

    What is a number is thus decided beforehand, and not by the values.
    """
    columns = dict(spec.columns)
    for name, domain in asked_of(spec).domains.items():
        role = Role.INSENSITIVE if columns[name].role is Role.EXCLUDE else columns[name].role
        kind = ColumnType.NUMERIC if domain.numeric else columns[name].type
        columns[name] = columns[name].model_copy(update={"role": role, "type": kind})
    return spec.model_copy(update={"columns": columns})


def source_versions(spec: ReleaseSpec, key: Key) -> tuple[str, ...]:
    """Hashes of the content of the source under the dataset's private key, each of 64 hexadecimal digits.

    They depend on the bytes of the files and on how they are read; the same people in another order are another
    version. New answers are kept under the first. Former versions of the program kept theirs under the others.
    """
    content = _content(spec)
    # Keys that were added to specs later, and are not stated, are left out: kept answers would else be paid for again.
    # For some hours of its history the program did not leave out `symbols`.
    hidden = (spec.source.unstated, spec.source.unstated - {"symbols"})
    read_as = [[spec.source.model_dump(mode="json", exclude=exclude)] for exclude in hidden]
    # Types are in the first alone, also where none is stated: what is kept under the others is found whatever they are.
    read_as.insert(0, [*read_as[0], _types(spec)])
    return tuple(key.derived("source version", name).hex() for name in dict.fromkeys(map(content, read_as)))


def _types(spec: ReleaseSpec) -> dict[str, str]:
    """The types that decide how a source is read: whether 1 is a code or its label, and what a condition compares.

    A column whose public domain has numbers is one of numbers, whatever the spec says. Others matter where they are
    asked about, or where a condition may name them.
    """
    asked = asked_of(spec)
    names = {*asked.domains, asked.person} if spec.source.where is None else set(spec.columns)
    return {
        name: column.type.value
        for name, column in spec.columns.items()
        if column.type is not None and name in names and not (name in asked.domains and asked.domains[name].numeric)
    }


def _content(spec: ReleaseSpec) -> Callable[[list[Any]], str]:
    """A function from how a source is read to a hash of that and of its content, which is read only once."""
    if not spec.source.is_file:
        answer = state_of_source(spec.source, spec.folder)
        if answer is None:
            raise InputError("source.changed: is missing; noisy answers are kept by what it says of the table")
        return lambda read_as: _sha256(json.dumps([*read_as, answer], default=str))
    path = spec.source_path
    if not path.exists():
        raise InputError(f"source.path: {spec.source.path}: there is no such file or folder beside the spec")
    written = {name: [column.format, column.missing] for name, column in spec.columns.items()}
    try:
        hashed = "".join(f"{_place(file, path)}\0{sha256_of(file)}\0" for file in files_of(spec))
    except OSError as error:
        raise InputError(f"source.path: {spec.source.path}: cannot be read ({error.strerror})") from None
    return lambda read_as: _sha256(json.dumps([*read_as, written], default=str) + hashed)


def files_of(spec: ReleaseSpec) -> list[Path]:
    """The files of a source on this machine; those of a database with the changes that are not yet moved into it."""
    path = spec.source_path
    return sorted(path.rglob("*.parquet")) if path.is_dir() else [path, *changes_beside(path)]


def _place(file: Path, path: Path) -> Path:
    """What names a file within its source: nothing where the source is this file."""
    return Path() if file == path else file.relative_to(path) if path.is_dir() else Path(file.name)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def columns_present(reader: Reader, relation: str, spec: ReleaseSpec) -> dict[str, str]:
    """The storage types of the columns of a source, which must have all columns that may be asked about.

    Raises
    ------
    InputError
        For a column that is not there, or a range over a column of dates; the header shows both.
    """
    storage = reader.storage(relation)
    asked = asked_of(spec)
    lacking = sorted({*asked.domains, *([asked.person] if asked.person is not None else [])} - set(storage))
    if lacking:
        raise InputError(f"columns: {spec.source.path} lacks {', '.join(lacking)}; correct the spec")
    for name, domain in asked.domains.items():
        kind = storage[name]
        if domain.numeric and not (
            is_whole(kind) or kind in FLOATING or kind.startswith(("DECIMAL", "ENUM")) or kind == "VARCHAR"
        ):
            raise InputError(f"differential_privacy.domains.{name}: has a range or bins, and the source holds {kind}")
    return storage


def check_header(engine: Counting, spec: ReleaseSpec, place: str) -> None:
    """Check that a source can be opened and has the columns that may be asked about, before anything is reserved.

    An engine's message is suppressed, since it may name a line, which is a person.

    Raises
    ------
    InputError
        Beginning with `place`, unless columns are absent.
    """
    found: list[InputError] = []

    def header(reader: Reader, relation: str) -> str:
        try:
            columns_present(reader, relation, spec)
        except InputError as error:
            found.append(error)
            raise
        return "SELECT 1 AS nothing"

    try:
        engine.aggregated(spec, header, False)
    except InputError:
        if found:
            raise
        raise InputError(
            f"{place}: {spec.source.path} cannot be read; `anon-pipeline profile` says what is wrong"
        ) from None


def code(reader: Reader, name: str, domain: PublicDomain, storage: str, missing: tuple[str, ...]) -> str:
    """An SQL expression for the place of a value in its public domain: 0 to size - 1, NULL where it is missing.

    For a domain that nobody listed it is the text itself.
    """
    if not domain.numeric:
        text = _text(name, storage, missing)
        if domain.values is None:
            return text
        places = {value: place for place, value in enumerate(domain.values)}
        cases = " ".join(f"WHEN {literal(text)} THEN {places[of]}" for text, of in _written(domain.values).items())
        return f"CAST(CASE {text} {cases} END AS BIGINT)"
    number = finite_number(reader, name, storage, missing)
    if domain.bins is not None:
        cases = " ".join(f"WHEN {number} < {edge!r} THEN {place}" for place, edge in enumerate(domain.bins[1:-1]))
        last = len(domain.bins) - 2
        coded = f"CASE WHEN {number} IS NULL THEN NULL {cases} ELSE {last} END"
        return f"CAST({coded} AS BIGINT)"
    low, high = domain.range or (0.0, 0.0)
    held = f"least(greatest({number}, CAST({low!r} AS DOUBLE)), CAST({high!r} AS DOUBLE))"
    place = f"CAST(floor(({held} - CAST({low!r} AS DOUBLE)) / CAST({domain.step!r} AS DOUBLE) + 0.5) AS BIGINT)"
    return f"CASE WHEN {number} IS NOT NULL THEN {place} END"  # `least` and `greatest` ignore missing values


def value(reader: Reader, name: str, domain: PublicDomain, storage: str, missing: tuple[str, ...]) -> str:
    """An SQL expression for the value that a condition compares: a number as it is, or a text of the public domain."""
    if domain.numeric:
        return finite_number(reader, name, storage, missing)
    text = _text(name, storage, missing)
    if domain.values is None:
        return text
    cases = " ".join(f"WHEN {literal(text)} THEN {literal(of)}" for text, of in _written(domain.values).items())
    return f"CASE {text} {cases} END"


def identifier(name: str, storage: str, missing: tuple[str, ...]) -> str:
    """An SQL expression for the identifier of a person as a text, NULL where it is not known.

    A whole number that is written with a point counts as the one without: see `_written`.
    """
    text = _text(name, storage, missing)
    if storage != "VARCHAR":
        return text
    return f"CASE WHEN {text} LIKE '%.0' THEN substr({text}, 1, length({text}) - 2) ELSE {text} END"


def _written(values: Sequence[str]) -> dict[str, str]:
    """The texts that mean a value of a public domain, each with the value: 3.0 is written as 3, too, and 3 as 3.0.

    Programs that write texts put a point into every whole number of a column as soon as one person has none.
    """
    whole = {value.partition(".")[0]: value for value in values if re.fullmatch(r"-?\d+\.0+", value)}
    with_point = {f"{value}.0": value for value in values if re.fullmatch(r"-?\d+", value)}
    return with_point | whole | {value: value for value in values}


def labels(domain: PublicDomain) -> list[str | float]:
    """The values that the codes of a public domain mean: texts, numbers of the grid, or the lower edges of bins."""
    if domain.values is not None:
        return list(domain.values)
    if domain.bins is not None:
        return list(domain.bins[:-1])
    return [domain.number_at(place) for place in range(domain.size)]


def finite_number(reader: Reader, name: str, storage: str, missing: tuple[str, ...]) -> str:
    """An SQL expression for a number of a column, NULL where there is none.

    A single-precision .7 is .7 by its text; by its bits it lies below an edge of .7, and no .7 that is asked equals it.
    """
    if storage == "VARCHAR" or storage.startswith("ENUM"):
        number = reader.parsed(_text(name, storage, missing), "DOUBLE")
    elif storage == "FLOAT":
        number = f"CAST(CAST({quoted(name)} AS VARCHAR) AS DOUBLE)"
    else:
        number = f"CAST({quoted(name)} AS DOUBLE)"
    if is_whole(storage) or storage.startswith("DECIMAL"):
        return number
    return f"CASE WHEN NOT {reader.is_nan(number)} AND NOT isinf({number}) THEN {number} END"


def _text(name: str, storage: str, missing: tuple[str, ...]) -> str:
    """An SQL expression for the text of a value, the same whatever stands beside it: 3 for 3.0, a day for midnight."""
    if storage in ("FLOAT", "DOUBLE"):
        text = f"({float_text(quoted(name))})"
    elif storage in MOMENTS and storage != "DATE":  # programs store days as moments, which have longer texts
        zoned = f"CAST({quoted(name)} AS TIMESTAMPTZ)" if storage == FINE_ZONED else quoted(name)
        moment = f"CAST({zoned} AS TIMESTAMP)"
        is_day = f"{moment} = CAST(CAST({moment} AS DATE) AS TIMESTAMP)"
        day, fine = f"CAST(CAST({moment} AS DATE) AS VARCHAR)", f"CAST({moment} AS VARCHAR)"
        text = f"(CASE WHEN {is_day} THEN {day} ELSE {fine} END)"
    else:
        text = quoted(name) if storage == "VARCHAR" else f"CAST({quoted(name)} AS VARCHAR)"
    markers = ", ".join(map(literal, _written(("", *missing))))
    return f"CASE WHEN {text} NOT IN ({markers}) THEN {text} END"


def codes(
    reader: Reader, relation: str, spec: ReleaseSpec, names: Mapping[str, PublicDomain] | None = None
) -> dict[str, str]:
    """The SQL expressions of `code` for the columns with a public domain, by name."""
    storage = columns_present(reader, relation, spec)
    chosen = asked_of(spec).domains if names is None else names
    return {name: code(reader, name, domain, storage[name], spec.source.missing) for name, domain in chosen.items()}
