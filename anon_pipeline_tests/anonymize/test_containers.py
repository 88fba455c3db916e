"""Tables of polars and Arrow are anonymized as the same table of pandas is, and come back as what they were."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from anon_pipeline import AnonymizerTree, ReleaseSpace
from anon_pipeline.anonymize.notebook import table_of_facts
from anon_pipeline.errors import InputError, percent
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline_tests.examples import times

AGES = [20, 21, 22, 23, 24, 25, 60, 61, 62, 63, 64, 65]
CITIES = ["Ulm", "Ulm", "Bonn", "Ulm", "Bonn", "Bonn"] * 2
FRAMES = {"polars": pl.DataFrame, "arrow": pa.table}


def people() -> dict[str, Any]:
    return {"age": AGES, "city": CITIES}


@pytest.mark.parametrize("kind", FRAMES)
def test_the_same_people_are_grouped_alike_whoever_made_their_table(kind: str) -> None:
    frame, known = FRAMES[kind](people()), pd.DataFrame(people())
    guidance = pl.Series(np.linspace(0, 1, 12)) if kind == "polars" else pa.array(np.linspace(0, 1, 12))
    tree = AnonymizerTree(k=3).fit(frame, guidance)
    of_pandas = AnonymizerTree(k=3).fit(known, np.linspace(0, 1, 12))
    pd.testing.assert_frame_equal(tree.classes_, of_pandas.classes_)
    assert tree.apply(frame).tolist() == of_pandas.apply(known).tolist()
    shown = tree.transform(frame)
    assert type(shown) is type(frame)
    assert shown.schema == frame.schema
    pd.testing.assert_frame_equal(shown.to_pandas(), of_pandas.transform(known))
    assert shown.equals(AnonymizerTree(k=3).fit_transform(frame, guidance))
    raw = ReleaseSpace(of_pandas.classes_).fit(frame).transform(frame)
    assert raw.schema == frame.schema
    pd.testing.assert_frame_equal(raw.to_pandas(), ReleaseSpace(of_pandas.classes_).transform(known))


def test_sensitive_columns_may_be_of_polars_and_suppressed_rows_are_left_out() -> None:
    ages, cities = [20, 21, 22, 23, 24, 25, 26, 20, 95, 96, 97], ["Ulm", "Bonn"] * 4 + ["Oslo"] * 3
    ill = pl.DataFrame({"ill": ["no", "yes"] * 4 + ["no"] * 3})
    tree = AnonymizerTree(k=2, demands=[LDiversity(column="ill", l=2)], suppression=0.9)
    shown = tree.fit_transform(pl.DataFrame({"age": ages, "city": cities}), None, ill)
    assert isinstance(shown, pl.DataFrame) and 0 < len(shown) < len(ages)


TYPED = pa.table(
    {
        "small": pa.array([1, 2, None, 4] * 3, pa.int8()),
        "count": pa.array([2**53 + 1, 2**53 + 3] * 6, pa.int64()),
        "amount": pa.array([Decimal("1.5"), Decimal("2.5"), None] * 4, pa.decimal128(8, 2)),
        "born": pa.array([datetime.date(1990, 1, day) for day in range(1, 13)], pa.date32()),
        "seen": pa.array([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)] * 12, pa.timestamp("us", "UTC")),
        "kind": pa.array(["a", "b", None, "b"] * 3).dictionary_encode(),
        "well": pa.array([True, None, False] * 4),
    }
)


@pytest.mark.parametrize("given", [TYPED, pl.from_arrow(TYPED)], ids=["arrow", "polars"])
def test_columns_keep_their_types(given: Any) -> None:
    shown = AnonymizerTree(k=3).fit_transform(given)
    kept = pa.table(shown.to_arrow() if isinstance(shown, pl.DataFrame) else shown)
    before = pa.table(given.to_arrow() if isinstance(given, pl.DataFrame) else given)
    for name in ("small", "count", "amount", "born", "seen", "well"):
        assert kept.schema.field(name).type == before.schema.field(name).type, name
    assert set(kept["kind"].to_pylist()) <= {"a", "b", None}


def test_dates_that_pandas_reads_from_parquet_are_dates_and_stay_dates() -> None:
    """pandas reads a column of days as Python's dates: that is how `data.parquet` of a release comes back."""
    days = [datetime.date(1, 1, 1), None, *(datetime.date(1990, 1, day) for day in range(1, 10)), datetime.date.max]
    frame = pd.DataFrame({"born": days, "city": CITIES})
    moments = frame.assign(born=np.array(days, "datetime64[us]"))
    tree, of_moments = AnonymizerTree(k=3).fit(frame), AnonymizerTree(k=3).fit(moments)
    pd.testing.assert_frame_equal(tree.classes_, of_moments.classes_)
    space = ReleaseSpace(tree.classes_)
    for made, known in (
        (tree.transform(frame), of_moments.transform(moments)),
        (AnonymizerTree(k=3).fit_transform(frame), of_moments.transform(moments)),
        (space.transform(frame), space.transform(moments)),
    ):
        assert {type(value) for value in made["born"]} <= {datetime.date, type(None)}
        shown = known["born"].dt.date
        assert made["born"].tolist() == shown.astype(object).where(shown.notna(), None).tolist()
    assert space.apply(frame).tolist() == space.apply(moments).tolist()
    assert frame["born"].tolist() == days  # the input is left alone


