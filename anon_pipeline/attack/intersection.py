"""Intersection with earlier releases of overlapping people: several tables together may reveal more than each alone.

Composition attacks: S. R. Ganta, S. P. Kasiviswanathan, A. Smith (KDD 2008). The person is in both tables. So a record
can be theirs only if its kept values occur among the candidates of both. If there is no such record, the attacker has
the wrong candidates, and goes on with those of the current release.

Most people of a table may be new. Earlier releases say nothing of them, so a mean over everybody hides that the others
are found. Who stood in an earlier release is not asked: no identifier may decide what is published. But a person can
have stood there as they are only if one of their candidates there has their own kept values. The success is told of
those who can, too. Some newcomers are among them by chance; somebody who takes such a person for an old one picks among
the same records, and is right as often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack import linkage
from anon_pipeline.attack.candidates import Candidates, find_candidates
from anon_pipeline.attack.rates import Finding, Known, Rate, Rates, finding, measured, quantiles
from anon_pipeline.attack.released import combined, read_release
from anon_pipeline.attack.targets import Attacked, People, counts


@dataclass(frozen=True, eq=False)
class Earlier:
    """A release that was published before.

    Attributes
    ----------
    released : one row per person
    classes : its class table, where that was published
    """

    released: pd.DataFrame
    classes: pd.DataFrame | None = None


#: The attack on everybody, and on those who can have stood in all earlier releases; and the fewest of these, and of
#: control people, whose success is told by itself: of few, chance alone makes it anything.
NAME = "intersection with earlier releases"
OF_WHO_FIT = f"{NAME}, people who fit them"
FEWEST = 100


def intersection(
    attacked: Attacked,
    earlier: Sequence[Earlier],
    original: pd.DataFrame,
    control: pd.DataFrame | None,
    targets: int,
) -> list[Finding]:
    """The findings over all earlier releases together; none without earlier releases.

    The first is of everybody. The second, where there are people enough, is of those who can have stood in all of them.
    """
    if not earlier:
        return []
    chosen = attacked.members.first(targets)
    others = None if attacked.control is None else attacked.control.first(targets)
    people = [each for each in (chosen, others) if each is not None]
    now = [_Table(attacked, each) for each in people]
    alone_now = now[0].remaining()
    for former in earlier:
        release = read_release(
            former.released, [original] if control is None else [original, control], attacked.knowledge, former.classes
        )
        shared = [place for place, domain in enumerate(attacked.kept) if domain.name in former.released.columns]
        then_kept = [attacked.kept[place].encode(former.released[attacked.kept[place].name]) for place in shared]
        for table, each in zip(now, people, strict=True):
            candidates = find_candidates(release, each.codes)
            table.narrow(shared, then_kept, release.group, candidates)
    left, successes = now[0].remaining(), [table.success() for table in now]
    of_control: Rate | None = measured(successes[1]) if len(now) > 1 else None
    blind = linkage.blind(attacked, chosen)
    smallest = int(attacked.release.sizes.min())
    known = Known(tuple(attacked.knowledge.quasi_identifiers))
    does = f"who also has {len(earlier)} earlier release{'' if len(earlier) == 1 else 's'} picks the right record"
    findings = [
        finding(
            NAME,
            "linkability",
            known,
            does,
            Rates(measured(successes[0]), of_control, blind),
            {
                "earlier_releases": len(earlier),
                "smallest_group": smallest,
                "candidates_alone": quantiles(alone_now),
                "candidates_together": quantiles(left),
                "fewer_than_smallest_group": float((left < smallest).mean()),
                "alone": float((left == 1).mean()),
                "alone_without_earlier": float((alone_now == 1).mean()),
                "contradicted": float(now[0].contradicted.mean()),
            },
        )
    ]
    if len(chosen) < FEWEST:
        return findings
    fitting = [success[table.fits] for success, table in zip(successes, now, strict=True)]
    if len(fitting) > 1 and len(fitting[1]) >= FEWEST:
        of_control = measured(fitting[1])
    return [
        *findings,
        finding(
            OF_WHO_FIT,
            "linkability",
            known,
            f"{does} of those whose values are among their candidates in every release",
            Rates(measured(fitting[0] if len(fitting[0]) >= FEWEST else []), of_control, blind),
            {"earlier_releases": len(earlier)},
        ),
    ]


class _Table:
    """People's candidate records in the current release, by kept value; earlier releases narrow them."""

    def __init__(self, attacked: Attacked, people: People) -> None:
        self.attacked = attacked
        candidates = find_candidates(attacked.release, people.codes)
        self.people = people.first(len(candidates))
        unit = candidates.unit[attacked.release.group]
        # Rows of the same unit with the same kept values cannot be distinguished: all stay candidates, or none.
        self.kind, first = combined([unit, attacked.same_kept])
        self.kept = attacked.kept_codes[first]
        self.same_kept = attacked.same_kept[first]
        self.sizes = np.bincount(self.kind)
        kinds = counts(unit[first], np.arange(len(first)), (len(candidates.sizes), len(first)))
        self.possible: sparse.csr_array = (candidates.best @ kinds).tocsr()
        self.contradicted = np.zeros(len(candidates), dtype=bool)
        self.fits = np.ones(len(candidates), dtype=bool)

    def narrow(self, shared: list[int], then_kept: list[IntArray], group: IntArray, earlier: Candidates) -> None:
        """Keep the records that an earlier release allows.

        Some candidate of the person in that release, of those in `earlier`, must have the record's values in the
        `shared` columns.
        """
        number = min(len(earlier), self.possible.shape[0])
        self.possible, self.people = self.possible[:number], self.people.first(number)
        self.contradicted, self.fits = self.contradicted[:number], self.fits[:number]
        if not shared:
            return
        stacked = [
            np.r_[self.kept[:, place], self.people.kept[:, place], codes]
            for place, codes in zip(shared, then_kept, strict=True)
        ]
        value = combined(stacked)[0]
        here, own, there = np.split(value, [len(self.kept), len(self.kept) + number])
        values = int(value.max()) + 1
        seen = earlier.best[:number] @ counts(earlier.unit[group], there, (len(earlier.sizes), values))
        fits = seen.multiply(counts(np.arange(number), own, (number, values))).sum(axis=1)
        self.fits &= np.asarray(fits).ravel() > 0
        mark = counts(here, np.arange(len(here)), (values, len(here)))
        allowed = (seen.sign() @ mark).tocsr()
        narrowed = self.possible.multiply(allowed.sign()).tocsr()
        lost = np.asarray(narrowed.sum(axis=1)).ravel() == 0
        self.contradicted |= lost
        self.possible = (narrowed + self.possible.multiply(lost[:, None])).tocsr()
        self.possible.eliminate_zeros()

    def remaining(self) -> FloatArray:
        """How many records can still be a person's, shape (n,)."""
        return np.asarray(self.possible @ self.sizes, dtype=np.float64).ravel()

    def success(self) -> FloatArray:
        """The probability that a record drawn from them at random is the right one, see `linkage.success`."""
        attacked, kinds = self.attacked, len(self.sizes)
        if attacked.identity is not None:
            numbers = int(max(attacked.identity.max(), self.people.identity.max())) + 1
            rows = counts(attacked.identity, self.kind, (numbers, kinds))[self.people.identity]
            hits = np.asarray(self.possible.multiply(rows).sum(axis=1)).ravel()
        else:
            numbers = int(max(self.same_kept.max(), self.people.same_kept.max())) + 1
            rows = counts(self.same_kept, np.arange(kinds), (numbers, kinds))[self.people.same_kept]
            hits = np.minimum(np.asarray(self.possible.multiply(rows).sum(axis=1)).ravel(), 1.0)
        return np.asarray(hits / np.maximum(self.remaining(), 1), dtype=np.float64)
