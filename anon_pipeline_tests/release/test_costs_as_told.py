"""What the manifest says that masking cost: whoever knows all values but one seldom learns the last one from it."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.masking.catalog import read_step
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.release import masking_figures
from anon_pipeline.release.noise import NO_NOISE
from anon_pipeline_tests.masking.tables import CATEGORICAL, KEY, NUMERIC

Columns = dict[str, list[Any]]
TYPES = {"town": CATEGORICAL, "sex": CATEGORICAL, "age": NUMERIC, "income": NUMERIC}


def told(columns: Columns, *steps: dict[str, Any], of: str = "town") -> list[dict[str, Any]]:
    """The masking of a manifest; steps without columns are those of the town, or of another column."""
    own, of_table = ([step for step in steps if ("columns" in step) == whole] for whole in (False, True))
    _, reports = apply_steps(
        pa.table(columns),
        {name: TYPES[name] for name in columns},
        {of: [read_step(step) for step in own]} if own else {},
        [read_step(step) for step in of_table],
        Resources("people", KEY),
    )
    return masking_figures.masking([asdict(report) for report in reports], NO_NOISE) or []


RARE, LOCAL = {"technique": "suppress_rare"}, {"technique": "local_suppression", "columns": ["town", "sex"]}
#: Steps, the number of people in the last one's town, and their number elsewhere.
GROUPS: dict[str, tuple[list[dict[str, Any]], int]] = {
    "fifty are enough": ([{**RARE, "k": 50}], 49),
    "the only one hides a whole town": ([{**RARE, "k": 10}], 0),
    "and a step after it": ([{**RARE, "k": 50}, {"technique": "mask", "first": 1, "last": 0}], 49),
    "fifty of both sexes": ([{**LOCAL, "k": 50}], 49),
}


@pytest.mark.long
@pytest.mark.parametrize("name", GROUPS)
def test_whether_a_group_is_hidden_does_not_tell_whether_one_person_belongs_to_it(name: str) -> None:
    steps, alike = GROUPS[name]
    apart = 0
    for table in range(20):
        random = np.random.default_rng(table)
        others = random.choice(["Bonn", "Mainz", "Trier"], 1000 - alike - 1).tolist()
        sex = random.choice(["f", "m"], 1000).tolist()
        sex[: alike + 1] = ["f"] * (alike + 1)
        here, elsewhere = (
            told({"town": [last, *["Ulm"] * alike, *others], "sex": sex}, *steps) for last in ("Ulm", "Bonn")
        )
        apart += here != elsewhere
    assert apart <= 2, apart


#: A step, the numbers of others, and two of the last one, between which the limit jumps over many people: over all who
#: were born within a decade, and over all who have one number of children.
LIMITS: dict[str, tuple[dict[str, Any], list[int], tuple[int, int]]] = {
    "a decade": (
        {"technique": "quantile_code", "top": 0.05},
        [*[*range(1924, 1999)] * 5, *[1999] * 4, *[2002] * 20],
        (1995, 2001),
    ),
    "one value": ({"technique": "quantile_bin", "bins": 2}, [*[0] * 100, *[1] * 100, *[3] * 199], (0, 3)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_on_which_side_of_a_limit_many_people_are_does_not_tell_the_number_of_one(name: str) -> None:
    step, others, numbers = LIMITS[name]
    sex = ["f" if number == 1 or place % 3 else "m" for place, number in enumerate(others)]

    here, there = (told({"age": [*others, number], "sex": [*sex, "f"]}, step, of="age") for number in numbers)
    assert here == there


@pytest.mark.long
def test_groups_of_all_people_do_not_tell_the_numbers_of_one() -> None:
    """Who has a value in the middle of a group by chance changes with each number of anybody."""
    mdav = {"technique": "mdav", "columns": ["age", "income"], "k": 5}
    apart = 0
    for table in range(30):
        random = np.random.default_rng(table)
        age, income = random.integers(18, 90, 300).tolist(), random.lognormal(10, 0.6, 300).round(-1).tolist()
        one, other = (
            told({"age": [a, *age[1:]], "income": [i, *income[1:]]}, mdav)[0]["costs"]["age"]
            for a, i in ((20, 15_000.0), (70, 60_000.0))
        )
        assert one["distance"] is not None
        apart += (one["changed"], one["distance"]) != (other["changed"], other["distance"])
    assert apart <= 3, apart
