"""The stored private results of steps, with records by which stale or altered results are refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home, remove_leftovers, sha256_of, write_file
from anon_pipeline.release.manifest import code_hash
from anon_pipeline.spec import ReleaseSpec

RECORD = "record.json"


@dataclass(frozen=True)
class Stage:
    """One stored result.

    Attributes
    ----------
    folder : the folder of its files, in the private zone
    identity : hash of its record, and so of its files, its spec, the code and everything that it was made from
    facts : numbers that are needed without opening the files
    """

    folder: Path
    identity: str
    facts: dict[str, Any]


class Stages:
    """The stored results of one dataset under one spec.

    A result is made from others. Each has a record of the spec, the code and the identities of the results that it
    was made from. `load` refuses a result whose record no longer fits, so that a release never mixes two states.
    """

    def __init__(self, home: Home, spec: ReleaseSpec) -> None:
        self._folder = home.private_folder(spec.dataset)
        self._spec = spec

    @contextmanager
    def store(self, name: str, made_from: Mapping[str, Stage], facts: dict[str, Any]) -> Iterator[Path]:
        """A folder to write a result into; it replaces the former result in one step if the block ends without error.

        `facts` may be filled inside the block.

        Raises
        ------
        Unavailable
            If the file of a hierarchy was changed meanwhile, since the record would name another one than was used.
        """
        asked = self._spec.input_hash
        place = self._folder / name
        place.mkdir(mode=0o700, exist_ok=True)
        remove_leftovers(place)
        temporary = place / ".writing"
        temporary.mkdir(mode=0o700)
        try:
            yield temporary
            if self._spec.input_hash != asked:
                raise Unavailable(f"{name}: the file of a hierarchy was changed while it was read; {self._again(name)}")
            for file in temporary.iterdir():
                file.chmod(0o600)
            record = {
                "spec": asked,
                "code": code_hash(),
                "made_from": {source: stage.identity for source, stage in made_from.items()},
                "files": {file.name: sha256_of(file) for file in sorted(temporary.iterdir())},
                "facts": facts,
            }
            text = json.dumps(record, sort_keys=True)
            write_file(temporary / RECORD, text)
            identity = hashlib.sha256(text.encode()).hexdigest()
            final = place / identity[:16]
            if not final.exists():
                os.replace(temporary, final)
            write_file(place / "current", identity)
            for former in place.iterdir():
                if former.is_dir() and former != final:
                    shutil.rmtree(former, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def load(self, name: str, made_from: Mapping[str, Stage] | None = None) -> Stage:
        """The stored result of a step, if it still fits the spec, the code and the results that it was made from.

        Raises
        ------
        Unavailable
            If it is absent, stale or altered; the message says which step to run again.
        """
        stage = self.known(name, made_from)
        for file, expected in self._record(name)[1]["files"].items():
            if not (stage.folder / file).exists() or sha256_of(stage.folder / file) != expected:
                raise Unavailable(f"{name}: its file {file} was altered; {self._again(name)}")
        return stage

    def known(self, name: str, made_from: Mapping[str, Stage] | None = None) -> Stage:
        """The stage of a result by its record, with all the checks of `load` except those of the files."""
        identity, record = self._record(name)
        again = self._again(name)
        if record["spec"] != self._spec.input_hash:
            raise Unavailable(f"{name}: was made under another spec; {again}")
        if record["code"] != code_hash():
            raise Unavailable(f"{name}: was made by another version of the code; {again}")
        for source, stage in (made_from or {}).items():
            if record["made_from"].get(source) != stage.identity:
                raise Unavailable(f"{name}: was made from another {source}; {again}")
        return Stage(self._folder / name / identity[:16], identity, record["facts"])

    def _record(self, name: str) -> tuple[str, dict[str, Any]]:
        """The identity of a result and its record, which must be the one that was written."""
        place = self._folder / name
        try:
            identity = (place / "current").read_text()
            text = (place / identity[:16] / RECORD).read_text()
        except OSError:
            raise Unavailable(f"{name}: has not been made yet; {self._again(name)}") from None
        if hashlib.sha256(text.encode()).hexdigest() != identity:
            raise Unavailable(f"{name}: its record was altered; {self._again(name)}")
        record: dict[str, Any] = json.loads(text)
        return identity, record

    def _again(self, name: str) -> str:
        return f"materialize {self._spec.dataset}/{name} again"


def stored_folder(home: Home, dataset: str, name: str) -> Path | None:
    """The folder of the stored result of a step, whatever spec and code it was made with; None if there is none.

    Raises
    ------
    PermissionError
        Where there may be one, but it cannot be looked at.
    """
    place = home.private_folder(dataset) / name
    try:
        return place / (place / "current").read_text(encoding="utf-8")[:16]
    except (FileNotFoundError, NotADirectoryError):
        return None
