"""The common content of all descriptors of a release: its name, its licence, its files and their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon_pipeline.home import sha256_of
from anon_pipeline.report.wording import part, plain_name, words

#: The media type of Parquet (IANA, 2024).
PARQUET = "application/vnd.apache.parquet"
#: A prefix of identifiers; nothing is fetched from it.
NAMESPACE = "urn:anon-pipeline:"

#: Named licences of data: SPDX identifier and address of the text. Other licences are given in the spec's words.
LICENCES = {
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-SA-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC-BY-NC-SA-4.0": "https://creativecommons.org/licenses/by-nc-sa/4.0/",
    "CC-BY-ND-4.0": "https://creativecommons.org/licenses/by-nd/4.0/",
    "CC-BY-NC-ND-4.0": "https://creativecommons.org/licenses/by-nc-nd/4.0/",
    "ODbL-1.0": "https://opendatacommons.org/licenses/odbl/1-0/",
    "ODC-By-1.0": "https://opendatacommons.org/licenses/by/1-0/",
    "PDDL-1.0": "https://opendatacommons.org/licenses/pddl/1-0/",
    "CDLA-Permissive-2.0": "https://cdla.dev/permissive-2-0/",
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "MIT": "https://opensource.org/license/mit",
}

#: Descriptions of columns of the class table beside a representative, by the ending of the column's name.
BESIDE = {
    "_low": "nobody in the class has a smaller value; empty where too few people share one to tell it",
    "_high": "nobody in the class has a larger value; empty where too few people share one to tell it",
    "_missing": "whether the class shows that values are missing; empty where that is not told",
    "_values": "the values in the class, and * for those that too few people share",
    "_label": "the words that the class is called by",
    "_level": "the level of the hierarchy that they are taken from",
}


@dataclass(frozen=True)
class Licence:
    """The terms of use of a release; `identifier` and `url` are empty if they are not a named licence."""

    name: str
    identifier: str = ""
    url: str = ""


@dataclass(frozen=True)
class TableColumn:
    """A column of a released file.

    Attributes
    ----------
    kind : "integer", "number", "boolean", "date", "datetime", "time", "string" or "array"
    of : the kind of an array's items; otherwise the same as `kind`
    """

    name: str
    kind: str
    of: str
    description: str


@dataclass(frozen=True)
class TableFile:
    """A released table; `size` is in bytes."""

    name: str
    sha256: str
    size: int
    columns: tuple[TableColumn, ...]

    @property
    def title(self) -> str:
        """The file's name without its ending: "data"."""
        return Path(self.name).stem


@dataclass(frozen=True)
class Described:
    """A release with its manifest in words."""

    manifest: Mapping[str, Any]
    tables: tuple[TableFile, ...]

    @property
    def dataset(self) -> str:
        return words(self.manifest["dataset"])

    @property
    def version(self) -> str:
        return words(self.manifest["version"])

    @property
    def created(self) -> str:
        """The moment of publication, from the manifest."""
        return words(self.manifest["created"])

    @property
    def name(self) -> str:
        """An identifier for this release, which is not an address."""
        return f"{NAMESPACE}{self.dataset}:{self.version}"

    @property
    def description(self) -> str:
        """The policy's description of the dataset, or its name if there is none."""
        return words(self.manifest["description"]) or self.dataset

    @property
    def publisher(self) -> str:
        """The owner of the dataset."""
        return words(part(self.manifest, "spec").get("owner")) or "the steward of this dataset"

    @property
    def licence(self) -> Licence | None:
        stated = part(self.manifest, "spec").get("license")
        return None if stated is None else licence_of(str(stated))

    @property
    def keywords(self) -> list[str]:
        """The kind of the release, in words that people search for."""
        if self.manifest.get("kind") is not None:
            return ["tabular", "synthetic", "differential-privacy"]
        if part(self.manifest, "groups"):
            return ["tabular", "aggregated", "anonymized"]
        return ["tabular", "anonymized", "k-anonymity"]


def licence_of(stated: str) -> Licence:
    """The licence that a spec states, with its SPDX identifier if it has one ("CC BY 4.0" is CC-BY-4.0)."""
    known = {_bare(identifier): identifier for identifier in LICENCES}
    identifier = known.get(_bare(stated))
    return Licence(stated) if identifier is None else Licence(stated, identifier, LICENCES[identifier])


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def described(staged: Path, manifest: Mapping[str, Any], tables: Sequence[str]) -> Described:
    """The release in a folder; the columns are those of the written files."""
    import pyarrow.parquet as pq

    return Described(
        manifest,
        tuple(
            TableFile(
                name,
                sha256_of(staged / name),
                (staged / name).stat().st_size,
                tuple(
                    column_of(column, str(type_), manifest)
                    for schema in [pq.read_schema(staged / name)]
                    for column, type_ in zip(schema.names, schema.types, strict=True)
                ),
            )
            for name in tables
        ),
    )


def column_of(name: str, type_: str, manifest: Mapping[str, Any]) -> TableColumn:
    """A column of a file, by its name and Arrow's name of its type."""
    items = re.fullmatch(r"(?:large_)?list<\w+: (.*)>", type_)
    kind = "array" if items else _kind(type_)
    return TableColumn(name, kind, _kind(items[1]) if items else kind, _description(name, manifest))


def _kind(type_: str) -> str:
    """The kind of an Arrow type. Any other type is a string."""
    for pattern, kind in (
        (r"u?int\d+|decimal\d+\(\d+, 0\)", "integer"),
        (r"(half)?float|double|decimal.*", "number"),
        ("bool", "boolean"),
        (r"date\d+.*", "date"),
        (r"timestamp.*", "datetime"),
        (r"time\d+.*", "time"),
    ):
        if re.fullmatch(pattern, type_):
            return kind
    return "string"


def _description(name: str, manifest: Mapping[str, Any]) -> str:
    """The role of a column and the reason for it, or its meaning in the class table; empty if neither is known."""
    columns = part(manifest, "spec", "columns")
    if name in columns:
        column = part(columns, name)
        return ": ".join(filter(None, [plain_name(words(column.get("role"))), words(column.get("why"))]))
    if name in ("class_size", "people"):
        return "number of people"
    for end, meaning in BESIDE.items():
        if name.endswith(end) and name.removesuffix(end) in columns:
            return f"{name.removesuffix(end)}: {meaning}"
    return ""
