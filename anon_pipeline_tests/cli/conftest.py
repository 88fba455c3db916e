from pathlib import Path

import pytest

from anon_pipeline.home import VARIABLE, Home
from anon_pipeline_tests.cli.printed import Printed, printed_by


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return printed_by(capsys)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home, which the environment names."""
    home = Home(tmp_path / "home").prepare()
    monkeypatch.setenv(VARIABLE, str(home.root))
    return home
