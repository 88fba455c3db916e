"""The commands `releases current` and `releases diff`: the current release, and the changes between two releases."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from anon_pipeline.cli.app import AsJson, print_json, releases
from anon_pipeline.cli.tables import show_difference
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home


@releases.command("current")
def current_release(
    dataset: Annotated[str, typer.Argument(help="The name of a dataset, as its spec has it.")],
    path: Annotated[bool, typer.Option("--path", help="Print the folder of the release, and not its version.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the release of a dataset that stands now, for a script that trains on it."""
    from anon_pipeline.release import ledger

    home = Home.default().existing()
    entry = ledger.current(home, dataset)
    if entry is None:
        raise InputError(f"{dataset}: no release of it stands; see `anon-pipeline releases list`")
    folder = home.releases / dataset / entry.version
    if not folder.is_dir():
        raise InputError(f"{folder}: is gone, and was the current release of {dataset}; restore it from a copy")
    if as_json:
        print_json({"dataset": dataset, "version": entry.version, "since": entry.time, "folder": str(folder)})
    else:
        sys.stdout.write(f"{folder if path else entry.version}\n")


@releases.command("diff")
def differing_releases(
    first: Annotated[str, typer.Argument(help="The former release.")],
    second: Annotated[str, typer.Argument(help="The later one.")],
    dataset: Annotated[str | None, typer.Option(help="Where several datasets have a release of this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """What changed from one release to another: people, classes, demands, loss, utility, roles; no one's values."""
    from anon_pipeline.release.difference import difference

    changes = difference(Home.default().existing(), first, second, dataset)
    if as_json:
        print_json({"first": first, "second": second, "changes": [asdict(change) for change in changes]})
    else:
        show_difference(first, second, changes)
