"""Names are those of the field: public ones none of the old words for standard terms, and no loop over `one`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import anon_pipeline

PACKAGE = Path(anon_pipeline.__file__).parent

#: The old word, and the standard term in its place.
STANDARD = {
    "company": "minimum cohort size",
    "parting": "split threshold",
    "succeed": "sequential publication",
    "succession": "sequential publication",
    "following": "sequential publication",
    "successor": "sequential publication",
    "memberships": "release history",
    "composition": "cluster statistics",
    "founder": "seed of a cluster",
    "entering": "insertion cost",
    "leaving": "removal cost",
    "tilt": "feature-weight strength",
    "guided": "guidance weight",
    "patience": "cover decay, or longest wait",
    "doubt": "shrinkage, or margin of rounding",
    "telling": "minimum leaf size",
    "told_by": "outputs of a column",
    "relevance": "feature importance",
    "shown": "recoded value, representative",
    "shown_columns": "recoding statistics",
    "shown_groups": "recoded groups",
    "waiting": "withheld people",
    "held_back": "withheld people",
    "census": "population table",
    "price": "point of the privacy-utility trade-off",
    "prices": "points of the privacy-utility trade-off",
    "price_list": "privacy-utility trade-off",
    "notation": "parser of generalized values",
    "watched": "scores of shadow models",
    "watch": "train shadow models",
    "epsilon_witnessed": "empirical lower bound of epsilon",
    "noted": "run metrics",
    "found": "what was found: a finding, a profile, units",
    "said": "message, confidences",
    "told": "message, groups, named values",
    "one": "the thing itself: column, sensitive column",
    "refuse_the_impossible": "check_feasible",
    "draft": "proposed spec",
    "draft_beside": "proposed spec",
    "fate": "column summary",
    "fates": "column summaries",
    "ties": "associations",
    "lane": "row of a chart",
    "frontier": "privacy-utility trade-off",
    "sweep": "privacy-utility trade-off",
}

#: Names that others use: a key of the spec with the asset and file named after it, a command, and a column of ours.
KEPT = {"frontier", "sweep"}


@cache
def sources() -> dict[Path, ast.Module]:
    """The files of the package, read once."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}


def public_names(tree: ast.Module) -> Iterator[str]:
    """Classes, functions, parameters, constants and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name
            yield from (argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        elif isinstance(node, ast.ClassDef):
            yield node.name
            yield from _assigned(node.body)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
    yield from _assigned(tree.body)


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def bound_names(tree: ast.Module) -> Iterator[str]:
    """Whatever a name is given to, public or private: parameters, also of lambdas, variables, loops, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def snake_case(name: str) -> str:
    return name.lower() if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@pytest.mark.long
def test_no_public_name_is_an_old_word_for_a_standard_term() -> None:
    old = []
    for file, tree in sources().items():
        names = {file.stem, *public_names(tree)}
        for name in sorted(snake_case(name) for name in names if not name.startswith("_")):
            if name in STANDARD and name not in KEPT:
                old.append(f"{file.relative_to(PACKAGE)}: {name} is called {STANDARD[name]}")
    assert not old, "\n".join(old)


@pytest.mark.long
def test_nothing_is_called_one() -> None:
    lines = [
        f"{file.relative_to(PACKAGE)}: {name} is called after {STANDARD['one']}"
        for file, tree in sources().items()
        for name in sorted(set(bound_names(tree)))
        if name.strip("_") == "one"
    ]
    loops = re.compile(r"{%-?\s*(?:for|set)\s+(?:\w+,\s*)*one\b")
    lines += [
        f"{file.relative_to(PACKAGE)}: a loop over `one`"
        for file in sorted(PACKAGE.rglob("*.html"))
        if loops.search(file.read_text(encoding="utf-8"))
    ]
    assert not lines, "\n".join(lines)
