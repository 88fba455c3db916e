"""The checks on the results of attacks: one per bound that the spec sets."""

from __future__ import annotations

import json

import pandas as pd

from anon_pipeline.attack.limits import OF_INFERENCE
from anon_pipeline.audit.people import Bound, bounds
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.spec import ReleaseSpec

#: The file with the results of all attacks, in the folder of `attack_audit`.
AUDIT = "audit.json"

#: The remedy for a bound that does not hold, by its name; bounds on inference are named after their column.
REMEDIES = {
    "linkage": "raise k, or keep fewer columns as they are",
    "singling_out": "keep fewer columns as they are, or coarser values of them by a masking step",
    "membership_auc": "raise k, or train on fewer columns that are kept as they are",
    "replayed": "raise k, or lower the demands beyond k",
}


def checks_of(spec: ReleaseSpec) -> dict[str, str]:
    """The blocking checks on the audit."""
    return {bound.name: f"By attack: {bound.demand}." for bound in bounds(spec, {"findings": []})}


def ask_audit(_run: Run, attack_audit: Stage) -> list[Question]:
    """The questions to the stored results of the attacks. A bound on an unmeasured figure does not hold."""
    content = json.loads((attack_audit.folder / AUDIT).read_text())
    measured_bounds = [
        Bound(bound["name"], bound["demand"], bound["measured"], bound["limit"]) for bound in content["bounds"]
    ]
    return [_question(bound) for bound in measured_bounds]


CHECKS = CheckDef("audit_checks", "attack_audit", ("attack_audit",), checks_of, ask_audit)


def _question(bound: Bound) -> Question:
    return Question(
        bound.name,
        bound.demand,
        "ExpectColumnMinToBeBetween",
        {"column": "bound_holds", "min_value": 1},
        pd.DataFrame({"bound_holds": [int(bound.holds)]}),
        measured="not measured" if bound.measured is None else bound.measured,
        remedy=REMEDIES.get(bound.name)
        or f"demand t_closeness or beta_likeness of {bound.name.removeprefix(OF_INFERENCE)}, or raise k",
        of_share=bound.name != "membership_auc",
    )
