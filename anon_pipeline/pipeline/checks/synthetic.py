"""The checks on a synthetic table before its release: they read its file and its measurements, but no people."""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq

from anon_pipeline.differential_privacy import reading
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.synthesis import stored
from anon_pipeline.differential_privacy.synthesis.coded_table import axes_of
from anon_pipeline.differential_privacy.synthesis.estimation import total_of
from anon_pipeline.differential_privacy.synthesis.made_table import outside, settings_of
from anon_pipeline.differential_privacy.synthesis.stored import MEASUREMENTS
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import PublicSize, ReleaseSpec

#: The checks, with the description that Dagster shows before they are first asked.
SYNTHETIC_CHECKS = {
    "has_released_columns_only": "The candidate has the columns that the spec releases, and no other.",
    "has_public_values_only": "Every value lies in the public domain of its column.",
    "has_noisy_size": "There are as many rows as the noisy counts, or the spec, say; nobody counts the people for it.",
    "costs_its_share": "What was measured cost no more than the share that the spec states.",
    "is_paid_for": "The ledger of the budget is whole, and has the reservation and the answer that this was made of.",
}


def ask_synthetic(run: Run, dp_measurements: Stage, synthetic_table: Stage) -> list[Question]:
    """The questions to the stored table, counted from its file."""
    spec, asked = run.spec, reading.asked_of(run.spec)
    content = (dp_measurements.folder / MEASUREMENTS).read_bytes()
    measurements = stored.from_bytes(content)
    table = pq.read_table(synthetic_table.folder / DATA, partitioning=None)
    settings = settings_of(spec, axes_of(spec))
    expected = round(asked.size.public if isinstance(asked.size, PublicSize) else total_of(measurements.tables))
    foreign = outside(table, {name: asked.domains[name] for name in spec.released if name in table.column_names})
    totals = pd.DataFrame(
        {
            "foreign": [sum(foreign.values())],
            "off": [abs(table.num_rows - max(1, expected))],
            "over": [max(0, measurements.nano_rho - settings.nano_rho)],
            "unpaid": [int(not Budget(run.home, Allowance.of(asked)).has_answered(content))],
        }
    )

    def none(name: str, demand: str, column: str, remedy: str) -> Question:
        at_most = {"column": column, "max_value": 0}
        return Question(name, demand, "ExpectColumnMaxToBeBetween", at_most, totals[[column]], remedy=remedy)

    return [
        Question(
            "has_released_columns_only",
            f"the candidate has the {len(spec.released)} released columns, and no other",
            "ExpectColumnDistinctValuesToEqualSet",
            {"column": "name", "value_set": spec.released},
            pd.DataFrame({"name": table.column_names}),
            measured=len(table.column_names),
            remedy="run synthetic_table again",
        ),
        none("has_public_values_only", "no value lies outside its public domain", "foreign", "report a fault"),
        none("has_noisy_size", "the number of rows is the noisy or public one", "off", "run synthetic_table again"),
        none("costs_its_share", "no more rho was used than the spec's share", "over", "report a fault"),
        none("is_paid_for", "the budget's ledger has this very answer", "unpaid", "run dp_measurements again"),
    ]


CHECKS = CheckDef(
    "candidate_checks",
    "synthetic_table",
    ("dp_measurements", "synthetic_table"),
    lambda _spec: SYNTHETIC_CHECKS,
    ask_synthetic,
)


def checks_of(_spec: ReleaseSpec) -> dict[str, str]:
    """All of these checks, for every spec."""
    return SYNTHETIC_CHECKS
