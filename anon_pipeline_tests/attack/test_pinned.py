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
        "linkage, 2 quasi-identifiers": "c3120d99019d",
        "linkage, 3 quasi-identifiers": "32a9dd28de58",
        "linkage, all quasi-identifiers": "2ff3059fa260",
        "linkage, all quasi-identifiers, 5% wrong": "9576addf5cb2",
        "linkage, all quasi-identifiers, 10% wrong": "2be67e623bb5",
        "row order": "9cd94d3150c9",
        "row order within groups": "52142639ac61",
        "intersection with earlier releases": "fb7213046722",
        "intersection with earlier releases, people who fit them": "e14f36ed3f3e",
        "singling out, one column": "09e329ecd675",
        "singling out, all columns": "aba024c4d063",
        "inference: ill": "447ba27db74b",
        "skewness: ill": "71164d55d60d",
        "inference: cost": "c1b91d0256e6",
        "skewness: cost": "34a321a3007c",
        "similarity: cost": "4badc61e1f9c",
        "membership in a register": "711c2e17efd7",
    },
    "range": {
        "linkage, 2 quasi-identifiers": "73a372216ec7",
        "linkage, 3 quasi-identifiers": "724f63af629f",
        "linkage, all quasi-identifiers": "d2e1dc839375",
        "linkage, all quasi-identifiers, 5% wrong": "22a0d5e76021",
        "linkage, all quasi-identifiers, 10% wrong": "35795c60ab2a",
        "row order": "9cd94d3150c9",
        "row order within groups": "52142639ac61",
        "intersection with earlier releases": "3dca935b9eaf",
        "intersection with earlier releases, people who fit them": "5771b4d871c4",
        "singling out, one column": "09e329ecd675",
        "singling out, all columns": "aba024c4d063",
        "inference: ill": "1bfb752b385c",
        "skewness: ill": "97025a26710c",
        "inference: cost": "067926aae887",
        "skewness: cost": "2083ea0c9110",
        "similarity: cost": "4badc61e1f9c",
        "membership in a register": "9dfafe65a6de",
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


@pytest.mark.long
@pytest.mark.parametrize("form", ["value", "range"])
def test_an_audit_finds_the_same_in_every_version(form: str) -> None:
    assert findings(form) == PINNED[form]
