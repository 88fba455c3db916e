"""Row techniques against what they say, cell by cell, and as SQL: types, engines, lookups."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import RowTechnique
from anon_pipeline.masking.catalog import TECHNIQUES
from anon_pipeline.masking.execution import Resources, SqlColumn, apply_steps, sql_select
from anon_pipeline.masking.expressions import plain
from anon_pipeline.masking.plan import plan_steps
from anon_pipeline.release import masking_figures
from anon_pipeline.release.noise import NO_NOISE
from anon_pipeline.spec import ColumnType
from anon_pipeline_tests.masking.tables import CATEGORICAL, DATE, NUMERIC, SECRETS, masked, people, rows, step
from anon_pipeline_tests.skips import require_package

LEAP, Y2K = date(2024, 2, 29), date(2000, 1, 1)
NOON, LATER, EVE = datetime(2000, 1, 1, 12), datetime(2000, 1, 1, 19), datetime(2024, 2, 29, 23)
LONG = {"low": list(range(60)), "high": list(range(60, 120))}  # longer than a chain of cases may be
CASES: list[tuple[str, dict[str, Any], ColumnType, list[Any], list[Any]]] = [
    ("round", {"to": 10}, NUMERIC, [4, 5, -5, -4, 15, None], [0, 10, -10, 0, 20, None]),
    ("round", {"to": 10, "how": "down"}, NUMERIC, [9, -1, 10], [0, -10, 10]),
    ("round", {"to": 10, "how": "up"}, NUMERIC, [1, -9, 10], [10, 0, 10]),
    ("round", {"to": 0.1}, NUMERIC, [0.25, 0.34, -0.04, 1e300], [0.3, 0.3, 0.0, 1e300]),
    ("round", {"to": 0.25}, NUMERIC, [1], [1.0]),
    ("round", {"to": 0.3}, NUMERIC, [1.0, 0.16], [0.9, 0.3]),
    ("round", {"to": 2.5}, NUMERIC, [3.7, 3.8], [2.5, 5.0]),
    ("round", {"to": 0.01, "how": "down"}, NUMERIC, [0.29, 0.57, 1.139, -0.07], [0.29, 0.57, 1.13, -0.07]),
    ("round", {"to": 0.4, "how": "up"}, NUMERIC, [1.2, 1.21, -0.3], [1.2, 1.6, 0.0]),
    # Codes that are stored as floats, as those of SPSS and of tables with gaps.
    ("prefix", {"length": 6}, CATEGORICAL, [10115.0, 1.0, -3.0, 0.5, None], ["10115", "1", "-3", "0.5", None]),
    ("mask", {"last": 2}, CATEGORICAL, [10115.0, 1.0, 12.0, None], ["***15", "*", "**", None]),
    ("keep_format", {}, CATEGORICAL, [10115.0, 123456789.0, None], ["99999", "999999999", None]),
    ("replace", {"pattern": "0$", "by": "x"}, CATEGORICAL, [10.0, 11.0, None], ["1x", "11", None]),
    ("bin", {"width": 10}, NUMERIC, [0, 9, 10, -1, None], ["[0, 10)", "[0, 10)", "[10, 20)", "[-10, 0)", None]),
    ("bin", {"width": 10, "start": 5}, NUMERIC, [4, 5], ["[-5, 5)", "[5, 15)"]),
    ("bin", {"width": 0.5}, NUMERIC, [0.7, -0.1], ["[0.5, 1.0)", "[-0.5, 0.0)"]),
    ("bin", {"width": 0.5, "start": 0.25}, NUMERIC, [0.3], ["[0.25, 0.75)"]),
    ("bin", {"width": 0.25, "start": 0.5}, NUMERIC, [0.3], ["[0.25, 0.50)"]),
    ("bin", {"width": 0.1}, NUMERIC, [0.3, 0.6, -0.3], ["[0.3, 0.4)", "[0.6, 0.7)", "[-0.3, -0.2)"]),
    ("bin", {"width": 0.2, "show": "middle"}, NUMERIC, [0.6], [0.7]),
    ("bin", {"width": 10, "start": 0.5}, NUMERIC, [3], ["[0.5, 10.5)"]),
    ("bin", {"width": 10}, NUMERIC, [3.5], ["[0, 10)"]),
    ("bin", {"width": 10, "show": "middle"}, NUMERIC, [3, 10], [5.0, 15.0]),
    ("bin", {"edges": [18, 65]}, NUMERIC, [17, 18, 64, 65, None], ["< 18", "[18, 65)", "[18, 65)", ">= 65", None]),
    ("bin", {"edges": [0.5]}, NUMERIC, [0.4, 0.5], ["< 0.5", ">= 0.5"]),
    ("bin", {"width": 1}, NUMERIC, [1e19], [None]),
    # Engines write floats beyond 2^53 in different ways, and count more than 2^52 bins so.
    ("bin", {"width": 10}, NUMERIC, [9e15, 1e16, 2e17, -6e17], ["[9000000000000000, 9000000000000010)", *[None] * 3]),
    ("bin", {"width": 1e15}, NUMERIC, [9e17 + 128, -9e17 - 128], [None, None]),
    ("bin", {"width": 0.001, "show": "middle"}, NUMERIC, [0.5, 1e13], [0.5005, None]),
    (
        "bin",
        {"width": 1000},
        NUMERIC,
        [10**18, 7 - 10**18],
        ["[1000000000000000000, 1000000000000001000)", "[-1000000000000000000, -999999999999999000)"],
    ),
    ("top_bottom_code", {"top": 90}, NUMERIC, [89, 90, 91, None], [89, 90, 90, None]),
    ("top_bottom_code", {"bottom": 1.5, "top": 9.5}, NUMERIC, [1, 2, 10], [2, 2, 9]),
    ("top_bottom_code", {"bottom": 1.5}, NUMERIC, [1.0, 2.0], [1.5, 2.0]),
    ("top_bottom_code", {"top": "2000-01-01"}, DATE, [date(2001, 5, 5), date(1999, 1, 1)], [Y2K, date(1999, 1, 1)]),
    (
        "top_bottom_code",
        {"bottom": datetime(2000, 1, 1, 12)},
        DATE,
        [datetime(2000, 1, 1, 11), datetime(2000, 1, 1, 13)],
        [datetime(2000, 1, 1, 12), datetime(2000, 1, 1, 13)],
    ),
    ("truncate_date", {"to": "day"}, DATE, [datetime(2024, 2, 29, 23)], [date(2024, 2, 29)]),
    ("truncate_date", {"to": "week"}, DATE, [date(2024, 3, 3), LEAP], [date(2024, 2, 26), date(2024, 2, 26)]),
    ("truncate_date", {"to": "month"}, DATE, [date(2024, 2, 29), None], [date(2024, 2, 1), None]),
    ("truncate_date", {"to": "quarter"}, DATE, [date(2024, 12, 31)], [date(2024, 10, 1)]),
    ("truncate_date", {"to": "year"}, DATE, [date(1969, 12, 31)], [date(1969, 1, 1)]),
    ("prefix", {"length": 3}, CATEGORICAL, ["10115", "日本語です", "a", None], ["101", "日本語", "a", None]),
    ("prefix", {"length": 2}, CATEGORICAL, [10115], ["10"]),
    ("mask", {"last": 4}, CATEGORICAL, ["123456789", "1234", "", None], ["*****6789", "****", "", None]),
    ("mask", {"first": 1, "last": 1, "stars": 3}, CATEGORICAL, ["Würzburg", "ab", None], ["W***g", "***", None]),
    ("mask", {"character": "#"}, CATEGORICAL, ["日本"], ["##"]),
    ("keep_format", {}, CATEGORICAL, ["AB-1234", "Köln 5", "日1👩", None], ["XX-9999", "XXXX 9", "X9X", None]),
    ("keep_format", {}, CATEGORICAL, ["[\\]^_`{|}~!\"#$%&'()*+,-./:;<=>?@"], ["[\\]^_`{|}~!\"#$%&'()*+,-./:;<=>?@"]),
    ("replace", {"pattern": r"\d+", "by": "#"}, CATEGORICAL, ["a1b22", "it's", None], ["a#b#", "it's", None]),
    ("replace", {"pattern": "'", "by": "''"}, CATEGORICAL, ["it's"], ["it''s"]),
    ("redact", {}, CATEGORICAL, ["a", None], ["[redacted]", None]),
    ("redact", {"missing": True, "by": "-"}, NUMERIC, [1, None], ["-", "-"]),
    ("suppress", {}, NUMERIC, [1, None], [None, None]),
    ("suppress_cells", {"values": ["a"], "pattern": "^z"}, CATEGORICAL, ["a", "zoo", "b"], [None, None, "b"]),
    ("suppress_cells", {"above": 9, "below": 2}, NUMERIC, [1, 2, 9, 10, None], [None, 2, 9, None, None]),
    ("suppress_cells", {"below": 2}, NUMERIC, [1, 2, 3], [None, 2, 3]),
    ("suppress_cells", {"above": 2}, NUMERIC, [1, 2, 3], [1, 2, None]),
    ("suppress_cells", {"pattern": "^z"}, CATEGORICAL, ["zoo", "b"], [None, "b"]),
    ("suppress_cells", {"values": [3, 2**60]}, NUMERIC, [3, 2**60, 2**60 + 1], [None, None, 2**60 + 1]),
    ("suppress_cells", {"values": ["2024-02-29"]}, DATE, [LEAP, Y2K], [None, Y2K]),
    ("suppress_cells", {"values": ["2024-02-29", "2000-01-01 12:00"]}, DATE, [NOON, LATER, EVE], [None, LATER, None]),
    ("hierarchy", {"groups": {"S": ["Ulm"]}}, CATEGORICAL, ["Ulm", "Bonn", None], ["S", "*", None]),
    ("hierarchy", {"groups": {"yes": [True, 1]}, "others": "no"}, CATEGORICAL, [True, False], ["yes", "no"]),
    ("hierarchy", {"groups": LONG}, CATEGORICAL, [3, 99, 500], ["low", "high", "*"]),
]  # fmt: skip


@pytest.mark.parametrize(("technique", "parameters", "kind", "values", "shown"), CASES)
def test_each_shows_what_it_says(
    technique: str, parameters: dict[str, Any], kind: ColumnType, values: list[Any], shown: list[Any]
) -> None:
    made, _ = masked(pa.array(values), kind, step(technique, **parameters))
    assert made.to_pylist() == (shown if kind is not NUMERIC else pytest.approx(shown))
    assert [type(value) for value in made.to_pylist()] == [type(value) for value in shown]


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_a_decimal_rounded_to_its_own_step_stays_as_it_is_written(decimals: int) -> None:
    values = [float(f"{count}e-{decimals}") for count in range(-200, 200)]
    assert masked(values, NUMERIC, step("round", to=10**-decimals))[0].to_pylist() == values


def test_numbers_are_written_without_exponents_from_a_ten_thousandth_to_ten_quadrillions() -> None:
    written = {
        0.0001: "0.0001",
        2.5: "2.5",
        -3.0: "-3",
        7: "7",
        0.00012345: "0.00012345",
        9e15: "9000000000000000",
        1e16: "1e+16",
        1e-5: "1e-05",
    }
    assert {number: plain(number) for number in written} == written


@pytest.mark.parametrize(("width", "start"), [(0.1, 0), (0.2, 0.1), (0.05, -1), (1.1, 0), (0.003, 0.001), (1 / 3, 0)])
def test_a_number_lies_in_the_bin_that_it_is_shown_in(width: float, start: float) -> None:
    """Also at an edge, and at the floats beside it: .3 / .1 is below 3."""
    edges = [float(Decimal(repr(width)) * count + Decimal(repr(start))) for count in range(-200, 200)]
    values = [value for edge in edges for value in (np.nextafter(edge, -9), edge, np.nextafter(edge, 999))]
    shown = masked(values, NUMERIC, step("bin", width=width, start=start))[0].to_pylist()
    ends = [tuple(map(float, text.strip("[)").split(", "))) for text in shown]
    within = [low <= value < high for (low, high), value in zip(ends, values, strict=True)]
    assert all(within) or width == 1 / 3  # the text of its edges has twelve decimals
    middles = masked(values, NUMERIC, step("bin", width=width, start=start, show="middle"))[0].to_pylist()
    assert max(abs(middle - value) for middle, value in zip(middles, values, strict=True)) <= width / 2 * (1 + 1e-9)


@pytest.mark.parametrize("to", [0.01, 0.05, 0.3, 0.4, 2.5, 1 / 3])
def test_rounding_down_or_up_is_never_past_the_number_and_leaves_multiples(to: float) -> None:
    multiples = [float(Decimal(repr(to)) * count) for count in range(-200, 200)]
    values = [value for edge in multiples for value in (np.nextafter(edge, -9999), edge, np.nextafter(edge, 9999))]
    for how, sign in (("down", 1), ("up", -1)):
        shown = masked(values, NUMERIC, step("round", to=to, how=how))[0].to_pylist()
        left = [sign * (value - other) for value, other in zip(values, shown, strict=True)]
        assert min(left) >= 0 and max(left) <= to * (1 + 1e-12)
        assert shown[1::3] == multiples or to == 1 / 3


@pytest.mark.long
def test_a_number_of_single_precision_is_the_number_that_it_is_written_as() -> None:
    """A listed 37.2 did not find the float 37.2, which has other bits as a double: the rule hid nothing."""
    column = pa.array([37.2, 0.7, None], pa.float32())
    assert masked(column, NUMERIC, step("suppress_cells", values=[37.2]))[0].to_pylist()[0] is None
    kept = masked(column, NUMERIC, step("suppress_cells", above=37.2, below=0.7))[0]
    assert kept.is_null().to_pylist() == [False, False, True]
    assert masked(column, NUMERIC, step("bin", edges=[0.7, 37.2]))[0].to_pylist() == [">= 37.2", "[0.7, 37.2)", None]
    assert masked(column, NUMERIC, step("top_bottom_code", top=40))[0].to_pylist() == [37.2, 0.7, None]


@pytest.mark.long
def test_days_are_found_however_the_column_stores_them() -> None:
    """One person's hour makes a column of days one of moments, whose texts are longer: the rule hid nothing."""
    listed = step("suppress_cells", values=["2024-02-29"])
    for stored in (pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")):
        column = pa.array([datetime(2024, 2, 29), datetime(2000, 1, 1)]).cast(pa.timestamp("us")).cast(stored)
        assert masked(column, DATE, listed)[0].is_null().to_pylist() == [True, False]
    zoned = step("suppress_cells", values=["2024-02-29 13:00+01:00"])
    assert masked([datetime(2024, 2, 29, 12)], DATE, zoned)[0].to_pylist() == [None]
    for no_date in ("29.2.2024", "9999-12-31 23:59-05:00"):
        with pytest.raises(InputError, match="must be dates, such as 2024-02-29"):
            plan_steps({"v": DATE}, {"v": [step("suppress_cells", values=[no_date])]})


@pytest.mark.parametrize("limit", [1e19, 1e39, 10**60])
def test_a_limit_beyond_all_whole_numbers_codes_nobody(limit: float) -> None:
    numbers = [-(2**63), -5, 0, 2**63 - 1, None]
    assert masked(numbers, NUMERIC, step("top_bottom_code", top=limit, bottom=-limit))[0].to_pylist() == numbers


def test_every_row_technique_is_among_the_cases() -> None:
    tried = {case[0] for case in CASES}
    assert tried == {name for name, model in TECHNIQUES.items() if issubclass(model, RowTechnique)}


def test_moments_with_a_time_zone_are_truncated_in_utc() -> None:
    moment = datetime(2024, 1, 1, 0, 30, tzinfo=UTC)  # in Tokyo it is nine hours later, in New York still 2023
    for zone in ("Asia/Tokyo", "America/New_York"):
        column = pa.array([moment]).cast(pa.timestamp("us", tz=zone))
        assert masked(column, DATE, step("truncate_date", to="day"))[0].to_pylist() == [date(2024, 1, 1)]
        assert masked(column, DATE, step("truncate_date", to="year"))[0].to_pylist() == [date(2024, 1, 1)]


def test_steps_follow_one_another() -> None:
    steps = [step("top_bottom_code", top=90), step("round", to=20), step("bin", edges=[50]), step("prefix", length=1)]
    assert masked([12, 95, 44], NUMERIC, *steps)[0].to_pylist() == ["<", ">", "<"]


def test_a_long_hierarchy_is_looked_up_in_a_table() -> None:
    long, short = step("hierarchy", groups=LONG), step("hierarchy", groups={"low": [1]})
    assert isinstance(long, RowTechnique) and isinstance(short, RowTechnique)
    assert "VALUES" in long.expression(NAME, CATEGORICAL, "BIGINT")
    assert "VALUES" not in short.expression(NAME, CATEGORICAL, "BIGINT")


def test_a_hierarchy_of_codes_is_found_where_a_missing_one_made_them_floats(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("1;low\n2;low\n30;high\n", encoding="utf-8")
    for codes in ([1, 30, 7], [1.0, 30.0, 7.0], ["1", "30", "7"]):
        steps = {"v": [step("hierarchy", file="codes.csv")]}
        table = pa.table({"v": pa.array([*codes, None])})
        made, _ = apply_steps(table, {"v": CATEGORICAL}, steps, resources=Resources(secrets=SECRETS, folder=tmp_path))
        assert made.column("v").to_pylist() == ["low", "high", "*", None]


def test_a_hierarchy_is_read_from_a_file_of_arx(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("Ulm;BW;DE\nBonn;NRW;DE\nBern;BE;CH\n", encoding="utf-8")
    towns = pa.table({"v": ["Ulm", "Bern", "Rome"]})
    for level, wanted in ((1, ["BW", "BE", "*"]), (2, ["DE", "CH", "*"])):
        steps = {"v": [step("hierarchy", file="towns.csv", level=level)]}
        resources = Resources(secrets=SECRETS, folder=tmp_path)
        made, (report,) = apply_steps(towns, {"v": CATEGORICAL}, steps, resources=resources)
        assert made.column("v").to_pylist() == wanted
        # The report is published, and would name each value, also that of a single person, or confirm a guess at it.
        assert report.parameters == {"file": "towns.csv", "level": level, "delimiter": ";", "others": "*"}
        told = masking_figures.masking([asdict(report)], NO_NOISE)
        assert told is not None
        assert told[0]["facts"] == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read (No such file"),
        (b"", "is empty"),
        (b"Ulm\n", "line 1 has no level 1"),
        (b"Ulm;A\n\nBonn\n", "line 3 has no level 1"),
        (b"Ulm;A\nUlm;B\n", "line 2 puts a value into a second group"),
        (b"\xff\xfe;", "is no CSV file in UTF-8"),
    ],
)
def test_a_bad_hierarchy_file_is_refused_by_name(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / "towns.csv").write_bytes(content)
    with pytest.raises(InputError) as refused:
        plan_steps({"v": CATEGORICAL}, {"v": [step("hierarchy", file="towns.csv")]}, folder=tmp_path)
    assert "columns.v.steps.0: " in str(refused.value) and "towns.csv: " in str(refused.value)
    assert sentence in str(refused.value)


#: A column's name as SQL says it.
NAME = '"a b"'
STORAGES: dict[ColumnType, list[tuple[str, str]]] = {
    NUMERIC: [
        ("TINYINT", "5"), ("INTEGER", "50"), ("BIGINT", "50"), ("UINTEGER", "50"), ("UBIGINT", "50"), ("HUGEINT", "50"),
        ("FLOAT", "5.5"), ("DOUBLE", "5.5"), ("DECIMAL(9,2)", "5.25"), ("DECIMAL(38,4)", "5.25"),
    ],
    DATE: [
        ("DATE", "'2024-05-06'"), ("TIMESTAMP", "'2024-05-06 07:08:09'"), ("TIMESTAMP_NS", "'2024-05-06 07:08:09'"),
        ("TIMESTAMP WITH TIME ZONE", "'2024-05-06 07:08:09+00'"),
    ],
    CATEGORICAL: [
        ("VARCHAR", "'Ulm'"), ("BIGINT", "5"), ("BOOLEAN", "true"), ("DOUBLE", "1.5"), ("DATE", "'2024-05-06'"),
        ("ENUM('Ulm', 'Bonn')", "'Ulm'"), ("UUID", "'6f8b7c1e-0000-4000-8000-000000000000'"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_type_that_is_announced_is_the_type_that_comes(case: int) -> None:
    name, parameters, kind, _, _ = CASES[case]
    technique = step(name, **parameters)
    assert isinstance(technique, RowTechnique)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for storage, value in STORAGES[kind]:
        relation = f"(SELECT CAST(CAST({value} AS VARCHAR) AS {storage}) AS {NAME}) AS source"
        query = f"SELECT {technique.expression(NAME, kind, storage)} AS v FROM {relation}"
        described = connection.execute(f"DESCRIBE {query}").fetchall()[0][1]
        assert described == technique.storage_after(kind, storage), (storage, query)
        connection.execute(query).fetchall()


def select(distinct: int | None) -> tuple[str, pa.Table]:
    table, kinds = people(500)
    steps = {
        "c": [step("mask", first=1), step("replace", pattern=r"\*+", by="-")],
        "z": [step("bin", width=2)],
        "x": [step("round", to=0.5)],
        "d": [step("truncate_date", to="quarter")],
    }
    plan = plan_steps(kinds, steps)
    assert plan.is_row_wise
    storage = {"x": "DOUBLE", "y": "DOUBLE", "c": "VARCHAR", "z": "BIGINT", "d": "DATE"}
    columns = [SqlColumn(name, kinds[name], storage[name], distinct=distinct) for name in kinds]
    wanted, _ = apply_steps(table, kinds, steps, resources=Resources(secrets=SECRETS))
    return sql_select(columns, plan, "people"), wanted


@pytest.mark.parametrize("distinct", [None, 10, 10**9])
def test_one_query_gives_what_steps_in_memory_give(distinct: int | None) -> None:
    query, wanted = select(distinct)
    assert ("DISTINCT" in query) == (distinct == 10)
    connection = duckdb.connect()
    connection.register("people", people(500)[0])
    assert rows(connection.sql(query).to_arrow_table()) == rows(wanted)


@pytest.mark.parametrize(
    ("steps", "distinct", "is_looked_up"),
    [
        ([step("mask", first=1)], 3, True),
        ([step("prefix", length=1), step("mask", first=1)], 3, True),
        ([step("prefix", length=1)], 3, False),
        ([step("mask", first=1)], None, False),
        ([], 3, False),
    ],
)
def test_few_values_are_looked_up_where_a_step_is_heavy(
    steps: list[RowTechnique], distinct: int | None, is_looked_up: bool
) -> None:
    plan = plan_steps({"v": CATEGORICAL}, {"v": steps})
    query = sql_select([SqlColumn("v", CATEGORICAL, "VARCHAR", distinct=distinct)], plan, "source")
    assert ("JOIN" in query) == is_looked_up


def test_missing_values_go_through_a_lookup() -> None:
    plan = plan_steps({"v": CATEGORICAL}, {"v": [step("mask", first=1), step("redact", missing=True)]})
    query = sql_select([SqlColumn("v", CATEGORICAL, "VARCHAR", distinct=3)], plan, "source")
    assert "JOIN" in query
    connection = duckdb.connect()
    connection.execute("CREATE TABLE source AS SELECT * FROM (VALUES ('a'), (NULL), ('a'), (NULL)) AS t(v)")
    assert connection.execute(query).fetchall() == [("[redacted]",)] * 4


def test_an_expression_of_the_source_is_masked_as_what_it_gives() -> None:
    plan = plan_steps({"v": NUMERIC, "w": CATEGORICAL}, {"v": [step("round", to=10)]})
    columns = [SqlColumn("v", NUMERIC, "BIGINT", 'CAST("v" AS BIGINT)'), SqlColumn("w", CATEGORICAL, "VARCHAR")]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE source AS SELECT '17' AS v, 'it''s' AS w")
    assert connection.execute(sql_select(columns, plan, "source")).fetchall() == [(20, "it's")]


@pytest.mark.parametrize(
    ("technique", "kind", "storage", "expression"),
    [
        (step("truncate_date", to="month"), DATE, "DATE", "CAST(date_trunc('month', v) AS DATE)"),
        (step("round", to=2.5), NUMERIC, "DOUBLE", None),
        (step("round", to=10), NUMERIC, "BIGINT", None),
        (step("top_bottom_code", top=Y2K), DATE, "TIMESTAMP", None),
        (step("prefix", length=2), CATEGORICAL, "VARCHAR", "left(v, 2)"),
    ],
)
def test_a_value_that_has_its_type_already_is_not_converted(
    technique: RowTechnique, kind: ColumnType, storage: str, expression: str | None
) -> None:
    written = technique.expression("v", kind, storage)
    assert "CAST(v AS" not in written and written == (expression or written)


def test_what_is_drawn_needs_the_key_of_the_dataset_and_the_rest_none() -> None:
    table = pa.table({"v": [1, 2]})
    for drawn in ({"v": [step("rank_swap", share=0.5)]}, {"v": [step("microaggregate", k=2)]}):
        with pytest.raises(InputError, match="give the dataset's key"):
            apply_steps(table, {"v": NUMERIC}, drawn)
    made, _ = apply_steps(table, {"v": NUMERIC}, {"v": [step("round", to=10)]})
    assert made.column("v").to_pylist() == [0, 0]


def test_only_row_techniques_make_a_query() -> None:
    plan = plan_steps({"v": NUMERIC}, {"v": [step("rank_swap", share=0.1)]})
    assert not plan.is_row_wise
    with pytest.raises(ValueError, match="row-wise"):
        sql_select([SqlColumn("v", NUMERIC, "BIGINT")], plan, "source")


@pytest.mark.parametrize("case", range(len(CASES)))
def test_spark_can_read_every_expression(case: int) -> None:
    """Parsed back from Spark's words; `test_spark_agrees` runs them where PySpark is."""
    sqlglot = require_package("sqlglot")
    from anon_pipeline.engine.spark_sql import spark_sql

    name, parameters, kind, _, _ = CASES[case]
    technique = step(name, **parameters)
    assert isinstance(technique, RowTechnique)
    storage = {NUMERIC: "BIGINT", DATE: "DATE", CATEGORICAL: "VARCHAR"}[kind]
    said = spark_sql(f"SELECT {technique.expression(NAME, kind, storage)} AS v FROM source")
    assert sqlglot.parse_one(said, read="spark").find(sqlglot.exp.Anonymous) is None, said


def test_a_value_that_cannot_be_converted_is_not_quoted() -> None:
    column = pa.array([Decimal("1.5"), None])
    with pytest.raises(InputError) as refused:
        masked(pa.array(["secret", "12"]), NUMERIC, step("round", to=10))
    assert "secret" not in str(refused.value) and "columns.v.steps.0: " in str(refused.value)
    assert masked(column, NUMERIC, step("round", to=1))[0].to_pylist() == [2.0, None]


@pytest.mark.parametrize(
    ("column", "listed"),
    [
        (pa.array([1.0, 2.0, 3.5]), [1, 3.5]),
        (pa.array([1, 2, 3]), [1.0, 3]),
        (pa.array([True, False, True]), [True]),
        (pa.array(["1", "2", "true"]), [1, True]),
        (pa.array([1.0, 2.0, 3.0], pa.float32()), [1, 3.0]),
        (pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("3.50")]), [1, 3.5]),
        (pa.array([Decimal(10**20), Decimal(2), Decimal(3)]), [10**20, 3.0]),
        (pa.array([1.0, 2.0, 3.5]), ["1", "3.5"]),
        (pa.array([1, 2, -3]), ["1.0", "-3"]),
        (pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("3.50")]), ["1", "3.5"]),
        (pa.array(["01", "1", "1.0"]), ["01", "1.0"]),
    ],
    ids=[
        *("floats", "whole numbers", "truth values", "texts", "small floats", "decimals", "whole decimals"),
        *("texts for floats", "texts for whole numbers", "texts for decimals", "texts for texts"),
    ],
)
def test_codes_are_found_however_the_source_stores_them(column: pa.Array, listed: list[Any]) -> None:
    """A statistics package stores the code 1 as 1.0, and a rule that finds nothing hides nothing."""
    hidden, _ = masked(column, CATEGORICAL, step("suppress_cells", values=listed))
    assert [value is None for value in hidden.to_pylist()] == [True, False, True]
    grouped, _ = masked(column, CATEGORICAL, step("hierarchy", groups={"some": listed}))
    assert grouped.to_pylist() == ["some", "*", "some"]
