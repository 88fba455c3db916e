"""What a run asks of the releases before it, by hand: who can be followed, and whether enough candidates are left."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.sequential_publication import (
    cohorts_of,
    people_of,
    require_minimum_size,
    require_somebody_followed,
)
from anon_pipeline.sequential.guarantees import Intersection
from anon_pipeline.sequential.release_history import Membership, Window, hashed

KEY = b"k" * 32


def ids(*names: str | None) -> pa.Array:
    return pa.array(names, pa.string())


def window_of(*names: str) -> Window:
    person = np.sort(hashed(ids(*names), KEY))
    return Window((Membership("a", person, np.zeros(len(person), dtype=np.int64)),), ())


def test_people_are_followed_by_their_identifiers_in_whatever_parts_they_come() -> None:
    cohorts = cohorts_of(people_of([ids("a", "d"), ids("b")], KEY), window_of("a", "b", "c"))
    assert cohorts.person.tolist() == sorted(hashed(ids("a", "b", "d"), KEY).tolist())
    new = cohorts.person == hashed(ids("d"), KEY)[0]
    assert (cohorts.history[new] == 0).all() and len(set(cohorts.history[~new])) == 1 and cohorts.history[~new].all()
    assert cohorts.departed.sum() == 1  # c


def test_a_first_release_has_newcomers_alone() -> None:
    for window in (Window((), ()), window_of()):
        assert cohorts_of(people_of([ids("a", "b")], KEY), window).history.tolist() == [0, 0]


def test_somebody_without_an_identifier_or_other_people_cannot_be_followed() -> None:
    with pytest.raises(InputError, match="somebody has no identifier"):
        people_of([ids("a"), ids("b", None)], KEY)
    window = window_of("a", "b")
    with pytest.raises(InputError, match="nobody of the last 1 releases is in this table"):
        require_somebody_followed(cohorts_of(people_of([ids("x", "y")], KEY), window), window)


def test_a_release_needs_k_candidates_beside_those_that_stand_now(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = SimpleNamespace(spec=SimpleNamespace(across_releases=SimpleNamespace(k=5)))
    for fewest in (4, 5, 6):
        overlap = Intersection(2, 100, fewest, 0, 0, 0, 0)
        monkeypatch.setattr(sequential_publication, "measured", lambda *_, overlap=overlap: overlap)
        if fewest >= 5:
            require_minimum_size(run, run)
            continue
        with pytest.raises(Refused, match="4 candidates, fewer than 5"):
            require_minimum_size(run, run)
