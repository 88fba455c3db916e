"""The noisy answers to the questions of the spec's file, within the privacy budget of the people in it."""

from __future__ import annotations

import json
from pathlib import Path

from anon_pipeline.differential_privacy import queries
from anon_pipeline.differential_privacy.accounting import NANO, Cost
from anon_pipeline.differential_privacy.statistics import ANSWERS
from anon_pipeline.errors import Refused
from anon_pipeline.pipeline.step import Run, StepDef, StepResult


def answer(run: Run, folder: Path) -> StepResult:
    """Ask every question; one that was asked of this source before costs nothing.

    Raises
    ------
    Refused
        Where the budget does not suffice for all that are new; then none is asked.
    """
    asked = {
        query.name: queries.prepare(run.spec, run.home, query.sql, query.share)
        for query in queries.read_queries(run.spec)
    }
    budget = next(iter(asked.values())).budget
    # Of two names for one question, the second gets the answer of the first.
    new = {prepared.question.key: prepared.question.cost for prepared in asked.values() if not prepared.known}
    cost = sum(new.values(), Cost(0, 0))
    left = budget.state().left
    if not cost.within(left):
        raise Refused(
            [
                f"budget of {budget.allowance.subject}: {len(new)} new questions take a rho of "
                f"{cost.nano_rho / NANO:g} together, and {max(0, left.nano_rho) / NANO:g} is left; none was asked"
            ]
        )
    answers = {name: prepared.ask(run.engine).content for name, prepared in asked.items()}
    (folder / ANSWERS).write_text(json.dumps(answers, sort_keys=True))
    spent = {"questions": len(answers), "new": len(new), "rho": cost.nano_rho / NANO}
    keys = {name: prepared.question.keys for name, prepared in asked.items()}
    return StepResult({**spent, "keys": keys}, metadata=spent, metrics=spent)


STEP = StepDef("dp_answers", (), frozenset({"duckdb"}), answer, in_release=False)
