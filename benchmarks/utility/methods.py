"""Ways to group people: ours in several settings, the paper's, and small reference implementations of others.

A method takes the training people and gives a group per row, shape (n,). What groups show is the same for all:
medians and modes of their members.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline import AnonymizerTree

Groups = npt.NDArray[np.int64]
#: Takes the quasi-identifiers, the guidance as probabilities or standardized predictions, the guide's labels, and k.
Method = Callable[[pd.DataFrame, np.ndarray, np.ndarray, int], Groups]


def ours(spread: float) -> Method:
    def group(people: pd.DataFrame, guidance: np.ndarray, _labels: np.ndarray, k: int) -> Groups:
        return AnonymizerTree(k=k, spread=spread).fit(people, guidance).apply(people)

    return group


def paper(people: pd.DataFrame, _guidance: np.ndarray, labels: np.ndarray, k: int) -> Groups:
    """Goldsteen et al. (arXiv 2007.13086): predicted labels, and nothing else in the criterion."""
    return AnonymizerTree(k=k, spread=0, orders="guidance").fit(people, labels).apply(people)


def mondrian(people: pd.DataFrame, _guidance: np.ndarray, _labels: np.ndarray, k: int) -> Groups:
    """Strict Mondrian (K. LeFevre, D. DeWitt, R. Ramakrishnan, ICDE 2006): medians of the relatively widest column.

    Categories are ordered by their names; missing values stand below all others.
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
    """MDAV (J. Domingo-Ferrer, V. Torra, DMKD 2005) on z-scores and one-hot categories, each column of variance 1."""
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
    """Groups of k people drawn by lot, the last with up to 2k - 1: the least that grouping can be worth."""
    group = np.minimum(np.arange(len(people)) // k, len(people) // k - 1)
    return np.random.default_rng(0).permutation(group)


METHODS: dict[str, Method] = {
    "ours": ours(1),
    "ours, spread 0.1": ours(0.1),
    "ours, spread 10": ours(10),
    "paper": paper,
    "Mondrian": mondrian,
    "MDAV": mdav,
    "random": at_random,
}
#: Those that another may be better than by no more than chance.
OURS = "ours"
OTHERS = ("paper", "Mondrian", "MDAV", "random")


def shown(people: pd.DataFrame, group: Groups) -> pd.DataFrame:
    """Everybody as their group: lower medians, and commonest categories; missing where most are."""
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
    """Within-group share of variance (numbers) or Gini impurity (categories), mean over the columns."""
    _, group = np.unique(group, return_inverse=True)
    size = np.bincount(group)
    lost = []
    for name in people:
        points = _points(people[[name]])
        total = ((points - points.mean(axis=0)) ** 2).sum()
        summed = np.stack([np.bincount(group, weights=column) for column in points.T], axis=1)
        within = (points**2).sum() - (summed**2 / size[:, None]).sum()
        lost.append(within / total if total > 0 else 0.0)
    return float(np.mean(lost))


def _codes(column: pd.Series) -> npt.NDArray[np.int64]:
    return pd.factorize(column, sort=True)[0].astype(np.int64)


def _points(people: pd.DataFrame) -> npt.NDArray[np.float64]:
    blocks = []
    for name in people:
        if people[name].dtype == object:
            block = pd.get_dummies(people[name].fillna("missing")).to_numpy(float)
        else:
            value = people[name].fillna(people[name].mean()).to_numpy()[:, None]
            block = np.c_[value, people[name].isna()] if people[name].isna().any() else value
            block = (block - block.mean(axis=0)) / np.maximum(block.std(axis=0), 1e-12)
        block = block - block.mean(axis=0)
        blocks.append(block / max(float(np.sqrt((block**2).sum() / len(block))), 1e-12))
    return np.hstack(blocks)
