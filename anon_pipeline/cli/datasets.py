"""Commands that create or maintain a dataset: `init`, `profile` and `forget`."""

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
    Sheet,
    app,
    err,
    names_in,
    out,
    print_json,
    source_of,
)
from anon_pipeline.cli.tables import show_new_dataset
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.home import Home, data_folder, write_file
from anon_pipeline.home import scratch as scratch_folder
from anon_pipeline.imports import large_imports
from anon_pipeline.profiling.places import keys_of_place, kind_of_server
from anon_pipeline.spec import ReleaseSpec, Source

PLACE = (
    "A file of people (CSV, Excel, Parquet and others), a Parquet folder, an address (s3://, gs://, az://), or "
    "delta:PLACE, iceberg:PLACE."
)
Database = Annotated[
    str | None,
    typer.Option(
        help="The environment variable with the address of a PostgreSQL, MySQL, MariaDB or SQL Server server."
    ),
]
OfDatabase = Annotated[str | None, typer.Option("--table", help="The table of that server.")]
Union = Annotated[bool, typer.Option("--union-by-name", help="The files of a folder may differ in columns and types.")]
Names = Annotated[str | None, typer.Option(help="Of the columns of a CSV without a header: a,b,c.")]
Target = Annotated[
    str | None,
    typer.Option(help="The column that will be predicted: it is not asked for, and what says most of it is grouped."),
]


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="The dataset: small letters, digits and _.")],
    place: Annotated[
        str | None,
        typer.Option("--from", help=PLACE),
    ] = None,
    database: Database = None,
    of_database: OfDatabase = None,
    target: Target = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the table into the folder of the dataset.")] = False,
    query: Query = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    names: Names = None,
    union_by_name: Union = False,
    noise: Annotated[
        bool, typer.Option("--noise", help="Ask for what noisy questions need: unit, budget, domains.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write data/NAME/release.yaml, proposed from a table; it runs when a person has decided its open lines."""
    with large_imports():
        from anon_pipeline.engine.duckdb import DuckDBEngine
        from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset

    stated: dict[str, object] = {
        "table": of_database,
        "query": query,
        "sheet": sheet,
        "delimiter": delimiter,
        "encoding": encoding,
        "union_by_name": union_by_name or None,
    }
    source, table = _named("--from FILE", place, database, {**stated, **_without_header(names)})
    with scratch_folder() as scratch:
        wanted = DatasetRequest(name, table, copy, source, noise, target)
        new_dataset = start_dataset(DuckDBEngine(scratch), wanted, data_folder())
    if as_json:
        print_json(new_dataset.to_json())
        return
    show_new_dataset(name, new_dataset)


def _without_header(names: str | None) -> dict[str, object]:
    """The keys of a source without a header, whose columns have these names."""
    return {} if names is None else {"header": 0, "names": names_in(names)}


def _named(option: str, place: str | None, database: str | None, stated: dict[str, object]) -> tuple[Source, Path]:
    """The source in the options, and its file; if it is no file of this machine, the folder for relative names."""
    if (place is None) == (database is None):
        raise InputError(f"say where the table is: {option}, or --database NAME with --table or --query")
    if place is None:
        server = {"database": kind_of_server(str(database)), "connection": {"env": database}}
        return source_of({**server, **stated}), Path.cwd()
    source = source_of({**keys_of_place(place), **stated})
    return source, Path(place) if source.is_file else Path.cwd()


@app.command()
def profile(
    place: Annotated[str | None, typer.Argument(metavar="TABLE", help=PLACE)] = None,
    database: Database = None,
    of_database: OfDatabase = None,
    target: Target = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="Write the proposed spec to this file.")] = None,
    query: Query = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    names: Names = None,
    union_by_name: Union = False,
    as_json: AsJson = False,
) -> None:
    """Propose a spec as `init` does, without a dataset folder."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.profiling.new_dataset import profile_table, propose_spec_beside

    if out_file is not None and out_file.exists():
        raise InputError(f"{out_file}: exists already; a policy is not overwritten")
    stated: dict[str, object] = {
        "table": of_database,
        "query": query,
        "sheet": sheet,
        "delimiter": delimiter,
        "encoding": encoding,
        "union_by_name": union_by_name or None,
    }
    source, table = _named("TABLE", place, database, {**stated, **_without_header(names)})
    with scratch_folder() as scratch:
        profiled = profile_table(DuckDBEngine(scratch), table, source, target)
    if out_file is not None:
        try:
            write_file(out_file, propose_spec_beside(profiled, source, out_file), public=True)
        except OSError as error:
            raise InputError(f"{out_file}: cannot be written ({error.strerror})") from None
    if as_json:
        print_json(profiled.to_json())
    elif out_file is None:
        sys.stdout.write(propose_spec_beside(profiled, source, Path("release.yaml")))
    else:
        err.print(f"wrote {out_file}; decide its lines that say `decide`, then run it", soft_wrap=True)


@app.command()
def forget(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    identifiers: Annotated[Path, typer.Argument(help="A text file with an identifier of a person per line.")],
    as_json: AsJson = False,
) -> None:
    """Forget people in what is kept of former releases, after they were taken out of the source."""
    from anon_pipeline.pipeline.forgetting import forget_people

    policy = ReleaseSpec.load(spec)
    forgotten = forget_people(policy, Home.default().prepare(), identifiers)
    if as_json:
        told = {"identifiers": forgotten.identifiers, "found": forgotten.known, "entries": forgotten.entries}
        print_json({"dataset": policy.dataset, **told})
    else:
        out.print(
            f"{forgotten.known:,} of {number_of(forgotten.identifiers, 'identifier', 'identifiers')} "
            f"{'was' if forgotten.known == 1 else 'were'} found; "
            f"{number_of(forgotten.entries, 'entry', 'entries')} about them "
            f"{'was' if forgotten.entries == 1 else 'were'} replaced by random numbers",
            highlight=False,
            soft_wrap=True,
        )
