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
        "linkage, 2 quasi-identifiers": "1d5135d8f087",
        "linkage, 3 quasi-identifiers": "9fbfc0df08b5",
        "linkage, all quasi-identifiers": "41802bffc51e",
        "linkage, all quasi-identifiers, 5% wrong": "fbef6f2e5a49",
        "linkage, all quasi-identifiers, 10% wrong": "d45217ba7866",
        "row order": "80f9a42ce125",
        "row order within groups": "52142639ac61",
        "intersection with earlier releases": "f2a886f2722d",
        "singling out, one column": "353f85fbea2c",
        "singling out, all columns": "43b397882c9a",
        "inference: ill": "e347a102e65f",
        "skewness: ill": "3211ce55eb1e",
        "inference: cost": "3b6dee174b19",
        "skewness: cost": "bffd97f0c180",
        "similarity: cost": "4badc61e1f9c",
        "membership in a register": "c754dcceffaf",
    },
    "range": {
        "linkage, 2 quasi-identifiers": "f6e5e7adae65",
        "linkage, 3 quasi-identifiers": "5ac518da4f5d",
        "linkage, all quasi-identifiers": "328b537520ee",
        "linkage, all quasi-identifiers, 5% wrong": "2b5682b19069",
        "linkage, all quasi-identifiers, 10% wrong": "b5f9c81788dc",
        "row order": "80f9a42ce125",
        "row order within groups": "52142639ac61",
        "intersection with earlier releases": "f66d59691465",
        "singling out, one column": "353f85fbea2c",
        "singling out, all columns": "43b397882c9a",
        "inference: ill": "91d181319d48",
        "skewness: ill": "acb305b7078f",
        "inference: cost": "c1b91d0256e6",
        "skewness: cost": "2083ea0c9110",
        "similarity: cost": "4badc61e1f9c",
        "membership in a register": "241493c25138",
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
