"""Cells with guidance are the same on any threads and in any order, and so are bins where there are too many values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine.base import Recoding
from anon_pipeline.engine.binning import bins_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.learning.cells import StoredPeople, fitting_domains, folds_of_sample, guided_cells
from anon_pipeline.learning.guide import train
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import Problem
from anon_pipeline.tables import Cells
from anon_pipeline_tests.engine.test_duckdb import NUMBER, QI, people, stored
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import KEY, write_spec


def guided(engine: DuckDBEngine, folder: Path, frame: pd.DataFrame, model: str, target: str) -> Cells:
    folder.mkdir()
    frame.to_csv(folder / "people.csv", index=False)
    said = {"age": QI, "city": {"role": QI, "type": "categorical"}, "income": "insensitive", "t": "sensitive"}
    guide = {"model": model, "sample": 1_500, "folds": 3}
    spec = write_spec(folder, said, "people.csv", k=10, target=target, guide=guide)
    table = folder / "stored.parquet"
    types = engine.store_source(spec, table).types()
    sample = engine.sample(table, spec, types, spec.guide.sample)
    assert (np.diff(sample.hash) >= 0).all()
    folded, guide_used = folds_of_sample(sample.hash, spec.guide, KEY)
    features = {name: types[name] for name in spec.features}
    trained = train(
        Problem(sample.features, sample.target, task_of(types[target]), features, spec.seed), guide_used, folded.fold
    )
    return guided_cells(StoredPeople(engine, table, spec, types), trained, folded, 1.0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "target"), [("gradient_boosting", "t"), ("linear", "t"), ("decision_tree", "income")]
)
def test_guidance_moves_with_the_order_of_rows_or_the_number_of_threads(
    tmp_path: Path, model: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anon_pipeline.engine import duckdb_session

    frame = people(2_000, 5, {"age": "whole", "city": "text", "income": "near_unique"})
    frame["city"] = frame["city"].replace({"a\nb": "ab", "": "Ulm"})
    frame["income"] = frame["income"].fillna(1e6).round(2)
    frame = pd.concat([frame, frame.head(30)])  # doubles, too
    once = guided(DuckDBEngine(tmp_path, threads=1), tmp_path / "one", frame, model, target)
    monkeypatch.setattr(duckdb_session, "BATCH_ROWS", 300)
    shuffled = frame.sample(frac=1, random_state=1)
    twice = guided(DuckDBEngine(tmp_path, threads=4), tmp_path / "two", shuffled, model, target)
    for part in ("codes", "counts", "guidance"):
        assert (getattr(once, part) == getattr(twice, part)).all()
    assert once.n == 2_030
    assert len(np.unique(once.mean_guidance().round(6))) > 5
    first, second = (AnonymizerTree(k=10).fit_cells(cells) for cells in (once, twice))
    pd.testing.assert_frame_equal(first.classes_, second.classes_)


def everybody_alone(n: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(generator.integers(0, 20_000, n), unit="D")
    pay = np.where(generator.random(n) < 0.05, np.nan, generator.lognormal(10, 1, n))
    return pd.DataFrame({"born": born, "pay": pay, "zip": generator.integers(10_000, 10_040, n).astype(str)}).assign(
        t=np.where(generator.random(n) < 0.4, "ill", "well")
    )


@pytest.mark.long
@pytest.mark.parametrize("limit", [100, 1_000, 100_000])
def test_the_guarantee_depends_on_how_many_cells_there_may_be(engine: DuckDBEngine, tmp_path: Path, limit: int) -> None:
    frame = everybody_alone(3_000)
    spec, place, types = stored(engine, tmp_path, frame, roles={"zip": {"role": QI, "type": "categorical"}})
    quasi_identifiers = {name: types[name] for name in spec.quasi_identifiers}
    if limit == 100:
        with pytest.raises(InputError, match="more than 100 distinct tuples"):
            fitting_domains(engine, place, quasi_identifiers, limit)
        return
    domains = fitting_domains(engine, place, quasi_identifiers, limit)
    assert {domain.name for domain in domains if domain.binned} == ({"born", "pay"} if limit == 1_000 else set())
    assert engine.count_cells(place, domains) <= limit
    key = np.concatenate(
        [np.repeat(batch.key, batch.people, axis=0) for batch in engine.batches(place, spec, types, domains)]
    )
    distinct, counts = np.unique(key, axis=0, return_counts=True)
    cells = engine.cells(domains, distinct, counts.astype(np.int64), counts[:, None].astype(np.int64))
    tree = AnonymizerTree(k=20).fit_cells(cells)
    shown = recoded_table(tree.summaries_, "value")
    group = tree.partition_.apply(cells.codes)
    engine.write_release(place, Recoding(cells, group, shown), spec.released, tmp_path / "data.parquet")
    counted_again = engine.classes(tmp_path / "data.parquet", spec.quasi_identifiers, [])
    assert counted_again.sizes.min() >= 20
    assert counted_again.sizes.sum() == 3_000
    # The stored tree sends everyone to the class that the engine put them in, and its interval holds their value.
    tree.save(tmp_path / "tree.json")
    found = AnonymizerTree.load(tmp_path / "tree.json").apply(frame[spec.quasi_identifiers])
    assert np.bincount(found).tolist() == tree.sizes_.tolist()
    classes = tree.classes_.iloc[found].reset_index(drop=True)
    known = frame["pay"].notna() & classes["pay_low"].notna()
    assert (classes["pay_low"][known].astype(float) <= frame["pay"][known]).all()
    assert (classes["pay_high"][known].astype(float) >= frame["pay"][known]).all()
    assert (classes["born_low"] <= frame["born"]).all()
    assert (classes["born_high"] >= frame["born"]).all()


def test_a_model_may_write_to_what_it_is_given(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Numbers without a gap are Arrow's own, which nobody may write to, until they are copied."""
    frame = pd.DataFrame(
        {"pay": np.arange(40) / 8, "age": range(40), "town": ["Ulm", "Bonn"] * 20, "t": ["a", "b"] * 20}
    )
    spec, place, types = stored(engine, tmp_path, frame)
    domains = engine.domains(place, {name: types[name] for name in spec.quasi_identifiers})
    for batch in engine.batches(place, spec, types, domains):
        for name in batch.features:
            batch.features[name].to_numpy()[0] = batch.features[name].iloc[1]


@settings(max_examples=times(30))
@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.integers(1, 9)), min_size=1, max_size=60, unique_by=lambda pair: pair[0]
    ),
    st.integers(1, 12),
    st.integers(1, 7),
)
def test_bins_lose_a_value_or_depend_on_how_they_arrive(pairs: list[tuple[int, int]], bins: int, batch: int) -> None:
    pairs = sorted(pairs)
    table = pa.table(
        {"value": pa.array([value for value, _ in pairs]), "people": pa.array([count for _, count in pairs])}
    )
    known = sum(count for _, count in pairs)
    once, parts = (bins_of("x", NUMBER, "BIGINT", table.to_batches(size), known, bins) for size in (len(pairs), batch))
    for part in ("values", "counts", "low", "high"):
        assert (getattr(once, part) == getattr(parts, part)).all()
    assert once.counts.sum() == known
    assert len(once.values) <= bins
    assert (once.low <= once.values).all()
    assert (once.values <= once.high).all()
    assert (once.high[:-1] < once.low[1:]).all()
    for value, _ in pairs:
        assert ((once.low <= value) & (value <= once.high)).sum() == 1
    for low, high, number in zip(once.low, once.high, once.counts[1:], strict=True):
        assert number == sum(count for value, count in pairs if low <= value <= high)
