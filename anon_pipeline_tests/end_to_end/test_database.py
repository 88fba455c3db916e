"""A run from a server of a database: the release of the same table in a file, and the server's password nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from anon_pipeline.home import Home
from anon_pipeline_tests import mariadb, postgresql
from anon_pipeline_tests.end_to_end.harness import Place, brief_policy, command, people, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from anon_pipeline_tests.postgresql import PASSWORD
from anon_pipeline_tests.skips import require_package

VARIABLE = "CLINIC_DSN"
KEY = "ab" * 32


def surroundings(address: str) -> None:
    """In the process of the command: the address of the server, and one key for both runs."""
    os.environ |= {VARIABLE: address, "ANON_PIPELINE_KEY": KEY}


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql.Server]:
    dbapi = require_package("adbc_driver_postgresql.dbapi")
    with postgresql.running_server() as running:
        with dbapi.connect(running.address("owner")) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("people", pa.Table.from_pandas(people(), preserve_index=False))
            connection.commit()
        running.execute("GRANT SELECT ON people TO reader")
        yield running


@pytest.fixture(scope="module")
def of_mariadb() -> Iterator[mariadb.Server]:
    kinds = {"int64": "bigint", "int32": "int", "float64": "double"}
    columns = [f"`{name}` {kinds.get(str(kind), 'varchar(40)')}" for name, kind in people().dtypes.items()]
    rows = [tuple(None if pd.isna(value) else value for value in row) for row in people().astype(object).to_numpy()]
    with mariadb.running_server() as running:
        running.execute(
            f"CREATE TABLE clinic.people ({', '.join(columns)})", "GRANT SELECT ON clinic.* TO reader@localhost"
        )
        with running.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO clinic.people VALUES ({', '.join(['%s'] * len(columns))})", rows)
        yield running


@pytest.fixture(scope="module")
def version_of_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("of_file")
    from_file = Place(Home(folder / "home"), of_file(folder / "people"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ANON_PIPELINE_KEY", KEY)
        return released_in_steps(from_file).version


def of_server(folder: Path, kind: str = "postgresql") -> Path:
    source = {"database": kind, "connection": {"env": VARIABLE}, "table": "people"}
    return write_dataset(
        folder, pd.DataFrame(), brief_policy() | {"source": source, "draws": {"environment": "ANON_PIPELINE_KEY"}}
    )


def of_file(folder: Path) -> Path:
    folder.mkdir()
    people().to_parquet(folder / "people.parquet")
    draws = {"environment": "ANON_PIPELINE_KEY"}
    return write_dataset(folder, None, brief_policy() | {"source": {"path": "people.parquet"}, "draws": draws})


def left_by(home: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in home.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_run_leaves_the_release_of_the_file_and_no_password(
    kind: str, version_of_file: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    running = request.getfixturevalue({"postgresql": "server", "mysql": "of_mariadb"}[kind])
    from_server = Place(Home(tmp_path / "server"), of_server(tmp_path / "people", kind))
    ended = from_server.run(sabotage=partial(surroundings, running.address()))
    assert ended.exit_code == 0, ended.said
    secrets = {"postgresql": [PASSWORD], "mysql": [mariadb.PASSWORD, mariadb.ADDRESS_PASSWORD]}[kind]
    assert [secret for secret in secrets if secret in ended.said] == []
    left = left_by(tmp_path / "server").items()
    assert [name for name, content in left if any(secret.encode() in content for secret in secrets)] == []
    assert from_server.release.name == version_of_file, "one version"


def test_a_wrong_password_is_bad_input_and_is_told_to_nobody(server: postgresql.Server, tmp_path: Path) -> None:
    place = Place(Home(tmp_path / "server"), of_server(tmp_path / "people"))
    ended = place.run(sabotage=partial(surroundings, server.address(password="falsch-4711")))
    assert ended.exit_code == 2
    assert "postgresql:CLINIC_DSN: the server cannot be reached" in ended.sentence
    assert "4711" not in ended.said
    assert [name for name, content in left_by(tmp_path / "server").items() if b"falsch-4711" in content] == []


def test_init_says_what_it_lacks(tmp_path: Path) -> None:
    ended = command("init", "clinic", "--database", VARIABLE, home=tmp_path)
    assert ended.exit_code == 2
    assert "table: is missing; say table or query" in ended.sentence
    ended = command("init", "clinic", home=tmp_path)
    assert ended.exit_code == 2
    assert "--from FILE, or --database NAME" in ended.sentence
