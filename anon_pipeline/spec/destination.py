"""The destinations of a release besides its folder: `publish` in a spec. They do not change a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from anon_pipeline.spec.locations import IN_CATALOGUE, is_address, parts_of
from anon_pipeline.spec.parts import Strict
from anon_pipeline.spec.source import Connection

#: The longest name on a server in bytes; longer names are cut off (PostgreSQL documentation, 4.1.1).
NAME_BYTES = 63
#: The longest ending that is added to the name of a dataset to name a table.
LONGEST_ENDING = "_classes_incoming"
#: Names that a server understands as everybody, quoted or not, or as no role.
NO_ROLES = {"public", "none"}
KINDS = ("objects", "database", "delta", "iceberg")


class Destination(Strict):
    """One place: a prefix in an object store, a schema of a database, a Delta Lake or an Iceberg table."""

    objects: str | None = Field(default=None, min_length=1)  # a prefix: s3://, gs:// or az://bucket/prefix
    database: Literal["postgresql"] | None = None  # a server
    connection: Connection | None = None  # of a server
    schema_: str | None = Field(default=None, min_length=1, alias="schema")  # of a server: the schema for the tables
    readers: tuple[str, ...] = ()  # of a server: the only roles that may read the tables
    delta: str | None = Field(default=None, min_length=1)  # a separate Delta Lake table, by folder or address
    iceberg: str | None = Field(default=None, min_length=1)  # a separate Iceberg table: catalogue.namespace.table

    @model_validator(mode="after")
    def _is_one_place(self) -> Destination:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError("names one place: objects, database, delta or iceberg")
        if self.database is None:
            if stray := sorted({"connection", "schema_", "readers"} & self.model_fields_set):
                raise ValueError(f"{stray[0].rstrip('_')}: goes with a database; remove it")
        else:
            self._names_a_schema()
        if self.iceberg is not None and not IN_CATALOGUE.fullmatch(self.iceberg):
            raise ValueError("iceberg: is catalogue.namespace.table")
        place = self.objects or self.delta
        if place is not None and (self.objects is not None or is_address(place)):
            try:
                parts_of(place)
            except ValueError as error:
                raise ValueError(f"{'objects' if self.objects else 'delta'}: {error}") from None
        return self

    def _names_a_schema(self) -> None:
        if self.connection is None:
            raise ValueError("connection: is missing; say {env: NAME} or {file: path}")
        if self.schema_ is None:
            raise ValueError("schema: is missing; name the one that the tables are put into")
        if self.schema_.startswith("pg_") or self.schema_ == "information_schema":
            raise ValueError("schema: belongs to the server itself; name one of your own")
        for name in (self.schema_, *self.readers):
            if not name.isprintable() or not 0 < len(name.encode()) <= NAME_BYTES:
                raise ValueError(f"schema, readers: a name has 1 to {NAME_BYTES} bytes, all of them printable")
        if everybody := NO_ROLES & set(self.readers):
            raise ValueError(f"readers: {min(everybody)} is no role of somebody; name the roles that may read")

    @property
    def label(self) -> str:
        """Its name in messages, without secrets."""
        if self.database is not None:
            assert self.connection is not None  # noqa: S101 (validated)
            return f"{self.database}:{self.connection.env or self.connection.file}/{self.schema_}"
        return str(self.objects or (f"delta:{self.delta}" if self.delta else f"iceberg:{self.iceberg}"))

    def located(self, folder: Path) -> Destination:
        """The same place with absolute paths, so that a record of it does not depend on the folder of the spec."""
        changes: dict[str, Any] = {}
        if self.delta is not None and not is_address(self.delta):
            changes["delta"] = str((folder / self.delta).resolve())
        if self.connection is not None and self.connection.file is not None:
            changes["connection"] = Connection(file=str((folder / self.connection.file).resolve()))
        return self.model_copy(update=changes)


def require_room(dataset: str, destinations: Sequence[Destination]) -> None:
    """
    Raises
    ------
    ValueError
        For a place that is named twice, and for a dataset whose name a server would cut off.
    """
    labels = [destination.label for destination in destinations]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ValueError(f"publish: {twice[0]} stands twice; name each place once")
    longest = NAME_BYTES - len(LONGEST_ENDING)
    if len(dataset) > longest and any(destination.database for destination in destinations):
        raise ValueError(
            f"publish: the name of the dataset has at most {longest} letters, or a server would cut it off"
        )
