"""What a step is: its declaration, the context that it works with, and its result. Dagster is not imported."""

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
from anon_pipeline.release.noise import Noise
from anon_pipeline.release.publication import Published
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.workers import ALONE, Workers

#: A need of a step: the last step before it that makes a table of people (raw, masked, or with cohorts).
PEOPLE = "people"
#: The step that publishes.
RELEASE = "release"
#: The step after it that copies the release to its destinations.
DESTINATIONS = "destinations"

#: Fewer people than this are processed in one process.
WORTH_PROCESSES = 2_000

log = logging.getLogger("anon_pipeline")


@dataclass(frozen=True)
class Run:
    """The context of a step.

    Attributes
    ----------
    spec : the policy
    home : the home, which holds all files
    engine : the engine for tables of people
    memory_limit : the largest memory to use, such as `4GB`; None if not set
    threads : the number of threads to use; None if not set
    ids : the ids of this run in Dagster and in MLflow, by the name of the program
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

    def noise(self, version: str) -> Noise:
        """The noise of figures of a release that are counted from the source."""
        return Noise(self.key, self.spec.dataset, version)

    @property
    def measuring_seed(self) -> int:
        """The seed of the random draws that measure a release, not of those that make it."""
        return measuring_seed(self.spec, self.home)

    @property
    def processes(self) -> Workers:
        """The worker processes that fit into the allowed threads and memory."""
        return processes(self.spec, self.threads, self.memory_limit)

    def workers(self, people: int) -> Workers:
        """The workers that train models and group people in parallel.

        For few people, processes would take more time than they save. Models that were defined elsewhere stay in this
        process, as pickle may be unable to store them.
        """
        few = people < WORTH_PROCESSES or not isinstance(self.spec.guide.model, str)
        return ALONE if few else self.processes

    def load_model(self, uri: str) -> Any:
        """A model that was logged in this home's MLflow store."""
        return Tracking(self.home).load_model(uri)


@dataclass(frozen=True)
class FittedGuide:
    """The guiding model, fitted on everybody, and the types of its input columns."""

    model: FittedModel
    types: Mapping[str, ColumnType]


@dataclass(frozen=True)
class StepResult:
    """The result of a step, besides the files that it has written.

    Attributes
    ----------
    facts : plain data that later steps need without opening the files
    rows : number of rows of the table that was made; None if none was made
    metadata : values that Dagster shows, by label; never a row of people
    metrics : numbers and texts that MLflow keeps
    data_version : a hash of the content, if there is a better one than that of the files
    published : the release, from the step that publishes
    guide : the model to register in MLflow, from the step that trains it
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
    name : name of the asset, and of the folder of its result
    needs : names of the stored results that `make` takes as arguments
    kinds : the tools that it works with, as Dagster shows them
    make : called with the run, the folder to write into, and the stored result (`stages.Stage`) of each need by name
    needs_if_made : further needs, if the graph of the spec has them; `make` has a default for each
    makes_people : whether the result is a table of people, which later steps need as `people`
    in_release : whether a release waits for it; other steps are started by hand
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
    """A battery of blocking checks on the result of a step, asked together.

    Attributes
    ----------
    name : name of the folder of their answers
    of : the step that is checked
    needs : as for a step; includes `of`
    checks : for a spec, the checks with the description that Dagster shows before each is first asked
    ask : called with the run and the stored result of each need by name; returns the questions
    facts : for a spec, the facts that are stored with the answers, so that the release knows what was asked
    """

    name: str
    of: str
    needs: tuple[str, ...]
    checks: Callable[[ReleaseSpec], dict[str, str]]
    ask: Callable[..., list[Question]]
    facts: Callable[[ReleaseSpec], dict[str, Any]] = lambda _: {}
