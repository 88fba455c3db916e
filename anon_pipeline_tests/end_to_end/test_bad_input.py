"""Bad input: exit code 2 and one clear sentence that names the place and the remedy, and no value of a person."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from anon_pipeline.cli.app import ENGINES as NAMED
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import ENGINES, Runtime
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness, sabotage
from anon_pipeline_tests.end_to_end.harness import Ended, Place, brief_policy, command, people, policy, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

#: Stands in every bad table; no message may quote it.
SECRET = 918273645


def rows(**columns: Any) -> pd.DataFrame:
    """The small table with the secret in it and some columns replaced."""
    frame = people().assign(**columns)
    if frame["age"].dtype.kind in "if":
        frame.loc[3, "age"] = SECRET
    return frame


def with_spec(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    spec = policy()
    change(spec)
    return lambda folder: write_dataset(folder, rows(), spec)


def with_table(frame: pd.DataFrame) -> Callable[[Path], object]:
    return lambda folder: write_dataset(folder, frame)


def missing_file(folder: Path) -> None:
    write_dataset(folder)
    (folder / "people.csv").unlink()


def corrupt_parquet(folder: Path) -> None:
    spec = policy() | {"source": {"path": "people.parquet"}}
    write_dataset(folder, spec=spec)
    rows().to_parquet(folder / "people.parquet")
    content = (folder / "people.parquet").read_bytes()
    (folder / "people.parquet").write_bytes(content[: len(content) // 2])


def corrupt_gzip(folder: Path) -> None:
    write_dataset(folder, spec=policy() | {"source": {"path": "people.csv.gz"}})
    (folder / "people.csv.gz").write_bytes(b"\x1f\x8b\x08\x00 this is not gzip" + bytes(100))


def wrong_encoding(folder: Path) -> None:
    write_dataset(folder)
    text = rows().replace("Cork", "C\u00f3rk").to_csv(index=False)
    (folder / "people.csv").write_bytes(text.encode("latin-1"))


def ragged(folder: Path) -> None:
    write_dataset(folder, rows())
    with (folder / "people.csv").open("a") as file:
        file.write(f'{SECRET},Bergen,"f,yes\n')


def empty_file(folder: Path) -> None:
    write_dataset(folder)
    (folder / "people.csv").write_text("")


def duplicate_names(folder: Path) -> None:
    write_dataset(folder)
    frame = rows()
    frame.columns = ["age", "city", "city", "ill", "visits"]
    frame.to_csv(folder / "people.csv", index=False)


def no_yaml(folder: Path) -> None:
    write_dataset(folder)
    (folder / "release.yaml").write_text("dataset: [people\n")


BAD = {
    "missing file": (missing_file, "people.csv: there is no such file"),
    "missing spec": (lambda folder: folder.mkdir(), "release.yaml: there is no such file"),
    "spec that is no yaml": (no_yaml, "release.yaml: is not valid YAML"),
    "unreadable parquet": (corrupt_parquet, "people.parquet: cannot be read"),
    "unreadable gzip": (corrupt_gzip, "people.csv.gz: cannot be read"),
    "wrong encoding": (wrong_encoding, "people.csv: cannot be read"),
    "ragged csv": (ragged, "people.csv"),
    "unknown column": (
        with_spec(lambda spec: spec["columns"].update(shoe={"role": "insensitive"})),
        "has no column shoe",
    ),
    "column without a role": (with_spec(lambda spec: spec["columns"].pop("visits")), "without a role: visits"),
    "empty file": (empty_file, "is empty"),
    "empty table": (with_table(rows()[:0]), "the table is empty"),
    "fewer than k rows": (with_table(rows()[:9]), "the table has 9 rows, fewer than k = 10"),
    "one class": (with_table(rows(ill="yes")), "target: ill has one value only"),
    "target missing": (with_table(rows(ill=[None] + ["yes", "no"] * 199 + ["no"])), "target: ill is missing in 1 row"),
    "infinity": (with_table(rows(age=[np.inf] * 2 + [40.5] * 398)), "columns.age: 2 values are infinite"),
    "text in a numeric column": (
        with_table(rows(age=[f"age {SECRET}"] + ["40"] * 399)),
        "columns.age: 1 value is no number",
    ),
    "duplicate column names": (duplicate_names, "of its first line have one name"),
    "unknown key": (with_spec(lambda spec: spec.update(kanonymity=5)), "kanonymity: is not a key of the spec"),
    "target that is a quasi-identifier": (
        with_spec(lambda spec: spec.update(target="age")),
        "target: 'age' is also a quasi-identifier",
    ),
    "k below 2": (
        with_spec(lambda spec: spec.update(privacy={"k_anonymity": {"k": 1}})),
        "k_anonymity.k: must be greater than or equal to 2",
    ),
    "one value a row": (
        with_table(people(1200).assign(city=[f"Z{SECRET + i}" for i in range(1200)])),
        "the column city has 1200 different texts in 1200 rows",
    ),
}


def assert_one_sentence(ended: Ended, sentence: str) -> None:
    assert ended.exit_code == 2, ended.said
    assert sentence in ended.sentence
    assert "Traceback" not in ended.said
    assert "Error" not in ended.said
    assert str(SECRET) not in ended.said
    assert ended.stdout == ""


def assert_disk_is_full(ended: Ended) -> None:
    """As for other bad input; beside our sentence Dagster itself may say that it could not write its log."""
    assert ended.exit_code == 2, ended.said
    assert any(sign in ended.sentence for sign in ("the disk is full", "larger than allowed")), ended.said
    assert "Traceback" not in ended.said
    assert ended.stdout == ""


#: Found while the table is read, with a value of a person at hand: the whole command is run for these.
READ = ["ragged csv", "text in a numeric column", "fewer than k rows"]
#: Found in the spec alone, so that the command ends at once.
SPEC = ["missing spec", "spec that is no yaml", "unknown key", "target that is a quasi-identifier", "k below 2"]


@pytest.mark.parametrize("kind", READ + SPEC)
def test_bad_input_gets_exit_2_and_a_sentence(fresh: Place, kind: str) -> None:
    bad = Place(fresh.home, fresh.dataset.with_name("bad"))
    make_bad, sentence = BAD[kind]
    make_bad(bad.dataset)
    assert_one_sentence(bad.run(), sentence)
    assert bad.releases() == {}


@pytest.mark.parametrize("kind", [kind for kind in BAD if kind not in SPEC])
def test_bad_input_is_told_in_a_sentence_by_the_step_that_meets_it(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the command makes of it, and what Dagster keeps of it, hangs on its kind alone (see the test above)."""
    make_bad, sentence = BAD[kind]
    make_bad(tmp_path / "bad")
    with pytest.raises(InputError) as told:
        _make_all(tmp_path / "bad", Home(tmp_path / "home").prepare())
    assert sentence in str(told.value)
    assert "Error" not in str(told.value) and "\n" not in str(told.value)
    assert str(SECRET) not in str(told.value)
    assert capfd.readouterr() == ("", "")


