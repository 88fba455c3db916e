"""A run whose release is put to two places, one of which is away: it is released, told, healed and withdrawn."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import dagster as dg
import yaml

from anon_pipeline.pipeline.automation.next_run import RETRY_AFTER, Action, decide
from anon_pipeline.pipeline.automation.past_runs import known
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.run_tags import CONTENT_TAG, POLICY_TAG
from anon_pipeline_tests.end_to_end.harness import command, released
from anon_pipeline_tests.object_store import ACCESS_KEY, SECRET, ObjectStore
from anon_pipeline_tests.skips import require_package

AWAY = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


def surroundings(environment: Mapping[str, str]) -> None:
    os.environ |= environment


def test_a_place_that_is_away_leaves_the_release_standing_and_is_healed(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    deltalake = require_package("deltalake")
    place = released()[0].copy(tmp_path)
    version = place.release.name
    spec = yaml.safe_load((place.dataset / "release.yaml").read_text())
    spec["publish"] = [{"objects": "s3://clinic/open"}, {"delta": "open/people"}]
    (place.dataset / "release.yaml").write_text(yaml.safe_dump(spec))

    ended = place.run("--json", sabotage=partial(surroundings, AWAY))
    told = json.loads(ended.stdout)
    assert ended.exit_code == 4, ended.said
    assert (told["released"], told["manifest"]["version"]) == (True, version), "the version stays what it was"
    assert len(told["failures"]) == 1
    assert (
        f"people/{version} is published and stands, but not every destination follows: s3://clinic/open" in ended.said
    )
    assert "Not released" not in ended.said
    assert SECRET not in ended.said
    rows = deltalake.DeltaTable(str(place.dataset / "open/people")).to_pyarrow_table()
    assert rows.num_rows == told["manifest"]["rows"]["released"], "the other place was served"
    with open_instance(place.home) as instance:
        run = instance.get_run_by_id(told["run_id"])
        assert run is not None
        assert run.status is dg.DagsterRunStatus.FAILURE, "whoever is alerted of failures hears of it"
        of_content = (place.home, "people", run.tags[CONTENT_TAG], run.tags[POLICY_TAG])
        later = time.time() + RETRY_AFTER[0]
        assert decide(known(instance, *of_content), later).action is Action.RUN, "the sensor tries again"

    there = {"home": place.home.root, "sabotage": partial(surroundings, dict(object_store.environment))}
    ended = command("releases", "verify", **there)  # type: ignore[arg-type]
    assert ended.exit_code == 3
    assert "at s3://clinic/open: manifest.json is gone" in ended.said
    assert command("releases", "deliver", version, **there).exit_code == 0  # type: ignore[arg-type]
    assert command("releases", "verify", version, **there).exit_code == 0  # type: ignore[arg-type]
    with open_instance(place.home) as instance:
        assert decide(known(instance, *of_content), later).action is Action.SKIP
    ended = command("releases", "show", version, "--json", **there)  # type: ignore[arg-type]
    assert {copy["label"]: copy["state"] for copy in json.loads(ended.stdout)["copies"]} == {
        "s3://clinic/open": "stands",
        f"delta:{place.dataset}/open/people": "stands",
    }
    ended = command("releases", "withdraw", version, "--why", "a test", **there)  # type: ignore[arg-type]
    assert ended.exit_code == 0, ended.said
    assert "the log of the table still says that there was such a release" in ended.said
    assert deltalake.DeltaTable(str(place.dataset / "open/people")).to_pyarrow_table().num_rows == 0
    assert command("releases", "verify", **there).exit_code == 0  # type: ignore[arg-type]
    left = [file for file in place.home.root.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert left == []
