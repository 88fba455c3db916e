"""Every check on a stored source and on a candidate sees what it is there for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.base import ColumnFacts, Repetition, SourceFacts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.checks import naming
from anon_pipeline.pipeline.checks.candidate import CANDIDATE_CHECKS, ask_candidate, candidate_questions
from anon_pipeline.pipeline.checks.candidate import checks_of as candidate_checks
from anon_pipeline.pipeline.checks.possible import require_possible
from anon_pipeline.pipeline.checks.source import SOURCE_CHECKS, ask_source, source_questions
from anon_pipeline.pipeline.checks.source import checks_of as source_checks
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.linked_releases import rows as linked_rows
from anon_pipeline.pipeline.stages import Stage, Stages
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release.facts import losses
from anon_pipeline.spec import AcrossReleases, ColumnType, ReleaseSpec, Role
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.pipeline.expectations.asked import ask

Tables = tuple[pd.DataFrame, pd.DataFrame]


def failing(answers: Iterable[Answer]) -> set[str]:
    return {answer.name for answer in answers if not answer.passed}


# The source


SPEC = ReleaseSpec.model_validate(policy())


def source(rows: int = 10, **changes: ColumnFacts) -> SourceFacts:
    columns = {
        name: ColumnFacts(name, column.role, column.type or ColumnType.CATEGORICAL, "BIGINT", 0, 2)
        for name, column in SPEC.columns.items()
    }
    return SourceFacts(rows, "", tuple((columns | changes).values()), ())


ILL = ColumnFacts("ill", Role.SENSITIVE, ColumnType.CATEGORICAL, "VARCHAR", 0, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("stored", "fails"),
    [
        (source(), set()),
        (source(ill=replace(ILL, distinct=70)), set()),
        (source(rows=9), {"has_people"}),
        (source(ill=replace(ILL, distinct=1)), {"has_target"}),
        (source(ill=replace(ILL, missing=1)), {"has_target"}),
        (source(ill=replace(ILL, name="sick")), {"has_columns", "has_target"}),
        (source(sick=replace(ILL, name="sick")), {"has_columns"}),
        (source(ill=replace(ILL, type=ColumnType.NUMERIC)), {"has_types"}),
        (replace(source(), identifiers=(Repetition("name", 0, 0), Repetition("email", 2, 2))), {"has_no_person_twice"}),
        (replace(source(), identifiers=(Repetition("email", 1, 1),)), {"has_no_person_twice"}),
    ],
    ids=[
        "as it is",
        "many values",
        "few",
        "one value",
        "a gap",
        "renamed",
        "a column more",
        "a number",
        "twice",
        "half a pair",
    ],
)
def test_each_check_of_the_source_sees_its_own(stored: SourceFacts, fails: set[str]) -> None:
    answers = ask(source_questions(SPEC, stored))
    assert [answer.name for answer in answers] == list(SOURCE_CHECKS)
    assert failing(answers) == fails


@pytest.mark.long
def test_a_source_is_counted_from_its_file_and_asked_what_the_spec_has_checks_for(stored: Candidate) -> None:
    answers = ask(ask_source(stored.run, stored.people))
    assert [answer.name for answer in answers] == list(source_checks(stored.spec))
    assert failing(answers) == set()


@pytest.mark.long
def test_how_many_values_the_target_has_is_not_told() -> None:
    measured = [
        {answer.name: answer.measured for answer in ask(source_questions(SPEC, stored))}["has_target"]
        for stored in (source(), source(ill=replace(ILL, distinct=70)), source(ill=replace(ILL, missing=1)))
    ]
    assert measured == [2, 2, 0]


def test_which_identifiers_repeat_is_told_and_no_value_of_theirs() -> None:
    identifiers = (Repetition("name", 0, 0), Repetition("email", 1200, 3))
    (said,) = [
        answer.sentence
        for answer in ask(source_questions(SPEC, replace(source(), identifiers=identifiers)))
        if answer.name == "has_no_person_twice"
    ]
    assert "email repeats in 1,200 rows, one value in 3 of them at most" in said
    assert "name does not repeat" in said


def test_what_not_even_everybody_together_meets_is_told_before_any_work(tmp_path: Path) -> None:
    people(60).assign(ill="yes").to_parquet(tmp_path / "people.parquet")
    engine = DuckDBEngine(tmp_path / "spill")
    demand = {"privacy": {"k_anonymity": {"k": 10}, "l_diversity": {"column": "ill", "l": 2, "kind": "distinct"}}}
    types = {"ill": ColumnType.CATEGORICAL}
    with pytest.raises(InputError, match=r"^privacy\.l_diversity: "):
        require_possible(ReleaseSpec.model_validate(policy() | demand), engine, tmp_path / "people.parquet", types)
    require_possible(SPEC, engine, tmp_path / "people.parquet", types)


@pytest.mark.parametrize("kind", ColumnType)
def test_a_grid_of_categories_is_told_before_any_work(tmp_path: Path, kind: ColumnType) -> None:
    people(60).to_parquet(tmp_path / "people.parquet")
    columns = policy()["columns"]
    spec = ReleaseSpec.model_validate(
        policy() | {"columns": {**columns, "age": {"role": "quasi_identifier", "grid": 5}}}
    )
    engine, types = DuckDBEngine(tmp_path / "spill"), {"ill": ColumnType.CATEGORICAL, "age": kind}
    if kind is ColumnType.CATEGORICAL:
        with pytest.raises(InputError, match=r"^columns\.age\.grid: "):
            require_possible(spec, engine, tmp_path / "people.parquet", types)
    else:
        require_possible(spec, engine, tmp_path / "people.parquet", types)


# The candidate


@dataclass(frozen=True)
class Candidate:
    """A stored candidate, and its people; `judged` spoils a copy of its tables and says which checks fail."""

    spec: ReleaseSpec
    facts: SourceFacts
    people: Stage
    stage: Stage
    scratch: Path
    run: Run

    def judged(
        self,
        spoil: Callable[[pd.DataFrame, pd.DataFrame], Tables],
        facts: dict[str, Any] | None = None,
        spec: ReleaseSpec | None = None,
    ) -> set[str]:
        tables = [pd.read_parquet(self.stage.folder / name) for name in ("data.parquet", "classes.parquet")]
        for name, table in zip(("data", "classes"), spoil(*tables), strict=True):
            table.to_parquet(self.scratch / f"{name}.parquet", index=False)
        if (self.stage.folder / "ranges.parquet").exists():
            (self.scratch / "ranges.parquet").write_bytes((self.stage.folder / "ranges.parquet").read_bytes())
        stage = Stage(self.scratch, "", self.stage.facts | (facts or {}))
        spec = spec or self.spec
        run = replace(self.run, spec=spec, engine=DuckDBEngine(self.scratch))
        answers = ask(candidate_questions(run, self.facts, self.people, stage))
        assert {answer.name for answer in answers} == set(candidate_checks(spec)) - {linked_rows.CHECK}
        return failing(answers)


def as_it_is(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
    return data, classes


@pytest.fixture(scope="module", params=["value", "range"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Candidate:
    content = policy() | {"recode": {"form": request.param}, "suppression": {"limit": 0.05}}
    content["privacy"] |= {"l_diversity": {"column": "ill", "l": 2, "kind": "distinct"}}
    content["columns"]["city"]["levels"] = ["Aberdeen", "Bergen", "Cork", "Delft"]
    content["columns"]["born"] = {"role": "quasi_identifier", "type": "date"}
    frame = people(400, 3)
    born = pd.Timestamp("2020-01-01") - pd.to_timedelta(365 * frame["age"], "D")
    folder = tmp_path_factory.mktemp(request.param)
    spec = ReleaseSpec.load(write_dataset(folder / "people", frame.assign(born=born), content))
    home = Home(folder / "home").prepare()
    graph, run = graph_of(spec), Run(spec, home, DuckDBEngine(home.private_folder("spill")))
    for part in graph.parts:
        if not isinstance(part, CheckDef):
            make(graph, part, run)
        if part.name == "anonymized_table":
            break
    stages = Stages(home, spec)
    raw = stages.load("raw_data")
    (folder / "spoilt").mkdir()
    facts = SourceFacts.from_json(raw.facts)
    return Candidate(spec, facts, raw, stages.load("anonymized_table"), folder / "spoilt", run)


def alter(column: str, value: Any, rows: slice | None = None) -> Callable[[pd.DataFrame, pd.DataFrame], Tables]:
    """Put a value into the first row, or into more of them."""

    def spoil(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
        data = data.copy()
        data[column] = data[column].astype(object)
        data.loc[data.index[rows or slice(1)], column] = value
        return data, classes

    return spoil


@pytest.mark.long
def test_a_candidate_as_it_was_made_passes(stored: Candidate) -> None:
    assert stored.judged(as_it_is) == set()
    assert set(candidate_checks(stored.spec)) == {
        "k_anonymity",
        "l_diversity_ill",
        *CANDIDATE_CHECKS,
        linked_rows.CHECK,
    }


@pytest.mark.long
def test_a_class_with_one_person_less_fails_its_k(stored: Candidate) -> None:
    data = pd.read_parquet(stored.stage.folder / "data.parquet")
    smallest = int(data.groupby(stored.spec.quasi_identifiers, dropna=False).size().min())
    assert smallest >= stored.spec.k
    for k, fails in ((smallest, set()), (smallest + 1, {"k_anonymity"})):
        assert (
            stored.judged(as_it_is, spec=stored.spec.replaced({"privacy.k_anonymity.k": k})) & {"k_anonymity"} == fails
        )


@pytest.mark.long
def test_the_worst_class_is_told_of_each_demand(stored: Candidate) -> None:
    questions = ask_candidate(stored.run, stored.people, stored.people, stored.stage)
    measured = {answer.name: answer.measured for answer in ask(questions)}
    data = pd.read_parquet(stored.stage.folder / "data.parquet")
    classes = data.groupby(stored.spec.quasi_identifiers, dropna=False)
    assert measured["k_anonymity"] == classes.size().min()
    assert measured["l_diversity_ill"] == classes["ill"].nunique().min()


@pytest.mark.long
def test_former_releases_are_asked_about_where_the_spec_says_so(
    stored: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequential_publication, "question", lambda _run, _stage: sequential_publication.CHECK)
    alone = ask_candidate(stored.run, stored.people, stored.people, stored.stage)
    assert {question.name for question in alone} == set(candidate_checks(stored.spec))
    across = stored.spec.model_copy(update={"across_releases": AcrossReleases(k=10)})
    *_, last = ask_candidate(replace(stored.run, spec=across), stored.people, stored.people, stored.stage)
    assert last == sequential_publication.CHECK
    assert sequential_publication.CHECK in candidate_checks(across)


@pytest.mark.long
def test_a_class_of_one_answer_fails_its_demand(stored: Candidate) -> None:
    def spoil(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
        alike = data[stored.spec.quasi_identifiers].astype(str) == data[stored.spec.quasi_identifiers].iloc[0].astype(
            str
        )
        return data.assign(ill=np.where(alike.all(axis=1), "yes", data["ill"])), classes

    assert stored.judged(spoil) == {"l_diversity_ill"}


@pytest.mark.long
def test_other_columns_fail(stored: Candidate) -> None:
    assert stored.judged(lambda data, classes: (data.assign(name="Zebulon"), classes)) == {"has_released_columns_only"}


@pytest.mark.long
@pytest.mark.parametrize(("column", "value"), [("ill", "perhaps"), ("visits", 77)])
def test_a_value_that_nobody_has_is_foreign(stored: Candidate, column: str, value: Any) -> None:
    spoil = alter(column, value) if column == "ill" else lambda data, classes: (data.assign(visits=value), classes)
    assert stored.judged(spoil) == {"has_values_of_the_source"}


@pytest.mark.long
def test_people_who_are_nowhere_or_twice_do_not_add_up(stored: Candidate) -> None:
    released = len(pd.read_parquet(stored.stage.folder / "data.parquet"))
    assert released + stored.stage.facts["suppressed"] == stored.facts.rows == 400
    for more in (1, -1):
        facts = {"suppressed": stored.stage.facts["suppressed"] + more}
        assert "accounts_for_every_row" in stored.judged(as_it_is, facts)
    both = {"suppressed": stored.stage.facts["suppressed"] - 1, "waiting": 1}
    assert stored.judged(as_it_is, both) == set()


@pytest.mark.long
@pytest.mark.parametrize(("suppressed", "fails"), [(20, set()), (21, {"suppresses_within_the_limit"})])
def test_no_more_are_suppressed_than_the_spec_allows(stored: Candidate, suppressed: int, fails: set[str]) -> None:
    """Of 400 people 5 % are 20; people who are withheld are not suppressed."""

    def spoil(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
        return data.iloc[: 400 - suppressed], classes

    common = {"accounts_for_every_row", "suppresses_within_the_limit"}
    assert stored.judged(spoil, {"suppressed": suppressed, "waiting": 0}) & common == fails
    assert stored.judged(spoil, {"suppressed": suppressed - 1, "waiting": 1}) & common == set()


@pytest.mark.long
@pytest.mark.parametrize(("lost", "fails"), [(0.95, set()), (0.951, {"loses_within_the_limit"})])
def test_a_candidate_that_lost_nearly_everything_asks_first(stored: Candidate, lost: float, fails: set[str]) -> None:
    """Unless the spec says otherwise; a bound that is met exactly is met."""
    assert stored.judged(as_it_is, {"information_loss": {"age": lost, "city": lost}}) == fails
    assert stored.judged(as_it_is, {"information_loss": {"age": 1.0, "city": 0.0}}) == set()


def loss_of(stored: Candidate, age: float, city: float) -> tuple[Stage, Answer]:
    """A candidate that has lost so much, and the answer of the check."""
    facts = stored.stage.facts | {"information_loss": {"age": age, "city": city}}
    candidate = Stage(stored.stage.folder, "", facts)
    questions = candidate_questions(stored.run, stored.facts, stored.people, candidate)
    (answer,) = ask([question for question in questions if question.name == "loses_within_the_limit"])
    return candidate, answer


@pytest.mark.long
def test_how_much_was_lost_is_told_in_percent_and_as_in_the_manifest(stored: Candidate) -> None:
    candidate, answer = loss_of(stored, 0.25, 0.30002)
    told = losses(candidate.facts, stored.run.noise(candidate.facts["version"]))["mean"]
    assert answer.measured == told and 0.1 < told < 0.5
    assert answer.sentence == f"at most 95 % of the quasi-identifiers' variance is lost; measured {100 * told:.4g} %"


@pytest.mark.long
@pytest.mark.parametrize("age", [0.93, 0.94, 0.95, 0.951, 0.96, 0.97])
def test_noise_never_says_of_a_loss_that_is_allowed_that_it_is_not(stored: Candidate, age: float) -> None:
    for city in (age - 0.01, age, age + 0.01):
        _, answer = loss_of(stored, age, city)
        assert isinstance(answer.measured, float) and answer.passed == (age + city <= 2 * 0.95)
        assert answer.measured <= 0.95 if answer.passed else answer.measured >= 0.95


@pytest.mark.long
@pytest.mark.parametrize("column", ["age", "city", "sex", "born"])
def test_a_value_that_no_class_names_is_seen(stored: Candidate, column: str) -> None:
    """In the released table alone: a number between those of the classes, a category of nobody."""
    written = {"age": 18.25, "city": "Nulltown", "sex": "x", "born": pd.Timestamp("1999-09-09").date()}[column]
    value = {"age": "18.25 .. 19", "city": "Nulltown", "sex": "x", "born": "1999-09-09"}[column]
    of_this_form = value if stored.spec.recode.form == "range" else written

    def spoil(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
        return data.assign(**{column: [of_this_form, *data[column].iloc[1:]]}), classes

    fails = stored.judged(spoil)
    assert "names_shared_values_only" in fails
    if column in ("city", "sex") or stored.spec.recode.form == "range":
        assert "has_values_of_the_source" in fails


@pytest.mark.long
@pytest.mark.parametrize("told", ["sex", "sex_values"])
def test_a_category_that_only_the_class_table_names_is_seen(stored: Candidate, told: str) -> None:
    def spoil(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
        classes = classes.astype({"sex": object})
        classes.at[0, told] = "Xanadu" if told == "sex" else [*classes.at[0, told], "Xanadu"]
        return data, classes

    assert "names_shared_values_only" in stored.judged(spoil)


@pytest.mark.long
@pytest.mark.parametrize("age", [-500, 500])
def test_a_number_beyond_everybody_is_foreign(stored: Candidate, age: int) -> None:
    written = f"{age} .. {age + 1}" if stored.spec.recode.form == "range" else float(age)
    assert "has_values_of_the_source" in stored.judged(
        lambda data, classes: (data.assign(age=[written, *data["age"].iloc[1:]]), classes)
    )


@pytest.mark.long
@pytest.mark.parametrize("column", ["age", "born"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_an_end_that_a_few_share_is_seen(stored: Candidate, column: str, end: str) -> None:
    """In the table of classes: the youngest's own age as an end of one class."""
    people_ = pd.read_parquet(stored.people.folder / "data.parquet")
    extreme = people_[column].max() if end == "low" else people_[column].min()
    assert (people_[column] == extreme).sum() < stored.spec.k

    def spoil(data: pd.DataFrame, classes: pd.DataFrame) -> Tables:
        ends = classes[f"{column}_{end}"].copy()
        ends.iloc[0] = extreme if column == "age" else pd.Timestamp(extreme)
        return data, classes.assign(**{f"{column}_{end}": ends})

    assert "names_shared_values_only" in stored.judged(spoil)


