"""Parts of a spec that must fit one another, and what follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.spec import PublicDomain, Source
from anon_pipeline.spec.source import path_parts
from anon_pipeline_tests.test_spec import GOOD, changed, load

#: People are counted by city, in groups of so many.
GROUPS = "steps: [{{technique: aggregate, columns: [city], threshold: {}}}]\n"


@pytest.mark.parametrize(("places", "is_refused"), [(["out"], False), (["out", "other"], False), (["out"] * 2, True)])
def test_a_place_that_a_release_is_put_to_is_named_once(tmp_path: Path, places: list[str], is_refused: bool) -> None:
    text = GOOD + f"publish: [{', '.join(f'{{delta: {place}}}' for place in places)}]\n"
    if is_refused:
        with pytest.raises(InputError, match="publish: delta:out stands twice; name each place once"):
            load(tmp_path, text)
    else:
        assert len(load(tmp_path, text).publish) == len(places)


def test_numbers_of_a_range_lie_on_its_grid() -> None:
    domain = PublicDomain(range=(-1, 1), step=0.1, why="a scale")
    assert [domain.number_at(place) for place in (0, 3, domain.size - 1)] == [-1, -0.7, 1]


def test_groups_have_k_people(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD + GROUPS.format(10)).aggregates
    with pytest.raises(InputError, match=r"steps\.0\.threshold: is 9, and k = 10 asks for more people in every group"):
        load(tmp_path, GOOD + GROUPS.format(9))


def test_a_column_that_is_made_has_a_step_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a column is said to be made, and there are no steps"):
        load(tmp_path, changed("hobby: {role: insensitive}", "hobby: {role: insensitive, made: true}"))


@pytest.mark.parametrize("path", ["address", "address.", "address..postcode", ".postcode", "a.b.", ""])
def test_what_is_no_path_into_a_record_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is a column and fields within it"):
        path_parts(path)


def test_a_path_into_a_record_is_read_name_by_name() -> None:
    assert path_parts("address.postcode") == ("address", "postcode")
    assert path_parts('"a.b"."c ""d""".e') == ("a.b", 'c "d"', "e")


def test_keys_that_came_later_are_no_part_of_a_source_that_does_not_use_them() -> None:
    added = {"delta", "version", "iceberg", "snapshot", "paths", "symbols"}
    assert Source(path="people.csv").unstated == added
    assert Source(path="people.csv", symbols=("$",)).unstated == added - {"symbols"}
