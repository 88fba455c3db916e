"""Commands that open pages of the pipeline's tools: `experiments` (MLflow), `checks` (Great Expectations)."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Annotated

import typer

from anon_pipeline.cli.app import app, err
from anon_pipeline.home import Home


@app.command()
def experiments(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the loopback address.")] = 5000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="NAME or NAME:PORT under which a proxy or tunnel reaches it; may be repeated."),
    ] = None,
) -> None:
    """Open MLflow's UI on loopback, for reading: a run per release, to compare them, and the guides as models."""
    home = Home.default().prepare()
    from anon_pipeline.pipeline.web.experiments import serve
    from anon_pipeline.pipeline.web.guard import ALLOW_HOSTS

    told = f"MLflow shows what was run in {home.root} at http://127.0.0.1:{port} (Ctrl-C ends it)"
    err.print(told, soft_wrap=True)
    serve(home, port, [*(allow_host or []), *os.environ.get(ALLOW_HOSTS, "").split(",")])


@app.command()
def checks(
    dataset: Annotated[str | None, typer.Argument(help="The name of a dataset; all where absent.")] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the pages lie, and open nothing.")] = False,
) -> None:
    """Open the pages of what was checked, and how it was answered: the Data Docs of Great Expectations."""
    home = Home.default().existing()
    from anon_pipeline.pipeline.expectations.data_docs import build

    first = build(home, dataset)
    if path or not webbrowser.open(first.as_uri()):
        sys.stdout.write(f"{first}\n")
