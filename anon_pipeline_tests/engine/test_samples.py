"""Samples and held-out people of a stored table: equal people are drawn one by one, in any order of rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.engine import samples
from anon_pipeline.engine.base import Batch
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.engine.samples import sample_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import write_spec

QI = "quasi_identifier"
KINDS = 6


def batch(hashes: list[int], people: list[int]) -> Batch:
    x = pd.Series([float(number) for number in hashes], dtype=float)
    key = np.empty((len(hashes), 0), dtype=np.int64)
    return Batch(pd.DataFrame({"x": x}), x, np.array(hashes, np.int64), key, np.array(people, np.int64))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_of_people_who_are_all_different_the_smallest_hashes_are_chosen(size: int) -> None:
    found = sample_of([batch([5, 1], [1, 1]), batch([8, 3], [1, 1])], size)
    assert found.hash.tolist() == [1, 3, 5, 8][:size]
    assert found.features["x"].tolist() == found.target.tolist() == found.hash.tolist()
    assert found.people.tolist() == [1] * len(found.hash)


def test_of_nobody_nobody_is_chosen() -> None:
    """Where everybody of a table is left out, its batches are of nobody."""
    assert len(sample_of([batch([], []), batch([], [])], 5).hash) == 0


COUNTS = st.dictionaries(st.integers(0, 2**63 - 1), st.integers(1, 40), min_size=1, max_size=8)


@given(people=COUNTS, size=st.integers(1, 60), data=st.data())
def test_a_sample_has_the_size_and_does_not_depend_on_batches(
    people: dict[int, int], size: int, data: st.DataObject
) -> None:
    """Nor on how many people are drawn at once, here few, and on when those who cannot be in it are left out."""
    order = data.draw(st.permutations(list(people)))
    cut = data.draw(st.integers(0, len(order)))
    parts = [batch(part, [people[one] for one in part]) for part in (order[:cut], order[cut:])]
    whole = sample_of([batch(list(people), list(people.values()))], size)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "DRAWN_TOGETHER", 3)
        found = sample_of(parts, size)
    assert found.hash.tolist() == whole.hash.tolist() == sorted(whole.hash)
    assert len(found.hash) == min(size, sum(people.values()))
    assert all(count <= people[number] for number, count in Counter(found.hash.tolist()).items())
    assert found.features["x"].tolist() == [float(number) for number in found.hash]


@pytest.mark.parametrize("late", [5, 15, 25, 35])
def test_a_smaller_hash_in_a_later_batch_takes_the_place_of_the_largest(late: int) -> None:
    """So many rows wait that they are thinned out before it comes."""
    first = [30, 10, 20, *range(40, 100_050)]
    found = sample_of([batch(hashes, [1] * len(hashes)) for hashes in (first, [late, 40], [99])], 3)
    assert found.hash.tolist() == sorted([10, 20, 30, late])[:3]


def test_those_who_cannot_be_in_a_large_sample_are_left_out_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.random.default_rng(1).integers(0, 2**62, 250_000)
    frame = pd.DataFrame({"x": hashes.astype(np.float64)})
    people = Batch(frame, frame["x"], hashes, np.empty((len(hashes), 0), np.int64), np.ones(len(hashes), np.int64))
    monkeypatch.setattr(samples, "DRAWN_TOGETHER", 60_000)
    assert sample_of([people], 30_000).hash.tolist() == np.sort(hashes)[:30_000].tolist()


def few_kinds(root: Path, identified: bool) -> ReleaseSpec:
    """Three thousand people of six kinds, in some order."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"kind": rng.choice(KINDS, 3000, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])})
    frame["ill"] = np.where(frame["kind"] % 2, "yes", "no")
    frame["name"] = [f"person {number}" for number in range(len(frame))]
    frame.to_parquet(root / "people.parquet")
    roles = {"kind": QI, "ill": "sensitive", "name": "identifier" if identified else "exclude"}
    return write_spec(root, roles, "people.parquet", target="ill")


def stored_rows(table: Path) -> Any:
    stored = pd.read_parquet(table)
    return stored.groupby("kind")[PEOPLE].sum()


@pytest.mark.parametrize("identified", [False, True])
def test_a_sample_has_of_every_kind_of_people_its_share(engine: DuckDBEngine, tmp_path: Path, identified: bool) -> None:
    """With identifiers everybody is a row of their own, and still they are equal in what is released."""
    spec = few_kinds(tmp_path, identified)
    types = engine.store_source(spec, tmp_path / "stored.parquet").types()
    everybody = stored_rows(tmp_path / "stored.parquet")
    found = engine.sample(tmp_path / "stored.parquet", spec, types, 1000)
    chosen = found.features["kind"].value_counts().sort_index()
    assert chosen.sum() == 1000
    share = chosen / everybody
    assert len(share) == KINDS
    # Four standard deviations of the share of the smallest kind, of some 120 people, around a third.
    assert share.between(1 / 3 - 0.18, 1 / 3 + 0.18).all()
    assert chosen.to_dict() == {0.0: 372, 1.0: 264, 2.0: 135, 3.0: 108, 4.0: 68, 5.0: 53}


@pytest.mark.parametrize("identified", [False, True])
def test_so_many_equal_people_are_held_out_as_were_drawn(
    engine: DuckDBEngine, tmp_path: Path, identified: bool
) -> None:
    spec = few_kinds(tmp_path, identified)
    stored = tmp_path / "stored.parquet"
    types = engine.store_source(spec, stored).types()
    number = {
        kind: batch.hash[place]
        for batch in engine.batches(stored, spec, types, ())
        for place, kind in enumerate(batch.features["kind"])
    }
    chosen = {int(number[0]): 500, int(number[5]): 1, int(number[4]): 10_000}
    engine.hold_out(stored, spec, chosen, tmp_path / "kept.parquet", tmp_path / "held_out.parquet")
    everybody, kept, held_out = (stored_rows(tmp_path / name) for name in (stored, "kept.parquet", "held_out.parquet"))
    assert held_out.to_dict() == {0: 500, 4: everybody[4], 5: 1}
    assert kept.add(held_out, fill_value=0).to_dict() == everybody.to_dict()
    assert set(kept.index) == {0, 1, 2, 3, 5}
