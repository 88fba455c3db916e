"""A home's MLflow database: the same whether MLflow made it or it was copied, and opened once a process."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from anon_pipeline.home import NOT_OPENED, Home, fault_of_records
from anon_pipeline.pipeline.tracking import runs as tracking
from anon_pipeline.pipeline.tracking.mlflow_client import MlflowClient, SqlAlchemyStore
from anon_pipeline.pipeline.tracking.runs import Tracking


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "anon-pipeline"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the copy."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("XDG_CACHE_HOME", str(folder))
        database(folder / "home")
    return folder / "anon-pipeline"


def database(home: Path) -> Path:
    """A new home's database, after a step was logged to it."""
    logged = Tracking(Home(home).prepare())
    with logged.step("people", "run", "utility") as metrics:
        metrics["accuracy"] = 0.75
    return home / "private" / "mlflow" / "mlflow.db"


def content(file: Path) -> tuple[list[object], list[object], list[object]]:
    """Its schema, the version of that, and its experiments; MLflow puts constraints into any order."""
    with closing(sqlite3.connect(file)) as connection:
        schema: list[object] = connection.execute("SELECT type, name FROM sqlite_master ORDER BY 1, 2").fetchall()
        columns = (
            "SELECT * FROM sqlite_master AS item, pragma_table_xinfo(item.name) AS col ORDER BY item.name, col.name"
        )
        schema += [(row[1], *row[5:]) for row in connection.execute(columns)]
        version = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return schema, version, connection.execute("SELECT name, artifact_location FROM experiments").fetchall()


@pytest.mark.long
def test_a_database_that_was_removed_leaves_nothing_to_the_next(tmp_path: Path, cache: Path, made: Path) -> None:
    """A killed run leaves the log of its database; whoever then removes the database alone begins an empty one."""
    shutil.copytree(made, cache)
    (of_killed := tmp_path / "killed").mkdir()
    file = Home(tmp_path / "home").prepare().private_folder("mlflow") / "mlflow.db"
    shutil.copy(next(cache.iterdir()), of_killed / "mlflow.db")
    with closing(sqlite3.connect(of_killed / "mlflow.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE of_the_removed (n INTEGER)")
        connection.commit()
        shutil.copy(of_killed / "mlflow.db-wal", file.with_name("mlflow.db-wal"))
    assert database(tmp_path / "home") == file
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'of_the_removed'").fetchall() == []


@pytest.mark.long
def test_a_copied_database_is_the_one_that_mlflow_makes(tmp_path: Path, cache: Path, made: Path) -> None:
    shutil.copytree(made, cache)
    SqlAlchemyStore(f"sqlite:///{tmp_path / 'theirs.db'}", str(tmp_path / "artifacts"))
    schema, version, _ = content(tmp_path / "theirs.db")
    first, second = database(tmp_path / "first"), database(tmp_path / "second")
    (copy,) = cache.iterdir()
    assert content(copy) == (schema, version, [])
    for home, other in ((first, "second"), (second, "first")):
        assert content(home)[:2] == (schema, version)
        assert "people" in dict(content(home)[2])
        assert not any(f"/{other}/" in place for _, place in content(home)[2])  # type: ignore[misc]
        assert home.stat().st_mode & 0o077 == 0
    assert {file.name for file in second.parent.iterdir()} == {"mlflow.db", "mlflow.db-shm", "mlflow.db-wal"}


#: A process that ends with an open connection, as MLflow's pool keeps one.
ENDS = """
import ctypes, sqlite3, sys
from pathlib import Path
from anon_pipeline.pipeline.tracking.empty_database import write_ahead
write_ahead(Path(sys.argv[1]))
opened = sqlite3.connect(sys.argv[1])
ctypes.pythonapi.Py_IncRef(ctypes.py_object(opened))
opened.execute("INSERT INTO seen VALUES (2)")
opened.commit()
assert Path(f"{sys.argv[1]}-wal").stat().st_size > 0
"""


def test_when_a_process_ends_the_database_alone_holds_everything(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.db")) as connection, connection:
        connection.execute("CREATE TABLE seen (n INTEGER)")
        connection.execute("INSERT INTO seen VALUES (1)")
    subprocess.run([sys.executable, "-c", ENDS, str(tmp_path / "one.db")], check=True)
    (tmp_path / "elsewhere.db").write_bytes((tmp_path / "one.db").read_bytes())
    with closing(sqlite3.connect(tmp_path / "elsewhere.db")) as connection:
        assert connection.execute("SELECT n FROM seen").fetchall() == [(1,), (2,)]


def test_a_store_that_cannot_be_opened_is_told_without_waiting(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow sleeps and tries again, two minutes in all; nothing will have changed by then."""
    home = Home(tmp_path).prepare()
    (home.private_folder("mlflow") / "mlflow.db").mkdir()
    monkeypatch.setattr("mlflow.store.db.utils.time.sleep", lambda _: pytest.fail("it waits"))
    with pytest.raises(sqlite3.OperationalError) as raised:
        _ = Tracking(home).client
    assert fault_of_records(raised.value) == NOT_OPENED


@pytest.mark.long
def test_a_copied_home_writes_into_itself(tmp_path: Path, cache: Path, made: Path) -> None:
    """Else the guide of the copy, which knows people, would lie in the home that it was copied from."""
    shutil.copytree(made, cache)
    first = database(tmp_path / "first").parents[2]
    shutil.copytree(first, tmp_path / "second")
    tracking._client.cache_clear()
    copied = Tracking(Home(tmp_path / "second"))
    client = copied.client
    with copied.step("people", "another run", "utility") as metrics:
        metrics["accuracy"] = 0.5
    client.log_text(metrics["mlflow_run"], "text", "report.html")
    assert [file.name for file in copied.artifacts("people").rglob("*.html")] == ["report.html"]
    assert not list((first / "private/mlflow").rglob("*.html"))
    here = copied.artifacts("people").as_uri()
    assert all(run.info.artifact_uri.startswith(f"{here}/") for run in client.search_runs(["1"]))


@pytest.mark.long
@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0 and no more"])
def test_a_damaged_copy_is_made_anew(tmp_path: Path, cache: Path, made: Path, damage: bytes) -> None:
    shutil.copytree(made, cache)
    (copy,) = cache.iterdir()
    whole = content(copy)
    copy.write_bytes(damage)
    assert content(database(tmp_path / "second"))[:2] == whole[:2]
    assert content(copy) == whole


@pytest.mark.long
def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o755)
    assert content(database(tmp_path / "home"))[1]
    assert not list(cache.iterdir())


@pytest.mark.long
def test_a_process_opens_the_store_of_a_home_once(
    tmp_path: Path, cache: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, cache)
    clients: list[object] = []

    class Counted(MlflowClient):  # type: ignore[misc]
        def __init__(self, *given: object, **named: object) -> None:
            clients.append(self)
            super().__init__(*given, **named)

    monkeypatch.setattr("anon_pipeline.pipeline.tracking.mlflow_client.MlflowClient", Counted)
    tracking._client.cache_clear()
    for step in ("utility", "release"):
        with Tracking(Home(tmp_path).prepare()).step("people", "run", step) as metrics:
            metrics["accuracy"] = 0.75
    assert len(clients) == 1
    runs = clients[0].search_runs(["1"])  # type: ignore[attr-defined]
    assert len(runs) == 3  # of the release, and of each step
    steps = [run for run in runs if tracking.PARENT in run.data.tags]
    assert [run.data.metrics for run in steps] == [{"accuracy": 0.75}] * 2  # the release has headlines of its own
