"""Answers that a former version of the program gave are given again by this one, and are not paid for twice.

An upgrade once changed the name under which an answer is kept, since a source had a new key that nobody had stated: all
statistics were drawn and paid for again from the same people, and a reader had two answers to average.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from anon_pipeline.differential_privacy import ledger, queries, reading
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.differential_privacy.verification import verify
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.tables import policy, write_dataset

PEOPLE = "SELECT COUNT(*) FROM people"
COST = Share(rho=0.1)
#: The names that versions of the program gave the source below: before `symbols` was a key of a source, and after.
BEFORE_SYMBOLS = "0c291a93470185f5e047be8cef5e2d472dd096507ef8f1063a5094f1a5f333ac"
WITH_SYMBOLS = "e2324dd3ef3b355892a082d869bfdeb4995b51c978df43702253d862a7ed9ea3"


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    columns = ["patient", "ill", "age", "weight", "visits", "city", "street"]
    people = pd.DataFrame([["p1", "yes", "4", "0.25", "3", "Cork", "High"]] * 20, columns=columns)
    write_dataset(tmp_path / "people", people, policy())
    return ReleaseSpec.load(tmp_path / "people")


def test_a_source_has_the_names_that_former_versions_gave_it(spec: ReleaseSpec) -> None:
    # If this fails, a key was added to specs or to a source. Leave it out where it is not stated (`Source.unstated`).
    newest, *former = reading.source_versions(spec, Key(b"k" * 32))
    assert former == [BEFORE_SYMBOLS, WITH_SYMBOLS] and newest not in former


def test_a_source_whose_symbols_are_stated_has_one_name(spec: ReleaseSpec) -> None:
    stated = spec.replaced({"source.symbols": ["$"]})
    _with_types, name = reading.source_versions(stated, Key(b"k" * 32))
    assert name not in (BEFORE_SYMBOLS, WITH_SYMBOLS)


@pytest.mark.parametrize("place", [1, 2])
def test_an_answer_of_a_former_version_is_given_again_and_costs_nothing(
    tmp_path: Path, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    home, engine = Home(tmp_path / "var").prepare(), DuckDBEngine(tmp_path / "scratch", threads=1)
    names = reading.source_versions
    with monkeypatch.context() as former:
        former.setattr(reading, "source_versions", lambda spec, key: names(spec, key)[place : place + 1])
        first = queries.ask(spec, home, engine, PEOPLE, COST)
    assert queries.prepare(spec, home, PEOPLE, COST).known
    again = queries.ask(spec, home, engine, PEOPLE, COST)
    assert (first.new, again.new, again.content) == (True, False, first.content)
    assert again.state.spent == first.state.spent


@pytest.fixture
def by_floor(tmp_path: Path) -> ReleaseSpec:
    """Of people on floors 10 and 2, those from the ninth up, as numbers; as texts 10 comes before 9."""
    columns = ["patient", "ill", "age", "weight", "visits", "city", "street", "floor"]
    rows = [["p1", "yes", "4", "0.25", "3", "Cork", "High", floor] for floor in ["10"] * 30 + ["2"] * 10]
    floors = policy()
    floors["columns"] |= {"floor": {"role": "exclude"}, "ill": {"role": "sensitive"}}  # no type but that of ages
    floors["source"] |= {"where": "floor >= '9'"}
    write_dataset(tmp_path / "people", pd.DataFrame(rows, columns=columns), floors)
    return ReleaseSpec.load(tmp_path / "people")


def test_a_source_that_is_read_with_other_types_is_asked_again(
    home: Home, engine: DuckDBEngine, by_floor: ReleaseSpec
) -> None:
    """The answer was that of the former reading: nobody in place of 30, told as an answer of the mended spec."""
    of_texts = queries.ask(by_floor, home, engine, PEOPLE, COST)
    of_numbers = queries.ask(by_floor.replaced({"columns.floor.type": "numeric"}), home, engine, PEOPLE, COST)
    assert of_numbers.new
    assert of_numbers.content["rows"] != of_texts.content["rows"]


def test_a_type_that_changes_no_reading_makes_no_question_new(
    home: Home, engine: DuckDBEngine, by_floor: ReleaseSpec
) -> None:
    """It is paid for anew, and readers have two answers to average."""
    spec = by_floor.replaced({"source.where": None})
    queries.ask(spec, home, engine, PEOPLE, COST)
    assert queries.prepare(spec.replaced({"columns.age.type": None}), home, PEOPLE, COST).known  # it has a range
    assert queries.prepare(spec.replaced({"columns.floor.type": "numeric"}), home, PEOPLE, COST).known  # nobody asks


def reworded(spec: ReleaseSpec, why: str) -> ReleaseSpec:
    return spec.replaced({f"differential_privacy.domains.{name}.why": why for name in spec_domains(spec)})


def spec_domains(spec: ReleaseSpec) -> list[str]:
    return list(reading.asked_of(spec).domains)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "var").prepare()


def ask_as_a_former_version(
    spec: ReleaseSpec, home: Home, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> queries.Answer:
    """Ask under the key that has the remarks of domains in it."""
    prepared = queries.prepare(spec, home, PEOPLE, COST)
    former = replace(prepared.question, key=prepared.question.former[-2], former=())
    with monkeypatch.context() as before:
        before.setattr(queries, "prepare", lambda *given: replace(prepared, question=former))
        return queries.ask(spec, home, engine, PEOPLE, COST)


def test_another_remark_on_a_domain_makes_no_question_new(home: Home, engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    """Whoever mended a slip in a `why` paid for all statistics again, and their readers had two answers to average."""
    first = queries.ask(spec, home, engine, PEOPLE, COST)
    again = queries.ask(reworded(spec, "the register's handbook"), home, engine, PEOPLE, COST)
    assert (first.new, again.new, again.content) == (True, False, first.content)
    assert again.state.lines == first.state.lines


def test_what_a_domain_is_makes_it_new(home: Home, spec: ReleaseSpec) -> None:
    wider = spec.replaced({"differential_privacy.domains.age": {"range": [0, 110], "step": 1, "why": "w"}})
    keys = [set(queries.prepare(each, home, PEOPLE, COST).question.keys) for each in (spec, wider)]
    assert not keys[0] & keys[1]


def test_an_answer_under_the_key_with_remarks_is_found_and_kept_without_them(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask_as_a_former_version(spec, home, engine, monkeypatch)
    found = queries.ask(spec, home, engine, PEOPLE, COST)
    assert (first.new, found.new, found.content) == (True, False, first.content)
    # From now on it is found by a key without remarks: those of its time cannot be known any more.
    again = queries.ask(reworded(spec, "another remark"), home, engine, PEOPLE, COST)
    assert (again.new, again.content, again.state.spent) == (False, first.content, first.state.spent)
    assert len(again.state.lines) == len(first.state.lines) + 1
    assert (again.state.reserved, again.state.answered) == (1, 1)
    assert verify(queries.prepare(spec, home, PEOPLE, COST).budget).problems == []


def test_an_answer_is_given_although_its_new_key_cannot_be_entered(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask_as_a_former_version(spec, home, engine, monkeypatch)

    def full(*given: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(ledger, "append", full)
    assert queries.ask(spec, home, engine, PEOPLE, COST).content == first.content


def test_a_key_of_an_answer_that_was_never_given_is_told(home: Home, engine: DuckDBEngine, spec: ReleaseSpec) -> None:
    queries.ask(spec, home, engine, PEOPLE, COST)
    budget = queries.prepare(spec, home, PEOPLE, COST).budget
    ledger.append(budget.folder, ledger.ALIAS, {"key": "0" * 64, "sha256": "1" * 64}, ledger.read(budget.folder))
    assert verify(budget).problems == ["budget line 4 names an answer that was never given"]
