"""The release in Croissant 1.0 of MLCommons (https://docs.mlcommons.org/croissant/docs/croissant-spec.html), from
which tools of machine learning load it."""

from __future__ import annotations

import json
from typing import Any

from anon_pipeline.release.descriptors.described import Described, TableColumn, TableFile
from anon_pipeline.report.wording import listed, part

#: The context of the specification (appendix 1), with its vocabulary on responsible use.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{name: f"cr:{name}" for name in ("citeAs", "column")},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        name: f"cr:{name}"
        for name in (
            *("extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes", "isLiveDataset"),
            *("jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated"),
            *("replace", "samplingRate"),
        )
    },
    "sc": "https://schema.org/",
    **{name: f"cr:{name}" for name in ("separator", "source", "subField", "transform")},
}

TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "time": "sc:Time",
    "string": "sc:Text",
}


def render(release: Described) -> str:
    """The description as text; equal for equal manifests and tables."""
    licence, owner = release.licence, part(release.manifest, "spec").get("owner")
    content = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "@id": release.name,
        "name": release.dataset,
        "description": release.description,
        "url": release.name,
        # Croissant requires numbers (MAJOR.MINOR.PATCH). A release's version is a hash, so it is given as a build name.
        "version": f"0.0.0+{release.version}",
        "datePublished": release.created,
        "inLanguage": "en",
        "keywords": release.keywords,
        "license": (licence.url or licence.name) if licence else None,
        "creator": {"@type": "sc:Organization", "name": owner or release.publisher},
        "citeAs": f"{release.dataset}, release {release.version}",
        "isLiveDataset": False,
        **_responsible(release),
        "distribution": [_file(table) for table in release.tables],
        "recordSet": [_records(table) for table in release.tables],
    }
    given = {name: value for name, value in content.items() if value is not None}
    return json.dumps(given, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _responsible(release: Described) -> dict[str, Any]:
    """The fields of Croissant's vocabulary on responsible use (croissant-rai-spec.html, beside the specification)."""
    columns = part(release.manifest, "spec", "columns")
    sensitive = [name for name, column in columns.items() if part(column).get("role") == "sensitive"]
    return {
        "rai:dataUseCases": part(release.manifest, "spec").get("purpose"),
        "rai:personalSensitiveInformation": sensitive or None,
        "rai:dataManipulationProtocol": f"Anonymized ({listed(release.keywords[1:])}); README.md says how, and the "
        "manifest what was demanded and measured.",
    }


def _file(table: TableFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": table.name,
        "name": table.name,
        "contentUrl": table.name,
        "contentSize": f"{table.size} B",
        "encodingFormat": "application/x-parquet",  # the media type of Parquet in the specification's examples
        "sha256": table.sha256,
    }


def _records(table: TableFile) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.title,
        "name": table.title,
        "field": [_field(table, column) for column in table.columns],
    }


def _field(table: TableFile, column: TableColumn) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.title}/{column.name}",
        "name": column.name,
        "description": column.description or column.name,
        "dataType": TYPES[column.of],
        "source": {"fileObject": {"@id": table.name}, "extract": {"column": column.name}},
    }
    return field | {"repeated": True} if column.kind == "array" else field
