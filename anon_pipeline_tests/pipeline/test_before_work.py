"""What is told before any work starts, and that telling it imports and makes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from anon_pipeline.engine import first_look as looking
from anon_pipeline.errors import InputError
from anon_pipeline.pipeline.before_work import require_startable
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset

Change = Callable[[dict[str, Any]], object]


def _l_diversity(values: int) -> Change:
    return lambda spec: spec["privacy"].update(l_diversity={"column": "ill", "l": values, "kind": "distinct"})


QUASI_IDENTIFIER = {"role": "quasi_identifier", "type": "numeric"}

TOLD: dict[str, tuple[Change, str]] = {
    "missing file": (lambda spec: spec["source"].update(path="nobody.csv"), "nobody.csv: there is no such file"),
    "unknown column": (
        lambda spec: spec["columns"].update(visit=spec["columns"].pop("visits")),
        "has no column visit; did you mean visits?",
    ),
    "k above the rows": (lambda spec: spec["privacy"]["k_anonymity"].update(k=500), "400 rows, fewer than k = 500"),
    "missing hierarchy": (
        lambda spec: spec["columns"]["city"].update(hierarchy={"file": "cities.csv"}),
        "columns.city.hierarchy: cities.csv: there is no such file",
    ),
    "value without a level": (
        lambda spec: spec["columns"]["city"].update(levels=["Bonn", "Nowhere"]),
        "columns.city.levels: ",
    ),
    "more than attackers know": (
        lambda spec: spec["columns"].update({f"c{number}": QUASI_IDENTIFIER for number in range(63)}),
        "columns: 66 have the role quasi_identifier, and the attacks of the audit know at most 65",
    ),
    "impossible demand": (_l_diversity(3), "ill has 2 distinct values in the whole table"),
}


def written(folder: Path, change: Change) -> ReleaseSpec:
    spec = policy()
    change(spec)
    return ReleaseSpec.load(write_dataset(folder, spec=spec))


def test_as_many_quasi_identifiers_as_a_spec_likes_where_nothing_is_attacked(tmp_path: Path) -> None:
    """The attacks come after nearly everything else: a run of minutes ended with `attacks know at most 65`."""
    more = {f"c{number}": QUASI_IDENTIFIER for number in range(63)}
    frame = people().assign(**dict.fromkeys(more, 1))
    spec = policy() | {"columns": policy()["columns"] | more}
    with pytest.raises(InputError, match=r"or leave the attacks out \(audit: \{enabled: false\}\)"):
        require_startable(ReleaseSpec.load(write_dataset(tmp_path / "attacked", frame, spec)))
    spec["audit"] = {"enabled": False}
    assert require_startable(ReleaseSpec.load(write_dataset(tmp_path / "people", frame, spec))).rows == 400


@pytest.mark.parametrize("kind", TOLD)
def test_it_is_told_before_any_work(kind: str, tmp_path: Path) -> None:
    change, sentence = TOLD[kind]
    with pytest.raises(InputError) as told:
        require_startable(written(tmp_path / "people", change))
    assert sentence in str(told.value)


@pytest.mark.long
def test_a_value_that_a_hierarchy_lacks_is_told_before_any_work(tmp_path: Path) -> None:
    spec = policy()
    spec["columns"]["city"]["hierarchy"] = {"file": "cities.csv"}
    folder = write_dataset(tmp_path / "people", spec=spec)
    known = sorted(people()["city"].unique())
    file = folder / "cities.csv"
    file.write_text("".join(f"{city};somewhere;*\n" for city in known))
    require_startable(ReleaseSpec.load(folder))
    file.write_text("".join(f"{city};somewhere;*\n" for city in known[1:]))
    sentence = rf"^columns.city.hierarchy: 1 of the column's {len(known)} values .* not in cities.csv"
    with pytest.raises(InputError, match=sentence):
        require_startable(ReleaseSpec.load(folder))
    masked = spec["columns"] | {"age": spec["columns"]["age"] | {"steps": [{"technique": "round", "to": 5}]}}
    folder = write_dataset(tmp_path / "masked", spec=spec | {"columns": masked})
    (folder / "cities.csv").write_text(file.read_text())
    require_startable(ReleaseSpec.load(folder))  # values as they will be masked are known to no one yet


def test_a_possible_spec_passes_and_the_source_is_known(tmp_path: Path) -> None:
    looked = require_startable(written(tmp_path / "people", _l_diversity(2)))
    assert looked.whole and looked.rows == 400
    assert sorted(looked.values["ill"].people) == sorted(people()["ill"].value_counts())


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "csv"])
def test_of_a_larger_file_only_the_head_is_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns, and where the file knows it its rows; a value that is no number is not met."""
    monkeypatch.setattr(looking, "SMALL", 0)
    spec = policy() | {"source": {"path": f"people.{kind}"}}
    folder = tmp_path / "people"
    frame = people().assign(age=["no number", *map(str, people()["age"][1:])])
    write_dataset(folder, frame, spec)
    if kind == "parquet":
        frame.to_parquet(folder / "people.parquet")
    if kind == "duckdb":
        with duckdb.connect(folder / "people.duckdb") as connection:
            connection.execute("CREATE TABLE people AS FROM frame")
    looked = require_startable(ReleaseSpec.load(folder))
    assert not looked.whole
    assert looked.rows == (None if kind == "csv" else 400)
    if kind != "csv":
        with pytest.raises(InputError, match="400 rows, fewer than k = 401"):
            require_startable(ReleaseSpec.load(folder).replaced({"privacy.k_anonymity.k": 401}))
    spec["columns"]["agee"] = spec["columns"].pop("age")
    write_dataset(folder, None if kind != "csv" else frame, spec)
    with pytest.raises(InputError, match="has no column agee; did you mean age"):
        require_startable(ReleaseSpec.load(folder))


#: Runs the command line, and prints its exit code, the large libraries that it imported, and what lies in the home.
COLD = """
import os, sys
from pathlib import Path
from anon_pipeline.cli import command
try:
    command()
except SystemExit as end:
    large = {"dagster", "mlflow", "great_expectations", "sklearn", "pandas"} & set(sys.modules)
    print(end.code, sorted(large), Path(os.environ["ANON_PIPELINE_HOME"]).exists())
"""


@pytest.mark.long
def test_telling_it_imports_no_large_library_and_makes_no_home(tmp_path: Path) -> None:
    written(tmp_path / "people", TOLD["unknown column"][0])
    ended = subprocess.run(
        [sys.executable, "-c", COLD, "run", str(tmp_path / "people"), "--json"],
        env={"ANON_PIPELINE_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    told, _, after = ended.stdout.rpartition("}\n")
    assert after.strip() == "2 [] False", ended.stderr
    assert "did you mean visits?" in json.loads(told + "}")["failures"][0]


def test_no_message_quotes_a_row(tmp_path: Path) -> None:
    """A file without a header begins with a person."""
    folder = tmp_path / "people"
    write_dataset(folder, people())
    people().to_csv(folder / "people.csv", index=False, header=False)
    with pytest.raises(InputError) as told:
        require_startable(ReleaseSpec.load(folder))
    first = pd.read_csv(folder / "people.csv", header=None, dtype=str).iloc[0]
    assert not [value for value in first if len(value) > 3 and value in str(told.value)]
