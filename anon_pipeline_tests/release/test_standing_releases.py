"""Which releases of a home are judged beside a candidate."""

from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.home import Home
from anon_pipeline.release.publication import publish_folder
from anon_pipeline.release.standing_releases import standing_releases


@pytest.mark.parametrize("content", [{"questions": {}}, {"kind": "synthetic"}])
def test_noisy_answers_and_synthetic_people_have_no_classes_to_judge(tmp_path: Path, content: dict[str, Any]) -> None:
    """A home with noisy answers could release nothing any more."""
    home = Home(tmp_path / "home").prepare()

    def write(staged: Path) -> dict[str, Any]:
        (staged / "answers.json").write_text("{}\n", encoding="utf-8")
        return {"dataset": "people", "version": "a1", **content}

    publish_folder(home, "people", "a1", write)
    assert standing_releases(home) == []
