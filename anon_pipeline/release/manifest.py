"""The manifest: everything that an auditor needs to check a release years later, as plain data without people."""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import anon_pipeline
from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.masking.aggregation import aggregate_of
from anon_pipeline.privacy.risk import BUCKETS
from anon_pipeline.spec import ImportedModel, LoggedModel, ReleaseSpec
from anon_pipeline.tables import GUIDANCE_UNIT

FORMAT = 1
PACKAGES = ("dagster", "duckdb", "great-expectations", "mlflow", "numpy", "pandas", "pyarrow", "scikit-learn")

#: Upper ends of the class-size groups that manifest, report and Dagster's pages show.
SIZE_ENDS = tuple(start - 1 for start in BUCKETS[1:])


@cache
def code_hash() -> str:
    """SHA-256 over this package's own source files: the code version of a release."""
    package = Path(anon_pipeline.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*")):
        if file.suffix in (".py", ".html", ".yaml") and file.is_file():
            digest.update(f"{file.relative_to(package)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _installed(package: str) -> str:
    """The installed version of a package; its description is read once a process."""
    return metadata.version(package)


def packages() -> dict[str, str]:
    """The installed versions of the packages that a release may depend on, by name."""
    return {name: _installed(name) for name in PACKAGES}


def software() -> dict[str, Any]:
    """Versions of the software that made the release."""
    return {
        "python": platform.python_version(),
        "anon_pipeline": _installed("anon-pipeline"),
        "code": code_hash(),
        "packages": packages(),
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """Processor and numerical libraries, which may explain why a release from another machine differs."""
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "processor": _processor(),
        # The processor-specific routines that a library has chosen.
        "blas": sorted(
            {
                f"{library['internal_api']} {library['version']} {library.get('architecture', '')}"
                for library in libraries
            }
        ),
        "simd": list(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])),  # type: ignore[index]
    }


def _processor() -> str:
    """Maker, family and model of the processor on Linux; elsewhere Python's name of it."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    known = [fields[name] for name in ("vendor_id", "cpu family", "model") if name in fields]
    return " ".join(known) or platform.processor() or platform.machine()


def relied_on(spec: ReleaseSpec) -> dict[str, Any]:
    """The model M, and whether another machine can expect the same guidance from it."""
    if spec.aggregates:
        return {"model": None, "same_everywhere": True}
    model = spec.guide.model
    if not isinstance(model, ImportedModel | LoggedModel):
        return {"model": model, "same_everywhere": True}
    return {
        "model": model.import_ if isinstance(model, ImportedModel) else model.mlflow,
        "same_everywhere": False,
        "relied_on": "that this model, trained on the same people in the same order, predicts the same for them to "
        f"within {GUIDANCE_UNIT:.0e} of its scale on another processor and with other libraries",
    }


def version_of(spec: ReleaseSpec, content_hashes: dict[str, str]) -> str:
    """The version of a release, from published content alone: its policy and its tables; 12 hexadecimal digits."""
    content = {"spec": spec.policy_hash, "content": content_hashes}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def source_columns(spec: ReleaseSpec, source: SourceFacts) -> list[dict[str, Any]]:
    """The stored columns: name and role, and the type of released columns.

    How they are stored, and the numbers of missing and of distinct values, depend on values that are not released: one
    age of 37.5 in a CSV makes floats of all.
    """
    return [
        {"name": facts.name, "role": facts.role} | ({"type": facts.type} if facts.name in spec.released else {})
        for facts in source.columns
    ]


def lineage(spec: ReleaseSpec) -> dict[str, list[str]]:
    """The source columns whose values each released column shows (the classes depend on further columns)."""
    sources_of: dict[str, list[str]] = {}
    for step in spec.steps:
        sources_of.setdefault(step.made_column or "", []).extend(step.used)
    groups = aggregate_of(spec).sources if spec.aggregates else {name: (name,) for name in spec.released}
    return {
        name: sorted({origin for source in sources for origin in sources_of.get(source, [source])})
        for name, sources in groups.items()
    }


def class_sizes(sizes: IntArray) -> dict[str, Any]:
    """The distribution of class sizes: J, smallest, median, mean, largest, and people by size of their class."""
    groups = []
    start = 1
    for end in (*SIZE_ENDS, None):
        inside = (sizes >= start) & (sizes <= end) if end is not None else sizes >= start
        label = f"{start}" if end == start else f"{start}-{end}" if end is not None else f"{start} or more"
        groups.append({"size": label, "classes": int(inside.sum()), "people": int(sizes[inside].sum())})
        start = (end or 0) + 1
    return {
        "classes": len(sizes),
        "smallest": int(sizes.min()),
        "median": float(np.median(sizes)),
        "mean": float(sizes.mean()),
        "largest": int(sizes.max()),
        "groups": groups,
    }
