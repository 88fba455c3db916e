"""The budget of a subject: reserve, then draw noise, then answer, and never take a reservation back.

A subject is a group of people, not a file: every dataset that names it draws on one budget, so a corrected file or a
second table about the same people is no fresh start. A reservation is on the disk before noise is drawn. It
stays spent if the question then fails, because the failure may depend on the data. An answer that was given is stored,
and the same question gets it again for nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon_pipeline.differential_privacy import accounting, ledger
from anon_pipeline.differential_privacy.accounting import Cost
from anon_pipeline.differential_privacy.ledger import ACCEPT, ALIAS, ANSWER, OPEN, RESERVE, Line
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, remove_leftovers, write_file
from anon_pipeline.keys import Key
from anon_pipeline.spec import DifferentialPrivacy

FOLDER, ANSWERS = "budgets", "answers"


@dataclass(frozen=True)
class Allowance:
    """The privacy loss that a subject may have in all, fixed before anything is asked.

    Attributes
    ----------
    total : rho, and the part of delta that thresholds may use
    delta : the delta at which rho is converted to an epsilon; with the thresholds' part it is the delta that the spec
        states
    """

    subject: str
    total: Cost
    delta: float

    @classmethod
    def of(cls, asked: DifferentialPrivacy) -> Allowance:
        """The budget that a spec states."""
        stated, delta = asked.budget, asked.conversion_delta
        nano = (
            accounting.nano_of(stated.rho)
            if stated.rho is not None
            else accounting.nano_for(float(stated.epsilon or 0), delta)
        )
        return cls(stated.subject, Cost(nano, accounting.atto_of(stated.thresholds)), delta)

    def to_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "nano_rho": self.total.nano_rho,
            "atto_delta": self.total.atto_delta,
            "delta": self.delta,
        }


@dataclass(frozen=True)
class Question:
    """A question and its cost.

    Attributes
    ----------
    key : 64 hexadecimal digits of subject, source version and all parameters; see `question_key`
    what : a sentence or a query, for people who read the ledger; it holds nobody's values
    former : the keys under which former versions of the program kept the answer of the same question
    """

    dataset: str
    key: str
    what: str
    cost: Cost
    former: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: str, keys: Sequence[str], what: str, cost: Cost) -> Question:
        """A question with its key, and those that follow it."""
        return cls(dataset, keys[0], what, cost, tuple(keys[1:]))

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys under which its answer may be kept."""
        return self.key, *self.former


@dataclass(frozen=True)
class State:
    """The state of a ledger: reservations, those of them that were answered, and the rest of the budget."""

    allowance: Allowance
    spent: Cost
    reserved: int
    answered: int
    head: str
    lines: tuple[Line, ...]

    @property
    def left(self) -> Cost:
        return self.allowance.total - self.spent

    def to_json(self) -> dict[str, Any]:
        total, spent, left, delta = self.allowance.total, self.spent, self.left, self.allowance.delta
        return {
            "subject": self.allowance.subject,
            "rho": {name: cost.nano_rho / accounting.NANO for name, cost in _named(total, spent, left)},
            "epsilon": {
                "total": accounting.epsilon_of(total.nano_rho, delta),
                "spent": accounting.epsilon_of(spent.nano_rho, delta),
            },
            "delta": delta,
            "threshold_delta": {name: cost.atto_delta / accounting.ATTO for name, cost in _named(total, spent, left)},
            "reserved": self.reserved,
            "answered": self.answered,
            "head": f"{len(self.lines)}:{self.head}",
        }


def question_keys(key: Key, subject: str, dataset: str, versions: Sequence[str], parameters: Any) -> list[str]:
    """The `question_key` for each of the versions that a source has, in their order."""
    return [question_key(key, subject, dataset, version, parameters) for version in versions]


def question_key(key: Key, subject: str, dataset: str, source_version: str, parameters: Any) -> str:
    """A keyed hash of all that an answer depends on: people, dataset, content of the source, parameters.

    The ledger may be shown to others, and a hash without a key would let them confirm a guess at the source.
    """
    text = json.dumps([subject, dataset, source_version, parameters], sort_keys=True)
    return key.derived("question", hashlib.sha256(text.encode()).hexdigest()).hex()


