"""The labels of values in the report of a synthetic release: the numbers that are counted, and no others."""

from typing import Any

import numpy as np
import pytest

from anon_pipeline.differential_privacy.synthesis.coded_table import Axis
from anon_pipeline.differential_privacy.synthesis.drawn_rows import as_table
from anon_pipeline.report.synthetic_report import _domain, _label, _promises, _selections
from anon_pipeline.spec import PublicDomain


@pytest.mark.parametrize(
    ("domain", "labels"),
    [
        ({"range": [0, 9], "step": 1}, {0: "0", 1: "1", 9: "9", 10: "missing"}),
        ({"range": [-0.5, 1], "step": 0.25}, {0: "-0.5", 5: "0.75"}),
        ({"range": [0, 999], "step": 1}, {0: "0 to 31", 30: "960 to 991", 31: "992 to 999", 32: "missing"}),
        ({"range": [0, 64000000], "step": 2000000}, {0: "0 to 2000000", 16: "64000000"}),
        ({"bins": [20240101, 20240201, 20240301]}, {1: "20240201 to 20240301"}),
    ],
)
def test_a_label_names_the_numbers_that_are_counted(domain: dict[str, Any], labels: dict[int, str]) -> None:
    """Of ages from 0 to 9, the count of 1 stood beside "0.9 to 1.8"; of 0 to 999, that of 960 beside 936 to 968."""
    axis = Axis.of("x", PublicDomain.model_validate({**domain, "why": "a test"}))
    told = axis.domain.model_dump(mode="json", exclude_none=True)
    for place, label in labels.items():
        assert _label(told, place, axis.intervals) == label
        if "range" in domain and place < axis.intervals:
            drawn = as_table(np.full((500, 1), place), [axis], np.random.default_rng(1)).column("x").to_pylist()
            low, _, high = label.partition(" to ")
            assert (min(drawn), max(drawn)) == (float(low), float(high or low))


def test_a_domain_is_told_with_all_its_digits() -> None:
    assert _domain({"range": [1234567, 7654321], "step": 0.5}) == "1234567 to 7654321 in steps of 0.5"
    assert _domain({"bins": [0, 20240101]}) == "1 intervals from 0 to 20240101"


@pytest.mark.parametrize(("rows", "unit"), [(1, "row, of which 1 row is"), (3, "row, of which 3 rows are")])
def test_the_unit_is_told_in_its_number(rows: int, unit: str) -> None:
    assert _promises({"unit": "row", "rows_per_unit": rows})[0] == ("Unit", f"{unit} counted at most")


def test_a_choice_of_the_largest_counts_is_told() -> None:
    """The largest of many noisy counts of equal values are too large, and their intervals hold the count too seldom."""
    counts = [{"noisy": 5.0}] * 12
    assert _selections({"age": counts, "town": []}) == {}
    (told,) = _selections({"age": [*counts, {"noisy": 1.0}], "town": counts}).values()
    assert told.startswith("The 12 largest of 13 noisy counts. Some can be among the largest by their noise")
