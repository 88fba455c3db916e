"""The command line: its two groups of commands, its streams, and the parts that several commands share."""

from __future__ import annotations

import json
import logging
import sys
from importlib import metadata
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.logging import RichHandler
from typer.core import TyperGroup

from anon_pipeline.cli.streams import open_closed
from anon_pipeline.cli.terminal import Terminal
from anon_pipeline.errors import InputError, OfSource
from anon_pipeline.spec import Source
from anon_pipeline.spec.sentences import sentences


class _Commands(TyperGroup):
    """The commands; of what is wrong with a key of the source each names its own option, where it has one for it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except OfSource as error:
            option = f"--{error.key.replace('_', '-')}"
            command = self.get_command(ctx, ctx.invoked_subcommand)
            if command is None or not any(option in known.opts for known in command.params):
                raise
            raise InputError(f"{option}: {error.what}") from None


app = typer.Typer(
    cls=_Commands,
    help="Turn a table of people into a release that may be published, and prove it.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"anon-pipeline {metadata.version('anon-pipeline')}\n")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


releases = typer.Typer(help="Read, re-check, sign and withdraw what has been published.", no_args_is_help=True)
app.add_typer(releases, name="releases")

#: Width of the output if it is not a terminal, so that no line is cut or folded.
UNCUT = 10_000

open_closed()
out, err = Terminal(width=None if sys.stdout.isatty() else UNCUT), Terminal(stderr=True)

BAD_INPUT, REFUSED, NOT_DELIVERED = 2, 3, 4
#: The engines by their names; their modules are imported where they work.
ENGINES = ("duckdb", "spark")


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        raise InputError(f"engine: {name!r} is not available; use {' or '.join(ENGINES)}")
    return name


def _amount_of_memory(limit: str | None) -> str | None:
    if limit is not None:
        from anon_pipeline.workers import bytes_of

        bytes_of(limit)
    return limit


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
EngineName = Annotated[
    str, typer.Option(callback=_known_engine, help="duckdb, or spark where that extra is installed.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(callback=_amount_of_memory, help="Memory limit of the engine and the processes, for example 4GB."),
]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Let the spec import the model that it names; its code then runs as you."),
]


#: The options on the format of a table, for every command that takes one.
Delimiter = Annotated[str | None, typer.Option(help="Of a CSV; detected where absent.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV; detected where absent.")]
Sheet = Annotated[str | None, typer.Option(help="Of a workbook; its only filled one where absent.")]
Query = Annotated[str | None, typer.Option(help="The rows of a database.")]
OfDataset = Annotated[str | None, typer.Option("--dataset", help="Where several have a release of this version.")]


def source_of(stated: dict[str, object]) -> Source:
    """The source that the options of a command state; options that are None are not stated.

    Raises
    ------
    InputError
        If options cannot be used, with a sentence for each.
    """
    delimiter = stated.get("delimiter")
    if isinstance(delimiter, str) and not 1 <= len(delimiter) <= 4:
        raise InputError("--delimiter: is one to four letters")
    try:
        return Source.model_validate({key: value for key, value in stated.items() if value is not None})
    except ValidationError as error:
        raise InputError("; ".join(sentences(error, "source"))) from None


def show_progress() -> None:
    """Write the log of the package to stderr."""
    handler = RichHandler(console=err, show_path=False, show_level=False, markup=False)
    logger = logging.getLogger("anon_pipeline")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object; infinite numbers and NaN become null."""
    from anon_pipeline.plain_json import finite

    sys.stdout.write(json.dumps(finite(content), indent=2, default=str) + "\n")


def names_in(text: str | None) -> list[str]:
    """The names in `a,b,c`."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
