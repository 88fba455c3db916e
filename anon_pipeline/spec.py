"""What a release is: the policy of one dataset, as `release.yaml` states it. Nothing here touches data.

Every other layer reads these objects, so that no k, role or seed is written twice.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from anon_pipeline.errors import InputError

#: Privacy models by the name a spec uses. One file and one line here add a model (docs/engineer.md shows it).
PRIVACY_MODELS: dict[str, str] = {
    "k_anonymity": "anon_pipeline.privacy.k_anonymity:KAnonymity",
    "l_diversity": "anon_pipeline.privacy.l_diversity:LDiversity",
    "alpha_k_anonymity": "anon_pipeline.privacy.alpha_k:AlphaKAnonymity",
    "t_closeness": "anon_pipeline.privacy.t_closeness:TCloseness",
    "beta_likeness": "anon_pipeline.privacy.beta_likeness:BetaLikeness",
    "delta_disclosure": "anon_pipeline.privacy.delta_disclosure:DeltaDisclosure",
    "k_map": "anon_pipeline.privacy.k_map:KMap",
    "delta_presence": "anon_pipeline.privacy.delta_presence:DeltaPresence",
}


#: Where k stands in a spec.
K_PATH = "privacy.k_anonymity.k"

#: Stands in a proposed spec where a person must decide; unquoted, and a value (a column may have this name).
UNDECIDED = "decide"


class Strict(BaseModel):
    """A part of the spec: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Role(StrEnum):
    """What a column is to a person, and so what may happen to it."""

    IDENTIFIER = "identifier"  # names a person; never leaves
    QUASI_IDENTIFIER = "quasi_identifier"  # singles a person out together with others; generalized
    SENSITIVE = "sensitive"  # kept as it is, protected against inference
    INSENSITIVE = "insensitive"  # kept as it is
    EXCLUDE = "exclude"  # left out


