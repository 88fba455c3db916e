"""The anonymizer that a spec asks for."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize import policy
from anon_pipeline.anonymize.policy import (
    anonymize_part,
    check_feasible,
    mean_loss,
    orders_of,
    protected_columns,
    tree_of,
)
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ColumnType, ReleaseSpec
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


def test_a_part_may_have_more_different_texts_than_a_whole_table() -> None:
    """Of 96 people 47 have a street of their own; in a fold of half of them, nearly everyone has."""
    spec = ReleaseSpec.model_validate(
        {
            "dataset": "people",
            "source": {"path": "people.csv"},
            "target": "ill",
            "columns": {"street": {"role": "quasi_identifier"}, "ill": {"role": "insensitive"}},
            "privacy": {"k_anonymity": {"k": 3}},
        }
    )
    people = pd.DataFrame({"street": [f"street {number % 47}" for number in range(96)], "ill": "no"})
    part = people.head(48)
    assert tree_of(spec, KEY).fit(people[["street"]]).sizes_.sum() == 96
    with pytest.raises(InputError, match="street has 47 different texts in 48 rows: nearly everyone"):
        tree_of(spec, KEY).fit(part[["street"]])
    assert len(anonymize_part(spec, KEY, part, np.zeros((48, 1)))) == 48


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


@pytest.mark.parametrize(
    ("targets", "stated", "orders"),
    [
        (["ill"], "both", "both"),
        (["ill"], "guidance", "guidance"),
        (["ill", "wage"], "both", "each"),
        (["ill", "wage"], "guidance", "guidance"),
    ],
)
def test_several_targets_have_an_order_each_unless_orders_are_stated(
    targets: list[str], stated: str, orders: str
) -> None:
    wage = {**SPEC.columns, "wage": {"role": "insensitive"}}
    spec = SPEC.replaced({"columns": wage, "guide": {"orders": stated, "targets": targets}})
    assert (orders_of(spec), tree_of(spec, KEY).orders) == (orders, orders)


def test_the_tree_has_what_the_spec_states_and_shows_numbers_in_folds() -> None:
    spec = SPEC.replaced(
        {
            "columns": {
                "age": {"role": "quasi_identifier", "grid": 5},
                "born": {"role": "quasi_identifier", "type": "date", "hierarchy": "calendar"},
                "town": {"role": "quasi_identifier", "levels": ["Ulm", "Bonn"]},
                "ill": {"role": "sensitive"},
                "wage": {"role": "sensitive"},
            },
            "recode": {"form": "range"},
            "grouping": {"refine": 70},
            "seed": 9,
        }
    )
    tree, in_folds = tree_of(spec, KEY), tree_of(spec, KEY, in_folds=True)
    assert (tree.form, in_folds.form) == ("range", "value")
    assert (list(tree.hierarchies), list(in_folds.hierarchies)) == (["born"], [])
    assert (tree.grids, tree.levels, tree.refine, tree.random_state) == ({"age": 5}, {"town": ("Ulm", "Bonn")}, 70, 9)
    assert protected_columns(spec) == ["ill"]
    assert mean_loss({"age": 0.25, "born": 0.75}) == 0.5


DAYS = np.array(["2020-01-01", "2020-07-01", "2021-02-01", "2021-03-01"], dtype="datetime64[D]")


@pytest.mark.parametrize("unit", ["D", "us"])
@pytest.mark.parametrize(
    "demand",
    [
        {"l_diversity": {"column": "seen", "l": 2, "bins": [date(2021, 1, 1)]}},
        {"t_closeness": {"column": "seen", "t": 0.4, "hierarchy": [[day.item(), str(day)[:4]] for day in DAYS]}},
    ],
)
def test_dates_are_dates_to_the_demands_on_a_part(unit: str, demand: dict[str, Any]) -> None:
    """Engines give a part's dates as days, or as microseconds where some are moments."""
    days = DAYS[np.arange(80) % 4]
    spec = ReleaseSpec.model_validate(
        {
            "dataset": "people",
            "source": {"path": "people.csv"},
            "target": "ill",
            "columns": {
                "age": {"role": "quasi_identifier"},
                "seen": {"role": "sensitive"},
                "ill": {"role": "insensitive"},
            },
            "privacy": {"k_anonymity": {"k": 3}, **demand},
        }
    )
    seen = days.astype(f"datetime64[{unit}]").astype(np.int64).astype(float)
    part = pd.DataFrame({"age": np.arange(80.0) // 4, "seen": seen, "ill": "no"})
    shown = anonymize_part(spec, KEY, part, np.zeros((80, 1)), {"seen": ColumnType.DATE})
    assert len(shown) == 80 and (shown["seen"] == seen).all()


def test_a_missing_date_of_a_part_is_none() -> None:
    moments = policy._moments(pd.Series([18262.0, np.nan], index=[7, 9]))
    assert moments.index.tolist() == [7, 9] and moments[7] == pd.Timestamp("2020-01-01") and pd.isna(moments[9])


def test_a_column_may_be_called_self() -> None:
    """As a column of the self-employed is."""
    spec = ReleaseSpec.model_validate(
        {
            "dataset": "people",
            "source": {"path": "people.csv"},
            "target": "ill",
            "columns": {"self": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}},
            "privacy": {"k_anonymity": {"k": 10}},
        }
    )
    part = pd.DataFrame({"self": np.arange(80.0) // 4, "ill": "no"})
    assert anonymize_part(spec, KEY, part, np.zeros((80, 1)))["self"].value_counts().min() >= 10
