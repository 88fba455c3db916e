"""The life of a budget: questions, failures, kills and changed allowances in any order, against a sum kept by hand."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from anon_pipeline.differential_privacy.accounting import Cost
from anon_pipeline.differential_privacy.budget import Allowance, Budget, Question
from anon_pipeline.differential_privacy.verification import verify
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline_tests.differential_privacy.killed import exit_code, fail_at
from anon_pipeline_tests.examples import times

keys = st.sampled_from("abcdef")
costs = st.builds(Cost, st.integers(1, 60), st.integers(0, 30))


def _ask_and_die(budget: Budget, question: Question, content: bytes, count: int, torn: bool) -> None:
    fail_at(count, "torn" if torn else "killed")
    budget.ask(question, lambda: content)
    os._exit(0)


class Spending(RuleBasedStateMachine):
    """What is spent only grows, by no more than is left; an answer that was given is the answer from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Home(Path(self.folder.name) / "home").prepare()
        self.allowed, self.spent = Cost(100, 50), Cost(0)
        self.answers: dict[str, bytes] = {}
        self.drawn = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @property
    def budget(self) -> Budget:
        """As a new process finds it."""
        return Budget(self.home, Allowance("patients", self.allowed, 1e-6))

    def question(self, key: str, cost: Cost) -> Question:
        return Question("people", key, f"question {key}", cost)

    def fresh(self) -> bytes:
        self.drawn += 1
        return b"noise %d" % self.drawn

    def asked(self, key: str, cost: Cost, answer: Callable[[], bytes]) -> None:
        """Ask, and hold what comes of it against what should."""
        if key in self.answers:
            assert self.budget.ask(self.question(key, cost), answer) == (self.answers[key], False)
        elif cost.within(self.allowed - self.spent):
            self.spent += cost
            content, new = self.budget.ask(self.question(key, cost), answer)
            assert new
            self.answers[key] = content
        else:
            before = self.drawn
            with pytest.raises(Refused):
                self.budget.ask(self.question(key, cost), answer)
            assert self.drawn == before

    @rule(key=keys, cost=costs)
    def asks(self, key: str, cost: Cost) -> None:
        self.asked(key, cost, self.fresh)

    @rule(key=keys, cost=costs)
    def asks_what_fails(self, key: str, cost: Cost) -> None:
        def fail() -> bytes:
            raise InputError("the table could not be processed")

        try:
            self.asked(key, cost, fail)
        except InputError:
            assert key not in self.answers

    @rule(key=keys, cost=costs, count=st.integers(0, 24), torn=st.booleans())
    def is_killed(self, key: str, cost: Cost, count: int, torn: bool) -> None:
        """Killed before the reservation it costs nothing; killed after it, what was reserved is gone."""
        self.budget.state()  # a folder that is there, as whoever asks finds it
        content = self.fresh()
        ended = exit_code(_ask_and_die, self.budget, self.question(key, cost), content, count, torn)
        stored, state = self.budget.stored(key), self.budget.state()
        if key in self.answers:
            assert stored == self.answers[key]
        elif stored is not None:
            assert (stored, state.spent) == (content, self.spent + cost)
            self.answers[key] = content
        if ended == 0:
            assert stored is not None
        if state.spent != self.spent:
            assert state.spent == self.spent + cost
            assert cost.within(self.allowed - self.spent)
            self.spent = state.spent

    @rule(total=st.builds(Cost, st.integers(1, 300), st.integers(0, 100)))
    def is_allowed_otherwise(self, total: Cost) -> None:
        if not self.budget.state().lines or total == self.allowed:
            return
        self.allowed = total
        with pytest.raises(Refused, match="the spec says otherwise"):
            self.budget.ask(self.question("another", Cost(1)), self.fresh)
        self.budget.accept("the board agreed")

    @invariant()
    def the_ledger_says_what_was_spent(self) -> None:
        budget = self.budget
        assert budget.state().spent == self.spent
        assert verify(budget).problems == []
        assert {key: budget.stored(key) for key in "abcdef"} == {key: self.answers.get(key) for key in "abcdef"}


TestSpending = pytest.mark.long(Spending.TestCase)
TestSpending.settings = settings(max_examples=times(15), stateful_step_count=15, deadline=None)
