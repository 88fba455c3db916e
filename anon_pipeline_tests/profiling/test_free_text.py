"""Free text is asked about, and categories with long names are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.profiling.free_text import written_once
from anon_pipeline.profiling.proposal import AS_FREE_TEXT
from anon_pipeline.spec import Role
from anon_pipeline_tests.end_to_end.harness import people
from anon_pipeline_tests.profiling.test_profile import of, profiled

SAID = [
    *("pain", "fever", "cough", "knee", "left", "right", "since", "monday"),
    *("lives", "alone", "daughter", "visits", "smoker", "referred", "stable"),
]
STATUS = ["Married, civilian spouse present", "Never married or not in union", "Did not want to say so"]


def notes(rows: int, written: int, words: int = 6) -> list[str]:
    """Notes of which most are usual ones; `written` were written for somebody."""
    draw = np.random.default_rng(1)
    usual = draw.choice(["see letter", "no complaints", "came for the usual yearly check"], rows - written).tolist()
    return [*usual, *(" ".join(draw.choice(SAID, words)) for _ in range(written))]


@pytest.mark.long
@pytest.mark.parametrize("written", [10, 80])
def test_free_text_is_not_grouped_unasked(engine: DuckDBEngine, tmp_path: Path, written: int) -> None:
    note = of(profiled(engine, tmp_path, people(300).assign(notiz=notes(300, written))), "notiz")
    assert (note.role, note.question) == (Role.EXCLUDE, AS_FREE_TEXT)
    assert f"free text: {written} texts of 4 words" in note.why


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(notes(300, 9), id="too few to say"),
        pytest.param(notes(300, 40, words=3), id="short texts, such as names of towns"),
        pytest.param([STATUS[row % 3] for row in range(300)], id="long names of few categories"),
        pytest.param([f"{SAID[row % 7]} and other work of that kind {'abcdefghij'[row % 10]}" for row in range(300)]),
        pytest.param([f"{max(row, 240)} of 2 / 3 / 4 / 5 / 6" for row in range(300)], id="hardly a word"),
    ],
)
def test_categories_are_not_taken_for_free_text(engine: DuckDBEngine, tmp_path: Path, texts: list[str]) -> None:
    column = of(profiled(engine, tmp_path, people(300).assign(notiz=texts)), "notiz")
    assert (column.role, column.question) == (Role.QUASI_IDENTIFIER, None)


def test_a_named_target_of_texts_is_not_asked_about(engine: DuckDBEngine, tmp_path: Path) -> None:
    found = profiled(engine, tmp_path, people(300).assign(notiz=notes(300, 80)), "notiz")
    assert of(found, "notiz").role is Role.SENSITIVE


@pytest.mark.parametrize(("recurring", "found"), [(6, 12), (7, 0)])
def test_two_thirds_of_the_long_texts_stand_in_one_row(recurring: int, found: int) -> None:
    alone = [f"{a} {b} at the house" for a in SAID[:4] for b in SAID[4:7]]
    twice = [f"{a} every day of the week" for a in SAID[:recurring]] * 2
    assert written_once(pa.chunked_array([[*alone, *twice, None]])) == found
    assert written_once(pa.chunked_array([pd.Series([1, 2]).to_list()])) == 0
