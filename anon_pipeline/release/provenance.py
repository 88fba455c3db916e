"""The release in W3C PROV, as PROV-JSON (https://www.w3.org/submissions/prov-json/): who made what from what."""

from __future__ import annotations

import json
from typing import Any

PREFIX = "anon"
#: A prefix of identifiers; nothing is fetched from it.
NAMESPACE = "urn:anon-pipeline:"


def render(manifest: dict[str, Any], tables: dict[str, str]) -> str:
    """The document as text. Everything in it is also in the manifest.

    Parameters
    ----------
    manifest : the manifest without the hashes of files
    tables : SHA-256 of the released files, by name
    """
    dataset, version = manifest["dataset"], manifest["version"]
    release, source = f"{PREFIX}:{dataset}.{version}", f"{PREFIX}:{dataset}.source"
    policy, making = f"{PREFIX}:{dataset}.policy", f"{PREFIX}:{dataset}.{version}.publication"
    program, steward = f"{PREFIX}:program", f"{PREFIX}:{dataset}.steward"
    files = {f"{release}.{name}": {f"{PREFIX}:file": name, f"{PREFIX}:sha256": hash_} for name, hash_ in tables.items()}
    software = manifest["software"]
    content: dict[str, Any] = {
        "prefix": {PREFIX: NAMESPACE},
        "entity": {
            source: {
                "prov:label": f"the people of {dataset}, typed as the policy says",
                f"{PREFIX}:commitment": manifest["source"]["commitment"],
                f"{PREFIX}:rows": manifest["source"]["rows"],
                **{f"{PREFIX}:{name}": value for name, value in manifest["source"].get("table", {}).items()},
            },
            policy: {
                "prov:label": "what may be released, and what must hold",
                "prov:type": {"$": "prov:Plan", "type": "prov:QUALIFIED_NAME"},
                f"{PREFIX}:sha256": manifest["spec_hash"],
            },
            release: {
                "prov:label": f"{dataset} {version}",
                "prov:type": {"$": "prov:Collection", "type": "prov:QUALIFIED_NAME"},
                f"{PREFIX}:rows": manifest["rows"]["released"],
            },
            **files,
        },
        "activity": {making: {"prov:label": "grouping, checking and publishing", "prov:endTime": manifest["created"]}},
        "agent": {
            program: {
                "prov:type": {"$": "prov:SoftwareAgent", "type": "prov:QUALIFIED_NAME"},
                "prov:label": f"anon_pipeline {software['anon_pipeline']}",
                f"{PREFIX}:code_sha256": software["code"],
            },
            steward: {"prov:label": manifest["spec"].get("owner") or "the steward of this dataset"},
        },
        "used": {
            "_:used_source": {"prov:activity": making, "prov:entity": source},
            "_:used_policy": {"prov:activity": making, "prov:entity": policy},
        },
        "wasGeneratedBy": {
            "_:made_release": {"prov:entity": release, "prov:activity": making, "prov:time": manifest["created"]}
        },
        "wasAssociatedWith": {
            "_:run_by": {"prov:activity": making, "prov:agent": program, "prov:plan": policy},
        },
        "actedOnBehalfOf": {"_:for_steward": {"prov:delegate": program, "prov:responsible": steward}},
        "wasAttributedTo": {"_:answered_for": {"prov:entity": release, "prov:agent": steward}},
        "wasDerivedFrom": {
            "_:from_source": {"prov:generatedEntity": release, "prov:usedEntity": source, "prov:activity": making}
        },
        "hadMember": {
            f"_:member_{number}": {"prov:collection": release, "prov:entity": file}
            for number, file in enumerate(files, start=1)
        },
    }
    if manifest["previous"] is not None:
        former = f"{PREFIX}:{dataset}.{manifest['previous']}"
        content["entity"][former] = {"prov:label": f"{dataset} {manifest['previous']}"}
        content["wasDerivedFrom"]["_:follows"] = {
            "prov:generatedEntity": release,
            "prov:usedEntity": former,
            "prov:type": {"$": "prov:Revision", "type": "prov:QUALIFIED_NAME"},
        }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"
