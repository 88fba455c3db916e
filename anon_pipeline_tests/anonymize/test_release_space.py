"""Raw rows in the space of a release: by what it tells and nothing else, and where the tree would put them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.release_space import ReleaseSpace
from anon_pipeline.errors import InputError
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import Table, tables

few = settings(max_examples=times(40))


def holds(one: pd.Series, row: pd.Series, column: str) -> bool:
    """Whether a class may have this row, by what its line of the class table says; written apart from the package."""
    value = row[column]
    if f"{column}_values" in one:
        told = list(one[f"{column}_values"])
        return (None if pd.isna(value) else str(value)) in told or "*" in told
    if pd.isna(value):
        return bool(pd.isna(one[f"{column}_missing"]) or one[f"{column}_missing"])
    low, high = one[f"{column}_low"], one[f"{column}_high"]
    if isinstance(value, int) and pd.notna(low):  # the space knows numbers as float64
        low, value, high = (math.nan if pd.isna(one) else float(one) for one in (low, value, high))
    if pd.isna(low) and pd.isna(high):
        return False
    return bool((pd.isna(low) or low <= value) and (pd.isna(high) or value <= high))


def in_utc(frame: pd.DataFrame) -> pd.DataFrame:
    """Moments as a class table has them."""
    zoned = frame.select_dtypes("datetimetz")
    return frame.assign(**{name: zoned[name].dt.tz_convert("UTC").dt.tz_localize(None) for name in zoned})


@pytest.mark.long
@few
@given(tables())
def test_a_class_that_holds_the_row_comes_before_all_that_do_not(table: Table) -> None:
    classes = AnonymizerTree(k=table.k).fit(table.frame, table.guidance).classes_
    chosen = ReleaseSpace(classes).apply(table.frame)
    rows = [row for _, row in in_utc(table.frame).astype(object).iterrows()]
    for place, row in list(zip(chosen, rows, strict=True))[:20]:
        misses = [sum(not holds(one, row, column) for column in row.index) for _, one in classes.iterrows()]
        assert misses[place] == min(misses)


@pytest.mark.long
@few
@given(tables())
def test_every_value_it_gives_is_one_that_a_class_shows(table: Table) -> None:
    classes = AnonymizerTree(k=table.k).fit(table.frame, table.guidance).classes_
    shown = ReleaseSpace(classes).transform(table.frame)
    assert list(shown) == list(table.frame) and shown.index.equals(table.frame.index)
    for column in shown:
        told = classes[column].dropna()
        of_that_kind = told.astype(str) if told.dtype == object else told
        values = shown[column].dropna()
        if values.dtype == float:  # whole numbers beside missing ones, as pandas reads them from `data.parquet`
            of_that_kind = told.astype(float)
        assert (values.astype(str) if told.dtype == object else values).isin(of_that_kind.tolist()).all()


def people(n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "city": random.choice(["Ulm", "Bonn", "Kiel"], n),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(random.integers(0, 20_000, n), unit="D"),
            "member": random.choice([True, False], n),
        }
    )
    return frame, frame["age"].to_numpy() / 80


def test_it_puts_nearly_everybody_where_the_tree_does() -> None:
    frame, guidance = people()
    tree = AnonymizerTree(k=10).fit(frame, guidance)
    assert (ReleaseSpace(tree.classes_).apply(frame) == tree.apply(frame)).mean() > 0.95


@pytest.mark.long
def test_it_needs_nothing_but_the_class_table(tmp_path: Path) -> None:
    frame, guidance = people()
    tree = AnonymizerTree(k=10).fit(frame, guidance)
    tree.classes_.to_parquet(tmp_path / "classes.parquet", index=False)
    loaded = ReleaseSpace.load(tmp_path)  # a folder with this file and no other
    pd.testing.assert_frame_equal(loaded.transform(frame), ReleaseSpace(tree.classes_).transform(frame))
    with pytest.raises(InputError, match=r"classes\.parquet: there is no such file"):
        ReleaseSpace.load(tmp_path / "elsewhere")


def test_types_are_those_of_the_table_and_other_columns_stay() -> None:
    frame, guidance = people()
    shown = ReleaseSpace(AnonymizerTree(k=10).fit(frame, guidance).classes_).transform(frame.assign(more=1))
    assert [shown[column].dtype.kind for column in ("age", "born", "member", "more")] == ["i", "M", "b", "i"]


def test_a_column_may_be_called_self() -> None:
    frame, guidance = people()
    named = frame[["born"]].set_axis(["self"], axis=1)
    space = ReleaseSpace(AnonymizerTree(k=10).fit(named, guidance).classes_)
    dates = pd.DataFrame({"self": named["self"].dt.date})
    shown, moments = space.transform(dates)["self"], space.transform(named)["self"]
    assert shown.isna().equals(moments.isna()) and (shown.dropna() == moments.dropna().dt.date).all()


def test_an_engines_true_and_false_are_read_like_those_of_a_frame() -> None:
    classes = pd.DataFrame({"class_size": [5, 4], "member": ["true", "false"], "member_values": [["true"], ["false"]]})
    assert ReleaseSpace(classes).apply(pd.DataFrame({"member": [True, False]})).tolist() == [0, 1]
    space = ReleaseSpace(pd.concat([classes, classes.assign(class_size=3, member=None, member_values=[[None]] * 2)]))
    gaps = pd.DataFrame({"member": [None, False, True]})  # of objects, as pandas reads them from Parquet
    assert space.transform(gaps)["member"].where(lambda shown: shown.notna(), None).tolist() == [None, False, True]


@pytest.mark.parametrize("years", [[2023, 2024, None], [2023.5, 2024.0, None]])
def test_numbers_that_a_frame_has_as_categories_are_numbers_of_the_release(years: list[float | None]) -> None:
    """`pandas.read_parquet` of a folder with `year=2023` in it gives categories; the release has numbers."""
    told = {"year": years, "year_low": years, "year_high": years, "year_missing": [0, 0, 1]}
    space = ReleaseSpace(pd.DataFrame({"class_size": [5, 4, 3], **told}))
    rows = pd.DataFrame({"year": pd.Categorical([years[1], None, years[0]])})
    assert space.apply(rows).tolist() == [1, 2, 0]
    with pytest.raises(InputError, match="the column year is numeric in the release, and categorical in this table"):
        space.apply(pd.DataFrame({"year": pd.Categorical(["2023", "2024"])}))


def test_codes_that_a_frame_has_as_floats_are_an_engines_whole_numbers() -> None:
    classes = pd.DataFrame({"class_size": [5, 4, 3], "job": ["4", "11", None], "job_values": [["4"], ["11"], [None]]})
    space = ReleaseSpace(classes)
    assert space.apply(pd.DataFrame({"job": [4.0, 11.0, None]})).tolist() == [0, 1, 2]
    as_written = classes.assign(job=["4.0", "11.0", None], job_values=[["4.0"], ["11.0"], [None]])
    assert ReleaseSpace(as_written).apply(pd.DataFrame({"job": [4.0, 11.0, None]})).tolist() == [0, 1, 2]


def overlapping() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "class_size": [10, 10, 20],
            "age": pd.array([30, 35, None], "Int64"),
            "age_low": pd.array([20, 34, None], "Int64"),
            "age_high": pd.array([50, 36, None], "Int64"),
            "age_missing": pd.array([False, False, True], "boolean"),
            "age_label": ["young", "young", "old"],
            "age_level": pd.array([1, 1, 1], "Int64"),
            "city": ["Ulm", "Ulm", "*"],
            "city_values": [["Ulm", "*"], ["Ulm"], ["*", None]],
        }
    )


@pytest.mark.parametrize(
    ("age", "city", "expected"),
    [
        (35.0, "Ulm", 1),  # both hold it: the narrower
        (40.0, "Ulm", 0),
        (40.0, "Rome", 0),  # may be among those not told
        (None, None, 2),
    ],
)
def test_of_several_classes_the_narrower(age: float, city: str, expected: int) -> None:
    space = ReleaseSpace(overlapping())
    assert space.apply(pd.DataFrame({"age": [age], "city": pd.Series([city], dtype=object)})).tolist() == [expected]


def test_a_row_that_no_class_holds_goes_to_the_nearest() -> None:
    near = overlapping().iloc[:2].assign(age_low=pd.array([20, 61], "Int64"), age_high=pd.array([50, 62], "Int64"))
    near = near.drop(columns=["city", "city_values"])
    rows = pd.DataFrame({"age": [52, 60, 90, 3]})
    assert ReleaseSpace(near).apply(rows).tolist() == [0, 1, 1, 0]


def test_what_cannot_be_read_is_told_in_a_sentence() -> None:
    space = ReleaseSpace(overlapping())
    with pytest.raises(InputError, match=r"the table lacks the columns city"):
        space.apply(pd.DataFrame({"age": [1]}))
    with pytest.raises(InputError, match=r"the column age is numeric in the release, and categorical in this table"):
        space.apply(pd.DataFrame({"age": ["old"], "city": ["Ulm"]}))
    with pytest.raises(InputError, match=r"does not say what the classes stand for in age"):
        ReleaseSpace(pd.DataFrame({"class_size": [3], "age": [4]})).apply(pd.DataFrame({"age": [1]}))
