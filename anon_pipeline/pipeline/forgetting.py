"""Forgetting: people are replaced by random numbers in what is kept of former releases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.arrays import BoolArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.home import Home
from anon_pipeline.pipeline.stages import stored_folder
from anon_pipeline.pipeline.withheld_people import WITHHELD_PEOPLE
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential import release_history
from anon_pipeline.spec import ReleaseSpec

#: The steps whose results hold the identifiers of everybody in the table, and the files in which they are.
WITH_IDENTIFIERS = {"raw_data": (DATA,), "followed_people": (DATA, WITHHELD_PEOPLE)}


@dataclass(frozen=True)
class Forgotten:
    """What `forget_people` did.

    Attributes
    ----------
    identifiers : the number of identifiers in the list
    known : those of them that are in what is kept of former releases
    entries : replaced entries, one per person and release
    """

    identifiers: int
    known: int
    entries: int


def forget_people(spec: ReleaseSpec, home: Home, file: Path) -> Forgotten:
    """Replace people in the release history by random numbers.

    Their identifiers are in a text file, one per line. Blanks around an identifier count only if somebody is known by
    the identifier with these blanks.

    Raises
    ------
    InputError
        If the file cannot be read, nobody in it is found, the spec has no sequential publication, or the table of the
        last run has somebody to be forgotten, or is not stored any more. Who is still in the source would come back as
        a newcomer, though former releases show that they are none, and would have fewer candidates than demanded.
    """
    if spec.person is None:
        raise InputError(f"{spec.dataset}: its spec names no person, so nothing is kept about anybody's classes")
    lines = _lines(file)
    with home.lock(f"run-{spec.dataset}"), home.lock(f"dataset-{spec.dataset}"):
        found, asked = _known(home, spec.dataset, lines)
        entries = release_history.finish_forgetting(home, spec.dataset)  # of a call that was killed
        if found.any() and not any(release_history.known(home, spec.dataset, those).any() for those in asked):
            return Forgotten(len(lines), int(found.sum()), entries)  # that call asked whether they were still there
        cut_off = number_of(entries, "entry", "entries")
        nobody = f"nobody was forgotten{f' but for {cut_off} of a call that was cut off' if entries else ''}"
        if not found.any():
            none = "its identifier is not" if len(lines) == 1 else f"none of its {len(lines):,} identifiers is"
            raise InputError(
                f"{file}: {nobody}: {none} in what is kept of former releases of {spec.dataset}; write the values of "
                f"{spec.person}, one a line"
            )
        still = _still_there(home, spec, asked)
        if still is None:
            raise InputError(
                f"{spec.dataset}: {nobody}: no table of a run is stored any more, which would tell whether these "
                "people are still in the source, from which they would come back as newcomers; take them out of it, "
                "run the dataset, and forget them then"
            )
        if still:
            raise InputError(
                f"{spec.dataset}: {nobody}: {still:,} of these people are in the table of the last run, and would come "
                "back as newcomers; take them out of the source, run the dataset, and forget them then"
            )
        entries += sum(release_history.forget(home, spec.dataset, identifiers) for identifiers in asked)
    return Forgotten(len(lines), int(found.sum()), entries)


def _lines(file: Path) -> list[str]:
    """The distinct lines of a text file that are not blank, without a byte order mark."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file; write one identifier a line") from None
    except (OSError, ValueError):
        raise InputError(f"{file}: cannot be read as a text file; write one identifier a line") from None
    lines = [line for line in dict.fromkeys(text.split("\n")) if line.strip()]
    if not lines:
        raise InputError(f"{file}: has no identifier; write one identifier a line")
    return lines


def _known(home: Home, dataset: str, lines: list[str]) -> tuple[BoolArray, tuple[pa.Array, pa.Array]]:
    """Which lines are identifiers in the release history, and the identifiers, as texts and as whole numbers.

    It is not known here whether the source stores them as numbers or as texts, so both are tried.
    """
    as_written = release_history.known(home, dataset, pa.array(lines, pa.string()))
    read = [line if known else line.strip() for line, known in zip(lines, as_written.tolist(), strict=True)]
    whole = [int(line) if re.fullmatch(r"-?\d{1,18}", line.strip()) else None for line in lines]
    asked = (pa.array(read, pa.string()), pa.array(whole, pa.int64()))
    found = [release_history.known(home, dataset, identifiers) for identifiers in asked]
    texts, numbers = (identifiers.filter(pa.array(those)) for identifiers, those in zip(asked, found, strict=True))
    return found[0] | found[1], (texts, numbers)


def _still_there(home: Home, spec: ReleaseSpec, asked: Iterable[pa.Array]) -> int | None:
    """The number of people to be forgotten who are in the stored table of the last run.

    None if there is none, as where retention or a person has removed it.
    """
    texts = pa.concat_arrays([identifiers.cast(pa.string()) for identifiers in asked]).unique()
    found = []
    for step, files in WITH_IDENTIFIERS.items():
        folder = stored_folder(home, spec.dataset, step)
        of_files = [] if folder is None else [_among(texts, folder / file, str(spec.person)) for file in files]
        if of_files and of_files[0] is not None:
            found.append(sum(there or 0 for there in of_files))
    return max(found, default=None)


def _among(texts: pa.Array, table: Path, person: str) -> int | None:
    """How many people of a stored table have one of these identifiers; None where there is no table that tells."""
    try:
        if person not in pq.read_schema(table).names:
            return None
    except FileNotFoundError:
        return None
    with pq.ParquetFile(table) as stored:
        there = [
            pc.is_in(batch.column(0).cast(pa.string()), texts).to_numpy(zero_copy_only=False).sum()
            for batch in stored.iter_batches(columns=[person])
        ]
    return int(sum(there))
