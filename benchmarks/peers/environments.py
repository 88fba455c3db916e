"""The peers and their virtual environments: which exist, how they are made, and which interpreter runs each tool."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".environments"
ADAPTERS = HERE / "adapters"
REQUIREMENTS = HERE / "requirements"

#: The Python versions that the pinned requirements were resolved for; tried in this order after our own.
PYTHONS = ("3.11", "3.10", "3.12")


@dataclass(frozen=True)
class Tool:
    """One line of the table.

    Attributes
    ----------
    name : as printed
    adapter : the script in adapters/ that runs it
    options : words for the adapter that choose between settings of one tool
    environment : the name of its requirement file; None for our own environment
    learned : the training data of the forest: the "released" values; the "middle" (median or mode) of each class, where
        a tool publishes ranges, sets or generalized values; or the "better" of both, where some values are plain
    pythons : the minor versions of Python 3 that the pinned requirements work on
    note : a remark that a reader needs to judge the line
    """

    name: str
    adapter: str
    options: tuple[str, ...] = ()
    environment: str | None = None
    learned: Literal["released", "middle", "better"] = "middle"
    pythons: range = range(11, 12)
    note: str = ""

    @property
    def distribution(self) -> str:
        return self.environment or "anon-pipeline"

    @property
    def folder(self) -> Path | None:
        return None if self.environment is None else ENVIRONMENTS / self.environment

    @property
    def python(self) -> Path:
        return Path(sys.executable) if self.folder is None else self.folder / "bin/python"

    @property
    def installed(self) -> bool:
        return self.folder is None or (self.folder / "installed").exists()


OURS = "ours"

TOOLS = (
    Tool(
        OURS,
        "ours.py",
        ("1",),
        learned="released",
        note="`AnonymizerTree(k)`, default settings, guidance: probabilities",
    ),
    Tool(
        "ours, tree alone",
        "ours.py",
        ("1", "0"),
        learned="released",
        note="`AnonymizerTree(k, refine=0)`, the same guidance",
    ),
    Tool(
        "ours, spread 0",
        "ours.py",
        ("0", "0"),
        learned="released",
        note="`AnonymizerTree(k, spread=0)`, the same guidance",
    ),
    Tool(
        "ours, DuckDB",
        "ours_duckdb.py",
        learned="released",
        note="the default settings through the engine, from a Parquet file to a Parquet file",
    ),
    Tool(
        "ai-privacy-toolkit, labels",
        "ai_privacy_toolkit.py",
        ("labels",),
        environment="ai-privacy-toolkit",
        learned="released",
        note="`Anonymize(k)` on the quasi-identifiers, guidance: the labels that the probabilities decide, as its "
        "paper does; without torch, which it imports and does not use here (see the adapter)",
    ),
    Tool(
        "ai-privacy-toolkit, probabilities",
        "ai_privacy_toolkit.py",
        ("probabilities",),
        environment="ai-privacy-toolkit",
        learned="released",
        note="the same with `is_regression=True`, guidance: probabilities",
    ),
    Tool(
        "project-lighthouse-anonymize",
        "lighthouse.py",
        environment="project-lighthouse-anonymize",
        learned="better",
        note="`k_anonymize` with its defaults but `parallelism=None`, which costs the least cpu; it shows numbers by "
        "their mean and categories by their value or `*`",
    ),
    Tool(
        "anonypyx",
        "anonypyx_mondrian.py",
        environment="anonypyx",
        note="`Anonymiser(algorithm='Mondrian', generalisation_strategy='human-readable')`",
    ),
    Tool("anonypy", "anonypy_mondrian.py", environment="anonypy", note="`Preserver.anonymize_k_anonymity`"),
    Tool(
        "polarfrost",
        "polarfrost_mondrian.py",
        environment="polarfrost",
        note="`mondrian_k_anonymity` on a Polars LazyFrame; it publishes one row per class with the set of sensitive "
        "values, so the people are tied to it by giving their row number as the sensitive column",
    ),
    Tool(
        "anjana",
        "anjana_full_domain.py",
        environment="anjana",
        note="`k_anonymity` with `supp_level=5` (up to 5 % of the people left out) and the hierarchies in its adapter",
    ),
    Tool("umbra-k", "umbra_k_mondrian.py", environment="umbra-k", note="`MondrianAnonymizer(k).fit_transform`"),
)


def install(tool: Tool) -> str | None:
    """Make the environment of a peer; the reason in one sentence if that fails.

    An environment is used only if its last file, `installed`, was written.
    """
    if tool.folder is None or tool.installed:
        return None
    python = _python_for(tool)
    if python is None:
        return f"no Python 3.{tool.pythons.start} to 3.{tool.pythons.stop - 1} on this machine"
    shutil.rmtree(tool.folder, ignore_errors=True)
    pip = [str(tool.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    steps = (
        [python, "-m", "venv", str(tool.folder)],
        [*pip, "--require-hashes", "-r", str(REQUIREMENTS / f"{tool.environment}.txt")],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
        if done.returncode:
            return f"could not be installed: {_last_line(done.stderr)}"
    (tool.folder / "installed").touch()
    return None


def version(tool: Tool) -> str:
    """The installed version of a tool, from its own environment."""
    ask = f"from importlib.metadata import version; print(version({tool.distribution!r}))"
    done = subprocess.run([str(tool.python), "-c", ask], capture_output=True, text=True)
    return done.stdout.strip() or "?"


def python_version(tool: Tool) -> str:
    ask = "import platform; print(platform.python_version())"
    return subprocess.run([str(tool.python), "-c", ask], capture_output=True, text=True).stdout.strip()


def _python_for(tool: Tool) -> str | None:
    if sys.version_info.minor in tool.pythons:
        return sys.executable
    found = (shutil.which(f"python{one}") for one in PYTHONS if int(one.split(".")[1]) in tool.pythons)
    return next((one for one in found if one is not None), None)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no message"
