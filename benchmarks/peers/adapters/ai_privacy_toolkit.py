"""IBM's ai-privacy-toolkit: option, labels (the classifier of its paper) or probabilities (its regression mode).

`import apt` imports ART and torch. ART is installed. torch is not: the wheels on PyPI come with CUDA and weigh
gigabytes, and apt/utils/datasets asks it only whether its input is a Tensor. So an empty torch with a class of that
name stands in for it unless the real one is there, which can only make this tool look faster and smaller. ART must
not meet the empty one and is imported first.

It is given the quasi-identifiers only, and train_only_QI stays off: with categories that option picks its columns from
the one-hot matrix by their positions in the table, and so leaves most quasi-identifiers out of the tree.
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
