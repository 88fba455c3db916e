"""Characters of texts that nobody sees: a page with them is no HTML, and a terminal obeys them."""

import copy
import io
import re

import pytest

from anon_pipeline.cli.terminal import Terminal
from anon_pipeline.report import markdown, release_report
from anon_pipeline.visible import visible
from anon_pipeline_tests.report.pages import manifest_content

#: What the standard of HTML forbids in a page, and what turns text around.
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "red\x1b[31m\x00 \x9b1m \u202edrawkcab <b>"
SEEN = "red␛[31m␀ [U+009B]1m [U+202E]drawkcab <b>"


def test_a_page_shows_them_in_labels_and_in_charts() -> None:
    """Categories of a table came into report.html as they are: no browser must read a page with a null byte."""
    content = copy.deepcopy(manifest_content())
    content["spec"]["columns"][HOSTILE] = content["spec"]["columns"].pop("education") | {"why": HOSTILE}
    page = release_report.render(content)
    assert not FORBIDDEN.search(page) and SEEN.replace("<b>", "&lt;b&gt;") in page
    written = markdown.render(content)
    assert not FORBIDDEN.search(written) and "drawkcab" in written


@pytest.mark.parametrize("text", ["Zürich\n", "a\tb", "क्‍ष", "👩‍⚕️", "שלום"])
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text


def test_labels_that_differ_in_them_stay_apart() -> None:
    assert len({visible(f"A{chr(number)}") for number in range(0xA0)}) == 0xA0
    visible("\ud800").encode()


def test_a_terminal_does_not_obey_names_of_columns() -> None:
    """A sentence quoted the columns of a file: their escape sequences coloured, cleared or named the window."""
    file = io.StringIO()
    terminal = Terminal(file=file, force_terminal=True, color_system="standard", width=200)
    terminal.print(f"it has {HOSTILE}", markup=False, highlight=False, soft_wrap=True)
    terminal.print("bold", style="bold")
    assert file.getvalue() == f"it has {SEEN}\n\x1b[1mbold\x1b[0m\n"
