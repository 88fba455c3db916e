"""Scores that are computed here are those of scikit-learn, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from anon_pipeline.learning.scores import classification_scores

NO_YES = np.array(["no", "yes"], dtype=object)
#: Many people with the same score, and scores that differ in the last bit.
scores = st.one_of(st.sampled_from([0.0, 0.1, 0.1 + 2**-53, 0.5, 1.0]), st.floats(0, 1))


def auc(positive: np.ndarray, score: np.ndarray) -> float | None:
    truth = NO_YES[positive.astype(int)]
    return classification_scores(truth, truth, np.column_stack([1 - score, score]), NO_YES)["roc_auc"]


@given(
    st.lists(st.tuples(st.booleans(), scores), min_size=2).filter(lambda people: len({yes for yes, _ in people}) > 1)
)
def test_the_auc_is_that_of_scikit_learn(people: list[tuple[bool, float]]) -> None:
    positive, score = np.array([yes for yes, _ in people]), np.array([value for _, value in people])
    assert auc(positive, score) == roc_auc_score(positive, score)


@pytest.mark.parametrize("nothing", [np.nan, np.inf])
def test_a_probability_that_is_no_number_has_no_auc(nothing: float) -> None:
    with pytest.raises(ValueError, match="no number"):
        auc(np.array([True, False]), np.array([nothing, 0.5]))
