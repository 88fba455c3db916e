"""A manifest as Adult's, the page that the report makes of it, and a reader of pages. Holds no test."""

import copy
import re
from html.parser import HTMLParser
from typing import Any

from anon_pipeline.report import release_report

VOID = {"meta", "link", "br", "wbr", "hr", "img", "input", "circle", "path", "rect", "line"}


#: Columns, scores and sizes of classes as Adult has them.
ROLES: dict[str, dict[str, Any]] = {
    "age": {"role": "quasi_identifier", "type": "numeric", "grid": 1.0, "why": None},
    "education": {"role": "quasi_identifier", "type": "categorical", "grid": None, "why": "known to colleagues"},
    "hours_per_week": {"role": "quasi_identifier", "type": "numeric", "grid": None, "why": None},
    "income": {"role": "sensitive", "type": "categorical", "grid": None, "why": "what a person earns is private"},
    "capital_gain": {"role": "sensitive", "type": "numeric", "grid": None, "why": None},
    "fnlwgt": {"role": "exclude", "type": None, "grid": None, "why": "a weight of the sample, nearly unique"},
}
SCORES = {
    "accuracy": ((0.8741, 0.8705, 0.8777), (0.8737, 0.8699, 0.8775), (-0.0004, -0.0019, 0.0011)),
    "balanced_accuracy": ((0.7993, 0.7931, 0.8055), (0.7951, 0.789, 0.8012), (-0.0042, -0.0078, -0.0006)),
    "roc_auc": ((0.9292, 0.9262, 0.9322), (0.9276, 0.9245, 0.9307), (-0.0016, -0.0025, -0.0007)),
}
SIZES = [("1", 0, 0), ("2", 0, 0), ("3-4", 0, 0), ("5-9", 0, 0), ("10-19", 1452, 20109), ("20-49", 602, 17480)]
SIZES += [
    ("50-99", 96, 6301),
    ("100-199", 21, 2790),
    ("200-499", 3, 801),
    ("500-999", 1, 812),
    ("1000 or more", 0, 0),
]


def risk(most: float, mean: float, above: list[float], unique: int, records: list[int]) -> dict[str, Any]:
    labels = ("1", "2", "3-4", "5-9", "10-19", "20-49", "50-99", "100-199", "200-499", "500-999")
    return {
        "records": 48842,
        "classes": 2175,
        "unique_records": unique,
        "prosecutor": {"max": most, "mean": mean, "share_above": dict(zip(("0.05", "0.2"), above, strict=True))},
        "journalist": None,
        "marketer": mean,
        "records_by_class_size": dict(zip(labels, records, strict=True)),
    }


def spec_content() -> dict[str, Any]:
    """What the manifest says of the spec."""
    return {
        "columns": copy.deepcopy(ROLES),
        "target": "income",
        "privacy": [
            {"model": "k_anonymity", "k": 10},
            {"model": "l_diversity", "column": "income", "kind": "distinct", "l": 2, "c": None, "bins": None},
        ],
        "guide": {
            "model": "gradient_boosting",
            "on": "probability",
            "predictions": "out_of_fold",
            "folds": 5,
            "spread": 1.0,
            "orders": "both",
        },
        "recode": {"numeric": "median", "categorical": "mode", "form": "value"},
        "seed": 0,
    }


def measured_content() -> dict[str, Any]:
    """What was measured of the released table."""
    return {
        "class_sizes": {
            "classes": 2175,
            "smallest": 10,
            "median": 17.0,
            "mean": 22.2037,
            "largest": 812,
            "groups": [{"size": size, "classes": classes, "people": people} for size, classes, people in SIZES],
        },
        "columns": {
            "age": {"groups": 1204, "width": 3.0, "exact": 0.124, "withheld": 0.0, "unit": "years"},
            "education": {"groups": 97, "width": 2.0, "exact": 0.0, "withheld": 0.004},
        },
        "information_loss": {
            "columns": {"age": 0.112, "education": 0.231, "hours_per_week": 0.0004},
            "mean": 0.1145,
        },
        "sensitive": {
            "income": {
                "distinct_l": 2.0,
                "entropy_l": 1.18,
                "recursive_c": 24.0,
                "alpha": 0.96,
                "t": 0.58,
                "beta": 3.17,
                "delta": 1.79,
                "homogeneity": 0.0,
            },
            "capital_gain": {
                "distinct_l": 1.0,
                "entropy_l": 1.0,
                "recursive_c": None,
                "alpha": 1.0,
                "t": 0.21,
                "beta": 6.4,
                "delta": None,
                "homogeneity": 0.3834,
            },
        },
        "risk": {
            "before": risk(1.0, 0.712, [0.981, 0.902], 28790, [28790, 6102, 5110, 4209, 2802, 1500, 329, 0, 0, 0]),
            "after": risk(0.1, 0.045, [0.389, 0.0], 0, [0, 0, 0, 0, 20109, 17480, 6301, 2790, 801, 812]),
        },
    }


