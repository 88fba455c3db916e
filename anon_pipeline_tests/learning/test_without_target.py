"""People without a target are grouped as others are: nothing is learnt from them, and the grouping tells of nobody."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key
from anon_pipeline.learning.cells import StoredPeople, folds_of_sample
from anon_pipeline.learning.problem import Problem
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.learning.tradeoff import trade_off
from anon_pipeline.learning.without_target import scored_rows, taught
from anon_pipeline.spec import Guide, ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.people import KEY

OTHER_KEY = Key(bytes(range(1, 33)))


def with_gaps(share: float = 0.3, n: int = 400, seed: int = 1) -> pd.DataFrame:
    """People of whom so many, whoever they are, have no target."""
    frame = people(n, seed)
    gone = np.random.default_rng(seed + 100).random(n) < share
    return frame.assign(ill=frame["ill"].mask(gone))


def dataset(folder: Path, frame: pd.DataFrame, missing_target: str | None = "release", **more: Any) -> ReleaseSpec:
    spec = policy() | ({"missing_target": missing_target} if missing_target else {}) | more
    return ReleaseSpec.load(write_dataset(folder / "people", frame, spec))


def guidance(spec: ReleaseSpec, engine: DuckDBEngine, table: Path, key: Key = KEY) -> pd.DataFrame:
    """The people as stored, with what the model says of each in the column `#says`, trained as the pipeline does."""
    types = engine.store_source(spec, table).types()
    everybody = engine.sample(table, spec, types, spec.guide.sample)
    sample, guide = folds_of_sample(everybody.hash, spec.guide, key, taught(spec, everybody.target))
    problem = Problem.of_spec(spec, types, everybody.features, everybody.target)
    trained = train_guide(problem, guide, sample.trained)
    says = trained.guidance(everybody.features, sample.fold)[:, 0]
    return everybody.features.assign(ill=everybody.target, **{"#says": says})


@pytest.mark.long
def test_what_is_learnt_does_not_hang_on_people_without_a_target(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Their columns may say anything: of all others the model says the same."""
    frame = with_gaps()
    gone = frame["ill"].isna()
    other = frame.assign(visits=frame["visits"].mask(gone, 99), age=frame["age"].mask(gone, 18))
    said = [
        guidance(dataset(tmp_path / name, table), engine, tmp_path / f"{name}.parquet").dropna(subset="ill")
        for name, table in (("one", frame), ("other", other))
    ]
    one, another = (table.sort_values(list(table.columns)).reset_index(drop=True) for table in said)
    pd.testing.assert_frame_equal(one, another)


@pytest.mark.long
def test_who_has_no_target_is_asked_of_models_drawn_under_the_key(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Otherwise who knows all others could train the one model there is, and try which target gives the release."""
    spec = dataset(tmp_path, with_gaps(share=0.9, n=1000))
    said = [guidance(spec, engine, tmp_path / "stored.parquet", key) for key in (KEY, OTHER_KEY)]
    of_missing = [table.loc[table["ill"].isna(), "#says"] for table in said]
    assert (of_missing[0].to_numpy() != of_missing[1].to_numpy()).any()


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=2, max_size=60).filter(
        lambda people: any(known for _, known in people)
    ),
    st.integers(2, 10),
)
def test_every_fold_is_one_that_models_were_trained_without(drawn: list[tuple[int, bool]], folds: int) -> None:
    hashes = np.array(sorted(2 * value + known for value, known in drawn), dtype=np.int64)
    known = hashes % 2 == 1
    sample, guide = folds_of_sample(hashes, Guide(folds=folds), KEY, known)
    assert set(sample.trained[~known]) <= {-1}
    assert (sample.trained[known] == sample.fold[known]).all()
    if guide.predictions == "out_of_fold":
        taught_folds = set(sample.trained[known])
        assert len(taught_folds) == min(folds, len(set(hashes[known]))) >= 2
        assert set(sample.fold) <= taught_folds
    assert all(len(set(sample.fold[hashes == one])) == 1 for one in set(hashes))  # doubles share a fold


@pytest.mark.long
def test_the_grouping_does_not_tell_who_has_no_target(engine: DuckDBEngine, tmp_path: Path) -> None:
    """An attack: the attacker sees who shares a class, and guesses that people without a target stand together.

    Who has none was drawn at random, so that shares of them by class are as chance makes them, unless the grouping
    treats them otherwise. The columns are numbers that nobody shares: a cell is a person.
    """
    frame = with_gaps(n=1500)
    frame = frame.assign(age=frame["age"] + np.random.default_rng(5).random(len(frame)).round(6))
    spec = dataset(tmp_path, frame, guide={"model": "decision_tree", "folds": 2, "spread": 0})
    said = guidance(spec, engine, tmp_path / "stored.parquet")
    tree = tree_of(spec, KEY).fit(said[spec.quasi_identifiers], said[["#says"]].to_numpy())
    group = tree.apply(said[spec.quasi_identifiers])
    missing = said["ill"].isna().to_numpy()

    def spread_of(gaps: np.ndarray) -> float:
        return float(np.var(np.bincount(group, weights=gaps) / np.bincount(group)))

    random = np.random.default_rng(9)
    by_chance = [spread_of(random.permutation(missing)) for _ in range(400)]
    assert np.quantile(by_chance, 0.001) <= spread_of(missing) <= np.quantile(by_chance, 0.999)


@given(st.integers(10, 3000), st.data())
def test_the_number_of_people_scored_hides_one_of_them(people_in_all: int, data: st.DataObject) -> None:
    missing = data.draw(st.integers(0, people_in_all))
    spec = ReleaseSpec.model_validate(policy() | {"missing_target": "release"})

    def taken(gaps: int) -> int:
        target = pd.Series([None] * gaps + ["yes"] * (people_in_all - gaps), dtype=object)
        try:
            rows = scored_rows(spec, target)
        except InputError:
            return 0
        assert (rows >= gaps).all()
        return len(rows)

    step = int(np.ceil(np.sqrt(people_in_all)))
    assert (people_in_all - taken(missing)) % step == 0 or taken(missing) == 0
    assert taken(missing) >= people_in_all - missing - 2 * step
    assert taken(0) == taken(min(1, people_in_all))  # nobody, or one


def test_a_spec_without_the_choice_scores_everybody() -> None:
    spec = ReleaseSpec.model_validate(policy())
    assert len(scored_rows(spec, pd.Series(["yes", "no"] * 50))) == 100


def test_a_sample_in_which_nobody_has_a_target_is_told() -> None:
    spec = ReleaseSpec.model_validate(policy() | {"missing_target": "release"})
    with pytest.raises(InputError, match="target: ill is missing for all 3 people"):
        taught(spec, pd.Series([None] * 3, dtype=object))


@pytest.mark.long
def test_a_sweep_measures_with_people_without_a_target(engine: DuckDBEngine, tmp_path: Path) -> None:
    spec = dataset(tmp_path, with_gaps())
    table = tmp_path / "stored.parquet"
    types = engine.store_source(spec, table).types()
    (point,) = trade_off(StoredPeople(engine, table, spec, types), KEY, [{"privacy.k_anonymity.k": 20}])
    assert point.measured is not None and point.measured.suppressed == 0
    assert point.utility is not None and point.utility.rows <= with_gaps()["ill"].notna().sum()
    assert dataclasses.asdict(point)["refused"] is None
