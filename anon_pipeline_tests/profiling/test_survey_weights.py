"""Weights of a survey are told from what people weigh, however few different ones there are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from anon_pipeline.engine.base import ColumnSurvey, Survey
from anon_pipeline.profiling.proposal import Proposal, proposal_of
from anon_pipeline.profiling.survey_weights import weight_of_sample
from anon_pipeline.spec import Role

DRAW = np.random.default_rng(1)
#: Weights that are scaled, that count people, and what people weigh.
SCALED, COUNTS, BODIES = DRAW.gamma(3, 1 / 3, 900), DRAW.gamma(3, 500, 900), DRAW.normal(80, 12, 900)


def judged(name: str, values: npt.NDArray[np.float64]) -> tuple[str, str | None] | None:
    return weight_of_sample(name, pa.chunked_array([pa.array([*values, None, float("nan"), float("inf")])]))


@pytest.mark.parametrize("name", ["fnlwgt", "survey_weight", "pspwght", "W_FSTUWT", "PWGTP12", "perwt13f", "X_LLCPWT"])
@pytest.mark.parametrize("values", [SCALED, COUNTS, BODIES])
def test_a_weight_of_a_survey_is_known_by_its_name(name: str, values: npt.NDArray[np.float64]) -> None:
    assert judged(name, values) == ("by its name a weight of the sample", None)


@pytest.mark.parametrize("name", ["wt", "weight", "WTS", "weight_2020"])
def test_a_weight_of_whatever_kind_is_known_by_its_numbers(name: str) -> None:
    """`wt` was proposed as something that others may know."""
    assert judged(name, BODIES) is None
    scaled, counts = judged(name, SCALED), judged(name, COUNTS)
    assert scaled is not None and scaled[1] is None
    assert counts is not None and counts[1] is not None and "if bodies were weighed" in counts[1]


@pytest.mark.parametrize("name", ["weight_kg", "birth_weight", "weighted_score", "height"])
def test_what_people_weigh_is_no_weight_of_a_survey(name: str) -> None:
    for values in (SCALED, COUNTS, BODIES, BODIES - 90, np.array([])):
        assert judged(name, values) is None
    assert judged("wt", np.array([])) is judged("wt", SCALED - 1) is None


@pytest.mark.parametrize("several", [1, 30])
def test_a_weight_is_left_out_whether_or_not_people_share_it(several: int) -> None:
    """Whole weights of a census were grouped as a quasi-identifier: hardly any are unique."""
    values = np.repeat(np.arange(900 // several, dtype=np.int64), several)
    sample = pa.table({"PWGTP": values})
    column = ColumnSurvey("PWGTP", "BIGINT", 900, 900 // several, 900, 900, 0, 0)
    found: Proposal = proposal_of(Survey(900, (column,), (), sample, 0), column, values, None)
    assert (found.role, found.question) == (Role.EXCLUDE, None)
    assert found.why.startswith("by its name a weight of the sample") and "sampling_weight" in found.why
