"""People are found again in a table, whichever types the files have for the same values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from anon_pipeline.audit.attacked_files import Files
from anon_pipeline.audit.foreign_columns import Roles
from anon_pipeline.audit.foreign_table import FOR_WHOM, AttackedTable, attack_table
from anon_pipeline.audit.same_values import frame_of, with_all_digits, with_same_values, with_spans_of_years
from anon_pipeline.errors import InputError

N = 300
RANDOM = np.random.default_rng(3)
#: Another number for everybody, in the table and out of it; two have none.
NUMBER, AGE = RANDOM.permutation(2 * N).tolist(), RANDOM.integers(20, 90, 2 * N)
MISSING = np.isin(np.arange(2 * N), (5, N + 5))
IN_IT, OTHERS = np.arange(N), np.arange(N, 2 * N)
START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def values(of: Callable[[int], object], kind: pa.DataType) -> pa.Array:
    return pa.array([None if gone else of(number) for number, gone in zip(NUMBER, MISSING, strict=True)], kind)


MOMENTS = values(lambda number: START + dt.timedelta(hours=5 * number), pa.timestamp("us", "Europe/Berlin"))
TIMES = values(lambda number: (START + dt.timedelta(seconds=97 * number)).time(), pa.time64("us"))
COLUMNS = {
    "float32": values(lambda number: np.float32(number / 10 + 0.3), pa.float32()),
    "float64": values(lambda number: number / 7 + 0.3, pa.float64()),
    "decimal": values(lambda number: Decimal(number * 7 + 3) / 100, pa.decimal128(10, 2)),
    "zoned": MOMENTS,
    "time": TIMES,
    "bytes": values(lambda number: b"c%d" % number, pa.binary()),
    "after 2^63": values(lambda number: 2**63 + number, pa.uint64()),
    "long decimal": values(lambda number: Decimal(10**20 + number) / 100, pa.decimal128(25, 2)),
    "1850": values(lambda number: dt.date(1850, 1, 1) + dt.timedelta(days=number), pa.date32()),
    "2300": values(lambda number: dt.datetime(2300, 1, 1, 3) + dt.timedelta(days=number), pa.timestamp("ms")),
}
#: The same values as another tool may have stored them.
ELSEWHERE = {
    "float32": values(lambda number: round(number / 10 + 0.3, 1), pa.float64()),
    "decimal": COLUMNS["decimal"].cast(pa.float64()),
    "zoned": values(lambda number: str(START + dt.timedelta(hours=5 * number)), pa.string()),
    "time": values(lambda number: str((START + dt.timedelta(seconds=97 * number)).time()) + ".000000", pa.string()),
    "after 2^63": values(lambda number: str(2**63 + number), pa.string()),
    "long decimal": values(lambda number: f"{Decimal(10**20 + number) / 100:.2f}", pa.string()),
}


def write(place: Path, column: pa.Array, who: np.ndarray) -> Path:
    ill = np.where(AGE[who] > 50, "yes", "no")
    table = pa.table({"age": AGE[who], "value": column.take(pa.array(who)), "ill": ill})
    (pc.write_csv if place.suffix == ".csv" else pq.write_table)(table, place)
    return place


def attacked(
    folder: Path, shown: pa.Array, column: pa.Array, ending: str = "parquet", others: pa.Array | None = None
) -> AttackedTable:
    """The table shows a column of the people in it; `others` has the people in it as control people."""
    files = Files(
        write(folder / f"table.{ending}", shown, IN_IT),
        write(folder / "people.parquet", column, IN_IT),
        write(folder / "others.parquet", column, OTHERS)
        if others is None
        else write(folder / "x.parquet", others, IN_IT),
    )
    (folder / "scratch").mkdir()
    return attack_table(files, Roles(["age", "value"], ["ill"]), folder / "scratch", targets=60)


def assert_found(found: AttackedTable, *notes: str) -> None:
    (singled_out,) = [one for one in found.findings if one.name == "singling out, all columns"]
    assert singled_out.verdict == "leak"
    assert singled_out.leak is not None and singled_out.leak.low > 0.9
    *others, last = found.notes
    assert last == FOR_WHOM
    assert len(others) == len(notes) and all(map(str.startswith, others, notes))


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "ending"),
    # Arrow writes bytes into a CSV as a text, which is another value.
    [(kind, ending) for kind in COLUMNS for ending in ("parquet", "csv") if (kind, ending) != ("bytes", "csv")],
)
def test_a_raw_column_is_found_to_leak(tmp_path: Path, kind: str, ending: str) -> None:
    assert_found(attacked(tmp_path, COLUMNS[kind], COLUMNS[kind], ending))


@pytest.mark.long
@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_raw_column_is_found_in_another_type(tmp_path: Path, kind: str) -> None:
    (tmp_path / "back").mkdir()
    assert_found(attacked(tmp_path, ELSEWHERE[kind], COLUMNS[kind]))
    assert_found(attacked(tmp_path / "back", COLUMNS[kind], ELSEWHERE[kind]))


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_people_of_the_table_are_no_control_in_another_type(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match=r"x\.parquet"):
        attacked(tmp_path, COLUMNS[kind], COLUMNS[kind], others=ELSEWHERE[kind])


@pytest.mark.long
def test_an_index_of_pandas_is_a_column_of_its_file(tmp_path: Path) -> None:
    """pandas reads it as an index again, so that a column of numbers of people was not attacked, without a word."""
    for name, who in (("table", IN_IT), ("people", IN_IT), ("others", OTHERS)):
        frame = pd.DataFrame(
            {"age": AGE[who], "ill": AGE[who] > 50}, index=pd.Index(np.array(NUMBER)[who], name="number")
        )
        frame.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "scratch").mkdir()
    files = Files(*(tmp_path / f"{name}.parquet" for name in ("table", "people", "others")))
    found = attack_table(files, Roles(["age"], ["ill"]), tmp_path / "scratch", targets=60)
    assert list(found.knowledge.kept) == ["ill", "number"]
    assert_found(found, "number: every row of the table and of the original has a value of its own")


def test_long_numbers_keep_their_digits_beside_missing_ones() -> None:
    frame = frame_of(pa.table({"long": [2**60 + 1, None], "short": [3, None], "whole": [2**60 + 1, 2]}))
    assert frame["long"][0] == 2**60 + 1
    assert frame["short"].dtype == np.float64
    assert frame["whole"].tolist() == [2**60 + 1, 2]


def test_numbers_stay_numbers_where_floats_hold_them_or_a_table_shows_ranges() -> None:
    long, ranges = pd.Series([2**60 + 1, 2**60 + 2]), pd.Series(["[5, 2000000000000000000]"] * 2)
    far = pd.Series([2**60, 2**61])
    for shown, own in ((ranges, long), (far, far), (long / 7, long), (long * 0.5, long)):
        _, exact = with_all_digits({"released": shown.to_frame("v"), "people": own.to_frame("v")}, ["v"])
        assert exact == []
    tables = {"released": long.astype(str).to_frame("v"), "people": long.to_frame("v")}
    changed, exact = with_all_digits(tables, ["v"])
    assert exact == ["v"]
    assert (
        changed["released"]["v"].tolist()
        == changed["people"]["v"].tolist()
        == ["1152921504606846977", "1152921504606846978"]
    )
    assert with_all_digits(tables, [])[1] == []


def test_ends_of_ranges_and_classes_are_those_of_short_floats() -> None:
    third = float(np.float32(0.1))  # 0.10000000149011612
    released = pd.DataFrame({"v": [f"[{third}, 1.5]", "*"]})
    people = pd.DataFrame({"v": np.array([0.1, 1.5], dtype=np.float32), "w": [1, 2]})
    classes = pd.DataFrame({"v": ["*"], "v_low": [third], "v_high": [1e300]})
    tables, told = with_same_values({"released": released, "people": people}, classes)
    assert tables["released"]["v"].tolist() == ["[0.1, 1.5]", "*"]
    assert tables["people"].to_dict("list") == {"v": [0.1, 1.5], "w": [1, 2]}
    assert told is not None
    assert told.to_dict("list") == {"v": ["*"], "v_low": [0.1], "v_high": [1e300]}


def test_moments_with_an_offset_are_those_of_a_table_that_leaves_it_out() -> None:
    people = pd.DataFrame({"v": ["2020-01-01T08:30:00+02:00", None]})
    for shown, expected in (("2020-01-01 08:30:00", "2020-01-01T08:30:00"), ("2020-01-01 06:30Z", people["v"][0])):
        tables, _ = with_same_values({"released": pd.DataFrame({"v": [shown] * 2}), "people": people}, None)
        assert tables["people"]["v"][0] == expected


@pytest.mark.long
@pytest.mark.parametrize("numbers", [N, N // 2], ids=["once", "twice"])
@pytest.mark.parametrize("order", ["of its own", "of the original"])
def test_an_index_without_a_name_hides_no_leak_and_is_one_where_it_is_kept(
    tmp_path: Path, order: str, numbers: int
) -> None:
    """The rows of two files can be numbered each in its own order; with the original's, they tell whose each is."""
    for seed, name, who in ((1, "table", IN_IT), (2, "people", IN_IT), (3, "others", OTHERS)):
        frame = pd.DataFrame({"age": AGE[who], "value": np.array(NUMBER)[who], "ill": AGE[who] > 50})
        seed = 2 if name == "table" and order == "of the original" else seed
        frame.index = pd.Index(np.random.default_rng(seed).permutation(N) % numbers)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "scratch").mkdir()
    files = Files(*(tmp_path / f"{name}.parquet" for name in ("table", "people", "others")))
    found = attack_table(files, Roles(["age", "value"], ["ill"]), tmp_path / "scratch", targets=60)
    assert_found(found, "__index_level_0__: every row of the table and of the original has a value of its own")
    (linked,) = [one for one in found.findings if one.name == "linkage, all quasi-identifiers"]
    assert (linked.verdict == "leak") == (order == "of the original")


def test_years_in_the_place_of_dates_are_spans_of_days() -> None:
    people = pd.DataFrame({"born": pd.to_datetime(["2023-12-31", "2024-02-29", None]), "age": [2024, 2024, 3]})
    released = pd.DataFrame({"born": [2023, 2024, None], "age": [2024, 2024, 3]})
    spans = with_spans_of_years(released, people, ["born", "age", "absent"])
    assert spans["born"].tolist()[:2] == [f"[{year}-01-01, {year}-12-31T23:59:59.999999]" for year in (2023, 2024)]
    assert spans["born"].isna().tolist() == [False, False, True]
    assert spans["age"].tolist() == [2024, 2024, 3]
    months_too = released.assign(born=["2023", "2024-02", None])
    assert with_spans_of_years(months_too, people, ["born"])["born"][0] == "2023"
