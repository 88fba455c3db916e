"""The parts of a spec, each a small immutable model; the layers that read them define their meaning."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    field_validator,
    model_validator,
)

from anon_pipeline.imports import large_imports
from anon_pipeline.spec.sentences import sentences


class Strict(BaseModel):
    """A part of the spec: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


#: A text of the owner for readers of a release; it is published unchanged, so it must not hold data on a person.
Stated = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Role(StrEnum):
    """The role of a column for a person, and so the treatment of its values."""

    IDENTIFIER = "identifier"  # names a person; never released
    QUASI_IDENTIFIER = "quasi_identifier"  # singles a person out together with others; generalized
    SENSITIVE = "sensitive"  # released unchanged, protected against inference
    INSENSITIVE = "insensitive"  # released unchanged
    EXCLUDE = "exclude"  # left out


class ColumnType(StrEnum):
    """How values compare: by size, by equality, or along the calendar."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    DATE = "date"


#: Reads a masking step; imported when a spec has one.
READ_STEP = "anon_pipeline.masking.catalog:read_step"


class MaskingStep(Strict):
    """One masking technique with its parameters; `anon_pipeline.masking` defines their meaning.

    The properties that the spec itself needs are declared here, and techniques override those that apply to them.
    """

    technique: str

    @property
    def used(self) -> tuple[str, ...]:
        """All columns that it reads, if it is under `steps`."""
        return ()

    @property
    def made_column(self) -> str | None:
        """The column that it makes, if any."""
        return None

    @property
    def strata(self) -> tuple[str, ...]:
        """The columns whose values decide how many people it keeps, if it keeps a part of the people."""
        return ()

    @property
    def kept_share(self) -> float:
        """The part of the people that it keeps."""
        return 1.0

    @property
    def averaged(self) -> tuple[str, ...]:
        """The columns whose means it shows by groups of people, unless it states what readers know of these people."""
        return ()

    @property
    def grouped_by(self) -> tuple[str, ...]:
        """The columns whose values make its groups, if it turns rows of people into groups."""
        return ()

    @property
    def stated_known(self) -> tuple[str, ...] | None:
        """The columns among these that it says readers know of everybody; None if it does not say."""
        return None

    @property
    def smallest_group(self) -> int | None:
        """The fewest people of a group, if it turns rows of people into groups."""
        return None

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The columns of the table of groups that it makes, in their order, and those that each is made from."""
        return {}

    @property
    def hides_missing(self) -> bool:
        """Whether it promises that nobody can tell who had no value."""
        return False

    @property
    def of_own_values(self) -> bool:
        """Whether what it shows of a person follows from that person's values, draws and a key, and from nobody else's.

        The type of a column does not count, nor that a step refuses a value.
        """
        return False

    @property
    def list_file(self) -> str | None:
        """The file with a list that it reads, relative to the spec."""
        return None

    @property
    def key_file(self) -> str | None:
        """The file with the key that it uses, if the key is in a file."""
        return None


