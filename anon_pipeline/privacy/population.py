"""The base of privacy models on a population: the path of its table in the spec, and its counts."""

from __future__ import annotations

from pydantic import Field

from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.statistics import ClassStatistics


class PopulationModel(PrivacyModel):
    """A demand on the people of the population who match a class.

    A person of the population matches a class by containment in its box. Boxes are disjoint, so where classes are
    merged their F_j add, as `ClassStatistics.merge` does it, and who is in no class stays outside.

    Attributes
    ----------
    population : a CSV or Parquet table of the population, one row per person, with the quasi-identifiers
    """

    population: str = Field(min_length=1)  # a table of people, masked alike; `source.where` selects from it, too

    @property
    def population_file(self) -> str:
        return self.population

    def matching(self, classes: ClassStatistics) -> IntArray:
        """The F_j, shape (J,)."""
        if classes.population is None:
            raise InputError(
                f"privacy.{self.name}.population: the population has not been counted; name a table that holds "
                "the quasi-identifiers, with a spec from which it can be read"
            )
        return classes.population

    def impossible(self, classes: ClassStatistics) -> str | None:
        """A population smaller than the table cannot contain it."""
        people = int(self.matching(classes).sum()) + (classes.population_unmatched or 0)
        if people < classes.n:
            return (
                f"the population has {number_of(people, 'person', 'people')} and the table {classes.n:,}; a population "
                f"contains everybody in the table (privacy.{self.name}.population)"
            )
        return None
