"""The machine on which the figures of a benchmark depend: processor, memory, and versions of software."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def processor() -> str:
    """Name, family and model as Linux reports them (a hypervisor may hide the exact model), and the number of cores."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name") or platform.processor() or platform.machine()
    kind = ", ".join(f"{field.split()[-1]} {fields[field]}" for field in ("cpu family", "model") if field in fields)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name} ({kind}), {cores} cores" if kind else f"{name}, {cores} cores"


def memory() -> str:
    """The size of the machine's memory."""
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def versions(*packages: str) -> str:
    """The versions of Python, the platform and the named packages."""
    named = "".join(f", {package} {version(package)}" for package in packages)
    return f"Python {platform.python_version()}, {platform.platform()}{named}"
