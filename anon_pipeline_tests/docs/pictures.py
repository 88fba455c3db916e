"""The README's pictures, taken of the last release of a dataset: `make pictures`, after `make release`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import FloatRect, Page

from anon_pipeline.home import Home
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline_tests.end_to_end.browser import window
from anon_pipeline_tests.end_to_end.harness import Place
from anon_pipeline_tests.end_to_end.served_ui import served

LOCATION = "/locations/__repository__@anon_pipeline.definitions"
#: What stands around the picture of something, in pixels.
MARGIN = 16


def take(place: Place, pictures: Path, check: str) -> None:
    """Write asset-graph.png, checks.png, report.png and report-phone.png."""
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
    report = (place.home.releases / dataset / "current").resolve() / "report.html"
    for name, width, height in (("report.png", 1125, 1263), ("report-phone.png", 375, 812)):
        with window(width, height) as opened:
            opened.page.goto(report.as_uri())
            opened.page.screenshot(path=pictures / name)
    for picture in pictures.glob("*.png"):
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
