"""What a survey's file says of its columns, which are called v1 and v2: a special category, or a weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.profiling.new_dataset import profile_table
from anon_pipeline.profiling.proposal import Proposal, read_labels
from anon_pipeline.spec import ColumnType, Role, Source

pyreadstat = pytest.importorskip("pyreadstat")


def proposal(role: Role = Role.QUASI_IDENTIFIER, **more: object) -> Proposal:
    return Proposal("v1", role, ColumnType.NUMERIC, "why", None, 5, 0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("Religious denomination of the respondent", "by its label religious or philosophical belief"),
        ("Which party did you vote for?", "by its label political opinion"),
        ("Design weight", "by its label a weight of the sample"),
        ("Highest education", "why"),
    ],
)
def test_a_column_is_known_by_its_label(label: str, why: str) -> None:
    proposals = {"v1": proposal()}
    read_labels(proposals, {"v1": label, "v2": label})
    assert proposals["v1"].why.startswith(why)
    assert proposals["v1"].role is (Role.QUASI_IDENTIFIER if why == "why" else Role.EXCLUDE)
    assert (proposals["v1"].question is None) == (why == "why" or "weight" in why)


@pytest.mark.parametrize("role", [Role.IDENTIFIER, Role.SENSITIVE, Role.EXCLUDE])
def test_a_label_does_not_undo_what_is_proposed_otherwise(role: Role) -> None:
    proposals = {"v1": proposal(role)}
    read_labels(proposals, {"v1": "Religious denomination"})
    assert proposals["v1"] == proposal(role)


@pytest.mark.parametrize("end", ["sav", "dta"])
def test_labels_are_read_from_the_file(tmp_path: Path, end: str) -> None:
    """A survey's religion was proposed as something that others may know, since it is called v2."""
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"v1": draw.integers(18, 90, 200), "v2": draw.integers(1, 5, 200)}).astype(float)
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta}[end]
    write(frame, str(tmp_path / f"s.{end}"), column_labels={"v1": "Age in years", "v2": "Religion or denomination"})
    found = profile_table(DuckDBEngine(tmp_path / "spill"), tmp_path / f"s.{end}", Source(path=f"s.{end}"), None)
    age, religion = found.columns
    assert (age.role, religion.role) == (Role.QUASI_IDENTIFIER, Role.EXCLUDE)
    assert religion.question is not None and religion.why.startswith("by its label religious")
