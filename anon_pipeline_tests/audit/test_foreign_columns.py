"""Columns of tables of any make: what is a number or a date is seen in the people, what cannot be read is told."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.audit.foreign_columns import Roles, columns_of, is_ordered, written_otherwise
from anon_pipeline.errors import InputError


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        ([1, 2.5, None], True),
        (pd.to_datetime(["2020-01-02", None]), True),
        ([datetime.date(2020, 1, 2), None], True),
        ([Decimal("1.50"), None], True),
        (["1", "-2.5", None], True),
        (["2020-01-02", None], True),
        ([True, False], False),
        ([datetime.time(4, 6), datetime.time(23, 59)], False),
        (pd.array([True, False, None], dtype=object), False),
        (["1", "01234"], False),
        (["1", "one"], False),
        ([Decimal("1.50"), "one"], False),
        ([1, "1"], False),
        ([None, None], False),
    ],
)
def test_numbers_and_dates_have_an_order_and_mixtures_have_none(values: Any, ordered: bool) -> None:
    assert is_ordered(pd.Series(values, dtype=None if hasattr(values, "dtype") else object), None) == ordered


def test_what_is_written_in_another_way_than_in_the_original_is_told() -> None:
    """Nobody has said that these are numbers or dates; without a word the attack would find nothing and look safe."""
    people = pd.DataFrame(
        {"cost": ["71,3", "8,5"], "born": ["2024-02-29", "2023-12-31"], "city": ["Ulm", "Bonn"], "sex": ["f", "m"]}
    )
    shown = pd.DataFrame({"cost": [71.3, 8.5], "born": ["29.02.2024", "*"], "city": ["{Ulm, Bonn}", "*"], "sex": "*"})
    assert written_otherwise(shown, people, ["cost", "born", "city", "sex"], ["born"]) == ["cost", "born"]


def test_it_is_told_beside_a_table_of_classes_too() -> None:
    """German dates without a spec are texts; an attack on our own release found nothing by them, without a word."""
    people = pd.DataFrame({"born": ["29.02.2024", "31.12.2023"], "age": [3, 4], "city": ["Ulm", "Bonn"]})
    shown = pd.DataFrame({"born": pd.to_datetime(["2024-01-15"] * 2), "age": ["3-4"] * 2, "city": ["south"] * 2})
    classes = pd.DataFrame(
        {
            **{f"born_{end}": pd.to_datetime([day]) for end, day in (("low", "2023-12-01"), ("high", "2024-03-01"))},
            "age_low": [3],
            "age_high": [4],
            "city_values": [["Ulm", "*"]],
        }
    )
    names = ["born", "age", "city"]
    assert written_otherwise(shown, people, names, ["age"], classes) == ["born"]
    assert written_otherwise(shown, people.replace("Ulm", "ULM"), names, ["age"], classes) == ["born", "city"]


def test_one_interval_that_can_be_read_is_enough() -> None:
    people, shown = pd.DataFrame({"age": [3, 4]}), pd.DataFrame({"age": ["3-4", "old"]})
    assert written_otherwise(shown, people, ["age"], ["age"]) == []


def test_what_one_table_of_people_lacks_is_not_attacked() -> None:
    released = pd.DataFrame({"age": [3, 4], "ill": ["no", "yes"], "street": ["a", "b"]})
    tables = {Path("original.csv"): released, Path("control.csv"): released.drop(columns="street")}
    (_, _, kept), notes = columns_of(Roles(["age"], ["ill"]), Path("t.csv"), released, tables)
    assert kept == []
    assert notes == ["Not in every table of people, so not attacked: street."]


def test_a_table_without_any_quasi_identifier_is_refused() -> None:
    released = pd.DataFrame({"ill": ["no", "yes"]})
    tables = {Path("original.csv"): released.assign(age=[3, 4])}
    with pytest.raises(InputError, match=r"t\.csv has no column age"):
        columns_of(Roles(["age"], ["ill"], may_lack=True), Path("t.csv"), released, tables)
