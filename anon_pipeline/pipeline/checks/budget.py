"""The checks on noisy answers before publication: the budget is kept, and its ledger has a line for each answer."""

from __future__ import annotations

import json

import pandas as pd

from anon_pipeline.differential_privacy.accounting import NANO
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.statistics import ANSWERS
from anon_pipeline.differential_privacy.verification import verify
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import CheckDef, Run

#: The checks, with the description that Dagster shows before they are first asked.
BUDGET_CHECKS = {
    "budget_ledger_holds": "No line of the budget's ledger is missing or altered, and none reserves too much.",
    "budget_is_not_overspent": "What was reserved is no more than the subject has.",
    "answers_were_paid": "Every answer is the one that the ledger has under its question.",
}


def ask_budget(run: Run, dp_answers: Stage) -> list[Question]:
    """The questions to the budget's ledger, read from its file, and to the stored answers."""
    budget = Budget(run.home, Allowance.of(asked_of(run.spec)))
    problems, state = verify(budget).problems, budget.state()
    answers = json.loads((dp_answers.folder / ANSWERS).read_text())
    unpaid = 0
    for name, keys in dp_answers.facts["keys"].items():
        stored = budget.stored(*keys)
        unpaid += stored is None or json.loads(stored) != answers[name]
    overspent = max(0, -state.left.nano_rho, -state.left.atto_delta)
    figures = {"problems": len(problems), "overspent": overspent, "unpaid": unpaid}
    totals = pd.DataFrame([figures])
    demands = (
        ("budget_ledger_holds", "problems", "the ledger of the budget is what was written", "; ".join(problems)),
        (
            "budget_is_not_overspent",
            "overspent",
            f"at most a rho of {state.allowance.total.nano_rho / NANO:g} is spent",
            "",
        ),
        ("answers_were_paid", "unpaid", "every answer has its line in the ledger", "run dp_answers again"),
    )
    return [
        Question(name, demand, "ExpectColumnMaxToBeBetween", {"column": column, "max_value": 0}, totals, remedy=remedy)
        for name, column, demand, remedy in demands
    ]


CHECKS = CheckDef("budget_checks", "dp_answers", ("dp_answers",), lambda _: BUDGET_CHECKS, ask_budget)
