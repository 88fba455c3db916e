"""How much rerunning the anonymizer reveals about the people of small tables, for every demand on sensitive values.

Run: python -m benchmarks.minimality
Tables are random, with 10 to 14 people and k = 3. The attacker knows all quasi-identifiers and the code, but not the
key. `certain` counts people whose value the attacker learns although the published histogram of their class does not
show it.

Demands are attacked on groupings without a guide. In `guided` ones, the sensitive column is the target too, and the
guide is trained anew for every assignment, as in a run. `paper` is the guide of Goldsteen et al. (labels, in sample, no
spread), which no key protects.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.anonymize import encoding, enforce
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import IntArray
from anon_pipeline.attack.replay import Replay, replay
from anon_pipeline.errors import Refused
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.beta_likeness import BetaLikeness
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram, histogram
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline.spec import ReleaseSpec
from benchmarks.rerun import Rerun

K = 3
DEMANDS: dict[str, PrivacyModel] = {
    "l_diversity": LDiversity(column="disease", l=2, kind="distinct"),
    "t_closeness": TCloseness(column="disease", t=0.35, distance="equal"),
    "beta_likeness": BetaLikeness(column="disease", beta=1.0, kind="basic"),
}
TRIES = 1000
#: The specs of the guided runs: the demands besides k, and the guide.
GUIDED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "guided": ({"l_diversity": {"column": "disease", "l": 2}}, {}),
    "guided, k alone": ({}, {}),
    "guided in sample": ({"l_diversity": {"column": "disease", "l": 2}}, {"predictions": "in_sample"}),
    "paper, k alone": ({}, {"predictions": "in_sample", "on": "label", "spread": 0, "orders": "guidance"}),
}
#: A guided run takes a tenth of a second, so there are fewer of them, and a value is ruled out at odds of ten.
GUIDED_TABLES, GUIDED_TRIES, GUIDED_SELDOM = 60, 200, 10.0


@dataclass(frozen=True, eq=False)
class Table:
    """A random table before its demand is enforced, and its people's values."""

    repair: Repair
    cell: IntArray
    values: IntArray
    demand: str


def drawn(number: int) -> tuple[pd.DataFrame, IntArray, int]:
    """The quasi-identifiers of some people, the disease of each, and the number of possible diseases."""
    random = np.random.default_rng([number, 71])
    n, diseases = int(random.integers(10, 15)), 2 + number % 2
    people = pd.DataFrame({"age": random.integers(20, 60, n), "town": random.choice(["Ulm", "Bonn", "Kiel"], n)})
    values = random.choice(diseases, n, p=[0.6, 0.4] if diseases == 2 else [0.5, 0.3, 0.2])
    return people, values.astype(np.int64), diseases


def table(number: int, demand: str) -> Table:
    """A table of 10 to 14 people with two diseases, or three."""
    grouped = _grouped(number)
    repair = replace(grouped.repair, demands=[KAnonymity(k=K), DEMANDS[demand]])
    return replace(grouped, repair=repair, demand=demand)


@cache
def _grouped(number: int) -> Table:
    """The table with all demands: the classes before any of them is looked at are the same for each."""
    people, values, diseases = drawn(number)
    n = len(people)
    learned = [encoding.learn_domain(name, people[name]) for name in people.columns]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((n, 1)))
    tree = AnonymizerTree(k=K, demands=list(DEMANDS.values()))
    return Table(tree.repair_of(cells, _counted(cell, values, diseases)), cell, values, "all")


def _counted(cell: IntArray, values: npt.NDArray[np.int64], diseases: int) -> ClassStatistics:
    """The number of people of each cell, and of those with each disease."""
    cells = int(cell.max()) + 1
    counts = histogram(cell, values, np.ones(len(cell), dtype=np.int64), (cells, diseases))
    names: tuple[object, ...] = tuple(f"disease {one}" for one in range(diseases))
    return ClassStatistics(np.bincount(cell).astype(np.int64), {"disease": Histogram(names, counts, ordered=False)})


def attacked(one: Table, tries: int = TRIES, seldom: float = 100.0) -> Replay | None:
    """The attack on a table's release; None where no grouping meets the demand."""
    published = one.repair.repaired(_key(1 << 63))
    try:
        one.repair.refuse_what_fails(published)
    except Refused:
        return None
    diseases = len(one.repair.people.sensitive["disease"].values)

    @cache
    def prepared(values: tuple[int, ...]) -> enforce.Prepared:
        people = _counted(one.cell, np.array(values), diseases)
        return replace(one.repair, people=people).prepared()

    def regroup(values: IntArray, number: int) -> IntArray:
        return prepared(tuple(values.tolist())).under(one.repair.chance(_key(number)))[one.cell]

    return replay(published[one.cell], one.values, regroup, tries, seldom)


def attacked_guided(number: int, way: str, tries: int = GUIDED_TRIES, seldom: float = GUIDED_SELDOM) -> Replay | None:
    """The attack on the release of a guided run; None where no grouping meets the demand."""
    people, values, diseases = drawn(number)
    demand, guide = GUIDED[way]
    roles = {name: {"role": "quasi_identifier"} for name in people} | {"disease": {"role": "sensitive"}}
    spec = ReleaseSpec.model_validate(
        {
            "dataset": "people",
            "source": {"path": "people.csv"},
            "target": "disease",
            "columns": roles,
            "privacy": {"k_anonymity": {"k": K}, **demand},
            "guide": {"model": "linear", **guide},
        }
    )
    rerun, names = Rerun(spec, people), np.array([f"disease {one}" for one in range(diseases)], dtype=object)

    def regroup(values: IntArray, number: int) -> IntArray:
        tree = rerun.tree(names[values], _key(number))
        return np.full(len(people), -1) if tree is None else tree.apply(people)

    published = regroup(values, 1 << 63)
    return None if (published < 0).all() else replay(published, values, regroup, tries, seldom)


def _key(number: int) -> Key:
    return Key(number.to_bytes(32, "big"))


@dataclass
class Tally:
    """The results of the attack, added up over the people of some tables."""

    tables: int = 0
    people: int = 0
    certain: int = 0
    undecided: int = 0
    gain: float = 0.0

    def add(self, found: Replay) -> None:
        """Add the result of one more table."""
        self.tables += 1
        self.people += len(found.certain)
        self.certain += int(found.certain.sum())
        self.undecided += int(found.undecided.sum())
        self.gain += float((found.guessed - found.expected).sum())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=210, help="per demand")
    parser.add_argument("--tries", type=int, default=TRIES, help="runs of the anonymizer per table, twice")
    parser.add_argument("--guided-tables", type=int, default=GUIDED_TABLES)
    parser.add_argument("--ways", default=";".join([*DEMANDS, *GUIDED]), help="separated by semicolons")
    asked = parser.parse_args()
    print(f"{'':17} {'tables':>7} {'people':>7} {'certain':>8} {'undecided':>10} {'gain of best guess':>19}")
    for way in asked.ways.split(";"):
        tally = Tally()
        for number in range(asked.tables if way in DEMANDS else asked.guided_tables):
            found = attacked(table(number, way), asked.tries) if way in DEMANDS else attacked_guided(number, way)
            if found is not None:
                tally.add(found)
        people = max(tally.people, 1)
        print(
            f"{way:17} {tally.tables:>7,} {tally.people:>7,} {tally.certain / people:>8.2%} "
            f"{tally.undecided / people:>10.2%} {tally.gain / people:>+19.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
