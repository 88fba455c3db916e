"""What somebody learns who knows all quasi-identifiers and runs the anonymizer again for every value.

Random tables of 10 to 14 people, k = 3; `make bench-minimality` tells the same of more tables and more tries.
"""

from functools import cache

import numpy as np
import pytest

from anon_pipeline.anonymize.enforce import Prepared
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from benchmarks.minimality import DEMANDS, K, Tally, attacked, table

pytestmark = pytest.mark.slow

TABLES, TRIES = 40, 300
#: A value counts as ruled out that gives the release ten times more seldom than the truth: so few tries tell no more.
SELDOM = 10.0


def learned(numbers: range, demand: str) -> Tally:
    """What the attack learns of the people of these tables."""
    tally = Tally()
    for number in numbers:
        found = attacked(table(number, demand), TRIES, SELDOM)
        if found is not None:
            tally.add(found)
    return tally


@pytest.mark.parametrize("demand", DEMANDS)
def test_hardly_anybody_is_learned_for_certain(demand: str) -> None:
    tally = learned(range(TABLES), demand)
    assert tally.tables > 0.9 * TABLES
    assert tally.certain <= 0.01 * tally.people
    assert tally.undecided <= 0.05 * tally.people


def merged_where_it_fails(prepared: Prepared) -> IntArray:
    """What hides nothing: a class that fails is merged with the next one, until none fails, whatever the key is."""
    group = prepared.group.copy()
    while True:
        number = int(group.max()) + 1
        failing = np.flatnonzero(~prepared.holds(prepared.people.merge(group, number)))
        if number == 1 or not len(failing):
            return group
        first = min(failing[0], number - 2)
        group[group > first] -= 1


def test_merging_what_fails_tells_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack finds what it is there to find, in tables of two diseases: whoever has not the one has the other."""
    merged = cache(merged_where_it_fails)
    monkeypatch.setattr(Prepared, "under", lambda prepared, chance: merged(prepared))
    tally = learned(range(0, 32, 2), "l_diversity")
    assert tally.certain > 0.08 * tally.people  # eight times what is allowed with chance


def test_the_same_key_gives_the_same_classes_and_another_key_others() -> None:
    groups = []
    for number in range(30):
        one = table(number, "l_diversity")
        first, again, other = (one.repair.repaired(Key(bytes([byte]) * 32)) for byte in (1, 1, 2))
        assert (first == again).all()
        assert np.bincount(first[first >= 0], weights=one.repair.people.sizes[first >= 0]).min() >= K
        groups.append((first != other).any())
    assert any(groups)
