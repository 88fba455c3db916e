"""Negative numbers as accounts write them: a column of them is no column of numbers, and a person is told why."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.profiling.negatives import REMARK, REMEDY, has_negatives_of_accounts
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset


@pytest.mark.parametrize("negative", ["(5)", "5-", "5 -", "(1,234.50)", "\u22125", "\u20135", "1,234.50-"])
def test_a_negative_number_of_an_account_is_known(negative: str) -> None:
    assert has_negatives_of_accounts(["12", "1,200", negative])


@pytest.mark.parametrize("negative", ["$(5)", "($5)", "$5-", "\u2212$5"])
def test_a_currency_may_stand_on_either_side_of_the_sign(negative: str) -> None:
    assert has_negatives_of_accounts(["$12", "$1,200", negative])


@pytest.mark.parametrize(
    "other", ["-5", "(none)", "5-10", "(5", "05-", "A-", "2+", "(-5)", "555-1234", "-", "()", "", "5 kg"]
)
def test_other_values_are_none(other: str) -> None:
    """A range, a grade, a number of a telephone, a code with a leading zero, and "not known"."""
    assert not has_negatives_of_accounts(["12", "1200", other])


def lines(engine: DuckDBEngine, folder: Path, pay: list[str]) -> list[str]:
    """The remark and the line of the column in the spec that is proposed for it."""
    rows = [f'{20 + place % 50},"{one}",{("yes", "no")[place * 7919 % 1009 % 2]}' for place, one in enumerate(pay)]
    (folder / "people.csv").write_text("\n".join(["age,pay,left", *rows]) + "\n", encoding="utf-8")
    text = start_dataset(engine, DatasetRequest("people", folder / "people.csv"), folder / "data").file.read_text()
    found = text.splitlines()
    place = next(place for place, line in enumerate(found) if line.startswith("  pay: "))
    return found[place - 1 : place + 1]


@pytest.mark.parametrize("form", ["({})", "{}-", "\u2212{}"])
def test_a_column_of_them_is_remarked(engine: DuckDBEngine, tmp_path: Path, form: str) -> None:
    """A ledger's balances were proposed as categories without a word."""
    pay = [form.format(place % 30) if place % 3 else str(place % 30) for place in range(1, 301)]
    remark, line = lines(engine, tmp_path, pay)
    assert remark.endswith(f"; {REMARK}")
    assert "type: categorical" in line


def test_a_few_of_them_are_not_offered_as_missing(engine: DuckDBEngine, tmp_path: Path) -> None:
    """The question had one declare them missing: a column of refunds lost those that were taken back."""
    pay = [f"({place % 2 + 1})" if place % 50 == 0 else str(place % 30) for place in range(300)]
    remark, line = lines(engine, tmp_path, pay)
    assert line.endswith(f"# 6 rows hold 1 text among numbers; write categorical, or {REMEDY}")
    assert "under missing" not in line
    assert REMARK not in remark


def test_other_columns_have_no_remark(engine: DuckDBEngine, tmp_path: Path) -> None:
    assert "accounts" not in lines(engine, tmp_path, [f"{place % 9}-{place % 9 + 5}" for place in range(300)])[0]