def utility_content() -> dict[str, Any]:
    """Accuracy before and after."""
    return {
        "model": "gradient_boosting",
        "task": "classification",
        "folds": 5,
        "rows": 48842,
        "metrics": {
            name: {
                when: {"mean": mean, "low": low, "high": high, "per_fold": [mean] * 5}
                for when, (mean, low, high) in zip(("before", "after", "difference"), three, strict=True)
            }
            for name, three in SCORES.items()
        },
    }


def manifest_content() -> dict[str, Any]:
    """A manifest with every part there is, figures as Adult has them."""
    return {
        "format": 1,
        "dataset": "adult",
        "description": "48,842 people of the 1994 United States census, and whether they earn above $50,000 a year.",
        "version": "3f9c1a7be042",
        "created": "2026-02-03T03:00:12+00:00",
        "previous": "77d0e2b61c55",
        "spec": spec_content(),
        "spec_hash": "5c" * 32,
        "source": {
            "rows": 48842,
            "commitment": "9a" * 32,
            "columns": [{"name": "age", "role": "quasi_identifier", "type": "numeric"}],
        },
        "rows": {"source": 48842, "released": 48293, "suppressed": 549},
        "measured": measured_content(),
        "utility": utility_content(),
        "checks": [
            check("raw_data", "has_people", "at least k = 10 people", 48842),
            check("raw_data", "has_types", "no column is stored as another type than the spec declares", 0),
            check("anonymized_table", "k_anonymity", "every class has at least 10 people", 10),
            check("anonymized_table", "accounts_for_every_row", "released and suppressed rows differ by: 0", 0),
        ],
        "verified": [
            finding("k_anonymity", "every class has at least 10 people", 10.0),
            finding("l_diversity_income", "every class has at least 2 distinct values of income", 2.0),
        ],
        "content_hashes": {"data.parquet": "d1" * 32, "classes.parquet": "c2" * 32},
        "lineage": {name: [name] for name, column in ROLES.items() if column["role"] != "exclude"},
        "software": {
            "python": "3.11.9",
            "anon_pipeline": "0.1.0",
            "code": "ab" * 32,
            "packages": {"duckdb": "2.0.1", "numpy": "2.3.1", "scikit-learn": "1.9.0"},
        },
        "runs": {"dagster": "0f6c2b1e-90e1-4c57-a0c1-4b8d7c7c5f10", "mlflow": "6b1f0a0c2f5e4a61b3c3f8a4f1f8c111"},
    }


def check(
    asset: str, name: str, demand: str, measured: object, passed: bool = True, crashed: bool = False
) -> dict[str, Any]:
    return {"name": name, "asset": asset, "demand": demand, "measured": measured, "passed": passed, "crashed": crashed}


def finding(name: str, demand: str, measured: float | None, failing: int = 0) -> dict[str, Any]:
    return {"name": name, "demand": demand, "measured": measured, "failing": failing, "holds": failing == 0}


class Reader(HTMLParser):
    """Reads a page as a browser would, and insists that every tag is closed where it was opened."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.children: list[tuple[str, str]] = []  # (parent, tag)
        self.words: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.children.append((self.open[-1] if self.open else "", tag))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.children.append((self.open[-1] if self.open else "", tag))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        if self.headings and self.open and re.fullmatch("h[1-6]", self.open[-1]):
            level, text = self.headings[-1]
            self.headings[-1] = (level, f"{text}{data}".strip())
        if self.tags and self.tags[-1][0] == "wbr":
            self.words[-1] += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def headings_at(self, level: int) -> list[str]:
        return [text for one, text in self.headings if one == level]


def read(content: dict[str, Any]) -> Reader:
    return Reader(release_report.render(content))
