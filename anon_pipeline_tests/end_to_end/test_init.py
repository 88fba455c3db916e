"""`anon-pipeline init`: a proposal that refuses to run until it is decided, and then is released.

The README's three commands, on a CSV of Adult, are run by `docs/test_docs.py`.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from anon_pipeline.spec import undecided_lines
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import Ended, Place
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

#: A value of a person, which no output may hold.
SECRET = "Ottilie-W"


def people() -> pd.DataFrame:
    frame = harness.people().rename(columns={"ill": "churned"})
    return frame.assign(religion=["catholic", "muslim", SECRET, "none"] * 100)


@pytest.fixture
def here(folder: Path) -> Path:
    people().to_csv(folder / "people.csv", index=False)
    return folder


def command(here: Path, *words: object, home: Path | None = None) -> Ended:
    return harness.command(*words, home=home or here / "var", sabotage=functools.partial(os.chdir, here))


def test_an_undecided_spec_runs(here: Path) -> None:
    made = command(here, "init", "guests", "--from", "people.csv")
    assert made.exit_code == 0, made.said
    file = here / "data/guests/release.yaml"
    assert "line 10, target:" in made.stdout and file.read_text().splitlines()[9].startswith("target:")
    assert "columns.religion.role:" in made.stdout
    assert SECRET not in made.said + file.read_text()
    ended = command(here, "run", "data/guests")
    assert ended.exit_code == 2
    for line, place in undecided_lines(file.read_text()):
        assert f"line {line} ({place})" in ended.sentence
    assert "write what you decide in the place of `decide`" in ended.sentence
    assert not (here / "var/releases").exists()


def test_files_of_a_folder_may_differ_where_that_is_said(here: Path) -> None:
    (here / "parts").mkdir()
    people().drop(columns="religion").to_parquet(here / "parts/a.parquet")
    people().to_parquet(here / "parts/b.parquet")
    refused = command(here, "init", "guests", "--from", "parts")
    assert refused.exit_code == 2
    assert "b.parquet has the column religion, which a.parquet has not" in refused.sentence
    assert "--union-by-name" in refused.sentence
    made = command(here, "init", "guests", "--from", "parts", "--union-by-name")
    assert made.exit_code == 0, made.said
    assert "union_by_name: true" in (here / "data/guests/release.yaml").read_text()
    assert "800 rows" in made.said
    profiled = command(here, "profile", "parts", "--union-by-name", "--json")
    assert profiled.exit_code == 0, profiled.said
    assert json.loads(profiled.stdout)["rows"] == 800


def test_the_target_alone_is_enough(here: Path) -> None:
    command(here, "init", "guests", "--from", "people.csv")
    file = here / "data/guests/release.yaml"
    file.write_text(file.read_text().replace("target: decide", "target: churned"))
    ended = command(here, "run", "data/guests")
    assert ended.exit_code == 2
    assert "columns.religion.role" in ended.sentence
    assert "(target)" not in ended.sentence


def test_a_decided_proposal_is_not_released(here: Path, template: Place) -> None:
    home = template.copy(here).without_releases().home
    made = command(here, "init", "guests", "--from", "people.csv", "--copy", "--json")
    assert made.exit_code == 0, made.said
    told = json.loads(made.stdout)
    assert [one["place"] for one in told["decide"]] == ["target", "columns.churned.role", "columns.religion.role"]
    assert SECRET not in made.said
    file = here / told["spec"]
    fast = "guide: {model: decision_tree, folds: 2}\naudit: {enabled: false}\nutility: {folds: 2}\n"
    text = file.read_text().replace("target: decide", "target: churned")
    text = text.replace("churned: {role: decide", "churned: {role: sensitive")
    file.write_text(text.replace("{role: decide", "{role: exclude") + fast)
    (here / "people.csv").unlink()
    manifest = released_in_steps(Place(home, file.parent)).manifest
    assert all(finding["holds"] for finding in manifest["verified"])
    assert {finding["name"] for finding in manifest["verified"]} == {"k_anonymity", "l_diversity_churned"}


def test_what_cannot_be_used_is_no_clear_sentence(here: Path) -> None:
    for words, sentence in [
        (["Guests", "--from", "people.csv"], "'Guests': is no name of a dataset"),
        (["guests", "--from", "nobody.csv"], "nobody.csv: there is no such file or folder"),
        (["guests", "--from", "people.csv", "--delimiter", ""], "--delimiter: is one to four letters"),
    ]:
        ended = command(here, "init", *words)
        assert ended.exit_code == 2, ended.said
        assert sentence in ended.sentence
    assert not (here / "data").exists()
