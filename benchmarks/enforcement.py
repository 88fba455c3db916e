"""The cost of a demand besides k = 10 on whole Adult: merging, merging and splitting, suppressing, and all together.

Run: python -m benchmarks.enforcement [--people 48842]
The demand is two distinct incomes in every class. Guidance is the out-of-fold probability of gradient boosting.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from anon_pipeline.anonymize import classes, encoding, refinement, tree
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.criterion import criterion_outputs
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.spec import ReleaseSpec

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")
DEMANDS = [KAnonymity(k=10), LDiversity(column="income", l=2, kind="distinct")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, help="so many of Adult, drawn with seed 0; all where absent")
    asked = parser.parse_args(arguments)
    people = pd.read_parquet(SPEC.source_path).replace("?", None)
    if asked.people is not None:
        people = people.sample(asked.people, random_state=0).reset_index(drop=True)
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
    refined = refinement.refine(cells, leaf, 10, 1.0)
    none, key = Chance.none(cells), Key(bytes(32))
    of_tree = Repair(cells, fitted.features, leaf, outputs, counted, DEMANDS)
    of_refined = replace(of_tree, class_of_cell=refined)
    uncut = replace(of_tree, recount=lambda merged, *_: merged)  # where people are counted anew, nothing is cut

    def suppressed() -> IntArray:
        keep = of_tree.holds(counted.merge(leaf, fitted.leaves))
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        return number[leaf]

    row("no demand beyond k", lambda: leaf)
    row("no demand beyond k, refined", lambda: refinement.refine(cells, leaf, 10, 1.0))
    row("suppress every class that fails", suppressed)
    row("merge only", lambda: uncut.prepared().under(none))
    row("merge and split again", lambda: of_tree.prepared().under(none))
    row("refine, merge and split", lambda: of_refined.prepared().under(none))
    row("the same under a key (the default)", lambda: of_refined.repaired(key))
    row("the same, suppress up to 1 %", lambda: replace(of_refined, suppressible=cells.n // 100).repaired(key))


if __name__ == "__main__":
    main()
