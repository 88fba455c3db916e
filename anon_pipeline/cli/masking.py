"""Commands on masking alone: `steps`, `mask` and `reveal`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from anon_pipeline.cli.app import AsJson, app, err, print_json
from anon_pipeline.cli.tables import show_masking
from anon_pipeline.home import Home
from anon_pipeline.spec import ReleaseSpec


@app.command()
def steps(
    name: Annotated[str | None, typer.Argument(help="One technique; all where absent.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the masking techniques: parameters, what they do, what they guarantee, when to use which."""
    from anon_pipeline.cli.techniques import as_text, techniques

    rows = techniques(name)
    if as_json:
        print_json({"techniques": [asdict(row) for row in rows]})
    else:
        sys.stdout.write("\n\n".join(as_text(row, name is not None) for row in rows) + "\n")


@app.command()
def mask(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    out_file: Annotated[Path, typer.Option("--out", help="A CSV or Parquet file, new; only you may read it.")],
    as_json: AsJson = False,
) -> None:
    """Apply the masking steps of a spec without grouping anybody. This is no release, and proves nothing."""
    from anon_pipeline.pipeline.masked_files import mask_source

    masked = mask_source(ReleaseSpec.load(spec), Home.default().prepare(), out_file)
    err.print(f"anon-pipeline: {masked.warning}", highlight=False, soft_wrap=True)
    reports = [asdict(report) for report in masked.reports]
    if as_json:
        print_json({"file": str(out_file), "rows": masked.rows, "groups": masked.groups, "masking": reports})
        return
    show_masking(out_file.name, masked)


@app.command()
def reveal(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet table that holds tokens.")],
    spec: Annotated[Path, typer.Option(help="The spec that encrypted the column.")],
    column: Annotated[str, typer.Option(help="The column whose tokens are turned back.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="A CSV or Parquet file, new; only you may read it. Else CSV on stdout.")
    ] = None,
) -> None:
    """Turn the tokens of an encrypted column back, for who holds the key."""
    from anon_pipeline.pipeline.masked_files import as_csv, reveal_column

    revealed = reveal_column(table, ReleaseSpec.load(spec), column, out_file)
    if out_file is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(as_csv(revealed))
    else:
        err.print(f"wrote {out_file}, which names people again", highlight=False, soft_wrap=True)
