"""A night shift: the real web server, daemon and code server over hundreds of ticks, and everything that can go wrong.

Run: python -m benchmarks.soak [--ticks 300] [--seed 1] [--memory-disk 600m]
A dataset of 100 people has a sensor that looks every five seconds and a schedule of a run every ten minutes. Its source
changes, stays, goes back, breaks or holds what a check refuses; its policy changes; processes are killed with SIGKILL
at random (a run's worker, the daemon, the web server, all at once, as a machine loses its power); and the disk is full
twice, where a memory disk can be mounted (root). `anon-pipeline prune` removes old runs every thirty ticks. After each
content that the sensor has settled, and at the end, this is asked:

- the ledger and every file of it are intact, and no content was published twice under one policy;
- `current` is the release of the content and policy that lie there, or, where these were broken or refused, the one
  before.

It ends with exit code 1 at the first answer that is no. It prints what a run takes, in disk and time, at the start, in
the middle and at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from anon_pipeline.home import DATA_VARIABLE, VARIABLE, Home
from anon_pipeline.pipeline.automation.sensor import SECONDS_VARIABLE
from anon_pipeline.release import ledger

DATASET, SECONDS = "people", "5"
#: The possible next changes of the source, and their weights.
CHANGES = {"changed": 8, "unchanged": 2, "reverted": 3, "broken": 2, "refused": 2, "policy": 2}
#: The probabilities per tick that something is killed, during a run and otherwise.
KILLS = {"worker": 0.05, "daemon": 0.01, "server": 0.01, "all": 0.01}
PRUNE_EVERY, KEPT = 30, 3  # ticks, and runs of each job
FULL_FOR = 40  # seconds; no tick is recorded while the disk is full
START = """mutation { startSensor(sensorSelector: {sensorName: "people_source_sensor", repositoryName: "__repository__",
    repositoryLocationName: "anon_pipeline.definitions"}) { __typename } }"""
#: The messages of a tick about a content that the sensor leaves alone.
SETTLED = ("released: ", "refused in ", "cannot be used", "died, the last one")

POLICY: dict[str, Any] = {
    "dataset": DATASET,
    "source": {"path": "people.csv"},
    "target": "ill",
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi_identifier", "type": "numeric"},
        "city": {"role": "quasi_identifier", "type": "categorical"},
        "ill": {"role": "sensitive", "type": "categorical"},
        "visits": {"role": "insensitive", "type": "numeric"},
    },
    "privacy": {"k_anonymity": {"k": 10}},
    "guide": {"model": "decision_tree", "folds": 2},
    "audit": {"enabled": False},
    "utility": {"folds": 2, "models": []},
    "schedule": "*/10 * * * *",
}


def people(seed: int, kind: str = "changed") -> pd.DataFrame:
    """A hundred people; a table is refused if a name occurs twice, and broken if a column is missing."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 80, 100)
    frame = pd.DataFrame(
        {
            "name": [f"person {number}" for number in range(100)],
            "age": age,
            "city": draw.choice(["Aberdeen", "Bergen", "Cork", "Delft"], 100),
            "ill": np.where(age + draw.normal(0, 15, 100) > 50, "yes", "no"),
            "visits": draw.integers(0, 1000, 100),
        }
    )
    if kind == "refused":
        frame.loc[1, "name"] = frame.loc[0, "name"]
    return frame.drop(columns="visits") if kind == "broken" else frame


def write_policy(folder: Path, k: int) -> None:
    """The spec of the dataset, as an editor writes it."""
    part = folder / "release.part"
    part.write_text(yaml.safe_dump({**POLICY, "privacy": {"k_anonymity": {"k": k}}}, sort_keys=False))
    os.replace(part, folder / "release.yaml")


class Failed(AssertionError):
    """An invariant did not hold."""


