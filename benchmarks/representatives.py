"""Possible representatives of a class in place of its members' values, and the scores of models trained on each.

    python -m benchmarks.representatives

On each table one tree is fitted on seven tenths of the people. Its classes are then recoded in several ways; a model is
trained on each and scored on the raw rows of the rest (the mean of two splits). The joint structure is the mean
absolute change of Pearson's r and Cramer's V among the quasi-identifiers.

Only the median (today's) obeys the rules of `anonymize/recode.py`; docs/decisions/what-a-class-shows.md has the
conclusion.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import cross_val_predict

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.association import Variable, association
from anon_pipeline.spec import ReleaseSpec

#: The number of people of a table, chosen at random: the order of the ways matters here, not the last digit.
PEOPLE = 12_000
#: The number of splits into a training and a test part.
SPLITS = 2
WAYS = ("raw", "median", "mean", "medoid", "sampled")


def adult() -> tuple[pd.DataFrame, list[str], str]:
    """The Adult table; income is predicted."""
    spec = ReleaseSpec.load("data/adult")
    frame = pd.read_parquet("data/adult/adult.parquet").replace({"?": None})
    people = frame[spec.released].sample(PEOPLE, random_state=0).reset_index(drop=True)
    return people, spec.quasi_identifiers, spec.target


def hours() -> tuple[pd.DataFrame, list[str], str]:
    """The same people; the hours they work are predicted (regression), and income is a quasi-identifier."""
    frame, columns, _ = adult()
    target = "hours_per_week"
    return frame, [*(name for name in columns if name != target), "income"], target


def encoded(frame: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """The table with categories as pandas categories of the whole table, and numbers as they are."""
    texts = [name for name in frame if like[name].dtype == object]
    return frame.astype({name: pd.CategoricalDtype(sorted(like[name].dropna().unique())) for name in texts})


def shown(way: str, part: pd.DataFrame, columns: list[str], tree: AnonymizerTree, seed: int) -> pd.DataFrame:
    """The training part with its quasi-identifiers recoded in one of the ways."""
    if way == "raw":
        return part
    random = np.random.default_rng(seed)
    group = tree.apply(part[columns])
    result = part.assign(**tree.transform(part[columns]))
    numbers = [name for name in columns if part[name].dtype.kind in "if"]
    if way == "mean":
        return result.assign(**{name: part[name].groupby(group).transform("mean") for name in numbers})
    if way == "sampled":
        return result.assign(**{name: _shuffled(part[name], group, random) for name in columns})
    if way == "medoid":
        distance = np.zeros(len(part))
        for name in columns:
            if name in numbers:
                centre = part[name].groupby(group).transform("mean")
                distance += ((part[name] - centre) / part[name].std()).abs().to_numpy()
            else:
                distance += (part[name].fillna("") != result[name].fillna("")).to_numpy()
        first = np.lexsort((distance, group))
        medoid = first[np.searchsorted(group[first], np.arange(group.max() + 1))][group]
        return result.assign(**{name: part[name].to_numpy()[medoid] for name in columns})
    return result


def _shuffled(column: pd.Series, group: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.object_]:
    """The values of each class, shuffled among its members."""
    values = column.to_numpy()
    order, place = np.argsort(group, kind="stable"), np.lexsort((random.random(len(values)), group))
    dealt = values.copy()
    dealt[order] = values[place]
    return dealt


def structure(frame: pd.DataFrame, columns: list[str]) -> dict[tuple[str, str], float]:
    """The association of each pair of quasi-identifiers."""
    ones = np.ones(len(frame), dtype=np.int64)
    variables = {
        name: Variable(frame[name].to_numpy(np.float64), True)
        if frame[name].dtype.kind in "if"
        else Variable(pd.factorize(frame[name])[0].astype(np.int64), False)
        for name in columns
    }
    return {pair: association(variables[pair[0]], variables[pair[1]], ones) or 0.0 for pair in combinations(columns, 2)}


def main() -> None:
    """Print the table."""
    print("| table | k | shown | score | joint structure |\n|---|---|---|---|---|")
    for name, (frame, columns, target) in {"adult": adult(), "hours": hours()}.items():
        classify = frame[target].dtype == object
        model = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        features = [one for one in frame if one != target]
        for k in (10, 100):
            scores: dict[str, list[float]] = {way: [] for way in WAYS}
            changes: dict[str, list[float]] = {way: [] for way in WAYS}
            for seed in range(SPLITS):
                chosen = np.random.default_rng(seed).random(len(frame)) < 0.7
                part, test = frame[chosen].reset_index(drop=True), frame[~chosen].reset_index(drop=True)
                x, y = encoded(part[features], frame), part[target]
                made = model(max_iter=60, categorical_features="from_dtype", random_state=seed)
                method = "predict_proba" if classify else "predict"
                guidance = cross_val_predict(made, x, y, cv=3, method=method)
                tree = AnonymizerTree(k=k).fit(part[columns], guidance[:, 1] if classify else guidance)
                before = structure(part, columns)
                for way in WAYS:
                    table = shown(way, part, columns, tree, seed)
                    fitted = made.fit(encoded(table[features], frame), y)
                    asked = encoded(test[features], frame)
                    scores[way].append(
                        roc_auc_score(test[target], fitted.predict_proba(asked)[:, 1])
                        if classify
                        else r2_score(test[target], fitted.predict(asked))
                    )
                    after = structure(table, columns)
                    changes[way].append(float(np.mean([abs(after[pair] - before[pair]) for pair in before])))
            for way in WAYS:
                print(
                    f"| {name} | {k} | {way} | {np.mean(scores[way]):.4f} | {np.mean(changes[way]):.4f} |", flush=True
                )


if __name__ == "__main__":
    main()
