"""The same people, parameters and key give the same classes everywhere and in every version: they are pinned.

A change here changes releases of the same table. That is decided, never stumbled upon, and is told in the changelog as
**release**. Adult's own classes are pinned in docs/test_figures.py; these are small, and take every way there is.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.hierarchy import Prefixes
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline_tests.people import KEY

DEMANDS = (LDiversity(column="ill", l=3), TCloseness(column="wage", t=0.35))
PARAMETERS: dict[str, dict[str, Any]] = {
    "the paper": {"k": 8, "spread": 0.0},
    "the tree": {"k": 8, "refine": 0},
    "refined": {"k": 8},
    "swapped": {"k": 3, "orders": "guidance"},
    "ranges": {"k": 12, "orders": "each", "form": "range", "grids": {"age": 5.0}},
    "levels": {"k": 6, "levels": {"town": ["Kiel", "Ulm", "Bonn", "Jena", "Trier"]}},
    "a hierarchy": {"k": 6, "hierarchies": {"code": Prefixes(lengths=(2, 1))}},
    "a strict hierarchy": {"k": 6, "hierarchies": {"code": Prefixes(lengths=(2, 1), strict=True)}},
    "demands": {"k": 4, "demands": DEMANDS, "key": KEY},
    "demands on nodes": {
        "k": 4,
        "demands": DEMANDS,
        "key": KEY,
        "hierarchies": {"code": Prefixes(lengths=(2, 1), strict=True)},
    },
    "some left out": {"k": 6, "demands": DEMANDS, "key": KEY, "suppression": 0.3},
}
#: Of the class of every person and of what the classes show.
PINNED = {
    "the paper": "badb332b3286",
    "the tree": "831315800b74",
    "refined": "2fa406e840bb",
    "swapped": "131cbf5a3d8c",
    "ranges": "584625ed0782",
    "levels": "78970b1769d4",
    "a hierarchy": "d220c6afbd78",
    "a strict hierarchy": "bfb3e1714a73",
    "demands": "e1779fa82748",
    "demands on nodes": "0462096508eb",
    "some left out": "b191cfe6c549",
}


def people(n: int = 700) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """People with gaps, what is to be protected of them, and two models' guesses, in 64ths."""
    draw = np.random.default_rng(11)
    table = pd.DataFrame(
        {
            "age": pd.Series(draw.integers(18, 90, n), dtype="Int64").mask(pd.Series(draw.random(n) < 0.05)),
            "town": draw.choice(["Ulm", "Bonn", "Kiel", "Jena", "Trier"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "code": pd.Series(draw.choice(["1011", "1012", "1020", "2011", "2013", "3055"], n)).mask(
                pd.Series(draw.random(n) < 0.05)
            ),
            "since": np.datetime64("2001-01-01") + draw.integers(0, 3000, n).astype("m8[D]"),
        }
    )
    sick = draw.random(n) < table["age"].fillna(50).to_numpy(float) / 140
    others = pd.DataFrame(
        {"ill": np.where(sick, draw.choice(["flu", "cold"], n), "none"), "wage": draw.integers(1, 9, n) * 1000}
    )
    return table, others, np.column_stack([np.rint(sick * 40 + draw.integers(0, 24, n)), draw.integers(0, 64, n)]) / 64


def classes_of(name: str) -> str:
    table, others, guidance = people()
    tree = AnonymizerTree(**PARAMETERS[name])
    protected = {"sensitive": others} if "demands" in PARAMETERS[name] else {}
    tree.fit(table, guidance, **protected)
    told = [tree.apply(table).tolist(), tree.sizes_.tolist(), tree.classes_.astype(str).to_numpy().tolist()]
    shown = tree.transform(table)
    told += [shown.astype(str).to_numpy().tolist(), shown.dtypes.astype(str).tolist()]
    told.append({column: f"{loss:.9g}" for column, loss in tree.information_loss_.items()})
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_classes_are_the_same_in_every_version(name: str) -> None:
    assert classes_of(name) == PINNED[name]
