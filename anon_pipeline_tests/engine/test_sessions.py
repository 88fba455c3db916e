"""An engine opens its database once; a session of it sees nothing of another, and leaves nothing."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anon_pipeline.engine import duckdb as duckdb_engine
from anon_pipeline.engine import few_texts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain


def test_a_session_sees_what_another_kept(engine: DuckDBEngine) -> None:
    for values in (["a", "b"], ["b", "c", "d"]):
        with engine._session() as session:
            session.keep("kept", "SELECT 1 AS x")
            session.register("told", pa.table({"x": values}))
            coded = np.array(values, dtype=object)
            domain = Domain("x", ColumnType.CATEGORICAL, coded, np.ones(len(coded), dtype=np.int64))
            code, _ = session.coded_text(0, domain, "x")
            assert session.rows(f"SELECT {code} FROM told ORDER BY 1") == [(n + 1,) for n in range(len(values))]
    with engine._session() as session:
        for name in ("kept", "told"):
            with pytest.raises(Exception, match="does not exist"):
                session.rows(f"FROM {name}")


@pytest.mark.parametrize("most", [0, few_texts.MOST_TEXTS])
def test_a_text_has_its_place_in_its_domain_and_no_other(
    engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Few texts are looked for in a list and many in an ENUM, and a text beyond the domain is no missing one."""
    monkeypatch.setattr(few_texts, "MOST_TEXTS", most)
    texts = np.array(["b", "a'", "", "ü"], dtype=object)
    domain = Domain("x", ColumnType.CATEGORICAL, texts, np.ones(4, dtype=np.int64))
    with engine._session() as session:
        session.register("told", pa.table({"x": [*texts, None]}))
        code, _ = session.coded_text(0, domain, "x")
        assert session.rows(f"SELECT x, {code} FROM told") == [("b", 1), ("a'", 2), ("", 3), ("ü", 4), (None, 0)]
    with pytest.raises(InputError), engine._session() as session:
        session.rows(f"SELECT {session.coded_text(0, domain, 'x')[0]} FROM (VALUES ('b'), ('c')) AS told(x)")


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [(duckdb.OutOfMemoryException, True), (duckdb.IOException, True), (duckdb.ConversionException, False)],
)
def test_what_a_machine_lacks_is_no_fault_of_the_table(
    engine: DuckDBEngine, error: type[duckdb.Error], may_pass: bool
) -> None:
    """A table that there was no memory to read was taken for one of other columns."""
    with pytest.raises(InputError) as raised, engine._session():
        raise error("Ann")
    assert (type(raised.value) is Unavailable) is may_pass


def test_an_error_ends_the_engine_or_changes_how_it_works(engine: DuckDBEngine) -> None:
    for _ in range(2):
        with pytest.raises(InputError), engine._session() as session:
            session.rows("SELECT CAST('Ann' AS INTEGER)")
        with engine._session() as session:
            settings = session.rows(
                "SELECT current_setting('threads'), current_setting('TimeZone'), "
                "current_setting('preserve_insertion_order'), current_setting('autoload_known_extensions')"
            )
        assert settings == [(2, "UTC", False, False)]


@pytest.mark.long
def test_what_is_spilled_stays_after_the_session(tmp_path: Path) -> None:
    engine, most = DuckDBEngine(tmp_path / "spill", "60MB", 1), 0
    with engine._session() as session:
        session.keep("sorted", "SELECT hash(x) AS a, hash(a) AS b, hash(b) AS c FROM range(4000000) AS t(x)")
        most = sum(file.stat().st_size for file in (tmp_path / "spill").iterdir())
    assert most > 0
    assert sum(file.stat().st_size for file in (tmp_path / "spill").iterdir()) == 0


@pytest.mark.long
def test_a_fork_works_on_a_database_of_its_own_and_leaves_its_parents(tmp_path: Path) -> None:
    """To close the parent's would wait for ever for its threads, which a fork has not."""
    engine, other = DuckDBEngine(tmp_path / "spill", threads=2), DuckDBEngine(tmp_path / "other", threads=2)
    pd.DataFrame({"age": range(300_000)}).to_parquet(tmp_path / "people.parquet")
    assert engine.rows(tmp_path / "people.parquet") == 300_000
    opened = duckdb_engine._OPEN[os.getpid()]
    child = multiprocessing.get_context("fork").Process(
        target=lambda: [each.content_hash(tmp_path / "people.parquet") for each in (engine, other)]
    )
    child.start()
    child.join()
    assert child.exitcode == 0
    assert engine.rows(tmp_path / "people.parquet") == 300_000
    assert duckdb_engine._OPEN[os.getpid()] is opened
