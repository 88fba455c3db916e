"""A partition and the demands that its classes must meet: the input of the repair, except for the private key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anon_pipeline.anonymize import classes, enforce
from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.ladder import Recount
from anon_pipeline.anonymize.mixing import Mixing
from anon_pipeline.arrays import BoolArray, FloatArray, IntArray
from anon_pipeline.errors import Refused
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.judge import judge
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.tables import Cells


@dataclass(frozen=True, eq=False)
class Repair:
    """Classes made from the quasi-identifiers alone, and the demands on them.

    Attributes
    ----------
    cells : the distinct tuples of quasi-identifiers
    features : the axes of the tree (see `enforce`)
    class_of_cell : the classes before any demand is looked at, shape (C,)
    outputs : the tree's criterion per cell, shape (C, o)
    people : the sensitive columns counted per cell
    demands : all of them, that of k people included
    suppressible : how many people may be left out
    recount : counts the people of a population anew, where a demand is about them (see `enforce`)
    mixes : whether classes may also be paired by the sensitive values that the guidance lets expect
    former : the class of each cell in the former release, -1 for none or several, shape (C,); None without a release
    """

    cells: Cells
    features: tuple[SplitFeature, ...]
    class_of_cell: IntArray
    outputs: FloatArray
    people: ClassStatistics
    demands: Sequence[PrivacyModel]
    suppressible: int = 0
    recount: Recount | None = None
    mixes: bool = True
    former: IntArray | None = None

    def holds(self, statistics: ClassStatistics) -> BoolArray:
        """Which classes meet every demand, shape (J,)."""
        held: BoolArray = np.logical_and.reduce([demand.holds(statistics) for demand in self.demands])
        return held

    @property
    def least(self) -> int:
        """Fewer people than this are never a class."""
        return max((demand.k for demand in self.demands if isinstance(demand, KAnonymity)), default=1)

    def chance(self, key: Key) -> Chance:
        """The random decisions under the key; none where no demand depends on sensitive values."""
        return Chance.of(key, self.cells) if self.people.sensitive else Chance.none(self.cells)

    def mixing(self) -> Mixing | None:
        """The sensitive values that the guidance lets expect; None where a demand is about a population."""
        return Mixing.of(self.cells, self.people) if self.mixes and self.recount is None else None

    def prepared(self) -> enforce.Prepared:
        """Everything that does not depend on the key, if nobody may be left out."""
        return self._prepared(self.people, self.class_of_cell)

    def repaired(self, key: Key) -> IntArray:
        """The class of each cell, -1 where its people are left out, shape (C,)."""
        chance, people, group = self.chance(key), self.people, self.class_of_cell
        if self.suppressible:
            if self.recount is not None:  # a demand on a population is asked of the classes before any is merged
                people = self.recount(people, group, int(group.max()) + 1)
            people, group = enforce.leave_out(people, group, self.outputs, self.holds, self.suppressible, chance)
        return self._prepared(people, group).under(chance)

    def _prepared(self, people: ClassStatistics, group: IntArray) -> enforce.Prepared:
        return enforce.prepare(
            self.cells,
            self.features,
            group,
            self.outputs,
            people,
            self.holds,
            self.recount,
            self.least,
            self.mixing(),
            self.former,
        )

    def refuse_what_fails(self, class_of_cell: IntArray) -> None:
        """Judge the repaired classes as a whole.

        Raises
        ------
        Refused
            With the demands that they do not meet, and how near they came.
        """
        number = int(class_of_cell.max()) + 1
        people = self.people if self.recount is None else self.recount(self.people, class_of_cell, number)
        reached = people.without(class_of_cell < 0).pool(classes.members(class_of_cell, number))
        failed = [finding for finding in judge(self.demands, reached) if not finding.holds]
        if failed:
            demanded = [f"{finding.name}: no grouping was found in which {finding.demand}" for finding in failed]
            best = ["infinite" if finding.measured is None else format(finding.measured, ".4g") for finding in failed]
            raise Refused(
                [f"{what}; the best value reached is {value}" for what, value in zip(demanded, best, strict=True)],
                demanded,
            )
