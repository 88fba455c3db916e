"""The keys that a spec and its steps name, looked up before any work, so that a missing key is reported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from anon_pipeline.keys import KeySource, Secrets
from anon_pipeline.spec import ReleaseSpec

if TYPE_CHECKING:
    from anon_pipeline.masking.base import Technique


def secrets_of(spec: ReleaseSpec) -> Secrets:
    """The sources of the keys of a spec; every key that the spec or a step names is looked up at once.

    Raises
    ------
    InputError
        For a key that is absent, open to others or too short.
    """
    secrets = Secrets(folder=spec.folder)
    if spec.draws is not None:
        secrets.key(KeySource.model_validate(spec.draws.model_dump()))
    for steps in (*(column.steps for column in spec.columns.values()), spec.steps):
        for step in cast("tuple[Technique, ...]", steps):
            if step.key_source is not None:
                secrets.key(step.key_source)
    return secrets
