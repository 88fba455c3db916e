"""The job for a spec whose steps or checks have changed since the code location was loaded: it runs the spec anew.

Dagster follows the plan that it made when it loaded the code location. So it cannot run a step or a check that was
added later. This job starts the command instead, as a person would; the command's run is recorded like all others.
"""

import json
import os
import subprocess
import sys
from typing import Any

import dagster as dg

from anon_pipeline.home import VARIABLE
from anon_pipeline.pipeline.run_tags import DATASET_TAG
from anon_pipeline.pipeline.runtime import BAD_INPUT, EXIT_CODE, MAY_PASS, REFUSED, Runtime
from anon_pipeline.pipeline.technical_names import OWNER, owners
from anon_pipeline.spec import ReleaseSpec

COMMAND = [sys.executable, "-c", "from anon_pipeline.cli import main; main()", "run"]


def anew_job(dataset: str) -> str:
    """The name of the job."""
    return f"{dataset}_release_anew"


def build_anew_job(spec: ReleaseSpec, runtime: Runtime) -> dg.JobDefinition:
    """A job with one step, the command; the step fails only if the command recorded no run of its own.

    The runtime is not a resource of the job: Dagster copies a sensor whose job has resources, and warns about the copy.
    """

    @dg.op(name=f"{spec.dataset}_run")
    def run_the_command(context: dg.OpExecutionContext) -> None:
        ended = subprocess.run(  # noqa: S603 (this package's own command)
            [*COMMAND, str(spec.folder), "--json", *_machine(runtime)],
            env={**os.environ, VARIABLE: str(runtime.place().root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the event log of its own run has the same lines
            text=True,
            check=False,
        )
        printed = _printed(ended.stdout)
        if printed.get("run_id") is not None:
            context.log.info(f"run {printed['run_id']} ended with exit code {ended.returncode}")
            return
        raise dg.Failure(
            description=str(printed.get("error", "the command ended without a word")),
            metadata={
                EXIT_CODE: ended.returncode,
                MAY_PASS: dg.MetadataValue.bool(ended.returncode not in (BAD_INPUT, REFUSED)),
            },
            allow_retries=False,
        )

    @dg.job(
        name=anew_job(spec.dataset),
        executor_def=dg.in_process_executor,
        description=f"Releases {spec.dataset} as its spec is now, where that has other steps or checks than this code "
        "location knows. The sensor starts it.",
        tags={DATASET_TAG: spec.dataset},
        metadata={OWNER: owners(spec.owner)[0]},
    )
    def release_anew() -> None:
        run_the_command()

    return release_anew


def _machine(runtime: Runtime) -> list[str]:
    """The runtime's settings of the machine, as arguments of the command."""
    stated = {"--engine": runtime.engine_name, "--threads": runtime.threads, "--memory": runtime.memory_limit}
    return [str(part) for name, value in stated.items() if value is not None for part in (name, value)]


def _printed(output: str) -> dict[str, Any]:
    """The object that the command printed; empty if the command was killed."""
    try:
        printed = json.loads(output)
    except ValueError:
        return {}
    return printed if isinstance(printed, dict) else {}
