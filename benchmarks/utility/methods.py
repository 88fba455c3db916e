"""Ways to group people: ours in several settings, the paper's, and small reference implementations of others.

A method takes the training people and returns a group per row, shape (n,). Groups of all methods are recoded alike, by
medians and modes of their members.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline import AnonymizerTree

Groups = npt.NDArray[np.int64]
#: Takes the quasi-identifiers, the guidance as probabilities or standardized predictions, the guide's labels, and k.
Method = Callable[[pd.DataFrame, np.ndarray, np.ndarray, int], Groups]


def ours(**settings: Any) -> Method:
    """Our tree with some settings, besides k, that differ from the defaults."""

    def group(people: pd.DataFrame, guidance: np.ndarray, _labels: np.ndarray, k: int) -> Groups:
        return AnonymizerTree(k=k, **settings).fit(people, guidance).apply(people)

    return group


def paper(people: pd.DataFrame, _guidance: np.ndarray, labels: np.ndarray, k: int) -> Groups:
    """Goldsteen et al. (arXiv 2007.13086): predicted labels, and nothing else in the criterion."""
    return AnonymizerTree(k=k, spread=0, orders="guidance").fit(people, labels).apply(people)


def mondrian(people: pd.DataFrame, _guidance: np.ndarray, _labels: np.ndarray, k: int) -> Groups:
    """Strict Mondrian (K. LeFevre, D. DeWitt, R. Ramakrishnan, ICDE 2006): medians of the relatively widest column.

    Categories are ordered by their names; missing values are below all others.
    """
    codes = np.stack([_codes(people[name]) for name in people], axis=1)
    width = np.maximum(codes.max(axis=0) - codes.min(axis=0), 1)
    group = np.zeros(len(codes), dtype=np.int64)
    waiting, number = [np.arange(len(codes))], 0
    while waiting:
        rows = waiting.pop()
        part = codes[rows]
        for column in np.argsort(-(part.max(axis=0) - part.min(axis=0)) / width, kind="stable"):
            left = part[:, column] <= np.quantile(part[:, column], 0.5, method="lower")
            if min(left.sum(), (~left).sum()) >= k:
                waiting += [rows[left], rows[~left]]
                break
        else:
            group[rows] = number
            number += 1
    return group


def mdav(people: pd.DataFrame, _guidance: np.ndarray, _labels: np.ndarray, k: int) -> Groups:
    """MDAV (J. Domingo-Ferrer, V. Torra, DMKD 2005) in the space of `_points`."""
    points = _points(people).astype(np.float32)
    group = np.full(len(points), -1)
    left, number = np.arange(len(points)), 0

    def nearest(to: np.ndarray) -> np.ndarray:
        distance = ((points[left] - to) ** 2).sum(axis=1)
        return np.argpartition(distance, k - 1)[:k]

    while len(left) >= 2 * k:
        centre = points[left].mean(axis=0)
        far = points[left[((points[left] - centre) ** 2).sum(axis=1).argmax()]]
        for start in (far, None):
            if start is None:
                if len(left) < 2 * k:
                    break
                start = points[left[((points[left] - far) ** 2).sum(axis=1).argmax()]]
            chosen = nearest(start)
            group[left[chosen]] = number
            left, number = np.delete(left, chosen), number + 1
    group[left] = number
    return group


def at_random(people: pd.DataFrame, _guidance: np.ndarray, _labels: np.ndarray, k: int) -> Groups:
    """Random groups of k people, the last with up to 2k - 1: a lower bound of the worth of grouping."""
    group = np.minimum(np.arange(len(people)) // k, len(people) // k - 1)
    return np.random.default_rng(0).permutation(group)


class Unusable(Exception):
    """Another tool returned no groups, or some of fewer than k people."""


def toolkit(python: Path, regression: bool) -> Method:
    """IBM's ai-privacy-toolkit, run by the interpreter of its own environment (toolkit.py, beside this file)."""

    def group(people: pd.DataFrame, guidance: np.ndarray, labels: np.ndarray, k: int) -> Groups:
        with tempfile.TemporaryDirectory() as scratch:
            people.to_parquet(Path(scratch) / "people.parquet", index=False)
            np.save(Path(scratch) / "said.npy", guidance if regression else pd.factorize(labels, sort=True)[0])
            script, kind = Path(__file__).with_name("toolkit.py"), "regression" if regression else "labels"
            command = [str(python), str(script), scratch, str(k), kind]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise Unusable((done.stderr.strip().splitlines() or ["no message"])[-1])
            found: Groups = np.load(Path(scratch) / "groups.npy")
        _check_sizes(found, len(people), k)
        return found

    return group


