"""A source that is replaced between its hash and its reading: its answer was kept under the name of the former people.

Whoever asked again of the former file then got the figures of the other one, for nothing.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from anon_pipeline.differential_privacy import queries, same_source
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home
from anon_pipeline.keys import private_key
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy import synthetic_people
from anon_pipeline_tests.differential_privacy.synthetic_people import people as clinic
from anon_pipeline_tests.differential_privacy.tables import policy, write_dataset

PEOPLE, COST = "SELECT COUNT(*) FROM people", Share(rho=0.1)
COLUMNS = ["patient", "ill", "age", "weight", "visits", "city", "street"]


def people(n: int) -> pd.DataFrame:
    return pd.DataFrame([["p1", "yes", "4", "0.25", "3", "Cork", "High"]] * n, columns=COLUMNS)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "var").prepare()


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    return ReleaseSpec.load(write_dataset(tmp_path / "people", people(150), policy()))


class Replacing(DuckDBEngine):
    """An engine beside which somebody else does something before one of its readings, the header's being the first."""

    def __init__(self, scratch: Path, before: int, act: Callable[[], object]) -> None:
        super().__init__(scratch, threads=1)
        self.left, self.act = before, act

    def aggregated(self, *arguments: Any) -> pa.Table:
        self.left -= 1
        if self.left == 0:
            self.act()
        return super().aggregated(*arguments)


def spent(spec: ReleaseSpec, home: Home) -> int:
    return Budget(home, Allowance.of(asked_of(spec))).state().spent.nano_rho


def replaced(spec: ReleaseSpec, n: int) -> None:
    """Other people under the same name, as long-running exports put them there."""
    other = spec.folder / "other.csv"
    people(n).to_csv(other, index=False)
    os.replace(other, spec.source_path)


@pytest.mark.long
@pytest.mark.parametrize("settled", [True, False], ids=["stamps", "hashes"])
@pytest.mark.parametrize(("before", "cost"), [(1, 0), (2, 100_000_000)], ids=["header", "rows"])
def test_an_answer_of_other_people_is_not_kept(
    tmp_path: Path,
    home: Home,
    spec: ReleaseSpec,
    monkeypatch: pytest.MonkeyPatch,
    *,
    before: int,
    cost: int,
    settled: bool,
) -> None:
    if settled:  # as if the file had been there for long, so that its stamps are believed
        monkeypatch.setattr(same_source, "JUST_NOW", 0)
    engine = Replacing(tmp_path / "scratch", before, lambda: replaced(spec, 300))
    with pytest.raises(Unavailable, match=r"people\.csv: was changed while it was read; nothing was") as ended:
        queries.ask(spec, home, engine, PEOPLE, COST)
    assert ("nothing was spent" in str(ended.value)) == (cost == 0) and spent(spec, home) == cost
    replaced(spec, 150)  # the former people again
    answer = queries.ask(spec, home, DuckDBEngine(tmp_path / "scratch"), PEOPLE, COST)
    assert answer.new and abs(answer.content["rows"][0]["count"]["value"] - 150) < 50


@pytest.mark.parametrize("settled", [True, False], ids=["stamps", "hashes"])
def test_a_file_that_is_only_touched_is_answered(
    tmp_path: Path, home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    if settled:
        monkeypatch.setattr(same_source, "JUST_NOW", 0)
    engine = Replacing(tmp_path / "scratch", 2, lambda: os.utime(spec.source_path))
    assert queries.ask(spec, home, engine, PEOPLE, COST).new


def test_a_synthetic_table_of_other_people_is_not_kept(tmp_path: Path, home: Home) -> None:
    from anon_pipeline.differential_privacy.synthesis.made_table import measure_people

    spec = synthetic_people.write(tmp_path / "clinic", clinic(150))
    engine = Replacing(tmp_path / "scratch", 1, lambda: synthetic_people.write(tmp_path / "clinic", clinic(151)))
    with pytest.raises(Unavailable, match="was changed while it was read"):
        measure_people(engine, spec, home, private_key(spec, home))
    (state,) = [Budget(home, Allowance.of(asked_of(spec))).state()]
    assert (state.reserved, state.answered) == (1, 0)


@pytest.mark.long
def test_changes_that_a_database_has_not_moved_are_another_source(tmp_path: Path, home: Home) -> None:
    """SQLite keeps them in a file of their own, and readers see them: their answer was that of the people before."""
    content = policy() | {"source": {"path": "people.db", "missing": ["?"]}}
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", people(1), content))
    writer = sqlite3.connect(spec.source_path)
    writer.execute("PRAGMA journal_mode=wal")
    people(150).to_sql("people", writer, index=False)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    engine = DuckDBEngine(tmp_path / "scratch", threads=1)
    first = queries.ask(spec, home, engine, PEOPLE, COST)
    assert first.new and not queries.ask(spec, home, engine, PEOPLE, COST).new
    people(150).to_sql("people", writer, index=False, if_exists="append")
    writer.commit()
    answer = queries.ask(spec, home, engine, PEOPLE, COST)
    writer.close()
    assert answer.new and abs(answer.content["rows"][0]["count"]["value"] - 300) < 50
