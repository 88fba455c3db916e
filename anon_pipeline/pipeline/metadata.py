"""Metadata of a result for Dagster's pages, as plain values: `wrapping` turns them into Dagster's."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Markdown:
    """A text with tables, lists or pictures."""

    text: str


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its storage type, and its purpose."""

    name: str
    storage: str
    description: str | None = None


@dataclass(frozen=True)
class Schema:
    """The columns of a table."""

    columns: Sequence[Column]


@dataclass(frozen=True)
class Lineage:
    """The columns from which each column is made; their table is the need of the step that `upstream` names."""

    upstream: str
    columns: Mapping[str, Sequence[str]]


#: A value of metadata. Plain data is shown unchanged, a path as a path on the disk.
MetadataItem = Markdown | Schema | Lineage | Path | str | int | float | dict[str, int] | list[str]


def picture(what: str, chart: str) -> Markdown:
    """A chart that Dagster shows inline; `chart` is SVG."""
    drawn = base64.b64encode(chart.encode()).decode()
    return Markdown(f"![{what}](data:image/svg+xml;base64,{drawn})")
