"""Records of an older version are brought to the schema of the installed one, and keep what they knew."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql
from alembic import command
from mlflow.store.db.utils import _get_alembic_config

from anon_pipeline.home import VARIABLE
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
    done = subprocess.run(
        [sys.executable, "-m", "anon_pipeline.pipeline.upgrade"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert schema(database) == newest
    assert mlflow_states(published.home) == before
