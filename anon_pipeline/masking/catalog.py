"""All techniques by name, and their descriptions, which are generated from the models and so always agree with them."""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from anon_pipeline.masking.aggregation import Aggregate
from anon_pipeline.masking.base import Guarantee, RowTechnique, TableTechnique, Technique
from anon_pipeline.masking.cells import GridCell, H3Cell
from anon_pipeline.masking.dates import TruncateDate
from anon_pipeline.masking.donut import Donut, PopulationDonut
from anon_pipeline.masking.encryption import Encrypt
from anon_pipeline.masking.fakes import Fake
from anon_pipeline.masking.hierarchy import Hierarchy
from anon_pipeline.masking.local_randomizers import LocalFrequencies, RandomizedResponse, UnaryEncoding
from anon_pipeline.masking.local_suppression import LocalSuppression
from anon_pipeline.masking.masks import KeepFormat, Mask, Prefix, Redact, Replace
from anon_pipeline.masking.mdav import Mdav
from anon_pipeline.masking.microaggregation import Microaggregate
from anon_pipeline.masking.noise import CorrelatedNoise, Noise, ProportionalNoise
from anon_pipeline.masking.planar_laplace import PlanarLaplace
from anon_pipeline.masking.pram import Pram
from anon_pipeline.masking.pseudonyms import Hash, Pseudonymize
from anon_pipeline.masking.quantiles import QuantileBin, QuantileCode
from anon_pipeline.masking.rank_swap import RankSwap
from anon_pipeline.masking.rounding import Bin, Round, TopBottomCode
from anon_pipeline.masking.sampling import Sample
from anon_pipeline.masking.suppression import Suppress, SuppressCells, SuppressRare
from anon_pipeline.masking.synthetic import Synthesize

_MODELS: tuple[type[Technique], ...] = (
    Suppress, SuppressCells, SuppressRare, LocalSuppression,
    Redact, Mask, KeepFormat, Replace,
    Pseudonymize, Encrypt, Fake, Hash,
    Round, Bin, QuantileBin, TopBottomCode, QuantileCode, TruncateDate, Prefix, Hierarchy,
    Noise, ProportionalNoise, CorrelatedNoise, RankSwap, Pram, Microaggregate, Mdav,
    RandomizedResponse, UnaryEncoding, LocalFrequencies,
    Sample, Aggregate, Synthesize,
    GridCell, H3Cell, Donut, PopulationDonut, PlanarLaplace,
)  # fmt: skip

#: Every technique by the name that a spec uses. A new technique needs a file of its own and one line above.
TECHNIQUES: dict[str, type[Technique]] = {model.model_fields["technique"].default: model for model in _MODELS}


@dataclass(frozen=True)
class Parameter:
    """A parameter as a person reads it: `default` is the word "required" where there is none."""

    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class CatalogRow:
    """A technique as a person reads it.

    `stands` is its place in a spec: under a column, or in the table's list. `runs` is in the engine or in memory.
    """

    technique: str
    stands: Literal["column", "table"]
    runs: Literal["engine", "memory"]
    on: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    meaning: str
    guarantee: Guarantee
    use_when: str
    source: str


def technique_named(name: object) -> type[Technique]:
    """The model of the technique of this name.

    Raises
    ------
    ValueError
        With a sentence, where no technique has this name.
    """
    if isinstance(name, str) and name in TECHNIQUES:
        return TECHNIQUES[name]
    near = difflib.get_close_matches(str(name), TECHNIQUES, n=1)
    hint = f"did you mean {near[0]}? Known are" if near else "known are"
    raise ValueError(f"technique: {name!r} is no technique; {hint} {', '.join(sorted(TECHNIQUES))}")


def read_step(content: object) -> Technique:
    """A step as a spec writes it, `{technique: round, to: 10}`.

    Raises
    ------
    ValueError
        With a sentence where the technique is not known; as pydantic's `ValidationError` where its parameters are
        wrong.
    """
    if isinstance(content, Technique):
        return content
    if not isinstance(content, Mapping) or "technique" not in content:
        raise ValueError("is a mapping with a technique and its parameters, for example {technique: round, to: 10}")
    technique = technique_named(content["technique"])
    named = [key for key in ("column", "columns") if key in content and key not in technique.model_fields]
    if named and not issubclass(technique, TableTechnique):
        keys = " and ".join(named)
        raise ValueError(
            f"{content['technique']} works on one column; state it under columns.<name>.steps, without {keys}"
        )
    return technique.model_validate(dict(content))


def catalog() -> tuple[CatalogRow, ...]:
    """All techniques, in the order in which they are best explained."""
    return tuple(_row(name, model) for name, model in TECHNIQUES.items())


def _row(name: str, model: type[Technique]) -> CatalogRow:
    parameters = tuple(
        Parameter(field, type_text(info), _default(info), info.description or "")
        for field, info in model.model_fields.items()
        if field != "technique"
    )
    return CatalogRow(
        technique=name,
        stands="table" if issubclass(model, TableTechnique) else "column",
        runs="engine" if issubclass(model, RowTechnique) else "memory",
        on=tuple(sorted(kind.value for kind in model.accepts)),
        parameters=parameters,
        meaning=model.meaning,
        guarantee=model.guarantee,
        use_when=model.use_when,
        source=inspect.cleandoc(model.__doc__ or ""),
    )


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True, validated_data={})
    if default is None or default is PydanticUndefined:
        return "none"
    if isinstance(default, BaseModel):
        return str(default.model_dump(exclude_none=True))
    if isinstance(default, tuple | dict) and not default:
        return "none"
    return str(default).lower() if isinstance(default, bool) else str(default)


def type_text(info: FieldInfo) -> str:
    """A field's type as a person reads it, with its limits: "number > 0 and <= 100", "nearest | down | up"."""
    text = _type(info.annotation)
    words = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    limits = [
        f"{words[name]} {_short(value)}"
        for constraint in info.metadata
        for name in words
        if (value := getattr(constraint, name, None)) is not None
    ]
    return f"{text} {' and '.join(limits)}" if limits else text


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        kinds = dict.fromkeys(_type(argument) for argument in arguments if argument is not type(None))
        if "number" in kinds:
            kinds.pop("whole number", None)
        return " | ".join(kinds)
    if origin is tuple:
        members = [_type(argument) for argument in arguments if argument is not Ellipsis]
        return f"list of {members[0]}" if Ellipsis in arguments else f"[{', '.join(members)}]"
    if origin is dict:
        return f"mapping of {_type(arguments[0])} to {_type(arguments[1])}"
    words = {int: "whole number", float: "number", str: "text", bool: "true | false"}
    if annotation in words:
        return words[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "{" + ", ".join(annotation.model_fields) + "}"
    return typing.cast(str, getattr(annotation, "__name__", str(annotation)))


def _short(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
