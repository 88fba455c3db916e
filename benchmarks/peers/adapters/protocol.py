"""What every adapter does alike: read the people, measure the call, write the release and what it cost.

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
        """Processor and wall time of what is inside; peak memory of the process and its children up to its end."""
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

        `rows` says whom each released row is about (all in order where absent), `classes` which class the tool put
        it in (where absent, people who look alike are a class).
        """
        table = pd.DataFrame({name: list(released[name]) for name in QUASI_IDENTIFIERS})
        table["#row"] = np.arange(len(table)) if rows is None else np.asarray(rows)
        if classes is not None:
            table["#class"] = np.asarray(classes)
        table.to_parquet(self.folder / "released.parquet", index=False)
        (self.folder / "cost.json").write_text(json.dumps(self.cost))


def by_partition(partitions, released, counts=None):
    """One row per person from what a tool released per partition: the frame, the row numbers, the classes.

    Where `released` has several rows per partition (one per value of a sensitive column, in the order of the
    partitions), `counts` says for how many people each stands.
    """
    sizes = np.array([len(partition) for partition in partitions])
    if counts is not None:
        first = np.searchsorted(np.cumsum(counts), np.cumsum(sizes) - sizes, side="right")
        released = released.iloc[first]
    classes = np.repeat(np.arange(len(partitions)), sizes)
    return released.iloc[classes], np.concatenate([np.asarray(partition) for partition in partitions]), classes


def listening(method, heard):
    """The method, unchanged, but what it returns is also appended to `heard`; used where a tool forgets its classes."""

    def wrapped(*args, **kwargs):
        heard.append(method(*args, **kwargs))
        return heard[-1]

    return wrapped


def _cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak():
    """Bytes. Linux lets a child inherit its parent's ru_maxrss over fork and exec, so VmHWM is asked where it is."""
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        own = next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)