def test_a_number_is_known_that_a_class_shows_to_a_millionth(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Of large numbers a millionth of themselves, of small ones a millionth of 1."""
    shown = pd.DataFrame({"pay": [1e9 + 100, 2e9 + 5000, 5e-7, 5e-6, np.nan]})
    shown.to_parquet(tmp_path / "data.parquet", index=False)
    (pay,) = engine.domains(tmp_path / "data.parquet", {"pay": ColumnType.NUMERIC})
    classes = pd.DataFrame({"pay": [1e9, 2e9, 0.0, np.nan]})
    assert naming._unknown_numbers(engine, Stage(tmp_path, "", {}), pay, classes) == 2


def test_unknown_numbers_are_found_among_many(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A table of each number beside each would have 180 GB here; a million people with many amounts took 12."""
    pay = np.arange(150_000) * 3.0
    pd.DataFrame({"pay": [*pay, 1.0, 5e8]}).to_parquet(tmp_path / "data.parquet", index=False)
    (domain,) = engine.domains(tmp_path / "data.parquet", {"pay": ColumnType.NUMERIC})
    shown = Stage(tmp_path, "", {})
    assert naming._unknown_numbers(engine, shown, domain, pd.DataFrame({"pay": pay[::-1]})) == 2
    assert naming._unknown_numbers(engine, shown, domain, pd.DataFrame({"pay": [np.nan]})) == len(pay) + 2


def test_missing_values_of_a_class_are_no_text() -> None:
    classes = pd.DataFrame(
        {"city": ["Cork", None, np.nan], "city_values": [["Bergen"], [None], ["Cork"]]}, dtype=object
    )
    assert naming._categories(classes, "city") == {"Bergen", "Cork", None}


def test_an_end_is_known_that_a_class_has_and_what_is_no_range_is_not() -> None:
    classes = pd.DataFrame({"age_low": [20, 30], "age_high": [29, np.nan]})
    assert naming._unknown_ends(["[20, 29]", ">= 30", None, None], classes, "age") == 0
    assert naming._unknown_ends(["[20, 28]", "about forty", "twenty", None], classes, "age") == 3
