"""What a step is: how it is declared, what it is given to work with, and what it gives back. Nothing of Dagster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anon_pipeline.engine.base import Engine
from anon_pipeline.home import Home
from anon_pipeline.keys import Key, measuring_seed, private_key
from anon_pipeline.learning.guide import FittedModel
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.metadata import MetadataItem
from anon_pipeline.pipeline.processes import processes
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.release.publication import Published
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.workers import ALONE, Workers

#: In the needs of a step: the last step before it that makes a table of people (as the source has them, masked, ...).
PEOPLE = "people"
#: The step that publishes.
RELEASE = "release"
#: The step after it, that puts the release to further places.
DESTINATIONS = "destinations"

#: Fewer people than this are worked on in one process.
WORTH_PROCESSES = 2_000

log = logging.getLogger("anon_pipeline")


@dataclass(frozen=True)
class Run:
    """What a step works with.

    Attributes
    ----------
    spec : the policy
    home : where files lie
    engine : for tables of people
    memory_limit : of what may be used, as `4GB`; None where nobody set one
    threads : that may be used; None where nobody set a number
    ids : of this run in Dagster and in MLflow, by the name of the program
    """

    spec: ReleaseSpec
    home: Home
    engine: Engine
    memory_limit: str | None = None
    threads: int | None = None
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The dataset's private key."""
        return private_key(self.spec, self.home)

    @property
    def measuring_seed(self) -> int:
        """The seed of what is drawn to measure a release, and not to make it."""
        return measuring_seed(self.spec, self.home)

    @property
    def processes(self) -> Workers:
        """The processes that may work beside this one, within the threads and the memory that may be used."""
        return processes(self.spec, self.threads, self.memory_limit)

    def workers(self, people: int) -> Workers:
        """Who trains models and groups people side by side.

        For few people the processes would cost more than they bring. Models from elsewhere stay in this process: they
        need not be what pickle takes.
        """
        few = people < WORTH_PROCESSES or not isinstance(self.spec.guide.model, str)
        return ALONE if few else self.processes

    def load_model(self, uri: str) -> Any:
        """A model that was logged in this home's MLflow store."""
        return Tracking(self.home).load_model(uri)


@dataclass(frozen=True)
class FittedGuide:
    """The model that guides, fitted on everybody, and the types of the columns that it looks at."""

    model: FittedModel
    types: Mapping[str, ColumnType]


@dataclass(frozen=True)
class StepResult:
    """What a step gives back, beside the files that it has written.

    Attributes
    ----------
    facts : what later steps want to know without opening the files, as plain data
    rows : of the table that was made; None where it made none
    metadata : what Dagster shows, by its label; never a row of people
    metrics : what MLflow keeps, numbers and texts
    data_version : a hash of the content, where there is a better one than that of the files
    published : the release, of the step that publishes
    guide : to be registered in MLflow, of the step that trains it here
    """

    facts: dict[str, Any] = field(default_factory=dict)
    rows: int | None = None
    metadata: Mapping[str, MetadataItem] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    data_version: str | None = None
    published: Published | None = None
    guide: FittedGuide | None = None


@dataclass(frozen=True)
class StepDef:
    """A step of the graph.

    Attributes
    ----------
    name : of the asset, and of the folder of its result
    needs : names of the stored results that `make` takes, by which it takes them
    kinds : what it works with, as Dagster shows it
    make : called with the run, the folder to write into, and the stored result (`stages.Stage`) of each need by name
    needs_if_made : further needs, where the graph of the spec has them; `make` has a default for each
    makes_people : whether the result is a table of people, which later steps need as `people`
    in_release : whether a release waits for it; what does not is made by its own button
    reads_source : whether it is the step that opens the source of the release
    """

    name: str
    needs: tuple[str, ...]
    kinds: frozenset[str]
    make: Callable[..., StepResult]
    needs_if_made: tuple[str, ...] = ()
    makes_people: bool = False
    in_release: bool = True
    reads_source: bool = False


@dataclass(frozen=True)
class CheckDef:
    """Blocking checks on the result of a step, asked together.

    Attributes
    ----------
    name : of the folder of their answers
    of : the step that is checked
    needs : as those of a step; `of` among them
    checks : for a spec, the checks and what Dagster shows of each before it was first asked
    ask : called with the run and the stored result of each need by name; gives the questions
    facts : for a spec, what is stored beside the answers, so that the release can tell what was asked
    """

    name: str
    of: str
    needs: tuple[str, ...]
    checks: Callable[[ReleaseSpec], dict[str, str]]
    ask: Callable[..., list[Question]]
    facts: Callable[[ReleaseSpec], dict[str, Any]] = lambda _: {}
