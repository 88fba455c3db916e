"""A run on a cluster of several processes gives the release of one machine, though parts of the cluster fail."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from anon_pipeline_tests.end_to_end.harness import Command, Place, people, policy, write_dataset
from anon_pipeline_tests.quick_spark import LOG, write_defaults
from anon_pipeline_tests.spark_cluster import (
    UNCOMPILED,
    Cluster,
    executors_of,
    kill_executors,
    kill_with_all_it_started,
    running_cluster,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def surroundings(address: str, configuration: str, sabotage: Callable[[], None] | None = None) -> None:
    """In the process of the command: where the cluster is, and what happens to it."""
    os.environ |= {"SPARK_MASTER": address, "SPARK_CONF_DIR": configuration}
    if sabotage is not None:
        sabotage()


def on(cluster: Cluster, sabotage: Callable[[], None] | None = None) -> partial[None]:
    return partial(surroundings, cluster.address, str(cluster.configuration), sabotage)


def lose_an_executor_and_a_worker(workers: list[int], told: str) -> None:
    """An executor is ended before the sample is drawn, and a worker with its executors before people are recoded."""
    from anon_pipeline.engine.spark import SparkEngine

    def before(name: str, happens: Callable[[], None]) -> None:
        does = getattr(SparkEngine, name)

        def done(*given: object, **named: object) -> object:
            setattr(SparkEngine, name, does)  # once
            happens()
            return does(*given, **named)

        setattr(SparkEngine, name, done)

    def executor_ends() -> None:
        with open(told, "a") as file:
            print("executors", len(executors_of(workers[0])), len(executors_of(workers[1])), file=file)
        kill_executors(workers[0])

    def worker_ends() -> None:
        with open(told, "a") as file:
            print("worker", len(executors_of(workers[1])), file=file)
        kill_with_all_it_started(workers[1])

    before("sample", executor_ends)
    before("write_release", worker_ends)


def test_a_run_outlives_an_executor_and_a_worker(cluster: Cluster, published: Place) -> None:
    told = published.home.root / "told"
    before = published.releases()
    ended = published.run(
        "--json",
        "--engine",
        "spark",
        sabotage=on(cluster, partial(lose_an_executor_and_a_worker, cluster.workers, str(told))),
    )
    assert ended.exit_code == 0, ended.said
    assert json.loads(ended.stdout)["new"] is False, "the release of one machine stands, and this is the same"
    assert published.releases() == before
    assert told.read_text().splitlines() == ["executors 1 1", "worker 1"], "both workers computed until they were ended"


def test_too_little_memory_is_told_and_publishes_nothing(cluster: Cluster, published: Place, folder: Path) -> None:
    """One value takes more than an executor has: a copy of it, and one is made, fills the most that its heap can be."""
    frame = people().assign(visits="0")
    frame.loc[0, "visits"] = "x" * (200 << 20)
    spec = policy()
    spec["source"] = {"path": "people.parquet"}
    spec["columns"]["visits"] = {"role": "insensitive", "type": "categorical"}
    write_dataset(published.dataset, frame.head(0), spec)
    frame.to_parquet(published.dataset / "people.parquet", index=False)
    before = published.releases()
    once = write_defaults(folder, f"{UNCOMPILED}\nspark.task.maxFailures 1\n", LOG)
    sabotage = partial(surroundings, cluster.address, str(once))
    ended = published.run("--engine", "spark", sabotage=sabotage)
    assert ended.exit_code == 2, ended.said
    assert re.search("Spark ran out of memory|may have run out of memory", ended.sentence), ended.sentence
    assert published.releases() == before


def look_often() -> None:
    from anon_pipeline.engine import spark_process

    spark_process.LOOKS_EVERY = 0.5


def test_a_cluster_that_has_nobody_for_the_work_is_told(cluster: Cluster, published: Place, folder: Path) -> None:
    asks = write_defaults(folder, f"{UNCOMPILED}\nspark.executor.memory 64g\n", LOG)
    sabotage = partial(surroundings, cluster.address, str(asks), look_often)
    waits = Command("run", published.dataset, "--engine", "spark", home=published.home.root, sabotage=sabotage)
    while "no worker of the cluster" not in waits.says() and waits.is_running():
        time.sleep(0.1)
    assert "the memory (64g)" in waits.says()
    waits.stop()
    assert waits.ended().exit_code == 130
