"""Records of an older version are brought to the schema of the installed one, and keep what they knew."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql
from alembic import command
from mlflow.store.db.utils import _get_alembic_config

from anon_pipeline.home import VARIABLE
from anon_pipeline.pipeline import upgrade
from anon_pipeline_tests.end_to_end.harness import Place
from anon_pipeline_tests.end_to_end.test_kill import mlflow_states


def schema(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def test_an_older_store_of_mlflow_is_upgraded(published: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before, database = mlflow_states(published.home), published.home.private / "mlflow/mlflow.db"
    newest = schema(database)
    engine = sql.create_engine(f"sqlite:///{database}")
    config = _get_alembic_config(str(engine.url))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "-1")
    assert schema(database) != newest
    monkeypatch.setenv(VARIABLE, str(published.home.root))
    assert upgrade.main() == 0  # as a command: see docs/operations.md, whose lines are run
    assert schema(database) == newest
    assert mlflow_states(published.home) == before


@pytest.mark.parametrize("file", ["mlflow/mlflow.db", "dagster/history/runs.db", "dagster/history/runs/index.db"])
@pytest.mark.parametrize("state", ["newer", "damaged"])
def test_records_that_cannot_be_upgraded_are_told(
    published: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str, state: str
) -> None:
    database = published.home.private / file
    if state == "damaged":
        database.write_bytes(b"no database" * 1000)
    else:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    monkeypatch.setenv(VARIABLE, str(published.home.root))
    assert upgrade.main() == 2
    remedy = {"newer": "after a return to a former version move", "damaged": "is damaged; restore the home"}[state]
    assert remedy in capsys.readouterr().err


def test_a_run_with_mlflow_records_of_a_newer_version_says_what_to_do(published: Place) -> None:
    with closing(sqlite3.connect(published.home.private / "mlflow/mlflow.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    refused = published.run()  # and where they were moved away, they begin anew: see test_bad_input.py
    assert refused.exit_code == 2, refused.said
    assert "after a return to a former version move private/dagster or private/mlflow away" in refused.sentence
