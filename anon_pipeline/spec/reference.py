"""The page docs/spec.md: every key of a spec with its type, its default and its meaning, read from the models.

The meaning of a key is a comment on its line in the model, so that it is written once.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
import typing
from datetime import date
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from anon_pipeline.spec.demands import PRIVACY_MODELS, load_privacy_model
from anon_pipeline.spec.parts import MaskingStep, Strict
from anon_pipeline.spec.release import ReleaseSpec

OPENING = """# Every key of a spec

A `release.yaml` has these keys and no others: a key that is not known is an error. This page is made from the code
(`make reference`), and a test holds it against the code. Columns' `steps`, and `steps` of the whole table, are
techniques of masking; `anon-pipeline steps` lists them with their parameters.
"""
#: Bounds of pydantic in words.
BOUNDS = {
    "gt": "above {}",
    "ge": "at least {}",
    "lt": "below {}",
    "le": "at most {}",
    "multiple_of": "a multiple of {}",
}


def reference() -> str:
    """The page as Markdown."""
    sections = [OPENING, *_section("release.yaml", ReleaseSpec)]
    seen: list[type[BaseModel]] = [ReleaseSpec]
    pending = _models_of(ReleaseSpec)
    while pending:
        path, model = pending.pop(0)
        if model not in seen:
            seen.append(model)
            sections += _section(path, model)
            pending += [(f"{path}.{name}", part) for name, part in _models_of(model)]
    for name in PRIVACY_MODELS:
        sections += _section(f"privacy.{name}", load_privacy_model(name))
    return "\n".join(sections)


def _section(path: str, model: type[BaseModel]) -> list[str]:
    about = _one_line(inspect.getdoc(model) or "")
    comments = _comments(model)
    lines = [f"## `{path}`", "", about, ""]
    if model.model_fields:
        lines += ["| Key | Value | Where absent | Meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        default = (
            "must be stated" if field.is_required() else f"`{_as_yaml(field.get_default(call_default_factory=True))}`"
        )
        cells = (f"`{field.alias or name}`", _type(field), default, comments.get(name, ""))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return [*lines, ""]


#: YAML's words for plain types.
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", date: "date", Any: "any value"}


def _comments(model: type[BaseModel]) -> dict[str, str]:
    """The comment behind each key in the source of a model and of its base models."""
    comments: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, BaseModel) or base in (BaseModel, Strict):
            continue
        source = textwrap.dedent(inspect.getsource(base))
        lines = source.splitlines()
        (body,) = (node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
        for node in body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                comment = re.search(r"  # (?!type:|noqa)(.*)$", lines[(node.end_lineno or node.lineno) - 1])
                if comment:
                    comments[node.target.id] = comment[1]
    return comments


def _models_of(model: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    """The parts of a model that are models themselves, with their keys."""
    return [
        (field.alias or name, part)
        for name, field in model.model_fields.items()
        for part in _parts(field.annotation)
        if inspect.isclass(part) and issubclass(part, Strict) and part is not MaskingStep and name != "privacy"
    ]


def _parts(annotation: Any) -> list[Any]:
    arguments = typing.get_args(annotation)
    return [part for argument in arguments for part in _parts(argument)] if arguments else [annotation]


def _type(field: FieldInfo) -> str:
    bounds = [
        wording.format(f"{getattr(constraint, name):g}")
        for constraint in field.metadata
        for name, wording in BOUNDS.items()
        if getattr(constraint, name, None) is not None
    ]
    return ", ".join([_type_in_words(field.annotation), *bounds])


def _type_in_words(annotation: Any) -> str:
    """A type in the words of YAML."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{_as_yaml(argument)}`" for argument in arguments)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(
            dict.fromkeys(_type_in_words(argument) for argument in arguments if argument is not type(None))
        )
    if origin is typing.Annotated:
        return _type_in_words(arguments[0])
    if origin is tuple:
        return f"list of {_type_in_words(arguments[0])}"
    if origin is dict:
        return f"mapping from {_type_in_words(arguments[0])} to {_type_in_words(arguments[1])}"
    if inspect.isclass(annotation) and issubclass(annotation, StrEnum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if inspect.isclass(annotation) and issubclass(annotation, MaskingStep):
        return "step"
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return "demands by model" if annotation.__name__ == "Demand" else "part, see below"
    return WORDS[annotation]


def _as_yaml(value: Any) -> str:
    """A default or a choice in YAML."""
    if isinstance(value, BaseModel):
        return "its defaults"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_as_yaml, value))}]"
    return repr(value) if isinstance(value, str) and (not value.isprintable() or value.strip() != value) else f"{value}"


def _one_line(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    print(reference(), end="")
