"""What refinement and a demand cost beside the tree as people become more: processor seconds, and times the tree's.

Run: python -m benchmarks.demand [--people 60000 120000 240000 1000000] [--k 10]
The people are those of benchmarks/large.py: Adult's, drawn again and again, with ages and hours moved by up to four
years and hours; guidance is given. The demand is two distinct incomes in every class.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from anon_pipeline.anonymize import classes, encoding, refinement, tree
from anon_pipeline.anonymize.criterion import criterion_outputs
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.tables import Cells
from benchmarks.large import QUASI_IDENTIFIERS, GivenGuide, generate
from benchmarks.machine import processor, versions

KEY = Key(bytes(32))
Result = TypeVar("Result")


def people(rows: int, folder: Path) -> tuple[Cells, ClassStatistics]:
    """The cells of the people, and the incomes per cell."""
    table = folder / f"people-{rows}.parquet"
    generate(rows, table)
    frame = pd.read_parquet(table).replace("?", None)
    learned = [encoding.learn_domain(name, frame[name]) for name in QUASI_IDENTIFIERS]
    codes = np.stack([code for _, code in learned], axis=1)
    domains = tuple(domain for domain, _ in learned)
    cells, cell = encoding.count_cells(domains, codes, GivenGuide().guidance(frame, None))
    return cells, encoding.count_sensitive(cells, cell, frame[["income"]])


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result of the work, and its processor seconds."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def measured(cells: Cells, incomes: ClassStatistics, k: int) -> str:
    """A row of the table per grouping of the same people: by the tree alone, refined, and with the demand."""
    fitted, of_tree = timed(lambda: tree.fit_tree(cells, k, 1.0, "both", 0, weighed=True))
    leaf = fitted.apply(cells.codes)
    refined, of_refinement = timed(lambda: refinement.refine(cells, leaf, k, 1.0))
    demands = [KAnonymity(k=k), LDiversity(column="income", l=2, kind="distinct")]

    def demanded(before: IntArray) -> IntArray:
        outputs = criterion_outputs(cells, 1.0, 0)
        return Repair(cells, fitted.features, before, outputs, incomes, demands).repaired(KEY)

    ways = {
        "tree": (leaf, of_tree),
        "+ refined": (refined, of_refinement),
        "tree + demand": timed(lambda: demanded(leaf)),
        "refined + demand": timed(lambda: demanded(refined)),
    }
    rows = []
    for name, (group, seconds) in ways.items():
        number = int(group.max()) + 1
        lost = np.mean(list(classes.information_loss(cells, group, number).values()))
        told = f"{number:,} | {cells.n / number / k:.2f} | {lost:.4f} | {seconds:.2f} | {seconds / of_tree:.1f}"
        rows.append(f"| {cells.n:,} | {len(cells.counts):,} | {name} | {told} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[60_000, 120_000, 240_000, 1_000_000])
    parser.add_argument("--k", type=int, default=10)
    asked = parser.parse_args()
    print(f"{processor()}; {versions('numpy', 'scipy', 'scikit-learn')}; k = {asked.k}\n")
    print("| People | Cells | Classes of | Number | Mean size / k | Lost | cpu s | times the tree |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in asked.people:
            print(measured(*people(rows, Path(folder)), asked.k), flush=True)


if __name__ == "__main__":
    main()
