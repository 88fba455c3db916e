"""Durations of raw people are found again in a table that shows their whole numbers, in whatever unit a file is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.audit.attacked_files import Files
from anon_pipeline.audit.durations import in_unit
from anon_pipeline.audit.foreign_columns import Roles
from anon_pipeline.audit.foreign_table import FOR_WHOM, AttackedTable, attack_table
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec

N = 300
RANDOM = np.random.default_rng(3)
MINUTES, AGE = RANDOM.permutation(2 * N) * 7 + RANDOM.integers(0, 7, 2 * N), RANDOM.integers(20, 90, 2 * N)
IN_IT, OTHERS = np.arange(N), np.arange(N, 2 * N)
#: Two in 600 have none.
MISSING = np.isin(np.arange(2 * N), (5, N + 5))
SPEC = {
    "dataset": "people",
    "source": {"path": "people.parquet", "rename": {"stay": "spent"}},
    "target": "ill",
    "columns": {
        "age": {"role": "quasi_identifier", "type": "numeric"},
        "spent": {"role": "quasi_identifier", "type": "numeric"},
        "ill": {"role": "sensitive"},
    },
    "privacy": {"k_anonymity": {"k": 2}},
}


def write(place: Path, who: np.ndarray, unit: str, name: str = "stay") -> Path:
    """Everybody has another stay: durations in a unit, or the whole numbers of this unit."""
    stay = pa.array((MINUTES[who] * 60).astype("timedelta64[s]"), mask=MISSING[who])
    stay = stay.cast(pa.duration(unit.removeprefix("whole ")))
    stay = stay.cast(pa.int64()) if unit.startswith("whole") else stay
    pq.write_table(pa.table({"age": AGE[who], name: stay, "ill": np.where(AGE[who] > 50, "yes", "no")}), place)
    return place


def attacked(folder: Path, table: str, control: str, who: np.ndarray = OTHERS, spec: bool = False) -> AttackedTable:
    files = Files(
        write(folder / "table.parquet", IN_IT, table, "spent" if spec else "stay"),
        write(folder / "people.parquet", IN_IT, "us"),
        write(folder / "others.parquet", who, control),
    )
    roles = Roles.of(ReleaseSpec.model_validate(SPEC)) if spec else Roles(["age", "stay"], ["ill"])
    (folder / "scratch").mkdir()
    return attack_table(files, roles, folder / "scratch", targets=60)


@pytest.mark.long
@pytest.mark.parametrize("spec", [False, True], ids=["named", "by a spec"])
@pytest.mark.parametrize(("table", "control"), [("whole us", "us"), ("us", "us"), ("ns", "ns"), ("whole us", "ns")])
def test_a_table_of_raw_durations_is_found_to_leak(tmp_path: Path, table: str, control: str, spec: bool) -> None:
    """Our own releases show whole numbers, and pandas has days: nobody was singled out by a stay that nobody shares."""
    found = attacked(tmp_path, table, control, spec=spec)
    (singled_out,) = [one for one in found.findings if one.name == "singling out, all columns"]
    assert singled_out.verdict == "leak"
    assert singled_out.leak is not None and singled_out.leak.low > 0.9
    assert found.notes == [FOR_WHOM]


@pytest.mark.parametrize("spec", [False, True], ids=["named", "by a spec"])
@pytest.mark.parametrize("control", ["us", "ns"])
def test_people_of_the_table_are_no_control_whatever_their_unit(tmp_path: Path, control: str, spec: bool) -> None:
    with pytest.raises(InputError, match=r"others\.parquet"):
        attacked(tmp_path, "whole us", control, who=IN_IT, spec=spec)


def test_what_is_no_duration_stays(tmp_path: Path) -> None:
    table = pq.read_table(write(tmp_path / "people.parquet", IN_IT, "ms")).to_pandas()
    found = in_unit(table, {}, {"stay": "seconds"})
    assert found["stay"].isna().tolist() == MISSING[IN_IT].tolist()
    assert found["stay"].dropna().tolist() == (MINUTES[IN_IT] * 60.0)[~MISSING[IN_IT]].tolist()
    assert found.drop(columns="stay").equals(table.drop(columns="stay"))
    for units in (
        {},
        {"stay": "seconds", "gone": "seconds"},
    ):  # whole numbers of no stated unit are those of the original
        assert in_unit(found, {}, units).equals(found)
    assert in_unit(found, {"stay": "seconds"}, {"stay": "milliseconds"})["stay"].max() == found["stay"].max() * 1000
