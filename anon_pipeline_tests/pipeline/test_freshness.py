"""How old a release may be: one missed tick warns, two fail, however a schedule is spaced."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.pipeline.automation.jobs import build_statistics_schedule
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.freshness import freshness, longest_gap
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness


@pytest.mark.parametrize(
    ("schedule", "gap"),
    [
        ("0 3 * * *", timedelta(days=1)),
        ("*/15 * * * *", timedelta(minutes=15)),
        ("0 3 * * 1-5", timedelta(days=3)),
        ("*/5 9-17 * * 1-5", timedelta(days=2, hours=15, minutes=5)),
        ("0 0 1 * *", timedelta(days=31)),
        ("0 0 1 1 *", timedelta(days=366)),
    ],
)
def test_the_longest_gap_is_found_over_weekends_months_and_leap_years(schedule: str, gap: timedelta) -> None:
    assert longest_gap(schedule) == gap


def spec_of(folder: Path, schedule: str | None) -> ReleaseSpec:
    content = harness.policy() | ({} if schedule is None else {"schedule": schedule})
    return ReleaseSpec.load(harness.write_dataset(folder / "people", spec=content))


def test_a_release_is_late_after_a_quarter_of_the_time_and_missing_after_two(tmp_path: Path) -> None:
    policy = freshness(spec_of(tmp_path, "0 3 * * *"))
    assert policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=54), warn_window=timedelta(hours=30)
    )  # a day and six hours, two days and six hours


def test_without_a_schedule_no_release_is_ever_late(tmp_path: Path) -> None:
    assert freshness(spec_of(tmp_path, None)) is None


@pytest.mark.parametrize("schedule", ["nightly", "0 25 * * *", "0 0 30 2 *", "* * * * * *", ""])
def test_a_schedule_that_is_none_is_told_and_hides_no_other_dataset(tmp_path: Path, schedule: str) -> None:
    with pytest.raises(InputError, match=r'schedule: .* is no cron schedule; write minute, .* as "0 3 \* \* \*"'):
        freshness(spec_of(tmp_path, schedule))
    harness.write_dataset(tmp_path / "others", spec=harness.policy("others"))
    definitions = build_definitions(runtime=Runtime(home=str(tmp_path / "home")), data=tmp_path)
    keys = {one.key.to_user_string() for one in definitions.resolve_all_asset_specs()}
    assert "others/release" in keys
    assert "people/spec" in keys


@pytest.mark.parametrize("schedule", ["nightly", "0 25 * * *", ""])
def test_a_schedule_of_questions_that_is_none_is_told(schedule: str) -> None:
    """Dagster's own error ended `statistics` as an internal one, and hid every other dataset in the UI."""
    spec: Any = SimpleNamespace(dataset="people", differential_privacy=SimpleNamespace(schedule=schedule))
    job: Any = "people_statistics"
    with pytest.raises(InputError, match=r"^differential_privacy\.schedule: .* is no cron schedule"):
        build_statistics_schedule(spec, job)


def test_only_the_release_is_judged_by_its_age(tmp_path: Path) -> None:
    definitions = build_definitions([spec_of(tmp_path, "0 3 * * *")], Runtime(home=str(tmp_path / "home")))
    specs = {one.key.path[-1]: one.freshness_policy for one in definitions.resolve_all_asset_specs()}
    assert {name for name, policy in specs.items() if policy is not None} == {"release"}
