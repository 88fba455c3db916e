"""The same tables and seed give the same findings in every version: every figure of an audit is pinned.

A change here changes what an auditor reads of the same release. That is decided, and told in the changelog. Models that
scikit-learn trains are not among it, nor are linear programs, whose last digits are those of others.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from anon_pipeline.attack.inference import inference
from anon_pipeline.attack.intersection import Earlier, intersection
from anon_pipeline.attack.linkage import linkage, row_order
from anon_pipeline.attack.membership import membership
from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.singling_out import singling_out
from anon_pipeline.attack.targets import Tables, read_attacked
from anon_pipeline_tests.attack.tables import KNOWLEDGE, anonymized, people

#: Of what a finding says; by form of the release and attack.
PINNED: dict[str, dict[str, str]] = {
    "value": {
        "linkage, 2 quasi-identifiers": "518a19ef1d67",
        "linkage, 3 quasi-identifiers": "2e0310c170b7",
        "linkage, all quasi-identifiers": "51371e73ef18",
        "linkage, all quasi-identifiers, 5% wrong": "339ff24950c0",
        "linkage, all quasi-identifiers, 10% wrong": "8365cd478246",
        "row order": "80f9a42ce125",
        "row order within groups": "52142639ac61",
        "intersection with earlier releases": "710781b071a4",
        "singling out, one column": "353f85fbea2c",
        "singling out, all columns": "2f69feb2217c",
        "inference: ill": "6a26954a2d18",
        "skewness: ill": "f719c93266fb",
        "inference: cost": "e2953d0de387",
        "skewness: cost": "1e3e709fd5f4",
        "similarity: cost": "4badc61e1f9c",
        "membership in a register": "ba808acea2b9",
    },
    "range": {
        "linkage, 2 quasi-identifiers": "2973f5dede8f",
        "linkage, 3 quasi-identifiers": "a255b1faf5e5",
        "linkage, all quasi-identifiers": "c80d9891d543",
        "linkage, all quasi-identifiers, 5% wrong": "943d6bb44adb",
        "linkage, all quasi-identifiers, 10% wrong": "8dfe00d2b4e2",
        "row order": "80f9a42ce125",
        "row order within groups": "52142639ac61",
        "intersection with earlier releases": "357e611ac3a8",
        "singling out, one column": "353f85fbea2c",
        "singling out, all columns": "2f69feb2217c",
        "inference: ill": "51d12fde3475",
        "skewness: ill": "ab467e4efb60",
        "inference: cost": "067926aae887",
        "skewness: cost": "1e3e709fd5f4",
        "similarity: cost": "4badc61e1f9c",
        "membership in a register": "baa8a90d914e",
    },
}


def plain(value: Any) -> Any:
    """Floats with nine digits, which every processor gives; everything else as it is."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def findings(form: str) -> dict[str, str]:
    original, control = people(300, 1), people(300, 2)
    released, classes, origin = anonymized(original, k=5, form=form)
    earlier, earlier_classes, _ = anonymized(original, k=7, form=form)
    attacked = read_attacked(
        Tables(released, original, control, origin, classes if form == "value" else None), KNOWLEDGE, 3
    )
    before = [Earlier(earlier, earlier_classes if form == "value" else None)]
    found = [
        *linkage(attacked, 200),
        *row_order(attacked),
        *intersection(attacked, before, original, control, 200),
        *singling_out(attacked),
        *(one for one in inference(attacked, 200) if not one.name.startswith("inference across")),
        *membership(attacked, 200),
    ]
    return {one.name: digest(one) for one in found}


def digest(finding: Finding) -> str:
    return hashlib.sha256(repr(plain(finding.to_json())).encode()).hexdigest()[:12]


@pytest.mark.parametrize("form", ["value", "range"])
def test_an_audit_finds_the_same_in_every_version(form: str) -> None:
    assert findings(form) == PINNED[form]
