"""Turns a table of people into a release that may be published, and proves it.

The library's names are imported at their first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon_pipeline.anonymize.anonymizer import AnonymizerTree
    from anon_pipeline.anonymize.release_space import ReleaseSpace
    from anon_pipeline.pipeline.library import Released, run
    from anon_pipeline.spec import ReleaseSpec

__all__ = ["AnonymizerTree", "ReleaseSpace", "ReleaseSpec", "Released", "run"]

_HOME_OF = {
    "AnonymizerTree": "anon_pipeline.anonymize.anonymizer",
    "ReleaseSpace": "anon_pipeline.anonymize.release_space",
    "ReleaseSpec": "anon_pipeline.spec",
    "Released": "anon_pipeline.pipeline.library",
    "run": "anon_pipeline.pipeline.library",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
