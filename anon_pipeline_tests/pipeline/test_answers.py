"""What the checks said is kept with what they judged; the release takes a whole set of plain yeses and nothing less."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from anon_pipeline.audit.people import Bound
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, write_file
from anon_pipeline.pipeline.checks.answers import keep_answers, plain, require_answers
from anon_pipeline.pipeline.checks.audit import AUDIT, ask_audit, checks_of
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.stages import Stage, Stages
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy
from anon_pipeline_tests.pipeline.expectations.asked import ask

YES = Answer("k_anonymity", "every class has at least 10 people", 12, True, False, "measured 12", True, "")
ALSO = dataclasses.replace(YES, name="has_people")


def kept(folder: Path, answers: Sequence[Answer]) -> Stage:
    """The answers of checks on a stored result, stored and loaded again."""
    stages = Stages(Home(folder / "home").prepare(), ReleaseSpec.model_validate(policy()))
    with stages.store("raw_data", {}, {}) as place:
        write_file(place / "data", "one")
    judged = {"raw_data": stages.load("raw_data")}
    keep_answers(stages, "source_checks", judged, answers)
    stage = stages.load("source_checks", judged)
    with stages.store("raw_data", {}, {}) as place:
        write_file(place / "data", "another")
    with pytest.raises(InputError, match="was made from another raw_data"):
        stages.load("source_checks", {"raw_data": stages.load("raw_data")})
    return stage


def test_a_whole_set_of_yeses_is_taken(tmp_path: Path) -> None:
    stage = kept(tmp_path, [YES, ALSO])
    assert require_answers(stage, ["k_anonymity", "has_people"]) == [plain(answer) for answer in (YES, ALSO)]
    assert len(require_answers(stage, ["k_anonymity"])) == 2  # one more than is expected, and it has passed


@pytest.mark.parametrize(
    ("answers", "refused"),
    [
        ([YES], "has_people: was not asked"),
        ([], "was not asked"),
        ([YES, dataclasses.replace(ALSO, passed=False)], "has_people: measured 12"),
        ([YES, dataclasses.replace(ALSO, passed=1)], "has_people: measured 12"),
        ([YES, ALSO, dataclasses.replace(ALSO, name="another", passed=False)], "another: measured 12"),
    ],
    ids=["one is absent", "all are", "a no", "half a yes", "a no that nobody expects"],
)
def test_anything_less_is_refused(tmp_path: Path, answers: list[Answer], refused: str) -> None:
    with pytest.raises(Refused, match=refused):
        require_answers(kept(tmp_path, answers), ["k_anonymity", "has_people"])


def test_what_is_worth_knowing_beside_the_answers_is_kept(tmp_path: Path) -> None:
    stages = Stages(Home(tmp_path / "home").prepare(), ReleaseSpec.model_validate(policy()))
    for given, expected in ((None, {}), ({}, {}), ({"suite": "3f"}, {"suite": "3f"})):
        keep_answers(stages, "own_checks", {}, [YES], given)
        assert stages.load("own_checks").facts == expected


def test_without_a_stage_nothing_was_asked() -> None:
    assert require_answers(None, []) == []
    with pytest.raises(Refused, match="k_anonymity: was not asked"):
        require_answers(None, ["k_anonymity"])


@pytest.mark.long
@pytest.mark.parametrize(("measured", "holds"), [(0.1, True), (0.0, True), (0.1000001, False), (None, False)], ids=str)
def test_a_bound_holds_up_to_its_limit_and_not_where_nothing_was_measured(
    tmp_path: Path, measured: float | None, holds: bool
) -> None:
    bound = dataclasses.asdict(Bound("linkage_bound", "at most 10 %", measured, 0.1))
    write_file(tmp_path / AUDIT, json.dumps({"bounds": [bound]}))
    (answer,) = ask(ask_audit(None, Stage(tmp_path, "", {})))  # type: ignore[arg-type]
    assert (answer.name, answer.passed, answer.crashed) == ("linkage_bound", holds, False)


@pytest.mark.long
def test_a_bound_that_does_not_hold_says_by_how_much_and_for_which_column(tmp_path: Path) -> None:
    demand = "what being in the release adds to how often Köln is inferred is at most 20 %"
    bound = dataclasses.asdict(Bound("attribute_inference_Köln", demand, 0.2012, 0.2))
    write_file(tmp_path / AUDIT, json.dumps({"bounds": [bound]}))
    (answer,) = ask(ask_audit(None, Stage(tmp_path, "", {})))  # type: ignore[arg-type]
    assert answer.sentence == (
        f"{demand}, but measured 20.12 %; demand t_closeness or beta_likeness of Köln, or raise k"
    )


def test_every_bound_of_the_spec_has_its_check() -> None:
    spec = ReleaseSpec.model_validate(policy() | {"audit": {"linkage": 0.1, "attribute_inference": {"ill": 0.4}}})
    assert len(checks_of(spec)) == 2
    assert checks_of(ReleaseSpec.model_validate(policy())) == {}