@pytest.mark.parametrize("form", ["objects", "types of Arrow"])
def test_what_pandas_reads_from_parquet_is_taken_and_keeps_its_types(form: str, tmp_path: Path) -> None:
    """Days and decimal numbers come as objects, and as types of Arrow where these are asked for."""
    pq.write_table(TYPED, tmp_path / "typed.parquet")
    frame = pd.read_parquet(tmp_path / "typed.parquet", **({} if form == "objects" else {"dtype_backend": "pyarrow"}))
    before = frame.copy(deep=True)
    tree, of_arrow = AnonymizerTree(k=3).fit(frame), AnonymizerTree(k=3).fit(TYPED)
    assert tree.sizes_.tolist() == of_arrow.sizes_.tolist()
    shown, known = tree.transform(frame), of_arrow.transform(TYPED)
    raw = ReleaseSpace(tree.classes_).transform(frame)
    for name in ("amount", "born", "kind"):
        assert shown[name].dtype == frame[name].dtype, name
        assert pa.array(shown[name], from_pandas=True).to_pylist() == known[name].to_pylist(), name
        assert name == "kind" or raw[name].dtype == frame[name].dtype, name
    pd.testing.assert_frame_equal(frame, before)  # the input is left alone


@pytest.mark.parametrize("form", ["value", "range"])
def test_a_decimal_number_that_would_be_rounded_is_a_float_and_a_range_is_a_text(form: str) -> None:
    frame = pd.DataFrame({"paid": [Decimal(1), Decimal(2)] * 3 + [Decimal(9)] * 3, "born": [datetime.date.max] * 9})
    shown = AnonymizerTree(k=9, form=form, grids={"paid": 0.3}).fit_transform(frame)
    numbers = {type(value) for value in shown["paid"]}
    assert numbers == ({float} if form == "value" else {str})
    assert {type(value) for value in shown["born"]} == ({datetime.date} if form == "value" else {str})
    cents = pd.DataFrame({"paid": [Decimal("99.99")] * 5})
    assert AnonymizerTree(k=5).fit_transform(cents)["paid"].tolist() == [Decimal("99.99")] * 5


@pytest.mark.parametrize("number", [Decimal("Infinity"), Decimal(10) ** 80])
def test_a_decimal_number_that_no_type_holds_is_refused_in_a_sentence(number: Decimal) -> None:
    with pytest.raises(InputError, match="the column paid holds infinity or numbers of more than 38 digits"):
        AnonymizerTree(k=2).fit(pd.DataFrame({"paid": [number, Decimal(1)] * 3}))