def _make_all(dataset: Path, home: Home) -> None:
    """The steps of a dataset, one after the other, without Dagster."""
    spec = ReleaseSpec.load(dataset)
    graph, run = graph_of(spec), Runtime(home=str(home.root)).run(spec, {"dagster": "a test", "mlflow": "a test"})
    for step in graph.steps:
        make(graph, step, run)


@pytest.mark.parametrize("kind", ["unknown key", "column without a role"])
def test_the_installed_script_says_the_same(fresh: Place, kind: str) -> None:
    bad = Place(fresh.home, fresh.dataset.with_name("bad"))
    make_bad, sentence = BAD[kind]
    make_bad(bad.dataset)
    ended = subprocess.run(
        [Path(sys.executable).with_name("anon-pipeline"), "run", bad.dataset],
        env={"ANON_PIPELINE_HOME": str(fresh.home.root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert_one_sentence(Ended(ended.returncode, ended.stdout, ended.stderr), sentence)


def test_with_json_bad_data_is_an_object_too(fresh: Place) -> None:
    make_bad, sentence = BAD["column without a role"]
    make_bad(fresh.dataset)
    ended = fresh.run("--json")
    assert ended.exit_code == 2
    told = yaml.safe_load(ended.stdout)
    assert not told["released"]
    assert sentence in told["failures"][0]


def test_a_home_below_a_file_cannot_be_written(fresh: Place) -> None:
    file = fresh.home.root.with_name("a_file")
    file.write_text("")
    ended = harness.command("run", fresh.dataset, home=file / "home")
    assert_one_sentence(ended, f"{file / 'home'}: cannot be written (Not a directory)")


def test_a_home_that_is_read_only_cannot_be_written(fresh: Place, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "mount", "ro,size=1m") as mount:
        ended = harness.command("run", fresh.dataset, home=mount / "home")
    assert_one_sentence(ended, "cannot be written (Read-only file system)")


def without_temporary_files() -> None:
    tempfile.tempdir, tempfile._candidate_tempdir_list = None, lambda: ["/proc"]  # type: ignore[attr-defined]


def test_a_machine_that_lets_nobody_write_temporary_files_is_told(published: Place) -> None:
    """As a container whose file system is read-only has no folder for them."""
    for asked in (["run", published.dataset], ["run", published.dataset, "--dry-run"]):
        ended = harness.command(*asked, home=published.home.root, sabotage=without_temporary_files)
        assert_one_sentence(ended, "No usable temporary directory found in ['/proc']")


def test_records_that_are_damaged_are_told(published: Place) -> None:
    """No release depends on them: they begin anew where their folder is moved away."""
    files = ["mlflow/mlflow.db", "dagster/history/runs.db", "dagster/history/runs/index.db"]
    for place in (published.home.private / file for file in files):
        sound = place.read_bytes()
        place.write_bytes(b"no database" * 1000)
        ended = published.run()
        assert_one_sentence(
            ended, "a database of Dagster's or MLflow's records is damaged; restore the home from a backup"
        )
        place.write_bytes(sound)
    write_dataset(published.dataset, spec=brief_policy())
    for tool in ("mlflow", "dagster"):
        (published.home.private / tool).rename(published.home.private / f"damaged {tool}")
    again = published.run()
    assert again.exit_code == 0, again.said


def test_records_that_cannot_be_opened_are_told(published: Place) -> None:
    """A disk without room for a new file ends SQLite so, which says no more; it was an internal error."""
    place = published.home.private / "dagster" / "history" / "runs" / "index.db"
    place.unlink()
    place.mkdir()
    assert_one_sentence(published.run(), "records cannot be opened, or a file that belongs beside it cannot be made")


@pytest.mark.parametrize("largest", [500, 30_000])
def test_files_that_may_not_grow_stop_the_run_with_a_sentence(fresh: Place, largest: int) -> None:
    ended = fresh.run(largest_file=largest)
    assert_disk_is_full(ended)
    assert fresh.releases() == {}


def test_a_full_disk_stops_the_run_with_a_sentence(fresh: Place, tmp_path: Path) -> None:
    """`room` kilobytes are left on the disk of a home that was in use."""
    with tmpfs(tmp_path / "mount", "size=16m") as mount:
        place = fresh.copy(mount)
        write_dataset(place.dataset, spec=brief_policy())
        stuff = mount / "stuff"
        for room in (8, 300):
            free = os.statvfs(mount).f_bavail * os.statvfs(mount).f_frsize
            stuff.write_bytes(bytes(free - room * 1024))
            ended = place.run()
            stuff.unlink()
            assert_disk_is_full(ended)
            assert place.releases() == {}
        after = place.run()
        assert after.exit_code == 0, after.said


def test_a_disk_that_is_full_at_the_release_publishes_nothing(fresh: Place) -> None:
    write_dataset(fresh.dataset, spec=brief_policy())
    ended = fresh.run(sabotage=sabotage.the_disk_is_full_at_the_release)
    assert_one_sentence(ended, "release: the disk is full; free or allow disk space")
    assert fresh.releases() == {}


@pytest.mark.parametrize("refuse", [sabotage.no_memory_to_begin, sabotage.no_memory_in_a_step])
def test_a_library_that_the_memory_does_not_hold_is_told(fresh: Place, refuse: Callable[[], None]) -> None:
    """Where `ulimit -v` or a container allows little, the system's loader refuses large libraries."""
    ended = fresh.run(sabotage=refuse)
    assert_one_sentence(ended, "the system gives no more memory; allow more")
    assert fresh.releases() == {}


@pytest.mark.parametrize(
    "stop",
    [
        sabotage.ctrl_c_while_the_spec_is_read,
        sabotage.sigterm_while_the_spec_is_read,
        sabotage.sigterm_while_utility_is_measured,
        sabotage.sigterm_in_the_background_while_the_spec_is_read,
        sabotage.sigterm_in_the_background_in_a_step,
        sabotage.ctrl_c_while_a_compiled_library_is_imported,
    ],
)
def test_who_stops_it_hears_so(fresh: Place, stop: Callable[[], None]) -> None:
    ended = fresh.run(sabotage=stop)
    assert ended.exit_code == 130, ended.said
    assert ended.stderr.endswith("anon-pipeline: stopped\n")
    assert "Traceback" not in ended.said
    assert "leaked" not in ended.said
    assert fresh.releases() == {}


class tmpfs:
    """A small disk of one's own; only root can mount one."""

    def __init__(self, where: Path, options: str) -> None:
        self.where, self.options = where, options

    def __enter__(self) -> Path:
        self.where.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", self.options, "none", self.where], capture_output=True, text=True
        )
        if mounted.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
        return self.where

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.where], check=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify", "T", "--quasi-identifiers", "", "--k", "5"], "--quasi-identifiers: names no column"),
        (["verify", "T", "--quasi-identifiers", " , ", "--k", "5"], "--quasi-identifiers: names no column"),
        (["verify", "T", "--spec", "S", "--k", "300"], "--k and --sensitive: the spec says both"),
        (["verify", "T", "--spec", "S", "--sensitive", "ill"], "--k and --sensitive: the spec says both"),
        (["run", "S", "--engine", "nope"], "engine: 'nope' is not available; use duckdb or spark"),
        (["run", "S", "--engine", "nope", "--dry-run"], "engine: 'nope' is not available"),
        (["statistics", "S", "--engine", ""], "engine: '' is not available"),
        (["run", "S", "--memory", "much"], "memory: much is no amount of memory; write it as 4GB"),
        (["statistics", "S", "--memory", "much"], "memory: much is no amount of memory; write it as 4GB"),
        (["run", "S", "--threads", "100000"], "--threads': Input should be less than or equal to 1024"),
    ],
)
def test_options_that_mean_nothing_are_refused(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "people")
    paths = {"T": str(dataset / "people.csv"), "S": str(dataset)}
    ended = command(*(paths.get(one, one) for one in arguments), home=tmp_path / "home")
    assert ended.exit_code == 2, ended.said
    assert sentence in re.sub(r"[\s\u2502]+", " ", ended.stderr), ended.stderr


@pytest.mark.parametrize("encoding", ["rot13", "base64", "hex", "undefined"])
def test_a_codec_that_is_none_of_texts_is_no_encoding(encoding: str, tmp_path: Path) -> None:
    spec = policy() | {"source": {"path": "people.csv", "encoding": encoding}}
    ended = command("run", write_dataset(tmp_path / "people", None, spec), home=tmp_path / "home")
    assert ended.exit_code == 2, ended.said
    assert f"source.encoding: {encoding} is no encoding" in ended.sentence


def test_a_day_at_the_end_of_all_time_is_released(tmp_path: Path) -> None:
    """9999-12-31 often stands for no end; nanoseconds since 1970 do not go so far."""
    frame = people().assign(until=np.where(np.arange(400) % 2, "9999-12-31", "2020-05-06"))
    spec = policy()
    spec["columns"]["until"] = {"role": "sensitive", "type": "date"}
    spec["audit"] = {"enabled": False}
    released_in_steps(Place(Home(tmp_path / "home"), write_dataset(tmp_path / "people", frame, spec)))


def test_the_command_line_names_the_engines_that_there_are() -> None:
    assert set(NAMED) == set(ENGINES)
