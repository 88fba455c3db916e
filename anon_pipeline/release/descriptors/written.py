"""Writes every descriptor of a release into its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anon_pipeline.release.descriptors import croissant, data_package, dataset_card, dcat
from anon_pipeline.release.descriptors.described import described

#: The descriptors, by the file names that their readers expect.
DESCRIPTORS = {
    "croissant.json": croissant.render,
    "datapackage.json": data_package.render,
    "dcat.jsonld": dcat.render,
    "README.md": dataset_card.render,
}


def write(staged: Path, manifest: Mapping[str, Any], tables: Sequence[str]) -> None:
    """Write the files of DESCRIPTORS.

    Parameters
    ----------
    staged : the folder of the release, with its tables
    manifest : the manifest without the hashes of its files
    tables : the names of the released Parquet files, the data first
    """
    release = described(staged, manifest, tables)
    for name, render in DESCRIPTORS.items():
        (staged / name).write_text(render(release), encoding="utf-8")
