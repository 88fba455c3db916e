"""Kept numbers of so many digits that floats take different ones for one are attacked by all their digits."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.attack.table_audit import Earlier
from anon_pipeline.audit.people import Audited, audit
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.people import KEY

N = 300
FIRST = 10**17
NUMBERS = {
    "short": pa.array(range(N), pa.int64()),
    "long": pa.array(range(FIRST, FIRST + N), pa.int64()),
    "long, and somebody has none": pa.array([None, *range(FIRST + 1, FIRST + N)], pa.int64()),
    "beyond 2^63": pa.array(range(2**63, 2**63 + N), pa.uint64()),
    "decimals": pa.array([Decimal(FIRST + number) / 10_000 for number in range(N)], pa.decimal128(38, 10)),
}


def audited(folder: Path, numbers: pa.Array, **audit_part: Any) -> tuple[DuckDBEngine, Audited]:
    """People of whom everybody has another kept number, read and sampled as a run does."""
    policy = harness.policy() | {"source": {"path": "people.parquet"}}
    policy["audit"] |= audit_part
    people = pa.Table.from_pandas(harness.people(N).drop(columns="visits")).append_column("visits", numbers)
    pq.write_table(people, folder / "people.parquet")
    (folder / "release.yaml").write_text(json.dumps(policy))
    spec = ReleaseSpec.load(folder)
    engine = DuckDBEngine(folder / "spill")
    types = engine.store_source(spec, folder / "stored.parquet").types()
    return engine, Audited(spec, KEY, engine.sample(folder / "stored.parquet", spec, types, N), types)


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_who_alone_has_a_kept_number_is_singled_out_however_long_it_is(tmp_path: Path, numbers: pa.Array) -> None:
    """As floats the numbers of 300 people were 19, which single out nobody: there was "nothing to attack"."""
    findings = {finding["name"]: finding for finding in audit(audited(tmp_path, numbers)[1])["findings"]}
    by_column = findings["singling out, one column"]
    assert by_column["verdict"] == "leak"
    assert by_column["attack"]["rate"] == 1.0
    assert by_column["details"]["by_column"]["visits"] >= 190  # two thirds are in the twin


@pytest.mark.parametrize("kind", ["long", "beyond 2^63"])
def test_long_numbers_find_people_again_in_an_earlier_release(tmp_path: Path, kind: str) -> None:
    """Who the candidates of a person then and now have in common is told by all digits."""
    found = []
    for name in ("short", kind):
        (folder := tmp_path / name).mkdir()
        engine, people = audited(folder, NUMBERS[name])
        former = engine.frame(folder / "stored.parquet", people.types).sort_values("age", ignore_index=True)
        former["age"] = former["age"] // 10 * 10 + 5.0
        former["city"], former["sex"] = "*", "*"
        findings = audit(people, [Earlier(former[people.spec.released])])["findings"]
        found.append(next(finding["details"] for finding in findings if finding["name"].startswith("intersection")))
    for short, long in zip(*(details["candidates_together"].items() for details in found), strict=True):
        assert short[0] == long[0] and abs(short[1] - long[1]) <= 2


def test_a_sample_keeps_the_digits_of_kept_numbers_alone(tmp_path: Path) -> None:
    engine, people = audited(tmp_path, NUMBERS["long"])
    assert list(people.people.digits) == ["visits"]
    assert sorted(people.people.digits["visits"]) == list(range(FIRST, FIRST + N))
    assert people.people.features["visits"].dtype == np.float64
    of_release = engine.frame(tmp_path / "stored.parquet", people.types)
    assert sorted(of_release["visits"]) == list(range(FIRST, FIRST + N))


def test_texts_of_an_earlier_release_are_no_numbers(tmp_path: Path) -> None:
    """An earlier spec may have taken the column for categories."""
    engine, people = audited(tmp_path, NUMBERS["long"])
    former = engine.frame(tmp_path / "stored.parquet", people.types).assign(visits="none of them")
    assert "skipped" not in audit(people, [Earlier(former[people.spec.released])])
