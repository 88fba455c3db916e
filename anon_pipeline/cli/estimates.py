"""The command `estimate`: counts of a column that was released under local differential privacy."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from anon_pipeline.cli.app import AsJson, app
from anon_pipeline.cli.terminal import Terminal
from anon_pipeline.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from anon_pipeline.masking.base import Technique


@app.command()
def estimate(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet table: a release, or what `mask` wrote.")],
    column: Annotated[str, typer.Option(help="The column, shown by randomized_response or unary_encoding.")],
    spec: Annotated[
        Path | None, typer.Option(help="The spec it was made by; where absent, the manifest beside the table.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how many people have each category of a column under local differential privacy: unbiased, 95 %."""
    import pyarrow as pa

    from anon_pipeline.masking.frequency_estimates import estimate_counts, randomizer_of

    step, reported = randomizer_of(_steps(table, column, spec), column), _read(table, column)
    try:
        estimates = estimate_counts(reported, step)
    except pa.ArrowException:  # its own words quote values
        raise InputError(f"{table}: column {column}: it holds {reported.type} values, which no step reports") from None
    except ValueError as error:
        raise InputError(f"{table}: column {column}: {error}") from None
    if as_json:
        sys.stdout.write(json.dumps({"column": column, **asdict(estimates)}, indent=2) + "\n")
        return
    from rich.table import Table

    title = f"{column}: {estimates.people:,} people, {estimates.technique} at epsilon {estimates.epsilon:g}"
    shown_table = Table(title=title, title_justify="left")
    for heading in ("category", "reported", "estimated count", "95 % interval"):
        shown_table.add_column(heading, justify="left" if heading == "category" else "right")
    for category in estimates.counts:
        interval = f"{category.low:,.0f} to {category.high:,.0f}"
        shown_table.add_row(category.category, f"{category.reported:,}", f"{category.count:,.0f}", interval)
    Terminal().print(shown_table)


def _read(table: Path, column: str) -> pa.Array:
    """One column of a table; from a CSV file as text, so that a report keeps leading zeros."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    if not table.exists():
        raise InputError(f"{table}: there is no such file")
    try:
        if table.suffix.lower() == ".parquet":
            read = pq.read_table(table, columns=[column], partitioning=None)
        else:
            as_text: Any = pacsv.ConvertOptions(
                include_columns=[column],
                column_types={column: pa.string()},
                null_values=[""],
                strings_can_be_null=True,
            )
            read = pacsv.read_csv(table, convert_options=as_text)
        return read.column(column).combine_chunks()
    except OSError as error:  # its own words quote the path
        reason = "no CSV or Parquet file" if error.errno is None else os.strerror(error.errno)
        raise InputError(f"{table}: cannot be read ({reason})") from None
    except (pa.ArrowException, KeyError):
        raise InputError(f"{table}: is no CSV or Parquet table with a column {column}") from None


def _steps(table: Path, column: str, spec: Path | None) -> list[Technique]:
    """The masking steps of the column, from the spec or from the manifest beside the table."""
    from anon_pipeline.masking.catalog import read_step
    from anon_pipeline.spec import ReleaseSpec

    if spec is not None:
        policy = ReleaseSpec.load(spec)
        if column not in policy.columns:
            raise InputError(f"--column: the spec has no column {column}")
        return cast("list[Technique]", list(policy.columns[column].steps))
    manifest = table.parent / "manifest.json"
    try:
        columns = json.loads(manifest.read_text(encoding="utf-8"))["spec"]["columns"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{manifest}: no manifest of a release lies there; name the spec with --spec") from None
    if column not in columns:
        raise InputError(f"--column: the release has no column {column}")
    try:
        return [read_step(step) for step in cast(list[object], columns[column].get("steps") or [])]
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"{manifest}: the steps of {column} cannot be read; name the spec with --spec") from None
