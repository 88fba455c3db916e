"""Each value is read by itself: one odd cell changes what is counted of its own row, and of no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anon_pipeline.differential_privacy import answering, reading
from anon_pipeline.differential_privacy.answering import Exact
from anon_pipeline.differential_privacy.plan import Measurement
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.synthesis.coded_table import Axis, read_coded
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.spark import SparkEngine
from anon_pipeline.engine.text_files import delimiter_of_header
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.tables import plan_of, policy
from anon_pipeline_tests.skips import require_package

ROWS = 60
PERSON = {"person": "patient", "groups": 1, "rows": 1}
DOMAINS: dict[str, Any] = {
    "visits": {"values": ["0", "1", "2"], "why": "the form asks so"},
    "weight": {"range": [0, 8], "step": 0.5, "why": "a scale of halves"},
    "city": {"values": ["Aberdeen", "Bergen", "Cork"], "why": "three clinics"},
}
LABELS = ("none", "one", "two")
QUESTIONS = (
    "SELECT visits, COUNT(*) FROM people GROUP BY visits",
    "SELECT city, COUNT(*), SUM(weight) FROM people WHERE weight < 6 OR visits IS NULL GROUP BY city",
)


def people() -> pd.DataFrame:
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "patient": 1 + np.arange(ROWS) // 2,
            "visits": random.integers(0, 3, ROWS),
            "weight": random.integers(0, 17, ROWS) / 2,
            "city": random.choice(["Aberdeen", "Bergen", "Cork"], ROWS),
        }
    )


def spec_of(folder: Path, name: str, unit: Any = "row", visits: Any = None, **source: Any) -> ReleaseSpec:
    content = policy(unit)
    content["columns"] = {column: {"role": "insensitive"} for column in DOMAINS} | {
        "patient": {"role": "identifier"},
        "ill": {"role": "quasi_identifier", "type": "categorical"},
    }
    content["source"] = {"path": name, **source}
    content["target"] = "city"
    content["differential_privacy"]["domains"] = DOMAINS if visits is None else DOMAINS | {"visits": visits}
    (folder / "release.yaml").write_text(yaml.safe_dump(content))
    return ReleaseSpec.load(folder)


def write_lines(rows: list[dict[str, Any]], file: Path) -> None:
    file.write_text("\n".join(json.dumps({"ill": "no", **row}) for row in rows))


def write_list(rows: list[dict[str, Any]], file: Path) -> None:
    file.write_text(json.dumps([{"ill": "no", **row} for row in rows]))


def write_commas(rows: list[dict[str, Any]], file: Path) -> None:
    text = [";".join(["ill", *rows[0]])]
    text += [";".join(["no", *(_with_comma(value) for value in row.values())]) for row in rows]
    file.write_text("\n".join(text))


def write_sav(rows: list[dict[str, Any]], file: Path) -> None:
    pyreadstat = require_package("pyreadstat")
    frame = pd.DataFrame(rows).assign(ill="no")
    pyreadstat.write_sav(frame, str(file), variable_value_labels={"visits": dict(enumerate(LABELS))})


def write_parquet(rows: list[dict[str, Any]], file: Path) -> None:
    pq.write_table(pa.Table.from_pandas(pd.DataFrame(rows).assign(ill="no"), preserve_index=False), file)


def _with_comma(value: Any) -> str:
    return "" if value is None else str(value).replace(".", ",")


KINDS: dict[str, tuple[str, Callable[[list[dict[str, Any]], Path], None], dict[str, Any], tuple[Any, ...]]] = {
    "JSON, a line each": ("people.jsonl", write_lines, {}, (2.5, "x", "2024-01-01", True, None, [1], {"a": 1}, 10**30)),
    "JSON, a list": ("people.json", write_list, {}, (2.5, "x", "2024-01-01", None)),
    "JSON with commas": ("people.jsonl", write_lines, {"decimal": ","}, (2.5, "2,5", "x")),
    "decimal commas": ("people.csv", write_commas, {"decimal": ",", "delimiter": ";"}, (2.5, "not asked", None)),
    "a delimiter that the header shows": ("people.csv", write_commas, {"decimal": ","}, (2.5, "not asked", None)),
    "SPSS": ("people.sav", write_sav, {}, (2.5, 7.0, None)),
    "Parquet": ("people.parquet", write_parquet, {}, (2.5, 7, None, np.inf, np.nan, 1e300)),
}


def exact(engine: DuckDBEngine | SparkEngine, spec: ReleaseSpec, question: str) -> Exact:
    readable = reading.readable(spec)
    return answering.read(plan_of(spec, question), readable, lambda query: engine.aggregated(readable, query))


def counted(engine: DuckDBEngine, spec: ReleaseSpec) -> dict[Any, list[int]]:
    """What noise is added to, by question and group; the counts of the synthetic table, too."""
    found: dict[Any, list[int]] = {}
    for question in QUESTIONS:
        told = exact(engine, spec, question)
        kinds = [Measurement("count")] + ([Measurement("sum", "weight")] if "weight" in question else [])
        for cell in told.cells:
            found[question, cell] = [told.numbers(kind, [cell])[0] for kind in kinds]
    coded = read_coded(engine, spec, [Axis.of(name, domain) for name, domain in asked_of(spec).domains.items()])
    for codes, number in zip(coded.codes.tolist(), coded.people.tolist(), strict=True):
        found["synthetic", tuple(codes)] = [number]
    return found


def moved(one: dict[Any, list[int]], other: dict[Any, list[int]]) -> int:
    """By how many rows two counts differ, over all groups of the question where they differ most."""
    rows: dict[str, int] = {}
    for key in one.keys() | other.keys():
        rows[key[0]] = rows.get(key[0], 0) + abs(one.get(key, [0])[0] - other.get(key, [0])[0])
    return max(rows.values())


@pytest.mark.long
@pytest.mark.parametrize("unit", ["row", PERSON], ids=["row", "person"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_value_moves_its_own_row_alone(kind: str, unit: Any, tmp_path: Path, engine: DuckDBEngine) -> None:
    name, write, source, odd = KINDS[kind]
    visits = {"values": LABELS if kind == "SPSS" else ("0", "1", "2"), "why": "the form asks so"}
    spec, rows = spec_of(tmp_path, name, unit, visits, **source), people().to_dict("records")
    write(rows, tmp_path / name)
    before = counted(engine, spec)
    groups = {key: number for key, number in before.items() if key[0] == QUESTIONS[0]}
    assert len(groups) == 3, "a whole number is a value of the domain, however it is stored"
    assert sum(number[0] for number in groups.values()) == (ROWS if unit == "row" else ROWS // 2)
    whole = exact(engine, spec_of(tmp_path, name, **source), "SELECT SUM(weight) FROM people")
    assert whole.numbers(Measurement("sum", "weight"), [()]) == [int(2 * people()["weight"].sum())]
    for column in ("visits", "weight", "patient"):
        for value in odd:
            write([row | ({column: value} if place == 17 else {}) for place, row in enumerate(rows)], tmp_path / name)
            # A value in place of another: a row that goes and a row that comes. A person with another identifier is
            # two people, of each of whom another row may be kept: one goes, and two come.
            most = 2 if column != "patient" or unit == "row" else 3
            assert moved(before, counted(engine, spec)) <= most, f"{column}: {value!r}"


def test_codes_of_a_renamed_column_are_their_labels(tmp_path: Path, engine: DuckDBEngine) -> None:
    """They were read as numbers, so that nobody had a value of the public domain."""
    frame = people().rename(columns={"visits": "code"}).assign(ill="no")
    pyreadstat = require_package("pyreadstat")
    labels = {"code": dict(enumerate(LABELS))}
    pyreadstat.write_sav(frame, str(tmp_path / "p.sav"), variable_value_labels=labels)
    spec = spec_of(tmp_path, "p.sav", "row", {"values": LABELS, "why": "the form asks so"}, rename={"code": "visits"})
    told = exact(engine, spec, QUESTIONS[0])
    counts = told.numbers(Measurement("count"), [(0,), (1,), (2,)])
    assert counts == people()["visits"].value_counts().sort_index().tolist()


def test_a_column_that_nobody_has_is_no_error_in_json(tmp_path: Path, engine: DuckDBEngine) -> None:
    """Without an answer that costs, nobody learns whether somebody has a value, or one of another kind."""
    for value in (None, 2.0, "2024-01-01"):
        rows = [{name: of for name, of in row.items() if name != "weight"} for row in people().to_dict("records")]
        write_lines([*rows[1:], rows[0] | ({} if value is None else {"weight": value})], tmp_path / "people.jsonl")
        told = exact(engine, spec_of(tmp_path, "people.jsonl"), "SELECT COUNT(*), COUNT(weight) FROM people")
        assert told.numbers(Measurement("count"), [()]) == [ROWS]
        assert told.numbers(Measurement("known", "weight"), [()]) == [1 if value == 2.0 else 0]


def test_a_number_that_no_float_holds_is_missing(tmp_path: Path, engine: DuckDBEngine) -> None:
    """It must not end the question: that would tell of it."""
    write_lines(people().to_dict("records"), tmp_path / "people.jsonl")
    text = (tmp_path / "people.jsonl").read_text()
    (tmp_path / "people.jsonl").write_text(text.replace('"visits": 1', '"visits": 1e400', 1))
    told = exact(engine, spec_of(tmp_path, "people.jsonl"), QUESTIONS[0])
    assert sum(told.numbers(Measurement("count"), [(0,), (1,), (2,)])) == ROWS - 1


def test_records_within_json_are_read(tmp_path: Path, engine: DuckDBEngine) -> None:
    rows = [{**row, "stay": {"the weight": row.pop("weight")}} for row in people().to_dict("records")]
    write_lines(rows, tmp_path / "people.jsonl")
    spec = spec_of(tmp_path, "people.jsonl", paths={"weight": 'stay."the weight"'}, rename={"city": "city"})
    told = exact(engine, spec, "SELECT COUNT(weight), SUM(weight) FROM people")
    assert told.numbers(Measurement("known", "weight"), [()]) == [ROWS]
    assert told.numbers(Measurement("sum", "weight"), [()]) == [int(2 * people()["weight"].sum())]


@pytest.mark.parametrize("values", [["0", "1", "2"], ["0.0", "1.0", "2.0"]])
@pytest.mark.parametrize("kind", ["int64", "float64", "float32", "str"])
def test_a_whole_number_has_one_text(kind: str, values: list[str], tmp_path: Path, engine: DuckDBEngine) -> None:
    """Also where the domain was written for numbers that were stored with a point."""
    frame = people()
    pq.write_table(pa.Table.from_pandas(frame.astype({"visits": kind}).assign(ill="no")), tmp_path / "people.parquet")
    spec = spec_of(tmp_path, "people.parquet", visits={"values": values, "why": "the form asks so"})
    told = exact(engine, spec, f"SELECT visits, COUNT(*) FROM people WHERE visits <> '{values[2]}' GROUP BY visits")
    expected = frame["visits"].value_counts()
    assert told.numbers(Measurement("count"), [(0,), (1,), (2,)]) == [expected[0], expected[1], 0]


@pytest.mark.long
@pytest.mark.parametrize("unit", ["row", PERSON], ids=["row", "person"])
@pytest.mark.parametrize("name", ["people.csv", "people.jsonl"])
def test_whole_numbers_that_a_gap_gave_a_point_are_what_they_were(
    name: str, unit: Any, tmp_path: Path, engine: DuckDBEngine
) -> None:
    """A program writes 1.0 in place of every 1 as soon as one person of the column has no number."""

    def written(frame: pd.DataFrame) -> dict[Any, list[int]]:
        table = frame.assign(ill="no")
        text = table.to_csv(index=False) if name.endswith("csv") else table.to_json(orient="records", lines=True)
        (tmp_path / name).write_text(text)
        return counted(engine, spec_of(tmp_path, name, unit, missing=["2"]))

    before = written(people())
    for column in ("visits", "patient"):
        with_gap = people().astype({column: "float64"})
        with_gap.loc[17, column] = np.nan
        assert moved(before, written(with_gap)) <= 2, column


def test_codes_with_a_leading_zero_are_not_numbers(tmp_path: Path, engine: DuckDBEngine) -> None:
    rows = people().assign(visits=["01"] * 20 + ["1"] * (ROWS - 20)).to_dict("records")
    write_parquet(rows, tmp_path / "people.parquet")
    told = exact(engine, spec_of(tmp_path, "people.parquet"), QUESTIONS[0])
    assert told.numbers(Measurement("count"), [(0,), (1,), (2,)]) == [0, ROWS - 20, 0]


def test_numbers_of_single_precision_are_those_that_were_written(tmp_path: Path, engine: DuckDBEngine) -> None:
    visits = {"bins": [0, 0.7, 1], "why": "two halves"}
    spec = spec_of(tmp_path, "people.parquet", visits=visits)
    numbers = np.array([0.7] * 20 + [0.69] * 10 + [np.nan] * 5 + [np.inf] * 5 + [1e30] * 5, dtype=np.float32)
    table = pa.Table.from_pandas(people().iloc[: len(numbers)].assign(ill="no"), preserve_index=False)
    place = table.column_names.index("visits")
    pq.write_table(table.set_column(place, "visits", pa.array(numbers)), tmp_path / "people.parquet")
    told = exact(engine, spec, QUESTIONS[0])
    assert told.numbers(Measurement("count"), [(0,), (1,), (None,)]) == [10, 25, 10]
    told = exact(engine, spec, "SELECT COUNT(*) FROM people WHERE visits = 0.7")
    assert told.numbers(Measurement("count"), [()]) == [20]


def test_no_number_of_one_person_makes_a_question_fail_on_spark(quick_spark: None, tmp_path: Path) -> None:
    """One code of 1e30, or an infinite one, made every question on its column fail, paid, and so told that it is there.

    Days among moments and numbers of single precision are read as DuckDB reads them, too.
    """
    engines = DuckDBEngine(tmp_path / "duckdb", threads=1), SparkEngine(tmp_path / "spark", threads=1)
    codes = pa.array([2.0] * 20 + [0.7] * 20 + [None, np.nan, np.inf, -np.inf, 1e30, -(2.0**53), 2.0**64])
    days = pa.array([datetime(2024, 1, 1)] * 20 + [datetime(2024, 1, 2, 10)] * 27, pa.timestamp("us"))
    coded = {"values": ["2", "0.7", "-9007199254740992"], "why": "codes"}
    for column, visits in (
        (codes, coded),
        (codes.cast(pa.float32()), {"bins": [0, 0.7, 1], "why": "halves"}),
        (days, {"values": ["2024-01-01"], "why": "days"}),
    ):
        table = pa.Table.from_pandas(people().iloc[: len(column)].assign(ill="no"), preserve_index=False)
        place = table.column_names.index("visits")
        pq.write_table(table.set_column(place, "visits", column), tmp_path / "people.parquet")
        spec = spec_of(tmp_path, "people.parquet", visits=visits)
        cells: list[Any] = [(0,), (1,), (2,), (None,)]
        one, other = (exact(engine, spec, QUESTIONS[0]).numbers(Measurement("count"), cells) for engine in engines)
        assert one == other and sum(one) == len(column)
        assert visits is not coded or one == [20, 20, 1, 6]


def test_a_public_day_is_found_where_days_are_stored_as_moments(tmp_path: Path, engine: DuckDBEngine) -> None:
    """pandas has no days: of a Parquet file that it wrote, nobody had any of the public days, and the budget paid."""
    visits = {"values": ["2024-01-01", "2024-01-02", "2024-01-02 10:30:00"], "why": "the days of the survey"}
    spec = spec_of(tmp_path, "people.parquet", visits=visits)
    hours = [0] * 20 + [24] * 15 + [34.5] * 10 + [35] * 5
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, "h")
    for zone in (None, "UTC"):
        frame = people().iloc[: len(hours)].assign(visits=moments.tz_localize(zone))
        write_parquet(frame.to_dict("records"), tmp_path / "people.parquet")
        told = exact(engine, spec, QUESTIONS[0])
        assert told.numbers(Measurement("count"), [(0,), (1,), (2,), (None,)]) == [20, 15, 10, 5]


def test_a_range_over_dates_is_refused_where_the_schema_shows_them(tmp_path: Path, engine: DuckDBEngine) -> None:
    rows = people().assign(weight=pd.Timestamp("2024-01-01")).to_dict("records")
    write_parquet(rows, tmp_path / "people.parquet")
    with pytest.raises(InputError, match="has a range or bins, and the source holds TIMESTAMP"):
        exact(engine, spec_of(tmp_path, "people.parquet"), "SELECT COUNT(weight) FROM people")


def test_texts_with_commas_are_not_converted_if_all_of_them_are_numbers(tmp_path: Path, engine: DuckDBEngine) -> None:
    rows = people().assign(visits="0,5").to_dict("records")
    spec = spec_of(tmp_path, "people.csv", visits={"values": ["0,5"], "why": "halves"}, decimal=",", delimiter=";")
    for odd in (0, 1):
        write_commas([*({**row, "visits": "not asked"} for row in rows[:odd]), *rows[odd:]], tmp_path / "people.csv")
        told = exact(engine, spec, QUESTIONS[0])
        assert told.numbers(Measurement("count"), [(0,), (None,)]) == [ROWS - odd, odd]


@pytest.mark.parametrize(
    ("header", "source", "delimiter"),
    [
        ("patient;ill;visits;weight;city", {}, ";"),
        ("\ufeffpatient,ill,visits,weight,city", {}, ","),
        ("patient\till\tvisits\tweight, in stones\tcity", {"rename": {"weight, in stones": "weight"}}, "\t"),
        ("a table; of people; and more; words\npatient|ill|visits|weight|city", {"skip": 1}, "|"),
        ("patient;ill;visits;;city\n;;;weight;", {"header": 2}, ";"),
        ('"patient",ill,"VISITS",weight,"the city; where"', {"rename": {"the city; where": "city"}}, ","),
    ],
)
def test_the_header_shows_the_delimiter(header: str, source: dict[str, Any], delimiter: str, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "people.csv", **source)
    for rows in ("1;2,3;4,5\t6|7", "no|no,no,no,no,no\n" * 9, ""):
        (tmp_path / "people.csv").write_text(f"{header}\n{rows}", encoding="utf-8")
        names = ["patient", "ill", "visits", *source.get("rename", {"weight": "weight"})]
        assert delimiter_of_header(spec.source, tmp_path / "people.csv", "people.csv", names) == delimiter


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("1;no;0;2,5;Cork\n", {"header": 0, "names": ["patient", "ill", "visits", "weight", "city"]}),
        ("patient:ill:visits:weight:city\n1:no:0:2.5:Cork\n", {}),
    ],
)
def test_the_delimiter_is_never_guessed_from_rows(
    text: str, source: dict[str, Any], tmp_path: Path, engine: DuckDBEngine
) -> None:
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(InputError, match=r"source\.delimiter: say what separates"):
        exact(engine, spec_of(tmp_path, "people.csv", **source), QUESTIONS[0])
    stated = spec_of(tmp_path, "people.csv", delimiter=text[1] if text[0] == "1" else ":", decimal=",", **source)
    assert sum(exact(engine, stated, QUESTIONS[0]).numbers(Measurement("count"), [(0,), (1,), (2,)])) == 1


@pytest.mark.parametrize("value", [r"no\\yes", "no''yes"])
def test_no_row_shows_how_quotes_are_written(value: str, tmp_path: Path, engine: DuckDBEngine) -> None:
    """One field with a quote after a backslash made another text of each field with two of them, of all people."""
    visits = {"values": [value, "no"], "why": "the form asks so"}
    spec = spec_of(tmp_path, "people.csv", visits=visits)
    rows = [f'1,no,"{value}",2.5,Cork' for _ in range(ROWS)]
    for odd in ('1,no,"no ""yes""",2.5,Cork', f'1,no,"no {value[2]}"yes",2.5,Cork'):
        (tmp_path / "people.csv").write_text("\n".join(["patient,ill,visits,weight,city", *rows, odd]))
        try:
            told = exact(engine, spec, QUESTIONS[0])
        except InputError:  # such a file is in no form that is read, and no figure is told
            continue
        assert told.numbers(Measurement("count"), [(0,), (1,), (None,)]) == [ROWS, 0, 1]


def test_no_row_decides_where_the_fields_of_others_end(tmp_path: Path, engine: DuckDBEngine) -> None:
    """A field that began with a quote took all rows below it, up to one that ended with a quote, without an error."""
    spec = spec_of(tmp_path, "people.csv")

    def told(*odd: tuple[int, str]) -> list[int] | None:
        rows = ["1,no,0,2.5,Cork"] * ROWS
        for place, row in odd:
            rows[place] = row
        (tmp_path / "people.csv").write_text("\n".join(["patient,ill,visits,weight,city", *rows, ""]))
        try:
            return exact(engine, spec, QUESTIONS[0]).numbers(Measurement("count"), [(0,), (None,)])
        except InputError:  # it is not told how many there are
            return None

    opens, closes = (5, '1,"no,0,2.5,Cork'), (50, '1,no",0,2.5,Cork')
    assert told() == [ROWS, 0]
    assert told((5, '1,"n""o",0,2.5,Cork')) == [ROWS, 0]
    files = [told(*odd) for odd in ((), (opens,), (closes,), (opens, closes))]
    # A file of which something is told has a neighbour of which nothing is, or one that differs by a row.
    assert files[1] is None
    assert files[2] is None