class Budget:
    """The budget of one subject in one home.

    Parameters
    ----------
    allowance : the budget that the spec of the asking dataset states; the ledger must have been opened with the same
    """

    def __init__(self, home: Home, allowance: Allowance) -> None:
        self._home, self.allowance = home, allowance
        self.folder = home.private / FOLDER / allowance.subject

    def ask(self, question: Question, answer: Callable[[], bytes]) -> tuple[bytes, bool]:
        """The stored answer, or a new one whose cost is reserved first; and whether it is new.

        `answer` reads people and draws noise. It is called after the reservation is on the disk. The answer is stored
        before it is returned.

        Raises
        ------
        Refused
            Where the budget does not suffice, or the ledger was altered.
        """
        known = self.stored(*question.keys)
        if known is not None:
            self._keep_under(question, known)
            return known, False
        with self._asking(question):
            known = self.stored(*question.keys)  # another process may have asked meanwhile
            if known is not None:
                return known, False
            reservation = self.reserve(question)
            content = answer()
            self.store(reservation, content)
        return content, True

    def stored(self, *keys: str) -> bytes | None:
        """The stored answer of a question that was answered before, under any of its keys: the last one given."""
        with self._locked():
            for line in reversed(self._checked()):
                if line.action in (ANSWER, ALIAS) and line.entries["key"] in keys:
                    file = self._answer_file(line.entries["sha256"])
                    content = file.read_bytes() if file.is_file() else b""
                    if hashlib.sha256(content).hexdigest() != line.entries["sha256"]:
                        raise Refused([f"{file}: the stored answer is gone or was altered; restore it from a copy"])
                    return content
        return None

    def _keep_under(self, question: Question, content: bytes) -> None:
        """Enter an answer that was found under a former key under the question's own.

        A former key can depend on what the question does not, such as a remark, and cannot be computed when that has
        changed. Nothing is lost now where no line can be added, so the answer is given all the same.
        """
        with self._locked(), suppress(InputError):
            lines = self._checked()
            if any(line.action in (ANSWER, ALIAS) and line.entries["key"] == question.key for line in lines):
                return
            entries = {"key": question.key, "sha256": hashlib.sha256(content).hexdigest()}
            ledger.append(self.folder, ALIAS, entries, lines)

    def has_answered(self, content: bytes) -> bool:
        """Whether the ledger is intact and has exactly this answer."""
        digest = hashlib.sha256(content).hexdigest()
        with self._locked():
            return any(line.action == ANSWER and line.entries["sha256"] == digest for line in self._checked())

    def reserve(self, question: Question) -> Line:
        """Enter the cost of a question in the ledger; it is spent when this function returns.

        Raises
        ------
        Refused
            Where more would be spent than the subject has.
        """
        if question.cost.nano_rho < 1 or question.cost.atto_delta < 0:
            raise ValueError("a question costs something")
        with self._locked():
            state = _state(self.allowance, self._checked(opening=True))
            if not question.cost.within(state.left):
                raise Refused([self._exhausted(question.cost, state)])
            entries = {
                "dataset": question.dataset,
                "key": question.key,
                "what": question.what,
                "nano_rho": question.cost.nano_rho,
                "atto_delta": question.cost.atto_delta,
                "place": ledger.place_of(self.folder),
            }
            return ledger.append(self.folder, RESERVE, entries, list(state.lines))

    def store(self, reservation: Line, content: bytes) -> None:
        """Store an answer, and enter in the ledger that the reservation was answered."""
        digest = hashlib.sha256(content).hexdigest()
        with self._locked():
            lines = self._checked()
            if not any(line.hash == reservation.hash and line.action == RESERVE for line in lines):
                raise Refused(["an answer has no reservation; nothing is shown"])
            file = self._answer_file(digest)
            file.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                remove_leftovers(file.parent)
                write_file(file, content)
            except OSError as error:
                raise InputError(f"{file.parent}: cannot be written ({error.strerror}); nothing is shown") from error
            entries = {"reserved": reservation.sequence, "key": reservation.entries["key"], "sha256": digest}
            ledger.append(self.folder, ANSWER, entries, lines)

    def state(self) -> State:
        """The state of the budget, for which nothing is written; refuses a ledger that was altered."""
        with self._home.reading(self._lock):
            return _state(self.allowance, self._checked())

    def accept(self, why: str) -> Line:
        """Enter in the ledger that a person vouches for a changed allowance or a ledger that was moved or restored.

        Raises
        ------
        Refused
            Where lines are missing or altered; nobody can vouch for that.
        """
        if not why.strip() or not re.fullmatch(r"[^\r\n]{1,500}", why):
            raise InputError("--why: is one line of at most 500 letters")
        with self._locked():
            lines = ledger.read(self.folder)
            if found := ledger.altered(self.folder, lines):
                raise Refused(found)
            if not lines:
                raise InputError(f"{self.allowance.subject}: nothing was asked yet; there is nothing to accept")
            entries = {**self.allowance.to_json(), "why": why, "place": ledger.place_of(self.folder)}
            return ledger.append(self.folder, ACCEPT, entries, lines)

    def _checked(self, opening: bool = False) -> list[Line]:
        """All lines, checked to be unaltered and to agree with the spec; the ledger is opened where there are none."""
        lines = ledger.read(self.folder)
        if found := ledger.problems(self.folder, lines):
            raise Refused([f"{problem} (anon-pipeline budget verify)" for problem in found])
        if not lines:
            if not opening:
                return lines
            entries = {**self.allowance.to_json(), "place": ledger.place_of(self.folder)}
            return [ledger.append(self.folder, OPEN, entries, lines)]
        if (agreed := _agreed(lines)) != self.allowance.to_json():
            raise Refused(
                [
                    f"differential_privacy.budget: the subject {self.allowance.subject} has a rho of "
                    f"{agreed['nano_rho'] / accounting.NANO:g} (delta {agreed['delta']:g}, thresholds "
                    f"{agreed['atto_delta'] / accounting.ATTO:g}), and the spec says otherwise; write what was agreed, "
                    "or enter the change with `anon-pipeline budget accept SPEC --why ...`"
                ]
            )
        return lines

    def _exhausted(self, cost: Cost, state: State) -> str:
        what, left = cost.nano_rho / accounting.NANO, state.left.nano_rho / accounting.NANO
        if cost.nano_rho <= state.left.nano_rho:
            part, rest = cost.atto_delta / accounting.ATTO, max(0, state.left.atto_delta) / accounting.ATTO
            return (
                f"budget of {self.allowance.subject}: the threshold takes {part:g} of delta, and {rest:g} is left "
                "(differential_privacy.budget.thresholds)"
            )
        epsilon = accounting.epsilon_of(max(0, state.left.nano_rho), self.allowance.delta)
        return (
            f"budget of {self.allowance.subject}: the question takes a rho of {what:g}, and {max(0.0, left):g} is left "
            f"(an epsilon of {epsilon:.4g} at delta {self.allowance.delta:g})"
        )

    def _answer_file(self, digest: str) -> Path:
        return self.folder / ANSWERS / digest

    def _locked(self) -> AbstractContextManager[None]:
        self._home.private_folder(FOLDER, self.allowance.subject)
        return self._home.lock(self._lock)

    def _asking(self, question: Question) -> AbstractContextManager[None]:
        """Let nobody else ask the same question meanwhile; of other questions, one in sixteen waits as well."""
        digit = hashlib.sha256(question.key.encode()).hexdigest()[0]
        return self._home.lock(f"asking-{self.allowance.subject}-{digit}")

    @property
    def _lock(self) -> str:
        return f"budget-{self.allowance.subject}"


def _agreed(lines: list[Line]) -> dict[str, Any]:
    """The allowance that was entered last."""
    last = next(line.entries for line in reversed(lines) if line.action in (OPEN, ACCEPT))
    return {name: last[name] for name in ("subject", "nano_rho", "atto_delta", "delta")}


def spent_in(lines: Iterable[Line]) -> Cost:
    """The total cost of the reservations among these lines, answered or not."""
    spent = Cost(0, 0)
    for line in lines:
        if line.action == RESERVE:
            spent += Cost(int(line.entries["nano_rho"]), int(line.entries["atto_delta"]))
    return spent


def _state(allowance: Allowance, lines: list[Line]) -> State:
    spent = spent_in(lines)
    answered = len({line.entries["reserved"] for line in lines if line.action == ANSWER})
    reserved = sum(line.action == RESERVE for line in lines)
    return State(allowance, spent, reserved, answered, lines[-1].hash if lines else ledger.FIRST, tuple(lines))


def _named(total: Cost, spent: Cost, left: Cost) -> tuple[tuple[str, Cost], ...]:
    return ("total", total), ("spent", spent), ("left", left)
