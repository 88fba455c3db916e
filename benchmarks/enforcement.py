"""The cost of a demand besides k = 10 on whole Adult: merging, merging and splitting, suppressing, and all together.

Run: python -m benchmarks.enforcement
The demand is two distinct incomes in every class. Guidance is the out-of-fold probability of gradient boosting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from anon_pipeline.anonymize import classes, encoding, enforce, refinement, tree
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.criterion import criterion_outputs
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ReleaseSpec

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")
DEMANDS = [KAnonymity(k=10), LDiversity(column="income", l=2, kind="distinct")]


def holds(statistics: ClassStatistics) -> npt.NDArray[np.bool_]:
    held: npt.NDArray[np.bool_] = np.logical_and.reduce([demand.holds(statistics) for demand in DEMANDS])
    return held


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
    outputs = criterion_outputs(cells, 1.0, 0)

    print(f"{'':34} {'classes':>8} {'suppressed':>10} {'information lost':>17} {'cpu s':>6}")

    def row(name: str, make: Callable[[], IntArray]) -> None:
        start = time.process_time()
        class_of_cell = make()
        seconds = time.process_time() - start
        number = int(class_of_cell.max()) + 1
        lost = np.mean(list(classes.information_loss(cells, class_of_cell, number).values()))
        suppressed = cells.counts[class_of_cell < 0].sum()
        print(f"{name:34} {number:>8,} {suppressed:>10,} {lost:>17.4f} {seconds:>6.1f}", flush=True)

    leaf = fitted.apply(cells.codes)
    chance, none = Chance.of(Key(bytes(32)), cells), Chance.none(cells)

    def enforced(limit: float, before: IntArray, chance: Chance) -> IntArray:
        prepared = enforce.prepare(
            cells, fitted.features, before, outputs, counted, holds, int(limit * cells.n), least=10
        )
        return prepared.under(chance)

    def merged() -> IntArray:
        prepared = enforce.prepare(cells, fitted.features, leaf, outputs, counted, holds, recount=lambda same, *_: same)
        return prepared.under(none)

    def suppressed() -> IntArray:
        keep = holds(counted.merge(leaf, fitted.leaves))
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        return number[leaf]

    def refined() -> IntArray:
        return refinement.refine(cells, leaf, 10, 1.0)

    row("no demand beyond k", lambda: leaf)
    row("no demand beyond k, refined", refined)
    row("suppress every class that fails", suppressed)
    row("merge only", merged)
    row("merge and split again", lambda: enforced(0, leaf, none))
    row("refine, merge and split", lambda: enforced(0, refined(), none))
    row("the same under a key (the default)", lambda: enforced(0, refined(), chance))
    row("the same, suppress up to 1 %", lambda: enforced(0.01, refined(), chance))


if __name__ == "__main__":
    main()
