"""How numbers, dates and marks for "not known" are written, found from the texts of a column alone."""

from __future__ import annotations

import pytest

from anon_pipeline.profiling.value_formats import dates_of, numbers_of, sentinels_of


@pytest.mark.parametrize(
    ("values", "decimal", "thousands", "question"),
    [
        (["1.5", "2", "0.25"], ".", None, False),
        (["1,5", "2", "0,25"], ",", None, False),
        (["1,234.50", "2"], ".", ",", False),
        (["1.234,50", "2"], ",", ".", False),
        (["1'234.50", "2"], ".", "'", False),
        (["1 234,50", "2"], ",", " ", False),
        (["1,234,567", "2"], ".", ",", False),
        (["1,234", "2,345"], ",", None, True),
        (["1.234", "2.345", "9.999"], ".", None, True),
        (["1.234", "2.345", "0.999"], ".", None, False),
        (["1.234", "2.345", "12345.999"], ".", None, False),
    ],
)
def test_how_numbers_are_written(values: list[str], decimal: str, thousands: str | None, question: bool) -> None:
    found = numbers_of({"x": values, "y": ["a", "b"]})
    assert (found.decimal, found.thousands, found.columns) == (decimal, thousands, ("x",))
    assert (found.question is not None) == question


@pytest.mark.parametrize(
    ("values", "decimal", "thousands", "symbols"),
    [
        (["$1,234.50", "$2", "-$3"], ".", ",", ("$",)),
        (["$1,234", "$2,345"], ".", ",", ("$",)),  # amounts of money do not have three decimals
        (["1.234 €", "2.345 €", "9.999 €"], ",", ".", ("€",)),
        (["US$ 5", "US$ 7", "8"], ".", None, ("US$",)),
        (["12%", "7 %", "0,5%"], ",", None, ("%",)),
        (["$5", "$6", "$7", "$8", "$9", "on request"], ".", None, ("$",)),
        (["1,234 kg", "2,345 kg"], ",", None, ("kg",)),  # and a question
        (["118 mmHg", "131 mmHg", "140 mmHg"], ".", None, ("mmHg",)),
        (["30 km/h", "50 km/h", "100km/h"], ".", None, ("km/h",)),
        (["1.72m", "1.80 m", "1.65 m"], ".", None, ("m",)),
        ([" 36 months", " 60 months"], ".", None, ("months",)),
    ],
)
def test_which_symbols_stand_beside_numbers(
    values: list[str], decimal: str, thousands: str | None, symbols: tuple[str, ...]
) -> None:
    found = numbers_of({"x": values, "y": ["a", "b"]})
    assert (found.decimal, found.thousands, found.symbols) == (decimal, thousands, symbols)
    assert (found.question is not None) == ("kg" in symbols)


@pytest.mark.parametrize("values", [["A12", "A13"], ["$5", "5 €"], ["$5", "6", "7"], ["$", "$"], ["kg", "5"], ["0$12"],
                                    ["34m", "27f", "51m"], ["5 years", "18 months", "2 years"]])  # fmt: skip
def test_other_texts_beside_digits_are_no_symbols(values: list[str]) -> None:
    found = numbers_of({"x": values})
    assert found.symbols == () or "x" not in found.columns


@pytest.mark.parametrize(
    ("values", "formats", "question"),
    [
        (["31.12.1999", "1.2.2000"], ("%d.%m.%Y",), False),
        (["12/31/1999", "1/2/2000"], ("%m/%d/%Y",), False),
        (["31/12/1999", "1/2/2000"], ("%d/%m/%Y",), False),
        (["11/12/1999", "1/2/2000"], ("%d/%m/%Y",), True),
        (["1999-12-31", "2000-01-02"], (), False),
        (["1999-12-31", "02.01.2000"], ("%Y-%m-%d", "%d.%m.%Y"), False),
        (["31.12.1999 10:30", "01.01.2000 09:00"], ("%d.%m.%Y %H:%M",), False),
        (["5 Feb 2000", "17 Mar 2001"], ("%d %b %Y",), False),
        (["01/31/2024 09:05 AM", "02/01/2024 11:40 pm"], ("%m/%d/%Y %I:%M %p",), False),
        (["2024-01-31 09:05:00 AM", "2024-02-01 11:40:59 PM"], ("%Y-%m-%d %I:%M:%S %p",), False),
        (["31.12.99", "01.01.50"], ("%d.%m.%y",), True),
        (["Ulm 12", "Bonn 13"], (), False),
        (["123456", "654321"], (), False),
    ],
)
def test_how_dates_are_written(values: list[str], formats: tuple[str, ...], question: bool) -> None:
    found, asked = dates_of(values)
    assert found == formats
    assert (asked is not None) == question


def test_what_is_far_from_all_others_may_stand_for_not_known() -> None:
    assert sentinels_of([18, 20, 44, 70, 90, 999]) == ["999"]
    assert sentinels_of([18, 20, 44, 90, 98, 999]) == ["999"]
    assert sentinels_of([-1, 0, 5, 7, 90]) == ["-1"]
    assert sentinels_of([-9, -8, 0, 5, 7, 90]) == ["-9", "-8"]
    assert sentinels_of([1, 2, 3, 4, 5, 97, 98, 99]) == ["97", "98", "99"]
    assert sentinels_of([-8, 1, 2, 3, 4, 5, 888]) == ["-8", "888"]
    assert sentinels_of([0, 12, 38, 40, 60, 666, 777]) == ["666", "777"]
    assert sentinels_of([0, 900, 1400, 2500, 6666, 7777, 8888]) == ["6666", "7777", "8888"]
    for plain in ([1, 2, 3, 4, 9], [18, 98, 97, 96, 99], [-5, -3, -1, 4, 9], [1, 99], [], [99], [20, 40, 60, 80, 97]):
        assert sentinels_of(plain) == []
