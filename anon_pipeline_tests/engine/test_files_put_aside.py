"""In a folder of Parquet files, copies and those put aside are no further people, and broken ones are named."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    """People in two files of a folder, without an identifier by which anybody could be found twice."""
    loaded = ReleaseSpec.load(write_dataset(tmp_path / "people", None, policy() | {"source": {"path": "months"}}))
    (loaded.folder / "months").mkdir(parents=True)
    people().head(200).to_parquet(loaded.folder / "months/april.parquet")
    people().tail(200).to_parquet(loaded.folder / "months/may.parquet")
    return loaded


@pytest.mark.parametrize("name", ["_temporary/0/may.parquet", ".may.parquet", "._may.parquet", "_may.parquet"])
def test_people_of_a_file_that_was_put_aside_are_not_read_twice(spec: ReleaseSpec, tmp_path: Path, name: str) -> None:
    """Whoever knows the quasi-identifiers of all would find a class of k rows to be k / 2 people."""
    engine, stored = DuckDBEngine(tmp_path / "spill"), tmp_path / "stored.parquet"
    assert engine.store_source(spec, stored).rows == 400
    aside = spec.folder / "months" / name
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(spec.folder / "months/may.parquet", aside)
    with pytest.raises(InputError, match=f"^months: holds {name}, whose name begins with . or _"):
        engine.store_source(spec, stored)


@pytest.mark.parametrize("link", [False, True])
def test_people_of_a_copy_are_not_read_twice(spec: ReleaseSpec, tmp_path: Path, link: bool) -> None:
    engine, stored = DuckDBEngine(tmp_path / "spill"), tmp_path / "stored.parquet"
    months = spec.folder / "months"
    (months / "old").mkdir()
    copied = months / "old/may (1).parquet"
    if link:
        copied.symlink_to(months / "may.parquet")
    else:
        shutil.copy(months / "may.parquet", copied)
    with pytest.raises(InputError, match=r"^months: old/may \(1\)\.parquet is a copy of may\.parquet, byte for byte"):
        engine.store_source(spec, stored)
    copied.unlink()
    people().tail(199).to_parquet(copied)
    assert engine.store_source(spec, stored).rows == 599


def test_equal_files_of_few_people_or_of_two_partitions_are_no_copies(spec: ReleaseSpec, tmp_path: Path) -> None:
    """Two forms that were sent in can be equal, and so can the people of two years."""
    engine, stored = DuckDBEngine(tmp_path / "spill"), tmp_path / "stored.parquet"
    months = spec.folder / "months"
    for name in ("a", "b"):
        people().head(9).to_parquet(months / f"{name}.parquet")
    assert engine.store_source(spec, stored).rows == 418
    shutil.rmtree(months)
    for year in (2023, 2024):
        (months / f"year={year}").mkdir(parents=True)
        people().to_parquet(months / f"year={year}/people.parquet")
    parts = policy() | {"source": {"path": "months", "partitions": True}}
    parts["columns"] = parts["columns"] | {"year": {"role": "exclude"}}
    by_year = ReleaseSpec.load(write_dataset(spec.folder, None, parts))
    assert engine.store_source(by_year, stored).rows == 800
    with pytest.raises(InputError, match=r"^months: year=2024/people\.parquet is a copy of year=2023/people\.parquet"):
        engine.store_source(spec, stored)


def test_the_file_that_cannot_be_read_is_named(spec: ReleaseSpec, tmp_path: Path) -> None:
    engine, stored = DuckDBEngine(tmp_path / "spill"), tmp_path / "stored.parquet"
    broken = spec.folder / "months/june.parquet"
    for content in (b"", (spec.folder / "months/may.parquet").read_bytes()[:1000]):
        broken.write_bytes(content)
        with pytest.raises(InputError, match=r"june\.parquet is no intact Parquet file; remove it, or write it again"):
            engine.store_source(spec, stored)
    broken.unlink()
    broken.symlink_to("nowhere.parquet")
    with pytest.raises(InputError, match=r"^months: june\.parquet is a link that leads nowhere; remove it"):
        engine.store_source(spec, stored)


def test_tables_that_are_not_read_are_told(spec: ReleaseSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The third month was a CSV, and missing without a word."""
    home, graph = Home(tmp_path / "home").prepare(), graph_of(spec)
    run = Run(spec, home, DuckDBEngine(home.private_folder("spill")))
    for name in ("notes.md", "_SUCCESS", ".may.parquet.crc"):
        (spec.folder / "months" / name).touch()
    with caplog.at_level(logging.WARNING, "anon_pipeline"):
        make(graph, graph.steps[0], run)
        assert not any("are read" in line for line in caplog.messages)
        for name in ("june.csv", "JUNE.PARQUET", "july.csv.gz", "old/august.pq"):
            (spec.folder / "months" / name).parent.mkdir(exist_ok=True)
            (spec.folder / "months" / name).touch()
        make(graph, graph.steps[0], run)
    said = "whose names end in .parquet are read, and not JUNE.PARQUET, july.csv.gz, june.csv and 1 more"
    assert sum(said in line for line in caplog.messages) == 1
