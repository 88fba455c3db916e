"""People come, leave, return, move and age in any order between releases; who has all releases is left with k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from anon_pipeline.errors import InputError
from anon_pipeline.sequential.guarantees import ABSENT
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.sequential.test_republication import Releases, candidates, everybody

TOTAL = 160

seeds = st.integers(0, 2**32 - 1)
#: Whether a release is made before the next thing happens.
often = st.sampled_from([True, True, True, False])


class Publishing(RuleBasedStateMachine):
    """One dataset, and what becomes of its people between two releases."""

    @initialize(
        k=st.integers(2, 4),
        window=st.integers(2, 4),
        refit=st.sampled_from([-1.0, 0.1, 1e9]),
        departures=st.booleans(),
        seed=seeds,
    )
    def begins(self, k: int, window: int, refit: float, departures: bool, seed: int) -> None:
        self.releases = Releases(k, window, refit, departures)
        self.people = everybody(TOTAL, seed)
        self.present = np.arange(TOTAL) < TOTAL // 2

    @rule(seed=seeds, share=st.sampled_from([0.02, 0.2, 0.9]), released=often)
    def some_leave(self, seed: int, share: float, released: bool) -> None:
        self.present &= np.random.default_rng(seed).random(TOTAL) >= share
        self.released(released)

    @rule(seed=seeds, share=st.sampled_from([0.02, 0.2, 0.9]), released=often)
    def some_come_or_return(self, seed: int, share: float, released: bool) -> None:
        self.present |= np.random.default_rng(seed).random(TOTAL) < share
        self.released(released)

    @rule(seed=seeds, released=often)
    def some_move(self, seed: int, released: bool) -> None:
        movers = np.random.default_rng(seed).random(TOTAL) < 0.1
        self.people.loc[movers, "city"] = "Cork"
        self.released(released)

    @rule(released=often)
    def all_age(self, released: bool) -> None:
        self.people["age"] += 1
        self.released(released)

    def released(self, released: bool) -> None:
        """Release who is there, where that is asked, and attack what is published by now."""
        if not released or not self.present.any():  # an empty table is refused where it is read
            return
        made = len(self.releases.published)
        routing = self.releases.routing
        try:
            found = self.releases.release(self.people[self.present], TOTAL)
        except InputError:  # no cohort is large enough: nothing appears, and what was known stays known
            assert (len(self.releases.published), self.releases.routing) == (made, routing)
            return
        window = self.releases.published[-self.releases.window :]
        assert min(candidates(window).values()) >= self.releases.k
        assert len(window[-1]) + found.grouping.withheld_people == self.present.sum()
        inside = self.releases.classes[-1] != ABSENT
        assert not (inside & ~self.present).any()
        assert set(window[-1]["record"]) == set(np.flatnonzero(inside))


TestPublishing = pytest.mark.long(Publishing.TestCase)
TestPublishing.settings = settings(max_examples=times(25), stateful_step_count=15, deadline=None)
