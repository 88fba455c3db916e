"""A column's values as the spec states them: what is changed, into what, and which columns are left as they are."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anon_pipeline.engine.stated import NO_NUMBER, as_stated
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Column, Source

ROLE = "insensitive"
DATED = {"type": "date", "format": ["%Y%m%d", "%d.%m.%Y"]}
NUMERIC, TEXT = {"type": "numeric"}, {"type": "categorical"}
COMMAS = {"decimal": ",", "thousands": "."}


def values(column: pa.Array, said: dict[str, Any] | None, **source: Any) -> tuple[list[Any], bool]:
    """The values of a column as stated, and whether the relation is another one."""
    columns = {} if said is None else {"x": Column.model_validate({"role": ROLE, **said})}
    stated = Source.model_validate({"path": "people.csv", **source})
    with duckdb.connect() as connection:
        connection.register("people", pa.table({"x": column, "i": range(len(column))}))
        relation = as_stated(connection, "people", stated, columns)
        found = connection.execute(f"SELECT x FROM {relation} ORDER BY i").fetchall()
    return [value for (value,) in found], relation != "people"


@pytest.mark.parametrize(
    ("column", "said", "source", "expected"),
    [
        # dates
        (pa.array(["20240229", " 1.2.2000 ", "x", None]), DATED, {},
         ["2024-02-29 00:00:00.000000", "2000-02-01 00:00:00.000000", "x", None]),
        (pa.array([20240229, 7]), DATED, {}, ["2024-02-29 00:00:00.000000", "7"]),
        (pa.array(["20240229"]).dictionary_encode(), DATED, {}, ["2024-02-29 00:00:00.000000"]),
        (pa.array([date(2024, 2, 29)]), DATED, {}, None),
        (pa.array([20240229.0]), DATED, {}, None),
        # numbers
        (pa.array(["1.234,5", "-0,25", "7", ",5", "1e3", ""]), NUMERIC, COMMAS,
         ["1234.5", "-0.25", "7", ".5", "1e3", ""]),
        (pa.array(["1.23", "1,5,5", "x"]), NUMERIC, COMMAS, [NO_NUMBER] * 3),
        (pa.array(["1,5", "?", None]), NUMERIC, {"decimal": ",", "missing": ["?"]}, ["1.5", "?", None]),
        (pa.array(["1'234.5", "12'34"]), NUMERIC, {"thousands": "'"}, ["1234.5", NO_NUMBER]),
        (pa.array(["1,5", "2"]), None, COMMAS, ["1.5", "2"]),
        (pa.array(["1,5", "?"]), None, {"decimal": ",", "missing": ["?"]}, ["1.5", "?"]),
        (pa.array(["1,5", "x"]), None, COMMAS, None),
        (pa.array(["1,5"]), {}, COMMAS, ["1.5"]),
        (pa.array(["1,5"]), TEXT, COMMAS, None),
        (pa.array(["1,5"]), NUMERIC, {}, None),
        (pa.array([1.5]), NUMERIC, COMMAS, None),
        # currencies and units
        (pa.array(["$1,234.5", "-$ 2", "$-3", "4\u00a0US$", "5"]), NUMERIC, {"thousands": ",", "symbols": ["US$"]},
         [NO_NUMBER, NO_NUMBER, NO_NUMBER, "4", "5"]),
        (pa.array(["$1,234.5", "-$ 2", "$-3", "4 $", "+5"]), NUMERIC, {"thousands": ",", "symbols": ["$"]},
         ["1234.5", "-2", "-3", "4", "+5"]),
        (pa.array(["1.234,5 EUR", "1e3EUR", "EUR", "E1"]), NUMERIC, {**COMMAS, "symbols": ["EUR"]},
         ["1234.5", "1e3", NO_NUMBER, NO_NUMBER]),
        (pa.array(["$$5", "1$5", "-$-5"]), NUMERIC, {"symbols": ["$"]}, [NO_NUMBER] * 3),
        (pa.array(["12%", "?", "7 %", None]), None, {"symbols": ["%"], "missing": ["?"]}, ["12", "?", "7", None]),
        (pa.array(["$5", "5 €"]), None, {"symbols": ["$", "€"]}, None),
        (pa.array(["US$5", "US$6", "7"]), None, {"symbols": ["$", "US$"]}, ["5", "6", "7"]),
        (pa.array(["12%"]), TEXT, {"symbols": ["%"]}, None),
        (pa.array([12]), NUMERIC, {"symbols": ["%"]}, None),
        # markers
        (pa.array(["a", "-", None]), {**TEXT, "missing": ["-"]}, {}, ["a", None, None]),
        (pa.array([1.0, 99.0, None]), {**NUMERIC, "missing": ["99", "x"]}, {}, [1.0, None, None]),
        (pa.array([1, 99]), {**NUMERIC, "missing": ["99.0"]}, {}, [1, None]),
        (pa.array(["99.0", "99"]), {**TEXT, "missing": ["99"]}, {}, ["99.0", None]),
        (pa.array(["a"]), TEXT, {}, None),
        (pa.array(["20240229", "-"]), {**DATED, "missing": ["-"]}, {}, ["2024-02-29 00:00:00.000000", None]),
    ],
)  # fmt: skip
def test_only_what_is_stated_is_changed(
    column: pa.Array, said: dict[str, Any] | None, source: dict[str, Any], expected: list[Any] | None
) -> None:
    found, changed = values(column, said, **source)
    assert changed == (expected is not None)
    assert found == (column.to_pylist() if expected is None else expected)


def test_amounts_in_two_currencies_are_not_added_up() -> None:
    with pytest.raises(InputError, match=r"columns\.x: holds numbers with more than one of source\.symbols"):
        values(pa.array(["$5", "5 €"]), NUMERIC, symbols=["$", "€"])


@pytest.mark.long
@given(
    number=st.decimals(-(10**12), 10**12, places=2),
    symbol=st.sampled_from(["$", "US$", "%", "kg", "zł", "^", "a|b", "(kg)", "[", "\\d"]),
    signs=st.sampled_from([(".", ","), (",", "."), (",", " "), (".", None)]),
    beside=st.sampled_from(
        ["{sign}{symbol}{digits}", "{symbol} {sign}{digits}", "{sign}{digits}{symbol}", "{sign}{digits} {symbol}"]
    ),
)
def test_a_number_beside_its_symbol_is_that_number(
    number: Decimal, symbol: str, signs: tuple[str, str | None], beside: str
) -> None:
    decimal, thousands = signs
    digits = f"{abs(number):,.2f}".translate(str.maketrans({",": thousands or "", ".": decimal}))
    text = beside.format(sign="-" if number < 0 else "", symbol=symbol, digits=digits)
    found, _ = values(pa.array([text]), NUMERIC, decimal=decimal, thousands=thousands, symbols=[symbol])
    assert Decimal(found[0]) == number


SIGNS = ["(", ")", "($", "\u2212", "\u2013", "\u2014"]


@pytest.mark.parametrize("symbol", ["", "5", "-", "+", ".", ",", "e", "E", "$5", "k g", "'", "a" * 11, *SIGNS])
def test_a_symbol_is_no_part_of_a_number(symbol: str) -> None:
    """With `symbols: ["(", ")"]` a debt of an account, (5), was read as a 5."""
    with pytest.raises(ValidationError, match="could be a part of a number"):
        Source(path="people.csv", symbols=(symbol,))


def test_a_unit_may_stand_in_brackets() -> None:
    assert values(pa.array(["-5 (kg)"]), NUMERIC, symbols=["(kg)"])[0] == ["-5"]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("n > 2", [3]),
        ("n IS NULL", [4]),
        ("t = 'b'", [2]),
        ("t IS NULL", [3, 4]),
        ("number >= 10", [2, 3]),
        ("number IS NULL", [1, 4]),
        ("day < '2000-01-01'", [1]),
        ("day IS NULL", [3, 4]),
        ("NOT (whole = 1)", [2, 3]),
    ],
)
def test_a_condition_sees_values_of_their_types_and_keeps_them_as_they_are(condition: str, kept: list[int]) -> None:
    table = pa.table(
        {
            "i": [1, 2, 3, 4],
            "n": [1.0, 2.0, 3.0, float("nan")],
            "t": ["a", "b", "?", ""],
            "number": ["9x", "10", "11", None],
            "day": ["1999-12-31", "2000-01-01", "x", None],
            "whole": [1, 2, 3, None],
        }
    )
    columns = {
        name: Column.model_validate({"role": ROLE, "type": kind})
        for name, kind in (("number", "numeric"), ("day", "date"), ("t", "categorical"))
    }
    source = Source.model_validate({"path": "people.csv", "where": condition, "missing": ["?"]})
    with duckdb.connect() as connection:
        connection.register("people", table)
        relation = as_stated(connection, "people", source, columns)
        found = connection.execute(f"SELECT * EXCLUDE (n) FROM {relation} ORDER BY i").fetchall()
        names = [row[0] for row in connection.execute(f"DESCRIBE FROM {relation}").fetchall()]
    assert names == table.column_names
    assert found == [tuple(row.values()) for row in table.drop_columns(["n"]).to_pylist() if row["i"] in kept]
