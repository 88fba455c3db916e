"""Figures of a manifest in words: which of several sentences a figure gets, at the edge between two."""

from __future__ import annotations

import pytest

from anon_pipeline.report.columns import _spread
from anon_pipeline.report.groups import _rounding
from anon_pipeline.report.risk import _risk_words


@pytest.mark.parametrize(
    ("width", "unit", "told"),
    [
        (730, "days", "3 ranges, typical width 730 days"),
        (730.5, "days", "3 ranges, typical width about 2 years"),
        (10_590, "days", "3 ranges, typical width about 29 years"),
        (10_590, "hours", "3 ranges, typical width 10,590 hours"),
        (None, "days", ""),
    ],
)
def test_ranges_of_dates_are_told_in_years_from_two_years_on(width: float | None, unit: str, told: str) -> None:
    assert _spread("date", {"groups": 3, "width": width, "unit": unit}) == told


def test_each_risk_is_told_as_what_it_is() -> None:
    name, term, write = _risk_words(("prosecutor", "share_above", "0.2"))
    assert (name, term, write(0.5)) == (
        "People whose chance to be picked is above 20\u00a0%",
        "prosecutor",
        "50\u00a0%",
    )
    name, term, write = _risk_words(("population_uniqueness", "pitman", "people"))
    assert (name, term) == ("People unique in the whole population (estimate)", "pitman")
    assert _risk_words(("journalist", "share_above", "0.2"))[0] == "Journalist share above 0.2"


@pytest.mark.parametrize(
    ("units", "smallest", "is_told"), [({"pay": 100}, 10, True), ({"pay": 100}, None, False), ({}, 10, False)]
)
def test_how_exactly_means_are_shown_is_told_where_it_is_known(
    units: dict[str, int], smallest: int | None, is_told: bool
) -> None:
    told = _rounding({"units": units, "smallest": smallest}, "pay")
    assert told.startswith(", in steps of ") == is_told
    assert bool(told) == is_told
