"""Commands that run in the process of the test, and small releases for them. Holds no test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from anon_pipeline.cli import app
from anon_pipeline.home import Home
from anon_pipeline.release.publication import publish_folder
from anon_pipeline_tests.cli.printed import lines_of
from anon_pipeline_tests.report.pages import manifest_content

PEOPLE = pa.table({"age": [20, 20, 20, 50, 50, 50], "ill": ["no", "yes", "no", "yes", "no", "yes"]})


@dataclass(frozen=True)
class Ended:
    """How a command ended, with what it wrote; an error that `command` makes a sentence of is `error`."""

    code: int
    out: str
    err: str
    error: BaseException | None

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return lines_of(self.out)

    @property
    def told(self) -> list[str]:
        return lines_of(self.err)


def run(*arguments: object) -> Ended:
    """Run a command in this process."""
    ended = CliRunner().invoke(app, [str(argument) for argument in arguments])
    error = None if isinstance(ended.exception, SystemExit) else ended.exception
    return Ended(ended.exit_code, ended.stdout, ended.stderr, error)


def sentence(*arguments: object) -> str:
    """The sentence of the error that ends a command."""
    error = run(*arguments).error
    assert error is not None
    return str(error)


def published(home: Home, version: str, dataset: str = "people", table: pa.Table = PEOPLE) -> Path:
    """The folder of a release with a whole manifest, which stands."""

    def write(folder: Path) -> dict[str, Any]:
        pq.write_table(table, folder / "data.parquet")
        (folder / "report.html").write_text(f"<p>{version}</p>")
        return manifest_content() | {"dataset": dataset, "version": version}

    return publish_folder(home, dataset, version, write).folder


def written(file: Path, rows: Sequence[str]) -> Path:
    """A text file of these lines."""
    file.write_text("\n".join(rows) + "\n")
    return file
