"""Dagster's pages say what the report says, and every asset what it is and what to do where it fails."""

import base64
from pathlib import Path
from xml.etree import ElementTree

from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.metadata import Markdown
from anon_pipeline.pipeline.pages import release_page
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.report.pages import finding, manifest_content


def written(value: object) -> str:
    assert isinstance(value, Markdown)
    return value.text


def test_the_page_of_a_release_has_the_figures_of_its_manifest() -> None:
    page = release_page(manifest_content())
    assert written(page["verdict"]).startswith("**Released.** 48,293 of 48,842 people are in this release.")
    assert "- Every class has at least 10 people: holds, 10 in the smallest class" in written(page["promised"])
    assert "| people alone by the columns that others may know | 28,790 | 0 |" in written(page["before_and_after"])
    assert "| `age` | 1,204 ranges, typical width 3 years;" in written(page["columns"])
    assert "No promise protects capital\\_gain" in written(page["to_weigh"])


def test_its_pictures_stand_alone_and_are_drawn_in_the_page() -> None:
    page = release_page(manifest_content())
    for name, words in (("risk_picture", "28,790"), ("loss_picture", "11.2")):
        start = "(data:image/svg+xml;base64,"
        drawn = base64.b64decode(written(page[name]).partition(start)[2].removesuffix(")"))
        assert ElementTree.fromstring(drawn).tag.endswith("svg")
        assert words in drawn.decode()


def test_a_release_that_does_not_hold_is_not_called_one() -> None:
    content = manifest_content()
    content["verified"][0] = finding("k_anonymity", "every class has at least 10 people", 4.0, 3)
    page = release_page(content)
    assert written(page["verdict"]).startswith("**Not fit for release.**")
    assert "fails, 4 in the smallest class; 3 classes fail" in written(page["promised"])


def test_an_empty_manifest_still_has_a_page() -> None:
    assert written(release_page({})["verdict"]).startswith("**Not fit for release.**")


def test_every_asset_and_every_check_is_documented(tmp_path: Path) -> None:
    content = harness.policy() | {"source": {"path": "people.csv"}, "description": "{braces} `ticks`"}
    spec = ReleaseSpec.load(harness.write_dataset(tmp_path / "people", spec=content))
    definitions = build_definitions([spec], Runtime(home=str(tmp_path / "home")))
    for one in definitions.resolve_all_asset_specs():
        assert one.description is not None
        assert one.description.partition("\n")[0].endswith((".", ":")), one.key
        assert one.group_name == "people"
        assert "{" not in one.description
    checks = [check for one in definitions.asset_checks or [] for check in getattr(one, "check_specs", [])]
    assert len(checks) >= 10
    assert all(one.description for one in checks)
