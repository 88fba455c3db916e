"""Work side by side: equal results from any number of processes, and none that outlives its caller or says a word."""

from __future__ import annotations

import multiprocessing
import multiprocessing.queues
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.workers import ALONE, MEMORY_OF_ONE, Tally, Workers, bytes_of, how_many

SECRET = "Zebulon Quackenbush"


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with Workers(2) as workers:
        yield workers


def drawn(seed: int) -> float:
    return float(np.random.default_rng(seed).normal(size=1000).sum())


def threads(_: int) -> set[int]:
    from sklearn.ensemble import RandomForestClassifier

    x = np.arange(40.0)[:, None]
    RandomForestClassifier(4, n_jobs=-1).fit(x, x[:, 0] > 20)
    return {pool["num_threads"] for pool in threadpool_info()}


def refuse(failed: list[str]) -> None:
    raise Refused(failed)


def unusable(number: int) -> int:
    if number == 1:
        raise InputError("the column age cannot be used")
    return number


def gossip(_: int) -> int:
    warnings.warn(SECRET, stacklevel=1)
    return os.getpid()


def printed(_: int) -> int:
    return sys.stdout.fileno()


def killed(number: int) -> None:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def write_and_wait(file: Path) -> None:
    file.write_text(str(os.getpid()))
    while True:
        time.sleep(1)


@pytest.mark.long
def test_results_come_in_order_and_do_not_depend_on_how_many_work(two: Workers) -> None:
    tasks = [(seed,) for seed in range(7)]
    assert two.map(drawn, tasks) == ALONE.map(drawn, tasks) == [drawn(seed) for seed in range(7)]


@pytest.mark.long
def test_a_task_has_one_thread_wherever_it_runs(two: Workers) -> None:
    for workers in (two, ALONE):
        assert all(seen <= {1} for seen in workers.map(threads, [(1,), (2,)]))


@pytest.mark.long
def test_processes_are_others_and_stay_for_the_next_tasks(two: Workers) -> None:
    first, second = (set(two.map(gossip, [(n,) for n in range(8)])) for _ in range(2))
    assert os.getpid() not in first | second
    assert len(first | second) <= 2


@pytest.mark.parametrize("count", [1, 2])
def test_progress_counts_over_several_calls(count: int, two: Workers) -> None:
    said: list[tuple[int, int]] = []
    first = Tally(lambda *given: said.append(given), after=2)
    workers = two if count == 2 else ALONE
    workers.map(drawn, [(1,), (2,), (3,)], first)
    workers.map(drawn, [(1,), (2,)], first.next())
    assert said == [(done, 5) for done in range(1, 6)]


def test_what_a_task_prints_is_no_output_of_the_command(two: Workers) -> None:
    """A model that prints would break the one JSON object on stdout, which is file 1 in every process."""
    assert 1 not in set(two.map(printed, [(0,), (1,)]))


def test_what_a_task_refuses_arrives_whole(two: Workers) -> None:
    with pytest.raises(Refused) as refused:
        two.map(refuse, [(["k is 9", "l is 1"],)] * 2)
    assert refused.value.failed == ["k is 9", "l is 1"]
    assert str(refused.value) == "refused: k is 9; l is 1"


def test_after_an_error_work_goes_on_with_new_processes(two: Workers) -> None:
    with pytest.raises(InputError, match="the column age cannot be used"):
        two.map(unusable, [(n,) for n in range(4)])
    assert two.map(drawn, [(1,), (2,)]) == [drawn(1), drawn(2)]


def test_a_process_that_is_killed_is_told_in_a_sentence(two: Workers) -> None:
    with pytest.raises(InputError, match=r"one of 2 .* was ended from outside, most likely .* --threads"):
        two.map(killed, [(0,), (1,), (2,)])


def asked_meanwhile(workers: Workers) -> float:
    with workers.meanwhile(drawn, 1) as result:
        return result()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("ask", [asked_meanwhile, lambda workers: workers.map(drawn, [(1,), (2,), (3,)])])
