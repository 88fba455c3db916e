"""Membership of people from a register: an attacker guesses which of them are in the release.

The attacker holds a register with the quasi-identifiers of members and of others (delta-presence: M. E. Nergiz,
M. Atzori, C. Clifton, SIGMOD 2007), and puts everyone into the group that they fit best. A person is taken to be in the
release if they fit their group, and if the group has many records for its number of people from the register.
"""

from __future__ import annotations

import numpy as np

from anon_pipeline.arrays import FloatArray
from anon_pipeline.attack import roc
from anon_pipeline.attack.candidates import find_candidates, misfit
from anon_pipeline.attack.rates import Finding, Known, Rates, finding, known, measured
from anon_pipeline.attack.released import combined
from anon_pipeline.attack.targets import Attacked, People

#: Most people of the register.
REGISTER = 10_000


def membership(attacked: Attacked, targets: int) -> list[Finding]:
    """A single finding; none without control people, since there is nothing to guess in a register of members only.

    Half of the people asked about are members. The attacker says "in" for the half with the highest scores. Attack and
    control are the shares of members and of control people for whom the attacker says so.
    """
    if attacked.control is None:
        return []
    control = attacked.control.first(targets)
    members = attacked.members.first(min(REGISTER, max(targets, REGISTER - len(control))))
    scores, fit = _scores(attacked, members, control)
    number = min(len(group) for group in (*scores, members.first(targets)))
    inside, outside = scores[0][:number], scores[1][:number]
    attack, of_control = (measured(guesses) for guesses in _better_half(inside, outside))
    curve = roc.auc(inside, outside)
    details: dict[str, object] = {"auc": curve, "auc_of_fit_alone": roc.auc(fit[0][:number], fit[1][:number])}
    for rate in roc.JUDGED_AT:
        point = roc.operating_point(inside, outside, rate)
        details[f"tpr_at_fpr_{rate:g}"] = None if point is None else point.true_positive_rate
    return [
        finding(
            "membership in a register",
            "membership",
            Known(tuple(attacked.knowledge.quasi_identifiers)),
            "says of a person in the release that they are in it",
            Rates(attack, of_control, known(0.5, attack.trials)),
            details,
        )
    ]


def _scores(
    attacked: Attacked, members: People, control: People
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Ranks of members and control people, larger for "in", and ranks by their fit alone."""
    guessed = [find_candidates(attacked.release, people.codes) for people in (members, control)]
    fits = [
        -misfit(attacked.release, people.codes[: len(candidates)], candidates)
        for people, candidates in zip((members, control), guessed, strict=True)
    ]
    spread = [candidates.best / np.diff(candidates.best.indptr)[:, None] for candidates in guessed]
    crowd = sum((np.asarray(share.sum(axis=0)).ravel() for share in spread), np.zeros(len(guessed[0].sizes)))
    shares = []
    for candidates, own in zip(guessed, spread, strict=True):
        # The person asked about does not count in the crowd, whether member or not, so nobody influences their own
        # score.
        present = np.asarray(own @ (guessed[0].sizes / (crowd + 1.0))).ravel()
        shares.append(np.round(present, 9)[: len(candidates)])
    fit = np.asarray(np.round(np.concatenate(fits), 9), dtype=np.float64)
    both = combined([np.unique(fit, return_inverse=True)[1], np.unique(np.concatenate(shares), return_inverse=True)[1]])
    rank = both[0].astype(np.float64)
    cut = len(guessed[0])
    return (rank[:cut], rank[cut:]), (fit[:cut], fit[cut:])


def _better_half(inside: FloatArray, outside: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The probability that the attacker says "in" of each person; people at the threshold are drawn by lot."""
    every = np.concatenate([inside, outside])
    threshold = np.sort(every)[::-1][len(every) // 2]
    lot = (len(every) / 2 - (every > threshold).sum()) / (every == threshold).sum()
    guesses = np.where(every > threshold, 1.0, np.where(every == threshold, lot, 0.0))
    return guesses[: len(inside)], guesses[len(inside) :]
