"""The commands on a release and its source: `releases open`, `releases check-opening` and `releases compare`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from anon_pipeline.cli.app import REFUSED, AsJson, OfDataset, err, print_json, releases
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file
from anon_pipeline.spec import ReleaseSpec


@releases.command("open")
def open_release(
    version: Annotated[str, typer.Argument(help="A release, as `anon-pipeline releases list` names it.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write it to this new file, which only you may read; else to stdout.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Where several datasets have a release of this version.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, with --out too.")] = False,
) -> None:
    """Print what an auditor needs to check the source of a release; who has it can confirm guesses at that source."""
    from anon_pipeline.release.opening import opening_of

    written = json.dumps(opening_of(Home.default(), version, dataset).to_json(), indent=2) + "\n"
    if out_file is None:
        sys.stdout.write(written)
        return
    if out_file.exists():
        raise InputError(f"{out_file}: exists already; name a new file")
    try:
        write_file(out_file.absolute(), written)
    except OSError as error:
        raise InputError(f"{out_file}: cannot be written ({error.strerror})") from None
    if as_json:
        sys.stdout.write(json.dumps({"file": str(out_file)}) + "\n")
    else:
        typer.echo(f"wrote {out_file}; give it to the auditor alone", err=True)


@releases.command("check-opening")
def check_opening(
    opening: Annotated[Path, typer.Argument(help="The file that the publisher gave you, of `releases open`.")],
    spec: Annotated[Path, typer.Option(help="The release.yaml of the release, or the folder it lies in.")],
    source: Annotated[
        Path | None, typer.Option(help="The source to check; where absent, the one that the spec names.")
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="The manifest.json of the release; where absent, the one in this home.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an opening against a release and a source: this is what it was made from (exit 0), or not (3)."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.home import scratch
    from anon_pipeline.release import opening as openings

    opened = openings.Opening.read(opening)
    policy = ReleaseSpec.load(spec)
    if source is not None:
        policy = policy.replaced({"source.path": str(source.absolute())})
    file = manifest or Home.default().releases / opened.opens.dataset / opened.opens.version / "manifest.json"
    with scratch() as folder:  # it holds the source, so a killed process must not leave it for good
        problems = openings.check_opening(opened, openings.read_manifest(file), policy, DuckDBEngine(folder), folder)
    if as_json:
        sys.stdout.write(json.dumps({"holds": not problems, "problems": problems}, indent=2) + "\n")
    elif problems:
        for problem in problems:
            typer.echo(problem, err=True)
    else:
        sys.stdout.write(
            f"{opened.opens.dataset}/{opened.opens.version} commits to this source, read as its policy says\n"
        )
    raise typer.Exit(REFUSED if problems else 0)


@releases.command("compare")
def compare_with_source(
    version: Annotated[str, typer.Argument(help="A release, as `anon-pipeline releases list` names it.")],
    spec: Annotated[Path, typer.Option(help="The release.yaml of the release, or the folder it lies in.")],
    dataset: OfDataset = None,
    as_json: AsJson = False,
) -> None:
    """Put a release beside its source, in a private page: columns, ties, utility; of k people and more at a time."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.home import scratch
    from anon_pipeline.release.comparison import compare

    home, policy = Home.default().existing(), ReleaseSpec.load(spec)
    with scratch(home.private_folder("scratch")) as folder:
        compared = compare(home, version, policy, DuckDBEngine(folder), folder, dataset)
    if as_json:
        print_json(compared.to_json())
        return
    err.print(f"wrote {compared.page}; it tells of people who are not released", soft_wrap=True)
