"""Imports run one way, as the contracts in pyproject.toml say."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_no_layer_imports_from_above(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    broken = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert not broken, capsys.readouterr().out


def test_the_contracts_are_there_to_be_broken() -> None:
    import tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert {"layers", "forbidden"} <= {contract["type"] for contract in contracts}
    forbidden = [contract for contract in contracts if contract["type"] == "forbidden"]
    below = next(one for one in forbidden if "dagster" in one["forbidden_modules"])
    assert set(below["forbidden_modules"]) >= {"dagster", "great_expectations", "mlflow"}
    attack = next(one for one in forbidden if one["source_modules"] == ["anon_pipeline.attack"])
    layers = next(contract for contract in contracts if contract["type"] == "layers")["layers"]
    others = {part.strip() for layer in layers for part in layer.split(":")}
    # Whatever layer is added is closed to the attacks, too.
    closed = {"anon_pipeline.definitions", *attack["forbidden_modules"]}
    shared = {"arrays", "errors", "imports", "plain_json", "preloaded", "threads", "workers"}
    assert others - closed == {"anon_pipeline.attack", *(f"anon_pipeline.{name}" for name in shared)}