class ColumnType(StrEnum):
    """How values compare: by size, by equality, or along the calendar."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    DATE = "date"


#: Reads a masking step; imported when a spec has one.
READ_STEP = "anon_pipeline.masking.catalog:read_step"


class MaskingStep(Strict):
    """One masking technique with its parameters; `anon_pipeline.masking` holds what they mean."""

    technique: str


def read_steps(value: Any) -> tuple[MaskingStep, ...]:
    """The steps of a list as a spec writes it.

    Raises
    ------
    ValueError
        With one sentence per step that is none.
    """
    if not isinstance(value, list | tuple):
        raise ValueError("is a list of steps, for example [{technique: round, to: 10}]")
    module, _, attribute = READ_STEP.partition(":")
    read = getattr(importlib.import_module(module), attribute) if value else None
    steps: list[MaskingStep] = []
    problems: list[str] = []
    for number, one in enumerate(value):
        try:
            steps.append(read(one))  # type: ignore[misc]
        except ValidationError as error:
            problems += _sentences(error, f"{number}")
        except ValueError as error:
            problems.append(f"{number}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return tuple(steps)


#: The step that leaves a table of groups and no people, and why nothing can then be asked of their rows.
AGGREGATE, NO_ROWS = "aggregate", "aggregate leaves a table of groups and no rows of people to judge"


class KeyPlace(Strict):
    """Where a key lies: an environment variable, or a file of mode 0600 named relative to the spec."""

    environment: str | None = None
    file: str | None = None


class HierarchyFile(Strict):
    """A hierarchy in a CSV file, relative to the spec, as ARX writes it: `value;level 1;level 2;...` on each line."""

    file: str = Field(min_length=1)
    delimiter: str = Field(default=";", min_length=1, max_length=1)
    strict: bool = False  # the tree may split the column only between nodes that lie directly below one node


class PrefixHierarchy(Strict):
    """A hierarchy of codes that say less the shorter they are, as ZIP codes do: 12345, 123**, 12***."""

    prefix: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1)  # lengths, the longest first
    strict: bool = False

    @field_validator("prefix")
    @classmethod
    def _become_shorter(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if any(longer <= shorter for longer, shorter in itertools.pairwise(lengths)):
            raise ValueError("each length is smaller than the one before, as in [5, 3, 2]")
        return lengths


class Column(Strict):
    """One column of the source, or one that a masking step makes."""

    role: Role
    type: ColumnType | None = None  # taken from the source where absent
    grid: float | None = Field(default=None, gt=0, le=1e15)  # the step of shown numbers; from the data where absent
    levels: tuple[str, ...] | None = Field(default=None, min_length=2)  # categories that have an order, lowest first
    hierarchy: Literal["calendar"] | HierarchyFile | PrefixHierarchy | None = None  # whose words classes show
    why: str | None = None  # the reason for the role, for the report
    unit: str | None = Field(default=None, min_length=1)  # what its numbers count, for the report: years
    steps: tuple[MaskingStep, ...] = ()  # masking, in order, before people are grouped
    made: bool = False  # by a step; the source has no such column

    @field_validator("steps", mode="plain")
    @classmethod
    def _read_steps(cls, value: Any) -> tuple[MaskingStep, ...]:
        return read_steps(value)

    @field_serializer("steps")
    def _write_steps(self, steps: tuple[MaskingStep, ...]) -> list[dict[str, Any]]:
        return [step.model_dump(mode="json", by_alias=True, exclude_none=True) for step in steps]

    @field_validator("levels", mode="before")
    @classmethod
    def _read_levels(cls, value: Any) -> Any:
        """Levels are texts, also where YAML reads numbers: [1, 2, 3]."""
        if not isinstance(value, list | tuple):
            return value
        levels = [str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one for one in value]
        if len(set(map(str, levels))) < len(levels):
            raise ValueError("a level stands twice; name each once, the lowest first")
        return levels

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _read_hierarchy(cls, value: Any) -> Any:
        if value is None or value == "calendar" or isinstance(value, HierarchyFile | PrefixHierarchy):
            return value
        if not isinstance(value, Mapping) or ("file" in value) == ("prefix" in value):
            raise ValueError("is calendar, {file: education.csv} or {prefix: [5, 3, 2]}")
        try:
            return (HierarchyFile if "file" in value else PrefixHierarchy).model_validate(value)
        except ValidationError as error:
            raise ValueError("; ".join(_sentences(error))) from None

    @model_validator(mode="after")
    def _is_described_once(self) -> Column:
        if self.levels is None and self.hierarchy is None:
            return self
        stated = "hierarchy" if self.levels is None else "levels"
        if self.levels is not None and self.hierarchy is not None:
            raise ValueError("has levels and a hierarchy; state one of them")
        if self.role is not Role.QUASI_IDENTIFIER:
            raise ValueError(f"{stated}: is of quasi-identifiers, and the role is {self.role}; take it out")
        needed = {"levels": ColumnType.CATEGORICAL}.get(stated)
        needed = ColumnType.CATEGORICAL if isinstance(self.hierarchy, PrefixHierarchy) else needed
        needed = ColumnType.DATE if self.hierarchy == "calendar" else needed
        if isinstance(self.hierarchy, HierarchyFile) and self.type is ColumnType.DATE:
            raise ValueError("hierarchy: a file lists texts or numbers, and the type is date; say hierarchy: calendar")
        if needed is not None and self.type not in (None, needed):
            raise ValueError(f"{stated}: needs type: {needed}, and the type is {self.type}")
        return self


class Source(Strict):
    """Where the table lies: a CSV or Parquet file, a folder of Parquet files, or a query to a DuckDB or SQLite file."""

    path: str
    query: str | None = None
    missing: tuple[str, ...] = ()  # texts that stand for "not known", beside the empty field
    delimiter: str | None = Field(default=None, min_length=1, max_length=4)  # CSV; detected where absent
    encoding: str = "utf-8"


class ImportedModel(Strict):
    """A scikit-learn-compatible estimator made by a function of the user's: `import: package.module:factory`."""

    import_: str = Field(alias="import", pattern=r"^[\w.]+:\w+$")


class LoggedModel(Strict):
    """A scikit-learn model logged in MLflow, by its URI."""

    mlflow: str


BuiltInModel = Literal["gradient_boosting", "random_forest", "linear", "decision_tree"]


