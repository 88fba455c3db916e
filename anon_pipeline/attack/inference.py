"""Attribute inference: an attacker guesses a known person's sensitive value from a release.

There are four attacks. Within groups, the guess is the most frequent value of the person's candidate groups. Across
groups, it comes from a model trained on the released rows. Similarity and skewness (N. Li, T. Li, S.
Venkatasubramanian, ICDE 2007) use groups whose values lie within a narrow share of the ranks, and groups in which a
rare value is frequent. Control people get the same guesses from the same release. This separates what a person's record
gives away from what everybody could learn from statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack.boxes import CategoryBoxes, Domain
from anon_pipeline.attack.candidates import Candidates, find_candidates
from anon_pipeline.attack.rates import NARROW, Finding, Known, Rate, Rates, finding, known, measured, quantiles
from anon_pipeline.attack.targets import Attacked, People, counts
from anon_pipeline.threads import one_thread

#: A guess of a number is right if it names the right one of so many equally frequent intervals.
INTERVALS = 5

#: The rare values of an ordered column are its largest, this share of it; of a category, the least frequent one.
RARE = 0.1

#: A category with a smaller share than this is too rare to become frequent in a group.
SCARCE = 0.01

#: Different values that the model learns at most, and iterations of its training.
LEARNED, ITERATIONS = 20, 40

#: Most categories that gradient boosting distinguishes; the rarer ones are put together.
MOST_CATEGORIES = 250


@dataclass(frozen=True, eq=False)
class Outcome:
    """A sensitive column as an attacker guesses it: a label per value, or per interval of numbers.

    Attributes
    ----------
    domain : the column
    column : its position among the kept columns
    label : the label of each code, shape (m,); -1 for a code that no released row has
    labels : number of labels; the more frequent a label is in the release, the smaller is its number
    released, members, control : labels of released rows and of people
    """

    domain: Domain
    column: int
    label: IntArray
    labels: int
    released: IntArray
    members: IntArray
    control: IntArray | None


def outcome(attacked: Attacked, column: int, members: People, control: People | None) -> Outcome:
    """Labels of one kept column; ordered ones with more distinct values than `INTERVALS` are cut at quantiles."""
    domain, code = attacked.kept[column], attacked.kept_codes[:, column]
    raw = np.arange(len(domain))
    present = np.unique(code[code > 0])
    if domain.ordered and len(present) > INTERVALS:
        known = np.sort(code[code > 0])
        cuts = np.unique(known[(np.arange(1, INTERVALS) * len(known)) // INTERVALS])
        raw = np.where(raw == 0, 0, 1 + np.searchsorted(cuts, raw, "left"))
    frequency = np.bincount(raw[code], minlength=int(raw.max()) + 1)
    order = np.argsort(-frequency, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    label = np.where(frequency[raw] > 0, rank[raw], -1)
    of_control = None if control is None else label[control.kept[:, column]]
    return Outcome(
        domain, column, label, int((frequency > 0).sum()), label[code], label[members.kept[:, column]], of_control
    )


def inference(attacked: Attacked, targets: int) -> list[Finding]:
    """All four attacks on every sensitive column that the release and the people have."""
    members = attacked.members.first(targets)
    control = None if attacked.control is None else attacked.control.first(targets)
    guessed = find_candidates(attacked.release, members.codes)
    guessed_control = None if control is None else find_candidates(attacked.release, control.codes)
    findings = []
    for column, domain in enumerate(attacked.kept):
        if domain.name not in attacked.knowledge.sensitive:
            continue
        sensitive = outcome(attacked, column, members, control)
        findings += [
            within_groups(attacked, sensitive, guessed, guessed_control),
            across_groups(attacked, sensitive, members, control),
            skewness(attacked, sensitive, guessed, guessed_control, members, control),
        ]
        if domain.ordered:
            findings.append(similarity(attacked, sensitive, guessed, guessed_control, members, control))
    return findings


def within_groups(attacked: Attacked, sensitive: Outcome, members: Candidates, control: Candidates | None) -> Finding:
    """The most frequent label among a person's candidate records; on a tie the one more frequent in the release."""
    table = counts(members.unit[attacked.release.group], sensitive.released, (len(members.sizes), sensitive.labels))
    right, certain = _mode_guess(table, members, sensitive.members)
    of_control = None
    if control is not None and sensitive.control is not None:
        of_control = measured(_mode_guess(table, control, sensitive.control)[0])
    unknown = int(sensitive.label[0])  # a missing value does not make a group less homogeneous
    open_ = unknown >= 0 and sensitive.domain.name not in attacked.knowledge.answers
    known = (
        np.flatnonzero(np.arange(sensitive.labels) != unknown)
        if open_ and sensitive.labels > 1
        else np.arange(sensitive.labels)
    )
    largest = np.asarray(table[:, known].max(axis=1).todense()).ravel()
    known_people = np.asarray(table[:, known].sum(axis=1)).ravel()
    alike = largest == known_people
    details = {
        "in_homogeneous_groups": float(members.sizes[alike].sum() / members.sizes.sum()),
        "homogeneous_groups": int(alike.sum()),
        "guess_certain": float(certain.mean()),
        "right_where_certain": float(right[certain].mean()) if certain.any() else None,
        "labels": sensitive.labels,
    }
    return finding(
        f"inference: {sensitive.domain.name}",
        "inference",
        Known(tuple(attacked.knowledge.quasi_identifiers)),
        f"guesses {sensitive.domain.name} right{_how_close(sensitive)} from the group a person fits best",
        Rates(measured(right), of_control, _most_frequent(sensitive, len(right))),
        details,
    )


