"""The sensitive columns of a table that `verify` judges: read as the run reads them, whose figures it repeats."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.measured_columns import with_values_of
from anon_pipeline.privacy.verdict import Verdict, verify_by_spec
from anon_pipeline.spec import Source
from anon_pipeline_tests.people import write_spec

#: Three classes of four people each; no two have the same value.
TOWNS = [town for town in "abc" for _ in range(4)]
DAYS = [date(1999, 1, 5) + timedelta(days=41 * place) for place in range(12)]
NUMBERS = [place * 412.5 for place in range(12)]
WHOLE = [place * 300 for place in range(12)]  # from 1.200 on, which is also a number as SQL writes it
DATE = {"role": "sensitive", "type": "date"}
NUMBER = {"role": "sensitive", "type": "numeric"}


def german(value: float) -> str:
    return f"{value:,.1f}".translate(str.maketrans(",.", ".,"))


def judged(engine: DuckDBEngine, folder: Path, fields: list[Any], said: Any, source: dict[str, Any]) -> Verdict:
    """The verdict of a spec on a CSV with these fields, or on a Parquet table where they are no texts."""
    frame = pd.DataFrame({"town": TOWNS, "born": fields})
    demands = {"k_anonymity": {"k": 4}, "t_closeness": [{"column": "born", "t": 1}]}
    file = folder / "people.csv"
    frame.to_csv(file, index=False)
    spec = write_spec(
        folder,
        {"town": "quasi_identifier", "born": said},
        file.name,
        source={"path": file.name, **source},
        target="born",
        privacy=demands,
    )
    if not all(isinstance(field, str) for field in fields):
        file = folder / "people.parquet"
        frame.to_parquet(file)
    written = with_values_of(Source(path=file.name), spec.source)
    table = engine.import_table(file, folder, {"born": spec.columns["born"]}, written)
    return verify_by_spec(engine, table, spec, folder / "classes.parquet")


@pytest.mark.parametrize(
    ("values", "fields", "said", "source"),
    [
        (DAYS, [f"{day:%d.%m.%Y}" for day in DAYS], {**DATE, "format": "%d.%m.%Y"}, {}),
        (DAYS, [f"{day:%m/%d/%Y}" for day in DAYS], {**DATE, "format": "%m/%d/%Y"}, {}),
        (DAYS, [f"{day:%d%m%Y}" for day in DAYS], {**DATE, "format": "%d%m%Y"}, {}),
        (DAYS, [str(day) for day in DAYS], {**DATE, "format": "%d.%m.%Y"}, {}),
        (NUMBERS, [german(number) for number in NUMBERS], NUMBER, {"decimal": ",", "thousands": "."}),
        (WHOLE, [german(number).removesuffix(",0") for number in WHOLE], NUMBER, {"decimal": ",", "thousands": "."}),
        (NUMBERS, [f"{number} €" for number in NUMBERS], NUMBER, {"symbols": ["€"]}),
        (NUMBERS, [str(number) for number in NUMBERS], NUMBER, {"decimal": ",", "thousands": "."}),
        ([None, *NUMBERS[1:]], ["?", *map(str, NUMBERS[1:])], NUMBER, {"missing": ["?"]}),
        ([None, *DAYS[1:]], ["k. A.", *map(str, DAYS[1:])], {**DATE, "missing": ["k. A."]}, {}),
    ],
    ids=[
        "day first",
        "month first",
        "digits",
        "ISO",
        "comma",
        "thousands",
        "symbol",
        "point",
        "marker",
        "marker of the column",
    ],
)
def test_a_text_file_has_the_figures_of_the_values_that_the_spec_says_stand_in_it(
    engine: DuckDBEngine, tmp_path: Path, values: list[Any], fields: list[str], said: Any, source: dict[str, Any]
) -> None:
    """Dates that are not written as ISO 8601 has them were texts without an order, and so were other numbers."""
    of_text = judged(engine, tmp_path, fields, said, source)
    of_values = judged(engine, tmp_path, values, said, source)
    # Along the order, three classes one after another; where a value is missing, the class of the other three is worst.
    assert of_text.findings[1].measured == pytest.approx(4 / 10 if None in values else 4 / 11)
    assert of_text.notes == []
    assert of_text.to_json() == of_values.to_json()


@pytest.mark.parametrize(
    ("said", "source", "first", "named"),
    [
        ({**DATE, "format": "%d.%m.%Y"}, {}, "4 May 1999", "dates"),
        (DATE, {}, "05.01.1999", "dates"),
        (NUMBER, {"symbols": ["€", "$"]}, "5 $", "numbers"),
    ],
)
def test_what_cannot_be_read_in_an_order_is_told(
    engine: DuckDBEngine, tmp_path: Path, said: Any, source: dict[str, Any], first: str, named: str
) -> None:
    """Nothing said that the figures were those of categories."""
    others = [f"{day:%d.%m.%Y}" for day in DAYS[1:]] if named == "dates" else [f"{place} €" for place in range(11)]
    verdict = judged(engine, tmp_path, [first, *others], said, source)
    assert verdict.holds
    (note,) = verdict.notes
    assert note.startswith(f"columns.born: the spec says that it holds {named}, and some of its values are written in")
    assert not any(value in note for value in (first, *others))
    assert verdict.to_json()["notes"] == [note]


@pytest.mark.parametrize("said", [{**DATE, "steps": [{"technique": "bin", "width": 5}]}, {"role": "sensitive"}])
def test_what_a_run_does_not_order_either_is_no_surprise(engine: DuckDBEngine, tmp_path: Path, said: Any) -> None:
    assert judged(engine, tmp_path, [f"the {day:%d.%m.%Y}" for day in DAYS], said, {}).notes == []


def test_a_column_without_a_value_is_not_said_to_be_written_otherwise(engine: DuckDBEngine, tmp_path: Path) -> None:
    assert judged(engine, tmp_path, [""] * 12, DATE, {}).notes == []


@pytest.mark.parametrize(
    "fields",
    [
        [str(2**53 + place) for place in range(12)],
        [str(2**63 - 6 + place) for place in range(12)],
        [f"{2**53 + place}.5" for place in range(12)],
        [f"0.{10**20 + place}" for place in range(12)],
    ],
    ids=["beyond 2^53", "around 2^63", "with fractions", "small ones"],
)
def test_numbers_of_a_text_file_are_as_many_as_stand_in_it(
    engine: DuckDBEngine, tmp_path: Path, fields: list[str]
) -> None:
    """As floats most of them were one value, so that the diversity of such a table was denied."""
    verdict = judged(engine, tmp_path, fields, NUMBER, {})
    assert verdict.sensitive["born"]["distinct_l"] == 4
    assert verdict.findings[1].measured == pytest.approx(4 / 11)  # along their order
