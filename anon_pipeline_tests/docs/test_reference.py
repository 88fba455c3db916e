"""docs/spec.md says of every key of a spec what the models say."""

from pathlib import Path

from anon_pipeline.spec import reference

PAGE = Path(__file__).parents[2] / "docs/spec.md"


def test_the_page_is_that_of_the_models() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.reference(), "make reference writes the page anew"


def test_every_key_of_a_source_and_a_column_says_what_it_means() -> None:
    page = reference.reference()
    for section in ("release.yaml", "source", "columns"):
        rows = page.split(f"## `{section}`\n")[1].split("\n## ")[0].splitlines()
        for row in rows:
            assert not (row.startswith("| `") and row.endswith("|  |")), row
