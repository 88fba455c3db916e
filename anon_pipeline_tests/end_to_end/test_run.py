"""The commands as a user types them: what they print, where they exit, what lies on the disk afterwards."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from anon_pipeline.home import Home
from anon_pipeline.release.descriptors.written import DESCRIPTORS
from anon_pipeline_tests.end_to_end.harness import Ended, Place, command, people, policy, write_dataset
from anon_pipeline_tests.pipeline.test_release_gate import release_alone

SCRIPT = Path(sys.executable).with_name("anon-pipeline")


def test_the_first_run_publishes_everything_the_contract_names(first_run: Ended, template: Place) -> None:
    told = json.loads(first_run.stdout)
    assert told["released"]
    assert told["new"]
    assert told["folder"] == str(template.release)
    assert {file.name for file in template.release.iterdir()} == {
        "data.parquet",
        "classes.parquet",
        "manifest.json",
        "openlineage.jsonl",
        "prov.json",
        "report.html",
        *DESCRIPTORS,
    }
    assert told["manifest"] == json.loads((template.release / "manifest.json").read_text())


def test_with_json_stdout_is_one_object_and_progress_goes_to_stderr(first_run: Ended) -> None:
    decoded, end = json.JSONDecoder().raw_decode(first_run.stdout)
    assert isinstance(decoded, dict)
    assert first_run.stdout[end:] == "\n"
    assert "anonymizer_tree" in first_run.stderr


def test_a_second_run_publishes_nothing_and_says_so_in_whatever_order_the_rows_come(published: Place) -> None:
    """Of the same rows in their order: see test_restore.py."""
    before = published.releases()
    write_dataset(published.dataset, people().sample(frac=1, random_state=3))
    ended = subprocess.run(  # the real script, as it is installed
        [SCRIPT, "run", published.dataset],
        env={"ANON_PIPELINE_HOME": str(published.home.root), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "stands already; nothing new was published" in ended.stdout
    assert published.release.name in ended.stdout
    assert "Traceback" not in ended.stderr
    assert "Warning" not in ended.stderr
    assert published.releases() == before


def test_a_refused_run_lists_the_failed_checks_and_leaves_the_releases_as_they_were(published: Place) -> None:
    """Ten rows a person: classes of ten rows would be one person each, whom another identifier does not give away."""
    spec = policy()
    spec["columns"] |= {"passport": {"role": "identifier"}, "email": {"role": "identifier"}}
    frame = people().assign(passport=[f"P{i % 40:05}" for i in range(400)], email=[f"P{i}@" for i in range(400)])
    write_dataset(published.dataset, frame, spec)
    before = published.releases()
    ended = published.run("--json")  # what it says without: test_audit_bounds.py
    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["exit_code"], told["released"]) == (3, 3, False)
    (failure,) = told["failures"]
    assert failure.startswith("has_no_person_twice: ")
    assert re.search(r"measured:? 400;", failure)
    assert "passport repeats in 400 rows, one value in 10 of them at most; email does not repeat" in failure
    assert "P0" not in ended.said
    assert published.releases() == before


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_verify_holds_for_the_released_table(template: Place, tmp_path: Path, kind: str) -> None:
    table = template.release / "data.parquet"
    if kind == "csv":
        pd.read_parquet(table).to_csv(tmp_path / "data.csv", index=False)
        table = tmp_path / "data.csv"
    ended = command("verify", table, "--spec", template.dataset, "--json", home=template.home.root)
    assert ended.exit_code == 0, ended.said
    verdict = json.loads(ended.stdout)
    assert verdict["rows"] == 400
    assert verdict["smallest_class"] >= 10
    named = command(
        "verify", table, "--quasi-identifiers", "age,city,sex", "--k", 10, "--sensitive", "ill", home=template.home.root
    )
    assert named.exit_code == 0, named.said


def test_verify_names_how_many_stand_alone_but_never_who(template: Place, tmp_path: Path) -> None:
    table = pd.read_parquet(template.release / "data.parquet")
    crowded = table.groupby(["age", "city", "sex"], dropna=False)["ill"].transform("size").idxmax()
    table.loc[crowded, "age"] = 97
    table.to_parquet(tmp_path / "altered.parquet")
    arguments = ["verify", tmp_path / "altered.parquet", "--spec", template.dataset]
    ended = command(*arguments, home=template.home.root)
    assert ended.exit_code == 3
    assert "1 row stands in classes that are too small" in " ".join(ended.said.split())
    assert "97" not in ended.said
    assert json.loads(command(*arguments, "--json", home=template.home.root).stdout)["smallest_class"] == 1


def test_releases_list_and_show(template: Place) -> None:
    version = template.release.name
    (entry,) = json.loads(command("releases", "list", "--json", home=template.home.root).stdout)["releases"]
    assert (entry["dataset"], entry["version"], entry["action"]) == ("people", version, "publish")
    shown = command("releases", "show", version, "--json", home=template.home.root)
    assert json.loads(shown.stdout) == json.loads((template.release / "manifest.json").read_text())
    assert version in command("releases", "list", home=template.home.root).stdout
    assert "400 released" in command("releases", "show", version, home=template.home.root).stdout
    absent = command("releases", "show", "0" * 12, home=template.home.root)
    assert absent.exit_code == 2
    assert "no such release" in absent.stderr


def test_the_commands_work_in_an_empty_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    assert command("releases", "list", home=home.root).exit_code == 0
    assert command("releases", "verify", home=home.root).exit_code == 0


def _one_byte_more(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["data.parquet", "classes.parquet", "report.html", "manifest.json"])
def test_verify_finds_one_altered_byte(published: Place, name: str) -> None:
    _one_byte_more(published.release / name)
    ended = command("releases", "verify", home=published.home.root)
    assert ended.exit_code == 3
    assert f"people/{published.release.name}: {name} was altered" in ended.sentence


def test_a_run_does_not_lean_on_a_release_that_was_altered(published: Place) -> None:
    _one_byte_more(published.release / "classes.parquet")
    made, said, exit_code = release_alone(published)
    assert (made, exit_code) == (False, 3), said
    assert "not what it was: classes.parquet was altered" in said


@pytest.mark.parametrize("name", ["data.parquet", "manifest.json"])
def test_verify_finds_a_removed_file(published: Place, name: str) -> None:
    (published.release / name).unlink()
    ended = command("releases", "verify", home=published.home.root)
    assert ended.exit_code == 3
    assert f"{name} is gone" in ended.sentence


@pytest.mark.parametrize("name", ["extra.csv", ".hidden"])
def test_verify_finds_an_added_file(published: Place, name: str) -> None:
    (published.release / name).write_text("x")
    ended = command("releases", "verify", home=published.home.root)
    assert ended.exit_code == 3
    assert f"{name} was added" in ended.sentence


def test_verify_finds_an_added_folder(published: Place) -> None:
    (published.home.releases / "people" / "abcdefabcdef").mkdir()
    ended = command("releases", "verify", home=published.home.root)
    assert ended.exit_code == 3
    assert "people/abcdefabcdef: the ledger does not know it" in ended.sentence


def test_releases_verify_with_json(published: Place) -> None:
    sound = command("releases", "verify", "--json", home=published.home.root)
    assert json.loads(sound.stdout) == {"holds": True, "problems": []}
    _one_byte_more(published.release / "data.parquet")
    broken = command("releases", "verify", "--json", home=published.home.root)
    assert broken.exit_code == 3
    told = json.loads(broken.stdout)
    assert not told["holds"]
    assert len(told["problems"]) == 1
