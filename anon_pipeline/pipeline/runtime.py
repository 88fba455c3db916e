"""Where a run lives, as a Dagster resource, and the frame around every step's work."""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg

from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.spark import SparkEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, out_of_space, write_file
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.pipeline.tracked_release import parameters
from anon_pipeline.pipeline.tracking import Tracking
from anon_pipeline.spec import ReleaseSpec

BAD_INPUT, REFUSED, INTERNAL = 2, 3, 1

ENGINES: dict[str, type[DuckDBEngine] | type[SparkEngine]] = {
    DuckDBEngine.name: DuckDBEngine,
    SparkEngine.name: SparkEngine,
}


class Runtime(dg.ConfigurableResource):
    """Where a run lives and what it counts with; tests and commands swap it through `build_definitions`."""

    home: str
    engine_name: str = "duckdb"
    memory_limit: str | None = None
    threads: int | None = None

    def place(self) -> Home:
        return Home(Path(self.home)).prepare()

    def engine(self, spec: ReleaseSpec) -> Engine:
        """The engine, with what the command line says, else the spec, of the machine's memory and threads."""
        memory_limit = self.limit(spec)
        threads = self.threads or spec.engine.threads
        if self.engine_name not in ENGINES:
            raise InputError(f"engine: {self.engine_name!r} is not available; use {' or '.join(ENGINES)}")
        return ENGINES[self.engine_name](self.place().private_folder("spill"), memory_limit, threads)

    def limit(self, spec: ReleaseSpec) -> str | None:
        """The memory that may be used, as the command line says, else the spec; None where neither does."""
        return self.memory_limit or spec.engine.memory_limit

    def run(self, spec: ReleaseSpec, ids: Mapping[str, str] | None = None) -> Run:
        """What the steps of a dataset work with; `ids` are those of the run in Dagster and in MLflow."""
        return Run(spec, self.place(), self.engine(spec), self.limit(spec), self.threads, ids or {})

    def tracking(self) -> Tracking:
        return Tracking(self.place())

    @contextmanager
    def step(self, context: Any, spec: ReleaseSpec, name: str) -> Iterator[dict[str, Any]]:
        """The frame around a step: one step of a dataset at a time, an MLflow run, and no exception that leaks.

        What the block puts into the yielded mapping is logged to MLflow: numbers as metrics, texts as tags.
        A failure that cannot pass a second time is never retried.
        """
        log.info("%s: %s ...", spec.dataset, name)
        try:
            with (
                self.place().lock(f"dataset-{spec.dataset}"),
                self.tracking().step(spec.dataset, context.run.run_id, name, parameters(spec)) as metrics,
            ):
                yield metrics
        except InputError as error:
            raise _failure(str(error), BAD_INPUT) from None
        except Refused as error:
            raise _failure(str(error), REFUSED) from None
        except MemoryError:
            raise _failure(
                f"{name}: out of memory; lower guide.sample or the number of quasi-identifiers", BAD_INPUT
            ) from None
        except Exception as error:
            if out_of_space(error):
                raise _failure(f"{name}: the disk is full; free or allow disk space", BAD_INPUT) from None
            if isinstance(error, OSError):
                where = f" {Path(error.filename).name}" if error.filename else " a file"
                raise _failure(f"{name}: cannot read or write{where}: {error.strerror}", BAD_INPUT) from None
            # A library's message or traceback may quote a person's row, and Dagster's log is readable by all who
            # can open the UI: the whole story goes to the private zone, and only the kind of the error leaves.
            story = self.place().private_folder("errors") / f"{context.run.run_id}-{name}.txt"
            with suppress(OSError):
                write_file(story, traceback.format_exc())
            raise _failure(
                f"{name}: internal error ({type(error).__name__}); its story is in private/errors/{story.name}",
                INTERNAL,
            ) from None


def _failure(sentence: str, exit_code: int) -> dg.Failure:
    return dg.Failure(description=sentence, metadata={"exit_code": exit_code}, allow_retries=False)
