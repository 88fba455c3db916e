"""The stored answers of checks that a release requires: all must be there, and all must have passed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

from anon_pipeline.errors import Refused
from anon_pipeline.home import write_file
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.stages import Stage, Stages

ANSWERS = "answers.json"


def keep_answers(
    stages: Stages,
    name: str,
    sources: dict[str, Stage],
    answers: Sequence[Answer],
    facts: dict[str, Any] | None = None,
) -> None:
    """Store the answers of the checks of this name, with the identities of the files that they judged."""
    with stages.store(name, sources, facts or {}) as folder:
        write_file(folder / ANSWERS, json.dumps([plain(answer) for answer in answers]))


def plain(answer: Answer) -> dict[str, Any]:
    """An answer as in the manifest, without its remedy, which a release does not need."""
    return {name: value for name, value in dataclasses.asdict(answer).items() if name != "remedy"}


def require_answers(stage: Stage | None, expected: Iterable[str]) -> list[dict[str, Any]]:
    """The stored answers, with all expected ones, all passed; without a stage no check was asked.

    Raises
    ------
    Refused
        If an answer is missing or did not pass.
    """
    answers = [] if stage is None else json.loads((stage.folder / ANSWERS).read_text())
    broken = [answer for answer in answers if answer["passed"] is not True]
    absent = [f"{name}: was not asked" for name in set(expected) - {answer["name"] for answer in answers}]
    if broken or absent:
        raise Refused(
            [f"{answer['name']}: {answer['sentence']}" for answer in broken] + absent,
            [f"{answer['name']}: {answer['demand']}" for answer in broken] + absent,
        )
    return list(answers)
