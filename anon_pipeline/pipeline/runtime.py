"""The home and engine of a run, as a Dagster resource, and the frame around the work of every step."""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field, ValidationError

from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.spark import SparkEngine
from anon_pipeline.errors import InputError, NotDelivered, Refused, Unavailable
from anon_pipeline.home import NO_MEMORY, NOT_OPENED, Home, fault_of_records, out_of_memory, out_of_space, write_file
from anon_pipeline.pipeline import refusals
from anon_pipeline.pipeline.event_log import lines_in
from anon_pipeline.pipeline.step import Run
from anon_pipeline.pipeline.stores import LOST, server_is_lost
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.pipeline.tracking.tracked_release import parameters
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.parts import EngineSettings

BAD_INPUT, REFUSED, INTERNAL = 2, 3, 1
#: The release is published, but one of its destinations does not have it yet.
NOT_DELIVERED = 4

#: Metadata of a failed step in Dagster: the exit code, whether the same run may succeed later, and what was demanded,
#: without a measured figure, if the step refused and said so.
EXIT_CODE, MAY_PASS, DEMANDED = "exit_code", "may_pass_later", "demanded"
#: The key of this resource in Dagster.
RUNTIME = "runtime"

ENGINES: dict[str, type[DuckDBEngine] | type[SparkEngine]] = {
    DuckDBEngine.name: DuckDBEngine,
    SparkEngine.name: SparkEngine,
}


class EngineName(Enum):
    """The engines by the names that the launchpad offers."""

    duckdb = DuckDBEngine.name
    spark = SparkEngine.name


class Machine(dg.Config):
    """What the launchpad may choose; the release does not depend on it."""

    engine: EngineName | None = Field(None, description="Where tables of people are worked on.")
    memory: str | None = Field(
        None, description="Memory limit of the engine and the processes, as 4GB; the spec's where absent."
    )
    threads: int | None = Field(
        None, description="Threads and processes; the spec's where absent, and all cores where it states none."
    )


