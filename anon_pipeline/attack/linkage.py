"""Record linkage: find a known person's record in a release, by some or all quasi-identifiers or by the rows' order.

Success is to pick the person's own record, or a record of a person who is equal in every released column. So success is
also defined for control people, who have no record of their own. The attacker picks at random among the records of the
groups that fit best (`candidates`). The probability that this pick succeeds is known for each person, and these
probabilities are added up. If groups do not overlap, the result is the marketer risk J / N of K. El Emam (Guide to the
De-Identification of Personal Health Information, 2013), except for people with a double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack.candidates import Candidates, find_candidates
from anon_pipeline.attack.rates import Finding, Known, Rate, Rates, clopper_pearson, finding, known, measured, quantiles
from anon_pipeline.attack.released import combined
from anon_pipeline.attack.targets import Attacked, People, counts, with_wrong_cells

#: Shares of cells that an attacker has wrong.
WRONG = (0.05, 0.1)

#: Most people from whom the most identifying columns are found.
SEARCHED = 20_000

#: Random sets of columns per size, beside the most identifying one.
RANDOM_SETS = 2

SUCCESS = "picks the right record"


def success(attacked: Attacked, people: People, candidates: Candidates) -> FloatArray:
    """Each person's probability of being linked by a random pick from their candidates, shape (n,).

    If it is unknown which person a record belongs to, the person's own record is taken to be among the candidates if
    some candidate has the person's values in all columns that are released as they are.
    """
    number = len(candidates)
    unit = candidates.unit[attacked.release.group]
    units = len(candidates.sizes)
    if attacked.identity is not None:
        numbers = int(max(attacked.identity.max(), people.identity.max())) + 1
        rows = counts(attacked.identity, unit, (numbers, units))
        hits = candidates.hits(rows[people.identity[:number]])
    else:
        numbers = int(max(attacked.same_kept.max(), people.same_kept.max())) + 1
        rows = counts(attacked.same_kept, unit, (numbers, units))
        hits = np.minimum(candidates.hits(rows[people.same_kept[:number]]), 1.0)
    return hits / np.maximum(candidates.records(), 1)


def blind(attacked: Attacked, people: People) -> Rate:
    """Success of a record drawn from the whole release."""
    if attacked.identity is not None:
        of_rows, of_people = attacked.identity, people.identity
    else:
        of_rows, of_people = attacked.same_kept, people.same_kept
    rows = np.bincount(of_rows[of_rows >= 0], minlength=int(of_people.max()) + 1)[of_people]
    hits = rows if attacked.identity is not None else np.minimum(rows, 1)
    return known(float(hits.mean()) / attacked.release.rows, len(people))


def linkage(attacked: Attacked, targets: int) -> list[Finding]:
    """One finding per amount of knowledge: two, three, half of and all quasi-identifiers; all with wrong cells.

    The detail `by_knowledge` of the finding with all quasi-identifiers lists every size, with the most identifying
    columns and the mean over random ones.
    """
    names = attacked.knowledge.quasi_identifiers
    members, control = _drawn(attacked, targets)
    order = most_identifying(attacked.members.first(SEARCHED).codes)
    sizes = range(min(2, len(names)), len(names) + 1)
    reported = {min(2, len(names)), min(3, len(names)), (len(names) + 1) // 2, len(names)}
    generator = np.random.default_rng([attacked.seed, 2])
    findings, by_knowledge = [], []
    few = [None if people is None else people.first(max(targets // 4, 1)) for people in (members, control)]
    for size in sizes:
        best = sorted(order[:size])
        rates = [_attempt(attacked, people, best) for people in ((members, control) if size in reported else few)]
        sets = [sorted(generator.choice(len(names), size, replace=False).tolist()) for _ in range(RANDOM_SETS)]
        drawn = (
            [[_attempt(attacked, people, columns) for columns in sets] for people in few] if size < len(names) else []
        )
        by_knowledge.append(
            {
                "known": size,
                "attack": rates[0][0].rate if rates[0] else None,
                "control": rates[1][0].rate if rates[1] else None,
                "random_columns_attack": _mean(drawn[0]) if drawn else None,
                "random_columns_control": _mean(drawn[1]) if drawn else None,
            }
        )
        if size in reported:
            all_of_them = size == len(names)
            findings.append(_finding(attacked, members, best, 0.0, rates, all_of_them))
    findings[-1] = replace(findings[-1], details={**findings[-1].details, "by_knowledge": by_knowledge})
    for share in WRONG:
        every = list(range(len(names)))
        rates = [_attempt(attacked, people, every, share) for people in (members, control)]
        findings.append(_finding(attacked, members, every, share, rates, False))
    return findings


def most_identifying(codes: IntArray) -> list[int]:
    """The columns in greedy order: each distinguishes the most people together with those before it."""
    order: list[int] = []
    key = np.zeros(len(codes), dtype=np.int64)
    while len(order) < codes.shape[1]:
        rest = [column for column in range(codes.shape[1]) if column not in order]
        keys = {column: combined([key, codes[:, column]])[0] for column in rest}
        best = max(rest, key=lambda column: (int(keys[column].max(initial=0)), -column))
        order.append(best)
        key = keys[best]
    return order


def row_order(attacked: Attacked) -> list[Finding]:
    """Whether the place of a row in the release is the place of its person in the source.

    The attacker knows the source's order, and who was left out. There are two findings: for the whole table, and within
    groups. Within groups the attacker knows who is in a group, and only guesses which row is whose. Rows in random
    order stand for the control, since control people have no place. An anonymizer that keeps an order keeps it for many
    rows, while chance keeps one or two rows in their places; so all rows are tried, and intervals are 99.9 % here.
    Equal people are tried once: an order by any hash or value keeps them side by side, in the source as in the release,
    and does not show which row is whose. None where it is unknown which people the rows belong to.
    """
    if attacked.origin is None or attacked.identity is None:
        return []
    rows = np.flatnonzero(attacked.origin >= 0)
    if len(rows) < 2:
        return []
    origin, group, same_kept = attacked.origin[rows], attacked.release.group[rows], attacked.same_kept[rows]
    drawn = np.random.default_rng([attacked.seed, 8]).permutation(len(rows))
    identity = attacked.identity[rows]
    everybody = np.zeros(len(rows), dtype=np.int64)
    findings = []
    for name, taken, block in (
        ("row order", "the rows to be in the source's order", everybody),
        ("row order within groups", "the rows of each group to be in the source's order", group),
    ):
        row = np.sort(drawn[combined([block[drawn], identity[drawn]])[1]])  # a single row of equal people
        of_row = block[row]
        by_place, by_row = np.lexsort((origin[row], of_row)), np.lexsort((row, of_row))
        right = np.empty(len(row), dtype=bool)
        right[by_row] = by_place == by_row
        chance = 1 / np.bincount(of_row)[of_row]
        # Where all rows of a group are equal, it means nothing to know which row is whose.
        alike = combined([of_row, same_kept[row]])[0] if block is group else np.arange(len(row))
        distinguishable = np.bincount(alike)[alike] < np.bincount(of_row)[of_row]
        details: dict[str, Any] = {"distinct_people": len(row)}
        if block is everybody:
            details |= {
                "neighbours_in_source_order": float((origin[1:] > origin[:-1]).mean()),
                "expected_links": float(right.sum()),
            }
        findings.append(_ordered(name, taken, right[distinguishable], chance[distinguishable], details))
    return findings


def _ordered(
    name: str, taken: str, right: npt.NDArray[np.bool_], chance: FloatArray, details: dict[str, Any]
) -> Finding:
    shuffled = known(float(chance.mean()) if len(chance) else 0.0, len(chance))
    return finding(
        name,
        "linkability",
        Known(()),
        f"who takes {taken} picks the right record",
        Rates(clopper_pearson(int(right.sum()), len(right), 0.999), shuffled, shuffled, others="rows in random order"),
        details,
    )


Attempt = tuple[Rate, Candidates, FloatArray]


def _drawn(attacked: Attacked, targets: int) -> tuple[People, People | None]:
    control = attacked.control
    return attacked.members.first(targets), None if control is None else control.first(targets)


def _attempt(attacked: Attacked, people: People | None, columns: Sequence[int], wrong: float = 0.0) -> Attempt | None:
    if people is None:
        return None
    codes = with_wrong_cells(people, attacked.release.domains, wrong, attacked.seed) if wrong else people.codes
    candidates = find_candidates(attacked.release, codes, columns, wrong)
    probability = success(attacked, people, candidates)
    return measured(probability), candidates, probability


def _mean(attempts: Sequence[Attempt | None]) -> float | None:
    rates = [attempt[0].rate for attempt in attempts if attempt is not None]
    return float(np.mean(rates)) if rates else None


def _finding(
    attacked: Attacked,
    members: People,
    columns: Sequence[int],
    wrong: float,
    attempts: Sequence[Attempt | None],
    complete: bool,
) -> Finding:
    names = attacked.knowledge.quasi_identifiers
    attack, control = attempts
    assert attack is not None  # noqa: S101 members there always are
    rate, candidates, probability = attack
    rows = attacked.release.rows
    drawn = np.random.default_rng([attacked.seed, 4, len(columns)]).random(len(probability)) < probability
    details: dict[str, Any] = {
        "expected_links": rate.rate * rows,
        "drawn_links_of_targets": int(drawn.sum()),
        "expected_links_of_targets": float(probability.sum()),
        "candidate_records": quantiles(candidates.records()),
        "alone": float((candidates.records() == 1).mean()),
    }
    if complete:
        details |= _complete(attacked, members, candidates)
    size = "all" if len(columns) == len(names) else str(len(columns))
    title = f"linkage, {size} quasi-identifiers" + (f", {wrong:.0%} wrong" if wrong else "")
    return finding(
        title,
        "linkability",
        Known(tuple(names[column] for column in columns), wrong),
        SUCCESS,
        Rates(rate, None if control is None else control[0], blind(attacked, members.first(len(candidates)))),
        details,
    )


def _complete(attacked: Attacked, members: People, candidates: Candidates) -> dict[str, Any]:
    """The details that a finding has only where every quasi-identifier is known."""
    release = attacked.release
    details: dict[str, Any] = {"marketer_risk": len(release.sizes) / release.rows, "groups": len(release.sizes)}
    if attacked.origin is not None:
        own = own_links(attacked, members, candidates)
        linked = ~np.isnan(own)
        if linked.any():
            details |= {"own_record": float(own[linked].mean()), "own_group_is_best": float((own[linked] > 0).mean())}
    fitting = find_candidates(release, members.codes, rule="fitting")
    details["candidate_records_that_fit"] = quantiles(fitting.records())
    details["success_among_all_that_fit"] = float(success(attacked, members, fitting).mean())
    return details


def own_links(attacked: Attacked, people: People, candidates: Candidates) -> FloatArray:
    """The probability of picking exactly the person's own record, NaN for members who are not released, shape (n,)."""
    assert attacked.origin is not None  # noqa: S101 the callers ask
    place = np.full(max(int(attacked.origin.max()), int(people.row.max())) + 1, -1)
    place[attacked.origin[attacked.origin >= 0]] = np.flatnonzero(attacked.origin >= 0)
    row = place[people.row[: len(candidates)]]
    unit = candidates.unit[attacked.release.group[row]]
    own = np.asarray(candidates.best[np.arange(len(candidates)), unit]).ravel()
    return np.where(row < 0, np.nan, own / candidates.records())
