"""What is done about a content, for all that may be known of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.pipeline.automation.next_run import RETRY_AFTER, Action, Ending, Known, PastRun, decide

TRIES = len(RETRY_AFTER) + 1
LATER = 10.0**9  # seconds after everything
VERSIONS = ("v1", "v2")


@st.composite
def past_runs(draw: st.DrawFn) -> list[PastRun]:
    """Runs of one content, newest first; whatever was released has one version or the other."""
    endings = draw(st.lists(st.sampled_from(Ending), max_size=8))
    moments = sorted(draw(st.lists(st.floats(1, 10**6), min_size=len(endings), max_size=len(endings))), reverse=True)
    return [
        PastRun(f"run{number}", ending, at, draw(st.sampled_from(VERSIONS)) if ending is Ending.RELEASED else None, "x")
        for number, (ending, at) in enumerate(zip(endings, moments, strict=True))
    ]


known = st.builds(
    Known,
    under_way=st.none() | st.just("another run"),
    runs=past_runs(),
    current=st.none() | st.sampled_from([*VERSIONS, "v3"]),
    since=st.floats(0, 10**6),
    withdrawn=st.frozensets(st.sampled_from(VERSIONS)),
)


@given(known, st.floats(0, 2 * 10**6))
def test_every_tick_does_something_and_says_why(known: Known, now: float) -> None:
    decision = decide(known, now)
    assert decision.why
    if known.under_way is not None:
        assert decision.action is Action.WAIT
    if decision.action is Action.WAIT and known.under_way is None:
        assert decide(known, LATER).action is Action.RUN  # it waits for a moment that comes


@given(known)
def test_no_content_is_lost(known: Known) -> None:
    """What is left alone for good is current, or was refused, unusable, stopped or withdrawn, or died too often."""
    if decide(known, LATER).action is not Action.SKIP:
        return
    released = [run for run in known.runs if run.ending is Ending.RELEASED]
    lasting = next((run for run in known.runs if run.ending is not Ending.DIED), None)
    deaths = [run for run in known.runs if run.ending is Ending.DIED and run.ended > known.since]
    assert (
        known.current in [run.version for run in released]
        or (lasting is not None and lasting.ending in (Ending.REFUSED, Ending.UNUSABLE, Ending.STOPPED))
        or (lasting is not None and lasting.version in known.withdrawn)
        or len(deaths) >= TRIES
    )


@given(known, st.floats(0, 2 * 10**6))
def test_nothing_is_run_that_would_end_as_before(known: Known, now: float) -> None:
    if decide(known, now).action is not Action.RUN:
        return
    assert known.current not in [run.version for run in known.runs if run.version]
    lasting = next((run for run in known.runs if run.ending is not Ending.DIED), None)
    assert lasting is None or lasting.ending is Ending.RELEASED
    assert lasting is None or lasting.version not in known.withdrawn


@given(st.lists(st.floats(0, 10**4), min_size=0, max_size=12))
def test_what_always_dies_is_tried_five_times_and_later_every_time(pauses: list[float]) -> None:
    """A daemon that ticks whenever it likes: each run that is started dies at once."""
    now, runs, started = 1.0, list[PastRun](), list[float]()
    for pause in [*pauses, *(10.0**5,) * TRIES]:
        now += pause
        if decide(Known(runs=runs), now).action is Action.RUN:
            started.append(now)
            runs.insert(0, PastRun(f"run{len(runs)}", Ending.DIED, now, None, "it was killed"))
    assert len(started) == TRIES
    assert all(
        later - earlier >= least * (1 - 1e-9)
        for earlier, later, least in zip(started, started[1:], RETRY_AFTER, strict=False)
    )


def released(version: str, at: float, run_id: str = "r") -> PastRun:
    return PastRun(run_id, Ending.RELEASED, at, version)


def test_a_source_that_goes_back_is_run_until_its_release_is_current_again() -> None:
    first = [released("a", 1.0)]
    assert decide(Known(runs=first, current="a", since=1.0), 2.0).action is Action.SKIP
    assert decide(Known(runs=first, current="b", since=2.0), 3.0).action is Action.RUN
    died = [PastRun("d", Ending.DIED, 4.0, None, "it was killed"), *first]
    assert decide(Known(runs=died, current="b", since=2.0), 5.0).action is Action.WAIT
    assert decide(Known(runs=died, current="b", since=2.0), 65.0).action is Action.RUN
    again = [released("a", 66.0), *died]
    assert decide(Known(runs=again, current="a", since=66.0), 67.0).action is Action.SKIP


def test_deaths_of_an_earlier_time_do_not_count() -> None:
    """A died five times, B was released, and the source has gone back to A."""
    deaths = [PastRun(f"d{number}", Ending.DIED, 9.0 - number, None, "the disk was full") for number in range(TRIES)]
    assert decide(Known(runs=deaths), LATER).action is Action.SKIP
    assert decide(Known(runs=deaths, current="b", since=10.0), 11.0).action is Action.RUN


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (PastRun("r", Ending.REFUSED, 1.0, None, "3 classes fail"), "3 classes fail"),
        (PastRun("r", Ending.UNUSABLE, 1.0, None, "no column age"), "no column age"),
        (PastRun("r", Ending.STOPPED, 1.0), "stopped"),
        (released("a", 1.0), "withdrawn"),
    ],
)
def test_the_tick_says_why_nothing_is_done(run: PastRun, word: str) -> None:
    decision = decide(Known(runs=[run], withdrawn=frozenset("a")), LATER)
    assert decision.action is Action.SKIP
    assert word in decision.why


def test_a_release_that_is_not_everywhere_is_left_so() -> None:
    """A run that released and did not deliver counted as released, and the place never had it."""
    failed = PastRun("run1", Ending.RELEASED, 100.0, "v1", "the server is away", failed=True)
    here = Known(runs=[failed], current="v1", since=90.0, undelivered=True)
    assert decide(here, 100.0 + RETRY_AFTER[0] - 1).action is Action.WAIT
    assert decide(here, 100.0 + RETRY_AFTER[0]).action is Action.RUN
    assert "the server is away" in decide(here, 10**6).why
    assert decide(Known(runs=[failed] * TRIES, current="v1", undelivered=True), LATER).action is Action.SKIP
    fine = PastRun("run0", Ending.RELEASED, 50.0, "v1")
    assert decide(Known(runs=[fine], current="v1", undelivered=True), LATER).action is Action.RUN, "`publish` is new"
    assert decide(Known(runs=[failed], current="v1"), LATER).action is Action.SKIP, "it was delivered by hand"


def test_runs_that_die_are_not_tried_without_end_after_a_clock_was_set_back() -> None:
    """No death was later than the release until the clock had caught up: each tick of a day started a run."""
    day = 86_400.0
    deaths = [PastRun(f"run{number}", Ending.DIED, 1000.0 - number, None, "x") for number in range(TRIES)]
    known = Known(runs=deaths, current="b", since=day)
    assert decide(known, 1001.0).action is Action.SKIP
    assert decide(Known(runs=deaths[:1], current="b", since=day), 1001.0).action is Action.WAIT
    before_it = [PastRun("run", Ending.DIED, day, None, "x")]
    assert decide(Known(runs=before_it, current=None), 1000.0).action is Action.RUN, "it would wait for a day"
