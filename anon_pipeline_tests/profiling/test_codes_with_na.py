"""NA among codes of countries: a place there, "not known" elsewhere, and asked where both occur."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset


def proposed(folder: Path, schools: Sequence[str], countries: Sequence[str]) -> tuple[Any, list[str]]:
    """The proposed source of people who have these schools and countries in turn, and what is asked about it."""
    lines = [
        f"{20 + number % 50},{countries[number % len(countries)]},{schools[number % len(schools)]},{'yn'[number % 2]}"
        for number in range(300)
    ]
    file = folder / "people.csv"
    file.write_text("\n".join(["age,country,school,left", *lines]) + "\n")
    made = start_dataset(DuckDBEngine(folder), DatasetRequest("people", file), folder / "data")
    asked = [one.question for _, one in made.open if one.place == "source.missing"]
    return yaml.safe_load(made.file.read_text())["source"].get("missing"), asked


@pytest.mark.long
@pytest.mark.parametrize(
    ("countries", "missing"),
    [("DE FR NA NO", None), ("DE FR NA NO Kosovo? DE FR SE IT ES PT PL", None), ("DE FR NA NO ?", ["?"])],
)
def test_namibia_is_a_country(tmp_path: Path, countries: str, missing: list[str] | None) -> None:
    """NA was proposed as a text for "not known", so that everybody from Namibia came from nowhere."""
    assert proposed(tmp_path, ["north", "south"], countries.split()) == (missing, [])


@pytest.mark.parametrize("countries", ["DE FR NA", "Denmark France NA Norway", "DE FR NO NA Peru", "NA"])
def test_na_is_not_known_among_other_values(tmp_path: Path, countries: str) -> None:
    assert proposed(tmp_path, ["north", "south"], countries.split()) == (["NA"], [])


def test_who_has_na_as_a_code_and_elsewhere_is_asked(tmp_path: Path) -> None:
    missing, (asked,) = proposed(tmp_path, ["north", "NA", "south", "?"], ["DE", "FR", "NA", "NO"])
    assert missing == "decide"
    assert asked == (
        "NA stands among codes of two letters in country, where it may be Namibia, and in other columns; write "
        "['?', 'NA'] if it means not known everywhere, else ['?'] here and ['NA'] under missing of the columns in "
        "which it does"
    )
