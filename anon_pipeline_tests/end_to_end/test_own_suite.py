"""A steward's own suite blocks a release, tells nobody's value, and the guide of one run is the guide of the next."""

from __future__ import annotations

import json

import pytest
from sklearn.tree import DecisionTreeClassifier

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.learning.guide import FittedModel
from anon_pipeline.learning.models import Task
from anon_pipeline.pipeline.tracking.logged_guide import guides_in, keep_guide
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.spec import ColumnType
from anon_pipeline_tests.end_to_end.harness import Place, command, people, policy, write_dataset
from anon_pipeline_tests.end_to_end.test_privacy import everything_told
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

CITY = "Xanadu-on-Sea"
CITIES = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "city", "value_set": ["Aberdeen"]}}
AGES = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "age", "min_value": 0, "max_value": 120}}
LOST = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "information_loss", "max_value": 0.9}}


def write_suite(place: Place, *expectations: dict[str, object]) -> None:
    (place.dataset / "expectations.json").write_text(json.dumps({"name": "mine", "expectations": expectations}))


@pytest.fixture
def planted(fresh: Place) -> Place:
    """One person lives where nobody else does."""
    frame = people()
    frame.loc[111, "city"] = CITY
    write_dataset(fresh.dataset, frame)
    return fresh


def test_a_check_of_ones_own_blocks_and_tells_nobodys_value(planted: Place) -> None:
    write_suite(planted, {**CITIES, "meta": {"name": "all in Aberdeen"}})
    ended = planted.run()
    assert ended.exit_code == 3, ended.said
    assert "all in Aberdeen: expect column values to be in set of city, but it does not hold" in ended.sentence
    assert planted.releases() == {}
    assert [where for where, text in everything_told(planted, ended).items() if CITY in text] == []
    shown = command("checks", "--path", home=planted.home.root)
    assert shown.exit_code == 0, shown.said
    pages = list((planted.home.private / "checks" / ".pages").rglob("*.html"))
    assert len(pages) > 5
    assert not any(CITY in page.read_text() for page in pages)


def test_bad_arguments_are_one_sentence(fresh: Place) -> None:
    write_suite(fresh, {**CITIES, "kwargs": {"column": "city", "no_such": 1}})
    with pytest.raises(InputError) as told:
        released_in_steps(fresh)
    assert "is not what Great Expectations takes; look at" in str(told.value)
    assert "\n" not in str(told.value)
    assert fresh.releases() == {}


def test_the_guide_of_one_run_guides_the_next(published: Place) -> None:
    """The same people, grouped by the model that the first run registered: the same table under another policy."""
    first, tracking = published.release, Tracking(published.home)
    manifest = json.loads((first / "manifest.json").read_text())
    version = newest(published.home)
    write_suite(published, {**LOST, "meta": {"over": "aggregates", "name": "little is lost"}}, AGES)
    guide = {"model": {"mlflow": f"models:/people-guide/{version}"}, "folds": 2}
    write_dataset(published.dataset, spec=policy() | {"audit": {"enabled": False}, "guide": guide})
    second = published.run("--json")
    assert second.exit_code == 0, second.said
    guided = json.loads(second.stdout)["manifest"]
    (asked,) = [check for check in guided["checks"] if check["name"] == "little is lost"]
    assert asked["passed"] and asked["measured"] == guided["measured"]["information_loss"]["mean"]
    told = (first.with_name(guided["version"]) / "report.html").read_text()
    assert "little is lost" in told and "expect_column_values_to_be_between(age)" in told
    assert guided["content_hashes"] == manifest["content_hashes"]
    assert guided["version"] != manifest["version"]
    assert newest(published.home) == version  # one that came from the store is not logged again
    fitted = FittedModel("tree", Task.CLASSIFICATION, ("age",), None, DecisionTreeClassifier())
    keep_guide(tracking, "people", guided["runs"]["mlflow"], fitted, {"age": ColumnType.NUMERIC})  # a run that trains
    assert newest(published.home) == version + 1
    assert len(guides_in(tracking.artifacts("people"))) == 1  # that of the run before is gone
    third = published.run()
    assert third.exit_code == 2
    assert "its file was removed since" in third.sentence


def newest(home: Home) -> int:
    return max(int(version.version) for version in Tracking(home).client.search_model_versions("name = 'people-guide'"))
