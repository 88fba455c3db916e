"""The whole policy of one dataset, and the consistency of its parts."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, SerializeAsAny, ValidationError, field_validator, model_validator

from anon_pipeline.errors import InputError
from anon_pipeline.home import PRIVATE_FOLDERS
from anon_pipeline.spec.demands import PRIVACY_MODELS, Demand, load_privacy_model
from anon_pipeline.spec.destination import Destination, require_room
from anon_pipeline.spec.differential_privacy import STATISTICS, DifferentialPrivacy
from anon_pipeline.spec.groups import require_everybody, require_no_rows, require_unknown_means
from anon_pipeline.spec.parts import (
    AGGREGATE,
    AcrossReleases,
    Audit,
    Column,
    ColumnType,
    EngineSettings,
    Grouping,
    Guide,
    KeyPlace,
    MaskingSteps,
    Recode,
    Retention,
    Role,
    Stated,
    Strict,
    Suppression,
    Utility,
)
from anon_pipeline.spec.permission import check_destinations, check_files
from anon_pipeline.spec.policy import files_of_lists, hashes_of_lists, published_policy
from anon_pipeline.spec.sampling import require_fraction, require_strata, require_weight
from anon_pipeline.spec.sentences import sentences
from anon_pipeline.spec.sequential import require_following
from anon_pipeline.spec.source import Source
from anon_pipeline.spec.synthesis import PublishedModel, Synthesis, require_grouped, require_synthetic
from anon_pipeline.spec.tradeoff import TradeOff
from anon_pipeline.spec.written import UNDECIDED, PlainLoader, decoded, put, undecided_lines, with_lists

#: Columns that the engines add to those of a source.
RESERVED = re.compile(r"#(people|class|history|position|key\d*|coded:.*)", re.IGNORECASE | re.DOTALL)


def _beside(column: Column) -> tuple[str, ...]:
    """The columns of the class table for a quasi-identifier, besides its representative."""
    ordered = () if column.type is ColumnType.CATEGORICAL else ("low", "high", "missing")
    labelled = () if column.hierarchy is None else ("label", "level")
    return (*ordered, *(() if ordered and column.type is not None else ("values",)), *labelled)


class ReleaseSpec(Strict):
    """The policy of one dataset.

    Build it with `ReleaseSpec.load(path)`; a spec made in code is validated the same way.
    """

    dataset: str = Field(pattern=r"^[a-z][a-z0-9_]*$")  # its name: lower-case letters, digits and _
    description: str = ""  # what it is; published
    owner: str | None = None  # who is responsible for it; published, and shown in the UI
    approver: Stated | None = None  # who approved the release; published, like the next three
    purpose: Stated | None = None  # what it is released for
    recipients: tuple[Stated, ...] = ()  # to whom it is released
    license: Stated | None = None  # the terms of use
    source: Source  # the table of people
    release: Literal["grouped", "synthetic"] = "grouped"  # rows of people in groups, or rows drawn from noisy counts
    target: str = ""  # the column that will be predicted from the release; a synthetic one may have none
    missing_target: Literal["leave_out", "release"] | None = None  # people without a target: not released, or released
    columns: dict[str, Column]  # every column of the source, by name
    privacy: tuple[SerializeAsAny[Demand], ...] = ()  # demands on every class; k_anonymity once
    steps: MaskingSteps = ()  # masking of several columns together, after the steps of single columns
    draws: KeyPlace | None = None  # the place of the dataset's private key; if absent, made in the private zone
    suppression: Suppression = Suppression()  # whether people may be left out
    guide: Guide = Guide()  # the model that guides the grouping
    grouping: Grouping = Grouping()  # how people are counted, and how far classes are refined
    recode: Recode = Recode()  # the recoded values of a class, instead of its members' values
    person: str | None = None  # the identifier by which people are followed over releases
    across_releases: AcrossReleases | None = None  # demands on several releases together
    across_releases_ended: str | None = Field(default=None, min_length=1, max_length=500)  # why the demand has ended
    across_releases_lowered: str | None = Field(default=None, min_length=1, max_length=500)  # why less is demanded
    across_releases_unlike: str | None = Field(default=None, min_length=1, max_length=500)  # why nobody stays alike
    linked_tables_accepted: str | None = Field(default=None, min_length=1, max_length=500)  # why others may tell more
    utility: Utility = Utility()  # how accuracy before and after is measured
    audit: Audit = Audit()  # how the release is attacked before publication
    sampling_fraction: float | None = Field(default=None, gt=0, le=1)  # share of the population after `sample` steps
    sampling_weight: str | None = None  # for a survey: the column with the number of people that a row represents
    differential_privacy: DifferentialPrivacy | None = None  # unit, budget and public domains of noisy answers
    synthesis: Synthesis | None = None  # how a synthetic release is measured and drawn
    model: PublishedModel | None = None  # a model that a synthetic release publishes
    frontier: TradeOff | None = None  # the settings that `anon-pipeline sweep` varies
    publish: tuple[Destination, ...] = ()  # further places for the release (docs/destinations.md)
    schedule: str | None = None  # when the UI runs it, as cron in UTC
    retention: Retention | None = None  # how long the private zone keeps data of the dataset
    engine: EngineSettings = EngineSettings()  # the resources that the engine may use
    seed: int = Field(default=0, ge=0, lt=2**32)  # of the guide and the tree; measurements draw with the key

    _folder: Path = Path(".")

    @field_validator("dataset")
    @classmethod
    def _has_a_folder_of_its_own(cls, dataset: str) -> str:
        if dataset in PRIVATE_FOLDERS:
            raise ValueError(f"{dataset!r} is the name of a folder of the private zone; choose another")
        if dataset.endswith(STATISTICS):
            raise ValueError(
                f"{dataset!r} is what the published statistics of {dataset.removesuffix(STATISTICS)!r} are called, and "
                f"the two would share a folder; choose a name that does not end in {STATISTICS}"
            )
        return dataset

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
            for stated in parameters if isinstance(parameters, list) else [parameters]:
                try:
                    demands.append(load_privacy_model(name).model_validate(stated))
                except ValidationError as error:
                    raise ValueError("; ".join(sentences(error, name))) from None
        return tuple(demands)

    @field_validator("columns")
    @classmethod
    def _can_be_told_apart(cls, columns: dict[str, Column]) -> dict[str, Column]:
        """A column may have any name, but SQL does not distinguish capitals, and a few names are reserved."""
        known: dict[str, str] = {}
        for name in columns:
            if not name.strip():
                raise ValueError("a column without a name stands in it; give it one in the source and here")
            if RESERVED.fullmatch(name):
                raise ValueError(f"{name}: is a name that is used for counting; rename the column in the source")
            other = known.setdefault(name.casefold(), name)
            if other != name:
                raise ValueError(f"{other} and {name} differ by capitals only; call one otherwise (source.rename)")
        grouped = {name: column for name, column in columns.items() if column.role is Role.QUASI_IDENTIFIER}
        taken = {"class_size", *(f"{name}_{what}" for name, column in grouped.items() for what in _beside(column))}
        for name in grouped:
            if name in taken:
                raise ValueError(
                    f"{name}: is a name that the table of classes gives to another column; use source.rename"
                )
        return columns

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> ReleaseSpec:
        require_room(self.dataset, self.publish)
        if self.is_synthetic:
            stated, section = self.model_fields_set, self.differential_privacy
            self._can_be_asked(
                require_synthetic(stated, section, self.columns, self.released, self.target, self.targets)
            )
            return self
        require_grouped(self.synthesis, self.model, self.target)
        self._has_a_target()
        self._can_be_guided()
        self._states_demands()
        self._says_what_is_made()
        self._bounds_what_is_attacked()
        require_strata(self.steps, self.columns)
        require_fraction(self.sampling_fraction, self.steps)
        require_unknown_means(self.steps, self.columns)
        if self.sampling_weight is not None:
            used = {name for step in self.steps for name in step.used}
            require_weight(self.sampling_weight, self.columns, used, self.sampling_fraction, self.aggregates)
        if self.person is not None and self.person not in self.with_role(Role.IDENTIFIER):
            raise ValueError(f"person: {self.person!r} is no column of the role identifier")
        if self.across_releases is not None:
            require_following(self, self.across_releases)
        if self.aggregates:
            require_no_rows(self)
            require_everybody(self)
        if self.differential_privacy is not None:
            self._can_be_asked(self.differential_privacy)
        if self.frontier is not None:
            spec = self.model_copy(update={"frontier": None})
            for setting in self.frontier.settings():
                try:
                    spec.replaced(setting)
                except InputError as error:
                    raise ValueError(f"frontier: {error}") from None
        return self

    def _has_a_target(self) -> None:
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
        if self.missing_target == "leave_out" and any(step.hides_missing for step in self.columns[self.target].steps):
            raise ValueError(f"missing_target: a step of {self.target} hides who has no value; write release")

    def _states_demands(self) -> None:
        if not self.quasi_identifiers:
            raise ValueError("columns: no column has the role quasi_identifier, so there is nothing to group by")
        if sum(demand.name == "k_anonymity" for demand in self.privacy) != 1:
            raise ValueError("privacy: k_anonymity must be demanded, once, for example {k_anonymity: {k: 10}}")
        if len(set(self._populations())) > 1:
            raise ValueError("privacy: the demands name different population tables; name one and the same")
        for demand in self.privacy:
            column = demand.sensitive_column
            if column is not None and column not in self.with_role(Role.SENSITIVE):
                raise ValueError(
                    f"privacy.{demand.name}.column: {column!r} is no sensitive column; "
                    f"those are {', '.join(self.with_role(Role.SENSITIVE)) or 'none'}"
                )

    def _says_what_is_made(self) -> None:
        if self.columns[self.target].made:
            raise ValueError("target: is made by a step; the target is a column of the source")
        if self.masks and self.audit.control == "held_out":
            raise ValueError("audit.control: held_out does not go with masking steps; leave it at twin")
        if any(column.made for column in self.columns.values()) and not self.steps:
            raise ValueError("columns: a column is said to be made, and there are no steps; list them under steps")
        if self.across_releases is not None and self.across_releases_ended is not None:
            raise ValueError("across_releases_ended: across_releases is demanded all the same; take one of them out")
        for reason in ("across_releases_lowered", "across_releases_unlike"):
            if self.across_releases is None and getattr(self, reason) is not None:
                raise ValueError(f"{reason}: nothing is demanded across releases; write across_releases")

    def _bounds_what_is_attacked(self) -> None:
        asked = self.audit
        if not asked.enabled and asked.bounds:
            raise ValueError("audit: sets bounds and is switched off; a bound without an attack holds nothing")
        if asked.membership_auc is not None and not asked.models:
            raise ValueError("audit.membership_auc: bounds attacks on models, which audit.models switches off")
        for column, limit in asked.attribute_inference.items():
            if column not in self.with_role(Role.SENSITIVE):
                raise ValueError(f"audit.attribute_inference: {column!r} is no sensitive column")
            if not 0 <= limit <= 1:
                raise ValueError(f"audit.attribute_inference.{column}: is a share between 0 and 1")

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

    def _can_be_asked(self, asked: DifferentialPrivacy) -> None:
        place = "differential_privacy"
        if asked.person is not None and asked.person not in self.with_role(Role.IDENTIFIER):
            raise ValueError(f"{place}.unit.person: {asked.person!r} is no column of the role identifier")
        for name in asked.domains:
            if name not in self.columns or self.columns[name].made:
                raise ValueError(f"{place}.domains: {name!r} is no column of the source")
            if self.columns[name].role is Role.IDENTIFIER:
                raise ValueError(f"{place}.domains: {name!r} is an identifier, which no answer shows; take it out")

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
            text = decoded(path)
            content = yaml.load(text, Loader=PlainLoader)  # noqa: S506 (a SafeLoader)
            undecided = undecided_lines(text)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file; name a release.yaml or the folder it lies in") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except InputError:  # it is a ValueError, too
            raise
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an impossible date
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
            raise InputError("; ".join(f"{path}: {sentence}" for sentence in sentences(error))) from None
        object.__setattr__(spec, "_folder", path.parent.resolve())
        try:
            spec._names_what_it_may()
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return spec

    def _names_what_it_may(self) -> None:
        """Refuse forbidden files, since the spec may come from somebody else, before anything is read."""
        steps = [*self.steps, *(step for column in self.columns.values() for step in column.steps)]
        keys = [self.draws.file] if self.draws is not None and self.draws.file is not None else []
        keys += [step.key_file for step in steps if step.key_file is not None]
        of_server = self.source.connection.file if self.source.connection is not None else None
        keys += [of_server] if of_server is not None else []
        tables = [] if self.source.location is None else [self.source.location]
        keys += [place.connection.file for place in self.publish if place.connection and place.connection.file]
        tables += self._populations()
        if self.frontier is not None:
            alone = self.model_copy(update={"frontier": None})
            for setting in self.frontier.settings():
                tables += alone.replaced(setting)._populations()
        check_files(self.folder, tables, list(files_of_lists(self).values()), keys)
        check_destinations(self.folder, self.publish)

    def replaced(self, changes: Mapping[str, Any]) -> ReleaseSpec:
        """The spec with other values at some paths, validated again.

        Parameters
        ----------
        changes
            Values by dotted path into the written spec: `guide.spread`, `privacy.t_closeness.t`, or, if a model occurs
            several times, `privacy.l_diversity.0.l`. Keys that the spec does not have are added, also a privacy model.

        Raises
        ------
        InputError
            For a path that does not exist, or a value that the spec cannot have.
        """
        content = with_lists(self.model_dump(by_alias=True, exclude_unset=True, exclude={"privacy"}))
        if not self.is_synthetic:
            content["privacy"] = {}
        for name in dict.fromkeys(demand.name for demand in self.privacy):
            written = [
                with_lists(demand.model_dump(by_alias=True, exclude_unset=True))
                for demand in self.privacy
                if demand.name == name
            ]
            content["privacy"][name] = written if len(written) > 1 else written[0]
        for path, value in changes.items():
            put(content, path, value)
        try:
            spec = ReleaseSpec.model_validate(content)
        except ValidationError as error:
            raise InputError("; ".join(sentences(error))) from None
        object.__setattr__(spec, "_folder", self._folder)
        return spec

    def with_role(self, *roles: Role) -> list[str]:
        """The columns with these roles, in the order of the spec."""
        return [name for name, column in self.columns.items() if column.role in roles]

    @property
    def masks(self) -> bool:
        """Whether any column is masked before people are grouped."""
        return bool(self.steps) or any(column.steps for column in self.columns.values())

    @property
    def is_synthetic(self) -> bool:
        """Whether the rows of the release are drawn from noisy counts, so that no row belongs to a person."""
        return self.release == "synthetic"

    @property
    def targets(self) -> list[str]:
        """The columns that a synthetic table keeps predictable."""
        stated = self.synthesis.targets if self.synthesis is not None else None
        return list(stated) if stated is not None else [self.target] if self.target else []

    @property
    def aggregates(self) -> bool:
        """Whether a table of groups is released, and no rows of people."""
        return bool(self.steps) and self.steps[-1].technique == AGGREGATE

    @property
    def stored(self) -> list[str]:
        """The columns that are read from the source: all except the made ones and unneeded excluded ones."""
        used = {name for step in self.steps for name in step.used}
        used |= {name for name, column in self.columns.items() if column.steps}
        used |= {self.sampling_weight} if self.sampling_weight is not None else set()
        return [
            name
            for name, column in self.columns.items()
            if not column.made and (column.role is not Role.EXCLUDE or name in used)
        ]

    @property
    def folder(self) -> Path:
        """The folder of the spec, to which names of files are relative."""
        return self._folder

    @property
    def quasi_identifiers(self) -> list[str]:
        return self.with_role(Role.QUASI_IDENTIFIER)

    @property
    def released(self) -> list[str]:
        """The columns of the release in the order of the spec; for a table of groups, in the order of the table."""
        if self.aggregates:
            return list(self.steps[-1].sources)
        return self.with_role(Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.INSENSITIVE)

    @property
    def features(self) -> list[str]:
        """The input columns of a model that is trained on the release: all released ones except the target."""
        return [name for name in self.released if name != self.target]

    @property
    def k(self) -> int:
        """The one k of this release."""
        return next(int(demand.k) for demand in self.privacy if demand.name == "k_anonymity")  # type: ignore[attr-defined]

    @property
    def fitted_k(self) -> int:
        """The smallest leaf of the tree: k, with a reserve if classes must last over several releases."""
        if self.across_releases is None:
            return self.k
        return math.ceil(max(self.k, self.across_releases.k) * (1 + self.across_releases.reserve))

    @property
    def population(self) -> str | None:
        """The population table that demands name, relative to the spec."""
        return next(iter(self._populations()), None)

    def _populations(self) -> list[str]:
        return [demand.population_file for demand in self.privacy if demand.population_file is not None]

    @property
    def answers(self) -> list[str]:
        """The sensitive columns in which a missing value counts as a separate value."""
        return [name for name, column in self.columns.items() if column.missing_is_a_value]

    @property
    def categories(self) -> list[str]:
        """The columns that are declared to hold categories; where these are numbers, they are codes."""
        return [name for name, column in self.columns.items() if column.type is ColumnType.CATEGORICAL]

    @property
    def source_path(self) -> Path:
        """The path of the source, relative names resolved; if it is no file of this machine, the folder of the spec."""
        if not self.source.is_file:
            return self._folder.resolve()
        return (self._folder / self.source.path).resolve()

    def policy(self) -> dict[str, Any]:
        """The spec as plain data in its published form (see `anon_pipeline.spec.policy`)."""
        return published_policy(self)

    @property
    def policy_hash(self) -> str:
        """SHA-256 of `policy()`, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.policy(), sort_keys=True).encode()).hexdigest()

    @property
    def input_hash(self) -> str:
        """SHA-256 of all that a stored result depends on: policy, lists, reading of the source. It stays private."""
        read = self.source.model_dump(mode="json", exclude={"path", *self.source.unstated})
        lists = hashes_of_lists(self)
        content = [self.policy(), read, lists] if lists else [self.policy(), read]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
