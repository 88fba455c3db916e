"""A release beside its source: every group of the source has k people, everybody is in one, and both sides agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release import publish
from anon_pipeline.release.comparison import _alone, _untold, compare, side_by_side
from anon_pipeline.report.likeness_chart import comparison_chart
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain
from anon_pipeline_tests.release import test_publish
from anon_pipeline_tests.release.test_publish import FACTS, SPEC, TABLE, candidate_of

_plain_report = test_publish._plain_report


def domain(values: list[int] | list[str], counts: list[int]) -> Domain:
    """Of a column with these distinct values; the first count is of the missing."""
    kind = ColumnType.NUMERIC if values and isinstance(values[0], int) else ColumnType.CATEGORICAL
    return Domain("x", kind, np.array(values), np.array(counts, dtype=np.int64), "BIGINT")


@st.composite
def sides(draw: st.DrawFn) -> tuple[Domain, Domain, int]:
    """A column in a source and in a release that holds some of its values, and k."""
    names = ["a", "b", "c", "d", "e", "f"] if draw(st.booleans()) else [10, 20, 30, 40, 50, 60]
    counts = st.lists(st.integers(0, 9), min_size=6, max_size=6)
    people = [max(1, count) for count in draw(counts)]
    before = domain(names, [draw(st.integers(0, 9)), *people])
    return before, domain(names, [draw(st.integers(0, 9)), *draw(counts)]), draw(st.integers(2, 12))


@given(sides())
def test_every_group_of_the_source_has_k_people_and_nobody_is_lost(both: tuple[Domain, Domain, int]) -> None:
    before, after, k = both
    labels, original, released = side_by_side(before, after, k)
    assert len(labels) == len(original) == len(released) == len(set(labels))
    if before.counts.sum() < k:
        assert labels == ()
        return
    assert all(people >= k or people == 0 for people in original)
    assert sum(original) == before.counts.sum()
    assert sum(released) == after.counts.sum()


def test_the_same_value_counts_in_the_same_group() -> None:
    labels, before, after = side_by_side(
        domain(["Bergen", "Cork", "Delft"], [0, 6, 1, 5]), domain(["Bergen", "Delft"], [0, 9, 3]), 2
    )
    assert dict(zip(labels, zip(before, after, strict=True), strict=True)) == {
        "Bergen": (6, 9),
        "all others": (6, 3),
    }
    labels, before, after = side_by_side(domain([10, 20, 30], [0, 5, 5, 5]), domain([11, 29], [2, 7, 6]), 5)
    assert sum(before) == 15 and after[-1] == 2 and labels[-1] == "not told"  # nobody's value is missing in the source


def test_people_whose_value_is_missing_in_the_release_alone_are_in_the_last_group() -> None:
    before, after = domain(["Bergen", "Cork"], [0, 6, 6]), domain(["Bergen", "Cork"], [3, 5, 4])
    assert side_by_side(before, after, 2) == (("Bergen", "Cork", "not told"), (6, 6, 0), (5, 4, 3))
    missing_before = domain(["Bergen", "Cork"], [6, 6, 6])
    assert side_by_side(missing_before, after, 2) == (("missing", "Bergen", "Cork"), (6, 6, 6), (3, 5, 4))


#: Classes by what they show of ages: the number, both ends, whether members have none, and their size.
NUMBERS = [
    (30, 20, 40, False, 10),
    (None, 20, 40, False, 6),  # any number would be one person's
    (None, None, None, True, 5),  # nobody has an age
    (None, 20, None, True, 4),  # some have one, others have none
    (None, None, None, None, 3),  # too few have an age, or none, to tell
]


def shown(folder: Path, classes: list[tuple[float | None, float | None, float | None, bool | None, int]]) -> Path:
    table = pd.DataFrame(classes, columns=["age", "age_low", "age_high", "age_missing", "class_size"])
    table.astype({"age_missing": "boolean"}).to_parquet(folder / "classes.parquet")
    return folder / "classes.parquet"


def test_a_number_that_a_class_does_not_show_is_not_missing(tmp_path: Path) -> None:
    """All 18 were said to have no age: of five of them the release says that nobody has one."""
    after = domain([30], [18, 10])
    assert _untold(shown(tmp_path, NUMBERS), "age", after, domain([20], [5, 3])) == 13
    assert side_by_side(domain([20, 30, 40], [5, 9, 8, 6]), after, 5, 13) == (
        ("under 25", "25\u201334", "35 and over", "missing", "not told"),
        (9, 8, 6, 5, 0),
        (0, 10, 0, 5, 13),
    )
    assert _alone(after, 5, 13) == (("any", "missing", "not told"), None, (10, 5, 13))


def test_no_more_people_are_said_to_have_no_number_than_in_the_source(tmp_path: Path) -> None:
    """A class that is open at both ends, and has members with a number and without, counted as a class of nobody's."""
    wide = [*NUMBERS, (None, None, None, True, 40)]
    before, after = domain([20, 30, 40], [7, 20, 20, 20]), domain([30], [58, 10])
    assert _untold(shown(tmp_path, wide), "age", after, before) == 58 - 7
    assert _untold(shown(tmp_path, wide), "age", after, None) == 58 - 45
    people = dict(zip(*side_by_side(before, after, 5, 58 - 7)[::2], strict=True))
    assert (people["missing"], people["not told"]) == (7, 51)


def test_where_no_class_names_a_number_nobody_is_said_to_have_none(tmp_path: Path) -> None:
    hidden = [(None, None, None, has_none, 9) for has_none in (True, False)]
    assert _untold(shown(tmp_path, hidden), "age", domain([30], [18, 0]), None) == 18


def test_a_category_of_which_nothing_is_shown_is_not_missing(tmp_path: Path) -> None:
    """In a table of truth values both are shown as nothing."""
    table = pd.DataFrame({"smokes": ["true", "*", None], "class_size": [10, 6, 5]})
    table.to_parquet(tmp_path / "classes.parquet")
    assert _untold(tmp_path / "classes.parquet", "smokes", domain(["true"], [11, 10]), None) == 6


def test_the_picture_has_both_sides() -> None:
    chart = comparison_chart("city", {"groups": ["Cork", "Delft"], "before": [5, 5], "after": [9, 1]})
    assert "Cork: 50\u00a0% before, 90\u00a0% after" in chart
    assert chart.count('class="before"') == 3 and chart.count('class="after"') == 3  # the legend's among them


def test_a_release_whose_table_is_gone_is_not_compared(tmp_path: Path) -> None:
    home, engine = Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill")
    published = publish.publish(home, SPEC, engine, candidate_of(tmp_path / "candidate", TABLE), FACTS)
    (published.folder / publish.DATA).unlink()
    with pytest.raises(InputError, match="its table is gone"):
        compare(home, published.version, SPEC, engine, tmp_path)
