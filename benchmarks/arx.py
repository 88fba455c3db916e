"""Side by side with ARX 3.9.2 on the rows and columns of its own Adult example: one table.

Run: python -m benchmarks.arx [--k 5,10,50,100]
The people are the 30,162 of Adult's train split without a missing value, in file order. 70 % of them are grouped by
eight quasi-identifiers, guided by a forest's out-of-fold probabilities, and recoded by medians and modes. A forest is
trained on the recoded values and scored on the other 30 % as they are; scores are means over three seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from anon_pipeline import AnonymizerTree
from benchmarks.forests import TARGET, Forests
from benchmarks.utility.methods import Groups, information_lost, shown

NUMBERS = ["age"]
CATEGORIES = ["sex", "race", "marital_status", "education", "native_country", "workclass", "occupation"]
QUASI_IDENTIFIERS = ["sex", "age", *CATEGORIES[1:]]

#: The settings of our tree, besides k.
SETTINGS: dict[str, dict[str, Any]] = {"ours": {}, "ours, tree alone": {"refine": 0}}


@dataclass(frozen=True)
class Measures:
    """The figures of one grouping; None where a figure is not known.

    Attributes
    ----------
    classes : number of groups
    lost : share of the quasi-identifiers' variation within groups, mean over the columns
    cover : the part of a column's values that a person's group has, mean over people and columns (`set_cover`)
    auc, accuracy : the scores on raw people of a forest trained on the groups
    seconds : processor time of the grouping
    """

    classes: int | None = None
    lost: float | None = None
    cover: float | None = None
    auc: float | None = None
    accuracy: float | None = None
    seconds: float | None = None


#: The figures of ARX 3.9.2 with local recoding under this protocol, by k. They were measured once with ARX itself,
#: which needs Java and is not run here.
ARX = {
    5: Measures(cover=0.035, auc=0.8733),
    10: Measures(classes=1619, lost=0.193, cover=0.058, auc=0.8746),
    50: Measures(classes=349, lost=0.339, cover=0.143, auc=0.8680),
    100: Measures(classes=178, lost=0.399, cover=0.191, auc=0.8591),
}


@dataclass(frozen=True)
class People:
    """The people of the protocol.

    Attributes
    ----------
    everyone : train and test together; their values are all possible values of a column
    train, test : quasi-identifiers and target
    """

    everyone: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame

    @classmethod
    def read(cls) -> People:
        table = pd.read_parquet(Path(__file__).parents[1] / "data/adult/adult.parquet")
        table = table[table["split"] == "train"].drop(columns="split")
        everyone = table.loc[~(table == "?").any(axis=1), [*QUASI_IDENTIFIERS, TARGET]]
        train, test = train_test_split(everyone, test_size=0.3, random_state=42, stratify=everyone[TARGET])
        return cls(everyone, train.reset_index(drop=True), test.reset_index(drop=True))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arx", description=__doc__.splitlines()[0])
    parser.add_argument("--k", default=",".join(map(str, ARX)), help="default: 5,10,50,100")
    ks = [int(one) for one in parser.parse_args(arguments).k.split(",")]
    people = People.read()
    forests = Forests(people.train, people.test, NUMBERS, CATEGORIES)
    guidance = forests.guidance(people.train)
    auc, accuracy = forests.scores(people.train)
    print(
        f"Raw people ({len(people.train):,}, and {len(people.test):,} to score): AUC {auc:.4f}, {accuracy:.4f} right."
    )
    print("\n| k | release | classes | mean size / k | lost | set cover | AUC | accuracy | cpu s |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for k in ks:
        if k in ARX:
            print(_row(k, "ARX 3.9.2", ARX[k], len(people.train)), flush=True)
        for name, setting in SETTINGS.items():
            print(_row(k, name, measured(people, forests, guidance, k, setting), len(people.train)), flush=True)


def measured(
    people: People, forests: Forests, guidance: npt.NDArray[np.float64], k: int, setting: Mapping[str, Any]
) -> Measures:
    """The figures of one of our groupings."""
    quasi = people.train[QUASI_IDENTIFIERS]
    start = time.process_time()
    group = AnonymizerTree(k=k, **setting).fit(quasi, guidance).apply(quasi)
    seconds = time.process_time() - start
    sizes = np.unique(group, return_counts=True)[1]
    assert sizes.min() >= k
    auc, accuracy = forests.scores(shown(quasi, group))
    described = Measures(len(sizes), information_lost(quasi, group), set_cover(people, group))
    return replace(described, auc=auc, accuracy=accuracy, seconds=seconds)


def set_cover(people: People, group: Groups) -> float:
    """The part of each column's values that a person's group has, 0 (one value) to 1, mean over people and columns.

    For numbers, it is the group's range over the column's. For categories, it is the number of distinct values of the
    group less one, over that of the column less one.
    """
    covers = []
    for name in QUASI_IDENTIFIERS:
        column, in_group = people.everyone[name], people.train[name].groupby(group)
        if name in NUMBERS:
            width = in_group.transform("max") - in_group.transform("min")
            covers.append((width / (column.max() - column.min())).mean())
        else:
            covers.append(((in_group.transform("nunique") - 1) / (column.nunique() - 1)).mean())
    return float(np.mean(covers))


def _row(k: int, name: str, told: Measures, people: int) -> str:
    size = None if told.classes is None else people / told.classes / k
    figures: list[tuple[float | None, str]] = [
        (told.classes, ",d"),
        (size, ".2f"),
        (told.lost, ".3f"),
        (told.cover, ".3f"),
        (told.auc, ".4f"),
        (told.accuracy, ".4f"),
        (told.seconds, ".2f"),
    ]
    cells = ["-" if value is None else format(value, form) for value, form in figures]
    return f"| {k} | {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
