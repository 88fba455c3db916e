"""No function is longer than 80 lines, no file longer than 500, and nothing strange lies at the top of the project.

Ruff bounds the branches (C901).
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST_FUNCTION, LONGEST_FILE = 80, 500
#: The files at the top of the project, hidden ones aside.
AT_THE_TOP = {"CHANGELOG.md", "LICENSE", "Makefile", "README.md", "dagster.yaml", "pyproject.toml", "workspace.yaml"}


def sources() -> list[Path]:
    return [*sorted((ROOT / "anon_pipeline").rglob("*.py")), *sorted((ROOT / "anon_pipeline_tests").rglob("*.py"))]


def too_long(name: str, text: str) -> Iterator[tuple[str, int]]:
    """Files and functions above the limits, with their lines."""
    if len(text.splitlines()) > LONGEST_FILE:
        yield name, len(text.splitlines())
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{name}:{node.name}", lines


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, however deep; a function stands in no expression, of which there are ten times as many nodes."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, block, ())


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


@pytest.mark.parametrize(
    "around",
    [
        "class A:",
        "async def f():",
        "with a:",
        "for a in b:",
        "while a:",
        "if a:",
        "if a:\n    pass\nelse:",
        "try:\n    pass\nexcept E:",
        "try:\n    pass\nfinally:",
        "match a:\n  case b:",
    ],
)
def test_a_long_function_is_seen_wherever_it_stands(around: str) -> None:
    long = "    def long():\n" + "        pass\n" * LONGEST_FUNCTION
    found = dict(too_long("a.py", f"{around}\n{long}"))
    assert found["a.py:long"] == LONGEST_FUNCTION + 1


def test_no_other_file_lies_at_the_top() -> None:
    """A table that somebody tried a command with was committed beside the README."""
    found = {file.name for file in ROOT.iterdir() if file.is_file() and not file.name.startswith(".")}
    assert found <= AT_THE_TOP