def across_groups(attacked: Attacked, sensitive: Outcome, members: People, control: People | None) -> Finding:
    """A gradient-boosted model learns the column from the released rows, and is asked about raw people.

    All rows of a group are equal, so the model learns from groups, weighted by their rows.
    """
    release = attacked.release
    frequent = np.where(sensitive.released < LEARNED, sensitive.released, -1)  # the others are learned from no row
    table = counts(release.group, frequent, (len(release.sizes), LEARNED)).tocoo()
    group, label = table.coords[0], table.coords[1]
    features = _features(attacked, release.representative)[group]
    varying = np.array([len(np.unique(feature[~np.isnan(feature)])) > 1 for feature in features.T])
    if len(np.unique(label)) < 2 or not varying.any():

        def guess(people: People) -> IntArray:
            return np.zeros(len(people), dtype=np.int64)
    else:
        categories = np.array([isinstance(boxes, CategoryBoxes) for boxes in release.boxes])
        model = HistGradientBoostingClassifier(
            max_iter=ITERATIONS,
            learning_rate=0.2,
            categorical_features=categories[varying],
            early_stopping=False,
            random_state=attacked.seed % 2**32,
        )
        with one_thread():  # several threads would mostly wait for each other over so little
            model.fit(features[:, varying], label, sample_weight=table.data)

        def guess(people: People) -> IntArray:
            raw = _features(attacked, _raw(attacked, people))[:, varying]
            return np.asarray(model.predict(raw), dtype=np.int64)

    with one_thread():
        attack = measured(guess(members) == sensitive.members)
        of_control = None if control is None else measured(guess(control) == sensitive.control)
    return finding(
        f"inference across groups: {sensitive.domain.name}",
        "inference",
        Known(tuple(attacked.knowledge.quasi_identifiers)),
        f"guesses {sensitive.domain.name} right{_how_close(sensitive)} with a model trained on the release",
        Rates(attack, of_control, _most_frequent(sensitive, len(members))),
    )


def skewness(
    attacked: Attacked,
    sensitive: Outcome,
    members: Candidates,
    control: Candidates | None,
    people: People,
    others: People | None,
) -> Finding:
    """The share of people with a rare value whom the attacker names.

    The attacker names as many people as have a rare value. People in whose candidate groups it is most frequent come
    first.
    """
    rare = rare_codes(sensitive.domain, attacked.kept_codes[:, sensitive.column], attacked.knowledge.answers)
    of_rows = rare[attacked.kept_codes[:, sensitive.column]]
    unit = members.unit[attacked.release.group]
    within = np.bincount(unit, weights=of_rows, minlength=len(members.sizes))
    scores = [np.asarray(each.best @ within) / each.records() for each in (members, control) if each is not None]
    truths = [
        rare[each.kept[: len(score), sensitive.column]]
        for each, score in zip([one_of for one_of in (people, others) if one_of is not None], scores, strict=True)
    ]
    attack, of_control, blind = named_rare(scores, truths, float(of_rows.mean()))
    gain = within / members.sizes - of_rows.mean()
    return finding(
        f"skewness: {sensitive.domain.name}",
        "inference",
        Known(tuple(attacked.knowledge.quasi_identifiers)),
        f"who names those most likely to have a rare {sensitive.domain.name} finds one who has",
        Rates(attack, of_control, blind),
        {
            "rare_share": float(of_rows.mean()),
            "largest_gain": float(gain.max()),
            "gain": quantiles(gain, members.sizes),
            "groups_all_rare": int((within == members.sizes).sum()),
        },
    )


def named_rare(
    scores: list[FloatArray], truths: list[npt.NDArray[np.bool_]], share: float
) -> tuple[Rate, Rate | None, Rate]:
    """The share of members (and of control people) with a rare value who are named, and that of blind naming.

    Among members, and among control people, the `share` with the highest scores is named; ties are drawn by lot.
    """
    rates = []
    for score, truth in zip(scores, truths, strict=True):
        wanted = share * len(score)
        threshold = np.sort(score)[::-1][min(int(wanted), len(score) - 1)]
        above, at = float((score > threshold).sum()), float((score == threshold).sum())
        lot = min(max((wanted - above) / at, 0.0), 1.0)
        named = np.where(score > threshold, 1.0, np.where(score == threshold, lot, 0.0))
        rates.append(measured(named[truth]))
    return rates[0], rates[1] if len(rates) > 1 else None, known(share, rates[0].trials)


