"""The addresses of Dagster's and MLflow's databases: what is taken, what is refused with one sentence, what is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.instance import dagster_home, settings
from anon_pipeline.pipeline.stores import DAGSTER, MLFLOW, STORES
from anon_pipeline.pipeline.tracking.runs import Tracking

SECRET = "geheim-4711"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for store in STORES:
        monkeypatch.delenv(store.variable, raising=False)
        monkeypatch.delenv(store.file_variable, raising=False)
    return Home(tmp_path / "var").prepare()


def test_a_home_without_addresses_keeps_files(home: Home) -> None:
    assert [store.address(home) for store in STORES] == [None, None]
    assert Tracking(home).uri.startswith("sqlite:///")


def test_an_address_names_the_driver_that_dagster_needs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MLFLOW.variable, f"postgresql://reader:{SECRET}@db.example.org/mlflow")
    assert Tracking(home).uri == f"postgresql+psycopg2://reader:{SECRET}@db.example.org/mlflow"


def test_an_address_may_lie_in_a_file_that_nobody_else_reads(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "address"
    file.write_text(f"postgresql://reader:{SECRET}@db.example.org/mlflow\n")
    monkeypatch.setenv(MLFLOW.file_variable, str(file))
    file.chmod(0o640)
    with pytest.raises(InputError, match="can be read by others; run `chmod 600` on it"):
        MLFLOW.address(home)
    file.chmod(0o600)
    assert SECRET in str(MLFLOW.address(home))
    monkeypatch.setenv(MLFLOW.file_variable, str(tmp_path / "absent"))
    with pytest.raises(InputError, match="cannot be read"):
        MLFLOW.address(home)


@pytest.mark.parametrize(
    "address", [SECRET, f"mysql://a:{SECRET}@host/x", f"sqlite:///{SECRET}", f"postgresql://a:{SECRET}@host", "p://[:x"]
)
def test_what_is_no_address_is_refused_and_not_repeated(
    home: Home, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv(DAGSTER.variable, address)
    with pytest.raises(InputError, match="is no address of a PostgreSQL database") as refused:
        DAGSTER.address(home)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("other", ["h/one", "h:5432/one", "/one?host=h"])
def test_two_tools_do_not_share_a_database(home: Home, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.setenv(DAGSTER.variable, "postgresql://a@h/one")
    monkeypatch.setenv(MLFLOW.variable, f"postgresql://b@{other}")
    with pytest.raises(InputError, match="give each a database of its own"):
        MLFLOW.address(home)


def test_a_home_that_had_a_server_begins_no_second_history(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DAGSTER.variable, f"postgresql://reader:{SECRET}@db.example.org/dagster")
    DAGSTER.address(home)
    monkeypatch.delenv(DAGSTER.variable)
    with pytest.raises(InputError, match="is not set, but this home keeps the records of Dagster on a server"):
        dagster_home(home)
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in home.root.rglob("*") if file.is_file())


def test_a_server_that_is_not_there_is_one_sentence(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DAGSTER.variable, f"postgresql://reader:{SECRET}@/dagster?host={home.root}")
    with pytest.raises(InputError, match="cannot be reached, or does not take this user") as refused:
        dagster_home(home)
    assert SECRET not in str(refused.value)


def test_dagsters_settings_name_the_variable_and_no_address() -> None:
    assert settings("folder", on_server=True)["storage"] == {"postgres": {"postgres_url": {"env": DAGSTER.variable}}}
    assert yaml.safe_dump(settings("folder")) != yaml.safe_dump(settings("folder", on_server=True))
