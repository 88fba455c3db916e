"""A synthetic release that is killed, or finds the disk full, at each call that changes a file; and two at once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from anon_pipeline.differential_privacy import ledger as budget_ledger
from anon_pipeline.differential_privacy.budget import Allowance, Budget, State
from anon_pipeline.differential_privacy.mechanisms import require_library
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.synthesis.made_table import make_table, measure_people, protection
from anon_pipeline.differential_privacy.verification import verify
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.keys import private_key
from anon_pipeline.plain_json import finite
from anon_pipeline.release import ledger, unfinished
from anon_pipeline.release.publication import MANIFEST, Published
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.publish_synthetic import COUNTS, publish_synthetic
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.killed import FORK, End, exit_code, fail_at
from anon_pipeline_tests.differential_privacy.synthetic_people import content, people, write
from anon_pipeline_tests.end_to_end.harness import scratch


def release(spec: ReleaseSpec, home: Home) -> Published:
    """What the steps of the graph do one after another: people are measured, rows are drawn, both are published."""
    engine = DuckDBEngine(home.private_folder("spill"), threads=1)
    counts, _ = measure_people(engine, spec, home, private_key(spec, home))
    made = make_table(spec, counts)
    table = home.private_folder("stage") / f"{os.getpid()}.parquet"  # runs of a dataset go one after another; we do not
    pq.write_table(made.table, table)
    facts = {
        "differential_privacy": protection(spec, counts),
        "rows": {"synthetic": made.table.num_rows},
        "quality": made.quality(),
        "checks": [],
    }
    return publish_synthetic(home, spec, json.loads(counts)["token"], {DATA: table, COUNTS: counts}, finite(facts))


def budget_of(spec: ReleaseSpec, home: Home) -> Budget:
    return Budget(home, Allowance.of(asked_of(spec)))


def require_paid_for(spec: ReleaseSpec, home: Home) -> tuple[State, list[str]]:
    """Reserved >= answered >= released, both ledgers whole, and every folder that is visible whole."""
    budget = budget_of(spec, home)
    state, problems = budget.state(), verify(budget).problems
    assert not problems
    versions = [entry.version for entry in ledger.read(home)]
    assert state.reserved >= state.answered >= len(versions)
    folders = [path for path in (home.releases / spec.dataset).glob("[!.]*") if not path.is_symlink()]
    assert len(folders) <= state.answered
    for folder in folders:
        files = json.loads((folder / MANIFEST).read_text())["files"]
        assert all(sha256_of(folder / name) == facts["sha256"] for name, facts in files.items())
    return state, versions


def _until(spec: ReleaseSpec, home: Home, count: int, end: End) -> None:
    left = fail_at(count, end)
    try:
        release(spec, home)
    except (OSError, InputError):
        os._exit(1)
    os._exit(1 if left[0] < 0 else 0)  # some calls may fail without harm


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory, since a release waits for the disk at every call that is tried here."""
    folder = scratch()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def spec(place: Path) -> ReleaseSpec:
    require_library()  # before the forks, so that each need not load it
    columns = {name: said for name, said in content()["columns"].items() if name in ("id", "city", "ill")}
    asked = content()["differential_privacy"]
    asked |= {"domains": {name: asked["domains"][name] for name in ("city", "ill")}}
    table = people(60).select(list(columns))
    synthesis = {"rho": 0.0001, "rounds": 1}
    return write(place / "clinic", table, columns=columns, differential_privacy=asked, synthesis=synthesis)


@pytest.mark.long
def test_whatever_ends_it_nothing_is_spent_twice_and_nothing_half_is_published(place: Path, spec: ReleaseSpec) -> None:
    """It ends at each call in turn, one way or another; what goes on after it takes the stored counts, if any."""
    ends: tuple[End, ...] = ("killed", "full", "torn")
    for count in range(300):
        end = ends[count % 3]
        home = Home(place / f"{count}").prepare()
        code = exit_code(_until, spec, home, count, end)
        before, _ = require_paid_for(spec, home)
        if code == 0:
            break
        unfinished.finish(home)
        require_paid_for(spec, home)
        release(spec, home)
        after, versions = require_paid_for(spec, home)
        assert len(versions) == 1, count
        assert (after.reserved - before.reserved, after.answered) == (1 - before.answered, 1), count
        assert not ledger.verify(home), count
        assert not [path for path in (home.releases / spec.dataset).iterdir() if path.name.startswith(".")], count
        shutil.rmtree(home.root)
    else:
        pytest.fail("the release never ended")
    assert count > 20  # it ended on the way often enough


def _whole(spec: ReleaseSpec, home: Home) -> None:
    release(spec, home)
    os._exit(0)


@pytest.mark.long
def test_two_at_once_release_what_was_paid_for(place: Path, spec: ReleaseSpec) -> None:
    home = Home(place / "home").prepare()
    children = [FORK.Process(target=_whole, args=(spec, home)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    state, versions = require_paid_for(spec, home)
    assert 1 <= len(set(versions)) <= state.answered == state.reserved <= 2
    assert not ledger.verify(home)


@pytest.mark.long
def test_a_clock_that_is_set_back_releases_nothing_anew(
    place: Path, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(place / "home").prepare()
    first = release(spec, home)

    class Early(budget_ledger.datetime):  # type: ignore[name-defined, misc]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(1990, 1, 1, tzinfo=tz)

    monkeypatch.setattr(budget_ledger, "datetime", Early)
    monkeypatch.setattr(ledger, "datetime", Early)
    again = release(spec, home)
    assert (again.version, again.new) == (first.version, False)
    state, versions = require_paid_for(spec, home)
    assert (state.reserved, versions) == (1, [first.version])
