"""The anonymizer that a spec asks for."""

from __future__ import annotations

from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import KEY

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
