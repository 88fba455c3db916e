"""The same manifests give the same pages in every version: each part of a report, and each chart, is pinned.

A change here changes what a steward reads of the same release. The words of each part are tested where they are made;
this notices a slip in any of them, at once.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import fields
from typing import Any

import pytest

from anon_pipeline.report import release_report, synthetic_markdown, synthetic_report
from anon_pipeline.report.markdown import render
from anon_pipeline_tests.report import test_attacks
from anon_pipeline_tests.report.test_likeness import likeness
from anon_pipeline_tests.report.test_masking import masking

#: The parts of two pages with something in them, by page and part.
PINNED: dict[str, dict[str, str]] = {
    "people": {
        "dataset": "c8bdcba7deb2",
        "description": "b915002b611d",
        "version": "14190e428bec",
        "created": "04d3b16602b5",
        "verdict": "7ea33e9c886e",
        "released": "3cbc87c7681f",
        "lead": "5ea142a686a2",
        "figures": "9be5509cc8c3",
        "promises": "d55d753a76e4",
        "cautions": "fee074b9aeea",
        "risks": "a1f3c6a4c52c",
        "utility_intro": "3557dd2d532e",
        "scores": "f8cd1701b7da",
        "models": "3e7958d2e12b",
        "groups": "7ceb93c7f79b",
        "group_sentences": "b91a88b115c7",
        "calibration": "0ef92168da71",
        "associations": "6138b33469ba",
        "loss_mean": "62536f413177",
        "columns": "ddcc2b39ee61",
        "quasi_identifiers": "eb79225898ce",
        "kept": "08fe58817d74",
        "sizes": "e581b69197b9",
        "sensitive": "17e2002da5ae",
        "attacks": "73a1417301e1",
        "masking": "b93b705b752a",
        "checks": "ec3eaa38e225",
        "commands": "c73832ece131",
        "citation": "f4c836db8365",
        "hashes": "ab7e9975317e",
        "provenance": "086fb67b9bae",
        "packages": "368e87c9b4f1",
        "previous": "44297280364c",
        "blurred": "817ef212d5c5",
        "chart: before_after": "db97dd91d5eb",
        "chart: losses": "48e1eeb165f5",
        "chart: reliability": "dbb55a4b3e54",
        "chart: associations": "47a561a13602",
        "chart: marginals": "8ff00e52a817",
        "chart: homogeneity": "645ca7280c9c",
        "chart: attacks": "618f7a521754",
        "markdown": "0d9742bd2b90",
    },
    "synthetic rows": {
        "dataset": "c084c36a0631",
        "description": "352fc8d2fb36",
        "version": "5eb4569b5da1",
        "created": "6aeeda4a54fc",
        "lead": "f088945979cc",
        "meaning": "bbaa46d81ce5",
        "promises": "74f8444d56f5",
        "cautions": "41e81ffc6455",
        "mechanisms": "5b4b3688f2ae",
        "counts": "4d5fd6f764cd",
        "columns": "cbf6069b1a17",
        "selections": "542143a726bf",
        "domains": "191be8077fc1",
        "checks": "199435df417d",
        "software": "2b4b11548099",
        "picture": "578b197d3774",
        "markdown": "6ea10bd5a8e1",
    },
}

SYNTHETIC = {
    "kind": "synthetic",
    "dataset": "clinic",
    "description": "visits of a clinic",
    "version": "0123456789ab",
    "created": "2026-11-27T10:00:00+00:00",
    "rows": {"synthetic": 1200},
    "owner": "team:clinic",
    "model": {"target": "ill"},
    "spec": {"columns": {name: {"role": "insensitive"} for name in ("age", "town", "dose")}},
    "differential_privacy": {
        "epsilon": 1.5,
        "delta": 1e-6,
        "unit": "patient",
        "rows_per_unit": 4,
        "neighbours": "one patient more or less",
        "rho": 0.031,
        "conversion": "a conversion",
        "subject": "clinic",
        "domains_sha256": "ab" * 32,
        "size": "counted with noise",
        "mechanisms": [
            {"measures": ["age", "town"], "mechanism": "discrete Gaussian", "scale": 12.25, "rho": 0.0125},
            {"measures": "the number of rows", "mechanism": "discrete Gaussian", "scale": 3.5, "rho": 0.0005},
        ],
        "domains": {
            "age": {"range": [0, 99], "step": 1, "why": "in years"},
            "town": {"values": ["Ulm", "Graz", "Bergen"], "why": "a register"},
            "dose": {"bins": [0, 0.5, 10], "why": "as prescribed"},
        },
    },
    "quality": {
        "counts": [{"columns": ["age", "town"], "cells": 300, "error_bar": 14.6, "distance": 0.0312, "noise": 0.0287}],
        "values": {
            "age": [
                {"noisy": 300.4 - 3 * n, "low": 280.2 - 3 * n, "high": 320.6 - 3 * n, "synthetic": 300 - n}
                for n in range(101)
            ],
            "town": [
                {"noisy": noisy, "low": noisy - 20.5, "high": noisy + 20.5, "synthetic": round(noisy)}
                for noisy in (110.5, 700.4, 380.6, -3.2)
            ],
        },
    },
    "checks": [{"demand": "rows are in the domains", "passed": True}, {"demand": "the budget", "passed": False}],
    "software": {"packages": {"numpy": "2.0", "duckdb": "2.0"}},
}


def whole() -> dict[str, Any]:
    """The manifest of a release of people with all that a report shows of one."""
    content = likeness()
    content["audit"] = test_attacks.content()
    content["masking"] = masking()
    return content


def digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def parts(page: Any) -> dict[str, str]:
    """The parts of a page that are not empty."""
    values = {field.name: getattr(page, field.name) for field in fields(page)}
    return {name: digest(value) for name, value in values.items() if value}


def of_people() -> dict[str, str]:
    content = whole()
    return (
        parts(release_report.describe(content))
        | {f"chart: {name}": value for name, value in parts(release_report.draw(content)).items()}
        | {"markdown": digest(render(content))}
    )


def of_synthetic_rows() -> dict[str, str]:
    markdown = {"markdown": digest(synthetic_markdown.render(SYNTHETIC))}
    return parts(synthetic_report.describe(SYNTHETIC)) | markdown


def test_a_report_says_the_same_in_every_version() -> None:
    assert {"people": of_people(), "synthetic rows": of_synthetic_rows()} == PINNED


def test_a_guess_at_who_took_part_is_right_as_often_as_the_best_test_is() -> None:
    """Kairouz, Oh and Viswanath (ICML 2015): (e^epsilon + delta) / (1 + e^epsilon)."""
    for epsilon, delta in ((0.0, 0.0), (0.0, 0.5), (1.0, 0.1), (3.0, 1e-3)):
        share = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
        assert synthetic_report.right_guesses(epsilon, delta) == pytest.approx(share)
    assert synthetic_report.right_guesses(1.0, 1.0) == 1.0
