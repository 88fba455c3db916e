"""Dagster's own settings and the place of its runs, the same for the commands, the UI and the daemon."""

import os
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from anon_pipeline.home import Home, write_file
from anon_pipeline.pipeline.run_tags import DATASET_TAG
from anon_pipeline.pipeline.stores import DAGSTER

#: Seconds that a busy machine may take for the imports of a code server or a run.
LONGEST_WAIT = 1800


def settings(storage: str, on_server: bool = False) -> dict[str, Any]:
    """The content of dagster.yaml for a storage folder; the file in the repository's root says the same.

    If the runs are `on_server`, it names the variable that holds the address of their database.
    """
    return {
        "storage": {"postgres": {"postgres_url": {"env": DAGSTER.variable}}}
        if on_server
        else {"sqlite": {"base_dir": storage}},
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        "compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"},
        "concurrency": {
            # The pool of a dataset limits everything that uses the dataset, the tag limits runs of its job.
            "pools": {"granularity": "run", "default_limit": 1},
            "runs": {
                "max_concurrent_runs": 4,
                "tag_concurrency_limits": [
                    {"key": DATASET_TAG, "limit": 1, "value": {"applyLimitPerUniqueValue": True}}
                ],
            },
        },
        # A run whose process was killed stays "started" and blocks its dataset's queue until the run is too long.
        "run_monitoring": {
            "enabled": True,
            "start_timeout_seconds": LONGEST_WAIT,
            "max_runtime_seconds": 86_400,
            "poll_interval_seconds": 60,
        },
        "code_servers": {"local_startup_timeout": LONGEST_WAIT, "reload_timeout": LONGEST_WAIT},
        "retention": {
            "schedule": {"purge_after_days": {"skipped": 7, "failure": 90, "success": 90}},
            "sensor": {"purge_after_days": {"skipped": 7, "failure": 90, "success": 90}},
        },
    }


def dagster_home(home: Home) -> Path:
    """The folder to use as DAGSTER_HOME, with its dagster.yaml written.

    Raises
    ------
    InputError
        Where the runs are kept on a server that cannot be used.
    """
    folder = home.private_folder("dagster")
    address = DAGSTER.address(home)
    if address is not None:
        DAGSTER.check_answers(address)
        os.environ[DAGSTER.variable] = address  # Dagster and the processes that it starts read it
    content = yaml.safe_dump(settings(str(folder), address is not None), sort_keys=False)
    file = folder / "dagster.yaml"
    if not file.exists() or file.read_text() != content:
        write_file(file, content)
    return folder


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance whose runs the UI shows."""
    with home.lock("dagster"):  # two processes must not create the schemas at once
        return dg.DagsterInstance.from_config(str(dagster_home(home)))
