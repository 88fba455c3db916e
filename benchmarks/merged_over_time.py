"""Whether chance still hides, after several releases, why two groups of people are one class.

Run: python -m benchmarks.merged_over_time [--tables 120] [--months 6] [--ill .15]
Each table has 600 people with age, town and sex, of whom some are ill; k = 10, 2-diversity. Every month 8 % of the
people have a birthday. Two nodes of the tree that are one class are so because one of them fails the demand, or by
chance. For pairs that have been one class for so many releases running, and of which both values occur twice at least,
the table says how often one node has a single value, and how often that is so if values are shuffled within the class.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.policy import mean_loss
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.sequential.cohorts import MinimumCohortSize, place
from anon_pipeline.sequential.guarantees import ABSENT, classes_of_histories, histories
from anon_pipeline.sequential.republication import Demands, PeopleByCohort, Routing, group_sequentially
from anon_pipeline.tables import HISTORY

PEOPLE, K, BIRTHDAYS = 600, 10, 0.08
DEMANDS = Demands([KAnonymity(k=K), LDiversity(column="ill", l=2, kind="distinct")], 1.0, "both", {}, 0)
SIZE = MinimumCohortSize(K, 13)
#: The first tree is kept, so that its nodes can be followed.
KEPT_ALWAYS = 1e9


@dataclass(frozen=True, eq=False)
class Month:
    """A release: the node and the class of each person, shape (n,), and the share of information that it loses."""

    node: IntArray
    class_: IntArray
    lost: float

    def pairs(self) -> dict[tuple[int, int], BoolArray]:
        """The pairs of nodes that are one class, with the people of the first node and those of the second, (2, n)."""
        pairs = {}
        for number in range(int(self.class_.max()) + 1):
            nodes = np.unique(self.node[self.class_ == number])
            if len(nodes) == 2:
                pairs[int(nodes[0]), int(nodes[1])] = self.node == nodes[:, None]
        return pairs


def months(seed: int, number: int, ill: float, birthdays: float = BIRTHDAYS) -> tuple[list[Month], BoolArray]:
    """Releases of one table, one after another, and who is ill."""
    generator = np.random.default_rng(seed)
    key = Key(generator.bytes(32))
    age = generator.integers(18, 80, PEOPLE)
    frame = pd.DataFrame(
        {"town": generator.integers(0, 3, PEOPLE).astype(str), "sex": generator.integers(0, 2, PEOPLE)}
    )
    is_ill = generator.random(PEOPLE) < ill
    released: list[Month] = []
    routing: Routing | None = None
    for _ in range(number):
        history = histories([month.class_ for month in released], PEOPLE)
        former = classes_of_histories(history, released[-1].class_ if released else np.full(PEOPLE, ABSENT))
        columns = frame.assign(age=age, **{HISTORY: history})
        learned = [encoding.learn_domain(name, columns[name]) for name in columns]
        codes = np.stack([code for _, code in learned], axis=1)
        cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, age[:, None] / 100)
        people = encoding.count_sensitive(cells, cell, pd.DataFrame({"ill": np.where(is_ill, "yes", "no")}))
        cohorts = PeopleByCohort(cells, people, former)
        found = group_sequentially(cohorts, routing, SIZE, DEMANDS, KEPT_ALWAYS, key)
        routing = found.routing
        node = place(routing.tree, routing.apply(cells), cohorts.numbers(), cells.counts, SIZE)
        grouping = found.grouping
        released.append(Month(node[cell], grouping.class_of_cell[cell], mean_loss(grouping.information_loss)))
        age = age + (generator.random(PEOPLE) < birthdays)
    return released, is_ill


@dataclass
class Pairs:
    """What was counted of pairs that are one class.

    Attributes
    ----------
    number : the pairs
    single : those of which one node has a single value
    expected : how many these would be if values were shuffled within each pair
    """

    number: int = 0
    single: int = 0
    expected: float = 0.0

    def add(self, first: IntArray, second: IntArray) -> None:
        """Count a pair, given the people of each value in either node, shape (2,)."""
        self.number += 1
        self.single += bool((first == 0).any() or (second == 0).any())
        both, size = first + second, int(first.sum())
        in_first = np.arange(size + 1)
        other = size - in_first
        single = (in_first == 0) | (other == 0) | (both[1] == in_first) | (both[0] == other)
        self.expected += float(hypergeom(both.sum(), both[1], size).pmf(in_first[single]).sum())


def counted(tables: Sequence[int], number: int, ill: float) -> tuple[dict[int, Pairs], float]:
    """Pairs by the number of releases running in which they are one class, and the mean share of information lost."""
    result: dict[int, Pairs] = defaultdict(Pairs)
    lost = []
    for seed in tables:
        released, is_ill = months(seed, number, ill)
        running: dict[tuple[int, int], int] = {}
        for month in released:
            lost.append(month.lost)
            running = {pair: running.get(pair, 0) + 1 for pair in month.pairs()}
            for pair, (first, second) in month.pairs().items():
                counts = [np.bincount(is_ill[part], minlength=2) for part in (first, second)]
                if (counts[0] + counts[1]).min() >= 2:
                    result[running[pair]].add(counts[0], counts[1])
    return dict(sorted(result.items())), float(np.mean(lost))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=120)
    parser.add_argument("--months", type=int, default=6)
    parser.add_argument("--ill", type=float, default=0.15)
    options = parser.parse_args(arguments)
    result, lost = counted(range(options.tables), options.months, options.ill)
    print("| releases running | pairs | one node has a single value | if shuffled |\n|--:|--:|--:|--:|")
    for running, pairs in result.items():
        shares = pairs.single / pairs.number, pairs.expected / pairs.number
        print(f"| {running} | {pairs.number} | {shares[0]:.1%} | {shares[1]:.1%} |")
    print(f"\ninformation lost: {lost:.4f}")


if __name__ == "__main__":
    main()