class Guide(Strict):
    """The model M whose predictions guide the grouping, and how the tree listens to it."""

    model: BuiltInModel | ImportedModel | LoggedModel = "gradient_boosting"
    on: Literal["label", "probability"] = "probability"
    predictions: Literal["out_of_fold", "in_sample"] = "out_of_fold"
    folds: int = Field(default=5, ge=2, le=50)
    spread: float = Field(default=1.0, ge=0, le=1e6)  # weight of the quasi-identifiers' own spread beside the guidance
    sample: int = Field(default=500_000, ge=100)  # M is trained on at most so many people, chosen by content hash
    orders: Literal["guidance", "both", "each"] = "both"  # of categories: by guidance, by frequency too, by each output
    targets: tuple[str, ...] = ()  # where one release serves several analyses: the spec's target, then the others


class Recode(Strict):
    """What a class shows in place of its members' values."""

    numeric: Literal["median"] = "median"
    categorical: Literal["mode"] = "mode"
    form: Literal["value", "range"] = "value"


class Utility(Strict):
    """How accuracy before and after is measured."""

    models: tuple[BuiltInModel, ...] = ("linear",)  # beside the guide's own
    folds: int = Field(default=5, ge=2, le=50)
    sample: int = Field(default=100_000, ge=100)  # measured on at most so many people, chosen by content hash


class Audit(Strict):
    """How a release is attacked before it leaves, and what an attack may achieve at most.

    A bound is held against the upper end of the attack's 95 % interval: too few people to tell is not "safe". Who would
    rather hold it against the estimate says `bounds_on: estimate`; an attack no better than guessing then counts as 0.
    """

    enabled: bool = True
    control: Literal["twin", "held_out"] = "twin"  # who is kept out: of a twin of the release, or of the release
    share: float = Field(default=0.1, gt=0, le=0.5)  # of the people; at least 500 and at most 5,000 of them
    sample: int = Field(default=60_000, ge=1_000)  # the twin is made of at most so many people
    targets: int = Field(default=5_000, ge=100)  # people in the release, and control people, attacked at most
    models: bool = True  # whether models are attacked, too
    people: int = Field(default=4_000, ge=200)  # in the membership game on models
    shadows: int = Field(default=16, ge=4, multiple_of=2)
    bounds_on: Literal["upper_end", "estimate"] = "upper_end"
    linkage: float | None = Field(default=None, ge=0, le=1)  # bounds: leak of the strongest attack of this kind
    singling_out: float | None = Field(default=None, ge=0, le=1)
    attribute_inference: dict[str, float] = {}  # leak by sensitive column
    membership_auc: float | None = Field(default=None, ge=0.5, le=1)  # of models trained on the release


class Suppression(Strict):
    """Leaving people out where grouping them would cost everybody else more."""

    limit: float = Field(default=0.0, ge=0, lt=1)  # share of the people


class Grouping(Strict):
    """How people are counted before they are grouped."""

    cells: int = Field(default=5_000_000, ge=100)  # above so many distinct tuples, ordered columns are coarsened


class AcrossReleases(Strict):
    """What is asked of a release together with the former ones of its dataset."""

    k: int = Field(ge=2, le=10**9)  # people who share a person's class, or absence, in every release of the window
    window: int = Field(default=12, ge=2, le=1000)  # releases, the new one included
    reserve: float = Field(default=0.3, ge=0, le=10)  # classes start larger than k by this share, and may lose people
    refit: float = Field(default=0.1, ge=0)  # a new tree replaces the kept one where it loses less by this share
    departures: Literal["at_once", "in_company"] = "at_once"  # in company: k - 1 others of their history go with them


class EngineSettings(Strict):
    """What the engine may use of the machine; nothing of it changes a release."""

    memory_limit: str | None = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+)?\s*([KMGT]i?B|%)$")
    threads: int | None = Field(default=None, ge=1)


#: The paths that a price list may vary: what is asked of the grouping. All else, the model among it, is done once.
SWEPT = re.compile(r"privacy\.[^.]+\..+|suppression\.limit|guide\.(spread|orders)|columns\..+\.grid")


