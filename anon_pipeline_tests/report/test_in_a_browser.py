"""The report as a person sees it: on a phone, on a desk, on paper, in both colour schemes, asking nobody."""

import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from anon_pipeline.errors import InputError
from anon_pipeline.report import printed as printed_report
from anon_pipeline.report import refusal as refusal_report
from anon_pipeline.report import release_report
from anon_pipeline_tests.end_to_end import browser
from anon_pipeline_tests.end_to_end.browser import Window
from anon_pipeline_tests.report import test_attacks, test_refusal
from anon_pipeline_tests.report.test_likeness import likeness
from anon_pipeline_tests.skips import require_browser

PHONE, DESK = 375, 1280

#: Of every text that is seen: its words, and WCAG 2's contrast with the nearest background behind it.
CONTRASTS = """() => {
  const numbers = colour => colour.match(/[0-9.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map(part => part / 255)
    .map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [.2126, .7152, .0722][place], 0);
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const words = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
    if (!words || !element.getClientRects().length || element.closest('title, desc')) continue;
    const style = getComputedStyle(element);
    const drawn = numbers(element.closest('svg') ? style.fill : style.color);
    const [dark, bright] = [light(drawn), light(behind(element))].sort((one, other) => one - other);
    found.push([words, (bright + .05) / (dark + .05)]);
  }
  return found;
}"""


def whole_manifest() -> dict[str, Any]:
    """With attacks, and with names that do not fit a phone."""
    content = likeness()
    content["audit"] = test_attacks.content()
    content["spec"]["columns"]["Donaudampfschifffahrtsgesellschaftskapitaenspatent"] = {"role": "quasi_identifier"}
    content["spec"]["columns"]["a" * 80] = {"role": "sensitive"}
    content["measured"]["sensitive"]["a" * 80] = content["measured"]["sensitive"]["income"]
    content["description"] = "b" * 200
    content["utility"]["subgroups"][1]["column"] = "a" * 80
    content["measured"]["marginals"]["a" * 80] = content["measured"]["marginals"]["education"]
    content["measured"]["associations"]["columns"][4] = "a" * 80
    return content


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(release_report.render(whole_manifest()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def window(page_file: Path) -> Iterator[Window]:
    with browser.window() as opened:
        opened.page.goto(page_file.as_uri())
        opened.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        yield opened


@pytest.mark.long
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_nothing_reaches_beyond_the_window(window: Window, width: int) -> None:
    window.page.set_viewport_size({"width": width, "height": 800})
    assert window.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.long
def test_a_phone_shows_the_verdict_and_what_was_measured_without_scrolling(window: Window) -> None:
    window.page.set_viewport_size({"width": PHONE, "height": 812})
    window.page.evaluate("document.querySelector('.about').remove()")
    assert window.page.locator(".facts").bounding_box() is not None
    for place in ("#verdict", ".lead", ".facts > :first-child"):
        box = window.page.locator(place).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 812, place


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(window: Window, scheme: Any) -> None:
    window.page.emulate_media(color_scheme=scheme)
    contrasts = window.page.evaluate(CONTRASTS)
    window.page.emulate_media(color_scheme="light")
    assert len(contrasts) > 200
    assert [one for one in contrasts if one[1] < 4.5] == []


@pytest.mark.long
def test_a_keyboard_reaches_every_table_that_scrolls(window: Window) -> None:
    window.page.set_viewport_size({"width": PHONE, "height": 800})
    stuck = """[...document.querySelectorAll('*')].filter(one => one.scrollWidth > one.clientWidth + 1
        && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX) && one.tabIndex < 0).length"""
    assert window.page.evaluate(stuck) == 0


def test_it_asks_nobody_for_anything(window: Window) -> None:
    assert all(host.startswith("file:") for host in window.hosts)


def test_on_paper_what_is_short_is_open_and_what_is_long_says_where_it_is(window: Window) -> None:
    window.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    window.page.evaluate("document.querySelector('details').classList.add('short')")
    window.page.emulate_media(media="print")
    heights = """[...document.querySelectorAll('details')].map(one => [one.classList.contains('short'),
        [...one.children].filter(part => part.tagName != 'SUMMARY').some(part => part.getClientRects().length
            && part.getBoundingClientRect().bottom <= one.getBoundingClientRect().bottom + 1),
        getComputedStyle(one.querySelector('summary'), '::after').content])"""
    folds = window.page.evaluate(heights)
    window.page.emulate_media(media="screen")
    window.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert len(folds) > 3
    for short, seen, note in folds:
        assert seen == short
        assert short or "folded away on paper" in note


@pytest.mark.long
def test_a_phone_shows_what_does_not_hold_and_what_to_change_without_scrolling(window: Window, tmp_path: Path) -> None:
    file = tmp_path / "refusal.html"
    file.write_text(refusal_report.render(test_refusal.refusal(description="")), encoding="utf-8")
    opened = window.page.context.browser
    assert opened is not None
    page = opened.new_page(viewport={"width": PHONE, "height": 812})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    for words in ("Not released", "What being in it adds is at most 80 %", "Leave it out."):
        box = page.get_by_text(words).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 812, words
    picture = page.screenshot()
    page.close()
    colours = Image.open(io.BytesIO(picture)).convert("RGB").getcolors(2**16) or []
    assert (0xA3, 0x26, 0x1D) in {colour for _, colour in colours}  # it is seen at once that something is wrong


@pytest.mark.long
def test_on_paper_it_has_pages() -> None:
    require_browser()
    printed = printed_report.print_page(release_report.render(whole_manifest()))
    assert printed.startswith(b"%PDF-")
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 4 <= pages <= 12  # 24 for Adult while nothing was folded
    assert b"/URI" not in printed


def test_without_a_browser_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"install Chromium or Chrome .*or take --as html"):
        printed_report.print_page("<p>")


@pytest.mark.long
def test_a_browser_that_prints_nothing_is_told_apart_from_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = tmp_path / "chromium"
    idle.write_text("#!/bin/sh\nexit 0\n")
    idle.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"chromium did not print the page"):
        printed_report.print_page("<p>")
