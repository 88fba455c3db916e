"""IBM's ai-privacy-toolkit: option, labels (the classifier of its paper) or probabilities (its regression mode).

`import apt` imports ART and torch. ART is installed. torch is not: its wheels on PyPI include CUDA and have gigabytes,
and apt/utils/datasets uses it only to check whether its input is a Tensor. So an empty torch with a class of that name
replaces it unless the real one is installed, which can only make this tool look faster and smaller. ART must not import
the empty one, and so is imported first.

The tool gets the quasi-identifiers only, and train_only_QI stays off: with categories that option picks its columns
from the one-hot matrix by their positions in the table, and so leaves most quasi-identifiers out of the tree.
"""

import importlib.util
import sys
import types

import art.estimators.classification.scikitlearn
import art.estimators.regression.scikitlearn  # noqa: F401

if importlib.util.find_spec("torch") is None:
    torch = types.ModuleType("torch")
    torch.Tensor = type("Tensor", (), {})
    sys.modules["torch"] = torch

from apt.anonymization import Anonymize
from apt.utils.datasets import ArrayDataset
from protocol import CATEGORICAL, GUIDANCE, NUMERIC, QUASI_IDENTIFIERS, Run

run = Run()
probabilities = run.options == ["probabilities"]
people, guidance = run.people[QUASI_IDENTIFIERS], run.people[GUIDANCE].to_numpy()
said = guidance if probabilities else (guidance > 0.5).astype(int)
with run.measured():
    anonymizer = Anonymize(
        run.k,
        QUASI_IDENTIFIERS,
        categorical_features=CATEGORICAL,
        is_regression=probabilities,
    )
    released = anonymizer.anonymize(ArrayDataset(people, said))
encoded = anonymizer._modify_categorical_features(people.to_numpy())
released = released.astype(dict.fromkeys(NUMERIC, "int64"))
run.write(released, classes=anonymizer._anonymizer.apply(encoded))
