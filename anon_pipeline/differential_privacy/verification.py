"""Checks that a budget's ledger was not altered, spent no more than agreed, and is the only one of its subject."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anon_pipeline.differential_privacy import accounting, ledger
from anon_pipeline.differential_privacy.accounting import Cost
from anon_pipeline.differential_privacy.budget import Budget, spent_in
from anon_pipeline.differential_privacy.ledger import ACCEPT, ALIAS, ANSWER, OPEN, RESERVE, Line
from anon_pipeline.errors import InputError, Refused, number_of


@dataclass
class Verified:
    """The result of a check: problems, one sentence each, and further notes for an auditor."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"holds": not self.problems, "problems": self.problems, "notes": self.notes}


def verify(
    budget: Budget, public_key: Ed25519PublicKey | None = None, head: str | None = None, against: Path | None = None
) -> Verified:
    """Check a ledger again from its file.

    Parameters
    ----------
    head : `sequence:hash`, as it was passed on or published before; the ledger must still have that line
    against : the ledger of the same subject in another home
    """
    found = Verified()
    try:
        lines = ledger.read(budget.folder)
    except Refused as error:
        found.problems += error.failed
        return found
    found.problems += ledger.problems(budget.folder, lines, public_key)
    found.problems += _sums(budget, lines)
    found.problems += _answers(lines)
    if head is not None:
        found.problems += _head_stands(lines, head)
    if against is not None:
        _compare(budget, lines, _other(against), found)
    spent = spent_in(lines)
    reserved = sum(line.action == RESERVE for line in lines)
    found.notes.append(
        f"{number_of(len(lines), 'line', 'lines')}: {number_of(reserved, 'reservation', 'reservations')}, a rho of "
        f"{spent.nano_rho / accounting.NANO:.6f} is spent"
    )
    for line in lines:
        if line.action == ACCEPT:
            found.notes.append(f"line {line.sequence} vouches for a change: {line.entries.get('why')}")
    if public_key is None and any(line.signature for line in lines):
        found.notes.append("signatures were not checked; name the steward's --public-key")
    return found


def _sums(budget: Budget, lines: list[Line]) -> list[str]:
    """Problems where more was reserved than the allowance of that time, or the spec differs from the last allowance."""
    found, allowed, spent = [], Cost(0, 0), Cost(0, 0)
    for line in lines:
        if line.action in (OPEN, ACCEPT):
            allowed = Cost(int(line.entries["nano_rho"]), int(line.entries["atto_delta"]))
        if line.action == RESERVE:
            cost = Cost(int(line.entries["nano_rho"]), int(line.entries["atto_delta"]))
            if cost.nano_rho < 1 or cost.atto_delta < 0:
                found.append(f"budget line {line.sequence} reserves nothing")
            spent += cost
            if not spent.within(allowed):
                found.append(f"budget line {line.sequence} reserves more than was left")
    if lines and allowed != budget.allowance.total:
        found.append("the spec states another budget than the ledger; enter the change with `budget accept`")
    return found


def _answers(lines: list[Line]) -> list[str]:
    """Problems of answers that have no reservation of their own before them, and of keys of no answer."""
    found, pending, given = [], set(), set()
    for line in lines:
        if line.action == RESERVE:
            pending.add(line.sequence)
        elif line.action == ANSWER:
            if line.entries.get("reserved") not in pending:
                found.append(f"budget line {line.sequence} answers what was never reserved")
            pending.discard(line.entries.get("reserved"))
            given.add(line.entries.get("sha256"))
        elif line.action == ALIAS and line.entries.get("sha256") not in given:
            found.append(f"budget line {line.sequence} names an answer that was never given")
    return found


def _head_stands(lines: list[Line], head: str) -> list[str]:
    parsed = re.fullmatch(r"(\d+):([0-9a-f]{64})", head)
    if parsed is None:
        raise InputError("--head: is the number of a line and its hash, as `anon-pipeline budget show` prints them")
    number = int(parsed[1])
    if number == 0 or (number <= len(lines) and lines[number - 1].hash == parsed[2]):
        return []
    return [f"line {number} is not the one that was told before: the ledger was replaced or cut off"]


def _other(file: Path) -> list[Line]:
    if not file.is_file():
        raise InputError(f"{file}: there is no such ledger; name the ledger.jsonl of another home")
    return ledger.read(file.parent, file.name)


def _compare(budget: Budget, ours: list[Line], theirs: list[Line], found: Verified) -> None:
    subjects = {line.entries.get("subject") for line in theirs if line.action in (OPEN, ACCEPT)}
    if theirs and budget.allowance.subject not in subjects:
        raise InputError("--against: is the ledger of another subject")
    common = 0
    while common < min(len(ours), len(theirs)) and ours[common].hash == theirs[common].hash:
        common += 1
    together = spent_in(ours) + spent_in(theirs[common:])
    if common and len(theirs) > common and len(ours) > common:
        found.problems.append(
            f"both ledgers have the first {common} lines and then differ: one home is a copy of the other, and both "
            "went on asking"
        )
    if not together.within(budget.allowance.total):
        found.problems.append(
            f"together both homes spent a rho of {together.nano_rho / accounting.NANO:g}, and the subject has "
            f"{budget.allowance.total.nano_rho / accounting.NANO:g}"
        )
    found.notes.append(
        f"both homes together spent a rho of {together.nano_rho / accounting.NANO:.6f}; {common} lines are common"
    )
