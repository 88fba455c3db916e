"""Files of SPSS and Stata are read a part at a time, with labels where every value has one, and nothing is invented."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
import yaml

from anon_pipeline.engine import survey_files
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.survey_files import described, levels_of, store_survey_file
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType, ReleaseSpec

#: Columns, each of which is decided by its last row alone.
PEOPLE = pd.DataFrame(
    {
        "whole": [1.0, 2.0, np.nan, 4.0, -5.0],
        "late": [1.0, 2.0, 3.0, 4.0, 5.5],
        "huge": [1.0, 2.0, 3.0, 4.0, 2.0**53],
        "health": [1.0, 2.0, np.nan, 3.0, 1.0],
        "partly": [1.0, 2.0, 1.0, 2.0, 3.0],
        "named": [1.0, 2.0, 1.0, 2.0, 1.0],
        "town": ["Ulm", "", "Bonn", "Ulm", "7"],
        "born": [date(1960, 1, 31), date(1961, 2, 28), None, date(1900, 1, 1), date(2024, 2, 29)],
        "seen": [datetime(2024, 1, 31, 9, 30), None, datetime(1999, 12, 31, 23, 59, 59), None, datetime(2000, 1, 1)],
    }
)
LABELS = {"health": {3: "good", 1: "bad", 2: "fair"}, "partly": {1: "a", 2: "b"}, "named": {1: "yes", 2: "no"}}


def written(folder: Path) -> Path:
    file = folder / "people.sav"
    ordinal = dict.fromkeys(("health", "partly", "whole"), "ordinal") | {"named": "nominal"}
    pyreadstat.write_sav(PEOPLE, file, variable_value_labels=LABELS, variable_measure=ordinal)
    return file


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 1000])
def test_a_file_is_the_same_table_however_many_rows_are_read_at_a_time(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_files, "ROWS", rows)
    stored = tmp_path / "stored.parquet"
    selected = store_survey_file(written(tmp_path), stored, "people.sav")
    table = pq.read_table(stored)
    whole = [name for name in PEOPLE if f'CAST("{name}" AS BIGINT) AS "{name}"' in selected]
    assert whole == ["whole", "partly"]
    assert selected.count('"') == 2 * (len(PEOPLE.columns) + len(whole))
    assert table.column_names == list(PEOPLE)
    assert table["whole"].to_pylist() == [1, 2, None, 4, -5]
    assert table["late"].to_pylist() == PEOPLE["late"].tolist()
    assert table["health"].to_pylist() == ["bad", "fair", None, "good", "bad"]
    assert table["partly"].to_pylist() == [1, 2, 1, 2, 3]
    assert table["named"].to_pylist() == ["yes", "no", "yes", "no", "yes"]
    assert table["town"].to_pylist() == ["Ulm", None, "Bonn", "Ulm", "7"]
    assert table["born"].to_pylist() == PEOPLE["born"].tolist()
    assert table.schema.field("born").type == pa.date32()
    assert [value and value.replace(tzinfo=None) for value in table["seen"].to_pylist()] == [
        None if pd.isna(value) else value.to_pydatetime() for value in PEOPLE["seen"]
    ]
    assert levels_of(tmp_path / "people.sav", "people.sav") == {"health": ("bad", "fair", "good")}


def test_a_file_is_described_by_its_head(tmp_path: Path) -> None:
    found = described(written(tmp_path), "people.sav")
    assert found.names == tuple(PEOPLE)
    assert found.labels == {name: {float(code): text for code, text in of.items()} for name, of in LABELS.items()}
    assert found.ordinal == {"health", "partly", "whole"}


def test_a_code_that_is_declared_missing_has_no_label(tmp_path: Path) -> None:
    file = tmp_path / "people.sav"
    frame = pd.DataFrame({"x": [1.0, 2.0, 8.0, 9.0], "t": ["a", "b", "-", "a"]})
    pyreadstat.write_sav(
        frame,
        file,
        variable_value_labels={"x": {1: "a", 2: "b", 8: "refused", 9: "not asked"}, "t": {"a": "A"}},
        missing_ranges={"x": [{"lo": 8, "hi": 9}], "t": ["-"]},
    )
    assert described(file, "people.sav").labels == {"x": {1.0: "a", 2.0: "b"}}
    store_survey_file(file, tmp_path / "stored.parquet", "people.sav")
    table = pq.read_table(tmp_path / "stored.parquet").to_pydict()
    assert table["x"] == ["a", "b", None, None]


@pytest.mark.parametrize(
    ("code", "ranges", "missing"),
    [
        (8, [{"lo": 8, "hi": 9}], True),
        (9.0, [{"lo": 8, "hi": 9}], True),
        (7, [{"lo": 8.0, "hi": 9.0}], False),
        (5, [{"lo": 1, "hi": 2}, {"lo": 5, "hi": 5}], True),
        (5, [{"lo": "a", "hi": "z"}], False),
        (5, [{"lo": 1, "hi": "z"}, {"lo": "a", "hi": 9}], False),
        (5, [], False),
    ],
)
def test_a_range_of_missing_codes_holds_its_ends(code: float, ranges: list[dict[str, Any]], missing: bool) -> None:
    assert survey_files._declared_missing(code, ranges) is missing


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        ([1.0, np.nan, -3.0], True),
        ([1.0, 2.5], False),
        ([0.5, 2.0], False),
        ([2.0**53 - 1, 1 - 2.0**53], True),
        ([1.0, 2.0**53 + 2], False),
        ([-(2.0**54)], False),
        ([np.nan], True),
    ],
)
def test_numbers_are_whole_where_all_are_and_none_is_too_large(values: list[float], whole: bool) -> None:
    assert survey_files._whole(pd.Series(values)) is whole


@pytest.mark.parametrize(
    ("values", "known", "kind", "expected"),
    [
        (["a", "", None], None, pa.string(), ["a", None, None]),
        ([date(2024, 2, 29), None], None, pa.date32(), [date(2024, 2, 29), None]),
        ([datetime(2024, 2, 29, 9), None], None, pa.timestamp("us"), [datetime(2024, 2, 29, 9), None]),
        ([None, ""], None, pa.string(), [None, None]),
        ([date(2024, 2, 29), "x"], None, pa.string(), ["2024-02-29", "x"]),
        ([None, None], pa.date32(), pa.date32(), [None, None]),
        ([date(2024, 2, 29)], pa.string(), pa.string(), ["2024-02-29"]),
    ],
)
def test_objects_have_the_type_of_the_first_part_or_their_own(
    values: list[Any], known: pa.DataType | None, kind: pa.DataType, expected: list[Any]
) -> None:
    found = survey_files._of_objects(pd.Series(values, dtype=object), known)
    assert (found.type, found.to_pylist()) == (kind, expected)


def test_a_file_of_nobody_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "people.sav"
    pyreadstat.write_sav(PEOPLE[["whole"]].head(0), file)
    with pytest.raises(InputError, match=r"^people\.sav: the table is empty$"):
        store_survey_file(file, tmp_path / "stored.parquet", "people.sav")


def test_kinds_of_survey_files_are_known_by_their_names() -> None:
    assert survey_files.is_survey_file(Path("PEOPLE.SAV"))
    assert not survey_files.is_survey_file(Path("sav.csv"))


#: What an attacker sees of everybody but one, in a column of a stated type, by its labels.
SHOWN: dict[str, tuple[ColumnType, dict[int, str], list[Any]]] = {
    "categories": (ColumnType.CATEGORICAL, {1: "north", 2: "south"}, ["north", "south", None]),
    "numbers": (ColumnType.NUMERIC, {1: "north", 2: "south"}, [1, 2, None]),
    "numbers with a label": (ColumnType.NUMERIC, {1: "1", 2: "2", 7: "7"}, [1, 2, None]),
    "other numbers": (ColumnType.NUMERIC, {1: "10", 2: "20"}, [10, 20, None]),
}


@pytest.mark.parametrize("of", SHOWN)
@pytest.mark.parametrize("code", [1, 9])
@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_no_code_of_somebody_decides_how_others_are_shown(
    of: str, code: int, ending: str, tmp_path: Path, engine: DuckDBEngine
) -> None:
    """The attacker knows everybody but one, who is in no released row: was their code one that has no label?

    Under a stated type everybody was shown by labels where all had one, and by codes as soon as one had none.
    """
    kind, labels, shown = SHOWN[of]
    frame = pd.DataFrame({"region": [1.0, 2.0, np.nan, code], "ill": ["no", "no", "yes", "yes"]})
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta}[ending]
    write(frame, str(tmp_path / f"people.{ending}"), variable_value_labels={"region": labels})
    content = {
        "dataset": "people",
        "source": {"path": f"people.{ending}", "rename": {"region": "area"}},
        "target": "ill",
        "columns": {"area": {"role": "quasi_identifier", "type": str(kind)}, "ill": {"role": "sensitive"}},
        "privacy": {"k_anonymity": {"k": 2}},
    }
    (tmp_path / "release.yaml").write_text(yaml.safe_dump(content))
    engine.store_source(ReleaseSpec.load(tmp_path), tmp_path / "stored.parquet")
    stored = pq.read_table(tmp_path / "stored.parquet").to_pylist()
    found = [row["area"] for row in stored if row["ill"] == "no" or row["area"] is None]
    assert sorted(found, key=str) == sorted(shown, key=str)


@pytest.mark.parametrize("left_out", [True, False], ids=["no target", "where"])
@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_no_number_of_somebody_who_is_not_read_decides_a_type(
    left_out: bool, ending: str, tmp_path: Path, engine: DuckDBEngine
) -> None:
    """The attacker knows everybody but one, who has no target or is outside of `where`: had they a fraction?"""
    content: dict[str, Any] = {
        "dataset": "people",
        "source": {"path": f"people.{ending}"} | ({} if left_out else {"where": "read = 1"}),
        "target": "ill",
        "columns": {
            "age": {"role": "quasi_identifier", "type": "numeric"},
            "code": {"role": "insensitive", "type": "categorical"},
            "ill": {"role": "sensitive", "type": "categorical"},
            "read": {"role": "exclude"},
        },
        "privacy": {"k_anonymity": {"k": 2}},
    } | ({"missing_target": "leave_out"} if left_out else {})
    (tmp_path / "release.yaml").write_text(yaml.safe_dump(content))
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}[ending]
    found = set()
    for age, code in [(9.0, 2.0), (2.5, 2.0), (9.0, 1.5), (2.0**53, 1e17)]:
        of_last = [np.nan if left_out else 0.0]
        frame = pd.DataFrame({"age": [20.0, 21, 20, 21, age], "code": [1.0, 2, 1, 2, code]})
        write(frame.assign(ill=[0.0, 1, 1, 0, *of_last], read=[1.0, 1, 1, 1, 0]), str(tmp_path / f"people.{ending}"))
        facts = engine.store_source(ReleaseSpec.load(tmp_path), tmp_path / "stored.parquet")
        found.add((facts.content_hash, *(column.storage for column in facts.columns)))
    assert len(found) == 1
    assert {column.storage for column in facts.columns} == {"BIGINT"}
