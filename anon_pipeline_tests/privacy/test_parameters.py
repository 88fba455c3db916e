"""What specs may ask of each privacy model: the limits of its numbers, what is taken where nothing is said."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from anon_pipeline.spec import load_privacy_model

MOST = 2**31

#: By model and parameter: the rest of a demand, the outermost numbers that are taken, and the nearest that are not.
LIMITS: list[tuple[str, str, dict[str, Any], list[float], list[float]]] = [
    ("k_anonymity", "k", {}, [2], [1]),
    ("l_diversity", "l", {"column": "x"}, [2, MOST], [1, MOST + 1, 2.5]),
    ("l_diversity", "l", {"column": "x", "kind": "entropy"}, [1.01, MOST], [1.0, MOST + 1]),
    ("l_diversity", "c", {"column": "x", "kind": "recursive", "l": 2}, [0.01, 1e9], [0, math.inf, math.nan]),
    ("alpha_k_anonymity", "alpha", {"column": "x", "k": 2}, [0.01, 1], [0, 1.01]),
    ("alpha_k_anonymity", "k", {"column": "x", "alpha": 0.5}, [2], [1]),
    ("t_closeness", "t", {"column": "x"}, [0, 1], [-0.01, 1.01]),
    ("beta_likeness", "beta", {"column": "x"}, [0.01, 1e9], [0, math.inf, math.nan]),
    ("delta_disclosure", "delta", {"column": "x"}, [0.01, 1e9], [0, math.inf, math.nan]),
    ("k_map", "k", {"population": "p"}, [2], [1]),
    ("delta_presence", "min", {"population": "p", "max": 1}, [0, 1], [-0.01, 1.01]),
    ("delta_presence", "max", {"population": "p", "min": 0}, [0.01, 1], [0, 1.01]),
]


@pytest.mark.parametrize(("name", "parameter", "rest", "taken", "refused"), LIMITS)
def test_a_number_at_its_limit_is_taken_and_one_beyond_is_refused(
    name: str, parameter: str, rest: dict[str, Any], taken: list[float], refused: list[float]
) -> None:
    model = load_privacy_model(name)
    for number in taken:
        assert getattr(model.model_validate({**rest, parameter: number}), parameter) == number
    for number in refused:
        with pytest.raises(ValidationError):
            model.model_validate({**rest, parameter: number})


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("l_diversity", {"column": "", "l": 2}),
        ("alpha_k_anonymity", {"column": "", "alpha": 0.5, "k": 2}),
        ("k_map", {"population": "", "k": 2}),
        ("l_diversity", {"column": "x", "l": 2, "bins": []}),
    ],
)
def test_a_name_has_a_letter_and_bins_an_edge(name: str, asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        load_privacy_model(name).model_validate(asked)
    short = {key: value or ("x" if value == "" else [1]) for key, value in asked.items()}
    assert load_privacy_model(name).model_validate(short)


@pytest.mark.parametrize(
    ("name", "asked", "larger_is_safer", "monotone"),
    [
        ("k_anonymity", {"k": 2}, True, True),
        ("l_diversity", {"column": "x", "l": 2}, True, True),
        ("l_diversity", {"column": "x", "l": 2, "kind": "entropy"}, True, True),
        ("l_diversity", {"column": "x", "l": 2, "kind": "recursive", "c": 1}, False, True),
        ("alpha_k_anonymity", {"column": "x", "alpha": 0.5, "k": 2}, False, True),
        ("t_closeness", {"column": "x", "t": 0.1}, False, True),
        ("beta_likeness", {"column": "x", "beta": 1}, False, True),
        ("delta_disclosure", {"column": "x", "delta": 1}, False, True),
        ("delta_disclosure", {"column": "x", "delta": 1, "kind": "observed"}, False, False),
        ("k_map", {"population": "p", "k": 2}, True, True),
        ("delta_presence", {"population": "p", "min": 0, "max": 1}, False, True),
    ],
)
def test_which_end_of_a_measure_is_safe_and_what_merging_keeps(
    name: str, asked: dict[str, Any], larger_is_safer: bool, monotone: bool
) -> None:
    model: Any = load_privacy_model(name).model_validate(asked)
    assert (model.larger_is_safer, model.monotone) == (larger_is_safer, monotone)
