"""The README's pictures, taken of the last release of a dataset: `make pictures`, after `make release`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import FloatRect, Page

from anon_pipeline.home import Home
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.tracking.runs import PARENT, STEP, Tracking
from anon_pipeline_tests.end_to_end.browser import window
from anon_pipeline_tests.end_to_end.harness import Place
from anon_pipeline_tests.end_to_end.served_ui import served

LOCATION = "/locations/__repository__@anon_pipeline.definitions"
#: What stands around the picture of something, in pixels.
MARGIN = 16


def take(place: Place, pictures: Path, check: str) -> None:
    """Write asset-graph.png, checks.png, report.png, report-phone.png and, of two releases, experiments.png."""
    pictures.mkdir(parents=True, exist_ok=True)
    dataset = place.spec.dataset
    with tempfile.TemporaryDirectory() as scratch, served(place, Path(scratch) / "log") as address:
        with window(1600, 900) as opened:
            opened.page.goto(f"{address}{LOCATION}/asset-groups/{dataset}/lineage")
            opened.page.get_by_text("anonymized_table").first.wait_for()
            opened.page.wait_for_load_state("networkidle")
            opened.page.screenshot(path=pictures / "asset-graph.png", clip=_around_nodes(opened.page, place))
        with window(1260, 700) as opened:
            opened.page.goto(f"{address}/assets/{dataset}/anonymized_table?view=checks&checkDetail={check}")
            opened.page.get_by_text("Latest execution").wait_for()
            opened.page.wait_for_load_state("networkidle")
            opened.page.screenshot(path=pictures / "checks.png", clip=_below_the_tabs(opened.page))
    compare(place, pictures)
    report = (place.home.releases / dataset / "current").resolve() / "report.html"
    for name, width, height in (("report.png", 1125, 1263), ("report-phone.png", 375, 812)):
        with window(width, height) as opened:
            opened.page.goto(report.as_uri())
            opened.page.screenshot(path=pictures / name)
    for picture in pictures.glob("*.png"):
        _pack(picture)


def compare(place: Place, pictures: Path) -> None:
    """Write experiments.png: the last two runs of the dataset in MLflow, side by side. Of one run there is none."""
    runs = last_runs(place, 2)
    if len(runs) < 2:
        return
    with (
        tempfile.TemporaryDirectory() as scratch,
        served(place, Path(scratch) / "log", command="experiments") as address,
        window(1300, 2300) as opened,
    ):
        opened.page.goto(f"{address}/{comparison(place, runs)}")
        opened.page.get_by_role("button", name="Close").first.click()
        top = (opened.page.get_by_text("Run details").first.bounding_box() or {"y": 0})["y"]
        opened.page.get_by_text("spec_hash").last.wait_for()
        end = (opened.page.get_by_text("Artifacts", exact=True).last.bounding_box() or {"y": 2300})["y"] - MARGIN
        opened.page.screenshot(
            path=pictures / "experiments.png", clip={"x": 160, "y": top, "width": 1140, "height": end - top}
        )
    _pack(pictures / "experiments.png")


def last_runs(place: Place, count: int) -> list[str]:
    """The last runs of releases in MLflow, the first of them first."""
    client = Tracking(place.home).client
    experiment = client.get_experiment_by_name(place.spec.dataset)
    found = client.search_runs([experiment.experiment_id], f"tags.{STEP} = 'release'", order_by=["start_time DESC"])
    return [run.info.run_id for run in found if PARENT not in run.data.tags][:count][::-1]


def comparison(place: Place, runs: list[str]) -> str:
    """The page of MLflow on which runs stand side by side."""
    experiment = Tracking(place.home).client.get_experiment_by_name(place.spec.dataset).experiment_id
    return f"#/compare-runs?runs={quote(json.dumps(runs))}&experiments={quote(json.dumps([experiment]))}"


def _pack(picture: Path) -> None:
    Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)


def _around_nodes(page: Page, place: Place) -> FloatRect:
    """The part of the page where the assets stand, by the places of their names."""
    names = [step.name for step in graph_of(place.spec).steps]
    boxes = [box for name in names if (box := page.get_by_text(name, exact=True).last.bounding_box())]
    left, top = min(box["x"] for box in boxes) - 5 * MARGIN, min(box["y"] for box in boxes) - 4 * MARGIN
    right = max(box["x"] + box["width"] for box in boxes) + 5 * MARGIN
    bottom = max(box["y"] + box["height"] for box in boxes) + 4 * MARGIN
    return {"x": max(left, 0), "y": max(top, 0), "width": right - max(left, 0), "height": bottom - max(top, 0)}


def _below_the_tabs(page: Page) -> FloatRect:
    top = (page.get_by_text("Execute all").bounding_box() or {"y": 0})["y"] - MARGIN
    left = (page.get_by_text("Checks (").bounding_box() or {"x": 0})["x"] - MARGIN
    return {"x": left, "y": top, "width": 1260 - left, "height": 505}


if __name__ == "__main__":
    take(Place(Home.default(), Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3])
