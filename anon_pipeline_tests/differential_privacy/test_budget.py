"""The budget under many processes, kills, a full disk and a wrong clock: no answer that was not paid for."""

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.differential_privacy import ledger
from anon_pipeline.differential_privacy.accounting import Cost
from anon_pipeline.differential_privacy.budget import Allowance, Budget, Question, question_key
from anon_pipeline.differential_privacy.verification import verify
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.release import signing
from anon_pipeline_tests.differential_privacy.killed import FORK, fail_at
from anon_pipeline_tests.differential_privacy.tables import spec_of

TOTAL = 1_000_000
ALLOWED = Allowance("patients", Cost(TOTAL, 1_000), 1e-6)


def budget_in(home: Path, allowance: Allowance = ALLOWED) -> Budget:
    return Budget(Home(home).prepare(), allowance)


def question(key: str, nano: int = TOTAL // 100, atto: int = 0) -> Question:
    return Question("people", key, f"question {key}", Cost(nano, atto))


def test_a_question_asked_again_is_free(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    first = budget.ask(question("a"), lambda: b"noise")
    again = budget.ask(question("a"), lambda: b"other noise")
    assert (first, again) == ((b"noise", True), (b"noise", False))
    assert budget.state().spent == Cost(TOTAL // 100)


def test_to_look_at_a_budget_opens_no_ledger(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    assert budget.state().lines == () and budget.state().left == ALLOWED.total
    assert ledger.read(budget.folder) == []
    budget.ask(question("a"), lambda: b"noise")
    assert [line.action for line in ledger.read(budget.folder)] == [ledger.OPEN, ledger.RESERVE, ledger.ANSWER]


def test_an_answer_is_known_by_all_of_its_bytes(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    assert not budget.has_answered(b"noise")
    budget.ask(question("a"), lambda: b"noise")
    assert budget.has_answered(b"noise") and not budget.has_answered(b"noise ")


def test_a_state_tells_what_is_spent_and_left(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a", TOTAL // 4, 600), lambda: b"noise")
    told = budget.state().to_json()
    assert told["rho"] == {"total": 0.001, "spent": 0.00025, "left": 0.00075}
    assert told["threshold_delta"] == {"total": 1e-15, "spent": 6e-16, "left": 4e-16}
    assert told["epsilon"]["spent"] < told["epsilon"]["total"]
    assert (told["subject"], told["delta"], told["reserved"], told["answered"]) == ("patients", 1e-6, 1, 1)
    assert told["head"] == f"3:{budget.state().head}"


def test_a_signature_is_of_all_that_a_line_says() -> None:
    line = {"sequence": 1, "action": "reserve", "nano_rho": 5}
    signed = ledger._signed_part(line | {"signature": "00"})
    assert signed == ledger._signed_part(line)
    for name in line:
        assert signed != ledger._signed_part(line | {name: "other"})


def test_another_source_or_subject_or_parameter_is_another_question() -> None:
    key = Key(b"k" * 32)
    known = ("patients", "people", "version", {"sql": 1})
    others = [("x", *known[1:]), (known[0], "x", *known[2:]), (*known[:2], "x", known[3]), (*known[:3], {"sql": 2})]
    keys = {question_key(key, *one) for one in [known, *others]}
    assert len(keys) == 5
    assert question_key(Key(b"l" * 32), *known) not in keys


def test_the_last_hundredth_can_be_spent_and_no_more(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    for number in range(10):
        budget.ask(question(f"{number}", TOTAL // 10), lambda: b"x")
    assert budget.state().left.nano_rho == 0
    with pytest.raises(Refused, match="0 is left"):
        budget.ask(question("more", 1), lambda: pytest.fail("noise was drawn"))


def test_the_delta_of_thresholds_runs_out_too(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a", 1, 600), lambda: b"x")
    with pytest.raises(Refused, match="threshold"):
        budget.ask(question("b", 1, 600), lambda: pytest.fail("noise was drawn"))


def test_what_fails_after_the_reservation_stays_spent(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)

    def fail() -> bytes:
        raise InputError("the table could not be processed")

    with pytest.raises(InputError):
        budget.ask(question("a"), fail)
    state = budget.state()
    assert (state.reserved, state.answered, state.spent) == (1, 0, Cost(TOTAL // 100))
    assert budget.ask(question("a"), lambda: b"x") == (b"x", True)  # and is paid for again
    assert budget.state().reserved == 2


# ---------------------------------------------------------------------- many processes


def _ask_many(home: Path, process: int, answered: Any) -> None:
    budget = budget_in(home)
    for number in range(40):
        try:
            _, new = budget.ask(question(f"{process}.{number}"), lambda: b"%d" % os.getpid())
        except Refused:
            continue
        if new:
            with answered.get_lock():
                answered.value += 1
    os._exit(0)


@pytest.mark.long
def test_eight_processes_with_forty_questions_get_exactly_a_hundred_answers(tmp_path: Path) -> None:
    answered = FORK.Value("i", 0)
    processes = [FORK.Process(target=_ask_many, args=(tmp_path, number, answered)) for number in range(8)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    state = budget_in(tmp_path).state()
    assert (answered.value, state.reserved, state.answered) == (100, 100, 100)
    assert state.left.nano_rho == 0
    assert not verify(budget_in(tmp_path)).problems


# ---------------------------------------------------------------------- kills


def _killed_at(home: Path, count: int, torn: bool, told: Any, key: str) -> None:
    """Ask, and die at the given call; a torn write leaves half of its bytes."""
    fail_at(count, "torn" if torn else "killed")

    def answer() -> bytes:
        told[0] = 1
        return b"noise"

    budget_in(home).ask(question(key), answer)
    told[1] = 1
    os._exit(0)


@pytest.mark.long
@pytest.mark.parametrize("torn", [False, True])
def test_a_kill_at_any_step_never_answers_what_was_not_paid(tmp_path: Path, torn: bool) -> None:
    """Reserved >= answered >= seen, drawn only after a reservation, and the ledger goes on afterwards."""
    for count in range(200):
        told = FORK.Array("i", [0, 0])
        before = budget_in(tmp_path).state()
        child = FORK.Process(target=_killed_at, args=(tmp_path, count, torn, told, f"{torn}{count}"))
        child.start()
        child.join()
        drawn, seen = told[:]
        after = budget_in(tmp_path).state()
        reserved, answered = after.reserved - before.reserved, after.answered - before.answered
        assert 1 >= reserved >= answered >= seen, count
        assert reserved >= drawn, count
        assert not verify(budget_in(tmp_path)).problems, count
        if child.exitcode == 0:
            assert (drawn, seen, answered) == (1, 1, 1)
            break
    else:
        pytest.fail("the question never ended")
    assert count > 8  # it was killed on the way often enough


# ---------------------------------------------------------------------- disk and clock


def _with_full_disk(home: Path, spare: int, told: Any) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    budget = budget_in(home)
    size = (budget.folder / ledger.FILE).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + spare, resource.RLIM_INFINITY))
    try:
        budget.ask(question("full"), lambda: told.__setitem__(0, 1) or b"x" * 2_000)
    except InputError as error:
        told[1] = 1 if "File too large" in str(error) else 2
    os._exit(0)


@pytest.mark.parametrize(("spare", "paid"), [(0, 0), (20, 0), (700, 1)])
def test_a_full_disk_answers_nothing(tmp_path: Path, spare: int, paid: int) -> None:
    """At the reservation nothing is spent; at the answer the reservation stays, and nothing is shown."""
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    told = FORK.Array("i", [0, 0])
    child = FORK.Process(target=_with_full_disk, args=(tmp_path, spare, told))
    child.start()
    child.join()
    assert (child.exitcode, told[:]) == (0, [paid, 1])
    state = budget.state()
    assert (state.reserved, state.answered) == (1 + paid, 1)
    assert not verify(budget).problems
    assert budget.ask(question("b"), lambda: b"y") == (b"y", True)


def test_a_new_ledger_lasts_and_its_place_in_the_folder_too(tmp_path: Path) -> None:
    """What is not asked of the disk is lost with the power: a line, and of a new file also its name."""
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)

    file = tmp_path / "ledger"
    ledger._write_at(file, 0, b"one\n", sync)
    assert synced == [file.stat().st_ino, tmp_path.stat().st_ino]
    ledger._write_at(file, 4, b"two\n", sync)
    assert synced[2:] == [file.stat().st_ino]
    assert file.read_bytes() == b"one\ntwo\n"


def test_a_clock_that_is_set_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")

    class Early(ledger.datetime):  # type: ignore[name-defined, misc]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(1990, 1, 1, tzinfo=tz)

    monkeypatch.setattr(ledger, "datetime", Early)
    budget.ask(question("b"), lambda: b"y")
    assert budget.ask(question("a"), lambda: b"z") == (b"x", False)
    assert budget.state().spent == Cost(TOTAL // 50)
    assert not verify(budget).problems


# ---------------------------------------------------------------------- tampering


def _lines(budget: Budget) -> list[bytes]:
    return (budget.folder / ledger.FILE).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "harm",
    [
        lambda lines: lines[:-1],
        lambda lines: lines[:1],
        lambda lines: [],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [*lines[:1], lines[1].replace(b'"nano_rho": 10000', b'"nano_rho": 1'), *lines[2:]],
        lambda lines: [*lines[:-1], lines[-1][:40]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines[:1], b"[]\n", *lines[2:]],
    ],
    ids=["last", "all but first", "all", "one", "cheaper", "torn by hand", "twice", "none"],
)
def test_altered_ledgers_are_refused(tmp_path: Path, harm: Callable[[list[bytes]], list[bytes]]) -> None:
    budget = budget_in(tmp_path)
    for key in "abc":
        budget.ask(question(key), lambda: b"x")
    (budget.folder / ledger.FILE).write_bytes(b"".join(harm(_lines(budget))))
    with pytest.raises(Refused):
        budget.ask(question("d"), lambda: pytest.fail("noise was drawn"))
    assert verify(budget).problems
    with pytest.raises(Refused):
        budget.accept("nobody can vouch for that")


def test_a_stored_answer_that_was_altered_is_not_given(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"noise")
    (file,) = (budget.folder / "answers").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(b"better noise")
    with pytest.raises(Refused, match="altered"):
        budget.ask(question("a"), lambda: pytest.fail("noise was drawn"))


def test_a_single_question_is_told_in_the_singular(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"noise")
    assert any(": 1 reservation, a rho of" in note for note in verify(budget).notes)


def test_another_allowance_must_be_entered(tmp_path: Path) -> None:
    """A dataset of the same subject, or a spec that was edited, cannot widen the budget unseen."""
    budget_in(tmp_path).ask(question("a"), lambda: b"x")
    wider = budget_in(tmp_path, Allowance("patients", Cost(2 * TOTAL, 1_000), 1e-6))
    with pytest.raises(Refused, match="the spec says otherwise"):
        wider.ask(question("b"), lambda: pytest.fail("noise was drawn"))
    assert verify(wider).problems
    wider.accept("the board agreed on 3 May")
    wider.ask(question("b"), lambda: b"x")
    found = verify(wider)
    assert not found.problems
    assert any("the board agreed" in note for note in found.notes)


@pytest.mark.parametrize("why", ["", "  ", "two\nlines", "carriage\rreturn", "x" * 501])
def test_a_reason_is_one_line(tmp_path: Path, why: str) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    with pytest.raises(InputError, match="one line of at most 500 letters"):
        budget.accept(why)
    assert budget.accept("x" * 500).action == ledger.ACCEPT


def test_two_datasets_of_one_subject_draw_on_one_budget(tmp_path: Path) -> None:
    first, second = budget_in(tmp_path), budget_in(tmp_path)
    first.ask(Question("people", "a", "q", Cost(TOTAL // 2)), lambda: b"x")
    second.ask(Question("visits", "b", "q", Cost(TOTAL // 2)), lambda: b"x")
    with pytest.raises(Refused):
        first.ask(question("c", 1), lambda: b"x")


def test_a_copied_home_does_not_go_on_unnoticed(tmp_path: Path) -> None:
    here = budget_in(tmp_path / "here")
    here.ask(question("a", TOTAL // 2), lambda: b"x")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    there = budget_in(tmp_path / "there")
    with pytest.raises(Refused, match="is a copy"):
        there.ask(question("b", TOTAL // 2), lambda: pytest.fail("noise was drawn"))
    there.accept("moved to the new machine")
    there.ask(question("b", TOTAL // 2), lambda: b"x")
    here.ask(question("c", TOTAL // 2), lambda: b"x")  # the copy cannot stop it, but the chains tell
    found = verify(here, against=there.folder / ledger.FILE)
    assert any("one home is a copy of the other" in one for one in found.problems)
    assert any("together both homes spent" in one for one in found.problems)


def test_an_older_copy_and_a_home_of_its_own_are_no_problem(tmp_path: Path) -> None:
    here = budget_in(tmp_path / "here")
    here.ask(question("a", TOTAL // 4), lambda: b"x")
    shutil.copytree(here.folder, tmp_path / "backup")
    here.ask(question("b", TOTAL // 4), lambda: b"x")
    assert not verify(here, against=tmp_path / "backup" / ledger.FILE).problems
    elsewhere = budget_in(tmp_path / "elsewhere")
    elsewhere.ask(question("a", TOTAL // 2), lambda: b"x")
    assert not verify(here, against=elsewhere.folder / ledger.FILE).problems
    elsewhere.ask(question("b", 1), lambda: b"x")
    (spent,) = verify(here, against=elsewhere.folder / ledger.FILE).problems
    assert spent.startswith("together both homes spent")


def test_a_head_told_before_shows_a_ledger_that_was_replaced(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    head = budget.state().to_json()["head"]
    budget.ask(question("b"), lambda: b"x")
    assert not verify(budget, head=head).problems
    shutil.rmtree(budget.folder)
    budget.ask(question("c"), lambda: b"x")
    assert verify(budget, head=head).problems
    with pytest.raises(InputError, match="--head"):
        verify(budget, head="latest")


def test_signed_lines_cannot_be_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = signing.make_key(tmp_path / "key.pem")
    monkeypatch.setenv(signing.FILE_VARIABLE, str(tmp_path / "key.pem"))
    budget = budget_in(tmp_path / "home")
    budget.ask(question("a"), lambda: b"x")
    assert not verify(budget, key.public_key()).problems
    monkeypatch.delenv(signing.FILE_VARIABLE)
    with pytest.raises(InputError, match="is signed"):
        budget.ask(question("b"), lambda: pytest.fail("noise was drawn"))
    # Somebody who can write the folder writes a cheaper chain that fits together.
    folder, lines = budget.folder, ledger.read(budget.folder)
    (folder / ledger.FILE).unlink()
    written: list[ledger.Line] = []
    for line in lines:
        entries = {**line.entries, "nano_rho": 1} if line.action == ledger.RESERVE else line.entries
        written.append(ledger.append(folder, line.action, entries, written))
    assert verify(budget, key.public_key()).problems


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    budget = budget_in(tmp_path)
    budget.ask(question("a"), lambda: b"x")
    for path in [budget.folder, *budget.folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_allowance_of_a_spec() -> None:
    asked = spec_of("row", rho=None, epsilon=1.0, delta=1e-6, thresholds=0).differential_privacy
    assert asked is not None
    assert Allowance.of(asked).total == Cost(24_355_970, 0)
    assert json.loads(json.dumps(Allowance.of(asked).to_json()))["subject"] == "patients"
