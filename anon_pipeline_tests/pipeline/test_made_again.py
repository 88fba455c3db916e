"""A release of followed people is made again where nothing has changed of what it was made from.

The attacker has all releases and knows everything but one value that is in none of them. Held against itself, a release
can become another one. So that value must not decide whether it is held against itself, or a new release would tell
that the value has changed: in three waves of 330 people, this happened for one corrected identifier in four.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest

from anon_pipeline.home import Home
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.step import CheckDef
from anon_pipeline.pipeline.steps import followed_people
from anon_pipeline.release import ledger
from anon_pipeline.sequential import release_history
from anon_pipeline_tests.end_to_end.harness import Place, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from anon_pipeline_tests.pipeline.test_sequential_publication import everybody, followed_policy

PEOPLE = everybody(130).assign(number=lambda frame: 7 * frame.index, diary="nothing")
#: Two newcomers of 122 wait for others, since newcomers enter in groups of five.
BEFORE, NOW = PEOPLE.iloc[:120], PEOPLE.iloc[:122]
POLICY = followed_policy()
POLICY["columns"] |= {"number": {"role": "identifier"}, "diary": {"role": "exclude"}}
POLICY["columns"]["mark"] = {"role": "exclude"}
del POLICY["privacy"]["l_diversity"]


@pytest.fixture(scope="module")
def after_two(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two releases, the second of which waits for further newcomers."""
    root = tmp_path_factory.mktemp("again")
    place = Place(Home(root / "home"), root / "people")
    write_dataset(place.dataset, BEFORE.assign(age=BEFORE["age"] + 1), POLICY)
    released_in_steps(place)
    write_dataset(place.dataset, NOW, POLICY)
    released_in_steps(place)
    return place


def former(after_two: Place, tmp_path: Path, frame: pd.DataFrame, policy: dict[str, Any] = POLICY) -> list[str]:
    """The releases that a release of these people is held against."""
    shutil.copytree(after_two.home.root, tmp_path / "home", symlinks=True)
    place = Place(Home(tmp_path / "home"), write_dataset(tmp_path / "people", frame, policy))
    graph = graph_of(place.spec)
    run = Runtime(home=str(place.home.root)).run(place.spec, {"dagster": str(uuid4()), "mlflow": uuid4().hex})
    for part in graph.parts:
        if isinstance(part, CheckDef):
            continue
        facts = make(graph, part, run).facts
        if part.name == "followed_people":
            return list(facts["former"])
    raise AssertionError("nobody was followed")


def changed(who: int, column: str, value: object) -> Callable[[], pd.DataFrame]:
    def frame() -> pd.DataFrame:
        of = NOW.astype({column: object})
        of.loc[who, column] = value
        return of

    return frame


@pytest.mark.slow
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(lambda: NOW, id="nothing"),
        pytest.param(changed(3, "number", 999), id="an identifier that nobody is followed by"),
        pytest.param(changed(3, "diary", "a secret"), id="an excluded value"),
        pytest.param(changed(121, "ill", "no" if NOW["ill"][121] == "yes" else "yes"), id="a target of who waits"),
        pytest.param(changed(121, "visits", 2.5), id="a value of who waits, by which all others are stored as floats"),
        pytest.param(lambda: PEOPLE.iloc[:123], id="a third one waits"),
        pytest.param(lambda: PEOPLE.iloc[:121], id="who waited has gone"),
    ],
)
def test_what_is_in_no_release_makes_none(after_two: Place, tmp_path: Path, now: Callable[[], pd.DataFrame]) -> None:
    newest, earlier = version_of(after_two)
    assert former(after_two, tmp_path, now()) == [earlier] and newest != earlier


@pytest.mark.slow
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(changed(3, "visits", 9), id="a kept value"),
        pytest.param(changed(3, "ill", "no" if NOW["ill"][3] == "yes" else "yes"), id="a target"),
        pytest.param(lambda: NOW.drop(index=3), id="somebody has left"),
        pytest.param(lambda: PEOPLE.iloc[:125], id="enough newcomers"),
    ],
)
def test_what_is_in_a_release_makes_another(after_two: Place, tmp_path: Path, now: Callable[[], pd.DataFrame]) -> None:
    newest, earlier = version_of(after_two)
    assert former(after_two, tmp_path, now()) == [earlier, newest]


@pytest.mark.slow
@pytest.mark.parametrize(
    "now", [pytest.param(lambda: NOW, id="made again"), pytest.param(changed(3, "visits", 9), id="another")]
)
def test_the_people_are_written_once(
    after_two: Place, tmp_path: Path, now: Callable[[], pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were written to see what they are a release of, and once more where it was another one."""
    written: list[bool] = []
    genuine = followed_people._write

    def write(*arguments: Any, is_new: bool) -> Any:
        written.append(is_new)
        return genuine(*arguments, is_new=is_new)

    monkeypatch.setattr(followed_people, "_write", write)
    former(after_two, tmp_path, now())
    assert len(written) == 1


def version_of(place: Place) -> tuple[str, str]:
    """The second release and the first."""
    earlier, newest = (entry.version for entry in ledger.read(place.home))
    return newest, earlier


@pytest.mark.slow
def test_what_another_version_of_the_code_makes_follows_the_newest_release(
    after_two: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, earlier = version_of(after_two)
    monkeypatch.setattr(release_history, "code_hash", lambda: "another")
    assert former(after_two, tmp_path, NOW) == [earlier, newest]


@pytest.mark.slow
@pytest.mark.parametrize(("role", "warns"), [("insensitive", True), ("sensitive", True), ("exclude", False)])
def test_a_column_that_a_former_release_grouped_by_and_this_one_keeps_is_told(
    after_two: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture, role: str, warns: bool
) -> None:
    """Twenty share a person's class in both releases, and of half of 400 people fewer than twenty their town.

    Beside other datasets this is refused, and between versions without `across_releases` it was told.
    """
    policy = POLICY | {"columns": POLICY["columns"] | {"city": {"role": role}}}
    assert former(after_two, tmp_path, NOW, policy) == [*reversed(version_of(after_two))]
    told = "city is kept as it is, and a former release of across_releases grouped people by it"
    assert (told in caplog.text) is warns
