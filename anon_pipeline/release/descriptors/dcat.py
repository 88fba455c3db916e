"""The release in DCAT 3 of the W3C (https://www.w3.org/TR/vocab-dcat-3/) as JSON-LD, which data portals harvest."""

from __future__ import annotations

import json
from typing import Any

from anon_pipeline.release.descriptors.described import NAMESPACE, PARQUET, Described, Licence, TableFile

#: The complete context, so that a reader needs to fetch nothing.
CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
MEDIA_TYPES = "https://www.iana.org/assignments/media-types/"


def render(release: Described) -> str:
    """The description as text; equal for equal manifests and tables."""
    licence = _licence(release.licence) if release.licence is not None else None
    previous = release.manifest["previous"]
    content = {
        "@context": CONTEXT,
        "@id": release.name,
        "@type": "dcat:Dataset",
        "dct:title": release.dataset,
        "dct:description": release.description,
        "dct:identifier": release.name,
        "dct:issued": {"@type": "xsd:dateTime", "@value": release.created},
        "dcat:version": release.version,
        "dcat:previousVersion": {"@id": f"{NAMESPACE}{release.dataset}:{previous}"} if previous is not None else None,
        "dcat:keyword": release.keywords,
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": release.publisher},
        "dct:license": licence,
        "dcat:distribution": [_distribution(table, licence) for table in release.tables],
    }
    return json.dumps(_given(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _licence(licence: Licence) -> dict[str, Any]:
    named = {"@type": "dct:LicenseDocument", "rdfs:label": licence.name}
    return {"@id": licence.url, **named} if licence.url else named


def _distribution(table: TableFile, licence: dict[str, Any] | None) -> dict[str, Any]:
    return _given(
        {
            "@type": "dcat:Distribution",
            "dct:title": table.name,
            "dcat:downloadURL": {"@id": table.name},
            "dcat:accessURL": {"@id": table.name},
            "dcat:mediaType": {"@id": f"{MEDIA_TYPES}{PARQUET}"},
            "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(table.size)},
            "dct:license": licence,
            "spdx:checksum": {
                "@type": "spdx:Checksum",
                "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
                "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": table.sha256},
            },
        }
    )


def _given(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value is not None}
