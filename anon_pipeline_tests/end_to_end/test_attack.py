"""The command `attack`: what it prints, and how it ends."""

import json
from pathlib import Path

import numpy as np
import pytest

from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import command


@pytest.fixture
def files(folder: Path) -> Path:
    """A dataset folder, control people, and two tables: other people's, and one in which age was left raw."""
    everybody = harness.people(1600, seed=3)
    members = everybody[:800]
    harness.write_dataset(folder / "people", members)
    everybody[800:].to_csv(folder / "others.csv", index=False)
    harness.people(800, seed=4).to_csv(folder / "strangers.csv", index=False)
    members.assign(visits=np.arange(800)).to_csv(folder / "people/people.csv", index=False)
    everybody[800:].assign(visits=np.arange(800, 1600)).to_csv(folder / "others.csv", index=False)
    planted = members.assign(city="*", sex="*", visits=np.arange(800)).sample(frac=1, random_state=0)
    planted.to_csv(folder / "planted.csv", index=False)
    return folder


def attack(files: Path, table: str, *more: str) -> harness.Ended:
    original = ("--original", str(files / "people/people.csv"))
    return command("attack", files / table, *original, *more, home=files / "home")


def test_a_planted_leak_is_found_with_the_roles_of_the_spec(files: Path) -> None:
    ended = attack(
        files, "planted.csv", "--control", str(files / "others.csv"), "--spec", str(files / "people"), "--json"
    )
    assert ended.exit_code == 0, ended.said
    content = json.loads(ended.stdout)
    found = {one["name"]: one for one in content["findings"]}
    linked = found["linkage, all quasi-identifiers"]
    assert linked["verdict"] == "leak"
    assert linked["leak"]["low"] > 0.05
    assert content["columns"]["quasi_identifiers"] == ["age", "city", "sex"]
    assert (content["people"], content["control"]) == (800, 800)


def test_strangers_are_no_leak_and_a_reader_gets_a_line_and_a_sentence_per_attack(files: Path) -> None:
    roles = ("--quasi-identifiers", "age,city,sex", "--sensitive", "ill")
    ended = attack(files, "strangers.csv", "--control", str(files / "others.csv"), *roles)
    assert ended.exit_code == 0, ended.said
    lines = ended.stdout.splitlines()
    shown = [line for line in lines if line.startswith("linkage, all quasi-identifiers ")]
    told = [line for line in lines if line.startswith("linkage, all quasi-identifiers: ")]
    assert len(shown) == len(told) == 1
    assert not any(line.rstrip().endswith(" leak") for line in lines)
    assert not any(city in ended.stdout for city in harness.people()["city"].unique())


@pytest.mark.parametrize(
    ("table", "more", "sentence"),
    [
        ("nowhere.csv", ["--spec", "people"], "there is no such file"),
        ("planted.csv", [], "name either --spec, or --quasi-identifiers"),
        ("planted.csv", ["--quasi-identifiers", "shoe_size"], "has no column shoe_size"),
    ],
)
def test_bad_input_ends_with_a_sentence_and_exit_code_2(
    files: Path, table: str, more: list[str], sentence: str
) -> None:
    more = [str(files / one) if one == "people" else one for one in more]
    ended = attack(files, table, *more)
    assert ended.exit_code == 2
    assert sentence in ended.sentence
    assert ended.stdout == ""
    assert "Traceback" not in ended.said
