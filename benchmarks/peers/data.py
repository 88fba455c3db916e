"""The people that every tool gets: Adult, split by seed, enlarged by resampling; and the guidance for guided tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

ADULT = Path(__file__).parents[2] / "data/adult/adult.parquet"
SEED = 0
TRAIN_ROWS, TEST_ROWS = 30_000, 15_000

NUMERIC = ["age"]
CATEGORICAL = [
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
]
QUASI_IDENTIFIERS = [*NUMERIC, *CATEGORICAL]
KEPT = ["hours_per_week", "capital_gain", "capital_loss"]
FEATURES = [*QUASI_IDENTIFIERS, *KEPT]
TARGET, POSITIVE = "income", ">50K"
GUIDANCE = "guidance"

#: Resampled people are moved by up to this many years and hours, within the range of Adult.
JITTER = {"age": (2, 17, 90), "hours_per_week": (2, 1, 99)}

DESCRIPTION = (
    "Data: Adult without the rows that have a missing value; 30,000 people of its train file to anonymize and 15,000 "
    "of its test file to score on, drawn with seed 0. Nine quasi-identifiers: age, workclass, education, "
    "marital_status, occupation, relationship, race, sex, native_country. hours_per_week, capital_gain and "
    "capital_loss are kept as they are and the forest sees them too. More than 30,000 rows: drawn again from the "
    "30,000 with replacement, age and hours moved by up to 2."
)


@dataclass(frozen=True)
class People:
    """`train` is anonymized and has a column of guidance; its row numbers link a release to it. `test` stays raw."""

    train: pd.DataFrame
    test: pd.DataFrame


def people(rows: int) -> People:
    """The people of both parts, the same on every call."""
    adult = pd.read_parquet(ADULT)
    adult = adult[~(adult == "?").any(axis=1)]
    names = [*FEATURES, TARGET]
    train = adult[adult["split"] == "train"].sample(TRAIN_ROWS, random_state=SEED)[names].reset_index(drop=True)
    test = adult[adult["split"] != "train"].sample(TEST_ROWS, random_state=SEED)[names].reset_index(drop=True)
    fold = _folds(train)
    if rows <= TRAIN_ROWS:
        enlarged, fold_of_row = train.head(rows).copy(), fold[:rows]
    else:
        enlarged, fold_of_row = _resampled(train, fold, rows)
    enlarged[GUIDANCE] = _guidance(train, fold, enlarged, fold_of_row)
    return People(enlarged, test)


def _folds(train: pd.DataFrame) -> npt.NDArray[np.int64]:
    fold = np.empty(len(train), dtype=np.int64)
    split = StratifiedKFold(5, shuffle=True, random_state=SEED).split(train, train[TARGET])
    for number, (_, held_out) in enumerate(split):
        fold[held_out] = number
    return fold


def _resampled(
    train: pd.DataFrame, fold: npt.NDArray[np.int64], rows: int
) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    random = np.random.default_rng(SEED)
    drawn = random.integers(len(train), size=rows)
    enlarged = train.iloc[drawn].reset_index(drop=True)
    for name, (reach, low, high) in JITTER.items():
        enlarged[name] = (enlarged[name] + random.integers(-reach, reach + 1, size=rows)).clip(low, high)
    return enlarged, fold[drawn]


def _guidance(
    train: pd.DataFrame,
    fold: npt.NDArray[np.int64],
    enlarged: pd.DataFrame,
    fold_of_row: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """The probability of `POSITIVE` for each row, by a model that was not trained on the person it was drawn from."""
    categories = {name: pd.CategoricalDtype(sorted(train[name].unique())) for name in CATEGORICAL}
    seen, asked = train[FEATURES].astype(categories), enlarged[FEATURES].astype(categories)
    said = np.empty(len(enlarged))
    for number in np.unique(fold):
        model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=SEED)
        model.fit(seen[fold != number], train[TARGET][fold != number] == POSITIVE)
        rows = fold_of_row == number
        if rows.any():
            said[rows] = model.predict_proba(asked[rows])[:, 1]
    return said
