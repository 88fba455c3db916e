"""The changes that make mutants of a file: another comparison, sign, constant or mask, or a guard left out.

None are made of docstrings, annotations, messages, or what guards against slips of the programmer and decides nothing
(`strict=` of zip, `frozen=` and `eq=` of dataclasses, `indent=` of JSON, `highlight=` of numbers on a terminal). Nor is
`<` made `<=` beside a number drawn at random, which is exactly the other side once in 2^53 draws, or beside a size from
which on the same is computed in a quicker way (`QUICKER`): nobody can notice.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "argmin": "argmax",
    "argmax": "argmin",
}
#: Words in the names of folders and files, for which `/` is no division.
PATHS = {"staged", "folder", "place", "home", "path", "parent", "file", "files", "root", "DATA", "CLASSES", "target"}

#: Names that decide, by size or kind, when the same result is computed in another way to save time or memory.
QUICKER = {"ALL", "LONGEST_CASE", "MOST_LOOKED_UP", "heavy"}


@dataclass(frozen=True)
class Mutant:
    """One change: its place, the old code and the new code.

    `line` is the first line of the statement and `at` that of the change: coverage records either of them. `place`
    tells equal changes of one function apart, " [2 of 3]", so that a judgement of one says nothing of the others.
    """

    file: str
    function: str
    line: int
    at: int
    before: str
    after: str
    source: str
    place: str = ""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.function}: {self.before} -> {self.after}{self.place}"


def mutated(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes by which a node may be replaced: pairs of the node and its replacement."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        if not _never_equal(node):
            yield node, ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if not (_is_text(node.left) or _is_text(node.right) or _is_path(node)):
            yield node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield node, node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, ast.Constant(node.value + 1)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node, ast.Attribute(node.value, NAMES[node.attr], node.ctx)
    elif isinstance(node, ast.Name) and node.id in ("min", "max", "any", "all"):
        yield node, ast.Name(NAMES[node.id], node.ctx)
    elif isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse:
        yield node, ast.Pass()


def _never_equal(node: ast.Compare) -> bool:
    """Whether the case in which `<` and `<=` differ is practically impossible, or makes no difference."""
    drawn = any(
        isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr in ("uniform", "random")
        for side in (node.left, *node.comparators)
    )
    quicker = any(isinstance(side, ast.Name) and side.id in QUICKER for side in (node.left, *node.comparators))
    return isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE) and (drawn or quicker)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_path(node: ast.BinOp) -> bool:
    """Whether `/` seems to join a path, where any mistake would be noticed soon."""
    named = {name for side in (node.left, node.right) for name in re.findall(r"[a-zA-Z]+", ast.unparse(side))}
    return isinstance(node.op, ast.Div) and bool(named & PATHS)


def mutants_of(root: Path, file: Path) -> Iterator[Mutant]:
    """Every mutant of a file below `root`; docstrings, annotations and texts of messages stay as they are."""
    source, name = file.read_text(encoding="utf-8"), str(file.relative_to(root))

    def visit(node: ast.AST, function: str, line: int) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            annotation = child in (getattr(node, "returns", None), getattr(node, "annotation", None))
            slip = isinstance(child, ast.keyword) and child.arg in ("strict", "frozen", "eq", "indent", "highlight")
            quicker = isinstance(child, ast.AnnAssign) and ast.unparse(child.target) in QUICKER
            if annotation or slip or quicker or isinstance(child, ast.JoinedStr | ast.arg | ast.Raise):
                continue
            inner, of_statement = function, child.lineno if isinstance(child, ast.stmt) else line
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".strip(".")
            if function:
                for old, new in mutated(child):
                    yield _changed(name, source, function, of_statement, old, new)
            yield from visit(child, inner, of_statement)

    every = list(visit(ast.parse(source), "", 0))
    number, seen = Counter(mutant.name for mutant in every), Counter[str]()
    for mutant in every:
        seen[mutant.name] += 1
        alike = number[mutant.name]
        yield replace(mutant, place=f" [{seen[mutant.name]} of {alike}]") if alike > 1 else mutant


def _changed(file: str, source: str, function: str, line: int, old: ast.AST, new: ast.AST) -> Mutant:
    lines = source.encode().splitlines(keepends=True)
    assert isinstance(old, ast.expr | ast.stmt)
    assert old.end_lineno is not None
    assert old.end_col_offset is not None
    start = sum(map(len, lines[: old.lineno - 1])) + old.col_offset
    end = sum(map(len, lines[: old.end_lineno - 1])) + old.end_col_offset
    text = ast.unparse(new) if isinstance(new, ast.Pass | ast.Constant | ast.Name) else f"({ast.unparse(new)})"
    whole = source.encode()
    before = ast.unparse(old.test if isinstance(old, ast.If) else old)
    return Mutant(
        file,
        function,
        line,
        old.lineno,
        f"if {before}: raise" if isinstance(old, ast.If) else before,
        ast.unparse(new),
        (whole[:start] + text.encode() + whole[end:]).decode(),
    )
