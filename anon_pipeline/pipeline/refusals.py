"""Reports of refusals, a page each, in the private zone: written if a step or a check refuses."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, write_file
from anon_pipeline.pipeline.checks.audit import AUDIT
from anon_pipeline.pipeline.checks.audit import CHECKS as ON_ATTACKS
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import log
from anon_pipeline.release import ledger
from anon_pipeline.release.publication import created
from anon_pipeline.report.refusal import Refusal, render
from anon_pipeline.spec import ReleaseSpec

#: The folder in the private zone, with one folder per dataset.
FOLDER = "refusals"


def keep(
    home: Home, spec: ReleaseSpec, run_id: str, where: str, reasons: Sequence[str] = (), answers: Sequence[Answer] = ()
) -> Path | None:
    """Write the report of a refusal, readable by its owner only; None if it cannot be written.

    Parameters
    ----------
    run_id : id of the Dagster run
    where : name of the step or of the battery of checks
    reasons, answers : the sentences of a step that refused, or all answers of the battery
    """
    file = home.private / FOLDER / spec.dataset / f"{run_id}-{where}.html"
    try:
        refusal = Refusal(
            spec.dataset,
            spec.description,
            created(),
            where,
            reasons,
            [asdict(answer) for answer in answers],
            spec.policy(),
            _standing(home, spec.dataset),
            _audit(home, spec) if where == ON_ATTACKS.name else {},
        )
        home.private_folder(FOLDER, spec.dataset)
        write_file(file, render(refusal))
    except (OSError, InputError):  # the refusal itself must still be reported
        return None
    log.info("%s: refused; what to change stands in %s", spec.dataset, file)
    return file


def reports_of(home: Home, dataset: str, run_id: str) -> list[Path]:
    """The reports of the refusals of a run."""
    return sorted((home.private / FOLDER / dataset).glob(f"{run_id}-*.html"))


def _standing(home: Home, dataset: str) -> str | None:
    with suppress(InputError, Refused, OSError):
        entry = ledger.current(home, dataset)
        return None if entry is None else entry.version
    return None


def _audit(home: Home, spec: ReleaseSpec) -> Mapping[str, Any]:
    with suppress(InputError, OSError, ValueError):
        content: dict[str, Any] = json.loads((Stages(home, spec).known(ON_ATTACKS.of).folder / AUDIT).read_text())
        return content
    return {}
