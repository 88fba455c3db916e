"""A class table is believed only where the table beside it shows the same values, for as many people."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.classes import class_table
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine.base import ClassCounts, Recoding
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.learning.cells import fixed_point
from anon_pipeline.privacy.class_table import classes_that_differ
from anon_pipeline.spec import ReleaseSpec, Role
from anon_pipeline_tests.end_to_end.harness import policy
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import Table, tables, write_spec


def released(table: Table, form: str, csv: bool, folder: Path) -> tuple[pd.DataFrame, ClassCounts, ReleaseSpec]:
    """A class table, what is counted in the release beside it, and the spec."""
    frame = table.frame.assign(t=["yes", "no"] * (len(table.frame) // 2) + ["no"] * (len(table.frame) % 2))
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "source.parquet")
    roles = dict.fromkeys(table.frame.columns, "quasi_identifier")
    spec = write_spec(folder, {**roles, "t": "sensitive"}, "source.parquet", table.k, recode={"form": form})
    engine = DuckDBEngine(folder / "spill")
    stored = folder / "stored.parquet"
    types = engine.store_source(spec, stored).types()
    domains = engine.domains(stored, {name: types[name] for name in spec.quasi_identifiers})
    keys = np.concatenate(
        [np.repeat(batch.key, batch.people, axis=0) for batch in engine.batches(stored, spec, types, domains)]
    )
    key, people = np.unique(keys, axis=0, return_counts=True)
    cells = engine.cells(domains, key, people.astype(np.int64), fixed_point(np.zeros((len(key), 1))))
    tree = AnonymizerTree(k=table.k).fit_cells(cells)
    data = folder / "data.parquet"
    shown = recoded_table(tree.summaries_, form)
    engine.write_release(stored, Recoding(cells, tree.partition_.apply(cells.codes), shown), spec.released, data)
    class_table(tree.sizes_, tree.summaries_).to_parquet(folder / "classes.parquet", index=False)
    if csv:
        text = folder / "data.csv"
        engine_copy = f"COPY (FROM read_parquet('{data}')) TO '{text}' (HEADER)"
        with engine._session() as session:
            session.connection.execute(engine_copy)
        data = engine.import_table(text, folder, {name: spec.columns[name] for name in spec.with_role(Role.SENSITIVE)})
    counts = engine.classes(data, spec.quasi_identifiers, [])
    return pd.read_parquet(folder / "classes.parquet"), counts, spec


@pytest.mark.long
@settings(max_examples=times(20))
@given(tables(most_rows=40), st.sampled_from(["value", "range"]), st.booleans(), st.randoms(use_true_random=False))
def test_a_release_agrees_with_its_own_class_table_and_with_no_other(
    table: Table, form: str, csv: bool, random: object
) -> None:
    assume(table.frame.notna().any().all())  # a column without any value has no type
    with tempfile.TemporaryDirectory() as folder:
        classes, counts, spec = released(table, form, csv, Path(folder))
    assert classes_that_differ(classes, counts, spec) == 0
    place = random.randrange(len(classes))  # type: ignore[attr-defined]
    for change in (1, -1):
        other = classes.copy()
        other.loc[place, "class_size"] += change
        assert classes_that_differ(other, counts, spec) > 0
    assert classes_that_differ(classes.drop(index=place), counts, spec) > 0
    assert classes_that_differ(pd.concat([classes, classes.iloc[[place]]]), counts, spec) > 0
    nobody = pd.concat([classes, classes.iloc[[place]].assign(class_size=0)])
    assert classes_that_differ(nobody, counts, spec) > 0
    for column in classes.columns:
        if not column.endswith("_level") and not column.endswith("_label"):
            assert classes_that_differ(classes.drop(columns=column), counts, spec) > 0


@pytest.mark.parametrize("form", ["value", "range"])
def test_an_open_end_lies_outside_of_no_box(tmp_path: Path, form: str) -> None:
    """Of two people beyond 30 no end can be named at k = 5, so that the last class has none."""
    frame = pd.DataFrame({"age": [20] * 10 + [30] * 10 + [91, 95]})
    classes, counts, spec = released(Table(frame, np.zeros((22, 1)), 5), form, False, tmp_path)
    assert classes["age_high"].isna().any() and classes["age"].notna().all()
    assert classes_that_differ(classes, counts, spec) == 0
    beyond = classes.assign(age_low=99)
    assert form == "range" or classes_that_differ(beyond, counts, spec) > 0


@pytest.mark.long
@pytest.mark.parametrize("unit", ["D", "h"])
@pytest.mark.parametrize("form", ["value", "range"])
def test_days_and_moments_agree_with_their_class_table(tmp_path: Path, form: str, unit: str) -> None:
    """Days are written without a time of day, moments with one."""
    moments = np.datetime64("2020-02-27", "us") + np.arange(6) * np.timedelta64(31, unit).astype("timedelta64[us]")
    frame = pd.DataFrame({"seen": np.repeat(moments, 6)})
    if unit == "D":
        frame["seen"] = frame["seen"].dt.date
    classes, counts, spec = released(Table(frame, np.zeros((36, 1)), 12), form, False, tmp_path)
    assert len(classes) == 3
    assert classes_that_differ(classes, counts, spec) == 0
    later = classes.assign(**{name: classes[name] + pd.Timedelta(days=1) for name in ("seen_low", "seen_high")})
    assert form == "value" or classes_that_differ(later, counts, spec) > 0


@pytest.mark.long
def test_a_column_of_fewer_digits_agrees_with_its_class_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"dose": np.repeat(np.array([0.1, 0.7, -0.1], dtype=np.float32), 8)})
    classes, counts, spec = released(Table(frame, np.zeros((24, 1)), 4), "value", False, tmp_path)
    assert len(classes) == 3
    assert classes_that_differ(classes, counts, spec) == 0


# By hand, one column at a time


def differing(
    column: str, told: list[Any], written: dict[str, Any], form: str = "value", sizes: tuple[int, ...] = (), **more: Any
) -> int:
    """Classes that differ between a table showing `told` in a column and a class table with the columns `written`."""
    people = list(sizes) or [10 + number for number in range(len(told))]
    columns = {column: {"role": "quasi_identifier", **more}, "ill": {"role": "sensitive"}}
    spec = ReleaseSpec.model_validate(policy() | {"columns": columns, "recode": {"form": form}})
    counts = ClassCounts(pd.DataFrame({column: told}), np.array(people), {}, frozenset())
    return classes_that_differ(pd.DataFrame({"class_size": people} | written), counts, spec)


def box(column: str, shown: Any, low: Any, high: Any, missing: Any) -> dict[str, Any]:
    return {
        column: pd.Series(shown),
        f"{column}_low": pd.Series(low),
        f"{column}_high": pd.Series(high),
        f"{column}_missing": pd.array(missing, dtype="boolean"),
    }


ENDS = [(20, 30), (20, 20), (40, None), (None, 10), (20, 30), (None, None), (None, None), (20, 30)]
RANGES = ["[20, 30]", "20", "≥ 40", "≤ 10", "[20, 30] or missing", "missing", "*", "[20, 30] or *"]
RESTS = [False, False, False, False, True, True, False, None]


@pytest.mark.parametrize("place", range(8))
def test_a_range_is_what_its_ends_say(place: int) -> None:
    lows, highs = (pd.array([end[side] for end in ENDS], dtype="Int64") for side in (0, 1))
    written = box("age", [25] * 8, lows, highs, RESTS)
    assert differing("age", RANGES, written, "range", type="numeric") == 0
    other = [*RANGES[:place], "[1, 2]", *RANGES[place + 1 :]]
    assert differing("age", other, written, "range", type="numeric") == 2  # one that stands here, one that stands there


def test_a_range_of_which_only_the_missing_are_told_is_that_of_the_missing() -> None:
    nothing = pd.array([None, None], dtype="Int64")
    written = box("age", [None, None], nothing, nothing, [True, None])
    assert differing("age", ["* or missing", "* or *"], written, "range", type="numeric") == 0


@pytest.mark.parametrize(
    "text", ["[2020-01-02, 2020-01-03]", "[2020-01-02T00:00:00.000000, 2020-01-03T00:00:00.000000]"]
)
def test_a_range_of_days_has_no_time_of_day_and_one_of_moments_has(text: str) -> None:
    low, high = pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-03")
    assert differing("seen", [text], box("seen", [low], [low], [high], [False]), "range", type="date") == 0
    later = box("seen", [low], [low], [high + pd.Timedelta(days=1)], [False])
    assert differing("seen", [text], later, "range", type="date") == 2


def test_a_set_of_categories_is_written_as_its_names() -> None:
    sets = [["a"], ["a", "b"], [None], ["a", None]]
    written = {"race": ["a", "a", None, "a"], "race_values": sets}
    told = ["a", "{a, b}", "missing", "{a, missing}"]
    assert differing("race", told, written, "range", type="categorical") == 0
    assert differing("race", ["a", "{a, c}", "missing", "b"], written, "range", type="categorical") == 4


def test_the_label_of_a_column_with_a_hierarchy_is_what_it_shows() -> None:
    written = {"zip": ["1", "2"], "zip_values": [["1"], ["2"]], "zip_label": ["some", "* or missing"]}
    assert differing("zip", ["some", "missing"], written, "range", type="categorical") == 0
    assert differing("zip", ["some", "other"], written, "range", type="categorical") == 2


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ([1, 2], ["1", "2"]),  # as a CSV has them
        (["1", "2"], [1, 2]),
        ([1.0, 2.5], ["1", "2.50"]),
        (["1", "2.50"], [1.0, 2.5]),
        ([2**53 + 1, 2], [str(2**53 + 1), "2"]),
        ([pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-03")], ["2020-01-02", "2020-01-03 00:00:00"]),
        (["2020-01-02", "2020-01-03 00:00:00"], [pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-03")]),
        ([pd.Timestamp("2020-01-02 12:00"), pd.NaT], ["2020-01-02T13:00:00+01:00", None]),
        ([True, False], ["true", "false"]),
        (["a", None], ["a", ""]),
    ],
    ids=["whole", "whole told", "decimal", "decimal told", "large", "day", "day told", "zone", "boolean", "missing"],
)
def test_a_value_is_the_same_in_whatever_way_it_is_stored(shown: list[Any], told: list[Any]) -> None:
    sets = [[value] for value in shown]
    assert differing("code", told, {"code": shown, "code_values": sets}, type="categorical") == 0
    assert differing("code", told, {"code": shown[::-1], "code_values": sets[::-1]}, type="categorical") == 2


def test_a_word_where_the_class_table_has_another_type_is_another_value() -> None:
    for shown in ([1, 2], [1.5, 2.0], [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")]):
        told = ["no such value", str(shown[1])]
        written = {"code": shown, "code_values": [[value] for value in shown]}
        assert differing("code", told, written, type="categorical") == 2


def test_numbers_that_a_float_cannot_tell_apart_are_two() -> None:
    """The neighbour of 2^53 is another person's number, whichever side is a text."""
    for shown, told in (([2**53], [str(2**53 + 1)]), ([str(2**53)], [2**53 + 1])):
        assert differing("code", told, {"code": shown, "code_values": [shown]}, type="categorical") == 2


