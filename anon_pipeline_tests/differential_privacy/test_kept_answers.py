"""Answers that a former version of the program gave are given again by this one, and are not paid for twice.

An upgrade once changed the name under which an answer is kept, since a source had a new key that nobody had stated: all
statistics were drawn and paid for again from the same people, and a reader had two answers to average.
"""

from pathlib import Path

import pandas as pd
import pytest

from anon_pipeline.differential_privacy import queries, reading
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.engine.duckdb import DuckDBEngine
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
    assert reading.source_versions(spec, Key(b"k" * 32)) == (BEFORE_SYMBOLS, WITH_SYMBOLS)


def test_a_source_whose_symbols_are_stated_has_one_name(spec: ReleaseSpec) -> None:
    stated = spec.replaced({"source.symbols": ["$"]})
    (name,) = reading.source_versions(stated, Key(b"k" * 32))
    assert name not in (BEFORE_SYMBOLS, WITH_SYMBOLS)


@pytest.mark.parametrize("place", [0, 1])
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
