"""The folders of the specs that a dataset's releases came from: two datasets of one name must not follow each other.

A dataset is known by its name alone: its releases replace each other as the current one, are compared, and with
`across_releases` their people are followed. A folder may be moved, copied to another machine, or made anew for each
month, and its releases go on. A folder that is gone back to, while another one of this name is still there, shows that
two datasets have one name.
"""

from __future__ import annotations

import json
import logging
import shlex
from contextlib import suppress
from pathlib import Path

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file
from anon_pipeline.spec import ReleaseSpec

log = logging.getLogger("anon_pipeline")


def require_one_dataset(home: Home, spec: ReleaseSpec) -> None:
    """Tell that the last release was of another folder of this name, and refuse to go back and forth between both.

    Folders with the same last name are copies of one, as two checkouts of a repository are.

    Raises
    ------
    InputError
        If this folder had a release before the one of the other folder, which is still there.
    """
    folders, here = _known(home, spec.dataset), spec.folder.resolve()
    if not folders or folders[-1] == here or not _has_spec(folders[-1], spec.dataset):
        return
    last = folders[-1]
    if here in folders and last.name != here.name:
        raise InputError(
            f"dataset: the last release of {spec.dataset} was of {last}, which is still there, and those before it of "
            f"{here}; two datasets of one name follow each other, so that readers of the one get the other: call "
            "one of them otherwise. If they are one, remove the spec that is no longer used, or "
            f"`rm {shlex.quote(str(_place(home, spec.dataset)))}`"
        )
    log.warning(
        "%s: the last release was of %s, which is still there; this one follows it, replaces it as the current one, "
        "and is compared with it: if these are two datasets, call one of them otherwise",
        spec.dataset,
        last,
    )


def keep_folder(home: Home, spec: ReleaseSpec) -> None:
    """Remember that the newest release of a dataset is of this folder; folders that are gone are forgotten."""
    here = spec.folder.resolve()
    known = _known(home, spec.dataset)
    if known[-1:] == [here]:
        return
    folders = [*(folder for folder in known if folder != here and _has_spec(folder, spec.dataset)), here]
    write_file(_place(home, spec.dataset), json.dumps([str(folder) for folder in folders], indent=2) + "\n")


def newest_folder(home: Home, dataset: str) -> Path | None:
    """The folder of the spec of the newest release, to which the files that its steps name are relative."""
    return next(reversed(_known(home, dataset)), None)


def _place(home: Home, dataset: str) -> Path:
    return home.private_folder() / f"{dataset}.spec-folders"


def _known(home: Home, dataset: str) -> list[Path]:
    """The folders of former releases, the newest last; none where nothing is remembered."""
    with suppress(OSError, ValueError, TypeError):
        return [Path(folder) for folder in json.loads((home.private / f"{dataset}.spec-folders").read_text())]
    return []


def _has_spec(folder: Path, dataset: str) -> bool:
    """Whether a folder still holds a spec of this dataset that could be run."""
    try:
        return ReleaseSpec.load(folder).dataset == dataset
    except (InputError, OSError):
        return False
