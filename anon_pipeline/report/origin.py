"""The verification, the citation and the origin of a release."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from anon_pipeline.report.charts import count, counted
from anon_pipeline.report.wording import part, plain_name, words

#: The command that judges a table by all that its release promised, run in the folder of the release.
BY_MANIFEST = "anon-pipeline verify data.parquet --spec manifest.json"


def commands(spec: Mapping[str, Any], quasi: list[str]) -> list[tuple[str, str]]:
    """Commands for readers, each with its effect."""
    listed = [
        ("anon-pipeline releases verify", "Checks that no file of this release and no line of the ledger was altered.")
    ]
    k = next((demand.get("k") for demand in spec.get("privacy") or [] if demand.get("model") == "k_anonymity"), None)
    if quasi and k is not None:
        command = f"anon-pipeline verify data.parquet --quasi-identifiers {shlex.quote(','.join(quasi))} --k {k}"
        sensitive = [name for name, column in part(spec, "columns").items() if part(column).get("role") == "sensitive"]
        if sensitive:
            command += f" --sensitive {shlex.quote(','.join(sensitive))}"
        listed.append((command, "Counts the classes again in the published table, without trusting this page."))
        if not any(demand.get("population") for demand in spec["privacy"]):  # whose table no reader has
            listed.append((BY_MANIFEST, "Judges them by every promise, as the manifest beside the table states it."))
    return listed


def stated(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The owner of a release, its purpose and recipients, in the owner's words: (name of the fact, fact)."""
    spec = part(content, "spec")
    rows = [
        ("Owner", spec.get("owner")),
        ("Approved by", spec.get("approver")),
        ("Purpose", spec.get("purpose")),
        ("Recipients", "; ".join(map(words, spec.get("recipients") or []))),
        ("License", spec.get("license")),
    ]
    return [(name, words(value)) for name, value in rows if value]


def citation(content: Mapping[str, Any], day: str) -> str:
    """One line that identifies this release."""
    parts = [words(content.get("dataset")), f"release {words(content.get('version'))}", day]
    program = words(part(content, "software").get("anon_pipeline"))
    cited = ", ".join(text for text in parts if text)
    return f"{cited}. Anonymized with anon-pipeline{f' {program}' if program else ''}."


def hashes(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Hashes of each file's content, and of the file itself if known: (what is hashed, hash)."""
    entries = [(f"{name}, content", words(value)) for name, value in part(content, "content_hashes").items()]
    entries += [(f"{name}, file", words(part(file).get("sha256"))) for name, file in part(content, "files").items()]
    return entries


def provenance(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Source, rules, software and runs: (name of the fact, fact)."""
    source, software, runs = (part(content, name) for name in ("source", "software", "runs"))
    spec = part(content, "spec")
    rows = [
        ("Source", counted(source.get("rows"), "row", "rows")),
        ("Source, commitment", source.get("commitment")),
        ("Spec", content.get("spec_hash")),
        ("Target", spec.get("target")),
        ("Guiding model", _guide(part(spec, "guide"))),
        ("Code", software.get("code")),
        ("anon-pipeline", software.get("anon_pipeline")),
        ("Python", software.get("python")),
        ("Dagster run", runs.get("dagster")),
        ("MLflow run", runs.get("mlflow")),
        ("Previous release", content.get("previous") or "none, this is the first"),
    ]
    return [(name, words(value)) for name, value in rows if value is not None]


def _guide(guide: Mapping[str, Any]) -> str | None:
    if not guide:
        return None
    model = guide.get("model")
    named = (
        ", ".join(f"{key} {value}" for key, value in model.items())
        if isinstance(model, Mapping)
        else plain_name(str(model))
    )
    parts = [named]
    parts += [f"guided by {guide['on']}"] * ("on" in guide)
    parts += [f"{plain_name(str(guide['predictions']))} predictions"] * ("predictions" in guide)
    parts += [f"{guide['folds']} folds"] * (guide.get("predictions") == "out_of_fold" and "folds" in guide)
    parts += [f"spread {count(guide['spread'])}"] * ("spread" in guide)
    parts += [f"orders: {guide['orders']}"] * ("orders" in guide)
    return ", ".join(parts)
