"""A survey's weights: what the steps make of them, what is published of them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.pipeline.before_work import require_startable
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import Run
from anon_pipeline.privacy.sampling_weights import weighted_risk
from anon_pipeline.release import fineness
from anon_pipeline.report import risk as risk_report
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset

QUASI_IDENTIFIERS = ["age", "city", "sex"]


def weighted_policy(**changes: Any) -> dict[str, Any]:
    spec = policy() | {"sampling_weight": "weight", "audit": {"enabled": False}}
    spec["columns"]["weight"] = {"role": "exclude", "type": "numeric"}
    return spec | changes


def weighted_people() -> pd.DataFrame:
    """Weights follow from a column that is released, so that a reader of the release can add them up."""
    frame = people()
    return frame.assign(weight=50.0 * (frame["visits"] + 1))


@pytest.mark.long
@pytest.mark.parametrize("masked", [False, True])
def test_the_weights_of_each_released_class_are_added_up_and_stay_private(masked: bool, tmp_path: Path) -> None:
    spec = weighted_policy()
    if masked:
        spec["columns"]["age"]["steps"] = [{"technique": "round", "to": 5}]
    run = _grouped(write_dataset(tmp_path / "people", weighted_people(), spec), tmp_path / "home")
    candidate = Stages(run.home, run.spec).load("anonymized_table")
    released = pq.read_table(candidate.folder / "data.parquet").to_pandas()
    assert "weight" not in released
    counted = released.assign(w=50.0 * (released["visits"] + 1)).groupby(QUASI_IDENTIFIERS, dropna=False)["w"]
    classes = counted.agg(["size", "sum"])
    expected = weighted_risk(classes["size"].to_numpy(), classes["sum"].to_numpy())
    told = candidate.facts["weighted"]
    assert told == pytest.approx(vars(expected))
    assert told["population"] == weighted_people()["weight"].sum()


@pytest.mark.long
@pytest.mark.parametrize(
    "drawing",
    [
        {"steps": [{"technique": "sample", "share": 0.75}]},
        {"audit": {"enabled": True, "control": "held_out", "people": 200}},
    ],
    ids=["sampled", "held out"],
)
def test_the_weights_of_people_who_were_drawn_stand_for_those_who_were_not(
    drawing: dict[str, Any], tmp_path: Path
) -> None:
    spec = weighted_policy(**drawing)
    frame = weighted_people().assign(weight=50.0)  # so that it does not matter who is drawn
    run = _grouped(write_dataset(tmp_path / "people", frame, spec), tmp_path / "home")
    told = Stages(run.home, run.spec).load("anonymized_table").facts
    assert told["released"] < 0.8 * len(frame)
    assert told["weighted"]["population"] == pytest.approx(50.0 * len(frame))


def _grouped(folder: Path, home: Path) -> Run:
    """The steps until there is a candidate, without Dagster."""
    spec = ReleaseSpec.load(folder)
    run = Runtime(home=str(Home(home).prepare().root)).run(spec, {"dagster": "a test", "mlflow": "a test"})
    graph = graph_of(spec)
    for step in graph.steps[: [step.name for step in graph.steps].index("anonymized_table") + 1]:
        make(graph, step, run)
    return run


BAD: dict[str, tuple[dict[str, Any], list[float | None] | float, str]] = {
    "no such column": ({"sampling_weight": "wait"}, 1.0, "sampling_weight: 'wait' is no column"),
    "a quasi-identifier": ({"sampling_weight": "age"}, 1.0, "'age' has the role quasi_identifier"),
    "a fraction beside it": ({"sampling_fraction": 0.1}, 1.0, "sampling_fraction: follows from sampling_weight"),
    "missing weights": ({}, [None] + [2.0] * 399, "weight is missing or not above 0 in 1 row"),
    "a weight of nothing": ({}, [0.0] + [2.0] * 399, "weight is missing or not above 0 in 1 row"),
    "weights that add up to a half": ({}, 0.5, "adds up to fewer people than the table has"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_weight_is_told_before_any_work(kind: str, tmp_path: Path) -> None:
    changes, weights, sentence = BAD[kind]
    folder = write_dataset(tmp_path / "people", people().assign(weight=weights), weighted_policy(**changes))
    with pytest.raises(InputError) as told:
        require_startable(ReleaseSpec.load(folder))
    assert sentence in str(told.value)


def test_a_spec_without_weights_is_the_policy_that_it_was(tmp_path: Path) -> None:
    assert "sampling_weight" not in ReleaseSpec.load(write_dataset(tmp_path / "people")).policy()


@pytest.mark.long
def test_who_knows_all_weights_but_one_learns_no_more_of_it_than_its_order_of_magnitude() -> None:
    """The attack: try every weight that the last of ten may have, and keep those that give the published figures."""
    sizes, others = np.array([10, *[50] * 20]), np.array([9 * 120.0, *[50 * 300.0] * 20])

    def possible(told: Callable[[dict[str, float]], object]) -> list[float]:
        def published(weight: float) -> object:
            return told(vars(weighted_risk(sizes, others + np.r_[weight, np.zeros(20)])))

        return [weight for weight in np.arange(1.0, 2000.0, 8.0) if published(weight) == published(117.0)]

    in_two_digits = possible(lambda figures: {what: f"{figure:.2g}" for what, figure in figures.items()})
    assert max(in_two_digits) < 2 * min(in_two_digits)  # what such figures would have told
    as_bounds = possible(lambda figures: fineness.weighted(figures, 1010))
    assert max(as_bounds) > 10 * min(as_bounds)


@pytest.mark.long
def test_bounds_never_say_that_people_are_safer_and_the_report_names_them() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        sizes = generator.integers(2, 50, 30)
        figures = vars(weighted_risk(sizes, sizes * generator.uniform(1, 1000, 30)))
        told = fineness.weighted(figures, int(sizes.sum()) + 100)["weighted"]
        assert figures["max"] <= told["max"] <= 1 and figures["mean"] <= told["mean"] <= 1
        assert told["population"] <= figures["population"] and told["smallest_class"] <= figures["smallest_class"]
        assert told["population"] > figures["population"] / 2.6
    rows = {row.term: row for row in risk_report.risks({}, {"weighted": told})}
    assert rows["individual risk, max"].name.endswith("at most")
    assert fineness.weighted(figures, 99) == {}
