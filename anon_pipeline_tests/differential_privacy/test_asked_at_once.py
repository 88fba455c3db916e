"""The same question from two processes at once: it was paid for twice, and its two answers could be averaged."""

from pathlib import Path

import pytest
from filelock import Timeout

from anon_pipeline.differential_privacy.accounting import Cost
from anon_pipeline.differential_privacy.budget import Budget
from anon_pipeline.home import Home
from anon_pipeline_tests.differential_privacy.test_budget import ALLOWED, TOTAL, budget_in, question


def test_who_comes_second_gets_the_answer_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has looked for an answer before the first gave it, and asks after that."""
    first, second = budget_in(tmp_path), budget_in(tmp_path)
    looked, stored = [], Budget.stored

    def too_early(budget: Budget, *keys: str) -> bytes | None:
        looked.append(keys)
        if len(looked) == 1:
            assert stored(budget, *keys) is None
            assert first.ask(question("a", TOTAL), lambda: b"noise") == (b"noise", True)
            return None
        return stored(budget, *keys)

    monkeypatch.setattr(Budget, "stored", too_early)
    assert second.ask(question("a", TOTAL), lambda: b"other noise") == (b"noise", False)
    assert second.state().spent == Cost(TOTAL)


def test_the_first_is_waited_for_by_whatever_path_the_home_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    first, other = budget_in(tmp_path / "real"), Home(tmp_path / "link")

    def answer() -> bytes:
        (name,) = [lock.stem for lock in (other.private / "locks").glob("asking-*")]
        with pytest.raises(Timeout), other.lock(name, timeout=0):
            pytest.fail("the same question could be asked meanwhile")
        return b"noise"

    assert first.ask(question("a"), answer)[1]
    assert Budget(other, ALLOWED).ask(question("a"), lambda: b"other noise") == (b"noise", False)
