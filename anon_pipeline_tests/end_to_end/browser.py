"""A browser to look at pages with, that asks nobody but the page's own server, and says whom it asked."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


@dataclass
class Window:
    """A page, and the hosts it sent requests to."""

    page: Page
    hosts: set[str] = field(default_factory=set)


def executable() -> str:
    """The installed browser; without one the test is skipped, or fails where CI=true."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        sentence = "no browser is on the PATH: install one, for example with `apt-get install chromium`"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return found


@contextmanager
def window(width: int = 1400, height: int = 1000, *flags: str) -> Iterator[Window]:
    """An empty page in a headless browser that is closed at the end."""
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            opened = Window(page)
            page.on("request", lambda request: _note(opened.hosts, request.url))
            page.on("websocket", lambda socket: _note(opened.hosts, socket.url))
            yield opened
        finally:
            browser.close()


def _note(hosts: set[str], url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("data", "blob", "about"):
        hosts.add(parts.hostname or url)
