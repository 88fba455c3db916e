"""Every check on noisy answers and on a synthetic table sees what it is there for; no graph is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.differential_privacy.accounting import Cost
from anon_pipeline.differential_privacy.budget import Allowance, Budget, Question
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.statistics import ANSWERS, protection
from anon_pipeline.differential_privacy.synthesis.stored import MEASUREMENTS
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import Refused
from anon_pipeline.home import Home
from anon_pipeline.pipeline.checks.budget import BUDGET_CHECKS, ask_budget
from anon_pipeline.pipeline.checks.synthetic import SYNTHETIC_CHECKS, ask_synthetic
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.stages import Stage, Stages
from anon_pipeline.pipeline.step import Run, StepDef
from anon_pipeline.pipeline.steps import dp_answers
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.synthetic_people import people, write
from anon_pipeline_tests.differential_privacy.tables import policy, write_dataset
from anon_pipeline_tests.pipeline.expectations.asked import ask

BY_STREET = "SELECT street, COUNT(*) FROM people GROUP BY street"


def run_of(folder: Path, spec: ReleaseSpec) -> Run:
    home = Home(folder / "home").prepare()
    return Run(spec, home, DuckDBEngine(home.private_folder("spill")))


# Noisy answers


@pytest.fixture
def answered(tmp_path: Path) -> tuple[Run, Stage]:
    """Two questions that were paid for, with their answers as a step stores them."""
    run = run_of(tmp_path, write(tmp_path / "clinic", people(50), model={"kind": "naive_bayes"}))
    budget = Budget(run.home, Allowance.of(asked_of(run.spec)))
    answers = {"people": 51, "ill": 7}
    for name, answer in answers.items():
        budget.ask(Question("clinic", name, name, Cost(5_000)), json.dumps(answer).encode)
    (tmp_path / ANSWERS).write_text(json.dumps(answers))
    return run, Stage(tmp_path, "", {"keys": {name: ["the new key", name] for name in answers}})


def unpaid(run: Run, stage: Stage) -> set[str]:
    answers = ask(ask_budget(run, stage))
    assert [answer.name for answer in answers] == list(BUDGET_CHECKS)
    return {answer.name for answer in answers if not answer.passed}


@pytest.mark.long
def test_answers_that_were_paid_pass(answered: tuple[Run, Stage]) -> None:
    assert unpaid(*answered) == set()


@pytest.mark.parametrize("name", ["people", "ill"])
def test_another_answer_than_was_paid_for_is_seen(answered: tuple[Run, Stage], name: str) -> None:
    run, stage = answered
    answers = json.loads((stage.folder / ANSWERS).read_text())
    (stage.folder / ANSWERS).write_text(json.dumps(answers | {name: 1000}))
    assert unpaid(run, stage) == {"answers_were_paid"}


def test_an_answer_to_a_question_that_nobody_paid_for_is_seen(answered: tuple[Run, Stage]) -> None:
    run, stage = answered
    assert unpaid(run, Stage(stage.folder, "", {"keys": {"people": ["free"]}})) == {"answers_were_paid"}


def test_what_was_spent_before_the_allowance_was_lowered_is_overspent(answered: tuple[Run, Stage]) -> None:
    run, stage = answered
    privacy = run.spec.differential_privacy
    assert privacy is not None
    spent = Budget(run.home, Allowance.of(privacy)).state().spent.nano_rho
    for rho, fails in ((spent / 1e9, set()), ((spent - 1) / 1e9, {"budget_is_not_overspent"})):
        lower = run.spec.replaced(
            {"differential_privacy.budget": {"subject": privacy.budget.subject, "rho": rho, "delta": 1e-6}}
        )
        Budget(run.home, Allowance.of(asked_of(lower))).accept("the board agreed on less")
        assert unpaid(Run(lower, run.home, run.engine), stage) == fails


@pytest.mark.long
def test_the_delta_of_thresholds_can_be_overspent_too(answered: tuple[Run, Stage]) -> None:
    run, stage = answered
    named = asked_of(run.spec).budget.subject
    for thresholds, fails in ((1e-7, set()), (1e-9, {"budget_is_not_overspent"})):
        stated = {"subject": named, "epsilon": 4, "delta": 1e-6, "thresholds": thresholds}
        spec = run.spec.replaced({"differential_privacy.budget": stated})
        budget = Budget(run.home, Allowance.of(asked_of(spec)))
        budget.accept("the board agreed")
        if not fails:
            budget.ask(Question("clinic", "towns", "towns", Cost(5_000, 10**10)), lambda: b"[]")
        assert unpaid(Run(spec, run.home, run.engine), stage) == fails


def test_an_altered_ledger_is_not_asked_further(answered: tuple[Run, Stage]) -> None:
    run, stage = answered
    ledger = Budget(run.home, Allowance.of(asked_of(run.spec))).folder / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"nano_rho": 5000', b'"nano_rho": 1000'))
    with pytest.raises(Refused):
        ask_budget(run, stage)


def test_a_question_under_several_names_is_paid_and_told_once(tmp_path: Path) -> None:
    """It was refused although the budget sufficed; a manifest told twice the epsilon that was spent, ledger beside."""
    spec = policy(rho=1)
    spec["differential_privacy"]["queries"] = "queries.yaml"
    write_dataset(tmp_path / "people", pd.DataFrame({name: ["1", "1"] for name in spec["columns"]}), spec)
    asked = {"one": "SELECT AVG(age) FROM people", "two": "select avg(age)  from people", "three": BY_STREET}
    content = [{"name": name, "sql": sql, "rho": 0.4} for name, sql in asked.items()]
    (tmp_path / "people" / "queries.yaml").write_text(json.dumps(content))
    run = run_of(tmp_path, ReleaseSpec.load(tmp_path / "people"))
    facts = dp_answers.answer(run, tmp_path).facts
    state = Budget(run.home, Allowance.of(asked_of(run.spec))).state()
    told = protection(run.spec, json.loads((tmp_path / ANSWERS).read_text()), state)
    assert (facts["questions"], facts["new"], facts["rho"], state.reserved) == (3, 2, 0.8, 2)
    assert (told["rho"], told["threshold_delta"]) == (0.8, 1e-8)
    assert (told["rho"], told["epsilon"]) == (told["budget"]["rho"]["spent"], told["budget"]["epsilon"]["spent"])


# A synthetic table


@dataclass(frozen=True)
class Made:
    run: Run
    measurements: Stage
    table: Stage

    def judged(
        self, folder: Path, spoil: Callable[[pa.Table], pa.Table], measurements: bytes | None = None
    ) -> set[str]:
        """Which checks fail where the table, or what was measured, is another."""
        pq.write_table(spoil(pq.read_table(self.table.folder / DATA, partitioning=None)), folder / DATA)
        content = (self.measurements.folder / MEASUREMENTS).read_bytes()
        (folder / MEASUREMENTS).write_bytes(content if measurements is None else measurements)
        stage = Stage(folder, "", {})
        answers = ask(ask_synthetic(self.run, stage, stage))
        assert [answer.name for answer in answers] == list(SYNTHETIC_CHECKS)
        return {answer.name for answer in answers if not answer.passed}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("synthetic")
    run = run_of(folder, write(folder / "clinic", people(600), model={"kind": "naive_bayes"}))
    graph = graph_of(run.spec)
    for part in graph.parts:
        if isinstance(part, StepDef) and part.name in ("raw_data", "dp_measurements", "synthetic_table"):
            make(graph, part, run)
    stages = Stages(run.home, run.spec)
    return Made(run, stages.load("dp_measurements"), stages.load("synthetic_table"))


def put(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    """Put a value into the first row."""

    def spoil(table: pa.Table) -> pa.Table:
        column = table.column(name)
        altered = pa.array([value, *column.to_pylist()[1:]], column.type)
        return table.set_column(table.column_names.index(name), name, altered)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "fails"),
    [
        (lambda table: table, set()),
        (lambda table: table.append_column("id", pa.array(["p1"] * len(table))), {"has_released_columns_only"}),
        (lambda table: table.drop(["city"]), {"has_released_columns_only"}),
        (put("city", "Nulltown"), {"has_public_values_only"}),
        (put("age", 98), {"has_public_values_only"}),
        (lambda table: table[:-1], {"has_noisy_size"}),
        (lambda table: pa.concat_tables([table, table[:1]]), {"has_noisy_size"}),
    ],
    ids=["as it is", "an identifier", "one less", "another town", "another age", "a row less", "a row more"],
)
def test_each_check_of_a_synthetic_table_sees_its_own(
    made: Made, tmp_path: Path, spoil: Callable[[pa.Table], pa.Table], fails: set[str]
) -> None:
    assert made.judged(tmp_path, spoil) == fails


def test_measurements_that_the_ledger_does_not_have_are_not_paid_for(made: Made, tmp_path: Path) -> None:
    content = json.loads((made.measurements.folder / MEASUREMENTS).read_bytes())
    other = json.dumps(content, indent=1).encode()
    assert made.judged(tmp_path, lambda table: table, other) == {"is_paid_for"}


def test_measurements_that_cost_more_than_the_share_of_the_spec_are_seen(made: Made, tmp_path: Path) -> None:
    lower = made.run.spec.replaced({"synthesis.epsilon": 1})
    spent = Made(Run(lower, made.run.home, made.run.engine), made.measurements, made.table)
    assert spent.judged(tmp_path, lambda table: table) == {"costs_its_share"}


@pytest.mark.long
def test_a_public_size_is_the_number_of_rows(made: Made, tmp_path: Path) -> None:
    for size, rows, fails in ((10, 10, set()), (10, 11, {"has_noisy_size"}), (1, 1, set())):
        public = made.run.spec.replaced({"differential_privacy.size": {"public": size, "why": "it was announced"}})
        sized = Made(Run(public, made.run.home, made.run.engine), made.measurements, made.table)
        assert sized.judged(tmp_path, lambda table, rows=rows: table[:rows]) & {"has_noisy_size"} == fails
