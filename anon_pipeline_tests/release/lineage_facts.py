"""What a manifest says of a small release before its lineage is written. Holds no test."""

from __future__ import annotations

from typing import Any

from anon_pipeline.release import manifest
from anon_pipeline.spec import ReleaseSpec

SPEC = ReleaseSpec.model_validate(
    {
        "dataset": "people",
        "description": "People of a town.",
        "owner": "team:stewards",
        "source": {"path": "/secret/place/people.csv"},
        "target": "ill",
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "type": "numeric", "why": "known to neighbours"},
            "place": {"role": "quasi_identifier", "type": "categorical"},
            "ill": {"role": "sensitive"},
            "visits": {"role": "insensitive"},
        },
        "privacy": {"k_anonymity": {"k": 3}},
    }
)
STORAGE = {"age": "BIGINT", "place": "VARCHAR", "ill": "VARCHAR", "visits": "BIGINT"}


def facts(**changes: Any) -> dict[str, Any]:
    """The manifest's parts that lineage is made from."""
    return {
        "dataset": "people",
        "version": "0123456789ab",
        "created": "2026-01-02T03:04:05+00:00",
        "previous": None,
        "spec": SPEC.policy(),
        "spec_hash": SPEC.policy_hash,
        "source": {
            "rows": 8,
            "commitment": "a" * 64,
            "columns": [{"name": name, "storage": storage} for name, storage in {"name": "VARCHAR", **STORAGE}.items()],
        },
        "rows": {"source": 8, "released": 7, "suppressed": 1},
        "lineage": manifest.lineage(SPEC),
        "software": manifest.software(),
    } | changes
