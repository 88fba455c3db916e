"""Groups people with IBM's ai-privacy-toolkit; runs in that tool's own environment, which has nothing of ours.

Run by methods.py: PYTHON toolkit.py FOLDER K (labels | regression)
The folder has people.parquet, the quasi-identifiers, and said.npy, a model's prediction for each person; groups.npy is
written beside them. Groups are the leaves of the toolkit's tree, the people whose released values are equal.

Missing values are filled before (by a number's median, or a category of their own), since the toolkit has no missing
values. `import apt` uses torch only to check whether its input is a Tensor, so an empty torch replaces it where it is
not installed; ART must not import the empty one, and so is imported first.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def main() -> None:
    folder, k, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    people = filled(pd.read_parquet(folder / "people.parquet"))
    said = np.load(folder / "said.npy")
    np.save(folder / "groups.npy", grouped(people, said, k, regression=kind == "regression"))


def filled(people: pd.DataFrame) -> pd.DataFrame:
    """The people with their missing values filled."""
    complete = people.copy()
    for name in people:
        column = people[name]
        complete[name] = column.fillna("missing" if column.dtype == object else column.median())
    return complete


def grouped(people: pd.DataFrame, said: np.ndarray, k: int, regression: bool) -> np.ndarray:
    """The leaf of each person in the tree that `Anonymize` fits when it anonymizes them."""
    anonymize, dataset = imported()
    names = list(people)
    texts = [name for name in names if people[name].dtype == object]
    tool = anonymize(k, names, categorical_features=texts or None, is_regression=regression)
    tool.anonymize(dataset(people, said))
    encoded = tool._modify_categorical_features(people.to_numpy()) if texts else people.to_numpy()
    return np.asarray(tool._anonymizer.apply(encoded), dtype=np.int64)


def imported() -> tuple[Any, Any]:
    """The classes `Anonymize` and `ArrayDataset`, imported with an empty torch where torch is not installed."""
    importlib.import_module("art.estimators.classification.scikitlearn")
    importlib.import_module("art.estimators.regression.scikitlearn")
    if importlib.util.find_spec("torch") is None:
        torch = types.ModuleType("torch")
        torch.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
        sys.modules["torch"] = torch
    anonymization = importlib.import_module("apt.anonymization")
    datasets = importlib.import_module("apt.utils.datasets")
    return anonymization.Anonymize, datasets.ArrayDataset


if __name__ == "__main__":
    main()