class Retention(Strict):
    """How long the private zone keeps what it holds of a dataset."""

    private_days: int = Field(ge=1, le=36_500)  # after the step that made it


class Frontier(Strict):
    """The settings of a price list: every combination of these values in place of those that the spec states."""

    k: tuple[int, ...] = ()
    set_: dict[str, tuple[Any, ...]] = Field(default={}, alias="set")  # by path, as ReleaseSpec.replaced takes it

    @model_validator(mode="after")
    def _varies_something(self) -> Frontier:
        if not self.k and not self.set_:
            raise ValueError("names nothing to vary; for example {k: [5, 10, 25]}")
        for path, values in self.set_.items():
            if not SWEPT.fullmatch(path):
                raise ValueError(
                    f"{path}: is no path that a price list can vary, since the model is trained and people are counted "
                    "once for all settings; those are privacy.<model>.<parameter>, suppression.limit, guide.spread, "
                    "guide.orders and columns.<name>.grid"
                )
            if not values:
                raise ValueError(f"{path}: has no values to vary over")
        if self.k and K_PATH in self.set_:
            raise ValueError(f"{K_PATH}: is varied twice; k is the same")
        return self

    @classmethod
    def parse(cls, k: str | None, assignments: Sequence[str]) -> Frontier:
        """From texts as one types them: "2,5,10" and "privacy.t_closeness.t=0.2,0.4", values as YAML reads them.

        Raises
        ------
        InputError
            For what is no such text, or no setting of a price list.
        """
        varied: dict[str, list[Any]] = {}
        for assignment in assignments:
            path, equals, values = assignment.partition("=")
            if not equals or not path.strip():
                raise InputError(f"--set {assignment}: write a path, =, and values, as privacy.t_closeness.t=0.2,0.4")
            if path.strip() in varied:
                raise InputError(f"--set {path.strip()}: stands twice; name all its values once")
            varied[path.strip()] = _values(f"--set {assignment}", values)
        content = {"set": varied} if k is None else {"k": _values(f"--k {k}", k), "set": varied}
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise InputError("; ".join(_sentences(error))) from None

    def settings(self) -> list[dict[str, Any]]:
        """The combinations, each a value by path, the last path varying fastest."""
        varied = {**({K_PATH: self.k} if self.k else {}), **self.set_}
        distinct = [dict.fromkeys(map(_hashable, values)) for values in varied.values()]
        return [dict(zip(varied, values, strict=True)) for values in itertools.product(*distinct)]


class Demand(Strict):
    """A demand on every equivalence class; `anon_pipeline.privacy` holds the models that say what it means."""

    name: ClassVar[str]


def load_privacy_model(name: str) -> type[Demand]:
    """The class behind a name in `privacy:`, imported when a spec asks for it."""
    module, _, attribute = PRIVACY_MODELS[name].partition(":")
    model: type[Demand] = getattr(importlib.import_module(module), attribute)
    return model


