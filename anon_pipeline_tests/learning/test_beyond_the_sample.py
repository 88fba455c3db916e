"""People beyond `guide.sample` are guided under the private key, like those from whom the model learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.keys import Key
from anon_pipeline.learning.cells import NOBODY, StoredPeople, folds_of_sample, guided_cells
from anon_pipeline.learning.guide import TrainedGuide
from anon_pipeline.learning.problem import Problem
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.spec import Guide, ReleaseSpec
from anon_pipeline.tables import Cells
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.people import KEY

OTHER_KEY = Key(bytes(range(1, 33)))
HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=60)


def guided(
    engine: DuckDBEngine, folder: Path, key: Key, predictions: str = "out_of_fold"
) -> tuple[Cells, TrainedGuide, StoredPeople]:
    """The cells of 1,000 people, whose guide learns from 100, as the pipeline counts them; and the guide."""
    guide = {"model": "linear", "folds": 2, "sample": 100, "predictions": predictions}
    spec = ReleaseSpec.load(write_dataset(folder / "people", people(1000), policy() | {"guide": guide}))
    table = folder / "stored.parquet"
    types = engine.store_source(spec, table).types()
    sampled = engine.sample(table, spec, types, spec.guide.sample)
    sample, used = folds_of_sample(sampled.hash, spec.guide, key)
    trained = train_guide(Problem.of_spec(spec, types, sampled.features, sampled.target), used, sample.trained)
    assert isinstance(trained, TrainedGuide)
    stored = StoredPeople(engine, table, spec, types)
    return guided_cells(stored, trained, sample, 1.0), trained, stored


@pytest.mark.long
def test_an_attacker_cannot_compute_the_guidance_of_people_beyond_the_sample(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """An attack on the grouping of large tables, in which most people are not in the sample.

    The attacker has the code, the spec and everybody's quasi-identifiers, and assigns a sensitive value to everybody.
    Who is in the sample follows from a hash without a key. So they train the model of the whole sample and, where it
    predicts everybody else, know the guidance of nearly all people and see whether it gives the published classes. Of
    two members of a class with different values, they found out who has which in 36 of 40 tables of 2,000 people, of
    whom 100 were in the sample; with folds for everybody in 21, where chance finds 20.
    """
    cells, trained, stored = guided(engine, tmp_path, KEY)
    computed = guided_cells(stored, TrainedGuide({None: trained.full}, "probability"), NOBODY, 1.0)
    assert np.array_equal(computed.codes, cells.codes)
    assert np.mean(computed.guidance == cells.guidance) < 0.02


@pytest.mark.long
def test_another_key_guides_nearly_everybody_otherwise(engine: DuckDBEngine, tmp_path: Path) -> None:
    one, other = (guided(engine, tmp_path / name, key)[0] for name, key in (("one", KEY), ("other", OTHER_KEY)))
    assert np.mean(one.guidance == other.guidance) < 0.02


@pytest.mark.long
def test_a_guide_in_sample_needs_no_fold(engine: DuckDBEngine, tmp_path: Path) -> None:
    one, other = (
        guided(engine, tmp_path / name, key, "in_sample")[0] for name, key in (("one", KEY), ("other", OTHER_KEY))
    )
    assert np.array_equal(one.guidance, other.guidance)


@given(HASHES, HASHES, st.integers(2, 10))
def test_everybody_has_a_fold_that_a_model_was_trained_without(
    taught: list[int], others: list[int], folds: int
) -> None:
    """People of the sample and their doubles keep its folds, in any order and beside anybody."""
    sample, _ = folds_of_sample(np.array(sorted(taught)), Guide(folds=folds), KEY)
    everybody = np.array([*others, *sorted(taught)])
    fold = sample.fold_of(everybody)
    assert set(fold) <= set(sample.fold)
    assert np.array_equal(fold[len(others) :], sample.fold)
    assert np.array_equal(fold[::-1], sample.fold_of(everybody[::-1]))
    assert np.array_equal(fold[:1], sample.fold_of(everybody[:1]))


@pytest.mark.parametrize("folds", [2, 5])
def test_folds_of_others_are_drawn_alike_and_under_the_key(folds: int) -> None:
    taught, others = np.arange(100), np.arange(1_000, 11_000)
    fold, under_other = (
        folds_of_sample(taught, Guide(folds=folds), key)[0].fold_of(others) for key in (KEY, OTHER_KEY)
    )
    assert np.bincount(fold, minlength=folds).min() > 0.9 * len(others) / folds
    assert abs((fold == under_other).mean() - 1 / folds) < 0.05