def test_a_system_that_starts_no_further_thread_is_told(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Workers], object]
) -> None:
    """The thread that hands tasks to the processes dies of it, and the run waited for ever, with its locks."""

    def refused(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("anon_pipeline.workers.LOOK_AGAIN", 0.1)
    with Workers(2) as workers:
        with monkeypatch.context() as patched:
            patched.setattr(multiprocessing.queues.Queue, "_start_thread", refused)
            with pytest.raises(InputError, match="starts no further thread"):
                ask(workers)
        assert workers.map(drawn, [(1,), (2,)]) == [drawn(1), drawn(2)]


def test_a_pool_that_reports_the_lack_of_a_thread_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """So Python does since 3.12.1, where the waiting thread no longer dies in silence."""

    def broken(*_: object) -> None:
        raise BrokenProcessPool from RuntimeError("can't start new thread")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", broken)
    with Workers(2) as workers, pytest.raises(InputError, match="starts no further thread"):
        workers.map(drawn, [(1,), (2,)])


@pytest.mark.parametrize("done", [True, False])
def test_a_pool_that_breaks_between_two_tasks_is_told_by_the_first(monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    """Since Python 3.12.1 the thread may die before all tasks are handed in; what it died of stands in the first."""
    first: Future[float] = Future()
    if done:
        first.set_result(drawn(1))
    else:
        broken = BrokenProcessPool("a child process terminated abruptly")
        broken.__cause__ = RuntimeError("can't start new thread")
        first.set_exception(broken)
    submitted = iter([first])

    def submit(*_: object) -> Future[float]:
        for future in submitted:
            return future
        raise BrokenProcessPool("the pool is not usable anymore")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    said = "was ended from outside" if done else "starts no further thread"
    with Workers(2) as workers, pytest.raises(InputError, match=said):
        workers.map(drawn, [(1,), (2,)])


def test_meanwhile_gives_the_result_when_it_is_asked_for(two: Workers) -> None:
    for workers in (two, ALONE):
        with workers.meanwhile(drawn, 3) as result:
            assert workers.map(drawn, [(1,), (2,)]) == [drawn(1), drawn(2)]
            assert result() == drawn(3)


def test_an_error_in_the_block_ends_what_was_begun_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with Workers(2) as workers:
        with pytest.raises(InputError, match="something else"):
            fail_meanwhile(workers, file)
        gone(int(file.read_text()))


def fail_meanwhile(workers: Workers, file: Path) -> None:
    with workers.meanwhile(write_and_wait, file):
        waited_for(file)
        raise InputError("something else")


@pytest.mark.long
def test_processes_end_with_their_caller_however_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    caller = multiprocessing.get_context("spawn").Process(target=caller_of, args=(file,))
    caller.start()
    pid = waited_for(file)
    os.kill(caller.pid, signal.SIGKILL)  # type: ignore[arg-type]
    caller.join()
    gone(pid)


def caller_of(file: Path) -> None:
    with Workers(2).meanwhile(write_and_wait, file) as result:
        result()


@pytest.mark.long
def test_ctrl_c_while_the_first_process_starts_shows_no_traceback(tmp_path: Path) -> None:
    """The terminal sends it to all, and what processes are forked from told how far it was in its imports."""
    (tmp_path / "caller.py").write_text(
        "from anon_pipeline.workers import Workers\n"
        "if __name__ == '__main__':\n"
        "    try:\n"
        "        Workers(2).map(int, [(1,), (2,)])\n"
        "    except (EOFError, ConnectionResetError):  # by the version of Python\n"
        "        print('ended')\n"
    )
    with subprocess.Popen(
        [sys.executable, tmp_path / "caller.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as caller:
        importing = None
        while importing is None and caller.poll() is None:
            children = Path(f"/proc/{caller.pid}/task/{caller.pid}/children").read_text().split()
            importing = next((pid for pid in children if "numpy" in Path(f"/proc/{pid}/maps").read_text()), None)
        assert importing is not None
        os.kill(int(importing), signal.SIGINT)
        said, complained = caller.communicate()
    assert said == "ended\n"
    assert "KeyboardInterrupt" not in complained


def called(folder: Path, asked: str, *lines: str) -> subprocess.CompletedProcess[str]:
    """A program that runs these lines; `asked` is the text of a module of its tasks. It waits until all have ended."""
    (folder / "asked.py").write_text(asked)
    block = "".join(f"    {line}\n" for line in lines)
    (folder / "caller.py").write_text(
        f"import asked\nfrom anon_pipeline.workers import Workers\nif __name__ == '__main__':\n{block}"
    )
    command, found = [sys.executable, folder / "caller.py"], os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, env=found, capture_output=True, text=True, check=True)


@pytest.mark.long
def test_imports_are_done_while_the_caller_does_something_else(tmp_path: Path) -> None:
    """What processes are forked from imports a module that waits for what the caller does next: else both wait."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "patient.py").write_text(
        "from pathlib import Path\nHEARD = Path(__file__).with_name('pipe').read_text()\n"
    )
    caller = called(
        tmp_path,
        "def heard(_):\n    import patient\n    return patient.HEARD\n",
        "from pathlib import Path",
        "with Workers(2, ['patient']) as workers:",
        "    workers.warm()",
        "    Path(__file__).with_name('pipe').write_text('go on')",
        "    print(workers.map(asked.heard, [(1,), (2,)]))",
    )
    assert caller.stdout == "['go on', 'go on']\n"


@pytest.mark.long
def test_imports_are_made_once_for_all_processes(tmp_path: Path) -> None:
    """What tasks need also where the caller has it, since no process is a copy of the caller; a checker only else."""
    for name in ("task", "checker", "checker_here"):
        (tmp_path / f"{name}.py").write_text("import os\nIMPORTED_BY = os.getpid()\n")
    caller = called(
        tmp_path,
        "import os, sys\n"
        "def importers(_):\n"
        "    return [sys.modules[name].IMPORTED_BY == os.getppid() if name in sys.modules else None\n"
        "            for name in ('task', 'checker', 'checker_here')]\n",
        "import checker_here, task",
        "with Workers(2, imports=['task'], unless_here=['checker', 'checker_here']) as workers:",
        "    print(workers.map(asked.importers, [(1,), (2,)]))",
    )
    assert caller.stdout == "[[True, True, None], [True, True, None]]\n"


@pytest.mark.long
def test_what_processes_are_forked_from_ends_without_a_word(tmp_path: Path) -> None:
    """It ends after its caller, so what it says would stand below the user's prompt; DuckDB counts what it leaves."""
    (tmp_path / "kept.py").write_text("import duckdb, gc\ngc.freeze()\n")  # as large imports do
    caller = called(
        tmp_path,
        "def name(_):\n    return __name__\n",
        "with Workers(2, imports=['kept']) as workers:",
        "    print(workers.map(asked.name, [(1,), (2,)]))",
    )
    assert caller.stdout == "['asked', 'asked']\n"
    assert caller.stderr == ""


def test_a_process_says_nothing_of_what_libraries_warn_about(capfd: Any) -> None:
    with Workers(2) as workers:
        workers.map(gossip, [(1,), (2,)])
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err


def waited_for(file: Path) -> int:
    while not file.exists() or not file.read_text():
        time.sleep(0.05)
    return int(file.read_text())


def gone(pid: int) -> None:
    """Wait until a process is no more; one that waits to be reaped is none."""
    while Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("threads", "memory", "expected"),
    [(1, "64GB", 1), (4, "64GB", 4), (4, "600MB", 1), (4, "1.3GB", 2), (4, "1KB", 1), (3, None, None)],
)
def test_threads_and_memory_bound_how_many(threads: int, memory: str | None, expected: int | None) -> None:
    assert how_many(threads, memory) == expected if expected else 1 <= how_many(threads, memory) <= threads


def test_memory_is_read_as_a_spec_writes_it() -> None:
    assert [bytes_of(one) for one in ("4GB", "512MiB", "1.5 KB")] == [4 * 10**9, 512 * 2**20, 1500]
    assert MEMORY_OF_ONE < bytes_of("50%") * 2 <= bytes_of("100%") + 1
    with pytest.raises(InputError, match="lots is no amount of memory"):
        bytes_of("lots")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how many files are open")
def test_nothing_is_written_to_disk(two: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    table = np.zeros(10_000_000)  # joblib would map an array of this size into a file
    assert two.map(np.sum, [(table,), (table,)]) == [0.0, 0.0]
    assert list(tmp_path.iterdir()) == []