class ReleaseSpec(Strict):
    """The policy of one dataset.

    Build it with `ReleaseSpec.load(path)`; a spec made in code is validated the same way.
    """

    dataset: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    description: str = ""
    owner: str | None = None
    source: Source
    target: str
    columns: dict[str, Column]
    privacy: tuple[SerializeAsAny[Demand], ...]
    steps: tuple[MaskingStep, ...] = ()  # masking of several columns together, after the columns' own
    draws: KeyPlace | None = None  # the key that random masking draws under; from the seed alone where absent
    suppression: Suppression = Suppression()
    guide: Guide = Guide()
    grouping: Grouping = Grouping()
    recode: Recode = Recode()
    person: str | None = None  # the identifier that people are followed by from release to release
    across_releases: AcrossReleases | None = None
    utility: Utility = Utility()
    audit: Audit = Audit()
    sampling_fraction: float | None = Field(default=None, gt=0, le=1)  # the table's share of its population
    frontier: Frontier | None = None
    schedule: str | None = None
    retention: Retention | None = None
    engine: EngineSettings = EngineSettings()
    seed: int = Field(default=0, ge=0, lt=2**32)

    _folder: Path = Path(".")

    @field_validator("steps", mode="plain")
    @classmethod
    def _read_steps(cls, value: Any) -> tuple[MaskingStep, ...]:
        return read_steps(value)

    @field_serializer("steps")
    def _write_steps(self, steps: tuple[MaskingStep, ...]) -> list[dict[str, Any]]:
        return [step.model_dump(mode="json", by_alias=True, exclude_none=True) for step in steps]

    @field_validator("privacy", mode="plain")
    @classmethod
    def _read_demands(cls, value: Any) -> tuple[Demand, ...]:
        """`{model: parameters}` or `{model: [parameters, parameters]}` becomes one flat tuple of demands."""
        if isinstance(value, tuple) and all(isinstance(demand, Demand) for demand in value):
            return value
        if not isinstance(value, dict):
            raise ValueError("is a mapping from a privacy model to its parameters, for example {k_anonymity: {k: 10}}")
        demands: list[Demand] = []
        for name, parameters in value.items():
            if name not in PRIVACY_MODELS:
                raise ValueError(f"{name!r} is no privacy model; known are {', '.join(sorted(PRIVACY_MODELS))}")
            for one in parameters if isinstance(parameters, list) else [parameters]:
                try:
                    demands.append(load_privacy_model(name).model_validate(one))
                except ValidationError as error:
                    raise ValueError("; ".join(_sentences(error, name))) from None
        return tuple(demands)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> ReleaseSpec:
        if self.target not in self.columns:
            raise ValueError(f"target: {self.target!r} is not among the columns; give it a role under columns")
        role = self.columns[self.target].role
        if role is Role.QUASI_IDENTIFIER:
            raise ValueError(
                f"target: {self.target!r} is also a quasi-identifier; a value that the grouping hides cannot be "
                "the one it is guided by: give it the role sensitive or insensitive, or name another target"
            )
        if role not in (Role.SENSITIVE, Role.INSENSITIVE):
            raise ValueError(f"target: {self.target!r} has the role {role}; a target must be sensitive or insensitive")
        self._can_be_guided()
        if not self.quasi_identifiers:
            raise ValueError("columns: no column has the role quasi_identifier, so there is nothing to group by")
        if sum(demand.name == "k_anonymity" for demand in self.privacy) != 1:
            raise ValueError("privacy: k_anonymity must be demanded, once, for example {k_anonymity: {k: 10}}")
        if len(set(self._populations())) > 1:
            raise ValueError("privacy: the demands name different population tables; name one and the same")
        for demand in self.privacy:
            column = getattr(demand, "column", None)
            if column is not None and column not in self.with_role(Role.SENSITIVE):
                raise ValueError(
                    f"privacy.{demand.name}.column: {column!r} is no sensitive column; "
                    f"those are {', '.join(self.with_role(Role.SENSITIVE)) or 'none'}"
                )
        if self.columns[self.target].made:
            raise ValueError("target: is made by a step; the target is a column of the source")
        if self.masks and self.audit.control == "held_out":
            raise ValueError("audit.control: held_out does not go with masking steps; leave it at twin")
        if any(column.made for column in self.columns.values()) and not self.steps:
            raise ValueError("columns: a column is said to be made, and there are no steps; list them under steps")
        asked = self.audit
        bounded = (asked.linkage, asked.singling_out, asked.membership_auc)
        if not asked.enabled and (asked.attribute_inference or any(one is not None for one in bounded)):
            raise ValueError("audit: sets bounds and is switched off; a bound without an attack holds nothing")
        if asked.membership_auc is not None and not asked.models:
            raise ValueError("audit.membership_auc: bounds attacks on models, which audit.models switches off")
        for column, limit in asked.attribute_inference.items():
            if column not in self.with_role(Role.SENSITIVE):
                raise ValueError(f"audit.attribute_inference: {column!r} is no sensitive column")
            if not 0 <= limit <= 1:
                raise ValueError(f"audit.attribute_inference.{column}: is a share between 0 and 1")
        if self.person is not None and self.person not in self.with_role(Role.IDENTIFIER):
            raise ValueError(f"person: {self.person!r} is no column of the role identifier")
        if self.across_releases is not None:
            self._can_be_followed()
        if self.aggregates:
            self._can_be_aggregated()
        if self.frontier is not None:
            one = self.model_copy(update={"frontier": None})
            for setting in self.frontier.settings():
                try:
                    one.replaced(setting)
                except InputError as error:
                    raise ValueError(f"frontier: {error}") from None
        return self

    def _can_be_guided(self) -> None:
        targets = self.guide.targets
        if targets and targets[0] != self.target:
            raise ValueError(f"guide.targets: start with the target of the spec, {self.target!r}, then name others")
        if len(set(targets)) < len(targets):
            raise ValueError("guide.targets: a column stands twice; name each once")
        for name in targets[1:]:
            if name not in self.with_role(Role.SENSITIVE, Role.INSENSITIVE) or self.columns[name].made:
                raise ValueError(
                    f"guide.targets: {name!r} is no sensitive or insensitive column of the source; a target is one, "
                    "since nothing may be guided by what the grouping hides"
                )

    def _can_be_followed(self) -> None:
        if self.person is None:
            raise ValueError("across_releases: nobody can be followed; name their identifier: person: <column>")
        if self.columns[self.person].steps:
            raise ValueError(f"person: {self.person!r} has steps; people are followed by the identifier as it is")
        if self._populations():
            raise ValueError("across_releases: does not go with a demand on a population")
        if self.audit.control == "held_out":
            raise ValueError("across_releases: does not go with audit.control: held_out; leave it at twin")
        if any(getattr(column.hierarchy, "strict", False) for column in self.columns.values()):
            raise ValueError("across_releases: does not go with a strict hierarchy, since cohorts stay together")

    def _can_be_aggregated(self) -> None:
        """What is asked of rows of people cannot be held against a table of groups, and is refused."""
        threshold, place = int(self.steps[-1].threshold), f"steps.{len(self.steps) - 1}"  # type: ignore[attr-defined]
        if threshold < self.k:
            raise ValueError(
                f"{place}.threshold: is {threshold}, and k = {self.k} asks for more people in every group; raise it "
                f"to {self.k}"
            )
        for demand in self.privacy:
            if demand.name != "k_anonymity":
                raise ValueError(f"privacy.{demand.name}: {NO_ROWS}; take it out")
        asked = self.audit
        bounds = (asked.linkage, asked.singling_out, asked.membership_auc, *asked.attribute_inference.values())
        if any(one is not None for one in bounds):
            raise ValueError(f"audit: sets bounds on attacks, and {NO_ROWS}; take them out")
        if self.across_releases is not None:
            raise ValueError(f"across_releases: {NO_ROWS}; take it out")
        if self.frontier is not None:
            raise ValueError(f"frontier: {NO_ROWS}; take it out")
        if self.suppression.limit:
            raise ValueError(f"suppression.limit: {NO_ROWS}; the threshold of {place} says which groups are left out")

    @classmethod
    def load(cls, path: str | Path) -> ReleaseSpec:
        """Read and validate a `release.yaml` (or a folder that holds one).

        Raises
        ------
        InputError
            With one sentence per problem, each naming the file and the field.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "release.yaml"
        try:
            text = path.read_text(encoding="utf-8")
            content = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 (a SafeLoader)
            undecided = undecided_lines(text)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file; name a release.yaml or the folder it lies in") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, or no such date
            raise InputError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
        if not isinstance(content, dict):
            raise InputError(f"{path}: must be a mapping with the keys dataset, source, target, columns and privacy")
        if undecided:
            listed = ", ".join(f"line {line} ({place})" for line, place in undecided)
            raise InputError(
                f"{path}: a person must decide {listed}; write what you decide in the place of `{UNDECIDED}`, "
                "the comment beside it says what there is to choose from"
            )
        try:
            spec = cls.model_validate(content)
        except ValidationError as error:
            raise InputError("; ".join(f"{path}: {sentence}" for sentence in _sentences(error))) from None
        object.__setattr__(spec, "_folder", path.parent.resolve())
        return spec

    def replaced(self, changes: Mapping[str, Any]) -> ReleaseSpec:
        """The spec with other values at some places, validated again.

        Parameters
        ----------
        changes
            Values by dotted path into the spec as it is written: `guide.spread`, `privacy.t_closeness.t`, or, where a
            model stands several times, `privacy.l_diversity.0.l`. What the spec does not write yet is added, a privacy
            model too.

        Raises
        ------
        InputError
            For a path that does not exist, or a value that the spec cannot have.
        """
        content = _with_lists(self.model_dump(by_alias=True, exclude_unset=True, exclude={"privacy"}))
        content["privacy"] = {}
        for name in dict.fromkeys(demand.name for demand in self.privacy):
            written = [
                _with_lists(demand.model_dump(by_alias=True, exclude_unset=True))
                for demand in self.privacy
                if demand.name == name
            ]
            content["privacy"][name] = written if len(written) > 1 else written[0]
        for path, value in changes.items():
            _put(content, path, value)
        try:
            spec = ReleaseSpec.model_validate(content)
        except ValidationError as error:
            raise InputError("; ".join(_sentences(error))) from None
        object.__setattr__(spec, "_folder", self._folder)
        return spec

    def with_role(self, *roles: Role) -> list[str]:
        """The columns of these roles, in the order of the spec."""
        return [name for name, column in self.columns.items() if column.role in roles]

    @property
    def masks(self) -> bool:
        """Whether anything is done to the columns before people are grouped."""
        return bool(self.steps) or any(column.steps for column in self.columns.values())

    @property
    def aggregates(self) -> bool:
        """Whether a table of groups is released, and no rows of people."""
        return bool(self.steps) and self.steps[-1].technique == AGGREGATE

    @property
    def stored(self) -> list[str]:
        """The columns that are read from the source: all but the excluded, unless a step needs one, and the made."""
        used = {name for step in self.steps for name in getattr(step, "used", ())}
        used |= {name for name, column in self.columns.items() if column.steps}
        return [
            name
            for name, column in self.columns.items()
            if not column.made and (column.role is not Role.EXCLUDE or name in used)
        ]

    @property
    def folder(self) -> Path:
        """The folder of the spec, which files are named relative to."""
        return self._folder

    @property
    def quasi_identifiers(self) -> list[str]:
        return self.with_role(Role.QUASI_IDENTIFIER)

    @property
    def released(self) -> list[str]:
        """The columns of the release, in the order of the spec; of a table of groups, in its own."""
        if self.aggregates:
            return list(self.steps[-1].sources)  # type: ignore[attr-defined]
        return self.with_role(Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.INSENSITIVE)

    @property
    def features(self) -> list[str]:
        """What a model that is trained on the release may look at: all that is released but the target."""
        return [name for name in self.released if name != self.target]

    @property
    def k(self) -> int:
        """The one k of this release."""
        return next(int(demand.k) for demand in self.privacy if demand.name == "k_anonymity")  # type: ignore[attr-defined]

    @property
    def fitted_k(self) -> int:
        """The smallest leaf of the tree: k, and a reserve where classes must last over several releases."""
        if self.across_releases is None:
            return self.k
        return math.ceil(max(self.k, self.across_releases.k) * (1 + self.across_releases.reserve))

    @property
    def population(self) -> str | None:
        """The population table that demands name, relative to the spec."""
        return next((str(path) for path in self._populations()), None)

    def _populations(self) -> list[str]:
        return [demand.population for demand in self.privacy if hasattr(demand, "population")]

    @property
    def source_path(self) -> Path:
        """The source, resolved against the folder of the spec."""
        return (self._folder / self.source.path).resolve()

    def policy(self) -> dict[str, Any]:
        """The spec as plain data, without what cannot change a release, such as schedule, engine and source path."""
        content = self.model_dump(
            mode="json",
            by_alias=True,
            exclude={
                "schedule": True,
                "retention": True,
                "engine": True,
                "frontier": True,
                "privacy": True,
                "source": {"path"},
            },
        )
        for column in content["columns"].values():
            column.pop("unit")  # only the report speaks of it
            for name in ("levels", "hierarchy"):
                if column[name] is None:
                    del column[name]
        for name, one in self.columns.items():
            if isinstance(one.hierarchy, HierarchyFile):
                content["columns"][name]["hierarchy"]["sha256"] = self._hash_of(name, one.hierarchy)
        if not self.guide.targets:
            del content["guide"]["targets"]
        for name in ("person", "across_releases"):
            if content[name] is None:
                del content[name]
        content["privacy"] = [{"model": demand.name, **demand.model_dump(mode="json")} for demand in self.privacy]
        return content

    def _hash_of(self, column: str, hierarchy: HierarchyFile) -> str:
        """SHA-256 of the file of a column's hierarchy: what it says is part of the policy."""
        path = self._folder / hierarchy.file
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"columns.{column}.hierarchy: {path}: cannot be read ({error.strerror})") from None

    @property
    def policy_hash(self) -> str:
        """SHA-256 of `policy()`, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.policy(), sort_keys=True).encode()).hexdigest()


def undecided_lines(text: str) -> list[tuple[int, str]]:
    """The lines of a spec on which a value is still `decide`: the number, from 1, and the dotted path."""
    found: list[tuple[int, str]] = []
    seen: set[int] = set()  # a node may be its own descendant, by an alias

    def look(node: yaml.Node, path: str) -> None:
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value == UNDECIDED:
            found.append((node.start_mark.line + 1, path))
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                look(value, f"{path}.{key.value}" if path else str(key.value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                look(value, f"{path}.{number}")

    if UNDECIDED in text and (root := yaml.compose(text, Loader=_PlainLoader)) is not None:
        look(root, "")
    return found


def _values(given: str, text: str) -> list[Any]:
    """The values of a text such as "0.2,0.4"."""
    try:
        values = yaml.load(f"[{text}]", Loader=_PlainLoader)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not values:
        raise InputError(f"{given}: has no values that can be read; write them with commas, as 0.2,0.4")
    return values


def _put(content: dict[str, Any], path: str, value: Any) -> None:
    """Set what stands at a dotted path; mappings on the way are made where they are absent."""
    place: Any = content
    *way, last = path.split(".")
    for number, part in enumerate([*way, last]):
        before = ".".join(way[:number])
        if not part:
            raise InputError(f"{path!r}: is no path into the spec; write one as privacy.k_anonymity.k")
        if isinstance(place, list):
            if not part.isdecimal() or int(part) >= len(place):
                numbers = ", ".join(f"{before}.{one}" for one in range(len(place)))
                raise InputError(f"{path}: {before} stands {len(place)} times; say which one: {numbers}")
        elif not isinstance(place, dict):
            raise InputError(f"{path}: does not exist, since {before} is a single value; use the path {before}")
        key: Any = int(part) if isinstance(place, list) else part
        if number == len(way):
            place[key] = value
        else:
            place = place[key] if isinstance(place, list) else place.setdefault(key, {})


def _with_lists(value: Any) -> Any:
    """Plain data with its tuples as lists, as YAML gives them."""
    if isinstance(value, dict):
        return {key: _with_lists(one) for key, one in value.items()}
    return [_with_lists(one) for one in value] if isinstance(value, list | tuple) else value


def _hashable(value: Any) -> Any:
    """A value of which equal ones can be found; lists become tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


class _PlainLoader(yaml.SafeLoader):
    """YAML without two surprises: a key stands once, and `on`, `off`, `yes` and `no` are texts (as in YAML 1.2)."""

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


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def _sentences(error: ValidationError, prefix: str = "") -> list[str]:
    """pydantic's findings as `field: what is wrong`, without the input and without links."""
    sentences = []
    for finding in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join([prefix] * bool(prefix) + [str(part) for part in finding["loc"]])
        if finding["type"] == "extra_forbidden":
            what = "is not a key of the spec; check its spelling or remove it"
        elif finding["type"] == "missing":
            what = "is missing"
        else:
            what = re.sub("^Value error, ", "", finding["msg"])
        sentences.append(f"{place}: {what}" if place else what)
    return sentences
