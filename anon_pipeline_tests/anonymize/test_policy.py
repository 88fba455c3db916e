"""The anonymizer that a spec asks for."""

from __future__ import annotations

import pytest

from anon_pipeline.anonymize.policy import check_feasible, tree_of
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import KEY
from anon_pipeline_tests.privacy.tables import COLUMN, classes_of_people

SPEC = ReleaseSpec.model_validate(
    {
        "dataset": "people",
        "source": {"path": "people.csv"},
        "target": "ill",
        "columns": {"age": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}},
        "privacy": {
            "k_anonymity": {"k": 7},
            "l_diversity": {"column": "ill", "l": 2},
            "delta_presence": {"min": 0, "max": 0.5, "population": "everybody.csv"},
        },
    }
)


def test_the_tree_has_the_demands_of_the_spec_and_its_k() -> None:
    tree = tree_of(SPEC, KEY)
    assert tree.k == 7
    assert sorted(type(demand).__name__ for demand in tree.demands) == ["DeltaPresence", "LDiversity"]


def test_folds_leave_out_what_is_demanded_of_a_population() -> None:
    assert [type(demand) for demand in tree_of(SPEC, KEY, in_folds=True).demands] == [LDiversity]


def everybody(*ill: str) -> ClassStatistics:
    counted = classes_of_people([ill], ["flu", "well"], ordered=False)
    return ClassStatistics(counted.sizes, {"ill": counted.sensitive[COLUMN]})


def test_what_no_grouping_can_meet_is_told_before_there_is_one() -> None:
    spec = SPEC.replaced({"privacy": {"k_anonymity": {"k": 7}, "l_diversity": {"column": "ill", "l": 2}}})
    check_feasible(spec, everybody(*["flu", "well"] * 7))
    with pytest.raises(InputError, match=r"privacy\.l_diversity: .*; lower the demand"):
        check_feasible(spec, everybody(*["flu"] * 14))
    with pytest.raises(InputError, match=r"privacy\.k_anonymity: .*; lower the demand"):
        check_feasible(spec, everybody(*["flu", "well"] * 3))
