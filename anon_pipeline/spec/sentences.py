"""Sentences on what is wrong in a spec, in the words of somebody who writes one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import takewhile
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError

#: The model of a whole spec, and the greatest depth of its keys.
WHOLE, DEEPEST = "ReleaseSpec", 4
NAME = "NAME"
#: The condition on a text in words, by its key, instead of the regular expression.
PATTERNS = {
    "dataset": "begins with a small letter and goes on with small letters, digits and _, for example clinic_2024",
    "memory_limit": "is a number with its unit, for example 4GB, 512MiB or 50%",
    "import": "is a module and a function in it, for example my_models:forest",
}


#: What must stand where something of another kind stands, by the kind of pydantic's error.
MUST = {
    **dict.fromkeys(("dict_type", "mapping_type"), "a group of keys, as in {key: value}"),
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), "a list, as in [a, b]"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a text",
}
#: How pydantic's messages on a value begin.
SHOULD = "Input should be "
#: The name that pydantic gives, within a place, to one of several kinds of which any may stand there, if no model's.
KIND = re.compile(r"int|float|str|bool|date|datetime|(literal|list|tuple|dict|function-\S*|constrained-\S*)\[.*\]")
#: Where the next part of a place is a name that the writer of a spec chose.
NAMED = ("columns", "domains", "rename", "paths")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question that suggests similar names; empty if there are none.

    >>> did_you_mean("incom", ["age", "income"]), did_you_mean("Age", ["age", "income"])
    ('did you mean income? ', 'did you mean age? ')
    """
    known = list(names)
    alike = [other for other in known if other.casefold() == name.casefold()]  # of a short name no other is near
    near = alike or get_close_matches(name, known, n=1, cutoff=0.75)
    return f"did you mean {near[0]}? " if near else ""


def _keys(model: type[BaseModel]) -> set[str]:
    """The keys of all loaded parts of a spec, privacy models and masking steps."""
    own = model.__module__.startswith("anon_pipeline.")
    return set(_names(model) if own else ()).union(*(_keys(part) for part in model.__subclasses__()))


def _names(model: type[BaseModel]) -> list[str]:
    """The keys of a part as a spec writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


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
        own = model is not None and all(part.isdecimal() for part in above)  # of a step, beside its number in a list
        return did_you_mean(key, (set(_names(model)) if model is not None and own else _keys(BaseModel)) - {key})
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


def _own_models() -> Iterator[type[BaseModel]]:
    """The parts of a spec; libraries have models too, and some have the same names."""
    return (model for model in _models(BaseModel) if model.__module__.startswith("anon_pipeline."))


@dataclass(frozen=True)
class _Problem:
    """What is wrong at a place.

    Attributes
    ----------
    must : what has to stand there; empty where it is another problem
    of_keys : whether a key is missing, or is none
    """

    place: tuple[str, ...]
    what: str
    must: str = ""
    of_keys: bool = False


def sentences(error: ValidationError, prefix: str = "") -> list[str]:
    """The errors of pydantic as `field: problem`, without the input and without links."""
    problems = [
        _problem(tuple(map(str, finding["loc"])), finding["type"], finding["msg"], error.title)
        for finding in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    told = []
    for problem in _of_one_kind(problems):
        place = ".".join([prefix] * bool(prefix) + list(problem.place))
        what = problem.what or f"must be {problem.must}"
        told.append(f"{place}: {what}" if place else what)
    return told


def _problem(place: tuple[str, ...], kind: str, message: str, title: str) -> _Problem:
    if kind == "extra_forbidden":
        *above, key = place
        near = _where_it_stands(key, above, title)
        return _Problem(place, f"is not a key of the spec; {near}check its spelling or remove it", of_keys=True)
    if kind == "missing":
        return _Problem(place, "is missing", of_keys=True)
    if kind == "string_pattern_mismatch":
        return _Problem(place, PATTERNS.get(place[-1], "is not written as it must be"))
    if kind == "model_type":
        return _Problem(place, "", f"a group of keys, as in {{{_first_key(message.rpartition(' ')[2])}: ...}}")
    if kind in MUST or message.startswith(SHOULD):
        return _Problem(place, "", MUST.get(kind, message.removeprefix(SHOULD)))
    return _Problem(place, re.sub("^Value error, ", "", message))


def _first_key(name: str) -> str:
    """The first key that a part of a spec needs, or else that it may have; the part is known by its class."""
    fields = next((model.model_fields for model in _own_models() if model.__name__ == name), {})
    key = next((key for key, field in fields.items() if field.is_required()), next(iter(fields), "key"))
    return fields[key].alias or key if fields else key


def _of_one_kind(problems: list[_Problem]) -> list[_Problem]:
    """The problems, each place with those of one kind of value where several kinds may stand.

    That is the kind in which something is wrong further inside, of several the one whose keys fit best: what is written
    there is of this kind. Where there is none, all kinds are named.
    """
    several = next(
        (
            problem.place[:number]
            for problem in problems
            for number, part in enumerate(problem.place)
            if _is_kind(part) and len(_kinds_at(problems, problem.place[:number])) > 1
        ),
        None,
    )
    if several is None:
        return problems
    depth, kept = len(several), list[_Problem]()
    inside = [problem for problem in problems if problem.place[:depth] == several and len(problem.place) > depth]
    deeper = [problem for problem in inside if len(problem.place) > depth + 1 or not problem.must]
    if deeper:
        misfits = Counter({problem.place[depth]: 0 for problem in deeper})
        misfits.update(problem.place[depth] for problem in deeper if problem.of_keys)
        kind = min(misfits, key=misfits.__getitem__)
        kept = [
            replace(problem, place=(*several, *problem.place[depth + 1 :]))
            for problem in inside
            if problem.place[depth] == kind
        ]
    else:
        musts = dict.fromkeys(problem.must for problem in inside)
        if MUST["float_type"] in musts:
            musts.pop(MUST["int_type"], None)
        kept = [_Problem(several, "", " or ".join(musts))]
    first = problems.index(inside[0])
    others = [problem for problem in problems if problem not in inside]
    return _of_one_kind([*others[:first], *kept, *others[first:]])


def _kinds_at(problems: list[_Problem], place: tuple[str, ...]) -> set[str]:
    """The names of kinds that follow a place, if nothing else does."""
    if place and place[-1] in NAMED:
        return set()
    parts = {
        problem.place[len(place)]
        for problem in problems
        if problem.place[: len(place)] == place and len(problem.place) > len(place)
    }
    return parts if all(map(_is_kind, parts)) else set()


def _is_kind(part: str) -> bool:
    return KIND.fullmatch(part) is not None or any(part == model.__name__ for model in _own_models())
