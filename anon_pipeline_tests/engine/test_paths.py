"""A path means exactly the file that bears the name, whatever letters the name and the folders above it have."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.spec import Role
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import write_spec

#: Letters that mean something to somebody: to a pattern, a shell, SQL, an address, a partitioned table.
ODD = st.text(st.sampled_from(list("ab1[]*?!^-{},~\\'\"=:%#@;$&() .ä\n")), min_size=1, max_size=8).filter(
    lambda name: name.strip(".") != ""
)


def decoys(file: Path) -> list[Path]:
    """Files beside it that a pattern of its name could mean."""
    return [
        file.with_name(name) for name in ("a", "b", "1", "x1", f"a{file.suffix}", f"1{file.suffix}", f"b{file.suffix}")
    ]


@pytest.mark.long
@settings(max_examples=times(30))
@given(ODD, ODD, ODD)
def test_the_file_of_an_odd_name_is_read_and_no_other(above: str, folder: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        files = {f: root / f"_{above}" / folder / f"{name}{f}" for f in (".parquet", ".csv", ".csv.gz")}
        files[".parquet"].parent.mkdir(parents=True)
        for file in [other for one in files.values() for other in decoys(one) if other not in files.values()]:
            file.write_text("v,w\nanother,1\nanother,2\n")
        pq.write_table(pa.table({"v": ["right"]}), files[".parquet"].open("wb"))
        files[".csv"].write_text("v\nright\n")
        files[".csv.gz"].write_bytes(gzip.compress(b"v\nright\n"))
        engine = DuckDBEngine(Path(scratch) / "spill")
        for file in files.values():
            found = engine.everybody(engine.import_table(file, Path(scratch)))
            assert found.to_pydict() == {"v": ["right"]}


@pytest.mark.parametrize("place", ["h[1]", "h?", "age=40"])
@pytest.mark.parametrize("name", ["x[1].parquet", "*.csv", "v=1[a-z].csv.gz", "folder[1]"])
def test_sources_and_what_is_stored_of_them(tmp_path: Path, place: str, name: str) -> None:
    home = tmp_path / place
    for folder in (home, tmp_path / "h1", tmp_path / "hx"):
        folder.mkdir(exist_ok=True)
        pd.DataFrame({"age": [1], "t": ["decoy"]}).to_parquet(folder / "x1.parquet")
        pd.DataFrame({"age": [1], "t": ["decoy"]}).to_parquet(folder / "stored1.parquet")
        (folder / "decoy.csv").write_text("age,t\n1,decoy\n")
    right = pd.DataFrame({"age": [10, 20, 20], "t": ["a", "b", "b"]})
    if name.startswith("folder"):
        (home / name).mkdir()
        right.to_parquet(home / name / "part[0].parquet")
    elif name.endswith(".parquet"):
        right.to_parquet(home / name)
    else:
        right.to_csv(home / name, index=False)
    spec = write_spec(home, {"age": "quasi_identifier", "t": "sensitive"}, name)
    engine = DuckDBEngine(home / "spill")
    facts = engine.store_source(spec, home / "stored[1].parquet")
    assert facts.rows == 3
    assert [(column.name, column.distinct) for column in facts.columns] == [("age", 2), ("t", 2)]
    counts = engine.classes(home / "stored[1].parquet", ["age"], spec.with_role(Role.SENSITIVE))
    assert sorted(counts.classes["age"]) == [10, 20]
