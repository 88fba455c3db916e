"""A stored result is loaded only if it is whole and fits the spec, the code and what it was made from."""

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline import stages as module
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.stages import Stage, Stages
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path).prepare()


@pytest.fixture
def stages(home: Home) -> Stages:
    return Stages(home, ReleaseSpec.model_validate(policy()))


def store(
    stages: Stages, name: str = "raw_data", made_from: dict[str, Stage] | None = None, text: str = "one"
) -> Stage:
    with stages.store(name, made_from or {}, {"text": text}) as folder:
        (folder / "file.txt").write_text(text)
    return stages.load(name, made_from)


def test_what_is_stored_can_be_loaded(stages: Stages) -> None:
    stored = store(stages)
    assert (stored.folder / "file.txt").read_text() == "one"
    assert stored.facts == {"text": "one"}
    assert stages.load("raw_data") == stored


def test_no_other_user_looks_into_a_result_not_even_while_it_is_written(stages: Stages) -> None:
    before = os.umask(0)
    try:
        with stages.store("raw_data", {}, {}) as folder:
            (folder / "file.txt").write_text("one")
            modes = {stat.S_IMODE(place.stat().st_mode) for place in (folder, folder.parent)}
    finally:
        os.umask(before)
    assert modes == {0o700}
    assert stat.S_IMODE((stages.load("raw_data").folder / "file.txt").stat().st_mode) == 0o600


def test_the_order_of_facts_means_nothing(stages: Stages) -> None:
    identities = []
    for facts in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        with stages.store("raw_data", {}, facts):
            pass
        identities.append(stages.load("raw_data").identity)
    assert identities[0] == identities[1]


def test_the_same_result_has_the_same_identity(stages: Stages) -> None:
    assert store(stages) == store(stages)


def test_a_new_result_replaces_the_former_one(stages: Stages) -> None:
    former = store(stages)
    store(stages, text="two")
    assert stages.load("raw_data").facts == {"text": "two"}
    assert not former.folder.exists()


def test_absent(stages: Stages) -> None:
    with pytest.raises(InputError, match="raw_data: has not been made yet; materialize people/raw_data again"):
        stages.load("raw_data")


def test_another_spec(stages: Stages, home: Home) -> None:
    store(stages)
    other = ReleaseSpec.model_validate(policy() | {"privacy": {"k_anonymity": {"k": 11}}})
    with pytest.raises(InputError, match="was made under another spec"):
        Stages(home, other).load("raw_data")


def test_another_schedule_or_path_is_the_same_spec(stages: Stages, home: Home) -> None:
    stored = store(stages)
    other = ReleaseSpec.model_validate(policy() | {"schedule": "0 4 * * *", "source": {"path": "moved.csv"}})
    assert Stages(home, other).load("raw_data") == stored


def test_another_code(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    store(stages)
    monkeypatch.setattr(module, "code_hash", lambda: "0" * 64)
    with pytest.raises(InputError, match="another version of the code"):
        stages.load("raw_data")


def test_made_from_another(stages: Stages) -> None:
    first = store(stages)
    store(stages, "trained_model", {"raw_data": first})
    second = store(stages, text="two")
    assert stages.load("trained_model", {"raw_data": first})
    with pytest.raises(InputError, match="trained_model: was made from another raw_data"):
        stages.load("trained_model", {"raw_data": second})


def test_not_made_from_what_it_should_be(stages: Stages) -> None:
    raw = store(stages)
    store(stages, "trained_model")
    with pytest.raises(InputError, match="was made from another raw_data"):
        stages.load("trained_model", {"raw_data": raw})


def test_an_altered_file(stages: Stages) -> None:
    (store(stages).folder / "file.txt").write_text("two")
    with pytest.raises(InputError, match=r"its file file\.txt was altered"):
        stages.load("raw_data")


def test_a_removed_file(stages: Stages) -> None:
    (store(stages).folder / "file.txt").unlink()
    with pytest.raises(InputError, match=r"its file file\.txt was altered"):
        stages.load("raw_data")


def test_an_altered_record(stages: Stages) -> None:
    record = store(stages).folder / "record.json"
    record.write_text(record.read_text().replace("one", "two"))
    with pytest.raises(InputError, match="its record was altered"):
        stages.load("raw_data")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\0\0\0"])
def test_a_record_that_is_none(stages: Stages, content: str) -> None:
    (store(stages).folder / "record.json").write_text(content)
    with pytest.raises(InputError, match="its record was altered"):
        stages.load("raw_data")


@pytest.mark.parametrize("content", ["", "..", "0" * 64])
def test_a_pointer_to_nowhere(stages: Stages, home: Home, content: str) -> None:
    store(stages)
    (home.private / "people" / "raw_data" / "current").write_text(content)
    with pytest.raises(InputError, match="has not been made yet"):
        stages.load("raw_data")


def test_a_write_that_fails_leaves_the_former_result(stages: Stages, home: Home) -> None:
    stored = store(stages)
    with suppress(RuntimeError), stages.store("raw_data", {}, {}) as folder:
        (folder / "file.txt").write_text("half")
        raise RuntimeError
    assert stages.load("raw_data") == stored
    assert {file.name for file in stored.folder.parent.iterdir()} == {"current", stored.folder.name}


def test_what_a_killed_writer_left_is_no_result_and_goes_with_the_next(stages: Stages, home: Home) -> None:
    place = home.private / "people" / "raw_data"
    (place / ".writing").mkdir(parents=True)
    (place / ".writing" / "file.txt").write_text("half")
    (place / ".current.abc").write_text("half")
    with pytest.raises(InputError, match="has not been made yet"):
        stages.load("raw_data")
    stored = store(stages)
    assert {file.name for file in place.iterdir()} == {"current", stored.folder.name}
    assert {file.name for file in stored.folder.iterdir()} == {"file.txt", "record.json"}


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_people_spill_into_the_private_zone_and_nowhere_else(home: Home, engine: str) -> None:
    made = Runtime(home=str(home.root), engine_name=engine).engine(ReleaseSpec.model_validate(policy()))
    assert made._scratch == home.private / "spill"  # type: ignore[union-attr]
    assert stat.S_IMODE(home.private.stat().st_mode) == 0o700
    if isinstance(made, DuckDBEngine):
        with made._session() as session:
            assert session.rows("SELECT current_setting('temp_directory')") == [(str(home.private / "spill"),)]


def test_a_hierarchy_that_changes_while_a_result_is_made_is_not_named_as_the_one_that_was_used(
    home: Home, tmp_path: Path
) -> None:
    """The record was hashed after the work: the manifest then named a file that had grouped nobody."""
    content = policy()
    column = next(name for name, one in content["columns"].items() if one["role"] == "quasi_identifier")
    content["columns"][column] = {"role": "quasi_identifier", "type": "categorical", "hierarchy": {"file": "h.csv"}}
    (tmp_path / "release.yaml").write_text(yaml.safe_dump(content))
    hierarchy = tmp_path / "h.csv"
    hierarchy.write_text("Ulm;South\n")
    stages = Stages(home, ReleaseSpec.load(tmp_path))
    with pytest.raises(Unavailable, match="hierarchy was changed while it was read"), stages.store("cells", {}, {}):
        hierarchy.write_text("Ulm;North\n")
    with pytest.raises(Unavailable, match="has not been made yet"):
        stages.load("cells")
