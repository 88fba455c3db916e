"""Files from masking outside of a run: a table that is masked without grouping, and a table with decrypted tokens."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.home import scratch as scratch_folder
from anon_pipeline.keys import Secrets, private_key
from anon_pipeline.masking.base import Technique
from anon_pipeline.masking.encryption import Encrypt, reveal
from anon_pipeline.masking.execution import Resources, StepReport, apply_steps
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.masking.step_keys import secrets_of
from anon_pipeline.pipeline.masking import planned
from anon_pipeline.spec import ReleaseSpec

FORMATS = (".csv", ".parquet")
NOT_RELEASED = (
    "masked, and nothing more: nobody here is k-anonymous by that alone, nothing was checked or entered in the ledger; "
    "`anon-pipeline run` makes a release"
)
GROUPS = (
    "a table of groups, not of people: its threshold was applied, and nothing else was checked or entered in the "
    "ledger, which `anon-pipeline run` does; a second table about the same people with other groups can give away what "
    "this one hides"
)


@dataclass(frozen=True)
class Masked:
    """The result of `mask`: the number of written rows, whether they are groups, and a report per step."""

    rows: int
    groups: bool
    reports: list[StepReport]

    @property
    def warning(self) -> str:
        return GROUPS if self.groups else NOT_RELEASED


def mask_source(spec: ReleaseSpec, home: Home, out: Path) -> Masked:
    """Apply the steps of a spec to its source and write the result, without identifiers and excluded columns.

    Parameters
    ----------
    home : its private zone holds the source during the work
    out : a CSV or Parquet file that does not exist yet; only its owner may read it

    Raises
    ------
    InputError
        For a spec without steps; for steps, keys or a source that cannot be used; for a file that cannot be written.
    """
    _check(out)
    if not spec.masks:
        raise InputError("steps: the spec has none, so there is nothing to mask; list them under columns or steps")
    secrets_of(spec)  # a missing key is reported before anything is read
    with scratch_folder(home.private_folder("mask")) as scratch:
        engine = DuckDBEngine(scratch, spec.engine.memory_limit, spec.engine.threads)
        # No model is trained here, so people need no target.
        masked_spec = spec if spec.missing_target else spec.model_copy(update={"missing_target": "release"})
        source = engine.store_source(masked_spec, scratch / "source.parquet")
        require_memory(source.rows, len(source.columns), usable_memory(spec.engine.memory_limit))
        types = source.types()
        plan, secrets = planned(spec, types)
        masked, reports = apply_steps(
            engine.everybody(scratch / "source.parquet"),
            plan.types,
            {name: [step.stated for step in steps] for name, steps in plan.columns.items()},
            [step.stated for step in plan.table],
            Resources(
                spec.dataset, None if plan.is_row_wise else private_key(spec, home), secrets, spec.folder, spec.released
            ),
        )
    if not plan.ends_as_groups:  # in a separate order, which reveals nothing about that of the source
        names = [name for name in spec.released if name in masked.column_names]
        masked = masked.select(names).sort_by([(name, "ascending") for name in names])
    _write(masked, out)
    return Masked(len(masked), plan.ends_as_groups, reports)


def reveal_column(file: Path, spec: ReleaseSpec, column: str, out: Path | None) -> pa.Table:
    """The table of a file with the tokens of a column decrypted; written to `out` if that is given.

    Raises
    ------
    InputError
        If the spec does not encrypt the column, its key is absent, or the file has other tokens or cannot be read.
    """
    if out is not None:
        _check(out)
    if column not in spec.columns:
        raise InputError(f"--column: the spec has no column {column}")
    steps = cast(tuple[Technique, ...], spec.columns[column].steps)
    technique = next((step for step in steps if isinstance(step, Encrypt)), None)
    if technique is None:
        raise InputError(
            f"columns.{column}: the spec does not encrypt it, and only what was encrypted can be turned back"
        )
    key = Secrets(folder=spec.folder).key(technique.key)
    table = _read(file)
    if column not in table.column_names:
        raise InputError(f"{file}: has no column {column}")
    tokens = table.column(column).combine_chunks()
    if not pa.types.is_string(tokens.type):
        try:
            tokens = tokens.cast(pa.string())
        except pa.ArrowInvalid:
            raise InputError(f"{file}: the column {column} holds no tokens") from None
    coded = tokens.dictionary_encode()
    texts = pa.array(reveal(coded.dictionary.to_pylist(), technique, column, key), pa.string())
    revealed = texts.take(coded.indices)
    table = table.set_column(table.column_names.index(column), column, revealed)
    if out is not None:
        _write(table, out)
    return table


def as_csv(table: pa.Table) -> bytes:
    """A table as CSV."""
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _read(file: Path) -> pa.Table:
    """Read a Parquet file, or a CSV file with all columns as text, so that it can be written as it was read."""
    try:
        if file.suffix.lower() == ".parquet":
            with pq.ParquetFile(file) as parquet:
                return parquet.read()
        with pacsv.open_csv(file) as reader:
            names = reader.schema.names
        convert: Any = pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
        )
        return pacsv.read_csv(file, convert_options=convert)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or 'no Parquet file'})") from None
    except pa.ArrowException:
        raise InputError(f"{file}: is no CSV or Parquet table") from None


def _check(out: Path) -> None:
    """Refuse, before any work, a file that must not be written."""
    if out.suffix.lower() not in FORMATS:
        raise InputError(f"{out}: ends neither in .csv nor in .parquet; name a file that does")
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: exists already; name another file")


def _write(table: pa.Table, out: Path) -> None:
    """Write a table that only its owner can read, under a temporary name that is then renamed."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)  # mode 0600
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if out.suffix.lower() == ".csv":
                pacsv.write_csv(table, file)
            else:
                pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    finally:
        temporary.unlink(missing_ok=True)