def _read_steps(value: Any) -> tuple[MaskingStep, ...]:
    """The steps of a list in a spec.

    Raises
    ------
    ValueError
        With one sentence per entry that is not a step.
    """
    if not isinstance(value, list | tuple):
        raise ValueError("is a list of steps, for example [{technique: round, to: 10}]")
    module, _, attribute = READ_STEP.partition(":")
    with large_imports():
        read = getattr(importlib.import_module(module), attribute) if value else None
    steps: list[MaskingStep] = []
    problems: list[str] = []
    for number, step in enumerate(value):
        try:
            steps.append(read(step))  # type: ignore[misc]
        except ValidationError as error:
            problems += sentences(error, f"{number}")
            problems.append(f"`anon-pipeline steps {step['technique']}` lists what it takes")
        except ValueError as error:
            problems.append(f"{number}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return tuple(steps)


def _write_steps(steps: tuple[MaskingStep, ...]) -> list[dict[str, Any]]:
    return [step.model_dump(mode="json", by_alias=True, exclude_none=True) for step in steps]


#: Masking steps in order, read from and written to the form in a spec.
MaskingSteps = Annotated[tuple[MaskingStep, ...], PlainValidator(_read_steps), PlainSerializer(_write_steps)]


#: The step that makes a table of groups without people, and why demands on rows are then refused.
AGGREGATE, NO_ROWS = "aggregate", "aggregate leaves a table of groups and no rows of people to judge"


class KeyPlace(Strict):
    """The place of a key: an environment variable, or a file of mode 0600 named relative to the spec."""

    environment: str | None = None
    file: str | None = None


class HierarchyFile(Strict):
    """A hierarchy in a CSV file, relative to the spec, as ARX writes it: `value;level 1;level 2;...` on each line."""

    file: str = Field(min_length=1)
    delimiter: str = Field(default=";", min_length=1, max_length=1)
    strict: bool = False  # the tree may split the column only between nodes directly below the same node


class PrefixHierarchy(Strict):
    """A hierarchy of codes that are coarser the shorter they are, such as ZIP codes: 12345, 123**, 12***."""

    prefix: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1)  # lengths, the longest first
    strict: bool = False

    @field_validator("prefix")
    @classmethod
    def _become_shorter(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if any(longer <= shorter for longer, shorter in itertools.pairwise(lengths)):
            raise ValueError("each length is smaller than the one before, as in [5, 3, 2]")
        return lengths


#: The allowed formats of dates: directives for a date or a time, and any text between them.
DATE_FORMAT = re.compile(r"(%-?[YymdjbBHIMSfp]|[^%])+")


def _texts(values: Sequence[Any]) -> list[Any]:
    """A list as texts, also where YAML read numbers or truth values, which the engines write as true and false."""
    texts = [str(value) if isinstance(value, int | float) else value for value in values]
    return [text.lower() if isinstance(value, bool) else text for text, value in zip(texts, values, strict=True)]


class Column(Strict):
    """One column of the source, or one that a masking step makes."""

    role: Role  # the role of the column for a person
    type: ColumnType | None = None  # taken from the source where absent
    grid: float | None = Field(default=None, gt=0, le=1e15)  # the step of shown numbers; from the data where absent
    levels: tuple[str, ...] | None = Field(default=None, min_length=2)  # categories that have an order, lowest first
    hierarchy: Literal["calendar"] | HierarchyFile | PrefixHierarchy | None = None  # whose words classes show
    why: str | None = None  # the reason for the role, for the report
    unit: str | None = Field(default=None, min_length=1)  # of its numbers, for the report: years; converts nothing
    format: tuple[str, ...] | None = None  # how its dates are written: "%d.%m.%Y", or several of them
    missing: tuple[str, ...] = ()  # for this column only: texts for "not known", besides `source.missing`
    missing_is_a_value: bool = False  # whether a missing value is a separate value; for sensitive columns only
    steps: MaskingSteps = ()  # masking, in order, before people are grouped
    made: bool = False  # whether a step makes it, so that the source has no such column

    @property
    def strict(self) -> bool:
        """Whether the column has a hierarchy that the tree must follow."""
        return isinstance(self.hierarchy, HierarchyFile | PrefixHierarchy) and self.hierarchy.strict

    @field_validator("levels", mode="before")
    @classmethod
    def _read_levels(cls, value: Any) -> Any:
        """Convert levels to texts, also those that YAML reads as numbers: [1, 2, 3]."""
        if not isinstance(value, list | tuple):
            return value
        levels = _texts(value)
        if len(set(map(str, levels))) < len(levels):
            raise ValueError("a level stands twice; name each once, the lowest first")
        return levels

    @field_validator("missing", mode="before")
    @classmethod
    def _read_missing(cls, value: Any) -> Any:
        """Convert markers to texts, also those that YAML reads as numbers: [999]."""
        return _texts(value) if isinstance(value, list | tuple) else value

    @field_validator("format", mode="before")
    @classmethod
    def _read_format(cls, value: Any) -> Any:
        formats = [value] if isinstance(value, str) else value
        if isinstance(formats, list | tuple) and not all(
            isinstance(date_format, str) and "%" in date_format and DATE_FORMAT.fullmatch(date_format)
            for date_format in formats
        ):
            raise ValueError('is how dates are written, for example "%d.%m.%Y" (day, month, year) or "%m/%d/%Y %H:%M"')
        return formats

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
            raise ValueError("; ".join(sentences(error))) from None

    @model_validator(mode="after")
    def _has_dates(self) -> Column:
        if self.format is not None and self.type is not ColumnType.DATE:
            raise ValueError("format: is of columns of type: date; state the type, or take it out")
        return self

    @model_validator(mode="after")
    def _has_answers_of_its_own(self) -> Column:
        if self.missing_is_a_value and self.role is not Role.SENSITIVE:
            raise ValueError(f"missing_is_a_value: is of sensitive columns, and the role is {self.role}; take it out")
        return self

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


#: URIs that MLflow resolves in its connected store; no part is `..`, encoded, or a host.
LOGGED = re.compile(r"models:/\w[\w .-]*(/\w+|@\w[\w.-]*)?|runs:/[0-9a-f]{32}(/\w[\w .-]*)+")


class ImportedModel(Strict):
    """A scikit-learn-compatible estimator made by a function of the user's: `import: package.module:factory`."""

    import_: str = Field(alias="import", pattern=r"^[\w.]+:\w+$")


class LoggedModel(Strict):
    """A scikit-learn model logged in the home's MLflow store: `models:/name/version` or `runs:/id/path`."""

    mlflow: str

    @field_validator("mlflow")
    @classmethod
    def _lies_in_the_home(cls, uri: str) -> str:
        """Refuse folders and other stores, since loading a model runs its pickled code."""
        if not LOGGED.fullmatch(uri):
            raise ValueError(
                "is no model of the home's MLflow store; write models:/name/version, models:/name@alias or "
                "runs:/id/path, since loading a model from anywhere else would run what lies there"
            )
        return uri


BuiltInModel = Literal["gradient_boosting", "random_forest", "linear", "decision_tree"]


class Guide(Strict):
    """The model M whose predictions guide the grouping, and their weight in the tree."""

    model: BuiltInModel | ImportedModel | LoggedModel = "gradient_boosting"
    on: Literal["label", "probability"] = "probability"
    predictions: Literal["out_of_fold", "in_sample"] = "out_of_fold"
    folds: int = Field(default=5, ge=2, le=50)
    spread: float = Field(default=1.0, ge=0, le=1e6)  # weight of the quasi-identifiers' own spread beside the guidance
    sample: int = Field(default=500_000, ge=100)  # the most people on whom M is trained, drawn by their content
    orders: Literal["guidance", "both", "each"] = "both"  # of categories: by guidance, by frequency too, by each output
    targets: tuple[str, ...] = ()  # where one release serves several analyses: the spec's target, then the others


class Recode(Strict):
    """The recoded values of a class, instead of its members' values."""

    numeric: Literal["median"] = "median"
    categorical: Literal["mode"] = "mode"
    form: Literal["value", "range"] = "value"


class Utility(Strict):
    """How accuracy before and after is measured."""

    models: tuple[BuiltInModel, ...] = ("linear",)  # beside the guide's own
    folds: int = Field(default=5, ge=2, le=50)
    sample: int = Field(default=100_000, ge=100)  # the most people on whom it is measured, drawn by their content


#: The bounds in `audit` that are one number each; those on attribute inference are one per column.
SINGLE_BOUNDS = ("linkage", "singling_out", "membership_auc", "replayed")


class Audit(Strict):
    """How a release is attacked before publication, and the most that an attack may achieve.

    A bound is compared with the upper end of the attack's 95 % interval, since too few people for a clear result do not
    mean "safe". With `bounds_on: estimate`, it is compared with the estimate; an attack no better than guessing then
    counts as 0.
    """

    enabled: bool = True
    control: Literal["twin", "held_out"] = "twin"  # people are kept out of a twin of the release, or of the release
    share: float = Field(default=0.1, gt=0, le=0.5)  # of the people: 500 to 5,000 of them, at most a third
    sample: int = Field(default=60_000, ge=1_000)  # the most people of whom the twin is made
    targets: int = Field(default=5_000, ge=100)  # people in the release, and control people, attacked at most
    models: bool = True  # whether models are attacked, too
    people: int = Field(default=4_000, ge=200)  # in the membership game on models
    shadows: int = Field(default=16, ge=4, multiple_of=2)
    bounds_on: Literal["upper_end", "estimate"] = "upper_end"
    linkage: float | None = Field(default=None, ge=0, le=1)  # bounds: leak of the strongest attack of this kind
    singling_out: float | None = Field(default=None, ge=0, le=1)
    attribute_inference: dict[str, float] = {}  # leak by sensitive column
    membership_auc: float | None = Field(default=None, ge=0.5, le=1)  # bound on models trained on the release
    replayed: float | None = Field(default=None, ge=0, le=1)  # share whose value a repeated grouping reveals

    @property
    def bounds(self) -> list[float]:
        """All bounds that are stated."""
        single = (getattr(self, name) for name in SINGLE_BOUNDS)
        return [*(bound for bound in single if bound is not None), *self.attribute_inference.values()]


class Suppression(Strict):
    """Leaves people out if grouping them would cost everybody else more."""

    limit: float = Field(default=0.0, ge=0, lt=1)  # the most that are left out, as a share of the people


#: The default of the largest loss, as a share of the quasi-identifiers' variance; a release that loses more is useless.
MOST_LOST = 0.95


class Grouping(Strict):
    """How people are counted before they are grouped, and how far classes are refined."""

    cells: int = Field(default=5_000_000, ge=100)  # with more distinct tuples, ordered columns are coarsened
    refine: int = Field(default=2_000_000, ge=0)  # up to this number, classes are refined after the tree
    most_lost: float = Field(default=MOST_LOST, gt=0, le=1)  # of the information; a release that loses more is refused


class AcrossReleases(Strict):
    """Demands on a release together with the former releases of its dataset."""

    k: int = Field(ge=2, le=10**9)  # people who share a person's class, or absence, in every release of the window
    window: int = Field(default=12, ge=2, le=1000)  # number of releases, including the new one
    reserve: float = Field(default=0.3, ge=0, le=10)  # classes start larger than k by this share, and may lose people
    refit: float = Field(default=0.1, ge=0)  # a new tree replaces the kept one if it loses less by this share
    departures: Literal["at_once", "in_company"] = "at_once"  # in company: k - 1 others of their history go with them


#: More threads than any machine has cores; each takes memory.
MOST_THREADS = 1024


class EngineSettings(Strict):
    """The resources of the machine that the engine may use; they do not change a release."""

    memory_limit: str | None = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+)?\s*([KMGT]i?B|%)$")
    threads: int | None = Field(default=None, ge=1, le=MOST_THREADS)


class Retention(Strict):
    """How long the private zone keeps data of a dataset."""

    private_days: int = Field(ge=1, le=36_500)  # days after the step that made the data
