"""The folder of a single release without the home that it came from: its table, and the spec in its manifest.

Its reader has no ledger and may have got it from anybody, so nothing of it is believed that can be checked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anon_pipeline.errors import InputError
from anon_pipeline.home import sha256_of
from anon_pipeline.release.ledger import CLASSES, DATA, MANIFEST
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role

#: The name of a spec in its folder, which stands before that of a manifest.
SPEC = "release.yaml"

#: What file managers leave in a folder that was looked at or copied, by names in small letters. Nothing reads them.
BY_FILE_MANAGERS = frozenset({".ds_store", ".directory", "thumbs.db", "ehthumbs.db", "desktop.ini"})


def table_of(path: Path) -> Path:
    """The table in the folder of a release; any other path as it is.

    Raises
    ------
    InputError
        Where the folder is not the release that its manifest describes: it holds something else as well, or another
        table; or where it has no table, or several releases.
    """
    if not path.is_dir():
        return path
    if not (path / MANIFEST).is_file():
        if any(path.glob(f"*/{MANIFEST}")) or any(path.glob(f"*/*/{MANIFEST}")):
            raise InputError(f"{path}: holds folders of releases; name that of a single one, as DATASET/VERSION is")
        return path
    files = _read(path / MANIFEST).get("files")
    if not isinstance(files, dict):
        raise InputError(f"{path / MANIFEST}: is no manifest of a release; name the table itself")
    there = {file.name for file in path.iterdir() if not _by_a_file_manager(file)} - {MANIFEST}
    if not there:
        raise InputError(f"{path}: has nothing but its manifest, as the folder of a release that was withdrawn")
    if DATA not in files:
        raise InputError(f"{path}: is a release without a table of people or groups")
    if stray := sorted(there - set(files)):
        raise InputError(
            f"{path}: holds {stray[0]}, which its manifest does not name, so it is not the folder that was published; "
            "name the table itself"
        )
    for name in (DATA, CLASSES):
        if name in files and (not (path / name).is_file() or sha256_of(path / name) != _sha256(files[name])):
            raise InputError(
                f"{path}: {name} is not the file that its manifest names; `anon-pipeline releases verify` says what "
                "was altered; to judge it as it is, name the table itself"
            )
    return path / DATA


def _by_a_file_manager(file: Path) -> bool:
    """Whether a file says something of the folder or of a file beside it, as macOS's `._data.parquet` does."""
    name = file.name.lower()
    beside = name.startswith("._") and (file.parent / file.name[2:]).is_file()
    return (name in BY_FILE_MANAGERS or beside) and file.is_file()


def spec_to_judge_by(path: Path) -> ReleaseSpec:
    """The spec of a file: the steward's own, or what a manifest has published of it; or of a folder that holds either.

    What is published says nothing of the source, so a table can be judged by it and nothing else done.

    Raises
    ------
    InputError
        Where it cannot be read as what was published: a demand that is read in another way could ask for less. Where
        demands are on a population, whose table no manifest has.
    """
    if path.is_dir() and not (path / SPEC).exists() and (path / MANIFEST).is_file():
        path = path / MANIFEST
    content = _read(path) if path.suffix == ".json" and path.is_file() else {}
    policy = content.get("spec")
    if not isinstance(policy, dict):
        return ReleaseSpec.load(path)
    if "privacy" not in policy:
        raise InputError(
            f"{path}: is of a synthetic release, whose promise cannot be counted in its table; take "
            "`anon-pipeline releases verify` and `anon-pipeline budget verify`"
        )
    try:
        spec = ReleaseSpec.model_validate(_as_written(policy))
        read = {name: value for name, value in spec.policy().items() if name != "seed"}
    except (ValidationError, InputError, TypeError, AttributeError, KeyError):
        read = {}
    if read != {name: value for name, value in policy.items() if name != "seed"}:
        raise InputError(
            f"{path}: its spec is not one that this version publishes, and might be read as less than it asks for; "
            "take the publisher's release.yaml, or --quasi-identifiers and --k"
        )
    if spec.population is not None:
        raise InputError(
            f"{path}: a demand is on a population, whose table no manifest has; take the publisher's release.yaml"
        )
    return _with_found_types(spec, content.get("source"))


def _with_found_types(spec: ReleaseSpec, source: Any) -> ReleaseSpec:
    """The spec with the types that the run found of sensitive columns without a stated one.

    A text file does not tell whether 1 to 5 are numbers or codes, and along an order values are nearer to each other.
    """
    found = source.get("columns") if isinstance(source, dict) else None
    listed = [of for of in found if isinstance(of, dict)] if isinstance(found, list) else []
    types = {str(of.get("name")): str(of.get("type")) for of in listed}
    masked = {name for step in spec.steps for name in step.used}
    columns = {
        name: column.model_copy(update={"type": ColumnType(types[name])})
        for name, column in spec.columns.items()
        if column.role is Role.SENSITIVE
        and column.type is None
        and not (column.steps or column.made or name in masked)
        and types.get(name) in list(ColumnType)
    }
    return spec.model_copy(update={"columns": {**spec.columns, **columns}})


def _as_written(policy: dict[str, Any]) -> dict[str, Any]:
    """A published policy in the form of a spec: demands by their models, and a source without a place."""
    demands: dict[str, list[dict[str, Any]]] = {}
    for demand in policy["privacy"]:
        demands.setdefault(demand["model"], []).append({name: demand[name] for name in demand if name != "model"})
    source = {name: value for name, value in policy["source"].items() if value is not None}
    return {**policy, "privacy": demands, "source": {"path": "", **source}}


def _read(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{manifest}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise InputError(f"{manifest}: is no manifest of a release, whose text is JSON") from None
    return content if isinstance(content, dict) else {}


def _sha256(facts: object) -> object:
    return facts.get("sha256") if isinstance(facts, dict) else None
