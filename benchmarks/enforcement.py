"""What a demand costs beside k = 10 on whole Adult: merging, merging and splitting, suppressing, and all together.

Run: python -m benchmarks.enforcement
The demand is two distinct incomes in every class. Guidance is the out-of-fold probability of gradient boosting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from anon_pipeline.anonymize import classes, encoding, enforce, tree
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import IntArray

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")
DEMANDS = [KAnonymity(k=10), LDiversity(column="income", l=2, kind="distinct")]


def holds(statistics: ClassStatistics) -> np.ndarray:
    return np.logical_and.reduce([demand.holds(statistics) for demand in DEMANDS])


def main() -> None:
    people = pd.read_parquet(SPEC.source_path).replace("?", None)
    features = people[SPEC.features].apply(lambda c: c.astype("category") if c.dtype == object else c)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    guidance = cross_val_predict(model, features, people["income"], cv=5, method="predict_proba")[:, 1:]
    learned = [encoding.learn_domain(name, people[name]) for name in SPEC.quasi_identifiers]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance)
    counted = encoding.count_sensitive(cells, cell, people[["income"]])
    fitted = tree.fit_tree(cells, 10, 1.0, "both", 0)
    outputs = tree.criterion(cells, 1.0, 0)

    print(f"{'':34} {'classes':>8} {'suppressed':>10} {'information lost':>17} {'cpu s':>6}")

    def row(name: str, make: Callable[[], tuple[IntArray, int]]) -> None:
        start = time.process_time()
        class_of_cell, number = make()
        seconds = time.process_time() - start
        lost = np.mean(list(classes.information_loss(cells, class_of_cell, number).values()))
        suppressed = cells.counts[class_of_cell < 0].sum()
        print(f"{name:34} {number:>8,} {suppressed:>10,} {lost:>17.4f} {seconds:>6.1f}", flush=True)

    def enforced(limit: float) -> tuple[IntArray, int]:
        partition = enforce.enforce(cells, fitted, outputs, counted, holds, int(limit * cells.n))
        return partition.apply(cells.codes), partition.classes

    def merged() -> tuple[IntArray, int]:
        partition = enforce.enforce(cells, fitted, outputs, counted, holds, recount=lambda same, *_: same)
        return partition.apply(cells.codes), partition.classes

    def suppressed() -> tuple[IntArray, int]:
        leaf = fitted.apply(cells.codes)
        keep = holds(counted.merge(leaf, fitted.leaves))
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        return number[leaf], int(keep.sum())

    row("no demand beyond k", lambda: (fitted.apply(cells.codes), fitted.leaves))
    row("suppress every class that fails", suppressed)
    row("merge only", merged)
    row("merge and split again", lambda: enforced(0))
    row("merge, split, suppress up to 1 %", lambda: enforced(0.01))


if __name__ == "__main__":
    main()
