"""A unit that a spec states of durations is the one in which they are read, and one for all files."""

from __future__ import annotations

import logging
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.durations import require_stated_units
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.before_work import require_startable
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset


def stays(folder: Path, stated: str | None, *files: tuple[str, str], role: str = "insensitive") -> ReleaseSpec:
    """A spec of people with a stay, whose `unit` is stated, in one file or in a folder of files of these units."""
    stay = {"role": role, "type": "numeric"} | ({} if stated is None else {"unit": stated})
    path = files[0][0] if len(files) == 1 else "months"
    more = {} if len(files) == 1 else {"union_by_name": True}
    spec = policy() | {"columns": policy()["columns"] | {"stay": stay}, "source": {"path": path} | more}
    write_dataset(folder, people(), spec)
    (folder / "months").mkdir()
    for name, unit in files:
        days = pd.Series([1, 2] * 200).astype("timedelta64[s]") * 86_400
        place = folder / name if len(files) == 1 else folder / "months" / name
        table = pa.Table.from_pandas(people().assign(stay=days.astype(f"timedelta64[{unit}]")))
        if place.suffix == ".parquet":
            pq.write_table(table, place)
        else:
            feather.write_feather(table, place)
    return ReleaseSpec.load(folder)


@pytest.mark.parametrize("file", ["people.parquet", "people.feather"])
@pytest.mark.parametrize("stated", ["days", "Days ", "nanoseconds"])
def test_another_unit_of_time_is_refused(tmp_path: Path, stated: str, file: str) -> None:
    """The report told of stays of 86,400,000,000 days; a month in other units went by without a word."""
    spec = stays(tmp_path / "people", stated, (file, "us"))
    with pytest.raises(InputError, match="of which the whole numbers of microseconds are read; write unit: micro"):
        require_startable(spec)


@pytest.mark.parametrize("stated", [None, "microseconds", "Mikrosekunden"])
def test_its_own_unit_and_words_that_are_no_unit_of_time_are_as_before(tmp_path: Path, stated: str | None) -> None:
    assert require_startable(stays(tmp_path / "people", stated, ("people.parquet", "us"))).rows == 400


@pytest.mark.parametrize("stated", [None, "microseconds", "Mikrosekunden"])
def test_durations_without_a_unit_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stated: str | None
) -> None:
    """A month in nanoseconds after one in microseconds was released without a word, a thousand times as long."""
    spec = stays(tmp_path / "people", stated, ("people.parquet", "us"))
    home = Home(tmp_path / "home").prepare()
    graph = graph_of(spec)
    with caplog.at_level(logging.WARNING, "anon_pipeline"):
        make(graph, graph.steps[0], Run(spec, home, DuckDBEngine(home.private_folder("spill"))))
    said = [line for line in caplog.messages if line.endswith("is refused, write columns.stay.unit: microseconds")]
    assert len(said) == (stated is None)


def test_files_of_a_folder_have_one_unit(tmp_path: Path) -> None:
    files = [("may.parquet", "ns"), ("june.parquet", "us")]
    with pytest.raises(InputError, match=r"in microseconds in june\.parquet and in nanoseconds in may\.parquet, whose"):
        require_stated_units(stays(tmp_path / "people", None, *files))
    require_stated_units(stays(tmp_path / "others", None, *files, role="exclude"))


def test_a_renamed_column_is_told_by_its_name_in_the_spec(tmp_path: Path) -> None:
    spec = stays(tmp_path / "people", "days", ("people.parquet", "us"))
    columns = {"spent" if name == "stay" else name: column for name, column in spec.columns.items()}
    source = spec.source.model_copy(update={"rename": {"stay": "spent"}})
    with pytest.raises(InputError, match=r"^columns\.spent\.unit: is days"):
        require_stated_units(spec.model_copy(update={"columns": columns, "source": source}))
