"""Small tables of people for attacks, and releases of them by several tools. Holds no test."""

from __future__ import annotations

import numpy as np
import pandas as pd

from anon_pipeline import AnonymizerTree
from anon_pipeline.attack.released import Knowledge

QUASI = ("age", "city", "sex", "joined", "member")
KNOWLEDGE = Knowledge(QUASI, sensitive=("ill", "cost"), other=(), numeric=("age", "joined", "cost"))

CITIES = ["Ulm", "Łódź", "東京", "Bonn", "Smith, John", "São Paulo"]


def people(n: int, seed: int) -> pd.DataFrame:
    """n people of one population: numbers, unicode texts, dates, booleans, and missing values among them."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 90, n)
    city = np.array(CITIES, dtype=object)[draw.choice(6, n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])]
    city[draw.random(n) < 0.05] = None
    joined = pd.Series(np.datetime64("2001-01-01") + draw.integers(0, 300, n).astype("m8[D]"))
    ill = draw.random(n) < (age - 10) / 160
    return pd.DataFrame(
        {
            "age": age,
            "city": city,
            "sex": np.array(["f", "m"], dtype=object)[draw.integers(0, 2, n)],
            "joined": joined.mask(draw.random(n) < 0.05),
            "member": draw.random(n) < 0.3,
            "ill": np.where(ill, "yes", "no").astype(object),
            "cost": np.round(draw.gamma(2, 500, n) + 20 * age),
        }
    )


def anonymized(
    table: pd.DataFrame, k: int = 10, form: str = "value", refine: int = 50_000
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """A release in random row order, its table of classes, and the person behind each row."""
    tree = AnonymizerTree(k=k, form=form, refine=refine).fit(table[list(QUASI)])
    released = pd.concat([tree.transform(table[list(QUASI)]), table[["ill", "cost"]]], axis=1)
    origin = np.random.default_rng(0).permutation(len(table))
    return released.iloc[origin].reset_index(drop=True), tree.classes_, origin
