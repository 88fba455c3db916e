"""No function is longer than 80 lines and no file longer than 500; ruff bounds the branches (C901)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST_FUNCTION, LONGEST_FILE = 80, 500


def sources() -> list[Path]:
    return [*sorted((ROOT / "anon_pipeline").rglob("*.py")), *sorted((ROOT / "anon_pipeline_tests").rglob("*.py"))]


def too_long(name: str, text: str) -> Iterator[tuple[str, int]]:
    """Files and functions above the limits, with their lines."""
    if len(text.splitlines()) > LONGEST_FILE:
        yield name, len(text.splitlines())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{name}:{node.name}", lines


@pytest.mark.long
def test_nothing_is_too_long() -> None:
    found = {}
    for file in sources():
        name = str(file.relative_to(ROOT))
        found |= dict(too_long(name, file.read_text(encoding="utf-8")))
    assert not found, f"part these by what they are about: {found}"


@pytest.mark.parametrize(("lines", "seen"), [(80, []), (81, [("a.py:long", 81)])])
def test_a_long_function_is_seen(lines: int, seen: list[tuple[str, int]]) -> None:
    text = "def long():\n" + "    pass\n" * (lines - 1)
    assert list(too_long("a.py", text)) == seen
