"""Commands that run a spec: `run`, `sweep`, and `ui`, which runs it on a schedule."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from anon_pipeline.cli.app import (
    BAD_INPUT,
    REFUSED,
    AllowCode,
    AsJson,
    EngineName,
    MemoryLimit,
    app,
    err,
    print_json,
    show_progress,
)
from anon_pipeline.cli.streams import printed_aside
from anon_pipeline.cli.tables import show_dry_run, show_release, show_tradeoff
from anon_pipeline.errors import InputError
from anon_pipeline.home import DATA_VARIABLE, Home, data_folder
from anon_pipeline.imports import large_imports
from anon_pipeline.spec import ReleaseSpec, TradeOff, permission
from anon_pipeline.spec.parts import MOST_THREADS


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    engine: EngineName = "duckdb",
    threads: Annotated[
        int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads and processes; all cores where absent.")
    ] = None,
    memory: MemoryLimit = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say whether it would run, its steps, and about what it would cost.")
    ] = False,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Run the whole graph of a dataset: released (exit 0), bad input (2), refused by a check (3); 4 where a
    destination does not have the release yet."""
    if allow_code:
        permission.allow_code()
    policy = ReleaseSpec.load(spec)
    if dry_run:
        _run_dry(policy, engine, threads, memory, as_json)
        return
    _refuse_before_work(policy, as_json)
    home = Home.default().prepare()
    show_progress()
    from anon_pipeline.pipeline.processes import processes, warm

    warm(processes(policy, threads, memory))
    with large_imports():
        from anon_pipeline.pipeline.launch import launch
        from anon_pipeline.pipeline.runtime import Runtime

    runtime = Runtime(home=str(home.root), engine_name=engine, threads=threads, memory_limit=memory)
    with printed_aside():
        outcome = launch(policy, home, runtime)
    if as_json:
        print_json(outcome.to_json())
    elif outcome.released:
        show_release(outcome.manifest, outcome.folder, outcome.new)
        for sentence in outcome.failures:
            _print_failure("Released, but", sentence)
    else:
        for sentence in outcome.failures:
            _print_failure("Refused" if outcome.exit_code == REFUSED else "Not released", sentence)
        for report in outcome.reports:
            err.print(f"What to change: {report}", highlight=False, soft_wrap=True)
    raise typer.Exit(outcome.exit_code)


def _print_failure(what: str, sentence: str) -> None:
    err.print(Text.assemble((what, "bold red"), ": ", sentence), soft_wrap=True)


def _run_dry(policy: ReleaseSpec, engine: str, threads: int | None, memory: str | None, as_json: bool) -> None:
    with large_imports():
        from anon_pipeline.pipeline.dry_run import dry_run

    planned = dry_run(policy, Home.default(), engine, threads, memory)
    if as_json:
        print_json(planned.to_json())
    else:
        show_dry_run(planned)


def _refuse_before_work(policy: ReleaseSpec, as_json: bool) -> None:
    """Report an early refusal in the words and the JSON of a run that ended with it."""
    from anon_pipeline.pipeline.before_work import require_startable

    try:
        require_startable(policy)
    except InputError as error:
        if as_json:
            print_json({"released": False, "exit_code": BAD_INPUT, "run_id": None, "failures": [str(error)]})
        else:
            _print_failure("Not released", str(error))
        raise typer.Exit(BAD_INPUT) from None


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    k: Annotated[str | None, typer.Option("--k", help="Values of k: 2,5,10.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Values at a path of the spec: privacy.t_closeness.t=0.2,0.4; may be repeated."),
    ] = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the files; var/frontier/DATASET where absent.")
    ] = None,
    utility: Annotated[bool, typer.Option(help="Measure accuracy before and after, which takes longest.")] = True,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Privacy-utility trade-off: what every combination of settings would cost and protect. Nothing is released."""
    if allow_code:
        permission.allow_code()
    policy = ReleaseSpec.load(spec)
    if policy.is_synthetic:
        raise InputError("sweep: prices groupings of people, and a synthetic release makes none")
    varied = TradeOff.parse(k, set_ or []) if k is not None or set_ else policy.frontier
    if varied is None:
        raise InputError("say what to vary with --k or --set, for example --k 2,5,10, or write a frontier: in the spec")
    settings = varied.settings()
    for setting in settings:
        policy.replaced(setting)  # reported before any work starts
    home = Home.default().prepare()
    folder = home.root / "frontier" / policy.dataset if out_folder is None else out_folder
    show_progress()
    with large_imports():
        from anon_pipeline.pipeline.runtime import Runtime
        from anon_pipeline.pipeline.tradeoff import measure_source
        from anon_pipeline.report import tradeoff

    with printed_aside():
        points = measure_source(Runtime(home=str(home.root)).run(policy), settings, utility)
    files = tradeoff.write(points, policy.dataset, folder)
    if as_json:
        content = {"dataset": policy.dataset, "folder": str(folder), "prices": tradeoff.as_json(points)}
        print_json(content)
        return
    show_tradeoff(policy.dataset, points, files)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the loopback address.")] = 3000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="NAME or NAME:PORT under which a proxy or tunnel reaches it; may be repeated."),
    ] = None,
) -> None:
    """Open Dagster's web UI and daemon on loopback, for the datasets under data/."""
    from anon_pipeline.pipeline.instance import dagster_home
    from anon_pipeline.pipeline.web.guard import ALLOW_HOSTS

    home, here = Home.default().prepare(), Path.cwd()
    folder = dagster_home(home)
    environment = os.environ | {
        "DAGSTER_HOME": str(folder),
        "ANON_PIPELINE_HOME": str(home.root),
        DATA_VARIABLE: str(here / data_folder()),
        ALLOW_HOSTS: ",".join([*(allow_host or []), os.environ.get(ALLOW_HOSTS, "")]),
    }
    os.chdir(folder)  # otherwise Dagster warns about a dagster.yaml in the current folder, which has the same content
    quietly = [
        sys.executable,
        "-W",
        "ignore:Function `dev_command` is superseded",
        "-m",
        "anon_pipeline.pipeline.web.ui",
    ]
    os.execve(  # noqa: S606 (on purpose without a shell)
        sys.executable,
        [*quietly, "-p", str(port), "-d", str(here), "-m", "anon_pipeline.definitions"],
        environment,
    )
