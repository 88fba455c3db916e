"""What specs may say of each technique: limits and defaults of parameters are a promise to those who wrote a spec."""

from __future__ import annotations

from typing import Any

from anon_pipeline.masking.catalog import TECHNIQUES

SIGNS = {
    "minimum": ">=",
    "exclusiveMinimum": ">",
    "maximum": "<=",
    "exclusiveMaximum": "<",
    "minLength": "letters >=",
    "maxLength": "letters <=",
    "minItems": "items >=",
    "maxItems": "items <=",
    "minProperties": "entries >=",
    "multipleOf": "times",
    "default": "else",
}

LIMITS: dict[str, dict[str, str]] = {
    "aggregate": {
        "columns": "items >= 1",
        "means": "else []",
        "threshold": ">= 2, <= 2147483648, else 10",
        "dominance": "n >= 1, <= 100, else 1; share > 0, < 1, else 0.85; p_percent >= 0, < 100, else 20",
    },
    "bin": {"start": "else 0", "edges": "items >= 1", "show": "else interval"},
    "correlated_noise": {"columns": "items >= 1", "share": "> 0, <= 100.0"},
    "donut": {
        "columns": "items >= 1",
        "digits": ">= 0, <= 12, else 6",
        "one_move_per": "else place",
        "inner": ">= 0, <= 5000000",
        "outer": ">= 0, <= 5000000",
    },
    "encrypt": {"domain": "letters >= 1, letters <= 200"},
    "fake": {"domain": "letters >= 1, letters <= 200", "locale": "else en_US"},
    "grid_cell": {"columns": "items >= 1", "into": "letters >= 1", "metres": ">= 1, <= 1000000"},
    "h3_cell": {"columns": "items >= 1", "into": "letters >= 1", "resolution": ">= 0, <= 15"},
    "hash": {},
    "hierarchy": {
        "groups": "entries >= 1",
        "file": "letters >= 1",
        "level": ">= 1, <= 100, else 1",
        "delimiter": "letters >= 1, letters <= 1, else ;",
        "others": "else *",
    },
    "keep_format": {"letter": "else X", "digit": "else 9"},
    "local_frequencies": {"epsilon": "> 0, <= 50", "categories": "items >= 2, items <= 2000"},
    "local_suppression": {"columns": "items >= 1", "k": ">= 2, <= 2147483648", "importance": "else {}"},
    "mask": {
        "first": ">= 0, <= 10000, else 0",
        "last": ">= 0, <= 10000, else 0",
        "character": "letters >= 1, letters <= 1, else *",
        "stars": ">= 1, <= 10000",
    },
    "mdav": {"columns": "items >= 1", "k": ">= 2, <= 1000", "show": "else mean"},
    "microaggregate": {"k": ">= 2, <= 1000", "method": "else optimal", "show": "else mean"},
    "noise": {
        "distribution": "else gaussian",
        "deviation": "> 0",
        "share": "> 0, <= 100.0",
        "bounds": "items >= 2, items <= 2",
    },
    "planar_laplace": {
        "columns": "items >= 1",
        "digits": ">= 0, <= 12, else 6",
        "one_move_per": "else row",
        "epsilon": "> 0",
        "level": "> 0, <= 50",
        "radius": "> 0, <= 1000000",
    },
    "population_donut": {
        "columns": "items >= 1",
        "digits": ">= 0, <= 12, else 6",
        "one_move_per": "else place",
        "k": ">= 2, <= 10000",
        "inner_share": ">= 0, < 1, else 0.1",
        "least": ">= 0, > 0, <= 5000000, else 100",
    },
    "pram": {"retention": "> 0, < 1", "matrix": "entries >= 1", "categories": "items >= 2", "invariant": "else False"},
    "prefix": {"length": ">= 1, <= 10000"},
    "proportional_noise": {"share": "> 0, <= 0.5"},
    "pseudonymize": {
        "domain": "letters >= 1, letters <= 200",
        "bits": ">= 96, <= 256, times 8, else 128",
        "encoding": "else base32",
    },
    "quantile_bin": {"bins": ">= 2, <= 1000"},
    "quantile_code": {"bottom": "> 0, < 1", "top": "> 0, < 1", "show": "else limit"},
    "randomized_response": {"epsilon": "> 0, <= 50", "categories": "items >= 2, items <= 2000"},
    "rank_swap": {},
    "redact": {"by": "letters <= 10000, else [redacted]", "missing": "else False"},
    "replace": {"pattern": "letters >= 1, letters <= 10000", "by": "letters <= 10000, else *"},
    "round": {"how": "else nearest"},
    "sample": {"columns": "else []", "share": "> 0, < 1"},
    "suppress": {},
    "suppress_cells": {"values": "else []", "pattern": "letters <= 10000"},
    "suppress_rare": {"k": ">= 2, <= 2147483648", "by": "letters >= 1"},
    "synthesize": {
        "columns": "items >= 1",
        "mode": "else partial",
        "given": "else []",
        "share": "> 0, < 1",
        "leaf": ">= 2, <= 1000000, else 10",
        "train": ">= 100, else 100000",
    },
    "top_bottom_code": {},
    "truncate_date": {},
    "unary_encoding": {"epsilon": "> 0, <= 50", "categories": "items >= 2, items <= 2000"},
}


def stated(parameter: dict[str, Any], definitions: dict[str, Any]) -> str:
    """What a JSON schema says of a parameter, as "> 0, <= 100, else 1"; of one with parts, each of them."""
    says = dict(parameter)
    for kind in parameter.get("anyOf", ()):
        says |= kind
    if "$ref" in says and (parts := definitions[says["$ref"].rsplit("/", 1)[-1]].get("properties")):
        return "; ".join(f"{name} {stated(part, definitions)}" for name, part in parts.items())
    return ", ".join(f"{sign} {says[key]}" for key, sign in SIGNS.items() if says.get(key) is not None)


def test_limits_and_defaults_of_parameters_stay_what_specs_rely_on() -> None:
    found = {}
    for technique, model in TECHNIQUES.items():
        schema = model.model_json_schema()
        told = {name: stated(parameter, schema.get("$defs", {})) for name, parameter in schema["properties"].items()}
        found[technique] = {name: text for name, text in told.items() if text and name not in ("technique", "key")}
    assert found == LIMITS


def test_which_techniques_end_draw_or_are_heavy() -> None:
    def having(name: str) -> set[str]:
        return {technique for technique, model in TECHNIQUES.items() if getattr(model, name, False)}

    assert having("ends") == {"encrypt", "fake", "hash", "pseudonymize", "redact", "suppress"}
    assert having("heavy") == {"bin", "hierarchy", "keep_format", "mask", "replace"}
    assert having("random") == {
        "correlated_noise", "donut", "local_frequencies", "noise", "planar_laplace", "population_donut", "pram",
        "proportional_noise", "randomized_response", "rank_swap", "sample", "synthesize", "unary_encoding",
    }  # fmt: skip
