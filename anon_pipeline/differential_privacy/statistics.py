"""A table of noisy statistics as it is published: the answers to a file of questions, and what they cost together."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from anon_pipeline.differential_privacy.accounting import ATTO, NANO, epsilon_of
from anon_pipeline.differential_privacy.budget import State
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.home import Home
from anon_pipeline.release import manifest
from anon_pipeline.release.publication import Published, created, publish_folder
from anon_pipeline.spec import STATISTICS, ReleaseSpec

ANSWERS, TABLE = "answers.json", "statistics.csv"
COLUMNS = ("question", "group", "statistic", "value", "low", "high")


def as_table(answers: Mapping[str, dict[str, Any]]) -> str:
    """All figures, one per line: question, group (as JSON), statistic, value, and the ends of its 95 % interval."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, answer in answers.items():
        for row in answer["rows"]:
            group = {column: value for column, value in row.items() if not isinstance(value, dict)}
            for column, value in row.items():
                if isinstance(value, dict):
                    group_as_json = json.dumps(group, sort_keys=True)
                    writer.writerow([name, group_as_json, column, value["value"], value["low"], value["high"]])
    return written.getvalue()


def protection(spec: ReleaseSpec, answers: Mapping[str, dict[str, Any]], state: State) -> dict[str, Any]:
    """The part of a manifest about the noise: unit, bounds, mechanisms, cost, and the state of the budget."""
    asked = asked_of(spec)
    # A question that stands under two names has one answer, and was paid for once.
    paid = {json.dumps(answer, sort_keys=True): answer["cost"] for answer in answers.values()}.values()
    nano = sum(round(cost["rho"] * NANO) for cost in paid)
    domains = json.dumps(asked.model_dump(mode="json", include={"domains"}), sort_keys=True)
    return {
        # Each question states in how many of its groups a person counts; the widest of these statements is true of all.
        "neighbours": max((answer["neighbours"] for answer in answers.values()), key=lambda of: of.get("groups", 1)),
        "rho": nano / NANO,
        "epsilon": epsilon_of(nano, asked.conversion_delta),
        "delta": asked.conversion_delta,
        "conversion": "zCDP to (epsilon, delta), Canonne, Kamath and Steinke 2020",
        "threshold_delta": sum(round(cost["threshold_delta"] * ATTO) for cost in paid) / ATTO,
        "mechanisms": {name: answer["mechanisms"] for name, answer in answers.items()},
        "domains_sha256": hashlib.sha256(domains.encode()).hexdigest(),
        "budget": state.to_json(),
    }


def publish(home: Home, spec: ReleaseSpec, answers: Mapping[str, dict[str, Any]], state: State) -> Published:
    """Publish answers as a release of their own, `<dataset>_statistics`; the same answers are published only once.

    Its version is a hash of the noisy answers. Everything in the folder depends on people through these answers only.

    Raises
    ------
    Refused
        Where these statistics were withdrawn, or the releases were altered.
    """
    content = json.dumps(answers, indent=2, sort_keys=True) + "\n"
    dataset, version = f"{spec.dataset}{STATISTICS}", hashlib.sha256(content.encode()).hexdigest()[:12]

    def write(staged: Path) -> dict[str, Any]:
        (staged / ANSWERS).write_text(content, encoding="utf-8")
        (staged / TABLE).write_text(as_table(answers), encoding="utf-8")
        return {
            "dataset": dataset,
            "version": version,
            "created": created(),
            "questions": {name: answer["query"] for name, answer in answers.items()},
            "differential_privacy": protection(spec, answers, state),
            "software": {
                "anon_pipeline": manifest.software()["anon_pipeline"],
                "opendp": metadata.version("opendp"),
            },
        }

    return publish_folder(home, dataset, version, write)
