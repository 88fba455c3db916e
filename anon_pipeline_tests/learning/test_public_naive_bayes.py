"""Naive Bayes from counts: columns that say the same are not counted twice, and its chances are chances."""

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.learning.public_naive_bayes import Codes, PublicNaiveBayes

CLASSES = ("no", "yes", "perhaps")
#: Of each value of a column, the chances of the classes.
CHANCES = np.array([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]])


def people(n: int = 20_000) -> tuple[pd.DataFrame, pd.Series]:
    """A column that tells of the target, a copy of it, and one that tells of nothing."""
    random = np.random.default_rng(3)
    value = random.integers(0, 2, n)
    target = [CLASSES[random.choice(3, p=CHANCES[place])] for place in value]
    texts = np.array(["a", "b"])
    return pd.DataFrame({"told": texts[value], "copy": texts[value], "other": random.choice(texts, n)}), pd.Series(
        target
    )


def fitted(held: float) -> tuple[PublicNaiveBayes, pd.DataFrame]:
    frame, target = people()
    columns = tuple(Codes(name, values=("a", "b")) for name in frame.columns)
    counts = [pd.crosstab(frame[name], target)[list(CLASSES)].to_numpy(dtype=np.float64) for name in frame.columns]
    # A missing value has a code of its own, the last.
    counts = [np.vstack([table, np.zeros(3)]) for table in counts]
    return PublicNaiveBayes(columns, counts, CLASSES, held).fit(frame, target), frame


@pytest.mark.long
def test_two_columns_that_say_the_same_count_as_one() -> None:
    model, frame = fitted(held=0.0)
    wanted = CHANCES[(frame["told"] == "b").astype(int)]
    assert np.abs(model.predict_proba(frame) - wanted).max() < 0.03
    assert model.weights_[0] + model.weights_[1] == pytest.approx(1, abs=0.05)


@pytest.mark.long
def test_weights_are_held_together_as_far_as_is_asked() -> None:
    loose, _ = fitted(held=0.0)
    held, _ = fitted(held=1e3)
    assert np.ptp(held.weights_) < 0.01 < np.ptp(loose.weights_)


@pytest.mark.long
def test_a_missing_value_and_an_unlisted_one_tell_nothing_wild() -> None:
    model, _ = fitted(held=0.0)
    strange = pd.DataFrame({"told": [None, "z"], "copy": ["z", None], "other": ["a", "b"]})
    chances = model.predict_proba(strange)
    assert chances.sum(axis=1) == pytest.approx(1) and chances.min() > 0.01
