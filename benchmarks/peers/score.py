"""The scores of a release, measured in the same way for all tools from its file and the original people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from benchmarks.peers.data import (
    CATEGORICAL,
    FEATURES,
    KEPT,
    NUMERIC,
    POSITIVE,
    QUASI_IDENTIFIERS,
    TARGET,
    TRAIN_ROWS,
    People,
)

#: The forests: their seeds (one where there are many rows), their trees, and the smallest leaf per 30,000 rows, so
#: that a person who was drawn ten times does not fill a leaf alone.
SEEDS, MANY = range(3), 100_000
TREES, LEAF = 100, 3

DESCRIPTION = (
    "Lost: share of each quasi-identifier's variance (numbers) or Gini index (categories) that is within classes, mean "
    f"over the nine. AUC and accuracy: mean of {len(SEEDS)} random forests (one from {MANY:,} rows on; {TREES} trees, "
    f"fixed seeds, at least {LEAF} rows per 30,000 in a leaf) trained on the released people and scored on the raw "
    "test rows; one AUC is good to about .002 across test sets, less between tools, which share theirs."
)

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """`k` is the size of the smallest group with equal released quasi-identifiers, `classes` the tool's own number of
    groups, `left_out` a share of the people, `lost` a share of information."""

    k: int
    classes: int
    left_out: float
    lost: float
    auc: float
    accuracy: float


def score(release: Path, people: People, learned: str) -> Score:
    """Score a release; `learned` is described in `environments.Tool`."""
    released = pd.read_parquet(release)
    if released["#row"].duplicated().any() or not released["#row"].isin(people.train.index).all():
        raise ValueError("a person stands in the release twice, or is nobody's")
    raw = people.train.loc[released["#row"]].reset_index(drop=True)
    classes = _classes(released)
    shown = []
    if learned != "middle":
        shown.append(released[QUASI_IDENTIFIERS])
    if learned != "released":
        shown.append(representatives(raw, classes))
    auc, accuracy = max(utility(pd.concat([one, raw[[*KEPT, TARGET]]], axis=1), people) for one in shown)
    left_out = 1 - len(released) / len(people.train)
    lost = float(np.mean([information_lost(raw[name], classes) for name in QUASI_IDENTIFIERS]))
    return Score(_recount(release), len(np.unique(classes)), left_out, lost, auc, accuracy)


def _recount(release: Path) -> int:
    """The size of the smallest group with equal quasi-identifiers in the file."""
    names = ", ".join(f'"{name}"' for name in QUASI_IDENTIFIERS)
    counted = f"SELECT count(*) AS people FROM read_parquet('{release}') GROUP BY {names}"
    with duckdb.connect() as connection:
        return int(connection.execute(f"SELECT min(people) FROM ({counted})").fetchall()[0][0])


def _classes(released: pd.DataFrame) -> IntArray:
    """The tool's own classes, each with equal released values; where it names none, the groups of equal values."""
    alike = released.groupby(QUASI_IDENTIFIERS, sort=False, dropna=False).ngroup()
    if "#class" not in released:
        return alike.to_numpy().astype(np.int64)
    if (alike.groupby(released["#class"]).nunique() > 1).any():
        raise ValueError("a class shows several tuples")
    return np.unique(released["#class"], return_inverse=True)[1].astype(np.int64)


def information_lost(column: pd.Series, classes: IntArray) -> float:
    """The within-class share of a column's variance, or of its Gini index where it is categorical."""
    if column.name in CATEGORICAL:
        table = pd.crosstab(classes, column).to_numpy(np.float64)
        size = table.sum(axis=1)
        within = (size - (table**2).sum(axis=1) / size).sum()
        total = size.sum() - (table.sum(axis=0) ** 2).sum() / size.sum()
    else:
        values = column.astype(np.float64)
        within = ((values - values.groupby(classes).transform("mean")) ** 2).sum()
        total = ((values - values.mean()) ** 2).sum()
    return float(within / total)


def representatives(raw: pd.DataFrame, classes: IntArray) -> pd.DataFrame:
    """The median of each number and the mode of each category (ties: the first in the alphabet) per class."""
    shown = {name: raw[name].groupby(classes).transform("median") for name in NUMERIC}
    for name in CATEGORICAL:
        table = pd.crosstab(classes, raw[name])
        shown[name] = table.idxmax(axis=1).reindex(classes).reset_index(drop=True)
    return pd.DataFrame(shown)[QUASI_IDENTIFIERS]


def utility(train: pd.DataFrame, people: People) -> tuple[float, float]:
    """AUC and accuracy on the raw test rows of forests trained on `train`."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    encoder.fit(people.train[CATEGORICAL])

    def features(frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        numbers = frame[[name for name in FEATURES if name not in CATEGORICAL]].to_numpy(np.float32)
        return np.hstack([encoder.transform(frame[CATEGORICAL]), numbers])

    learned, asked = features(train), features(people.test)
    answer, truth = (train[TARGET] == POSITIVE).to_numpy(), (people.test[TARGET] == POSITIVE).to_numpy()
    leaf = max(LEAF, round(LEAF * len(people.train) / TRAIN_ROWS))
    reached = []
    for seed in SEEDS if len(people.train) < MANY else SEEDS[:1]:
        forest = RandomForestClassifier(TREES, min_samples_leaf=leaf, random_state=seed, n_jobs=-1)
        said = forest.fit(learned, answer).predict_proba(asked)[:, 1]
        reached.append((roc_auc_score(truth, said), ((said > 0.5) == truth).mean()))
    auc, accuracy = np.mean(reached, axis=0)
    return float(auc), float(accuracy)