@settings(max_examples=times(20), deadline=None)
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-(2**62), 2**62), st.none() | st.sampled_from(["a", "b", "c"])),
        min_size=6,
        max_size=30,
    ),
    st.integers(2, 4),
)
def test_at_least_k_look_alike_in_any_table(rows: list[tuple[int | None, str | None]], k: int) -> None:
    frame = pl.DataFrame(rows, schema={"number": pl.Int64, "kind": pl.String}, orient="row")
    if frame["number"].drop_nulls().abs().max() is not None and frame["number"].drop_nulls().abs().max() > 10**18:
        with pytest.raises(InputError):
            AnonymizerTree(k=k).fit(frame)
        return
    shown = AnonymizerTree(k=k, refine=0).fit_transform(frame)
    assert shown.columns == frame.columns and len(shown) == len(frame)
    assert shown.group_by(shown.columns).len()["len"].min() >= k


@pytest.mark.parametrize("wanted", ["pandas", "polars"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_set_output_decides_for_every_kind_of_table(kind: str, wanted: str) -> None:
    frame = {"pandas": pd.DataFrame, **FRAMES}[kind](people())
    types = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
    shown = AnonymizerTree(k=3, grids={"age": 1}).set_output(transform=wanted).fit_transform(frame)
    assert isinstance(shown, types[wanted]) and list(shown.columns) == ["age", "city"]
    assert str(shown["age"].dtype).lower() == "int64"
    with config_context(transform_output=wanted):
        assert isinstance(AnonymizerTree(k=3).fit(frame).transform(frame), types[wanted])


@pytest.mark.long
def test_a_pipeline_of_polars_frames_trains_a_model() -> None:
    encoded = ColumnTransformer([("city", OneHotEncoder(sparse_output=False), ["city"])], remainder="passthrough")
    ill = [age > 50 for age in AGES]
    model = make_pipeline(AnonymizerTree(k=3, grids={"age": 1}), encoded, LogisticRegression()).set_output(
        transform="polars"
    )
    assert model.fit(pl.DataFrame(people()), ill).score(pl.DataFrame(people()), ill) == 1


@pytest.mark.parametrize("table", [pl.DataFrame(people()).lazy(), pl.Series([1, 2]), [[1, 2]] * 5, None])
def test_what_is_no_table_in_memory_is_refused_with_a_sentence(table: object) -> None:
    with pytest.raises(InputError, match="must be a DataFrame of pandas or polars, or a Table of Arrow"):
        AnonymizerTree(k=2).fit(table)


def test_a_notebook_does_not_round_a_little_to_nothing() -> None:
    """0.0% of a column was said to be lost where a few people differ."""
    page = table_of_facts(np.array([3000, 4000]), {"age": 0.0002, "city": 0.0})
    assert "<td>&lt; 0.1% at most, &lt; 0.1% on average</td>" in page
    assert "lost of age</th><td>&lt; 0.1%</td>" in page and "lost of city</th><td>0%</td>" in page


def test_a_notebook_shows_classes_loss_and_risk_and_no_value_of_a_person() -> None:
    frame = pl.DataFrame({"<b>age": AGES, "city": CITIES})
    tree = AnonymizerTree(k=3)
    assert "information lost" not in tree._repr_html_()
    tree.fit(frame)
    page = tree._repr_html_()
    assert tree._repr_mimebundle_()["text/html"].count("information lost") == 1
    assert f"<td>{len(tree.sizes_)}</td>" in page
    assert f"{percent(1 / min(tree.sizes_))} at most" in page
    assert "Ulm" not in page and "Bonn" not in page
    assert "<b>age" not in page.partition("<tbody>")[2].rpartition("<table")[2]
