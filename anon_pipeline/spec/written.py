"""The written form of a spec: YAML without surprises, and places by dotted path."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from anon_pipeline.errors import InputError

#: The value in a proposed spec that a person must decide; only an unquoted value (a column may have this name).
UNDECIDED = "decide"


def decoded(path: Path) -> str:
    """The text of a spec's file.

    Raises
    ------
    InputError
        With the number of the line that is not UTF-8.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}: line {line} is not in UTF-8; save the file as UTF-8 in your editor") from None


def undecided_lines(text: str) -> list[tuple[int, str]]:
    """The lines of a spec on which a value is still `decide`: the number, from 1, and the dotted path."""
    lines: list[tuple[int, str]] = []
    seen: set[int] = set()  # a node may be its own descendant, by an alias

    def look(node: yaml.Node, path: str) -> None:
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value == UNDECIDED:
            lines.append((node.start_mark.line + 1, path))
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                look(value, f"{path}.{key.value}" if path else str(key.value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                look(value, f"{path}.{number}")

    if UNDECIDED in text and (root := yaml.compose(text, Loader=PlainLoader)) is not None:
        look(root, "")
    return lines


def put(content: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path; absent mappings on the way are created.

    Raises
    ------
    InputError
        For a path that leads nowhere.
    """
    place: Any = content
    *way, last = path.split(".")
    for number, part in enumerate([*way, last]):
        before = ".".join(way[:number])
        if not part:
            raise InputError(f"{path!r}: is no path into the spec; write one as privacy.k_anonymity.k")
        if isinstance(place, list):
            if not part.isdecimal() or int(part) >= len(place):
                numbers = ", ".join(f"{before}.{position}" for position in range(len(place)))
                raise InputError(f"{path}: {before} stands {len(place)} times; say which one: {numbers}")
        elif not isinstance(place, dict):
            raise InputError(f"{path}: does not exist, since {before} is a single value; use the path {before}")
        key: Any = int(part) if isinstance(place, list) else part
        if number == len(way):
            place[key] = value
        else:
            place = place[key] if isinstance(place, list) else place.setdefault(key, {})


def with_lists(value: Any) -> Any:
    """Plain data with lists instead of tuples, as YAML gives them."""
    if isinstance(value, dict):
        return {key: with_lists(item) for key, item in value.items()}
    return [with_lists(item) for item in value] if isinstance(value, list | tuple) else value


class PlainLoader(yaml.SafeLoader):
    """YAML without two surprises: a key may occur once only, and `on`, `off`, `yes` and `no` are texts (YAML 1.2)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key is a text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
