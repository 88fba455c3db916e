"""The checks on a table of groups, which is released instead of rows of people."""

from __future__ import annotations

import pandas as pd

from anon_pipeline.engine.base import Engine
from anon_pipeline.masking.aggregation import aggregate_for_readers
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.linked_releases.groups import told_together
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.privacy.group_table import compare_groups, group_columns, read_groups, threshold_of, units_of
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ReleaseSpec

#: The checks, with the description that Dagster shows before they are first asked.
GROUP_CHECKS = {
    "k_anonymity": "Every group counts at least as many people as k and the threshold of the step demand.",
    "has_released_columns_only": "The candidate has the columns of the table of groups, and no other.",
    "has_every_group_once": "No group stands in two rows, and every count is a whole number.",
    "counts_the_people": "The count of every group is the number of its masked people.",
    "accounts_for_everybody": "People in groups that are shown, and in those that are left out, are all people.",
    "hides_groups_in_company": "What is left after subtracting is several groups with enough people together.",
    "shows_true_means": "Every mean is that of the group's masked people, but for rounding.",
    "shows_rounded_means": "Every mean is rounded, so that its digits do not tell how many have a value.",
    "shows_means_of_enough": "Every mean is one of as many known values as the threshold demands.",
    "shows_no_dominated_mean": "No few people make up most of a mean, and nobody in it can work out the largest value.",
}
#: The checks among them that have nothing to check without means.
OF_MEANS = ("shows_true_means", "shows_rounded_means", "shows_means_of_enough", "shows_no_dominated_mean")
#: The check beside other releases.
LINKED = "hides_groups_beside_others"
LINKED_CHECKS = {LINKED: "Beside other released tables of groups of the same people no hidden count or mean is known."}
#: The remedy where the code itself is at fault.
FAULT = "nothing was published; run aggregated_table again, and if it fails again report a fault of this package"


def ask_groups(run: Run, raw_data: Stage, masked_data: Stage, aggregated_table: Stage) -> list[Question]:
    """The questions to a stored table of groups."""
    asked = group_questions(run.spec, run.engine, masked_data, aggregated_table)
    return [*asked, linked_question(run, raw_data, aggregated_table)]


CHECKS = CheckDef(
    "candidate_checks",
    "aggregated_table",
    ("raw_data", "masked_data", "aggregated_table"),
    lambda _: {**GROUP_CHECKS, **LINKED_CHECKS},
    ask_groups,
)


def linked_question(run: Run, raw_data: Stage, candidate: Stage) -> Question:
    """The question whether the candidate tells what is hidden, beside other tables; an accepted answer is logged."""
    demand = "beside other released tables of groups of the same people no hidden count or mean is known"
    return told_together(run, raw_data, candidate).question(run, LINKED, demand)


def group_questions(spec: ReleaseSpec, engine: Engine, masked: Stage, candidate: Stage) -> list[Question]:
    """The questions to the stored table of groups, counted from its file and from the masked people."""
    step, threshold, data = aggregate_for_readers(spec), threshold_of(spec), candidate.folder / DATA
    columns = list(engine.columns(data))
    idle = {} if step.means else dict.fromkeys(OF_MEANS, "the table shows no mean")
    sizes, totals = pd.DataFrame(), pd.DataFrame()  # an empty table counts as a check that crashed
    if set(columns) == set(spec.released):
        people = masked.folder / DATA
        groups = engine.groups(data, group_columns(step), people)
        written = read_groups(groups)
        beside = compare_groups(groups, step, threshold, units_of(engine, people, data, step))
        sizes = pd.DataFrame({"people": written.counts})
        everybody = int(written.counts.sum()) + beside.left_out_people
        idle |= {} if beside.left_out_people else {"hides_groups_in_company": "no group is left out"}
        totals = pd.DataFrame(
            {
                "has_every_group_once": [written.repeated + written.not_whole],
                "counts_the_people": [beside.miscounted],
                "accounts_for_everybody": [abs(int(masked.facts["rows"]) - everybody)],
                "hides_groups_in_company": [int(not beside.stays_hidden(threshold))],
                "shows_true_means": [beside.wrong_means],
                "shows_rounded_means": [beside.exact_means],
                "shows_means_of_enough": [beside.means_of_few],
                "shows_no_dominated_mean": [beside.dominated_means],
            }
        )
    largest = "largest value makes" if step.dominance.n == 1 else f"{step.dominance.n} largest values make"
    demands = {
        "has_every_group_once": "no group stands twice or has a count that is no whole number",
        "counts_the_people": "no group has another count than the masked people give",
        "accounts_for_everybody": "nobody is missing who is neither in a group that is shown nor in one that is left "
        "out",
        "hides_groups_in_company": f"if groups are left out, at least two are, with at least {threshold} people "
        "together, also of those who share what readers know",
        "shows_true_means": "no mean differs from that of the masked people by more than half a step of rounding",
        "shows_rounded_means": "no mean is shown in finer steps, whose digits could tell how many have a value",
        "shows_means_of_enough": f"no mean is of fewer than {threshold} known values",
        "shows_no_dominated_mean": f"no mean is shown of which the {largest} up more than {step.dominance.share:.0%}, "
        f"or whose second largest value tells the largest to within {step.dominance.p_percent:g} %",
    }
    return [
        Question(
            "k_anonymity",
            f"every group counts at least {threshold} people",
            "ExpectColumnMinToBeBetween",
            {"column": "people", "min_value": threshold},
            sizes,
            remedy=FAULT,
        ),
        Question(
            "has_released_columns_only",
            "the candidate has the columns of the table of groups, and no other",
            "ExpectColumnDistinctValuesToEqualSet",
            {"column": "name", "value_set": spec.released},
            pd.DataFrame({"name": columns}),
            measured=len(columns),
            remedy=FAULT,
        ),
        *(
            Question(
                name,
                demand,
                "ExpectColumnMaxToBeBetween",
                {"column": name, "max_value": 0},
                totals[[name]] if name in totals else totals,
                remedy=FAULT,
                idle=idle.get(name, ""),
            )
            for name, demand in demands.items()
        ),
    ]
