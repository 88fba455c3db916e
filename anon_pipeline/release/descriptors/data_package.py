"""The release as a Frictionless Data Package (https://specs.frictionlessdata.io/data-package/), which CKAN imports."""

from __future__ import annotations

import json
from typing import Any

from anon_pipeline.release.descriptors.described import PARQUET, Described, Licence, TableColumn, TableFile


def render(release: Described) -> str:
    """The descriptor as text; equal for equal manifests and tables."""
    licence = release.licence
    content = {
        "name": release.dataset,
        "id": release.name,
        "title": release.dataset,
        "description": release.description,
        "version": release.version,
        "created": release.created,
        "keywords": release.keywords,
        "contributors": [{"title": release.publisher, "role": "publisher"}],
        "licenses": [_licence(licence)] if licence is not None else None,
        "resources": [_resource(table) for table in release.tables],
    }
    given = {name: value for name, value in content.items() if value is not None}
    return json.dumps(given, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _licence(licence: Licence) -> dict[str, str]:
    if not licence.identifier:
        return {"name": "other", "title": licence.name}
    return {"name": licence.identifier, "path": licence.url, "title": licence.name}


def _resource(table: TableFile) -> dict[str, Any]:
    return {
        "name": table.title,
        "type": "table",
        "path": table.name,
        "scheme": "file",
        "format": "parquet",
        "mediatype": PARQUET,
        "hash": f"sha256:{table.sha256}",
        "schema": {"fields": [_field(column) for column in table.columns]},
    }


def _field(column: TableColumn) -> dict[str, str]:
    # Readers of this standard load lists as a type of their language, and few report it as an array.
    field = {"name": column.name, "type": "any" if column.kind == "array" else column.kind}
    return field | {"description": column.description} if column.description else field