def _check_sizes(group: Groups, people: int, k: int) -> None:
    if len(group) != people:
        raise Unusable(f"{len(group)} of {people} people are in a group")
    smallest = np.unique(group, return_counts=True)[1].min()
    if smallest < k:
        raise Unusable(f"a group has {smallest} people")


METHODS: dict[str, Method] = {
    "ours": ours(),
    "ours, spread 0.1": ours(spread=0.1),
    "ours, spread 10": ours(spread=10),
    "paper": paper,
    "Mondrian": mondrian,
    "MDAV": mdav,
    "random": at_random,
}
#: The method that exists only where an environment was made for it.
TOOLKIT = "toolkit"
#: The method that is compared with all others.
OURS = "ours"
OTHERS = ("paper", "Mondrian", "MDAV", "random", TOOLKIT)


def shown(people: pd.DataFrame, group: Groups) -> pd.DataFrame:
    """Everybody with their group's values: lower medians and commonest categories; missing where most are missing."""
    _, group = np.unique(group, return_inverse=True)
    columns = {}
    for name in people:
        codes = _codes(people[name])
        order = np.lexsort((codes, group))
        starts = np.searchsorted(group[order], np.arange(group.max() + 1))
        size = np.diff(np.r_[starts, len(order)])
        if people[name].dtype == object:
            values, place = np.unique(codes, return_inverse=True)
            counted = np.zeros((group.max() + 1, len(values)), dtype=np.int32)
            np.add.at(counted, (group, place), 1)
            chosen = values[counted.argmax(axis=1)]
        else:
            chosen = codes[order[starts + (size - 1) // 2]]
        first = pd.Series(people[name].to_numpy()).groupby(codes).first()
        columns[name] = first.reindex(chosen).to_numpy()[group]
        if people[name].dtype != object:
            columns[name] = columns[name].astype(float)
    return pd.DataFrame(columns)


def information_lost(people: pd.DataFrame, group: Groups) -> float:
    """The within-group share of each column's variation, mean over the columns; defined as in a release's report.

    For numbers, it is the sum of squares among known values, since a missing value has no distance from others. For
    categories, it is the Gini impurity; a missing value is a category. A constant column has nothing to lose.
    """
    _, group = np.unique(group, return_inverse=True)
    return float(np.mean([_lost_of(people[name], group) for name in people]))


def _lost_of(column: pd.Series, group: Groups) -> float:
    if column.dtype == object:
        values = (_codes(column)[:, None] == np.unique(_codes(column))).astype(float)
    else:
        known = column.notna().to_numpy()
        values, group = column.to_numpy(dtype=float)[known, None], group[known]
    if not len(values):
        return 0.0
    centred = values - values.mean(axis=0)
    total = float((centred**2).sum())
    summed = np.stack([np.bincount(group, weights=part) for part in centred.T], axis=1)
    between = float((summed**2 / np.maximum(np.bincount(group), 1)[:, None]).sum())
    return min(1.0, max(0.0, 1.0 - between / total)) if total > 1e-9 else 0.0


def _codes(column: pd.Series) -> npt.NDArray[np.int64]:
    return pd.factorize(column, sort=True)[0].astype(np.int64)


def _points(people: pd.DataFrame) -> npt.NDArray[np.float64]:
    """The space in which MDAV measures distances: the blocks of all columns, each of total variance 1."""
    blocks = []
    for name in people:
        block = _one_hot(people[name]) if people[name].dtype == object else _standardized(people[name])
        block = block - block.mean(axis=0)
        blocks.append(block / max(float(np.sqrt((block**2).sum() / len(block))), 1e-12))
    return np.hstack(blocks)


def _one_hot(column: pd.Series) -> npt.NDArray[np.float64]:
    return pd.get_dummies(column.fillna("missing")).to_numpy(float)


def _standardized(column: pd.Series) -> npt.NDArray[np.float64]:
    """The z-score, with missing values at the mean and an indicator of them in its natural units, as in our tree.

    If the indicator were standardized too, a few missing values would weigh as much as all known ones.
    """
    missing = column.isna().to_numpy()
    value = column.to_numpy(dtype=float)
    if missing.all():
        return np.zeros((len(value), 1))
    score = np.where(missing, 0.0, value - value[~missing].mean())
    score /= max(float(value[~missing].std()), 1e-12)
    return np.c_[score, missing] if missing.any() else score[:, None]
