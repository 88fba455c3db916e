"""Attacks against Adult as it is, and against four releases of it: the table of docs/attacks.md.

Run: python -m benchmarks.attacks
The ungrouped "release" has the members after the masking steps. All other releases are twins, made without the same
control people, as `anon-pipeline run` makes them for its audit. The script prints how much each release itself leaks,
in bold where that is a leak, with its 95 % interval; docs/attacks.md explains how to read it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.attack.models_audit import RAW, RELEASE
from anon_pipeline.attack.rates import LEAK, NO_LEAK
from anon_pipeline.attack.table_audit import audit_table
from anon_pipeline.attack.targets import Tables
from anon_pipeline.audit.people import Audited, audit, control_people, knowledge_of
from anon_pipeline.engine.base import Batch
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.pipeline.masking import mask, planned
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ColumnType, Guide, ReleaseSpec

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")
ALONE = SPEC.model_copy(update={"privacy": tuple(one for one in SPEC.privacy if one.name == "k_anonymity")})
PAPER = Guide(on="label", spread=0, orders="guidance")
RELEASES = {
    "k = 10, paper": ALONE.model_copy(update={"guide": PAPER}),
    "k = 10": ALONE,
    "k = 10, two incomes": SPEC,
    "k = 100": ALONE.replaced({"privacy.k_anonymity.k": 100}),
}
UNGROUPED = "not grouped"
#: A key in place of the private key; the figures of other keys differ within their intervals.
KEY = Key(bytes(range(32)))
TOO_WEAK = "too weak"
ALL_KNOWN = "linkage, all quasi-identifiers"


def main() -> None:
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        people, types = masked_people(Path(folder))
    contents: dict[str, dict[str, Any]] = {UNGROUPED: attack_ungrouped(people, types)}
    for name, spec in RELEASES.items():
        contents[name] = audit(Audited(spec, KEY, people, types))
        print(f"{name}: {time.time() - start:.0f} s", file=sys.stderr)
    contents[UNGROUPED]["models"] = contents["k = 10"]["models"]
    print(markdown(contents))


def masked_people(folder: Path) -> tuple[Batch, dict[str, ColumnType]]:
    """The people of Adult after the masking steps of its spec, which are row-wise, and the types of their columns."""
    engine, stored, masked = DuckDBEngine(folder / "spill"), folder / "source.parquet", folder / "masked.parquet"
    run = Run(SPEC, Home(folder / "home"), engine)
    source = engine.store_source(SPEC, stored)
    plan, secrets = planned(SPEC, source.types())
    mask(run, plan.of_people, secrets, source, stored, masked)
    types = {name: plan.types_after[name] for name in SPEC.released}
    return engine.sample(masked, SPEC, types, SPEC.audit.sample), types


def attack_ungrouped(people: Batch, types: dict[str, ColumnType]) -> dict[str, Any]:
    """The members as they are before the grouping, in the order of their values."""
    frame = pd.concat([people.features, people.target], axis=1)[SPEC.released]
    control = control_people(people.hash, SPEC, KEY)
    members, others = frame[~control].reset_index(drop=True), frame[control].reset_index(drop=True)
    order = members.astype(str).sort_values(SPEC.released, kind="stable").index.to_numpy(np.int64)
    knowledge = knowledge_of(SPEC, types)
    findings = audit_table(Tables(members.iloc[order], members, others, order), knowledge, targets=SPEC.audit.targets)
    return {"findings": [one.to_json() for one in findings]}


def markdown(contents: Mapping[str, Mapping[str, Any]]) -> str:
    """The table in Markdown: a row per attack, a column per release."""
    found = {name: {one["name"]: one for one in content["findings"]} for name, content in contents.items()}
    attacks = list(dict.fromkeys(name for findings in found.values() for name in findings))
    rows = [[name, *(leak_of(findings.get(name)) for findings in found.values())] for name in attacks]
    rows.append(
        ["own record picked / marketer risk", *(own_record(findings[ALL_KNOWN]) for findings in found.values())]
    )
    for attack, words in (("lira", "with shadow models"), ("loss_threshold", "by its error")):
        models = {name: RAW if name == UNGROUPED else RELEASE for name in contents}
        aucs = [auc_of(content["models"], models[name], attack) for name, content in contents.items()]
        rows.append([f"member of a model's training data, {words} (AUC)", *aucs])
    lines = [["Attack", *contents], ["---"] * (1 + len(contents)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def leak_of(finding: Mapping[str, Any] | None) -> str:
    """The text of how much is leaked, in percent; in bold where it is a leak."""
    if finding is None or finding["leak"] is None:
        return "\u2013"
    if finding["verdict"] not in (LEAK, NO_LEAK):
        return TOO_WEAK
    leak = finding["leak"]
    number, low, high = (f"{100 * leak[end]:.1f}".replace("-", "\u2212") for end in ("leak", "low", "high"))
    return f"{f'**{number}**' if finding['verdict'] == LEAK else number} ({low} to {high})"


def own_record(finding: Mapping[str, Any]) -> str:
    details = finding["details"]
    return f"{100 * details['own_record']:.1f} / {100 * details['marketer_risk']:.1f}"


def auc_of(models: Mapping[str, Any], model: str, attack: str) -> str:
    for one in models.get("membership", []):
        if one["model"] == model and one["attack"] == attack:
            number = f"**{one['auc']:.3f}**" if one["leaks"] else f"{one['auc']:.3f}"
            return f"{number} ({one['auc_low']:.3f} to {one['auc_high']:.3f})"
    return "\u2013"


if __name__ == "__main__":
    main()
