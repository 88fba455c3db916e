"""A home that was copied while idle and put elsewhere: the same releases, the same keys, and models that are found."""

import json
import shutil
from typing import Any

from anon_pipeline.home import Home
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.release import ledger
from anon_pipeline_tests.end_to_end.harness import Place, command, people, policy, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps


def test_a_restored_home_verifies_and_releases_the_same_again(published: Place) -> None:
    folder = published.home.root.parent
    restored = published.copy(folder / "elsewhere")
    assert command("releases", "verify", home=restored.home.root).exit_code == 0
    again = restored.run("--json")
    assert again.exit_code == 0, again.said
    assert not json.loads(again.stdout)["new"]
    first = published.release.name
    manifests = []
    for place in (published, restored):  # of people whom neither has seen: the keys came along
        write_dataset(place.dataset, people(100, seed=2), policy() | {"audit": {"enabled": False}})
        released = released_in_steps(place)
        assert released.new
        manifests.append(released.manifest)
        assert ledger.verify(place.home) == []
    one, other = manifests
    assert one["version"] == other["version"] != first
    assert one["content_hashes"] == other["content_hashes"]
    assert one["source"]["commitment"] != other["source"]["commitment"], "no function of the source and the keys"
    assert_ledger_names_the_one_before(published, first, one)


def assert_ledger_names_the_one_before(place: Place, first: str, manifest: dict[str, Any]) -> None:
    """A changed source is a new release."""
    assert manifest["previous"] == first
    listed = json.loads(command("releases", "list", "--json", home=place.home.root).stdout)["releases"]
    assert [(one["sequence"], one["version"]) for one in listed] == [(1, first), (2, manifest["version"])]
    assert command("releases", "verify", home=place.home.root).exit_code == 0


def test_a_logged_model_is_found_after_the_home_was_moved(published: Place) -> None:
    folder = published.home.root.parent
    (version,) = Tracking(published.home).client.search_model_versions("name = 'people-guide'")
    (folder / "moved").mkdir()
    shutil.move(published.home.root, folder / "moved")
    moved = Tracking(Home(folder / "moved" / published.home.root.name))
    assert list(moved.load_model(f"models:/people-guide/{version.version}").classes_) == ["no", "yes"]
    found = moved.client.get_model_version_download_uri("people-guide", version.version)
    assert found.startswith(moved.home.root.as_uri()), "and not in the home that this one was copied from"
    assert not published.home.root.exists(), "nothing is written where the home was"
