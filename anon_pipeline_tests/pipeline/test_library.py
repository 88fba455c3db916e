"""`anon_pipeline.run` in a program of somebody else: in several threads, and what it leaves of the process."""

import os
from pathlib import Path
from threading import Thread

import pytest

from anon_pipeline.errors import Refused
from anon_pipeline.home import Home
from anon_pipeline.pipeline import launch, library
from anon_pipeline.pipeline.launch import Outcome
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset


def refused(dataset: Path, home: Path) -> None:
    with pytest.raises(Refused):
        library.run(dataset, home=home, threads=1)


def test_a_run_in_another_thread_waits_until_the_first_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they left Dagster's functions replaced, and at times waited for each other's imports for ever."""
    datasets = [write_dataset(tmp_path / name, spec=policy(name)) for name in ("people", "others")]
    first, second = [Thread(target=refused, args=(dataset, tmp_path / "home")) for dataset in datasets]
    seen: list[str] = []

    def seen_to_run(spec: library.ReleaseSpec, *_: object) -> Outcome:
        seen.append(f"{spec.dataset} begins")
        if spec.dataset == "people":
            second.start()
            second.join(timeout=0.5)  # two that do not wait for each other meet here
        seen.append(f"{spec.dataset} ends")
        return Outcome(3, "", ["enough"])

    monkeypatch.setattr(launch, "launch", seen_to_run)
    first.start()
    first.join()
    second.join()
    assert seen == ["people begins", "people ends", "others begins", "others ends"]


def test_the_umask_of_the_program_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def refuses(_spec: object, home: Home, _runtime: object) -> Outcome:
        (home.private / "file").touch()
        seen.append((home.private / "file").stat().st_mode & 0o777)
        return Outcome(3, "", ["enough"])

    monkeypatch.setattr(launch, "launch", refuses)
    before = os.umask(0o022)
    try:
        refused(write_dataset(tmp_path / "people"), tmp_path / "home")
        after = os.umask(0o022)
    finally:
        os.umask(before)
    assert seen == [0o600]
    assert after == 0o022
