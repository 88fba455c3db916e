"""Control people who are in the table: told apart from those who equal somebody by chance, however files are typed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.audit.shared_people import SharedPeople
from anon_pipeline.errors import InputError
from anon_pipeline_tests.attack.tables import people

ORDERED = ["age", "cost"]
KEPT = ["ill", "cost"]


def drawn(number: int, seed: int, ages: int = 40) -> pd.DataFrame:
    """People of few columns, of whom many equal one another by chance."""
    draw = np.random.default_rng(seed)
    return pd.DataFrame({"age": draw.integers(20, 20 + ages, number), "sex": draw.choice(["f", "m"], number)})


def note(original: pd.DataFrame, control: pd.DataFrame, **how: Any) -> str | None:
    shared = SharedPeople.of(original, control, how.get("ordered", ORDERED))
    shared.require_others("control.csv")
    return shared.note


@pytest.mark.parametrize("ages", [5, 400, 40_000])
@pytest.mark.parametrize("seed", range(3))
def test_people_who_are_alike_by_chance_are_no_remark(ages: int, seed: int) -> None:
    """Half of the control people equal somebody in a table of few columns, and are not in it."""
    assert note(drawn(900, seed, ages), drawn(400, 100 + seed, ages)) is None


@pytest.mark.parametrize("shared", [20, 100])
def test_some_control_people_who_are_in_the_original_are_told(shared: int) -> None:
    """Nothing was said unless more than half of them were."""
    everybody = people(1200, 1)
    control = pd.concat([everybody[:shared], everybody[900:]], ignore_index=True)
    said = note(everybody[:900], control.sample(frac=1, random_state=3), ordered=["age", "joined", "cost"])
    assert said is not None and said.startswith(f"{100 * shared / (shared + 300):.3g}"[:3])
    assert "seem to be in the table" in said


def test_control_people_who_are_the_original_are_refused() -> None:
    everybody = people(300, 1)
    for control in (everybody, everybody.sample(100, random_state=1), pd.concat([everybody[:80], people(40, 9)])):
        with pytest.raises(InputError, match=r"control.csv: .* of its people equal somebody in the original in"):
            note(everybody, control)


def test_a_type_of_a_file_hides_nobody() -> None:
    """39 and "39", or 39.0 where somebody's age is not known, were two people."""
    everybody = pd.DataFrame({"age": np.arange(200), "town": np.arange(200) % 7})
    texts = everybody.astype(str)
    gaps = pd.concat([everybody[:150], pd.DataFrame({"age": [None], "town": [None]})])
    for control in (texts, gaps, everybody.astype(float)):
        with pytest.raises(InputError, match="of its people equal somebody"):
            note(everybody, control)


def test_an_original_that_was_rid_of_its_twins_refuses_nobody() -> None:
    """Then everybody who is like it by chance looks as if taken from it; they equal one another, too."""
    everybody = drawn(2_000, 1, 5)
    said = note(everybody.drop_duplicates(), drawn(400, 2, 5))
    assert said is not None and said.startswith("100 % of the control people")


def test_people_of_whom_nothing_is_known_equal_one_another() -> None:
    nobody = pd.DataFrame({"age": [None] * 30, "sex": [None] * 30})
    assert note(nobody, nobody) is None


# ------------------------------------------------------------------ in the table, whether or not in the original


def note_of_table(released: pd.DataFrame, original: pd.DataFrame, control: pd.DataFrame) -> str | None:
    shared = SharedPeople.by_kept(released[KEPT], original[KEPT], control[KEPT], ORDERED)
    if shared is None:
        return None
    shared.require_others("control.csv")
    return shared.note


@pytest.mark.parametrize("left_out", [0, 150])
def test_control_people_who_are_in_the_table_alone_are_told(left_out: int) -> None:
    """They were not seen where the original lacks them, and hid leaks; some of the original may be left out."""
    everybody = people(1200, 1)
    control = pd.concat([everybody[900:1000], people(200, 9)], ignore_index=True)
    said = note_of_table(everybody[left_out:1000], everybody[:900], control)
    assert said is not None and "equal somebody in the table in every column that it keeps" in said
    with pytest.raises(InputError, match=r"control.csv: .* of its people equal somebody in the table in every"):
        note_of_table(everybody[left_out:1000], everybody[:900], everybody[900:1000])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["all", "half", "synthetic", "without twins", "masked"])
@pytest.mark.parametrize("spread", [1, 20, 3000])
def test_who_equals_a_row_of_the_table_by_chance_is_no_remark(seed: int, how: str, spread: int) -> None:
    draw = np.random.default_rng(seed)

    def some(number: int) -> pd.DataFrame:
        return pd.DataFrame({"ill": draw.choice(["no", "yes"], number), "cost": draw.integers(0, spread, number)})

    original, control = some(600), some(200)
    released = pd.concat([original, some(900)], ignore_index=True)
    if how == "half":
        released = released[::2]
    elif how == "synthetic":
        released = some(1500)
    elif how == "without twins":
        released = released.drop_duplicates()
    elif how == "masked":
        released = released.assign(cost=draw.permutation(released["cost"]))
    assert note_of_table(released, original, control) is None


def test_control_people_who_are_all_alike_are_not_taken_from_the_table() -> None:
    """Healthy people without a cost equal somebody in any table."""
    healthy = pd.DataFrame({"ill": ["no"] * 100, "cost": [0] * 100})
    original = pd.concat([people(900, 1)[KEPT], healthy[:1]], ignore_index=True)
    assert note_of_table(original, original, healthy) is None
