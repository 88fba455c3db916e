"""Identifiers that are numbered anew for each table: the wrong people were followed, and nobody was told."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.sequential.same_people import Association, are_strangers, require_same_people
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy
from anon_pipeline_tests.sequential.test_republication import Releases, everybody

TOTAL, THERE = 300, 200


def next_month(people: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A tenth have left and as many have come, a tenth have had a birthday, and a third have moved."""
    random = np.random.default_rng(seed)
    present = np.r_[random.permutation(THERE)[: THERE * 9 // 10], np.arange(THERE, THERE * 11 // 10)]
    later = people.iloc[present].copy()
    later.loc[random.random(len(later)) < 0.1, "age"] += 1
    moved = random.random(len(later)) < 1 / 3
    later.loc[moved, "city"] = random.choice(["Aberdeen", "Bergen", "Cork"], moved.sum())
    return later


def numbered_anew(later: pd.DataFrame, seed: int) -> pd.DataFrame:
    return later.set_index(np.random.default_rng([seed, 1]).permutation(len(later)))


def after_a_release(people: pd.DataFrame, later: pd.DataFrame, k: int) -> tuple[Any, Any]:
    """The people of the second month as they are followed, and the tree of the first."""
    releases = Releases(k)
    former = releases.release(people.iloc[:THERE], TOTAL).routing
    with suppress(InputError):  # of strangers a whole cohort may be withheld
        releases.release(later, TOTAL)
    return releases.cohorts, former


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [3, 10])
def test_strangers_are_told_from_people_who_change(k: int, seed: int) -> None:
    people = everybody(TOTAL, seed)
    later = next_month(people, seed)
    require_same_people(*after_a_release(people, later, k))
    with pytest.raises(InputError, match="no more like what they were in the last release than people who are paired"):
        require_same_people(*after_a_release(people, numbered_anew(later, seed), k))


def test_numbers_of_rows_do_not_follow_people_once_somebody_has_left() -> None:
    people = everybody(TOTAL, 1)
    later = people.iloc[10 : THERE + 10].set_index(np.arange(THERE))
    assert are_strangers(*after_a_release(people, later, 10))


def test_nothing_is_said_where_all_are_alike_or_few_are_left() -> None:
    """One value that nearly everybody has tells nobody apart, and of a handful nothing can be told."""
    alike = everybody(TOTAL, 1).assign(age=40, born=pd.Timestamp("1980-01-01"), city="Bergen")
    alike.loc[::40, "city"] = "Cork"
    assert not are_strangers(*after_a_release(alike, numbered_anew(alike.iloc[:THERE], 1), 10))
    people = everybody(TOTAL, 1)
    strangers = numbered_anew(people.iloc[:20], 1)
    assert not are_strangers(*after_a_release(people, strangers, 10))


@pytest.mark.parametrize("stays", [False, True])
def test_one_column_by_which_people_are_what_they_were_is_enough(stays: bool) -> None:
    """Also where the former tree grouped by another one, in which they are like strangers."""
    draws, classes = np.random.default_rng(1), np.repeat(np.arange(20), 10)
    other = classes if stays else draws.permutation(classes)
    codes = np.c_[draws.permutation(classes), other, classes]
    columns = [SimpleNamespace(ordered=True), SimpleNamespace(ordered=False), SimpleNamespace(ordered=True)]
    cells = SimpleNamespace(domains=columns, codes=codes, counts=np.ones(200, np.int64), n=200)
    cells.part = lambda _: cells
    cohorts = SimpleNamespace(cells=cells, numbers=lambda: classes + 1, former_class=np.r_[-1, np.arange(20)])
    tree = SimpleNamespace(apply=lambda codes: codes[:, 0])
    former = SimpleNamespace(has_columns=lambda _: True, apply=lambda cells: cells.codes, tree=tree)
    assert are_strangers(cohorts, former) != stays  # type: ignore[arg-type]


def test_one_class_tells_nothing() -> None:
    value = np.arange(THERE)
    for association in (Association.of_numbers, Association.of_categories):
        assert not association(np.zeros(THERE, np.int64), value, np.ones(THERE, np.int64)).would_tell


def test_a_tree_of_other_columns_tells_nothing() -> None:
    people = everybody(TOTAL, 1)
    cohorts, former = after_a_release(people, numbered_anew(people.iloc[:THERE], 1), 10)
    former = type(former)(former.tree, tuple(reversed(former.domains[1:])))
    assert not are_strangers(cohorts, former)


@pytest.mark.long
def test_of_strangers_the_statistic_is_what_it_is_said_to_be() -> None:
    random, people = np.random.default_rng(1), np.ones(120, dtype=np.int64)
    class_, value = random.integers(0, 6, 120), random.choice([0, 1, 2, 9], 120)
    for of in (Association.of_categories, Association.of_numbers):
        drawn = [of(class_, random.permutation(value), people) for _ in range(2000)]
        found = np.array([one.chi_square for one in drawn])
        assert abs(found.mean() - drawn[0].of_strangers) < 4 * found.std() / np.sqrt(len(found))
        assert 0.8 < found.std() / drawn[0].deviation < 1.1
        assert of(class_, class_, people).chi_square == pytest.approx(of(class_, class_, people).most)


@pytest.mark.parametrize("why", [None, "each visit is another one"])
def test_a_run_asks_unless_its_spec_says_why_nobody_stays_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str | None
) -> None:
    people = everybody(TOTAL, 1)
    cohorts, former = after_a_release(people, numbered_anew(people.iloc[:THERE], 1), 10)
    monkeypatch.setattr(sequential_publication.release_history, "routing", lambda *_: former)
    monkeypatch.setattr(
        sequential_publication,
        "group_sequentially",
        lambda *_: SimpleNamespace(kept=True, lost=0.1, lost_otherwise=0.2),
    )
    np.save(tmp_path / sequential_publication.NEWEST, cohorts.former_class)
    content = policy()
    content["columns"]["name"] = {"role": "identifier"}
    content |= {"person": "name", "across_releases": {"k": 10}, "audit": {"enabled": False}}
    content |= {} if why is None else {"across_releases_unlike": why}
    spec = ReleaseSpec.model_validate(content)
    run: Any = SimpleNamespace(spec=spec, home=None, key=None)
    followed: Any = SimpleNamespace(facts={"former": ["a"], "withheld": 0}, folder=tmp_path)
    if why is not None:
        assert sequential_publication.group(run, followed, cohorts.cells, cohorts.people).kept
        assert spec.policy()["across_releases_unlike"] == why
        return
    assert "across_releases_unlike" not in spec.policy()
    with pytest.raises(InputError, match="numbered anew"):
        sequential_publication.group(run, followed, cohorts.cells, cohorts.people)


def test_the_reason_is_none_where_nobody_is_followed() -> None:
    with pytest.raises(ValueError, match="across_releases_unlike: nothing is demanded across releases"):
        ReleaseSpec.model_validate(policy() | {"across_releases_unlike": "why"})


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ({"technique": "microaggregate", "k": 5}, True),
        ({"technique": "noise", "share": 0.1}, True),
        ({"technique": "noise", "deviation": 2}, False),
        ({"technique": "round", "to": 10}, False),
    ],
)
def test_in_company_nothing_is_shown_that_follows_from_others(steps: dict[str, Any], refused: bool) -> None:
    """People are masked before some are withheld: of 400, means of five told exactly who of the eight gone had left."""
    content = policy() | {"person": "name", "across_releases": {"k": 10, "departures": "in_company"}}
    content["columns"]["name"] = {"role": "identifier"}
    content["columns"]["visits"] = {"role": "insensitive", "type": "numeric", "steps": [steps]}
    if not refused:
        ReleaseSpec.model_validate(content)
        return
    with pytest.raises(ValueError, match=r"columns.visits.steps.0: what .* shows follows from other people too"):
        ReleaseSpec.model_validate(content)
    content["across_releases"]["departures"] = "at_once"
    ReleaseSpec.model_validate(content)
