"""People come, leave, return, move and age in any order between releases; who has all releases is left with k."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from anon_pipeline.errors import InputError
from anon_pipeline.sequential.guarantees import ABSENT
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.sequential.test_republication import Releases, candidates, everybody

TOTAL = 160

seeds = st.integers(0, 2**32 - 1)


class Publishing(RuleBasedStateMachine):
    """One dataset, released whenever the machine says so."""

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

    @rule(seed=seeds, share=st.sampled_from([0.02, 0.2, 0.9]))
    def some_leave(self, seed: int, share: float) -> None:
        self.present &= np.random.default_rng(seed).random(TOTAL) >= share

    @rule(seed=seeds, share=st.sampled_from([0.02, 0.2, 0.9]))
    def some_come_or_return(self, seed: int, share: float) -> None:
        self.present |= np.random.default_rng(seed).random(TOTAL) < share

    @rule(seed=seeds)
    def some_move(self, seed: int) -> None:
        movers = np.random.default_rng(seed).random(TOTAL) < 0.1
        self.people.loc[movers, "city"] = "Cork"

    @rule()
    def all_age(self) -> None:
        self.people["age"] += 1

    @rule()
    def is_released(self) -> None:
        made = len(self.releases.published)
        routing = self.releases.routing
        try:
            found = self.releases.release(self.people[self.present], TOTAL)
        except InputError:  # nobody has company enough: nothing appears, and what was known stays known
            assert (len(self.releases.published), self.releases.routing) == (made, routing)
            return
        window = self.releases.published[-self.releases.window :]
        assert min(candidates(window).values()) >= self.releases.k
        assert len(window[-1]) + found.grouping.withheld_people == self.present.sum()
        released = self.releases.classes[-1] != ABSENT
        assert not (released & ~self.present).any()
        assert set(window[-1]["record"]) == set(np.flatnonzero(released))


TestPublishing = Publishing.TestCase
TestPublishing.settings = settings(max_examples=times(25), stateful_step_count=15, deadline=None)
