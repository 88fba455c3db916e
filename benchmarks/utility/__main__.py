"""Data sets x methods x k x splits: one table per data set, and a plot of each.

Run: python -m benchmarks.utility [--data adult,loans] [--k 2,10] [--splits 5] [--people 4000] [--plots docs/images]
     [--toolkit benchmarks/.environments/ai-privacy-toolkit/bin/python], made by python -m benchmarks.peers --install
Each split draws people to be grouped (at most `--people`, and at most 70 % of all) and up to 8,000 others to score on,
since few test rows distinguish methods badly. A method's score is the mean over four models trained on its release and
scored on the same raw test rows. Differences from ours are paired by split, with a 95 % t interval corrected for
overlapping training parts as if 70 % of all people were in each (Nadeau and Bengio 2003).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import t as student
from sklearn.model_selection import train_test_split

from benchmarks.utility import plot
from benchmarks.utility.datasets import DATA_SETS
from benchmarks.utility.methods import (
    METHODS,
    OTHERS,
    OURS,
    TOOLKIT,
    Method,
    Unusable,
    information_lost,
    shown,
    toolkit,
)
from benchmarks.utility.models import CLASSIFIERS, Coded, guidance, score

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tables are small: threads would wait longer than they work

KS = (2, 5, 10, 25, 50, 100, 250, 500)
#: The share of the people who are kept to score on where there are few people, and their number where there are many.
TEST, TESTED = 0.3, 8_000
Scores = dict[str, dict[str, dict[str, float]]]  # by k, method and measure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(DATA_SETS))
    parser.add_argument("--k", default=",".join(map(str, KS)))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--people", type=int, default=4_000, help="grouped in each split; default: 4000")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--json", type=Path, help="keep the scores of every split")
    parser.add_argument("--toolkit", type=Path, metavar="PYTHON", help="runs ai-privacy-toolkit; left out without it")
    options = parser.parse_args(arguments)
    if options.toolkit is not None and not options.toolkit.exists():
        parser.error(f"there is no {options.toolkit}")
    ks = [int(one) for one in options.k.split(",")]
    names = options.data.split(",")
    kept = {}
    wins = cells = lowest = 0
    leading: Counter[str] = Counter()
    with ProcessPoolExecutor(options.processes) as pool:
        for name in names:
            start = time.time()
            jobs = [
                pool.submit(one_split, name, ks, split, options.people, options.toolkit)
                for split in range(options.splits)
            ]
            splits = in_all([job.result() for job in jobs])
            kept[name] = splits
            print(table(name, splits, ks), flush=True)
            print(f"\n({time.time() - start:.0f} s)\n", flush=True)
            if options.plots is not None:
                (options.plots / f"utility-{name.replace(' ', '-')}.svg").write_text(
                    plot.picture(name, means(splits), ks)
                )
            won, low, of = counted(splits, ks)
            wins, lowest, cells = wins + won, lowest + low, cells + of
            leading += leaders(splits, ks)
    print(
        f"In {wins} of {cells} cells no other method is better by more than its interval; in {lowest} of {cells} the "
        "information lost is the least of all. The highest mean score: "
        + ", ".join(f"{method} {count}" for method, count in leading.most_common())
    )
    if options.json is not None:
        options.json.write_text(json.dumps(kept, indent=1))


def one_split(name: str, ks: Sequence[int], split: int, most: int, python: Path | None = None) -> Scores:
    """The scores of every method at every k on one draw from a data set; `python` is the interpreter of the toolkit."""
    warnings.filterwarnings("ignore")
    data = DATA_SETS[name]
    people = data.people(most + TESTED, seed=split)
    numeric = people[data.target].dtype != object
    train, test = train_test_split(
        people,
        train_size=min(most, int((1 - TEST) * len(people))),
        random_state=split,
        stratify=None if numeric else people[data.target],
    )
    train, test = train.reset_index(drop=True), test.reset_index(drop=True)
    features = [*data.quasi_identifiers, *data.kept]
    truth, test_truth = train[data.target].to_numpy(), test[data.target].to_numpy()
    coded = Coded(train[features])
    said, labels = guidance(coded, train[features], truth)
    quasi = train[list(data.quasi_identifiers)]
    raw = {model: score(model, coded, train[features], truth, test[features], test_truth) for model in CLASSIFIERS}
    methods: dict[str, Method] = METHODS if python is None else {**METHODS, TOOLKIT: toolkit(python, numeric)}
    found: Scores = {"raw": {"raw": {**raw, "mean": float(np.mean(list(raw.values()))), "lost": 0.0}}}
    for k in ks:
        found[str(k)] = {}
        for method, group_of in methods.items():
            if len(train) < 2 * k:
                continue
            try:
                group = group_of(quasi, said, labels, k)
            except Unusable as reason:
                print(f"{name}, k = {k}, split {split}: {method}: {reason}", file=sys.stderr, flush=True)
                continue
            assert np.unique(group, return_counts=True)[1].min() >= k
            released = train[features].assign(**shown(quasi, group))
            scores = {model: score(model, coded, released, truth, test[features], test_truth) for model in CLASSIFIERS}
            found[str(k)][method] = {
                **scores,
                "mean": float(np.mean(list(scores.values()))),
                "lost": information_lost(quasi, group),
            }
    return found


def in_all(splits: Sequence[Scores]) -> list[Scores]:
    """The splits with only those k and methods that worked in all of them, since differences are paired by split."""
    return [
        {
            k: {method: of for method, of in methods.items() if all(method in one[k] for one in splits)}
            for k, methods in split.items()
        }
        for split in splits
    ]


def means(splits: Sequence[Scores]) -> Scores:
    """The mean over the splits of every figure."""
    return {
        k: {
            method: {one: float(np.mean([split[k][method][one] for split in splits])) for one in figures}
            for method, figures in methods.items()
        }
        for k, methods in splits[0].items()
    }


def interval(differences: Sequence[float]) -> float:
    """Half the width of the 95 % interval of a mean over random splits."""
    count = len(differences)
    if count < 2:
        return math.inf
    return float(
        student.ppf(0.975, count - 1) * math.sqrt((1 / count + TEST / (1 - TEST)) * np.var(differences, ddof=1))
    )


def counted(splits: Sequence[Scores], ks: Sequence[int]) -> tuple[int, int, int]:
    """The number of k at which no other method is better by more than the interval, and at which ours loses least.

    The third number is that of all k for which there are enough people.
    """
    wins = lowest = cells = 0
    for k in map(str, ks):
        others = [other for other in OTHERS if other in splits[0][k]]
        if not others:
            continue
        cells += 1
        gaps = {other: [split[k][OURS]["mean"] - split[k][other]["mean"] for split in splits] for other in others}
        wins += all(np.mean(gap) >= -interval(gap) for gap in gaps.values())
        mean = means(splits)[k]
        lowest += all(mean[OURS]["lost"] <= mean[other]["lost"] + 1e-9 for other in others)
    return wins, lowest, cells


def leaders(splits: Sequence[Scores], ks: Sequence[int]) -> Counter[str]:
    """The number of k at which each method has the highest mean score; of ours, only the default counts."""
    mean = means(splits)
    compared = [{one: mean[k][one]["mean"] for one in (OURS, *OTHERS) if one in mean[k]} for k in map(str, ks)]
    return Counter(max(scores, key=lambda one: scores[one]) for scores in compared if scores)


def table(name: str, splits: Sequence[Scores], ks: Sequence[int]) -> str:
    """A row per k: score and information lost of each method, and the difference of the best other method from ours."""
    mean = means(splits)
    raw = mean["raw"]["raw"]
    tried = [*METHODS, *(one for one in (TOOLKIT,) if any(one in mean[str(k)] for k in ks))]
    by_model = ", ".join(f"{model} {raw[model]:.3f}" for model in CLASSIFIERS)
    lines = [
        f"### {name}",
        "",
        f"Raw people: {raw['mean']:.4f} ({by_model}).",
        "",
        f"| k | {' | '.join(tried)} | best other, and ours beside it |",
        f"|--:|{'---|' * (len(tried) + 1)}",
    ]
    for k in map(str, ks):
        cells = [
            f"{mean[k][method]['mean']:.4f} / {mean[k][method]['lost']:.3f}" if method in mean[k] else "-"
            for method in tried
        ]
        others = [other for other in OTHERS if other in mean[k]]
        if others:
            best = max(others, key=lambda other: mean[k][other]["mean"])
            gap = [split[k][OURS]["mean"] - split[k][best]["mean"] for split in splits]
            cells.append(f"{best}, {np.mean(gap):+.4f} ± {interval(gap):.4f}")
        else:
            cells.append("-")
        lines.append(f"| {k} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
