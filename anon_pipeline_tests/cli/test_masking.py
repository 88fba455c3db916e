"""`steps`, `mask`, `reveal` and `estimate`: what is written, for whom, and what is said beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.home import Home
from anon_pipeline.masking.catalog import catalog
from anon_pipeline_tests.cli.commands import run, sentence, written
from anon_pipeline_tests.people import write_spec


@pytest.fixture
def spec(tmp_path: Path, home: Home) -> Path:
    """A spec that rounds ages and encrypts names."""
    written(tmp_path / "people.csv", ["name,age,t", "Alwin,21,no", "Bertha,29,yes", "Carl,44,no"])
    key = tmp_path / "key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o600)
    columns = {
        "name": {"role": "insensitive", "steps": [{"technique": "encrypt", "key": {"file": "key"}}]},
        "age": {"role": "quasi_identifier", "type": "numeric", "steps": [{"technique": "round", "to": 10}]},
        "t": "sensitive",
    }
    write_spec(tmp_path, columns, "people.csv")
    return tmp_path / "release.yaml"


@pytest.mark.long
def test_all_techniques_are_listed_and_a_single_one_with_its_source() -> None:
    every = [row.technique for row in catalog()]
    text = run("steps").out
    assert [part.split(":")[0] for part in text.rstrip("\n").split("\n\n")] == every
    assert [row["technique"] for row in run("steps", "--json").json["techniques"]] == every
    row = next(row for row in catalog() if row.technique == "round")
    alone = run("steps", "round").out
    assert alone.startswith(f"round: {row.meaning}\n  when       {row.use_when}\n")
    assert run("steps", "round", "--json").json["techniques"][0]["technique"] == "round"
    assert len(run("steps", "round", "--json").json["techniques"]) == 1
    assert [line.strip() for line in alone.rstrip("\n").partition("\n\n")[2].splitlines()] == row.source.splitlines()
    assert not any(line != line.rstrip() for line in alone.splitlines())
    assert alone.partition("\n\n")[0] in text
    assert "no such" in sentence("steps", "no such")


@pytest.mark.parametrize("row", catalog(), ids=lambda row: row.technique)
def test_where_a_technique_stands_and_what_it_takes(row: object) -> None:
    from anon_pipeline.cli.techniques import as_text
    from anon_pipeline.masking.catalog import CatalogRow

    assert isinstance(row, CatalogRow)
    lines = as_text(row, False).splitlines()
    stands = "under a column" if row.stands == "column" else "in the table's steps"
    assert lines[3] == f"  stands     {stands}; works on {', '.join(row.on)}"
    listed = lines[4:]
    assert len(listed) == len(row.parameters)
    for number, (line, parameter) in enumerate(zip(listed, row.parameters, strict=True)):
        assert line.startswith(
            f"  {'parameters' if number == 0 else '          '} {parameter.name}: {parameter.type}, "
        )
        assert ("required" in line) or f"default {parameter.default}" in line


@pytest.mark.long
def test_a_masked_table_is_its_owners_and_no_release(spec: Path) -> None:
    file = spec.parent / "[masked].csv"
    ended = run("mask", spec, "--out", file)
    assert ended.code == 0, ended
    assert ended.err.startswith("anon-pipeline: masked, and nothing more")
    assert ended.err.count("\n") == 1
    assert ended.lines[:2] == ["[masked].csv: 3 rows", "columns  technique  guarantee  cells changed"]
    assert file.stat().st_mode & 0o777 == 0o600
    other = spec.parent / "other.csv"
    content = run("mask", spec, "--out", other, "--json").json
    assert (content["file"], content["rows"], content["groups"]) == (str(other), 3, False)
    assert {report["technique"] for report in content["masking"]} == {"encrypt", "round"}


@pytest.mark.long
def test_tokens_are_turned_back_on_stdout_or_in_a_file_of_their_owner(spec: Path) -> None:
    masked = spec.parent / "masked.csv"
    run("mask", spec, "--out", masked)
    revealed = run("reveal", masked, "--spec", spec, "--column", "name")
    assert revealed.code == 0, revealed
    assert "Alwin" not in masked.read_text()
    assert "Alwin" in revealed.out
    file = spec.parent / "[named].csv"
    ended = run("reveal", masked, "--spec", spec, "--column", "name", "--out", file)
    assert (ended.out, ended.err) == ("", f"wrote {file}, which names people again\n")
    assert "Alwin" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A table of 1,000 reports under local differential privacy, beside the spec that they were made by."""
    step = {"technique": "randomized_response", "epsilon": 2, "categories": ["a", "b"]}
    write_spec(tmp_path, {"v": {"role": "quasi_identifier", "steps": [step]}, "t": "sensitive"}, "people.csv")
    table = pa.table({"v": ["a"] * 800 + ["b"] * 200, "w": ["a"] * 1000})
    pq.write_table(table, tmp_path / "data.parquet")
    return tmp_path / "data.parquet"


