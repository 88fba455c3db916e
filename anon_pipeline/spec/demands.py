"""Privacy demands by their name in a spec; `anon_pipeline.privacy` has the models that define their meaning."""

from __future__ import annotations

import importlib
from typing import ClassVar

from anon_pipeline.imports import large_imports
from anon_pipeline.spec.parts import Strict

#: Privacy models by their name in a spec. One file and one line here add a model (docs/own-models.md shows it).
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


class Demand(Strict):
    """A demand on every equivalence class; `anon_pipeline.privacy` has the models that define its meaning."""

    name: ClassVar[str]

    @property
    def sensitive_column(self) -> str | None:
        """The sensitive column that it protects; None for a demand on the quasi-identifiers alone."""
        return None

    @property
    def population_file(self) -> str | None:
        """The table of the population that it compares classes with, relative to the spec."""
        return None


def load_privacy_model(name: str) -> type[Demand]:
    """The class behind a name in `privacy:`, imported when a spec asks for it."""
    module, _, attribute = PRIVACY_MODELS[name].partition(":")
    with large_imports():
        model: type[Demand] = getattr(importlib.import_module(module), attribute)
    return model
