"""Record linkage by kept columns that tell quasi-identifiers: age in months beside grouped ages, a postcode in a code.

k-anonymity counts quasi-identifiers alone. A kept column that is worked out from one of them, under any name and in any
form, shows within a class which record is whose. The attacker knows how the columns hang together from people whom they
know entirely, and sees every kept value in the release. Among the records of the groups that fit a person best they
pick the one whose kept values are likeliest beside the person's quasi-identifiers.

Half of the attacked members are these known people, for the other half, and the other way round; control people are
attacked with what the first half shows. So nothing about control people has a part in figures about members.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeRegressor

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack.boxes import Domain
from anon_pipeline.attack.candidates import Candidates, find_candidates
from anon_pipeline.attack.linkage import SUCCESS, blind
from anon_pipeline.attack.rates import BY_KEPT_COLUMNS, NAMED_FROM, Finding, Known, Rates, finding, measured
from anon_pipeline.attack.released import combined
from anon_pipeline.attack.targets import Attacked, People

#: Most people from whom is learned how columns hang together, and the number of trees that learn it.
LEARNED, TREES = 2_000, 10

#: Most people from whom is learned what a column tells by itself.
ALONE = 500

#: Most categories of a quasi-identifier that are learned one by one; of all of them the order is learned.
CATEGORIES = 8

#: Numbers and words within a text, and letters at its beginning, that are looked at.
PARTS, LETTERS = 4, 12

#: Share of a quasi-identifier's variance that kept columns must tell of people who are not learned from.
EXPLAINED = 0.02

#: Most pairs of a person and a record that are compared; beyond that fewer people are attacked.
PAIRS = 10_000_000

#: Scores nearer than this are equal, so that the same kept values are equally likely however they are added up.
NEAR = 1e-9


def linkage_by_kept_columns(attacked: Attacked, targets: int) -> list[Finding]:
    """The finding of this attack; none where no column is kept or too few people are known."""
    members = attacked.members.first(targets)
    half = len(members) // 2
    if not attacked.kept or half < 2:
        return []
    shown = _features(attacked, attacked.kept_codes)
    first, second = members.first(half), _after(members, half)
    of_first, of_second = (_learn(attacked, known, shown) for known in (first, second))
    tried = [_success(attacked, first, of_second), _success(attacked, second, of_first)]
    control = None if attacked.control is None else attacked.control.first(targets)
    others = None if control is None else measured(_success(attacked, control, of_first))
    success = np.concatenate(tried)
    details: dict[str, Any] = {
        "expected_links": float(success.mean()) * attacked.release.rows,
        "explained": {
            domain.name: float(of_first.share[place] + of_second.share[place]) / 2
            for place, domain in enumerate(attacked.release.domains)
        },
        "by_column": _by_column(attacked, first, of_first),
    }
    names = (*attacked.knowledge.quasi_identifiers,)
    rates = Rates(measured(success), others, blind(attacked, members.first(len(success))))
    how = f"who also knows how the kept columns go with these {SUCCESS}"
    return [finding(BY_KEPT_COLUMNS, "linkability", Known(names), how, rates, details)]


@dataclass(frozen=True, eq=False)
class _Features:
    """The kept columns of some rows as numbers, shape (n, f), and the column that each of these is made of, (f,)."""

    values: FloatArray
    column: IntArray


@dataclass(frozen=True, eq=False)
class _Reading:
    """What kept columns tell of one quasi-identifier.

    Attributes
    ----------
    place : of the quasi-identifier
    expected : its numbers, as every released row's kept columns let expect them, shape (N, outputs)
    left : the variance of each number that is left, shape (outputs,)
    """

    place: int
    expected: FloatArray
    left: FloatArray


@dataclass(frozen=True, eq=False)
class _Learned:
    """The quasi-identifiers that kept columns tell, and the share of each one's variance, shape (p,).

    It is the share among people who are not learned from.
    """

    readings: tuple[_Reading, ...]
    share: FloatArray


def _learn(attacked: Attacked, known: People, shown: _Features) -> _Learned:
    """Learn from people who are known entirely what kept columns tell of each quasi-identifier."""
    known = known.first(LEARNED)
    features = _features(attacked, known.kept).values
    _, first, row = np.unique(attacked.same_kept, return_index=True, return_inverse=True)
    readings, share = [], np.zeros(len(attacked.release.domains))
    for place, domain in enumerate(attacked.release.domains):
        truth = _truth(domain, known.codes[:, place])
        if not truth.var(axis=0).any():
            continue
        forest, guessed = _forest(features, truth, attacked.seed)
        of_rows = _told(forest, shown.values[first], truth.shape[1])[row]
        _forget(of_rows, attacked.same_kept, guessed, known.same_kept)
        mean, slope, true_mean, left = _regressed(guessed, truth)
        share[place] = _share(left, truth)
        if share[place] >= EXPLAINED:
            readings.append(_Reading(place, true_mean + slope * (of_rows - mean), left))
    return _Learned(tuple(readings), share)


def _forest(features: FloatArray, truth: FloatArray, seed: int) -> tuple[list[DecisionTreeRegressor], FloatArray]:
    """Trees of people drawn with replacement, and what those that have not seen a person say of each, (n, outputs).

    Not scikit-learn's forest: an audit of 150 people took more than twice as long with it, for its checks.
    """
    random, seen = np.random.default_rng(seed % 2**32), _of_trees(features)
    trees, told, times = [], np.zeros(truth.shape), np.zeros((len(truth), 1))
    for _ in range(TREES):
        drawn = random.integers(len(truth), size=len(truth))
        tree = DecisionTreeRegressor(random_state=int(random.integers(2**31)))
        trees.append(tree.fit(seen[drawn], truth[drawn], check_input=False))
        unseen = np.bincount(drawn, minlength=len(truth)) == 0
        if unseen.any():
            told[unseen] += _told([tree], seen[unseen], truth.shape[1])
            times[unseen] += 1
    return trees, np.where(times > 0, told / np.maximum(times, 1), truth.mean(axis=0))


def _told(trees: Sequence[DecisionTreeRegressor], features: npt.NDArray[np.floating], outputs: int) -> FloatArray:
    """The mean of what trees say, shape (n, outputs)."""
    seen = _of_trees(features)
    said = [np.asarray(tree.predict(seen, check_input=False)).reshape(-1, outputs) for tree in trees]
    mean: FloatArray = np.mean(said, axis=0)
    return mean


def _of_trees(features: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """The form in which trees take features without a check."""
    return np.ascontiguousarray(features, dtype=np.float32)


def _share(left: FloatArray, truth: FloatArray) -> float:
    """The share of the variance that is not left."""
    return max(0.0, 1 - float(left.sum() / truth.var(axis=0).sum()))


def _forget(of_rows: FloatArray, row: IntArray, guessed: FloatArray, known: IntArray) -> None:
    """Expect of rows that people have who are learned from what trees say that have not seen these people.

    A forest repeats whom it has seen, so that their rows would look like anybody's who has their quasi-identifiers.
    """
    number = int(max(row.max(initial=0), known.max(initial=0))) + 1
    people = np.bincount(known, minlength=number)
    seen = people[row] > 0
    for output in range(of_rows.shape[1]):
        total = np.bincount(known, weights=guessed[:, output], minlength=number)
        of_rows[seen, output] = total[row[seen]] / people[row[seen]]


def _regressed(guessed: FloatArray, truth: FloatArray) -> FloatArray:
    """Mean of guesses, slope, mean of the truth and variance that is left of each output, shape (4, outputs)."""
    mean, true_mean = guessed.mean(axis=0), truth.mean(axis=0)
    spread = guessed.var(axis=0)
    shared = ((guessed - mean) * (truth - true_mean)).mean(axis=0)
    slope = np.clip(np.divide(shared, spread, out=np.zeros_like(shared), where=spread > 0), 0, 1)
    left = ((truth - true_mean - slope * (guessed - mean)) ** 2).mean(axis=0)
    return np.stack([mean, slope, true_mean, np.maximum(left, 1e-6)])


def _truth(domain: Domain, codes: IntArray) -> FloatArray:
    """A quasi-identifier as numbers to learn: the share of people below a value, and the commonest categories."""
    below = np.cumsum(domain.shares) - domain.shares / 2
    place = np.where(codes > 0, below[np.maximum(codes, 0)], -0.5)
    if domain.ordered:
        return place[:, None]
    common = np.argsort(-domain.shares, kind="stable")[:CATEGORIES]
    common = common[domain.shares[common] > 0]  # not those of control people alone
    return np.column_stack([place, codes[:, None] == common]).astype(np.float64)


def _success(attacked: Attacked, people: People, learned: _Learned) -> FloatArray:
    """Each person's probability of being linked by the likeliest of their candidates, shape (n,) or fewer."""
    candidates = find_candidates(attacked.release, people.codes)
    enough = int(np.searchsorted(np.cumsum(candidates.records()), PAIRS, "right"))
    person, row = _pairs(attacked, candidates, max(enough, 1))
    distance = np.zeros(len(row))
    for reading in learned.readings:
        truth = _truth(attacked.release.domains[reading.place], people.codes[:, reading.place])
        for output, left in enumerate(reading.left):
            distance += (truth[person, output] - reading.expected[row, output]) ** 2 / left
    alike = combined([person, attacked.same_kept[row]])[0]  # records that show the same are as likely together
    distance -= 2 * np.log(np.bincount(alike)[alike])
    nearest = np.full(int(person.max(initial=-1)) + 1, np.inf)
    np.minimum.at(nearest, person, distance)
    picked = distance <= nearest[person] + NEAR
    person, row = person[picked], row[picked]
    if attacked.identity is not None:
        right = attacked.identity[row] == people.identity[person]
    else:
        right = attacked.same_kept[row] == people.same_kept[person]
    hits = np.bincount(person, weights=right, minlength=len(nearest))
    if attacked.identity is None:  # whose record it is of several is unknown, so one of them is the person's
        hits = np.minimum(hits, 1)
    return np.asarray(hits / np.maximum(np.bincount(person, minlength=len(nearest)), 1))


