"""A sample beside rows of everybody, before readers who know who is in it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.home import write_file
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import Run
from anon_pipeline_tests.pipeline.linked_releases.test_rows import Place, asked, people, problems, released

pytestmark = pytest.mark.long  # whole releases, though made in this process


class Clinics:
    """Some of the people by age, and all by town: as many share both as one says."""

    def __init__(self, root: Path, alike: int) -> None:
        self.place = Place(root)
        # Else now and then a class would have fewer than k people.
        write_file(self.place.home.private_folder("keys") / "by_age.key", "5a" * 32 + "\n")
        frame = people(4 * alike).assign(age=np.repeat([30, 50], 2 * alike), ill=["yes", "no"] * (2 * alike))
        frame.assign(town=np.tile(np.repeat(["Ulm", "Graz"], alike), 2)).to_csv(root / "people.csv", index=False)

    def sample(self, share: float) -> Run:
        """The same share of those who share age and town."""
        step = {"technique": "sample", "columns": ["town", "age"], "share": share}
        return self.rows("age", table_steps=[step])

    def rows(self, by: str, **more: Any) -> Run:
        roles = {name: {"role": "quasi_identifier" if name == by else "exclude"} for name in ("age", "town")}
        return self.place.run(f"by_{by}", of_columns=roles, grouping={"most_lost": 1.0}, **more)


def alike_in_both(sample: Path, everybody: Path) -> list[int]:
    """Among how many rows an attacker of the files looks for somebody of the sample, by the income that both keep."""
    first, second = (pd.read_parquet(folder / "data.parquet") for folder in (sample, everybody))
    both = first.merge(second[["income", "town"]], on="income", validate="one_to_one")
    return sorted(both.groupby(["age", "town"])["income"].size())


def test_who_is_known_to_be_in_a_sample_needs_k_people_of_it(tmp_path: Path) -> None:
    """Sixteen people share age and town, and eight of them are in the sample."""
    clinics = Clinics(tmp_path, 16)
    sample = released(clinics.sample(0.5))
    question = asked(clinics.rows("town"))
    accepted = released(clinics.rows("town", linked_tables_accepted="both are for one reader"))
    assert alike_in_both(sample.folder, accepted.folder) == [8, 8, 8, 8]
    assert problems(question) == 32
    assert f"beside by_age/{sample.version}, of the same people, 32 people share" in question.remedy
    assert "readers may know who was drawn" in question.remedy


@pytest.mark.parametrize(("alike", "share", "told"), [(16, 0.5, 32), (16, 0.75, 16), (32, 0.5, 0)])
def test_so_does_a_sample_beside_everybody_and_who_is_known_to_be_left_out(
    tmp_path: Path, alike: int, share: float, told: int
) -> None:
    """Of three quarters of 32 people of a town, eight rows of everybody are missing in the sample."""
    clinics = Clinics(tmp_path, alike)
    released(clinics.rows("town"))
    assert problems(asked(clinics.sample(share))) == told


def test_who_is_not_held_out_needs_k_people_who_are_not_either(tmp_path: Path) -> None:
    """Eleven people share age and town, and a third of all are held out."""
    clinics = Clinics(tmp_path, 11)
    everybody = released(clinics.rows("town"))
    run = clinics.rows("age", audit={"control": "held_out"})
    question = asked(run)
    alike = alike_in_both(Stages(run.home, run.spec).load("anonymized_table").folder, everybody.folder)
    few = sum(number for number in alike if number < 10)
    assert few and sum(alike) == 30
    assert few <= problems(question) <= 44 and "cannot be judged" not in question.remedy


def test_a_draw_that_cannot_be_made_again_is_not_judged(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, 32)
    sample = released(clinics.sample(0.5))
    (clinics.place.home.private / "keys" / "by_age.key").unlink()
    question = asked(clinics.rows("town"))
    assert problems(question) == 1
    assert f"by_age/{sample.version} is of the same people and cannot be judged: key: " in question.remedy
