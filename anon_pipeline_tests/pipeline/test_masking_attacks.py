"""Taking random masking off: what somebody does who has the code, the spec, masked files and their own true value."""

import json
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from anon_pipeline.home import Home
from anon_pipeline.masking.sphere import distances
from anon_pipeline_tests.end_to_end.harness import Ended, Place, command, people, policy, write_dataset

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]
N = 300
#: Salaries are whole quarters, as real ones are whole cents: who guesses the noise sees whether the rest is one.
QUARTER = 0.25
DRAWS = {"file": "draws.key"}
PLACE = ["lat", "lon"]


def everyone(n: int = N, seed: int = 3) -> pd.DataFrame:
    """People whom the attacker tells apart by `person`, which is not masked."""
    random = np.random.default_rng(seed)
    frame = people(n, seed)
    frame["person"] = [f"person {seed} {number}" for number in range(n)]
    frame["salary"] = np.round(random.lognormal(10.5, 0.4, n) / QUARTER) * QUARTER
    frame["lat"], frame["lon"] = 48 + random.random(n) / 10, 11 + random.random(n) / 10
    return frame


def masking(salary: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """The spec of `everyone()`, with the steps of `salary`."""
    spec = policy()
    numeric = {"role": "insensitive", "type": "numeric"}
    spec["columns"] |= {
        "person": {"role": "insensitive", "type": "categorical"},
        "salary": numeric | ({"steps": salary} if salary else {}),
        "lat": numeric,
        "lon": numeric,
    }
    return spec | {"audit": {"enabled": False}, "draws": DRAWS} | more


def noise(**parameters: Any) -> list[dict[str, Any]]:
    return [{"technique": "noise", **parameters}]


def place_of(root: Path, frame: pd.DataFrame, spec: dict[str, Any], home: str = "home") -> Place:
    """A dataset of this spec, with a key of its own where the spec names one."""
    folder = write_dataset(root / "people", frame, spec)
    key = folder / "draws.key"
    key.write_text("d5" * 32)
    key.chmod(0o600)
    return Place(Home(root / home), folder)


def mask(place: Place, out: Path) -> tuple[pd.DataFrame, list[dict[str, Any]], Ended]:
    """What `anon-pipeline mask` makes: the rows by person, what each step reports, and how it ended."""
    ended = command("mask", place.dataset, "--out", out, "--json", home=place.home.root)
    assert ended.exit_code == 0, ended.said
    return pd.read_parquet(out).sort_values("person", ignore_index=True), json.loads(ended.stdout)["masking"], ended


def masked(
    root: Path, frame: pd.DataFrame, spec: dict[str, Any], out: str, home: str = "home"
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    return mask(place_of(root, frame, spec, home), root / out)[:2]


def truth(frame: pd.DataFrame, column: str = "salary") -> Floats:
    return frame.sort_values("person")[column].to_numpy()


def is_a_salary(values: Floats) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.abs(values / QUARTER - np.rint(values / QUARTER)) < 1e-6
    return found


def test_without_a_named_key_the_noise_cannot_be_drawn_again(tmp_path: Path) -> None:
    """The attacker masks as many people who earn nothing, by the same spec, and has all noise there is."""
    spec = masking(noise(deviation=5000.0)) | {"seed": 7}
    del spec["draws"]
    frame = everyone()
    victims, _ = masked(tmp_path, frame, spec, "victims.parquet")
    penniless = frame.assign(salary=np.where(np.arange(N) == 0, 0.5, 0.0))  # a column of fractions, as theirs is
    own, _ = masked(tmp_path, penniless, spec, "own.parquet", home="attacker")
    candidates = victims["salary"].to_numpy()[:, None] - own["salary"].to_numpy()[None, :]
    found = is_a_salary(candidates) & (np.abs(candidates - truth(frame)[:, None]) < 1e-3)
    # By chance one of 300 guesses hits: a grid of 1/256 over thousands, some .03 people of all.
    assert found.any(axis=1).sum() <= 5
    assert np.median(np.abs(victims["salary"] - truth(frame))) > 2000


def test_two_deviations_under_one_key_are_independent(tmp_path: Path) -> None:
    frame = everyone()
    first, _ = masked(tmp_path, frame, masking(noise(deviation=5000.0)), "first.parquet")
    second, _ = masked(tmp_path, frame, masking(noise(deviation=7000.0)), "second.parquet")
    solved = (7000 * first["salary"] - 5000 * second["salary"]) / 2000
    # Independent draws make this 17,500 times the difference of two normal numbers, with a median of 16,700.
    assert np.median(np.abs(solved - truth(frame))) > 8000
    noises = first["salary"] - truth(frame), second["salary"] - truth(frame)
    assert abs(np.corrcoef(*noises)[0, 1]) < 0.3  # five standard deviations of 300 independent pairs


def test_noise_by_share_cannot_be_solved_for_when_one_person_changes_its_scale(tmp_path: Path) -> None:
    """Two nightly files: a rich newcomer makes the deviation of the column, and with it the noise, another."""
    frame, spec = everyone(), masking(noise(share=0.5))
    rich = everyone(1, seed=4).assign(salary=1_000_000.0)
    first, (one,) = masked(tmp_path, frame, spec, "first.parquet")
    second, (other,) = masked(tmp_path, pd.concat([frame, rich]), spec, "second.parquet")
    before, after = one["facts"]["deviation"], other["facts"]["deviation"]
    assert before < after
    second = second[second["person"].isin(first["person"])].reset_index()
    solved = (after * first["salary"] - before * second["salary"]) / (after - before)
    assert (np.abs(solved - truth(frame)) < 1).sum() <= 3
    assert np.median(np.abs(solved - truth(frame))) > 1000


def test_two_planar_laplace_epsilons_under_one_key_do_not_point_at_the_place(tmp_path: Path) -> None:
    frame = everyone()
    shown = []
    for epsilon in (0.01, 0.005):
        steps = [{"technique": "planar_laplace", "columns": PLACE, "epsilon": epsilon}]
        made, (report,) = masked(tmp_path, frame, masking(steps=steps), f"{epsilon}.parquet")
        shown.append(made)
    solved = [
        2 * shown[0][name].to_numpy() - shown[1][name].to_numpy() for name in PLACE
    ]  # twice as far, the other way
    apart = distances(truth(frame, "lat"), truth(frame, "lon"), *solved)
    assert np.median(apart) > 100, "the noise itself is 200 m"
    assert report["guarantee"] == "local DP"  # and nothing is told that was made from the true places
    assert (report["costs"], report["linkage"]) == ({}, None)
    assert report["facts"] == {"epsilon_per_metre": 0.005, "expected_metres": 400.0}


def test_a_second_file_with_one_person_more_tells_nothing_of_the_others(tmp_path: Path) -> None:
    """Who knows their own salary knows their noise; where noise moved on by one row, everybody's follows."""
    frame, spec = everyone(), masking(noise(deviation=5000.0))
    first, _ = masked(tmp_path, frame, spec, "first.parquet")
    second, _ = masked(tmp_path, pd.concat([frame, everyone(1, seed=4)]), spec, "second.parquet")
    second = second[second["person"].isin(first["person"])].reset_index()
    then, now, true = first["salary"].to_numpy(), second["salary"].to_numpy(), truth(frame)
    best = 0
    for attacker in range(0, N, 10):
        known, right = now[attacker] - true[attacker], 0  # the noise of the row before last night's
        left = set(range(N)) - {attacker}
        while fitting := [one for one in left if is_a_salary(then[one : one + 1] - known)[0]]:
            right += abs(then[fitting[0]] - known - true[fitting[0]]) < 1e-3
            known += now[fitting[0]] - then[fitting[0]]
            left.remove(fitting[0])
        best = max(best, right)
    assert best <= 2
    assert (then == now).all(), "there is nothing to compare, and nothing to average"


def test_the_same_row_keeps_its_draws_whoever_comes_and_goes(tmp_path: Path) -> None:
    """Equal rows too, in any order, through every technique whose draws are a row's own."""
    steps = [{"technique": "planar_laplace", "columns": PLACE, "epsilon": 0.01}]
    spec = masking([*noise(deviation=5000.0), *noise(deviation=500.0, distribution="laplace")], steps=steps)
    pram = {"technique": "pram", "retention": 0.5, "categories": ["Aberdeen", "Bergen", "Cork", "Delft"]}
    spec["columns"]["city"]["steps"] = [pram]
    frame = everyone()
    twice = pd.concat([frame, frame.head(40), frame.head(20)])
    later = pd.concat([frame.tail(250), everyone(70, seed=5), frame.iloc[60:100], frame.iloc[60:80]])
    shown = []
    for name, table in (("then", twice), ("now", later.sample(frac=1, random_state=1))):
        made, _ = masked(tmp_path, table, spec, f"{name}.parquet")
        by_person: dict[str, Counter[Any]] = {}
        for person, *values in made[["person", "salary", "city", *PLACE]].itertuples(index=False):
            by_person.setdefault(person, Counter())[tuple(values)] += 1
        shown.append(by_person)
    then, now = shown
    both = then.keys() & now.keys()
    assert len(both) == 250
    for person in both:
        fewer, more = sorted((then[person], now[person]), key=lambda rows: rows.total())
        assert fewer <= more
        assert max(more.values()) == 1, "equal rows get noise of their own"


def test_a_key_is_made_once_kept_private_and_told(tmp_path: Path) -> None:
    spec = masking(noise(deviation=5000.0))
    del spec["draws"]
    place = place_of(tmp_path, everyone(60), spec)
    kept = place.home.private / "keys" / "people.key"
    first, _, told = mask(place, tmp_path / "first.parquet")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    lines = [line for line in told.stderr.splitlines() if "private key" in line]
    assert len(lines) == 1 and str(kept) in lines[0]
    key = kept.read_text().strip()
    assert key not in told.said
    place_of(tmp_path, everyone(60), spec | {"seed": 8})
    second, _, again = mask(place, tmp_path / "second.parquet")
    assert "private key" not in again.stderr
    pd.testing.assert_frame_equal(first, second)  # nothing hangs on the seed
    other, _, _ = mask(place_of(tmp_path, everyone(60), spec, "elsewhere"), tmp_path / "third.parquet")
    assert (other["salary"] != first["salary"]).all()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [(lambda key: key.write_text("too short"), "is no key"), (lambda key: os.chmod(key, 0o644), "read by others")],
    ids=["altered", "open to others"],
)
def test_a_kept_key_that_cannot_be_used_is_never_replaced(tmp_path: Path, break_it: Any, said: str) -> None:
    spec = masking(noise(deviation=5000.0))
    del spec["draws"]
    place = place_of(tmp_path, everyone(60), spec)
    mask(place, tmp_path / "first.parquet")
    kept = place.home.private / "keys" / "people.key"
    break_it(kept)
    before = kept.read_bytes()
    ended = command("mask", place.dataset, "--out", tmp_path / "second.parquet", home=place.home.root)
    assert (ended.exit_code, said in ended.sentence) == (2, True), ended.said
    assert kept.read_bytes() == before and not (tmp_path / "second.parquet").exists()