def _pairs(attacked: Attacked, candidates: Candidates, people: int) -> tuple[IntArray, IntArray]:
    """Each of the first people with each record of their best groups."""
    unit = candidates.unit[attacked.release.group]
    order = np.argsort(unit, kind="stable")
    start = np.searchsorted(unit[order], np.arange(len(candidates.sizes)))
    best = candidates.best[: min(people, len(candidates))].tocoo()
    sizes = candidates.sizes[best.coords[1]]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    row = order[np.repeat(start[best.coords[1]], sizes) + within]
    return np.repeat(best.coords[0], sizes).astype(np.int64), row


def _by_column(attacked: Attacked, known: People, learned: _Learned) -> dict[str, float]:
    """The largest share of a quasi-identifier's variance that each kept column tells by itself, by its name."""
    known = known.first(ALONE)
    features = _features(attacked, known.kept)
    shares = dict.fromkeys((domain.name for domain in attacked.kept), 0.0)
    for reading in learned.readings:
        truth = _truth(attacked.release.domains[reading.place], known.codes[:, reading.place])
        if learned.share[reading.place] < NAMED_FROM or not truth.var(axis=0).any():
            continue  # where all columns together tell little, so does each
        for column, domain in enumerate(attacked.kept):
            _, guessed = _forest(features.values[:, features.column == column], truth, attacked.seed)
            shares[domain.name] = max(shares[domain.name], _share(_regressed(guessed, truth)[3], truth))
    return shares