class Runtime(dg.ConfigurableResource):
    """The home of a run, its engine, and the memory and threads that it may use; see `build_definitions`."""

    home: str
    engine_name: str = "duckdb"
    memory_limit: str | None = None
    threads: int | None = None

    def chosen(self, spec: ReleaseSpec) -> dict[str, Any]:
        """The initial values of the launchpad for a dataset: those of this runtime, otherwise those of the spec."""
        chosen = {
            "engine": self.engine_name,
            "memory": self.limit(spec),
            "threads": spec.engine.threads if self.threads is None else self.threads,
        }
        return {name: value for name, value in chosen.items() if value is not None}

    def as_resource(self) -> dg.ResourceDefinition:
        """This runtime for Dagster, with the settings that the launchpad may choose; it may not choose the home."""

        def configured(context: dg.InitResourceContext) -> "Runtime":
            machine = Machine(**context.resource_config)
            return Runtime(
                home=self.home,
                engine_name=self.engine_name if machine.engine is None else machine.engine.value,
                memory_limit=machine.memory or self.memory_limit,
                threads=self.threads if machine.threads is None else machine.threads,
            )

        return dg.ResourceDefinition(
            configured, Machine.to_config_schema().as_field(), description="What a run may use of the machine."
        )

    def place(self) -> Home:
        return Home(Path(self.home)).prepare()

    def engine(self, spec: ReleaseSpec) -> Engine:
        """The engine, with memory and threads as in the command line, otherwise as in the spec."""
        memory_limit = self.limit(spec)
        threads = spec.engine.threads if self.threads is None else self.threads
        try:
            EngineSettings(memory_limit=memory_limit, threads=threads)
        except ValidationError:
            raise InputError(
                f"memory and threads: {memory_limit} and {threads} cannot be used; write for example 4GB and 2"
            ) from None
        if self.engine_name not in ENGINES:
            raise InputError(f"engine: {self.engine_name!r} is not available; use {' or '.join(ENGINES)}")
        return ENGINES[self.engine_name](self.place().private_folder("spill"), memory_limit, threads)

    def limit(self, spec: ReleaseSpec) -> str | None:
        """The memory limit of the command line, otherwise that of the spec; None if neither sets one."""
        return self.memory_limit or spec.engine.memory_limit

    def run(self, spec: ReleaseSpec, ids: Mapping[str, str] | None = None) -> Run:
        """The context of the steps of a dataset; `ids` are those of the run in Dagster and in MLflow."""
        return Run(spec, self.place(), self.engine(spec), self.limit(spec), self.threads, ids or {})

    def tracking(self) -> Tracking:
        return Tracking(self.place())

    @contextmanager
    def step(self, context: Any, spec: ReleaseSpec, name: str) -> Iterator[dict[str, Any]]:
        """The frame around a step: one step of a dataset at a time, an MLflow run, and exceptions without private data.

        The items of the yielded mapping are logged to MLflow: numbers as metrics, texts as tags. Dagster retries
        nothing; the failure says whether the sensor may (pipeline/automation/next_run.py).
        """
        try:
            with (
                lines_in(context.log, f"{spec.dataset}: {name} ..."),
                self.place().lock(f"dataset-{spec.dataset}"),
                self.tracking().step(spec.dataset, context.run.run_id, name, parameters(spec)) as metrics,
            ):
                yield metrics
        except NotDelivered as error:
            raise _failure(str(error), NOT_DELIVERED, may_pass=True) from None
        except Unavailable as error:
            raise _failure(str(error), BAD_INPUT, may_pass=True) from None
        except InputError as error:
            raise _failure(str(error), BAD_INPUT) from None
        except Refused as error:
            refusals.keep(self.place(), spec, context.run.run_id, name, reasons=error.failed)
            demanded = None if error.demanded is None else "; ".join(error.demanded)
            raise _failure("; ".join(error.failed), REFUSED, demanded=demanded) from None
        except MemoryError:
            raise _failure(
                f"{name}: out of memory; lower guide.sample or the number of quasi-identifiers",
                BAD_INPUT,
                may_pass=True,
            ) from None
        except Exception as error:
            if out_of_space(error):
                raise _failure(
                    f"{name}: the disk is full; free or allow disk space", BAD_INPUT, may_pass=True
                ) from None
            if out_of_memory(error):
                raise _failure(f"{name}: {NO_MEMORY}", BAD_INPUT, may_pass=True) from None
            if (fault := fault_of_records(error)) is not None:
                raise _failure(f"{name}: {fault}", BAD_INPUT, may_pass=fault == NOT_OPENED) from None
            if server_is_lost(error):
                raise _failure(f"{name}: {LOST}", BAD_INPUT, may_pass=True) from None
            if isinstance(error, OSError):
                where = f" {Path(error.filename).name}" if error.filename else " a file"
                raise _failure(
                    f"{name}: cannot read or write{where}: {error.strerror}", BAD_INPUT, may_pass=True
                ) from None
            # A library's message or traceback may quote a person's row, and everybody who can open the UI can read
            # Dagster's log. So the traceback is written to the private zone, and only the kind of the error leaves.
            message = internal_error(self.place(), f"{context.run.run_id}-{name}.txt", error)
            raise _failure(f"{name}: {message}", INTERNAL, may_pass=True) from None


def internal_error(home: Home, file: str, error: Exception) -> str:
    """The public message about an unexpected error; its traceback is written to a file of the private zone."""
    with suppress(OSError):
        write_file(home.private_folder("errors") / file, traceback.format_exc())
    return f"internal error ({type(error).__name__}); its story is in private/errors/{file}"


def _failure(sentence: str, exit_code: int, may_pass: bool = False, demanded: str | None = None) -> dg.Failure:
    metadata: dict[str, Any] = {EXIT_CODE: exit_code, MAY_PASS: dg.MetadataValue.bool(may_pass)}
    metadata |= {} if demanded is None else {DEMANDED: demanded}
    return dg.Failure(description=sentence, metadata=metadata, allow_retries=False)
