"""The written form of a spec: YAML without surprises, sentences for errors, and places by dotted path."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

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


#: The model of a whole spec, and the greatest depth of its keys.
WHOLE, DEEPEST = "ReleaseSpec", 4
NAME = "NAME"
#: The condition on a text in words, by its key, instead of the regular expression.
PATTERNS = {
    "dataset": "begins with a small letter and goes on with small letters, digits and _, for example clinic_2024",
    "memory_limit": "is a number with its unit, for example 4GB, 512MiB or 50%",
    "import": "is a module and a function in it, for example my_models:forest",
}


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question that suggests similar names; empty if there are none.

    >>> did_you_mean("incom", ["age", "income"])
    'did you mean income? '
    """
    near = get_close_matches(name, list(names), n=1, cutoff=0.75)
    return f"did you mean {near[0]}? " if near else ""


def _keys(model: type[BaseModel]) -> set[str]:
    """The keys of all loaded parts of a spec, privacy models and masking steps."""
    own = model.__module__.startswith("anon_pipeline.")
    keys = {field.alias or name for name, field in model.model_fields.items()} if own else set()
    return keys.union(*(_keys(part) for part in model.__subclasses__()))


def _places(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of keys in a model; NAME is a placeholder for names that the writer of a spec chooses."""
    for key, field in model.model_fields.items():
        place = (*above, field.alias or key)
        yield place
        pending, named = [field.annotation], False
        while pending and len(place) < DEEPEST:
            part = pending.pop()
            pending += get_args(part)
            named = named or get_origin(part) is dict
            if not isinstance(part, type) or not issubclass(part, BaseModel):
                continue
            if place == ("privacy",):  # its keys are the names of models
                for demand in _models(part):
                    if name := vars(demand).get("name"):
                        yield (*place, name)
                        yield from _places(demand, (*place, name))
            else:
                yield from _places(part, (*place, NAME) if named else place)


def _where_it_stands(key: str, above: Sequence[str], title: str) -> str:
    """A question that suggests the right place of a misplaced or misspelt key; empty if there is none."""
    model = next((part for part in _models(BaseModel) if part.__name__ == title), None)
    known = list(_places(model)) if model is not None and title == WHOLE else []
    if not known:
        return did_you_mean(key, _keys(BaseModel) - {key})
    near = get_close_matches(key, {place[-1] for place in known}, n=1, cutoff=0.75)
    found: dict[str, int] = {}
    for *way, last in known:
        if [last] == near:
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] in (pair[1], NAME), zip(way, above, strict=False)))
            steps = len(way) + len(above) - 2 * shared
            found[".".join([*above[:shared], *way[shared:], last]) if steps else last] = steps
    nearest = min(found.values(), default=0)
    places = [place for place in sorted(found, key=found.__getitem__) if found[place] <= nearest + (nearest > 0)][:3]
    at_the_top = " at the top of the spec" if nearest and above and places == near else ""
    return f"did you mean {' or '.join(places)}{at_the_top}? " if places else ""


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for part in model.__subclasses__():
        yield part
        yield from _models(part)


def sentences(error: ValidationError, prefix: str = "") -> list[str]:
    """The errors of pydantic as `field: problem`, without the input and without links."""
    sentences = []
    for finding in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join([prefix] * bool(prefix) + [str(part) for part in finding["loc"]])
        if finding["type"] == "extra_forbidden":
            *above, key = map(str, finding["loc"])
            near = _where_it_stands(key, above, error.title)
            what = f"is not a key of the spec; {near}check its spelling or remove it"
        elif finding["type"] == "missing":
            what = "is missing"
        elif finding["type"] == "string_pattern_mismatch":
            what = PATTERNS.get(str(finding["loc"][-1]), "is not written as it must be")
        else:
            what = re.sub("^Value error, ", "", finding["msg"])
        sentences.append(f"{place}: {what}" if place else what)
    return sentences
