from pathlib import Path

import pytest

from anon_pipeline.home import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home").prepare()
    monkeypatch.setenv("ANON_PIPELINE_HOME", str(home.root))
    return home
