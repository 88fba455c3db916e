"""The spec of a release: the policy of one dataset, as in `release.yaml`. Nothing here reads data.

Every other layer reads these objects, so that no k, role or seed is written twice.
"""

from anon_pipeline.spec.demands import PRIVACY_MODELS, Demand, load_privacy_model
from anon_pipeline.spec.destination import Destination
from anon_pipeline.spec.differential_privacy import (
    STATISTICS,
    DifferentialPrivacy,
    PersonUnit,
    PublicDomain,
    PublicSize,
    exactly,
    in_full,
)
from anon_pipeline.spec.parts import (
    NO_ROWS,
    AcrossReleases,
    BuiltInModel,
    Column,
    ColumnType,
    Guide,
    HierarchyFile,
    ImportedModel,
    LoggedModel,
    MaskingStep,
    PrefixHierarchy,
    Role,
    Strict,
)
from anon_pipeline.spec.release import ReleaseSpec
from anon_pipeline.spec.sentences import did_you_mean
from anon_pipeline.spec.source import Source
from anon_pipeline.spec.synthesis import PublishedModel, Synthesis
from anon_pipeline.spec.tradeoff import K_PATH, TradeOff
from anon_pipeline.spec.written import UNDECIDED, undecided_lines

__all__ = [
    "K_PATH",
    "NO_ROWS",
    "PRIVACY_MODELS",
    "STATISTICS",
    "UNDECIDED",
    "AcrossReleases",
    "BuiltInModel",
    "Column",
    "ColumnType",
    "Demand",
    "Destination",
    "DifferentialPrivacy",
    "Guide",
    "HierarchyFile",
    "ImportedModel",
    "LoggedModel",
    "MaskingStep",
    "PersonUnit",
    "PrefixHierarchy",
    "PublicDomain",
    "PublicSize",
    "PublishedModel",
    "ReleaseSpec",
    "Role",
    "Source",
    "Strict",
    "Synthesis",
    "TradeOff",
    "did_you_mean",
    "exactly",
    "in_full",
    "load_privacy_model",
    "undecided_lines",
]
