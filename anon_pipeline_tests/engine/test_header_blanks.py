"""Blanks around the names of a header, as in `age, city`, are no part of the names."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source


def names(folder: Path, header: str, **stated: object) -> list[str]:
    """The columns of a CSV of three people under such a header."""
    table = folder / "people.csv"
    table.write_text(f"{header}\n23,Ulm,yes\n25,Bonn,no\n24,Ulm,yes\n")
    survey = DuckDBEngine(folder / "spill").survey(Source.model_validate({"path": str(table), **stated}), table)
    return [column.name for column in survey.columns]


@pytest.mark.parametrize("header", ["age, city, ill", "age ,city , ill", " age,\u00a0city,ill\u2003"])
def test_blanks_around_names_are_no_part_of_them(tmp_path: Path, header: str) -> None:
    """These are ended with "cannot be read: the library reported BinderException" before anything was looked at."""
    assert names(tmp_path, header) == ["age", "city", "ill"]


def test_a_tab_stays_as_duckdb_has_it(tmp_path: Path) -> None:
    assert names(tmp_path, "age,\tcity,ill", delimiter=",") == ["age", "\tcity", "ill"]


def test_a_name_of_blanks_alone_is_invented(tmp_path: Path) -> None:
    assert names(tmp_path, "age, ,ill")[::2] == ["age", "ill"]


def test_a_name_that_the_spec_gives_with_its_blanks_is_another_one(tmp_path: Path) -> None:
    assert names(tmp_path, "age, city,ill", rename={" city": "town"}) == ["age", "town", "ill"]
    assert names(tmp_path, "age, city,ill", rename={"city": "town"}) == ["age", "town", "ill"]


def test_names_that_differ_by_blanks_alone_stand_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 and 2 of its first line have one name"):
        names(tmp_path, "age, age,ill")
