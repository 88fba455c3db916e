"""A synthetic table from source to rows: paid for once, the same each time, and of public values only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.differential_privacy.synthesis.coded_table import axes_of, read_coded
from anon_pipeline.differential_privacy.synthesis.made_table import (
    Synthetic,
    make_table,
    measure_people,
    outside,
    protection,
    settings_of,
)
from anon_pipeline.differential_privacy.synthesis.models import model_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.keys import private_key
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.differential_privacy import MOST_INTERVALS
from anon_pipeline_tests.differential_privacy import synthetic_people
from anon_pipeline_tests.differential_privacy.synthetic_people import content, people, write


def measured(spec: ReleaseSpec, home: Home) -> tuple[bytes, bool]:
    return measure_people(DuckDBEngine(home.private_folder("spill")), spec, home, private_key(spec, home))


def spent(spec: ReleaseSpec, home: Home) -> int:
    return Budget(home, Allowance.of(asked_of(spec))).state().spent.nano_rho


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.mark.long
def test_it_is_paid_for_once_and_the_same_each_time(tmp_path: Path, home: Home) -> None:
    spec = write(tmp_path / "clinic")
    first, new = measured(spec, home)
    cost = spent(spec, home)
    assert new and cost == settings_of(spec, axes_of(spec)).nano_rho
    again, new = measured(spec, home)
    assert not new and again == first and spent(spec, home) == cost
    one, other = make_table(spec, first), make_table(spec, again)
    assert one.table.equals(other.table)
    said = protection(spec, first)
    assert said["epsilon"] <= 2 and said["rho"] == math.fsum(part["rho"] for part in said["mechanisms"])
    # A corrected file is another question about the same people; a third one is not within the budget.
    spec = write(tmp_path / "clinic", people(seed=2))
    assert measured(spec, home)[1] and spent(spec, home) == 2 * cost
    spec = write(tmp_path / "clinic", people(seed=3), synthesis={"epsilon": 3.9})
    with pytest.raises(Refused, match="is left"):
        measured(spec, home)
    assert spent(spec, home) == 2 * cost


@pytest.mark.long
@pytest.mark.parametrize(
    ("unit", "whom", "rows", "neighbours"),
    [
        ("row", "row", 1, "by one row"),
        ({"person": "id", "groups": 1, "rows": 3}, "person", 3, "by all rows of one person"),
    ],
    ids=["row", "person"],
)
def test_the_manifest_says_whom_the_noise_protects(
    tmp_path: Path, home: Home, unit: Any, whom: str, rows: int, neighbours: str
) -> None:
    asked = content()["differential_privacy"] | {"unit": unit}
    spec = write(tmp_path / "clinic", differential_privacy=asked)
    said = protection(spec, measured(spec, home)[0])
    assert (said["unit"], said["rows_per_unit"], said["size"]) == (whom, rows, "noisy")
    assert neighbours in said["neighbours"]
    assert said["subject"] == "clinic_people" and list(said["domains"]) == spec.released


@pytest.mark.long
def test_another_home_draws_other_noise(tmp_path: Path, home: Home) -> None:
    """No seed: the same source, spec and key give other numbers, so nobody can take the noise off."""
    spec = write(tmp_path / "clinic")
    other = Home(tmp_path / "other").prepare()
    assert measured(spec, home)[0] != measured(spec, other)[0]


@pytest.mark.long
def test_rows_look_like_the_people_and_hold_public_values_only(tmp_path: Path, home: Home) -> None:
    spec = write(tmp_path / "clinic", people(20_000))
    made = make_table(spec, measured(spec, home)[0])
    source, shown = people(20_000), made.table
    assert abs(len(shown) - 20_000) < 300
    assert shown.column_names == spec.released
    assert not any(outside(shown, {name: asked_of(spec).domains[name] for name in spec.released}).values())
    assert shown.column("city").null_count == pytest.approx(source.column("city").to_pylist().count("elsewhere"), 0.3)
    assert shown.column("age").null_count == pytest.approx(source.column("age").null_count, 0.3)
    assert pa.types.is_integer(shown.column("age").type)

    def share_ill(table: pa.Table, low: int, high: int) -> float:
        frame = table.to_pandas()
        return float((frame[(frame["age"] >= low) & (frame["age"] < high)]["ill"] == "yes").mean())

    for low, high in ((18, 40), (40, 60), (60, 90)):
        assert share_ill(shown, low, high) == pytest.approx(share_ill(source, low, high), abs=0.05)
    counted = {name: made.quality()["values"][name] for name in ("ill", "city", "age")}
    truth = {"ill": _ill(source), "city": _city(source), "age": _age(source, len(counted["age"]) - 1)}
    missed = total = 0
    for name, counts in counted.items():
        reach = max(count["high"] - count["noisy"] for count in counts if count["high"])  # 1.96 deviations
        for count, true in zip(counts, truth[name], strict=True):
            assert abs(count["noisy"] - true) < 3 * reach  # else one of 10^8
            missed, total = missed + (not count["low"] <= true <= count["high"]), total + 1
    assert total == 36 and missed <= 10  # at one in twenty: eleven of 36 in one run of a million


def _ill(source: pa.Table) -> list[int]:
    values = source.column("ill").to_pylist()
    return [values.count("no"), values.count("yes"), 0]


def _city(source: pa.Table) -> list[int]:
    values = source.column("city").to_pylist()
    return [*(values.count(city) for city in synthetic_people.CITIES), values.count("elsewhere")]


def _age(source: pa.Table, intervals: int) -> list[int]:
    known = np.array([age for age in source.column("age").to_pylist() if age is not None])
    return [*np.bincount((known - 18) // 3, minlength=intervals).tolist(), source.column("age").null_count]


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {"target": ""},
        {"target": "weight"},
        {"synthesis": {"epsilon": 2, "rounds": 3, "targets": ["ill", "weight"]}},
        {"synthesis": {"rho": 0.01, "rounds": 1}},
        {"synthesis": {"epsilon": 2, "rounds": 200}},
    ],
    ids=["no target", "a number as target", "two targets", "a share of rho", "more rounds than pairs"],
)
def test_every_kind_of_target(tmp_path: Path, home: Home, changes: dict[str, Any]) -> None:
    spec = write(tmp_path / "clinic", people(500), **changes)
    made = make_table(spec, measured(spec, home)[0])
    assert made.table.column_names == spec.released and len(made.table) > 200


@pytest.mark.long
def test_a_public_size_is_kept_and_an_empty_table_is_no_error(tmp_path: Path, home: Home) -> None:
    wanted = content()["differential_privacy"] | {"size": {"public": 750, "why": "a sample of 750"}}
    spec = write(tmp_path / "clinic", people(750), differential_privacy=wanted)
    assert len(make_table(spec, measured(spec, home)[0]).table) == 750
    empty = write(tmp_path / "empty", people(10).slice(0, 0), dataset="empty")
    assert len(make_table(empty, measured(empty, home)[0]).table) >= 1, "that nobody is there is not told by an error"


def test_ranges_are_counted_in_intervals(tmp_path: Path) -> None:
    spec = write(tmp_path / "clinic")
    axes = axes_of(spec)
    assert axes[0].intervals <= MOST_INTERVALS and axes[0].width == 3
    coded = read_coded(DuckDBEngine(tmp_path / "scratch"), spec, axes)
    ages = np.array([one for one in people().column("age").to_pylist() if one is not None])
    assert coded.counts((0,))[:-1].tolist() == np.bincount((ages - 18) // 3, minlength=axes[0].intervals).tolist()
    assert coded.counts((0,))[-1] == people().column("age").null_count


@pytest.mark.long
@pytest.mark.parametrize("kind", ["naive_bayes", "synthetic"])
def test_a_model_answers_on_people_it_never_saw(tmp_path: Path, home: Home, kind: str) -> None:
    spec = write(tmp_path / "clinic", people(20_000), model={"kind": kind})
    made = make_table(spec, measured(spec, home)[0])
    model = model_of(spec, made)
    frame = people(2000, seed=9).to_pandas()
    features = frame[spec.features].copy()
    features["age"] = features["age"].astype(float)
    chances = model.predict_proba(features)
    yes = chances[:, list(model.classes_).index("yes")]
    is_old = frame["age"] > 70
    assert yes[is_old].mean() > 0.6 > 0.4 > yes[frame["age"] < 35].mean()
    assert yes.mean() == pytest.approx((frame["ill"] == "yes").mean(), abs=0.05), "calibrated"
    fitted_again = model.fit(features, 1 - (frame["ill"] == "yes"))
    assert (fitted_again.predict_proba(features) == chances).all(), "a guide learns nothing of people by fitting it"


@pytest.mark.long
def test_naive_bayes_predicts_no_number(tmp_path: Path, home: Home) -> None:
    spec = write(tmp_path / "clinic", people(300), target="weight", model={"kind": "naive_bayes"})
    made: Synthetic = make_table(spec, measured(spec, home)[0])
    with pytest.raises(InputError, match="take synthetic"):
        model_of(spec, made)
    assert model_of(spec.replaced({"model.kind": "synthetic"}), made).predict(
        people(50).to_pandas()[spec.features].assign(age=1.0)
    ).shape == (50,)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"privacy": {"k_anonymity": {"k": 5}}}, "privacy: is of grouped releases"),
        ({"differential_privacy": None}, "differential_privacy: is missing"),
        ({"target": "id"}, "'id' is no column that is released"),
        ({"synthesis": {"epsilon": 1, "rho": 0.1}}, "epsilon or rho"),
        ({"synthesis": {"targets": ["ill", "ill"]}}, "stands twice"),
        ({"target": "", "model": {"kind": "synthetic"}}, "model: needs a target"),
        ({"release": "grouped"}, "synthesis: is of synthetic releases"),
    ],
)
def test_specs_that_make_no_sense_are_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        write(tmp_path / "clinic", people(20), **changes)
    assert synthetic_people.CITIES
