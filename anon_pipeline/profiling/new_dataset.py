"""A new dataset from a table of people: its folder with a proposed release.yaml, which a person completes and runs."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import ForeignTables
from anon_pipeline.engine.object_stores import fetched
from anon_pipeline.errors import InputError
from anon_pipeline.home import PRIVATE_FOLDERS, scratch, write_file, written_folder
from anon_pipeline.profiling.places import seen_from
from anon_pipeline.profiling.profile import Profile, names_are_values, profile
from anon_pipeline.profiling.proposed_spec import Question, propose_spec, questions
from anon_pipeline.profiling.reading import read_table
from anon_pipeline.spec import STATISTICS, Source, undecided_lines

#: The form of a name of a dataset.
NAME = r"[a-z][a-z0-9_]*"


@dataclass(frozen=True)
class NewDataset:
    """A new dataset: its file, the profile of its table, and each question with its line in the file, from 1."""

    file: Path
    profile: Profile
    open: tuple[tuple[int, Question], ...]

    def to_json(self) -> dict[str, Any]:
        decide = [
            {"line": line, "place": question.place, "question": question.question} for line, question in self.open
        ]
        return {"spec": str(self.file), "decide": decide, **self.profile.to_json()}


def profile_table(
    engine: ForeignTables, table: Path, source: Source | None = None, target: str | None = None
) -> Profile:
    """Propose a role for every column of a table that may be a source.

    Parameters
    ----------
    table : a file or a folder of Parquet files; for other sources, the folder to which `source` is relative
    target : the column that will be predicted, where it is decided

    Raises
    ------
    InputError
        For a table that cannot be read, has no rows or a single one, or a target that it has not.
    """
    stated = source or Source(path=str(table))
    if stated.is_file and not table.exists():
        raise InputError(f"{table}: there is no such file or folder")
    if stated.location is None or stated.is_file or stated.table_format is not None:
        return _profile_here(engine, table, stated, target)
    # A file in an object store is fetched once, and profiled as a local file.
    with scratch() as private, fetched(stated.path, private) as here:
        return _profile_here(engine, here, stated.model_copy(update={"path": here.name}), target)


def _profile_here(engine: ForeignTables, table: Path, source: Source, target: str | None) -> Profile:
    survey, reading = read_table(engine, table, source)
    if len(survey.columns) == 1 and any(sign in survey.columns[0].name for sign in ",;|\t"):
        raise InputError(
            f"{table}: its lines do not all have the fields of its header; correct them, or say what separates them "
            "(`anon-pipeline init --delimiter`)"
        )
    if names_are_values(survey):
        raise InputError(f"{table}: its first line seems to be a person's; add a line before it that names the columns")
    if survey.rows == 1:
        raise InputError(
            f"{table}: has a single row, and in a release everybody is like others; take a table of more people"
        )
    return profile(survey, reading, target)


def propose_spec_beside(profiled: Profile, source: Source, file: Path) -> str:
    """The text of a release.yaml for the path `file`; it names a source of this machine by a relative path."""
    place = source.table or source.location or source.iceberg or source.path
    return propose_spec(profiled, dataset_name(Path(place.rpartition(":")[2])), seen_from(file.parent, source))


@dataclass(frozen=True)
class DatasetRequest:
    """The request for a new dataset of a table.

    Attributes
    ----------
    name : the name of the dataset and its folder
    table : the table, which the spec names by a relative path; for a source that is no file of this machine, the folder
        to which it is relative
    copy : whether the table is copied into the folder, and the spec names the copy
    source : query, delimiter and encoding where the table needs them; its path is used in messages
    asked_with_noise : propose the section `differential_privacy` too, with every domain to be decided
    target : the column that will be predicted, where it is decided
    """

    name: str
    table: Path
    copy: bool = False
    source: Source | None = None
    asked_with_noise: bool = False
    target: str | None = None


def start_dataset(engine: ForeignTables, wanted: DatasetRequest, data: Path) -> NewDataset:
    """Write release.yaml into a new folder in `data`, named after the dataset.

    Raises
    ------
    InputError
        For an invalid name, a dataset that exists, or a table that cannot be read.
    """
    name, table = wanted.name, wanted.table
    if name in PRIVATE_FOLDERS:
        raise InputError(f"{name}: is the name of a folder of the private zone; choose another")
    if name.endswith(STATISTICS):
        raise InputError(f"{name}: is the name of published statistics; choose one that does not end in {STATISTICS}")
    if re.fullmatch(NAME, name) is None:
        raise InputError(
            f"{name!r}: is no name of a dataset; begin with a small letter and go on with small letters, digits and _, "
            f"for example {dataset_name(Path(name))}"
        )
    folder = data / name
    file = folder / "release.yaml"
    if file.exists():
        raise InputError(f"{file}: exists already, and a policy is not overwritten; choose another name or remove it")
    stated_source = wanted.source or Source(path=str(table))
    if wanted.copy and not stated_source.is_file:
        raise InputError("--copy: only a file of this machine is copied; leave it out")
    profiled = profile_table(engine, table, stated_source, wanted.target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if wanted.copy:
            stated_source = stated_source.model_copy(update={"path": _copied(table, folder)})
        else:
            stated_source = _named_in(folder, table, stated_source)
        text = propose_spec(profiled, name, stated_source, wanted.asked_with_noise)
        write_file(file, text, public=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror}); check its permissions and free space"
        ) from None
    asked = {question.place: question for question in questions(profiled, wanted.asked_with_noise)}
    return NewDataset(file, profiled, tuple((line, asked[place]) for line, place in undecided_lines(text)))


def dataset_name(table: Path) -> str:
    """A name for the dataset of a table, made from the file's name."""
    name = re.sub("[^a-z0-9]+", "_", table.name.lower().split(".")[0]).strip("_")
    name = name.removesuffix(STATISTICS)
    return name if re.fullmatch(NAME, name) else f"data_{name}".rstrip("_")


def _named_in(folder: Path, table: Path, source: Source) -> Source:
    """The source as a spec in `folder` names it."""
    return seen_from(folder, source.model_copy(update={"path": str(table)}) if source.is_file else source)


def _copied(table: Path, folder: Path) -> str:
    """Copy the table into the folder, readable by its owner only; returns the name of the copy."""
    copy = folder / table.resolve().name
    if copy.exists():
        if copy.samefile(table):
            return copy.name
        raise InputError(f"{copy}: exists already; leave --copy out to use the table where it lies")
    if table.is_dir():
        with written_folder(copy) as temporary:
            shutil.copytree(table, temporary, dirs_exist_ok=True, copy_function=shutil.copyfile)
        return copy.name
    descriptor, name = tempfile.mkstemp(prefix=f".{copy.name}.", dir=folder)  # creates it with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as written, table.open("rb") as read:
            shutil.copyfileobj(read, written)
            written.flush()
            os.fsync(written.fileno())
        os.replace(name, copy)
    finally:
        Path(name).unlink(missing_ok=True)
    return copy.name