def test_what_is_not_told_is_a_star_among_texts_and_missing_among_others() -> None:
    written = {"code": ["*", "a"], "code_values": [["a", "b"], ["a"]]}
    assert differing("code", ["*", "a"], written, type="categorical") == 0
    assert differing("code", [None, "a"], written, type="categorical") == 0
    assert differing("code", ["b", "a"], written, type="categorical") == 2


def test_a_class_that_shows_what_its_box_does_not_hold_differs() -> None:
    told = [20, 30, 40, 50]
    good = box("age", told, [20, 25, None, 50], [20, 30, 40, None], [False] * 4)
    assert differing("age", told, good, type="numeric") == 0
    for low, high in ((21, 22), (10, 19)):
        spoilt = box("age", told, [low, 25, None, 50], [high, 30, 40, None], [False] * 4)
        assert differing("age", told, spoilt, type="numeric") == 1
    sets = {"race": ["a", "b", "*"], "race_values": [["a"], ["a", "c"], ["a"]]}
    assert differing("race", ["a", "b", "*"], sets, type="categorical") == 1


@pytest.mark.parametrize("size", [0, -1, 2.5, None, "many"])
def test_a_class_of_no_number_of_people_differs_in_everything(size: Any) -> None:
    assert differing("race", ["a", "b"], {"race": ["a", "b"], "race_values": [["a"], ["b"]]}, sizes=(1, 1)) == 0
    broken = {"class_size": [1, size], "race": ["a", "b"], "race_values": [["a"], ["b"]]}
    assert differing("race", ["a", "b"], broken) == 4
    assert differing("race", ["a", "b"], {"race": ["a", "b"]}) == 4  # no box
    none = {**broken, "class_size": pd.array([1, None], dtype="Int64")}
    assert differing("race", ["a", "b"], none) == 4