@dataclass
class Machine:
    """The web server with its daemon and code server, started again whenever it ends, as systemd would do."""

    home: Home
    data: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def up(self) -> None:
        """Start the processes that do not run."""
        if self.process is not None and self.process.poll() is None:
            return
        if self.process is not None:
            self.kill()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = os.environ | {
            VARIABLE: str(self.home.root),
            DATA_VARIABLE: str(self.data),
            SECONDS_VARIABLE: SECONDS,
            "DAGSTER_GRPC_TIMEOUT_SECONDS": "3600",
        }
        with self.log.open("ab") as log:
            script = Path(sys.executable).with_name("anon-pipeline")
            self.process = subprocess.Popen(
                [script, "ui", "--port", str(port)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1
        self._start_sensor(f"http://127.0.0.1:{port}/graphql")

    def _start_sensor(self, address: str) -> None:
        body = json.dumps({"query": START}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        while self.process is not None and self.process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(request) as answer:
                if b'"Sensor"' in answer.read():
                    return
            time.sleep(1)

    def kill(self, what: str = "all") -> bool:
        """Kill one kind of its processes, or all; returns whether there was one."""
        if self.process is None:
            return False
        pids = [pid for pid, told in self.processes().items() if what in ("all", told)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if what == "all":
            self.process.wait()
        return bool(pids)

    def processes(self) -> dict[int, str]:
        """The processes of its session, and the kind of each."""
        assert self.process is not None
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                after = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(after[3]) == self.process.pid and after[0] != "Z":
                    found[int(folder.name)] = _part((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def worker_seconds(self) -> dict[int, float]:
        """Processor time so far of each process that makes a release."""
        seconds = {}
        for pid, what in self.processes().items():
            with suppress(OSError):
                if what == "worker":
                    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    seconds[pid] = (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")
        return seconds


def _part(command: str) -> str:
    for sign, what in (
        ("spawn_main", "worker"),
        ("anon_pipeline.pipeline.web.webserver", "server"),
        ("dagster._daemon", "daemon"),
    ):
        if sign in command:
            return what
    return "other"


@dataclass
class Sample:
    """The content of the home at a moment: runs that have ended, releases, and bytes of its two zones."""

    runs: int
    published: int
    private: int
    releases: int


@dataclass
class Night:
    """The source and its policy, their changes so far, and the release that must be current."""

    machine: Machine
    folder: Path
    chance: random.Random
    kind: str = "changed"
    seed: int = 0
    k: int = POLICY["privacy"]["k_anonymity"]["k"]
    good: list[int] = field(default_factory=list)  # seeds of contents that were settled as released
    expected: tuple[int, int] | None = None  # the seed and k of the current release
    hurt: bool = False  # whether a run of this content was killed, or had no disk
    did: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    seconds: dict[int, float] = field(default_factory=dict)
    ran: int = 0  # runs that were pruned since they ended
    took: dict[float, float] = field(default_factory=dict)  # seconds of each run that released something, by its start

    def change(self) -> None:
        """Make the next change of the source or of its policy."""
        kinds = [kind for kind in CHANGES if kind != "reverted" or len(self.good) > 1]
        self.kind = self.chance.choices(kinds, [CHANGES[kind] for kind in kinds])[0]
        self.did[self.kind] += 1
        self.hurt = False
        file = self.folder / "people.csv"
        if self.kind == "unchanged" and file.exists():
            os.utime(file)
            return
        if self.kind == "policy":
            self.k = 22 - self.k  # 10 or 12
            write_policy(self.folder, self.k)
            return
        if self.kind == "reverted":
            self.seed = self.chance.choice([seed for seed in self.good if seed != self.seed] or self.good)
        else:
            self.seed += 1 + max([self.seed, *self.good], default=0)
        part = file.with_suffix(".part")
        people(self.seed, self.kind).to_csv(part, index=False)
        os.replace(part, file)

    def settled(self) -> None:
        """Check the invariants once the sensor leaves the content alone."""
        file = self.folder / "people.csv"
        frame = pd.read_csv(file)
        usable = "visits" in frame and frame["name"].is_unique
        if usable:
            self.expected = (self.seed, self.k)
            if self.seed not in self.good:
                self.good.append(self.seed)
        self.check()
        self.did["settled"] += 1
        home = self.machine.home
        published = sum(entry.action == ledger.PUBLISH for entry in ledger.read(home))
        self.samples.append(Sample(self.ran + len(self.runs()), published, _bytes(home.private), _bytes(home.releases)))

    def check(self) -> None:
        """Check the ledger, that each content was published once, and the pointer."""
        home = self.machine.home
        with ledger.undisturbed(home):
            problems = ledger.verify(home)
            entries = ledger.read(home)
        if problems:
            raise Failed("; ".join(problems))
        published = [entry.version for entry in entries if entry.action == ledger.PUBLISH]
        contents = [_published(home.releases / DATASET / version) for version in published]
        if len(set(contents)) != len(contents):
            raise Failed("a content was published twice under one policy")
        for former, entry in pairwise(entries):
            if entry.action == ledger.CURRENT and entry.version == former.version:
                raise Failed("a release that was current was entered once more")
        if self.expected is None:
            return
        if ledger.last_version(home, DATASET) != os.readlink(home.releases / DATASET / ledger.POINTER):
            raise Failed("the pointer and the ledger differ")
        seed, k = self.expected
        if _published(home.releases / DATASET / ledger.POINTER) != (tuple(sorted(people(seed)["visits"])), k):
            raise Failed(f"the current release is not that of content {seed} with k = {k}")

    def note_runs(self) -> None:
        """Record the time of the runs that released something, before they are pruned."""
        self.took |= {start: end - start for status, start, end in self.runs() if status == "SUCCESS" and start}

    def runs(self) -> list[tuple[str, float, float]]:
        """Status, start and end of the runs that have ended."""
        return _asked(
            self.machine.home.private / "dagster" / "history" / "runs.db",
            "SELECT status, start_time, end_time FROM runs WHERE end_time IS NOT NULL ORDER BY id",
        )

    def prune(self) -> None:
        """Remove old runs by the command, while all processes are running."""
        script = Path(sys.executable).with_name("anon-pipeline")
        self.note_runs()
        pruned = subprocess.run(
            [script, "prune", "--older-than", "0h", "--keep", str(KEPT), "--json"],
            env=os.environ | {VARIABLE: str(self.machine.home.root), DATA_VARIABLE: str(self.machine.data)},
            stdout=subprocess.PIPE,
            check=False,
        )
        if pruned.returncode != 0:
            raise Failed(f"prune ended with exit code {pruned.returncode}")
        self.ran += json.loads(pruned.stdout)["runs"]
        self.did["pruned"] += 1

    def ticks(self) -> int:
        """The number of ticks of the sensor and the schedule."""
        found = _asked(_schedules(self.machine.home), "SELECT count(*) FROM job_ticks WHERE status != 'STARTED'")
        return found[0][0] if found else 0

    def said(self) -> str:
        """The last message of the sensor, or an empty text if it is older than the last change of the source."""
        found = _asked(
            _schedules(self.machine.home),
            "SELECT tick_body FROM job_ticks WHERE type = 'SENSOR' AND timestamp > datetime(?, 'unixepoch') "
            "ORDER BY id DESC LIMIT 1",
            max(file.stat().st_ctime for file in self.folder.iterdir()) + 1,
        )
        return str(json.loads(found[0][0]).get("skip_reason") or "") if found else ""

    def maybe_kill(self) -> None:
        """Kill something at random, but at most one run of a content, so that no content dies five times."""
        for what, often in KILLS.items():
            if self.chance.random() < often and not (self.hurt and what in ("worker", "all")):
                working = bool(self.machine.worker_seconds())
                if self.machine.kill(what):
                    self.did[f"{what} killed"] += 1
                    self.hurt = self.hurt or (working and what in ("worker", "all"))


def _schedules(home: Home) -> Path:
    return home.private / "dagster" / "schedules" / "schedules.db"


def _asked(database: Path, query: str, *parameters: object) -> list[Any]:
    """The rows of a query; none while the database does not exist, or the disk is full."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60)) as connection:
            return connection.execute(query, parameters).fetchall()
    except sqlite3.OperationalError:
        return []


def _published(release: Path) -> tuple[tuple[int, ...], int]:
    """The kept column of a release, by which its content is recognized, and its k."""
    (demand,) = json.loads((release / "manifest.json").read_text())["spec"]["privacy"]
    return tuple(sorted(pd.read_parquet(release / "data.parquet")["visits"].astype(int))), demand["k"]


def _bytes(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.lstat().st_blocks * 512
    return total


@contextmanager
def disk(size: str) -> Iterator[tuple[Path, bool]]:
    """A folder, and whether it is a disk of its own that can be filled."""
    folder = Path(tempfile.mkdtemp(prefix="anon-pipeline-soak-"))
    mounted = (
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", folder], check=False).returncode == 0
    )
    try:
        yield folder, mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def fill(folder: Path) -> Path:
    """Fill the disk except for some kilobytes."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    return ballast


def watch(night: Night, ticks: int, full_at: list[int], root: Path) -> None:
    """Run the night for this many ticks, with changes, kills and a full disk."""
    ballast: Path | None = None
    emptied, last, since, pruned = 0.0, -1, 0, 0
    while (now := night.ticks()) < ticks or night.did["settled"] == 0 or not any(s in night.said() for s in SETTLED):
        night.machine.up()
        night.seconds |= night.machine.worker_seconds()
        if ballast is not None and time.monotonic() >= emptied:
            ballast.unlink()  # an operator has noticed the full disk
            ballast = None
        if now == last:
            time.sleep(1)
            continue
        last = now
        if full_at and now >= full_at[0] and ballast is None and not night.hurt:
            full_at.pop(0)
            night.change()
            ballast, emptied, night.hurt = fill(root), time.monotonic() + FULL_FOR, True
            night.did["full disk"] += 1
        elif now < ticks:
            night.maybe_kill()
        if now >= pruned + PRUNE_EVERY and ballast is None:
            pruned = now
            night.prune()
        if now >= since + 3 and any(sign in night.said() for sign in SETTLED):
            night.settled()
            print(f"{now} ticks, {len(night.runs())} runs: {night.kind} settled; {dict(night.did)}", flush=True)
            if now < ticks:
                night.change()
                since = now
        elif now >= since + 4 and night.chance.random() < 0.02 and now < ticks:
            night.did["changed again before it was settled"] += 1
            night.change()
            since = now


def report(night: Night) -> None:
    """Print disk and time per run at the start, in the middle and at the end."""
    runs, samples = night.runs(), night.samples
    print(json.dumps({"did": night.did, "starts": night.machine.starts, "endings": Counter(run[0] for run in runs)}))
    seconds = list(night.seconds.values())
    night.note_runs()
    took = [seconds for _, seconds in sorted(night.took.items())]
    if len(samples) < 3:
        return
    for name, part in (("start", 0), ("middle", 1), ("end", 2)):
        few = samples[len(samples) * part // 3 : len(samples) * (part + 1) // 3 + (part < 2)]
        ran = max(few[-1].runs - few[0].runs, 1)
        wall = took[len(took) * part // 3 : len(took) * (part + 1) // 3] or took
        print(
            f"{name}: {statistics.median(wall):.0f} s a run ({len(wall)} that released); disk per run: private "
            f"{(few[-1].private - few[0].private) / ran / 1000:+.0f} KB, releases "
            f"{(few[-1].releases - few[0].releases) / ran / 1000:+.0f} KB; private zone {few[-1].private / 1e6:.1f} MB "
            f"after {few[-1].runs} runs and {few[-1].published} releases"
        )
    if seconds:
        print(f"processor time of a worker: median {statistics.median(seconds):.1f} s of {len(seconds)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory-disk", default="600m")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that nothing is left mounted or running
    with disk(given.memory_disk) as (root, can_fill):
        folder = root / "data" / DATASET
        folder.mkdir(parents=True)
        write_policy(folder, POLICY["privacy"]["k_anonymity"]["k"])
        people(0).to_csv(folder / "people.csv", index=False)
        log = Path(tempfile.gettempdir()) / f"anon-pipeline-soak-{os.getpid()}.log"
        machine = Machine(Home(root / "home"), root / "data", log)
        night = Night(machine, folder, random.Random(given.seed))
        if not can_fill:
            print("no memory disk can be mounted: the disk is never full")
        full_at = [given.ticks // 3, 2 * given.ticks // 3] if can_fill else []
        try:
            watch(night, given.ticks, full_at, root)
            night.settled()
            report(night)
        except SystemExit:  # stopped: the report covers the time until now
            report(night)
            raise
        except Failed as failed:
            print(f"FAILED after {night.ticks()} ticks: {failed}; the log is {log}")
            shutil.copytree(root, log.with_suffix(""), symlinks=True, ignore=shutil.ignore_patterns("ballast"))
            sys.exit(1)
        finally:
            machine.kill()
        log.unlink(missing_ok=True)
        print(f"{night.ticks()} ticks: everything held")


if __name__ == "__main__":
    main()
