"""Twenty-four monthly releases of a changing population: the leaks of naive re-releases, and the cost of a demand.

Run: python -m benchmarks.over_time [--months 24] [--people 30000] [--window 12]
The people are those of Adult, k = 10. In a year 5 % of them leave and as many others come; everybody ages by a year at
their own birthday. A model trained on each release is scored on 10,000 raw people who are in no release. The candidates
of a person are the people who share their class, or their absence, in every release of the window
(privacy/across_releases.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.policy import mean_loss
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.sequential.cohorts import MinimumCohortSize, in_company
from anon_pipeline.sequential.guarantees import ABSENT, classes_of_histories, histories, intersection
from anon_pipeline.sequential.republication import (
    Demands,
    PeopleByCohort,
    Routing,
    SequentialGrouping,
    group_sequentially,
)
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import HISTORY

KEY = Key(bytes(32))

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")
K, CHURN, TESTED = 10, 0.05, 10_000  # CHURN per year


@dataclass
class Strategy:
    """A way to release month after month, and its releases so far."""

    name: str
    reserve: float = 0.0
    follows: bool = False  # keeps people of one history together
    refit: float = 0.0
    departures: bool = False
    classes: list[IntArray] = field(default_factory=list)
    routing: Routing | None = None

    def release(self, people: pd.DataFrame, guidance: np.ndarray, present: IntArray, window: int) -> SequentialGrouping:
        """Release the people `present` (positions among all people of all months)."""
        everybody = len(self.classes[0]) if self.classes else len(guidance)
        former = self.classes[-(window - 1) :] if self.follows else []
        history = histories(former, everybody)
        is_there = np.zeros(everybody, dtype=bool)
        is_there[present] = True
        departed = np.bincount(history[~is_there], minlength=int(history.max()) + 1)
        own = history[present]
        if self.departures:
            own = in_company(own, departed, present, K, KEY, str(len(self.classes)))
        columns = people[SPEC.quasi_identifiers].assign(**{HISTORY: own})
        learned = [encoding.learn_domain(name, columns[name]) for name in columns]
        codes = np.stack([code for _, code in learned], axis=1)
        cells, cell = encoding.count_cells(tuple(one for one, _ in learned), codes, guidance[present, None])
        newest = self.classes[-1] if self.classes else np.full(everybody, ABSENT)
        former_class = classes_of_histories(history, newest)
        minimum_size = MinimumCohortSize(K, int(np.ceil(K * (1 + self.reserve))))
        demands = Demands([KAnonymity(k=K)], SPEC.guide.spread, SPEC.guide.orders, {}, 0)
        found = group_sequentially(
            PeopleByCohort(cells, encoding.count_sensitive(cells, cell, None), former_class),
            self.routing,
            minimum_size,
            demands,
            self.refit,
            KEY,
        )
        self.routing = found.routing
        new = np.full(everybody, ABSENT, dtype=np.int64)
        new[present] = found.grouping.class_of_cell[cell]
        self.classes.append(new)
        return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--months", type=int, default=24)
    parser.add_argument("--people", type=int, default=30_000)
    parser.add_argument("--window", type=int, default=12)
    options = parser.parse_args(arguments)
    generator = np.random.default_rng(0)
    frame = pd.read_parquet(SPEC.source_path).replace("?", None)
    frame = frame.iloc[generator.permutation(len(frame))].reset_index(drop=True)
    tested, pool = frame.iloc[:TESTED], frame.iloc[TESTED:].reset_index(drop=True)
    coded = Codes(frame)
    birthday = generator.integers(0, 12, len(pool))
    present = np.arange(options.people)
    coming = options.people
    guidance = guidance_of(pool, present, coded)

    strategies = [
        Strategy("a new tree each month", refit=-1.0),
        Strategy("the first tree kept", refit=1e9),
        Strategy("held together", reserve=0.3, follows=True, refit=0.1),
        Strategy("held together, departures too", reserve=0.3, follows=True, refit=0.1, departures=True),
    ]
    raw = auc(coded, pool.iloc[present], pool.iloc[present], tested)
    print(f"raw people: AUC {raw:.4f}\n")
    headings = ("month", "way", "released", "fewer than k candidates", "alone", "of those who left, fewer than k")
    headings += ("information lost", "AUC", "cpu s")
    print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
    for month in range(options.months):
        if month:
            leaving = generator.random(len(present)) < CHURN / 12
            newcomers = np.arange(coming, coming + int(leaving.sum()))
            coming += len(newcomers)
            present = np.sort(np.r_[present[~leaving], newcomers])
        people = pool.iloc[present].copy()
        people["age"] = people["age"] + (month + birthday[present]) // 12
        for strategy in strategies:
            start = time.process_time()
            found = strategy.release(people, guidance, present, options.window)
            seconds = time.process_time() - start
            classes = strategy.classes[-options.window :]
            left = intersection(classes[:-1], classes[-1], K)
            released = released_people(people, found, strategy.classes[-1][present])
            print(
                f"| {month + 1} | {strategy.name} | {len(released):,} | {left.below / left.people:.1%} | "
                f"{left.alone / left.people:.1%} | {left.left_below:,} of {left.left:,} | "
                f"{mean_loss(found.grouping.information_loss):.3f} | "
                f"{auc(coded, released, pool.loc[released.index], tested):.4f} | {seconds:.1f} |",
                flush=True,
            )


class Codes:
    """Encodes features for a boosted model, in the same way for every table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.kinds = {name: frame[name].astype("category").cat.categories for name in frame.select_dtypes(object)}

    def of(self, people: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: pd.Categorical(people[name], self.kinds[name])
                if name in self.kinds
                else people[name].astype(float)
                for name in SPEC.features
            }
        )


def guidance_of(pool: pd.DataFrame, present: IntArray, coded: Codes) -> np.ndarray:
    """The out-of-fold predictions for everybody of models trained in the first month."""
    features, target = coded.of(pool), pool["income"].to_numpy()
    fold = np.arange(len(pool)) % 5
    predicted = np.zeros(len(pool))
    for one in range(5):
        trained = present[fold[present] != one]
        model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
        model.fit(features.iloc[trained], target[trained])
        predicted[fold == one] = model.predict_proba(features[fold == one])[:, 1]
    return predicted


def released_people(people: pd.DataFrame, found: SequentialGrouping, class_of_person: IntArray) -> pd.DataFrame:
    """The release: everybody with the recoded values of their class."""
    kept = class_of_person != ABSENT
    shown = recoded_table(found.grouping.summaries, "value").to_pandas().iloc[class_of_person[kept]]
    released = people[kept].copy()
    for name in SPEC.quasi_identifiers:
        released[name] = shown[name].to_numpy()
    return released


def auc(coded: Codes, people: pd.DataFrame, raw: pd.DataFrame, tested: pd.DataFrame) -> float:
    """AUC on raw people of a model trained on a release."""
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    model.fit(coded.of(people), raw["income"].to_numpy())
    return float(roc_auc_score(tested["income"] == model.classes_[1], model.predict_proba(coded.of(tested))[:, 1]))


if __name__ == "__main__":
    main()
