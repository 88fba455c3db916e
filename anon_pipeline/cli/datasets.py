"""Commands that begin or tend a dataset: `init`, `profile` and `forget`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from anon_pipeline.cli.app import (
    AsJson,
    Delimiter,
    Encoding,
    Query,
    app,
    err,
    names_in,
    out,
    print_json,
    source_of,
)
from anon_pipeline.cli.tables import show_new_dataset
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, data_folder, write_file
from anon_pipeline.home import scratch as scratch_folder
from anon_pipeline.imports import large_imports
from anon_pipeline.spec import ReleaseSpec


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="The dataset: small letters, digits and _.")],
    table: Annotated[
        Path | None,
        typer.Option("--from", help="A file of people (CSV, Excel, Parquet and others), or a Parquet folder."),
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="The environment variable with the address of a PostgreSQL server.")
    ] = None,
    of_database: Annotated[str | None, typer.Option("--table", help="The table of that server.")] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the table into the folder of the dataset.")] = False,
    query: Query = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Annotated[str | None, typer.Option(help="Of a workbook; its only filled one where absent.")] = None,
    names: Annotated[str | None, typer.Option(help="Of the columns of a CSV without a header: a,b,c.")] = None,
    noise: Annotated[
        bool, typer.Option("--noise", help="Ask for what noisy questions need: unit, budget, domains.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write data/NAME/release.yaml, proposed from a table; it runs when a person has decided its open lines."""
    with large_imports():
        from anon_pipeline.engine.duckdb import DuckDBEngine
        from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset

    if (table is None) == (database is None):
        raise InputError("say where the table is: --from FILE, or --database NAME with --table or --query")
    server = {"database": "postgresql", "connection": {"env": database}}
    place = {"path": str(table)} if table is not None else server
    stated = {"table": of_database, "query": query, "sheet": sheet, "delimiter": delimiter, "encoding": encoding}
    unnamed = {} if names is None else {"header": 0, "names": names_in(names)}
    source = source_of({**place, **stated, **unnamed})
    with scratch_folder() as scratch:
        wanted = DatasetRequest(name, table if table is not None else Path.cwd(), copy, source, noise)
        new_dataset = start_dataset(DuckDBEngine(scratch), wanted, data_folder())
    if as_json:
        print_json(new_dataset.to_json())
        return
    show_new_dataset(name, new_dataset)


@app.command()
def profile(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file, or a folder of Parquet files.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="Write the proposed spec to this file.")] = None,
    query: Query = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Propose a spec as `init` does, without a dataset folder."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.profiling.new_dataset import profile_table, propose_spec_beside

    if out_file is not None and out_file.exists():
        raise InputError(f"{out_file}: exists already; a policy is not overwritten")
    source = source_of({"path": str(table), "query": query, "delimiter": delimiter, "encoding": encoding})
    with scratch_folder() as scratch:
        profiled = profile_table(DuckDBEngine(scratch), table, source)
    if out_file is not None:
        try:
            write_file(out_file, propose_spec_beside(profiled, table, out_file), public=True)
        except OSError as error:
            raise InputError(f"{out_file}: cannot be written ({error.strerror})") from None
    if as_json:
        print_json(profiled.to_json())
    elif out_file is None:
        sys.stdout.write(propose_spec_beside(profiled, table, Path("release.yaml")))
    else:
        err.print(f"wrote {out_file}; decide its lines that say `decide`, then run it", markup=False)


@app.command()
def forget(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    identifiers: Annotated[Path, typer.Argument(help="A text file with an identifier of a person per line.")],
    as_json: AsJson = False,
) -> None:
    """Forget people in what is kept of former releases, after they were taken out of the source."""
    from anon_pipeline.pipeline.sequential_publication import forget_people

    policy = ReleaseSpec.load(spec)
    forgotten = forget_people(policy, Home.default().prepare(), identifiers)
    if as_json:
        print_json({"dataset": policy.dataset, "entries": forgotten})
    else:
        out.print(f"{forgotten:,} entries about them were replaced by random numbers", highlight=False)
