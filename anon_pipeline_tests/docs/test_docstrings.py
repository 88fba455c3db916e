"""The examples in the docstrings of the package show what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import anon_pipeline

PACKAGE = Path(anon_pipeline.__file__).parent
WITH_EXAMPLES = [
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text()
]


def test_there_are_examples() -> None:
    assert "anon_pipeline.anonymize.anonymizer" in WITH_EXAMPLES


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_of_a_module_hold(module: str) -> None:
    ran = doctest.testmod(importlib.import_module(module))
    assert ran.attempted > 0
    assert ran.failed == 0