@pytest.mark.long
def test_counts_are_estimated_from_the_reports(reports: Path) -> None:
    spec = ("--spec", reports.parent / "release.yaml")
    content = run("estimate", reports, "--column", "v", *spec, "--json").json
    assert (content["column"], content["people"]) == ("v", 1000)
    lines = run("estimate", reports, "--column", "v", *spec).lines
    assert lines[:2] == [
        "v: 1,000 people, randomized_response at epsilon 2",
        "category  reported  estimated count  95 % interval",
    ]
    first = content["counts"][0]
    assert lines[2] == f"a  800  {first['count']:,.0f}  {first['low']:,.0f} to {first['high']:,.0f}"
    assert "\u2502 a        \u2502      800 \u2502" in run("estimate", reports, "--column", "v", *spec).out
    upper = reports.rename(reports.with_suffix(".PARQUET"))
    assert run("estimate", upper, "--column", "v", *spec, "--json").json == content


def test_a_csv_of_reports_keeps_leading_zeros_and_empty_fields(tmp_path: Path) -> None:
    step = {"technique": "randomized_response", "epsilon": 2, "categories": ["007", "7"]}
    write_spec(tmp_path, {"v": {"role": "quasi_identifier", "steps": [step]}, "t": "sensitive"}, "people.csv")
    table = written(tmp_path / "data.csv", ["v,t", *["007,a"] * 8, *["7,a"] * 2, ",a"])
    content = run("estimate", table, "--column", "v", "--spec", tmp_path, "--json").json
    assert [(row["category"], row["reported"]) for row in content["counts"]] == [("007", 8), ("7", 2)]
    assert content["people"] == 10


@pytest.mark.parametrize(
    ("name", "column", "spec", "said"),
    [
        ("data.parquet", "w", True, "--column: the spec has no column w"),
        ("absent.parquet", "v", True, "absent.parquet: there is no such file"),
        ("absent.csv", "v", True, "absent.csv: there is no such file"),
        ("folder.csv", "v", True, "folder.csv: cannot be read (no CSV or Parquet file)"),
        ("text.parquet", "v", True, "text.parquet: "),
        ("data.parquet", "v", False, "manifest.json: no manifest of a release lies there; name the spec with --spec"),
        ("wrong.csv", "v", True, "wrong.csv: is no CSV or Parquet table with a column v"),
        ("wrong.parquet", "v", True, "wrong.parquet: is no CSV or Parquet table with a column v"),
        ("others.csv", "v", True, "others.csv: column v: "),
    ],
)
def test_what_cannot_be_estimated_is_told(reports: Path, name: str, column: str, spec: bool, said: str) -> None:
    written(reports.parent / "wrong.csv", ["w", "a"])
    pq.write_table(pa.table({"w": ["a"]}), reports.parent / "wrong.parquet")
    written(reports.parent / "text.parquet", ["Ottilie"])
    (reports.parent / "folder.csv").mkdir()
    written(reports.parent / "others.csv", ["v", "Ottilie"])
    by = ("--spec", reports.parent) if spec else ()
    told = sentence("estimate", reports.parent / name, "--column", column, *by)
    assert said in told
    assert told.count(name) <= 1
    assert "Ottilie" not in told
