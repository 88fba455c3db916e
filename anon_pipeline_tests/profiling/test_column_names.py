"""Words of a column's name, in any way of writing it."""

from __future__ import annotations

import pytest

from anon_pipeline.profiling.column_names import named_by, words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("home_address-2", ["home", "address", "2"]),
        ("homeAddress", ["home", "address"]),
        ("HIVStatus", ["hiv", "status"]),
        ("État de santé", ["etat", "de", "sante"]),
        ("Straße", ["strasse"]),
        ("narodowość", ["narodowosc"]),
        ("", []),
    ],
)
def test_a_way_of_writing_hides_a_word(name: str, words: list[str]) -> None:
    assert words_of(name) == words


def test_a_word_within_another_is_taken_for_it() -> None:
    assert named_by("race", ["race"])
    assert not named_by("embraced", ["race"])
    assert not named_by("racecourse", ["race"])
    assert named_by("religionszugehoerigkeit", ["relig*"])


def test_several_words_must_follow_each_other() -> None:
    assert named_by("customer_last_name", ["last name"])
    assert not named_by("name_of_last", ["last name"])
    assert not named_by("last", ["last name"])
