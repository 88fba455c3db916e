"""Runs from an object store and from tables with states: the release of the same file, and the credentials nowhere."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.source_content import content_of, stamp_of
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release.manifest import version_of
from anon_pipeline.release.opening import check_opening, opening_of, read_manifest
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, brief_policy, people, policy, write_dataset
from anon_pipeline_tests.lake import write_delta, write_iceberg
from anon_pipeline_tests.object_store import ACCESS_KEY, SECRET, ObjectStore

KEY = "ab" * 32
TABLE = pa.Table.from_pandas(people(), preserve_index=False)
#: The table before: fewer people.
FORMER = TABLE.slice(0, 300)


def from_file(folder: Path, _: ObjectStore) -> dict[str, Any]:
    pq.write_table(TABLE, folder / "people.parquet")
    return {"path": "people.parquet"}


def from_store(_: Path, store: ObjectStore) -> dict[str, Any]:
    written = io.BytesIO()
    pq.write_table(TABLE, written, row_group_size=150)
    return {"path": store.put("release/people.parquet", written.getvalue())}


def from_delta(folder: Path, _: ObjectStore) -> dict[str, Any]:
    write_delta(folder / "table", FORMER, TABLE, FORMER)
    return {"delta": "table", "version": 1}


def from_iceberg(folder: Path, _: ObjectStore) -> dict[str, Any]:
    metadata, (_, snapshot) = write_iceberg(folder / "lake", FORMER, TABLE)
    return {"iceberg": str(metadata.relative_to(folder)), "snapshot": snapshot}


def dataset(
    folder: Path,
    source: Callable[[Path, ObjectStore], dict[str, Any]],
    store: ObjectStore,
    spec: Callable[[], dict[str, Any]] = policy,
) -> Path:
    folder.mkdir()
    content = spec() | {"source": source(folder, store), "draws": {"environment": "ANON_PIPELINE_KEY"}}
    return write_dataset(folder, pd.DataFrame(), content)


def version_made(home: Home, spec: ReleaseSpec) -> str:
    """The version that a run would publish, made up to its candidate."""
    graph, run = graph_of(spec), Run(spec, home, DuckDBEngine(home.private_folder("spill"), threads=2))
    for part in graph.parts:
        if not isinstance(part, CheckDef):
            make(graph, part, run)
            if part.name == "anonymized_table":
                break
    (folder,) = (home.private / "people/anonymized_table").glob("*/")
    tables = ("data.parquet", "classes.parquet")
    return version_of(spec, {name: run.engine.content_hash(folder / name)[1] for name in tables})


def test_one_release_wherever_the_table_lies(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANON_PIPELINE_KEY", KEY)
    versions = {}
    for source in (from_file, from_store, from_delta, from_iceberg):
        spec = ReleaseSpec.load(dataset(tmp_path / source.__name__, source, object_store))
        home = Home(tmp_path / f"home_{source.__name__}").prepare()
        versions[source.__name__] = version_made(home, spec)
        if source is not from_file:
            assert stamp_of(spec, home) is None, "only the store or the table itself knows"
            assert content_of(spec, home, DuckDBEngine(tmp_path)) == content_of(spec, home, DuckDBEngine(tmp_path))
    assert len(set(versions.values())) == 1, versions


def surroundings(environment: Mapping[str, str]) -> None:
    """In the process of the command: where the store is, what it asks for, and one key for all runs."""
    os.environ |= {**environment, "ANON_PIPELINE_KEY": KEY}


def test_a_run_tells_the_state_it_read_and_no_credential(object_store: ObjectStore, tmp_path: Path) -> None:
    def in_store(_: Path, store: ObjectStore) -> dict[str, Any]:
        endpoint = store.environment["AWS_ENDPOINT_URL"]
        write_delta("s3://clinic/release/table", FORMER, TABLE, allow_http="true", aws_endpoint=endpoint)
        return {"delta": "s3://clinic/release/table"}

    place = Place(Home(tmp_path / "home"), dataset(tmp_path / "people", in_store, object_store, brief_policy))
    ended = place.run(sabotage=partial(surroundings, object_store.environment))
    assert ended.exit_code == 0, ended.said
    source = json.loads((place.release / "manifest.json").read_text())["source"]
    assert source["table"] == {"format": "delta", "version": "1"}, "the newest when it began"
    assert "s3://" not in json.dumps(source)
    for planted in (ACCESS_KEY, SECRET):
        assert planted not in ended.said
        left = [file for file in place.home.root.rglob("*") if file.is_file() and planted.encode() in file.read_bytes()]
        assert left == []
    # The table goes on; whoever opens the release still reads what it was made of.
    write_delta("s3://clinic/release/table", FORMER, allow_http="true")
    opening, manifest = opening_of(place.home, place.release.name), read_manifest(place.release / "manifest.json")
    engine = DuckDBEngine(tmp_path / "spill")
    assert check_opening(opening, manifest, place.spec, engine, tmp_path) == []
    del manifest["source"]["table"]
    assert check_opening(opening, manifest, place.spec, engine, tmp_path) == [
        "the source is not the one that the opening is about"
    ]


def test_a_store_that_is_away_ends_the_first_step_with_a_sentence(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANON_PIPELINE_KEY", KEY)
    spec = ReleaseSpec.load(dataset(tmp_path / "people", from_store, object_store))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    home = Home(tmp_path / "home").prepare()
    with pytest.raises(Unavailable, match=r"^s3://clinic/release/people\.parquet: the store cannot be reached"):
        version_made(home, spec)
    assert [file for file in (home.private / "people").rglob("*") if file.is_file()] == []
