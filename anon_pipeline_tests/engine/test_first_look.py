"""What is known of a source before a run: by its size, its kind and what its head says."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import first_look as looking
from anon_pipeline.engine.first_look import CountedValues, FirstLook, first_look
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import write_spec

COLUMNS = {
    "x": "quasi_identifier",
    "born": {"role": "quasi_identifier", "type": "date"},
    "town": "quasi_identifier",
    "t": "sensitive",
}
LINES = ["x,born,town,t", "7,2024-01-31,Ulm,a", "8,,,b", "7,2024-02-29,Bonn,a", "9,2024-02-29,Ulm,b"]
CSV = "\n".join(LINES) + "\n"
#: Of what would be refused if the rows were read.
WRONG = CSV.replace("8,,", "no number,,")


def spec_of(folder: Path, name: str = "people.csv", **source: Any) -> ReleaseSpec:
    columns = COLUMNS | {"x": {"role": "quasi_identifier", "type": "numeric"}}
    return write_spec(folder, columns, name, source={"path": name, **source})


@pytest.mark.parametrize(("beyond", "whole"), [(0, True), (1, False)])
def test_a_file_of_exactly_the_size_that_is_small_is_read_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int, whole: bool
) -> None:
    (tmp_path / "people.csv").write_text(CSV)
    monkeypatch.setattr(looking, "SMALL", len(CSV) - beyond)
    looked = first_look(spec_of(tmp_path), ["x"])
    assert (looked.whole, looked.rows, looked.size) == (whole, 4 if whole else None, len(CSV))
    assert bool(looked.values) == whole
    read = first_look(spec_of(tmp_path), ["x"], however_large=True)
    assert (read.whole, read.rows, sorted(read.values)) == (True, 4, ["x"])


@pytest.mark.parametrize("small", [0, 10**9])
def test_values_are_counted_in_their_order_and_the_missing_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    (tmp_path / "people.csv").write_text(CSV)
    monkeypatch.setattr(looking, "SMALL", small)
    looked = first_look(spec_of(tmp_path), ["x", "town", "born"], however_large=True)
    assert looked.values == {
        "x": CountedValues((7, 8, 9), (2, 1, 1), True),
        "town": CountedValues((None, "Bonn", "Ulm"), (1, 1, 2), False),
    }


def test_what_is_not_known_is_not_said() -> None:
    assert FirstLook() == FirstLook(None, None, False, {})


@pytest.mark.parametrize(
    ("name", "content", "source", "told"),
    [
        ("people.csv", WRONG, {}, "columns without a role: [yz];"),
        ("people.tsv", WRONG, {}, "columns without a role: [yz];"),
        ("people.CSV", WRONG, {"encoding": "UTF8"}, "columns without a role: [yz];"),
        ("people.csv", WRONG, {"encoding": "latin-1"}, None),
        ("people.csv.gz", WRONG, {}, None),
        ("people.json", '[{"y": 1}]', {}, None),
        (
            "people.csv",
            WRONG.replace("x,", "z,"),
            {"where": "z > 'a'", "decimal": ","},
            "columns without a role: [yz];",
        ),
    ],
)
def test_the_head_of_a_larger_text_is_looked_at_where_it_is_cheap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, source: dict[str, str], told: str | None
) -> None:
    """Of a packed file, or one in another encoding, nothing is read; a broken row is met by no head."""
    monkeypatch.setattr(looking, "SMALL", 0)
    data = content.replace("x,", "y,", 1).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    if told is None:
        looked = first_look(spec_of(tmp_path, name, **source))
        assert looked == FirstLook(None, (tmp_path / name).stat().st_size)
        return
    with pytest.raises(InputError, match=told):
        first_look(spec_of(tmp_path, name, **source))
    (tmp_path / name).write_text(content if "where" not in source else WRONG)
    assert first_look(spec_of(tmp_path, name, **source)).rows is None


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "folder", "duckdb"])
def test_a_file_that_knows_its_rows_is_asked_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Not those of a view, or of a query: they would have to be counted."""
    monkeypatch.setattr(looking, "SMALL", 0)
    people = pa.table({column: ["no number", "b", "c"] for column in COLUMNS})
    name = {"parquet": "p.parquet", "folder": "p", "duckdb": "p.db"}[kind]
    if kind == "duckdb":
        with duckdb.connect(tmp_path / name) as connection:
            connection.register("arrow", people)
            connection.execute("CREATE TABLE people AS FROM arrow")
    else:
        file = tmp_path / name / "a.parquet" if kind == "folder" else tmp_path / name
        file.parent.mkdir(exist_ok=True)
        pq.write_table(people, file)
        if kind == "folder":
            pq.write_table(people, file.with_name("b.parquet"))
    rows = 6 if kind == "folder" else 3
    looked = first_look(spec_of(tmp_path, name))
    size = sum(file.stat().st_size for file in (tmp_path / name).rglob("*")) if kind == "folder" else None
    assert (looked.rows, looked.whole) == (rows, False)
    assert looked.size == (size or (tmp_path / name).stat().st_size)
    with pytest.raises(InputError, match=f"has {rows} rows, fewer than k = {rows + 1}"):
        first_look(spec_of(tmp_path, name).replaced({"privacy.k_anonymity.k": rows + 1}))
    assert first_look(spec_of(tmp_path, name).replaced({"privacy.k_anonymity.k": rows})).rows == rows
    if kind == "duckdb":
        assert first_look(spec_of(tmp_path, name, query="SELECT * FROM people")).rows is None
        with duckdb.connect(tmp_path / name) as connection:
            connection.execute("ALTER TABLE people RENAME TO kept; CREATE VIEW seen AS FROM kept")
        assert first_look(spec_of(tmp_path, name, query="SELECT * FROM kept")).rows is None
        with pytest.raises(InputError, match="with the tables kept, seen; say which rows with a query"):
            first_look(spec_of(tmp_path, name))


def test_a_source_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    spec = spec_of(tmp_path).replaced({"source.path": "s3://clinic/people.csv"})
    assert first_look(spec, ["x"], however_large=True) == FirstLook()
