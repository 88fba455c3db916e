"""How much the published figures of a source say of one person, to whom all others are known.

    python -m benchmarks.source_figures [--people 400 1000 5000] [--tries 100]

People of Adult are grouped. An attacker knows the classes, and every value of everybody but one quasi-identifier of one
person. They try the values that the person's class leaves open: a value is ruled out if the figures would be others
with it. "Rounded" are figures that are rounded to their steps alone; the others have noise before, under keys that the
attacker has not. Of these it is shown how often the true value becomes twenty times as likely as another one: the ratio
of the likelihoods of all figures together, before they are rounded, which can only hide more; by one release, and by
any number of releases of the same people, of which the mean has one of the two draws of the noise still.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline import AnonymizerTree
from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.classes import information_loss
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import fineness
from anon_pipeline.release.associations import associations
from anon_pipeline.release.facts import losses, risk_of
from anon_pipeline.release.noise import NO_NOISE, SCALE, Noise
from anon_pipeline.tables import Cells
from benchmarks.large import ADULT
from benchmarks.machine import processor

QUASI_IDENTIFIERS = (
    "age", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "hours_per_week",
)  # fmt: skip
K = 10
#: The attacker takes a value as found out if it is so many times as likely as another.
ODDS = 20
#: Draws of the noise for each value that is tried.
DRAWS = 200


@dataclass(frozen=True)
class Recording(Noise):
    """No noise; keeps each figure, in steps, by its name."""

    kept: dict[tuple[str, ...], float] | None = None

    def steps(self, value: float, step: float) -> int:
        if self.kept is not None:
            self.kept[self.figure] = value / step
        return round(value / step)


class Source:
    """The quasi-identifiers of some people, their classes, and the figures of sources with other values in these."""

    def __init__(self, frame: pd.DataFrame) -> None:
        learned = [encoding.learn_domain(name, frame[name]) for name in frame.columns]
        self.domains = tuple(domain for domain, _ in learned)
        self.codes = np.stack([code for _, code in learned], axis=1)
        cells, cell = encoding.count_cells(self.domains, self.codes, np.zeros((len(frame), 1)))
        self.tree = AnonymizerTree(k=K).fit_cells(cells)
        self.class_ = self.tree.partition_.apply(cells.codes)[cell]

    def figures(self, codes: IntArray, draws: Sequence[Noise]) -> list[dict[str, Any]]:
        """All figures of a source with these values, counted once and told with each noise."""
        people = len(codes)
        cells = Cells(self.domains, codes.astype(np.int32), np.ones(people, np.int64), np.zeros((people, 1)))
        apart = {domain.name: people - int(np.bincount(codes[:, at]).max()) for at, domain in enumerate(self.domains)}
        lost = information_loss(cells, self.class_, len(self.tree.sizes_))
        candidate = {"released": people, "suppressed": 0, "waiting": 0, "information_loss": lost, "apart": apart}
        risk = risk_of(ClassStatistics(sizes=np.unique(codes, axis=0, return_counts=True)[1]), None)
        pairs = associations(cells, self.class_, self.tree.summaries_, self.tree.sizes_, {})
        return [
            {
                "information_loss": losses(candidate, noise),
                "risk": fineness.risk(risk, people, noise),
                "associations": fineness.associations(pairs, people, noise)["pairs"],
            }
            for noise in draws
        ]

    def others(self, person: int, column: int) -> IntArray:
        """The other values that a person's class leaves open."""
        here = self.codes[self.class_ == self.class_[person], column]
        if self.domains[column].ordered:
            everybody = np.unique(self.codes[:, column])
            here = everybody[(everybody >= here.min()) & (everybody <= here.max())]
        return np.setdiff1d(here, self.codes[person, column])

    def tried(self, tries: int) -> Iterator[IntArray]:
        """Sources in which one person has another value."""
        random = np.random.default_rng(0)
        while tries:
            person, column = int(random.integers(len(self.codes))), int(random.integers(len(self.domains)))
            others = self.others(person, column)
            if len(others):
                tries -= 1
                changed = self.codes.copy()
                changed[person, column] = random.choice(others)
                yield changed

    def in_steps(self, codes: IntArray) -> FloatArray:
        """Every figure that noise is added to, in its steps."""
        kept: dict[tuple[str, ...], float] = {}
        self.figures(codes, [Recording(Key(bytes(32)), "adult", "v", kept=kept)])
        return np.array([kept[name] for name in sorted(kept)])


def log_odds(apart: FloatArray, random: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
    """How likely the true value becomes beside another one, as logarithms, each of shape (draws,).

    Parameters
    ----------
    apart : how far apart the two values make each figure, in scales of the noise, shape (f,)

    Returns
    -------
    by one release, whose figures have two draws each; and by any number of releases, whose mean has one
    """
    one, other = random.laplace(size=(2, draws, len(apart)))
    both = one + other
    by_one = (np.log1p(np.abs(both)) - np.abs(both)) - (np.log1p(np.abs(both - apart)) - np.abs(both - apart))
    return by_one.sum(axis=1), (np.abs(one - apart) - np.abs(one)).sum(axis=1)


def measured(people: int, tries: int) -> str:
    adult = pd.read_parquet(ADULT, columns=list(QUASI_IDENTIFIERS))
    source = Source(adult.sample(people, random_state=0).reset_index(drop=True))
    random = np.random.default_rng(1)
    rounded, before = source.figures(source.codes, [NO_NOISE]), source.in_steps(source.codes)
    ruled_out, by_one, by_many, bound = [], [], [], []
    for codes in source.tried(tries):
        ruled_out.append(source.figures(codes, [NO_NOISE]) != rounded)
        apart = np.abs(source.in_steps(codes) - before) / SCALE
        one, many = log_odds(apart, random, DRAWS)
        by_one += one.tolist()
        by_many += many.tolist()
        bound.append(float(apart.sum()))
    likely = " | ".join(f"{np.mean(np.array(odds) > np.log(ODDS)):.1%}" for odds in (by_one, by_many))
    told = f"{np.mean(ruled_out):.1%} | {likely} | {np.median(bound):.2f} | {np.quantile(bound, 0.95):.2f}"
    return f"| {people:,} | {len(before)} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[400, 1000, 5000])
    parser.add_argument("--tries", type=int, default=100)
    options = parser.parse_args()
    print(f"{processor()}; {options.tries} values tried, two draws of scale {SCALE} steps\n")
    likely = f"{ODDS} times as likely by one release | by any number"
    print(f"| people | figures | ruled out if rounded | {likely} | epsilon: median | 95 % |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for people in options.people:
        print(measured(people, options.tries), flush=True)


if __name__ == "__main__":
    main()
