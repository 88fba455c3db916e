"""Questions put to Great Expectations, for the tests that look at the answers alone."""

from collections.abc import Sequence

from anon_pipeline.pipeline.expectations.questions import Answer, Question, validate
from anon_pipeline.workers import ALONE


def ask(questions: Sequence[Question]) -> list[Answer]:
    """The answers, in the order of the questions."""
    return validate(questions, ALONE, "checks").answers
