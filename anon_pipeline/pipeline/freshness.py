"""How old a dataset's last release may be, from the schedule of its spec."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import dagster as dg

from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec

#: Days over which a schedule is evaluated, increasing until there are enough ticks: weekends, months, leap days.
HORIZONS = (9, 70, 366 * 9)
ENOUGH = 8
#: How late a release may come, as a share of the longest time between two ticks.
GRACE = 0.25


def freshness(spec: ReleaseSpec) -> dg.FreshnessPolicy | None:
    """The policy that warns if one scheduled release is missing, and fails if two are; None without a schedule.

    A release is due after its tick, within a quarter of the longest time between two ticks.
    """
    late = late_after(spec)
    if late is None or spec.schedule is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=longest_gap(spec.schedule) + late, warn_window=late)


def late_after(spec: ReleaseSpec) -> timedelta | None:
    """The time after the last release from which the next one is late; None without a schedule."""
    if spec.schedule is None:
        return None
    longest = longest_gap(spec.schedule)
    return longest + max(longest * GRACE, timedelta(minutes=1))


def longest_gap(schedule: str, key: str = "schedule") -> timedelta:
    """The longest time between two ticks of a cron schedule, in UTC, that stands at a key of the spec.

    Raises
    ------
    InputError
        If it is no schedule, or one without any tick.
    """
    written = "%Y-%m-%d %H:%M"
    start = datetime(2024, 1, 1, tzinfo=UTC)
    try:
        ticks = dg.TimeWindowPartitionsDefinition(start, written, cron_schedule=schedule, timezone="UTC")
    except dg.DagsterInvalidDefinitionError:
        raise InputError(
            f'{key}: {schedule!r} is no cron schedule; write minute, hour, day, month and weekday, as "0 3 * * *"'
        ) from None
    moments: list[datetime] = []
    for days in HORIZONS:
        keys = ticks.get_partition_keys(current_time=start + timedelta(days=days))
        moments = [datetime.strptime(key, written) for key in keys]
        if len(moments) >= ENOUGH:
            break
    return max(later - earlier for earlier, later in pairwise(moments))
