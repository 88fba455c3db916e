"""Another value at a path of a spec: it takes effect, and it alone, or the path is refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec, TradeOff

TEXT = """\
dataset: people
source: {path: people.csv, missing: ["?"]}
target: illness
columns:
  age: {role: quasi_identifier, type: numeric, grid: 5}
  city: {role: quasi_identifier}
  illness: {role: sensitive}
  income: {role: sensitive, type: numeric}
privacy:
  k_anonymity: {k: 10}
  l_diversity: [{column: illness, l: 2}, {column: income, l: 3, bins: [10, 20, 30]}]
  t_closeness: {column: illness, t: 0.3, hierarchy: {sick: [flu, angina], well: [none]}}
guide: {model: {import: "my.models:forest"}, on: label}
schedule: "0 3 * * *"
"""


def load(folder: Path, text: str = TEXT) -> ReleaseSpec:
    (folder / "release.yaml").write_text(text, encoding="utf-8")
    return ReleaseSpec.load(folder)


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Plain data as one value per path."""
    if isinstance(value, dict):
        return {key: one for name, part in value.items() for key, one in leaves(part, f"{path}.{name}").items()}
    if isinstance(value, list):
        return {key: one for name, part in enumerate(value) for key, one in leaves(part, f"{path}.{name}").items()}
    return {path: value}


