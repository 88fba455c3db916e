"""What a run says of a candidate whose classes do not meet `delta_presence` as they are shown."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.pipeline.checks import candidate
from anon_pipeline.pipeline.checks.candidate import _demands
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.spec import ReleaseSpec

#: The age that each class of four people shows, and the ends of its interval.
Classes = dict[int, tuple[int, int]]
#: Two classes of merged people: ages 1 to 4 and 3 to 9. Of ages 3 and 4 the population has many.
SHOWN: Classes = {1: (1, 4), 5: (3, 9)}
AGES = [1] * 4 + [2] * 4 + [3] * 10 + [4] * 10 + [9] * 8


def asked(folder: Path, engine: DuckDBEngine, demand: dict[str, float], classes: Classes) -> Question:
    """The question about a demand on classes of four people each."""
    shown = np.repeat(list(classes), 4)
    pd.DataFrame({"age": shown, "t": ["a", "b"] * (len(shown) // 2)}).to_csv(folder / "p.csv", index=False)
    pd.DataFrame({"age": AGES}).to_csv(folder / "population.csv", index=False)
    spec = ReleaseSpec(
        dataset="people",
        source={"path": str(folder / "p.csv")},
        target="t",
        columns={"age": {"role": "quasi_identifier"}, "t": {"role": "sensitive"}},
        privacy={
            "k_anonymity": {"k": 2},
            "delta_presence": demand | {"population": str(folder / "population.csv")},
        },
    )
    stored = engine.store_source(spec, folder / DATA)
    low, high = zip(*classes.values(), strict=True)
    table = {"class_size": 4, "age": list(classes), "age_low": low, "age_high": high, "age_missing": False}
    pd.DataFrame(table).to_parquet(folder / CLASSES, index=False)
    counts = engine.classes(folder / DATA, ["age"], ["t"])
    _, question = _demands(spec, engine, stored, counts, Stage(folder, "", {}))
    return question


@pytest.mark.parametrize(
    ("demand", "measured", "helps"),
    [
        # 4 of the 28 and of the 28 people who match: fewer than a fifth.
        ({"min": 0.2, "max": 0.5}, 1 / 7, "lower the min of delta_presence (with 0 this does not happen)"),
        ({"min": 0, "max": 0.1}, 1 / 7, candidate.NOT_AS_GROUPED),
    ],
)
def test_a_presence_below_its_min_after_grouping_is_not_tried_again(
    tmp_path: Path, engine: DuckDBEngine, demand: dict[str, float], measured: float, helps: str
) -> None:
    """The same people give the same classes again, so that grouping them again helps nobody."""
    question = asked(tmp_path, engine, demand, SHOWN)
    assert question.measured == pytest.approx(measured)
    assert question.remedy.startswith("2 classes fail; nothing was published: ")
    assert question.remedy.endswith(helps)
    assert ("anonymizer_tree" in question.remedy) == (demand["min"] == 0)


def test_the_same_classes_are_released_with_the_min_that_is_named(tmp_path: Path, engine: DuckDBEngine) -> None:
    question = asked(tmp_path, engine, {"min": 0, "max": 0.5}, SHOWN)
    assert question.table["class_holds"].tolist() == [1, 1]


@pytest.mark.parametrize(("demand", "holds"), [({"min": 0, "max": 0.12}, [0]), ({"min": 0.2, "max": 0.5}, [1])])
def test_classes_of_one_interval_are_one_to_who_knows_the_population(
    tmp_path: Path, engine: DuckDBEngine, demand: dict[str, float], holds: list[int]
) -> None:
    """Whoever matches one of both classes matches the other: 8 of 36 people are in the table, not twice 4 of 36."""
    question = asked(tmp_path, engine, demand, {1: (1, 9), 5: (1, 9)})
    assert question.table["class_holds"].tolist() == holds
    assert question.measured == pytest.approx(8 / 36)


@pytest.mark.parametrize(("oldest", "told"), [([10], 1), ([10, 10], 0)])
def test_an_end_that_one_of_the_population_has_is_told(
    tmp_path: Path,
    engine: DuckDBEngine,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    oldest: list[int],
    told: int,
) -> None:
    """Who alone is 10 years old is in the table; of two people of that age each is with a chance of a half."""
    monkeypatch.setattr(sys.modules[__name__], "AGES", AGES + oldest)
    with caplog.at_level("WARNING", "anon_pipeline"):
        question = asked(tmp_path, engine, {"min": 0, "max": 0.5}, {1: (1, 4), 5: (3, 10)})
    assert question.table["class_holds"].tolist() == [1, 1]
    warned = [record.getMessage() for record in caplog.records if "delta_presence" in record.getMessage()]
    assert ["1 end or category of classes is that of so few people" in sentence for sentence in warned] == [True] * told
