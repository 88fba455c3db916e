"""Adult with nine quasi-identifiers and 30,000 people, the protocol of the method's published figures: one table.

Run: python -m benchmarks.nine [--k 10,100,500] [--draws 3]
A draw takes 30,000 people of Adult's train split and 15,000 of its test split, none with a missing value. Education is
a number, its place among the levels, as in the table itself. Hours, capital gains and losses stay as they are, and are
features of the forests too. A forest's out-of-fold probabilities guide the grouping. Other forests are trained on
medians and modes of the groups and scored on the raw test people; scores are means over three seeds and all draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.forests import TARGET, Forests
from benchmarks.utility.methods import Method, information_lost, mondrian, ours, paper, shown

NUMBERS = ["age", "education_num"]
CATEGORIES = ["workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
QUASI_IDENTIFIERS = [*NUMBERS, *CATEGORIES]
KEPT = ["hours_per_week", "capital_gain", "capital_loss"]
TRAIN_ROWS, TEST_ROWS = 30_000, 15_000


METHODS: dict[str, Method] = {"paper": paper, "Mondrian": mondrian, "ours, tree alone": ours(refine=0), "ours": ours()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nine", description=__doc__.splitlines()[0])
    parser.add_argument("--k", default="10,100,500", help="default: 10,100,500")
    parser.add_argument("--draws", type=int, default=3, help="default: 3")
    asked = parser.parse_args(arguments)
    ks = [int(one) for one in asked.k.split(",")]
    measured: dict[tuple[int, str], list[tuple[float, ...]]] = {}
    for draw in range(asked.draws):
        train, test = people(draw)
        forests = Forests(train, test, [*NUMBERS, *KEPT], CATEGORIES)
        measured.setdefault((0, "raw people"), []).append((len(train), 0.0, *forests.scores(train), 0.0))
        guidance = forests.guidance(train)
        for k in ks:
            for name, method in METHODS.items():
                measured.setdefault((k, name), []).append(_measured(train, forests, guidance, k, method))
    print("| k | release | classes | lost | AUC | by draw | accuracy | cpu s |\n|--:|---|--:|--:|--:|---|--:|--:|")
    for (k, name), draws in measured.items():
        classes, lost, auc, accuracy, seconds = np.mean(draws, axis=0)
        by_draw = " ".join(f"{one[2]:.4f}" for one in draws)
        told = f"{classes:,.0f} | {lost:.3f} | {auc:.4f} | {by_draw} | {accuracy:.4f} | {seconds:.2f}"
        print(f"| {k or '-'} | {name} | {told} |")


def people(draw: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The people to group and the people to score on, drawn with this seed."""
    table = pd.read_parquet(Path(__file__).parents[1] / "data/adult/adult.parquet")
    complete = table[~(table == "?").any(axis=1)]
    is_train, columns = complete["split"] == "train", [*QUASI_IDENTIFIERS, *KEPT, TARGET]
    train = complete.loc[is_train, columns].sample(TRAIN_ROWS, random_state=draw)
    test = complete.loc[~is_train, columns].sample(TEST_ROWS, random_state=draw)
    return train.reset_index(drop=True), test.reset_index(drop=True)


def _measured(
    train: pd.DataFrame, forests: Forests, guidance: npt.NDArray[np.float64], k: int, method: Method
) -> tuple[float, ...]:
    """Number of classes, information lost, AUC, accuracy, and processor seconds of the grouping."""
    quasi = train[QUASI_IDENTIFIERS]
    start = time.process_time()
    group = method(quasi, guidance, (guidance > 0.5).astype(int), k)
    seconds = time.process_time() - start
    sizes = np.unique(group, return_counts=True)[1]
    assert sizes.min() >= k
    released = pd.concat([shown(quasi, group), train[[*KEPT, TARGET]]], axis=1)
    return len(sizes), information_lost(quasi, group), *forests.scores(released), seconds


if __name__ == "__main__":
    main()