def test_nothing_replaced_is_the_same_policy_in_the_same_folder(tmp_path: Path) -> None:
    spec = load(tmp_path)
    same = spec.replaced({})
    assert same == spec
    assert same.policy_hash == spec.policy_hash
    assert same.source_path == spec.source_path == (tmp_path / "people.csv").resolve()


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        ("privacy.k_anonymity.k", 25, {".privacy.0.k": 25}),
        ("privacy.l_diversity.1.l", 4, {".privacy.2.l": 4}),
        ("privacy.l_diversity.0.kind", "entropy", {".privacy.1.kind": "entropy"}),
        ("privacy.t_closeness.t", 0.1, {".privacy.3.t": 0.1}),
        ("guide.spread", 0.5, {".guide.spread": 0.5}),
        ("suppression.limit", 0.01, {".suppression.limit": 0.01}),
        ("columns.age.grid", 10, {".columns.age.grid": 10.0}),
        ("guide.model", "linear", {".guide.model": "linear", ".guide.model.import": None}),
        ("source.missing.0", "-", {".source.missing.0": "-"}),
        ("recode", {"form": "range"}, {".recode.form": "range"}),
    ],
)
def test_what_stands_at_the_path_changes_and_nothing_else(
    tmp_path: Path, path: str, value: Any, changed: dict[str, Any]
) -> None:
    spec = load(tmp_path)
    before, after = leaves(spec.policy()), leaves(spec.replaced({path: value}).policy())
    different = {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert different == changed
    assert spec == load(tmp_path)


def test_several_at_once_and_the_spec_itself_stays(tmp_path: Path) -> None:
    spec = load(tmp_path)
    other = spec.replaced({"privacy.k_anonymity.k": 5, "guide.spread": 0})
    assert (other.k, other.guide.spread) == (5, 0)
    assert (spec.k, spec.guide.spread) == (10, 1)


def test_a_model_that_the_spec_lacks_is_added_when_all_it_needs_is_set(tmp_path: Path) -> None:
    spec = load(tmp_path)
    other = spec.replaced({"privacy.beta_likeness.column": "illness", "privacy.beta_likeness.beta": 2})
    (added,) = [demand for demand in other.privacy if demand not in spec.privacy]
    assert (added.name, added.column, added.beta) == ("beta_likeness", "illness", 2)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"beta_likeness.column: is missing"):
        spec.replaced({"privacy.beta_likeness.beta": 2})


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("guide.sprad", 1, r"guide.sprad: is not a key of the spec"),
        ("guid.spread", 1, r"guid: is not a key of the spec"),
        ("privacy.t_closness.t", 0.2, r"'t_closness' is no privacy model; known are"),
        ("privacy.k_anonymity.K", 5, r"k_anonymity.K: is not a key"),
        ("privacy.l_diversity.l", 3, r"privacy.l_diversity stands 2 times; say which one: privacy.l_diversity.0, "),
        ("privacy.l_diversity.2.l", 3, r"privacy.l_diversity stands 2 times"),
        ("target.name", "x", r"target.name: does not exist, since target is a single value"),
        ("privacy..k", 5, r"is no path into the spec"),
        ("", 5, r"is no path into the spec"),
        ("privacy.k_anonymity.k", 1, r"k_anonymity.k: must be greater than or equal to 2"),
        ("privacy.t_closeness.column", "city", r"'city' is no sensitive column"),
        ("target", "city", r"'city' is also a quasi-identifier"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, path: str, value: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        load(tmp_path).replaced({path: value})
    assert "\n" not in str(refused.value)
    assert "pydantic" not in str(refused.value)


# ---------------------------------------------------------------------------------------------------- the trade-off


def test_a_price_list_does_not_change_the_policy_hash_since_it_cannot_change_a_release(tmp_path: Path) -> None:
    varied = load(tmp_path, TEXT + "frontier: {k: [2, 5], set: {privacy.t_closeness.t: [0.2, 0.4]}}\n")
    assert varied.policy_hash == load(tmp_path).policy_hash
    assert varied.frontier is not None
    assert varied.frontier.settings() == [
        {"privacy.k_anonymity.k": k, "privacy.t_closeness.t": t} for k in (2, 5) for t in (0.2, 0.4)
    ]


@pytest.mark.parametrize(
    ("frontier", "sentence"),
    [
        ("{}", "names nothing to vary"),
        ("{k: [1]}", "k_anonymity.k: must be greater"),
        ("{set: {privacy.t_closeness.t: []}}", "has no values"),
        ("{set: {privacy.t_closeness.t: [2]}}", "t_closeness.t: must be less"),
        ("{set: {guide.model: [linear]}}", "guide.model: is no path that a trade-off can vary"),
        ("{set: {columns.age.role: [sensitive]}}", "columns.age.role: is no path that a trade-off can vary"),
        ("{k: [5], set: {privacy.k_anonymity.k: [2]}}", "varied twice"),
        ("{k: [5], sets: {}}", "frontier.sets: is not a key"),
    ],
)
def test_a_price_list_that_cannot_be_measured_is_told_when_the_spec_is_read(
    tmp_path: Path, frontier: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        load(tmp_path, TEXT + f"frontier: {frontier}\n")


def test_values_as_one_types_them() -> None:
    varied = TradeOff.parse("2,5, 5", ["privacy.t_closeness.t=0.2,.4", "privacy.l_diversity.0.kind=entropy"])
    assert [list(setting.values()) for setting in varied.settings()] == [
        [2, 0.2, "entropy"],
        [2, 0.4, "entropy"],
        [5, 0.2, "entropy"],
        [5, 0.4, "entropy"],
    ]


@pytest.mark.parametrize(
    ("k", "assignments", "sentence"),
    [
        ("two", [], "--k two: two is no whole number; write whole numbers with commas, as 2,5,10"),
        ("5,x", [], "--k 5,x: x is no whole number"),
        ("5,2.5", [], "2.5 is no whole number"),
        ("5,true", [], "True is no whole number"),
        ("", [], "--k : has no values that can be read"),
        ("[", [], "has no values that can be read"),
        (None, ["privacy.t_closeness.t"], "write a path, =, and values"),
        (None, ["privacy.t_closeness.t="], "has no values that can be read"),
        (None, ["suppression.limit=0", "suppression.limit=0.1"], "stands twice"),
        (None, ["seed=1,2"], "seed: is no path that a trade-off can vary"),
    ],
)
def test_what_was_mistyped_is_told(k: str | None, assignments: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TradeOff.parse(k, assignments)
