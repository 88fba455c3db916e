"""Workbooks, zips, JSON, Arrow and the files of SPSS, Stata and SAS are the same people as the Parquet file of them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest
import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.unpacked import _field
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.spec import ReleaseSpec, Source
from anon_pipeline_tests.people import write_spec

N = 60
#: A value of a person that nothing may repeat.
SECRET = "Ottilie"
COLUMNS = {
    "age": "quasi_identifier",
    "town": "quasi_identifier",
    "born": {"role": "quasi_identifier", "type": "date"},
    "health": {"role": "quasi_identifier", "type": "categorical"},
    "weight": "insensitive",
    "ill": "sensitive",
}
HEALTH = {1: "bad", 2: "fair", 3: "good"}


def _people() -> pd.DataFrame:
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, N).astype(float),
            "town": random.choice(["Köln", "Łódź, PL", SECRET], N),
            "born": [date(1960, 1, 1) + pd.Timedelta(days=int(day)) for day in random.integers(1, 9000, N)],
            "health": random.choice(list(HEALTH), N).astype(float),
            "weight": random.normal(70, 9, N).round(1),
            "ill": random.choice(["yes", "no"], N),
        }
    )
    frame.loc[[3, 7], "age"] = np.nan
    frame.loc[5, "health"] = np.nan
    frame.loc[9, "town"] = ""
    return frame


PEOPLE = _people()


def _with_labels() -> pd.DataFrame:
    labels = PEOPLE["health"].map(HEALTH)
    return PEOPLE.assign(age=PEOPLE["age"].astype("Int64"), health=labels, town=PEOPLE["town"].replace("", None))


def as_parquet(path: Path) -> None:
    table = pa.Table.from_pandas(_with_labels())
    pq.write_table(table, path)


def as_workbook(path: Path) -> None:
    _with_labels().to_excel(path, index=False)


def as_sheet_of_several(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["a note to whoever opens this"])
    sheet = book.create_sheet("people")
    sheet.append(list(PEOPLE.columns))
    for row in _with_labels().astype(object).where(_with_labels().notna(), None).itertuples(index=False):
        sheet.append(list(row))
    book.save(path)


def as_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("folder/people.csv", _with_labels().to_csv(index=False))
        packed.writestr("__MACOSX/._people.csv", b"\0")


def as_json_lines(path: Path) -> None:
    rows = _with_labels().assign(born=lambda frame: frame["born"].map(str))
    rows.to_json(path, orient="records", lines=True, force_ascii=False)


def as_json_list(path: Path) -> None:
    _with_labels().assign(born=lambda frame: frame["born"].map(str)).to_json(path, orient="records")


def as_arrow_file(path: Path) -> None:
    table = pa.Table.from_pandas(_with_labels())
    pyarrow.feather.write_feather(table, path, compression="zstd")


def as_arrow_stream(path: Path) -> None:
    table = pa.Table.from_pandas(_with_labels())
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=7)


def as_spss(path: Path) -> None:
    coded = PEOPLE.assign(health=PEOPLE["health"].fillna(9))
    labels = {"health": {**HEALTH, 9: "refused"}}
    pyreadstat.write_sav(
        coded,
        path,
        variable_value_labels=labels,
        missing_ranges={"health": [9]},
        variable_measure={"health": "ordinal"},
    )


def as_stata(path: Path) -> None:
    pyreadstat.write_dta(PEOPLE, path, variable_value_labels={"health": HEALTH})


def as_sas(path: Path) -> None:
    pyreadstat.write_xport(
        _with_labels().assign(age=PEOPLE["age"], health=lambda frame: frame["health"].fillna("")), path
    )


FORMATS: dict[str, tuple[str, Callable[[Path], None], dict[str, str]]] = {
    "workbook": ("people.xlsx", as_workbook, {}),
    "one sheet of several": ("several.xlsx", as_sheet_of_several, {"sheet": "people"}),
    "zip": ("people.zip", as_zip, {}),
    "JSON lines": ("people.jsonl", as_json_lines, {}),
    "JSON list": ("people.json", as_json_list, {}),
    "Arrow file": ("people.feather", as_arrow_file, {}),
    "Arrow stream": ("people.arrows", as_arrow_stream, {}),
    "SPSS": ("people.sav", as_spss, {}),
    "Stata": ("people.dta", as_stata, {}),
    "SAS": ("people.xpt", as_sas, {}),
}


def content_hash(engine: DuckDBEngine, folder: Path, name: str, write: Callable[[Path], None], said: Any) -> str:
    write(folder / name)
    spec = write_spec(folder, COLUMNS, name, source={"path": name, **said}, target="ill")
    return engine.store_source(spec, folder / "stored.parquet").content_hash


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_a_file_is_the_same_people_as_the_parquet_file_of_them(engine: DuckDBEngine, tmp_path: Path, form: str) -> None:
    parquet = content_hash(engine, tmp_path, "people.parquet", as_parquet, {})
    assert content_hash(engine, tmp_path, *FORMATS[form]) == parquet
    left = {"people.parquet", FORMATS[form][0], "release.yaml", "stored.parquet", "spill"}
    assert {path.name for path in tmp_path.iterdir()} <= left, "nothing that was unpacked stays"


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_init_takes_the_file(engine: DuckDBEngine, tmp_path: Path, form: str) -> None:
    name, write, said = FORMATS[form]
    write(tmp_path / name)
    made = start_dataset(
        engine, DatasetRequest("people", tmp_path / name, source=Source(path=name, **said)), tmp_path / "data"
    )
    text = made.file.read_text(encoding="utf-8")
    assert SECRET not in text
    proposed = yaml.safe_load(text)
    assert list(proposed["columns"]) == list(COLUMNS)
    assert [proposed["columns"][column]["type"] for column in ("age", "born", "weight")] == [
        "numeric",
        "date",
        "numeric",
    ]
    assert proposed["source"] == {"path": f"../../{name}", **said}
    levels = proposed["columns"]["health"].get("levels")
    assert levels == (["bad", "fair", "good"] if form == "SPSS" else None)
    text = text.replace("target: decide", "target: ill")
    for column, role in {"health": "quasi_identifier", "ill": "sensitive"}.items():
        text = text.replace(f"{column}: {{role: decide", f"{column}: {{role: {role}")
    made.file.write_text(text, encoding="utf-8")
    assert engine.store_source(ReleaseSpec.load(made.file), tmp_path / "stored.parquet").rows == N


def test_numbers_stay_numbers_where_only_some_of_them_have_a_label(engine: DuckDBEngine, tmp_path: Path) -> None:
    pyreadstat.write_dta(PEOPLE, tmp_path / "people.dta", variable_value_labels={"age": {99: "refused"}})
    spec = write_spec(tmp_path, COLUMNS, "people.dta", source={"path": "people.dta"}, target="ill")
    engine.store_source(spec, tmp_path / "stored.parquet")
    ages = pq.read_table(tmp_path / "stored.parquet")["age"]
    assert ages.type == pa.int64(), "no fraction occurs"
    assert ages.drop_null().to_pandas().between(18, 80).all()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (41.0, "41"),
        (0.1, "0.1"),
        (2.0**53 - 1, "9007199254740991"),
        (2.0**53, repr(2.0**53)),
        (True, "true"),
        ("00123", "00123"),
        (datetime(2024, 1, 31), "2024-01-31"),
        (datetime(2024, 1, 31, 9, 30), "2024-01-31 09:30:00"),
        (date(2024, 1, 31), "2024-01-31"),
        (time(9, 30), "09:30:00"),
    ],
)
def test_a_cell_is_the_text_that_a_csv_would_have(value: object, text: str) -> None:
    assert _field(value) == text


def two_files(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.csv", SECRET)
        packed.writestr("b.csv", SECRET)


def a_picture(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.png", SECRET)


def as_plain_text(path: Path) -> None:
    path.write_text(f"age,town,ill\n31,{SECRET},yes\n")


def broken(path: Path) -> None:
    path.write_bytes(b"PK" + SECRET.encode() * 40)


def empty_workbook(path: Path) -> None:
    openpyxl.Workbook().save(path)


def nested(path: Path) -> None:
    path.write_text('{"age": 4, "town": {"name": "' + SECRET + '"}, "ill": "no"}\n')


@pytest.mark.parametrize(
    ("name", "write", "said", "sentence"),
    [
        ("p.zip", two_files, {}, "p.zip: holds 2 files; pack one text file"),
        ("p.zip", a_picture, {}, "p.zip: holds a file that is no .csv"),
        ("p.zip", broken, {}, "p.zip: cannot be read: it is no intact zip"),
        ("p.xlsx", broken, {}, "p.xlsx: cannot be read: it is no intact workbook"),
        ("p.xlsx", empty_workbook, {}, "p.xlsx: is empty"),
        (
            "p.xlsx",
            as_sheet_of_several,
            {},
            "source.sheet: p.xlsx has the sheets Sheet, people; say which holds the people",
        ),
        ("p.xlsx", as_workbook, {"sheet": "staff"}, "source.sheet: p.xlsx has no sheet staff; it has Sheet1"),
        ("p.csv", broken, {"sheet": "staff"}, "source.sheet: only a workbook"),
        ("p.sav", broken, {}, "p.sav: cannot be read: it is no intact file of its kind"),
        ("p.dta", broken, {}, "p.dta: cannot be read: it is no intact file of its kind"),
        ("p.sas7bdat", broken, {}, "p.sas7bdat: cannot be read: it is no intact file of its kind"),
        ("p.feather", broken, {}, "p.feather: cannot be read"),
        ("p.jsonl", broken, {}, "p.jsonl: cannot be read"),
        (
            "p.csv.gz",
            as_plain_text,
            {"encoding": "latin-1"},
            "p.csv.gz: cannot be read: it is not packed as its name says",
        ),
        ("p.jsonl", nested, {}, "columns.town"),
    ],
)
def test_what_is_no_table_is_told_in_a_sentence(
    engine: DuckDBEngine, tmp_path: Path, name: str, write: Callable[[Path], None], said: Any, sentence: str
) -> None:
    write(tmp_path / name)
    columns = {"age": "quasi_identifier", "town": "quasi_identifier", "ill": "sensitive"}
    spec = write_spec(tmp_path, columns, name, source={"path": name, **said}, target="ill")
    with pytest.raises(InputError) as error:
        engine.store_source(spec, tmp_path / "stored.parquet")
    message = str(error.value)
    assert sentence in message
    assert SECRET not in message


@pytest.mark.long
def test_a_table_may_stand_anywhere_on_its_sheet(engine: DuckDBEngine, tmp_path: Path) -> None:
    def lower(path: Path) -> None:
        _with_labels().to_excel(path, index=False, startrow=3, startcol=2)

    assert content_hash(engine, tmp_path, "p.xlsx", lower, {}) == content_hash(
        engine, tmp_path, "q.xlsx", as_workbook, {}
    )


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_a_published_file_of_spss_or_stata_is_judged(engine: DuckDBEngine, tmp_path: Path, ending: str) -> None:
    """`releases export` writes it, and nobody could verify it."""
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta}[ending]
    frame = pd.DataFrame({"age": [30.0, 30.0, np.nan], "pay": [1.5, 2.0, 3.0], "town": ["Ulm", "Ulm", ""]})
    write(frame, str(tmp_path / f"p.{ending}"))
    table = pq.read_table(engine.import_table(tmp_path / f"p.{ending}", tmp_path))
    assert table.to_pydict() == {"age": [30, 30, None], "pay": [1.5, 2.0, 3.0], "town": ["Ulm", "Ulm", None]}
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["imported.parquet"]
    (tmp_path / f"q.{ending}").write_bytes(b"no such file")
    with pytest.raises(InputError):
        engine.import_table(tmp_path / f"q.{ending}", tmp_path)


def test_only_a_csv_or_parquet_file_is_a_release_of_others(engine: DuckDBEngine, tmp_path: Path) -> None:
    as_json_lines(tmp_path / "p.jsonl")
    for path in (tmp_path / "p.jsonl", tmp_path):
        with pytest.raises(InputError, match="is no CSV or Parquet file"):
            engine.import_table(path, tmp_path)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_encoding_of_a_release_of_others_is_found(engine: DuckDBEngine, tmp_path: Path, encoding: str) -> None:
    """`--encoding` is said to be detected, but every file that is not UTF-8 was refused."""
    path = tmp_path / "p.csv"
    path.write_text("Größe;Ort\n180;Köln\n170;Ulm\n", encoding=encoding)
    table = pq.read_table(engine.import_table(path, tmp_path, written=Source(path=path.name)))
    assert table.to_pydict() == {"Größe": ["180", "170"], "Ort": ["Köln", "Ulm"]}
    with pytest.raises(InputError, match="encoding"):  # what is stated is not doubted
        engine.import_table(path, tmp_path, written=Source(path=path.name, encoding="utf-8"))