def _after(people: People, number: int) -> People:
    return People(*(getattr(people, name)[number:] for name in people.__dataclass_fields__))


# Kept columns as numbers


def _features(attacked: Attacked, codes: IntArray) -> _Features:
    """What is looked at of kept columns: numbers; texts from either end, and the numbers, words and letters in them.

    Values that only control people have take no part in it.
    """
    parts = []
    for place, domain in enumerate(attacked.kept):
        seen = np.unique(np.r_[attacked.kept_codes[:, place], attacked.members.kept[:, place]])
        seen = seen[seen > 0]
        parts.append(_of_values(domain, seen)[np.searchsorted(seen, codes[:, place], "right")])
    widths = [part.shape[1] for part in parts]
    return _Features(np.hstack(parts), np.repeat(np.arange(len(parts)), widths).astype(np.int64))


def _of_values(domain: Domain, seen: IntArray) -> FloatArray:
    """What is looked at of a missing value and of the values seen: places in an order, -1 where there is none, (m, f).

    Trees need no more than the order of numbers, and float32, in which they count, would round the numbers.
    """
    if domain.ordered:
        return np.arange(-1, len(seen), dtype=np.float64)[:, None]
    texts = [str(value) for value in domain.values[seen - 1]]
    numbers = [[(len(digits), digits) for digits in _numbers(text)] for text in texts]
    words = [re.findall(r"[^\W\d_]+", text) for text in texts]
    columns = [_places(texts), _places([text[::-1] for text in texts])]
    for place in range(PARTS):
        columns.append(_places([of[place] if place < len(of) else None for of in numbers]))
        columns.append(_places([of[place] if place < len(of) else None for of in words]))
    for place in range(LETTERS):
        columns.append(_places([text[place] if place < len(text) else None for text in texts]))
    of_texts = np.column_stack(columns).astype(np.float64)
    differ = np.ptp(of_texts, axis=0) > 0 if len(texts) else np.zeros(len(columns), dtype=bool)
    differ[0] = True
    return np.vstack([np.full((1, int(differ.sum())), -1.0), of_texts[:, differ]])


def _numbers(text: str) -> list[str]:
    """The whole numbers within a text, without zeros before them, so that the longer one is the larger."""
    return [digits.lstrip("0") for digits in re.findall(r"\d+", text)]


def _places(parts: Sequence[Any]) -> IntArray:
    """The place of each part among the distinct ones in ascending order, -1 for None."""
    place = {part: number for number, part in enumerate(sorted({part for part in parts if part is not None}))}
    return np.array([-1 if part is None else place[part] for part in parts], dtype=np.int64)