def rare_codes(domain: Domain, released: IntArray, answers: Sequence[str] = ()) -> npt.NDArray[np.bool_]:
    """Which codes are rare: the largest values of an ordered column, else the rarest category that is not scarce.

    Nobody's secret is that nothing is known of them: a missing value is a category in the columns of `answers` alone,
    and where there is no other.
    """
    frequency = np.bincount(released, minlength=len(domain)) / max(len(released), 1)
    rare = np.zeros(len(domain), dtype=bool)
    if domain.ordered:
        from_top = np.cumsum(frequency[::-1])[::-1]  # the share with this value or a larger one
        within = np.flatnonzero((from_top <= RARE) & (from_top > 0))  # all have code 0 or a larger one
        present = np.flatnonzero(frequency[1:]) + 1
        start = within[0] if len(within) else present[-1] if len(present) else len(domain)
        rare[start:] = True
    else:
        if domain.name not in answers and frequency[1:].any():
            frequency[0] = 0.0
        enough = np.flatnonzero(frequency >= SCARCE)
        rare[enough[np.argmin(frequency[enough])] if len(enough) else int(np.argmax(frequency))] = True
    return rare


def similarity(
    attacked: Attacked,
    sensitive: Outcome,
    members: Candidates,
    control: Candidates | None,
    people: People,
    others: People | None,
) -> Finding:
    """The attacker claims that a person's value lies between the least and greatest of their groups.

    The claim is made only where this range is narrow. Success is a claim that is right. The baseline makes the same
    claim about a random person.
    """
    code = attacked.kept_codes[:, sensitive.column]
    unit = members.unit[attacked.release.group]
    least = np.full(len(members.sizes), np.iinfo(np.int64).max)
    most = np.full(len(members.sizes), -1)
    np.minimum.at(least, unit, code)
    np.maximum.at(most, unit, code)
    reached = np.r_[0.0, np.cumsum(np.bincount(code, minlength=len(sensitive.domain)) / len(code))]

    def claims(candidates: Candidates, raw: IntArray) -> tuple[FloatArray, FloatArray]:
        starts = candidates.best.indptr[:-1]
        low = np.minimum.reduceat(least[candidates.best.indices], starts)
        high = np.maximum.reduceat(most[candidates.best.indices], starts)
        share = reached[high + 1] - reached[low]
        narrow = share <= NARROW
        value = raw[: len(candidates), sensitive.column]
        return (narrow & (value >= low) & (value <= high)).astype(np.float64), np.where(narrow, share, 0.0)

    right, blind = claims(members, people.kept)
    of_control = None if control is None or others is None else measured(claims(control, others.kept)[0])
    width = reached[most + 1] - reached[least]
    return finding(
        f"similarity: {sensitive.domain.name}",
        "inference",
        Known(tuple(attacked.knowledge.quasi_identifiers)),
        f"learns that {sensitive.domain.name} is within a range that at most {NARROW:.0%} of all people share",
        Rates(measured(right), of_control, known(float(blind.mean()), len(right))),
        {
            "in_narrow_groups": float(members.sizes[width <= NARROW].sum() / members.sizes.sum()),
            "share_of_ranks": quantiles(width, members.sizes),
        },
    )


def _mode_guess(
    table: sparse.csr_array, candidates: Candidates, truth: IntArray
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether the guess is right, and whether the attacker is sure of it, shape (n,) each."""
    votes = (candidates.best @ table).tocsr()
    number = len(candidates)
    guess, most = np.zeros(number, dtype=np.int64), np.zeros(number)
    person = np.repeat(np.arange(number), np.diff(votes.indptr))
    order = np.lexsort((votes.indices, -votes.data, person))
    first = order[np.unique(person[order], return_index=True)[1]]
    guess[person[first]], most[person[first]] = votes.indices[first], votes.data[first]
    return guess == truth[:number], most == candidates.records()


def _most_frequent(sensitive: Outcome, number: int) -> Rate:
    """The success of always guessing the release's most frequent label, for the same people."""
    return known(float((sensitive.members[:number] == 0).mean()), number)


def _how_close(sensitive: Outcome) -> str:
    return f" to one of {sensitive.labels} intervals" if sensitive.domain.ordered else ""


def _raw(attacked: Attacked, people: People) -> FloatArray:
    """People's quasi-identifiers as numbers, in the form of the released groups' representatives."""
    columns = []
    for column, domain in enumerate(attacked.release.domains):
        code = people.codes[:, column]
        number = np.r_[np.nan, domain.values.astype(np.float64)][code] if domain.ordered else code.astype(np.float64)
        columns.append(number)
    return np.stack(columns, axis=1)


def _features(attacked: Attacked, values: FloatArray) -> npt.NDArray[Any]:
    """Categories as the rank of their frequency, the rarest put together, so that the model can take them."""
    columns = values.copy()
    for column, domain in enumerate(attacked.release.domains):
        if not domain.ordered:
            rank = np.empty(len(domain))
            rank[np.argsort(-domain.shares, kind="stable")] = np.minimum(np.arange(len(domain)), MOST_CATEGORIES)
            present = ~np.isnan(columns[:, column])
            columns[present, column] = rank[columns[present, column].astype(np.int64)]
    return columns
