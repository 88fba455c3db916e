"""The section `source` of a spec: the place of the table of people, and its format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from anon_pipeline.spec.locations import ICEBERG_METADATA, IN_CATALOGUE, is_address, parts_of
from anon_pipeline.spec.parts import Strict

#: Keys that apply to files only.
OF_FILES = {"sheet", "delimiter", "encoding", "skip", "header", "names", "union_by_name", "partitions"}
#: Formats of tables that keep their former states; each is a key of `source`.
TABLES = ("delta", "iceberg")
#: A currency or a unit: nothing of which a number itself may consist, and no dash of any length, which may be its sign.
SYMBOL = r"[^\d\s.,'\u2019+\-\u2010-\u2015\u2212]{1,10}"

#: A name on a path: unquoted or, if it has a dot or a quote, in double quotes, with inner quotes doubled.
STEP = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')


def path_parts(path: str) -> tuple[str, ...]:
    """The names on a path into a record: a column, then one field after the other.

    >>> path_parts('address."post.code"')
    ('address', 'post.code')

    Raises
    ------
    ValueError
        For a text that is no such path.
    """
    names: list[str] = []
    place = 0
    while (step := STEP.match(path, place)) is not None:
        names.append(step[1].replace('""', '"') if step[1] is not None else step[2])
        place = step.end()
        if not path.startswith(".", place):
            break
        place += 1
    if len(names) < 2 or place < len(path) or path.endswith("."):
        raise ValueError(
            "is a column and fields within it, as in address.postcode; a name with a dot stands in double quotes, as "
            'in address."post.code"'
        )
    return tuple(names)


def path_of(parts: Sequence[str]) -> str:
    """The reverse of `path_parts`."""
    plain = (part if re.fullmatch(r'[^."]+', part) else '"' + part.replace('"', '""') + '"' for part in parts)
    return ".".join(plain)


class Connection(Strict):
    """The place of the address of a server, which holds the password and is never in the spec itself."""

    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")  # an environment variable
    file: str | None = Field(default=None, min_length=1)  # relative to the spec; only its owner may read it

    @model_validator(mode="after")
    def _names_one_place(self) -> Connection:
        if (self.env is None) == (self.file is None):
            raise ValueError("names one place: {env: NAME} or {file: path}")
        return self


class Source(Strict):
    """The place of the table, and its format if that cannot be detected from the file itself."""

    path: str  # a file or a folder of Parquet files, relative to the spec or as s3://, gs:// or az:// (docs/sources.md)
    delta: str | None = Field(default=None, min_length=1)  # instead of a path: a Delta table, by folder or address
    version: int | None = Field(default=None, ge=0)  # of a Delta table; the newest where absent
    iceberg: str | None = Field(default=None, min_length=1)  # an Iceberg table: metadata file, or catalogue.name.table
    snapshot: int | None = None  # of an Iceberg table; the current one where absent
    database: Literal["postgresql", "mysql", "sqlserver"] | None = None  # a server instead of a file
    connection: Connection | None = None  # of a server
    table: str | None = Field(default=None, min_length=1)  # of a server: people, or clinic.people
    query: str | None = None  # the rows of a database; the only table of a DuckDB or SQLite file where absent
    changed: str | None = None  # of a server: a query whose answer changes when the table does, for the sensor
    sheet: str | None = Field(default=None, min_length=1)  # of a workbook; its only filled one where absent
    missing: tuple[str, ...] = ()  # texts for "not known", besides the empty field; "-9" is the number -9, too
    delimiter: str | None = Field(default=None, min_length=1, max_length=4)  # CSV; detected where absent
    encoding: str = "utf-8"  # of a text file
    decimal: Literal[".", ","] | None = None  # the decimal mark; a point where absent
    thousands: Literal[",", ".", "'", "\u2019", " ", "\u00a0", "\u202f"] | None = None  # separates groups of digits
    symbols: tuple[str, ...] = ()  # currencies and units, written before or after numbers and left out: ["$", "%"]
    skip: int = Field(default=0, ge=0, le=1000)  # lines above the header
    header: int = Field(default=1, ge=0, le=3)  # lines of the header; without one, `names` names the columns
    names: tuple[str, ...] | None = Field(default=None, min_length=1)  # of the columns, in the order of the file
    rename: dict[str, str] = Field(
        default={}
    )  # columns by the name in the file: names that differ by capitals only are told apart
    paths: dict[str, str] = Field(default={})  # columns within records, by their name: postcode: address.postcode
    where: str | None = Field(default=None, min_length=1)  # only rows for which this SQL condition is true
    union_by_name: bool = False  # of a folder only: whether its files may differ in columns and types
    partitions: bool = False  # of a folder only: whether folders in it called `year=2024` are columns

    @model_validator(mode="before")
    @classmethod
    def _has_one_path(cls, value: Any) -> Any:
        """Set `path` for every kind of source, so that messages name all in the same way and without secrets."""
        if not isinstance(value, Mapping):
            return value
        for table in TABLES:
            if value.get(table) is not None:
                path = f"{table}:{value[table]}"
                if value.get("path", path) != path or value.get("database") is not None:
                    raise ValueError(f"{table}: names the table alone; remove path and database")
                return {**value, "path": path}
        if value.get("database") is None:
            return value
        if not isinstance(value.get("connection"), Mapping):
            raise ValueError("connection: is missing; say {env: NAME} or {file: path}")
        address = value["connection"].get("env") or value["connection"].get("file")
        path = f"{value['database']}:{address}"
        if value.get("path", path) != path:
            raise ValueError("path: is a file's; a database has none, remove it")
        return {**value, "path": path}

    @model_validator(mode="after")
    def _names_what_can_be_read(self) -> Source:
        if self.delta is not None and self.iceberg is not None:
            raise ValueError("iceberg: a delta table is named, too; remove one of them")
        for number, table in (("version", "delta"), ("snapshot", "iceberg")):
            if getattr(self, number) is not None and getattr(self, table) is None:
                raise ValueError(f"{number}: is that of {table} tables; remove it, or say {table}")
        if self.table_format is not None and (stray := sorted(self.model_fields_set & (OF_FILES | {"query"}))):
            raise ValueError(f"{stray[0]}: is not said of tables of {self.table_format}; remove it")
        place = self.location
        if place is None:
            if self.iceberg is not None and not IN_CATALOGUE.fullmatch(self.iceberg):
                raise ValueError(
                    f"iceberg: is the path of a metadata file (people/metadata/....{ICEBERG_METADATA[1:]}), or "
                    "catalogue.namespace.table"
                )
        elif is_address(place):
            try:
                parts_of(place)
            except ValueError as error:
                raise ValueError(f"{self.table_format or 'path'}: {error}") from None
        return self

    @property
    def table_format(self) -> Literal["delta", "iceberg"] | None:
        """The format, if it is a table that keeps its former states."""
        return "delta" if self.delta is not None else "iceberg" if self.iceberg is not None else None

    @property
    def location(self) -> str | None:
        """The path or address that is read; None if a server or a catalogue gives it."""
        if self.database is not None or (self.iceberg is not None and not self.iceberg.endswith(ICEBERG_METADATA)):
            return None
        return self.delta or self.iceberg or self.path

    @property
    def is_file(self) -> bool:
        """Whether it is a file or a folder of files on this machine."""
        return self.database is None and self.table_format is None and not is_address(self.path)

    @property
    def unstated(self) -> set[str]:
        """The unused keys among those that were added to specs later, so that nothing changes where they are unused."""
        added = ("delta", "version", "iceberg", "snapshot", "paths", "symbols")
        return {name for name in added if not self._states(name)}

    def _states(self, name: str) -> bool:
        return getattr(self, name) not in (None, {}, ())

    def at(self, table: Mapping[str, Any] | None) -> Source:
        """The same source in the state of it that a manifest states, if it states one."""
        if table is None or table.get("format") != self.table_format or self.table_format is None:
            return self
        of_format = {"delta": "version", "iceberg": "snapshot"}[self.table_format]
        return self.model_copy(update={of_format: int(table[of_format])})

    @model_validator(mode="after")
    def _lies_in_one_place(self) -> Source:
        if self.database is None:
            if stray := [name for name in ("connection", "table", "changed") if getattr(self, name) is not None]:
                raise ValueError(
                    f"{stray[0]}: goes with a database; remove it, or say which, as in database: postgresql"
                )
            return self
        if of_files := sorted(self.model_fields_set & OF_FILES):
            raise ValueError(f"{of_files[0]}: is said of files; remove it")
        if (self.table is None) == (self.query is None):
            raise ValueError("table: is missing; say table or query, and not both")
        return self

    @field_validator("symbols")
    @classmethod
    def _are_no_parts_of_numbers(cls, symbols: tuple[str, ...]) -> tuple[str, ...]:
        for symbol in symbols:
            # Brackets around a number, as accounts write it, are its sign: left out, -5 would be read as 5.
            is_open = symbol.count("(") != symbol.count(")")
            if not re.fullmatch(SYMBOL, symbol) or symbol in ("e", "E") or is_open:
                raise ValueError(f"{symbol!r} could be a part of a number; write a currency or a unit, such as $ or kg")
        return symbols

    @field_validator("paths")
    @classmethod
    def _lead_into_records(cls, paths: dict[str, str]) -> dict[str, str]:
        for name, path in paths.items():
            try:
                path_parts(path)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return paths

    @model_validator(mode="after")
    def _is_written_in_one_way(self) -> Source:
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise ValueError(f"thousands: is {self.thousands!r}, which also stands before fractions; state decimal")
        if (self.header == 0) != (self.names is not None):
            raise ValueError("names: goes with header: 0, and header: 0 with names, one for each column of the file")
        return self
