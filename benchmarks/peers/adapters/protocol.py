"""Shared parts of all adapters: read the people, measure the call, write the release and its cost.

It runs in the environments of all tools and uses the standard library, numpy, pandas and pyarrow only.
"""

import json
import resource
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

CATEGORICAL = [
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
]
NUMERIC = ["age"]
QUASI_IDENTIFIERS = [*NUMERIC, *CATEGORICAL]
TARGET, POSITIVE, GUIDANCE = "income", ">50K", "guidance"


class Run:
    """One anonymization: `python ADAPTER FOLDER K [OPTION ...]`; the folder has people.parquet.

    Attributes
    ----------
    people : the quasi-identifiers, the target and the guidance; the index is the row number
    k, options : as on the command line
    """

    def __init__(self):
        self.folder, self.k, self.options = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
        self.source = self.folder / "people.parquet"
        self.people = pd.read_parquet(self.source)
        self.cost = {}

    @contextmanager
    def measured(self):
        """Measure processor and wall time of the block, and peak memory of process and children up to its end."""
        wall, cpu = time.perf_counter(), _cpu()
        yield
        self.cost = {
            "cpu": _cpu() - cpu,
            "cpu_with_imports": _cpu(),
            "wall": time.perf_counter() - wall,
            "peak": _peak(),
        }

    def write(self, released, rows=None, classes=None):
        """Write the released quasi-identifiers.

        `rows` has the row number of the person of each released row (by default all in order). `classes` has the class
        that the tool gave each (by default, people with equal released values are a class).
        """
        table = pd.DataFrame({name: list(released[name]) for name in QUASI_IDENTIFIERS})
        table["#row"] = np.arange(len(table)) if rows is None else np.asarray(rows)
        if classes is not None:
            table["#class"] = np.asarray(classes)
        table.to_parquet(self.folder / "released.parquet", index=False)
        (self.folder / "cost.json").write_text(json.dumps(self.cost))


def by_partition(partitions, released, counts=None):
    """One row per person from a tool's release per partition: the frame, the row numbers, the classes.

    Where `released` has several rows per partition (one per value of a sensitive column, in the order of the
    partitions), `counts` has the number of people of each row.
    """
    sizes = np.array([len(partition) for partition in partitions])
    if counts is not None:
        first = np.searchsorted(np.cumsum(counts), np.cumsum(sizes) - sizes, side="right")
        released = released.iloc[first]
    classes = np.repeat(np.arange(len(partitions)), sizes)
    return released.iloc[classes], np.concatenate([np.asarray(partition) for partition in partitions]), classes


def listening(method, heard):
    """The method, which also appends its results to `heard`; used where a tool does not keep its classes."""

    def wrapped(*args, **kwargs):
        heard.append(method(*args, **kwargs))
        return heard[-1]

    return wrapped


def _cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak():
    """Peak memory in bytes: VmHWM where it exists, since on Linux a child inherits its parent's ru_maxrss."""
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        own = next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)
