"""A browser to look at pages with, that asks nobody but the page's own server, and says whom it asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from anon_pipeline_tests.skips import require_browser
from anon_pipeline_tests.watchdog import generous

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


@dataclass
class Window:
    """A page, and the hosts it sent requests to."""

    page: Page
    hosts: set[str] = field(default_factory=set)


@contextmanager
def running(*flags: str) -> Iterator[Browser]:
    """A headless browser, for several windows of which none knows of another: it takes seconds to start."""
    path, patience = require_browser(), 1000 * generous()  # milliseconds
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags], timeout=patience)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window_of(browser: Browser, width: int = 1400, height: int = 1000) -> Iterator[Window]:
    """An empty page of a browser, with a profile of its own that is thrown away at the end."""
    patience = 1000 * generous()
    expect.set_options(timeout=patience)
    profile = browser.new_context(viewport={"width": width, "height": height})
    try:
        page = profile.new_page()
        page.set_default_timeout(patience)  # for navigation too
        opened = Window(page)
        page.on("request", lambda request: _note(opened.hosts, request.url))
        page.on("websocket", lambda socket: _note(opened.hosts, socket.url))
        yield opened
    finally:
        profile.close()


@contextmanager
def window(width: int = 1400, height: int = 1000, *flags: str) -> Iterator[Window]:
    """An empty page in a headless browser that is closed at the end."""
    with running(*flags) as browser, window_of(browser, width, height) as opened:
        yield opened


def _note(hosts: set[str], url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("data", "blob", "about"):
        hosts.add(parts.hostname or url)
