"""The models of these tests are code of our own."""

import pytest

from anon_pipeline.spec.permission import ALLOW_CODE


@pytest.fixture(autouse=True)
def _allow_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_CODE, "1")
