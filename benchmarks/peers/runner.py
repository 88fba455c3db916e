"""Runs one tool once in a process of its own, within limits of time and memory; a failure has a reason."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environments import ADAPTERS, Tool

ROOT = Path(__file__).parents[2]

#: A tool that needs less than this is run three times, and the run of median cpu time counts.
SHORT, REPEATS = 10.0, 3

#: The wall time of a tool is limited to this many times its limit of cpu time, since others may use the machine.
PATIENCE = 4


@dataclass(frozen=True)
class Cost:
    """Processor and wall seconds, bytes; `cpu_with_imports` counts the process from its start."""

    cpu: float
    cpu_with_imports: float
    wall: float
    peak: int


class Failed(Exception):
    """The tool made no release; the message is the reason."""


def run(tool: Tool, k: int, folder: Path, seconds: float, memory: int) -> Cost:
    """Anonymize folder/people.parquet to folder/released.parquet.

    Raises
    ------
    Failed
        If the tool dies or exceeds `seconds` of processor time or `memory` bytes of address space.
    """
    costs = [_once(tool, k, folder, seconds, memory)]
    while costs[0].cpu < SHORT and len(costs) < REPEATS:
        costs.append(_once(tool, k, folder, seconds, memory))
    middle = statistics.median_low([cost.cpu for cost in costs])
    return next(cost for cost in costs if cost.cpu == middle)


def _once(tool: Tool, k: int, folder: Path, seconds: float, memory: int) -> Cost:
    for name in ("released.parquet", "cost.json"):
        (folder / name).unlink(missing_ok=True)
    paths = {"PYTHONPATH": str(ROOT)} if tool.environment is None else {}
    before = _used_since(0)
    process = subprocess.Popen(
        [str(tool.python), str(ADAPTERS / tool.adapter), str(folder), str(k), *tool.options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **paths},
        start_new_session=True,
        preexec_fn=_limit(seconds, memory),
    )
    try:
        _, errors = process.communicate(timeout=PATIENCE * seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {PATIENCE * seconds:.0f} s of wall time") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if -process.returncode in (signal.SIGXCPU, signal.SIGKILL) and _used_since(before) >= seconds:
        raise Failed(f"not done after {seconds:.0f} s of cpu time")
    if process.returncode:
        raise Failed(_reason(process.returncode, errors, memory))
    return Cost(**json.loads((folder / "cost.json").read_text()))


def _limit(seconds: float, memory: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))

    return limit


def _used_since(before: float) -> float:
    """Processor seconds of the child processes that ended since then."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before


def _reason(code: int, errors: str, memory: int) -> str:
    """The kind of error only, since messages may quote people; for memory errors, which do not, also the message."""
    lines = [line for line in errors.splitlines() if line.strip()]
    kind, _, message = (lines[-1] if lines else "").partition(": ")
    if "MemoryError" in kind or "alloc" in message:
        return f"out of memory (limit {memory >> 30} GiB) {message.strip()}".strip()
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"died: {kind.split('.')[-1]}" if kind.isidentifier() or "." in kind else f"died with exit code {code}"
