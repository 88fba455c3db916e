"""The question to a candidate beside other releases of the same people: what it tells with them, and what helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from anon_pipeline.errors import Unavailable, number_of
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.privacy.linked_releases.demands import FailingDemand
from anon_pipeline.privacy.linked_releases.tables import Undecided

#: What helps where nobody can tell now, which `linked_tables_accepted` does not speak of.
AGAIN = "run it again; what cannot be judged now is not accepted by linked_tables_accepted"


@dataclass
class Beside:
    """What a candidate tells together with other releases of the same people.

    Attributes
    ----------
    remedy : what helps where it tells too much
    problems : how much is known that must not be, such as people, counts and means, and releases that cannot be judged
    unjudged : why a release of the same people cannot be judged, by release
    sentences : what is known beside which releases, without a value of a person
    may_pass : whether an unjudged release can be judged another time, so that nobody can have accepted what it tells
    """

    remedy: str
    problems: int = 0
    unjudged: dict[str, str] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    may_pass: bool = False

    def add(self, number: int, sentence: str) -> None:
        """Note what is known, if anything is."""
        if number:
            self.problems += number
            self.sentences.append(sentence)

    def add_difference(self, release: str, people: int) -> None:
        """Note what rows of people and a table of groups tell together, by whichever of them this release is."""
        self.add(
            people,
            f"beside {release}, of the same people, what {number_of(people, 'person has', 'people have')} in groups "
            "of fewer than k follows by subtraction",
        )

    def add_failing(self, releases: Sequence[str], failing: FailingDemand, whose: str) -> None:
        """Note a demand of a release that fails on what is left of classes of rows less groups of a table."""
        self.add(
            failing.people,
            f"beside {', '.join(releases)}, of the same people, what follows by subtraction is of at least "
            f"{number_of(failing.people, 'person', 'people')} of whom a demand of {whose} does not hold: "
            f"{failing.sentence}",
        )

    def add_together(self, releases: Sequence[str], known: Callable[[], int]) -> None:
        """Note what rows and several tables of groups tell, of which no two tell anything.

        It is not asked where the candidate is refused already, since it takes long where much is known.
        """
        if self.problems:
            return
        try:
            unions = known()
        except Undecided as error:
            for release in releases:
                self.add_unjudged(release, error)
            return
        self.add(
            unions,
            f"beside {', '.join(releases)}, of the same people, what at least "
            f"{number_of(unions, 'group of fewer than k people has', 'groups of fewer than k people have')} follows by "
            "subtraction",
        )

    def add_unjudged(self, release: str, error: Exception) -> None:
        """Note that nobody can tell, which counts as a problem."""
        self.problems += release not in self.unjudged
        self.unjudged[release] = str(error)
        self.may_pass |= isinstance(error, Unavailable)

    @property
    def wrong(self) -> str:
        """What cannot be judged, or is known, and beside which releases; empty where nothing is."""
        unjudged = [f"{name} is of the same people and cannot be judged: {why}" for name, why in self.unjudged.items()]
        return "; ".join([*unjudged, *self.sentences])

    def question(self, run: Run, check: str, demand: str) -> Question:
        """The question of a blocking check; an accepted answer is logged."""
        problems = self.problems
        accepted = run.spec.linked_tables_accepted is not None and not self.may_pass
        if problems and accepted:
            # The number is not published: it would say how much there is to work out.
            log.warning("%s: accepted by linked_tables_accepted: %s", run.spec.dataset, self.wrong)
            problems = 0
        return Question(
            check,
            demand,
            "ExpectColumnMaxToBeBetween",
            {"column": check, "max_value": 0},
            pd.DataFrame({check: [problems]}),
            remedy=f"{self.wrong}; {AGAIN if self.may_pass else self.remedy}",
            idle="the spec accepts what is known (linked_tables_accepted)" if accepted else "",
        )
