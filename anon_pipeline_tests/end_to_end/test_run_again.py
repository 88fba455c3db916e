"""Who holds a published folder and runs the program again for every assignment of values learns hardly anything.

The attacker knows the quasi-identifiers of everybody, the code and the spec, and lacks the private key. For each
assignment of sensitive values that fits the published histograms they train the guide anew, which learns from these
very values, and group under keys of their own; an assignment that never gives the published classes is ruled out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.attack.replay import replay
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Place, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from benchmarks.rerun import Rerun

KEY, SECRET = "RUN_AGAIN_KEY", "7d" * 32
#: Of these people most keys make the same classes, so that the tries tell; without a demand there is one class more.
N, TRIES, SELDOM = 10, 150, 10.0
Values = npt.NDArray[np.object_]
DEMANDS: dict[str, dict[str, Any]] = {
    "l_diversity": {"column": "ill", "l": 2},
    "t_closeness": {"column": "ill", "t": 0.35, "distance": "equal"},
}


def spec_of(demand: str) -> dict[str, Any]:
    return {
        "dataset": "people",
        "source": {"path": "people.csv"},
        "target": "ill",
        "columns": {
            "age": {"role": "quasi_identifier", "type": "numeric"},
            "town": {"role": "quasi_identifier", "type": "categorical"},
            "ill": {"role": "sensitive", "type": "categorical"},
        },
        "privacy": {"k_anonymity": {"k": 3}, demand: DEMANDS[demand]},
        "guide": {"model": "linear", "folds": 2},
        "utility": {"folds": 2, "models": []},
        "audit": {"enabled": False},
        "draws": {"environment": KEY},
    }


def people() -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": random.integers(20, 60, N),
            "town": random.choice(["Bonn", "Kiel", "Ulm"], N),
            "ill": random.permutation(["yes"] * 4 + ["no"] * (N - 4)),
        }
    )


def known() -> pd.DataFrame:
    return people()[["age", "town"]]


def shown_by(tree: AnonymizerTree | None, ill: Values) -> list[list[str]] | None:
    """What a release shows: its rows and its classes, in no order."""
    if tree is None:
        return None
    rows = tree.transform(known()).assign(ill=ill[tree.apply(known()) >= 0])
    return as_read(rows) + as_read(tree.classes_)


def as_read(table: pd.DataFrame) -> list[list[str]]:
    """The rows of a table as texts, in no order: numbers as fractions, and lists in no order either."""
    return sorted([_text(one) for one in row] for row in table.to_numpy(object))


def _text(one: object) -> str:
    if np.ndim(one):
        return str(sorted(map(str, one)))
    return str(float(one)) if isinstance(one, int | float | np.number) else str(one)


@dataclass(frozen=True, eq=False)
class Published:
    """What the attacker has: the spec, and what the folder shows."""

    spec: ReleaseSpec
    shown: list[list[str]]

    def trees(self, ill: Values, key: Key) -> AnonymizerTree | None:
        return Rerun(self.spec, known()).tree(ill, key)


@pytest.fixture(scope="module", params=DEMANDS)
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("again")
    place = Place(Home(root / "home"), write_dataset(root / "people", people(), spec_of(request.param)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(KEY, SECRET)
        released_in_steps(place)
    rows = pd.read_parquet(place.release / "data.parquet")[["age", "town", "ill"]]
    return Published(place.spec, as_read(rows) + as_read(pd.read_parquet(place.release / "classes.parquet")))


def test_the_attacker_repeats_the_run_itself(published: Published) -> None:
    """With the private key the same is shown, so that what follows is about the program as it is."""
    ill = people()["ill"].to_numpy(dtype=object)
    assert shown_by(published.trees(ill, Key(bytes.fromhex(SECRET))), ill) == published.shown


def test_without_the_key_hardly_anybody_is_learned(published: Published) -> None:
    values, truth = np.unique(people()["ill"].to_numpy(dtype=object), return_inverse=True)
    tree = published.trees(values[truth], Key(bytes.fromhex(SECRET)))
    assert tree is not None
    group = tree.apply(known())
    assert len(set(group)) > 1

    def regroup(assigned: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.int64]:
        ill = values[assigned]
        same = shown_by(published.trees(ill, Key(number.to_bytes(32, "big"))), ill) == published.shown
        return group if same else np.full(len(group), -1)

    found = replay(group, truth.astype(np.int64), regroup, TRIES, SELDOM)
    assert not found.certain.any()
    assert found.undecided.sum() <= 3  # more tries would tell of these, too
