"""The report as a PDF, printed by an installed browser with the print styles of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from anon_pipeline.errors import InputError

#: Names of the programs of browsers that can print without a window.
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
#: Flags that keep the browser off the network, as the page fetches nothing either.
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
)
#: Seconds after which a browser counts as hanging; printing takes two seconds, and longer on a busy machine.
LONGEST_WAIT = 1200


def print_page(page: str) -> bytes:
    """A page of HTML as a PDF.

    Raises
    ------
    InputError
        If no browser is installed, or the installed one does not print.
    """
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise InputError(
            "report: a PDF is printed by a browser, and none was found; install Chromium or Chrome "
            "(apt-get install chromium), or take --as html and print that"
        )
    with tempfile.TemporaryDirectory(prefix="anon-pipeline-print-", ignore_cleanup_errors=True) as folder:
        source, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}", source.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium's sandbox refuses to run for root
        with suppress(OSError, subprocess.TimeoutExpired):  # only the existence of the file counts
            subprocess.run(command, capture_output=True, timeout=LONGEST_WAIT, check=False)  # noqa: S603 (no shell)
        content = printed.read_bytes() if printed.exists() else b""
    if not content.startswith(b"%PDF-"):
        raise InputError(f"report: {Path(browser).name} did not print the page; take --as html and print that")
    return content
