"""Tables of people for tests: at random with mixed types, as files, and their specs. Holds no test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from hypothesis import strategies as st

from anon_pipeline.keys import Key
from anon_pipeline.spec import ReleaseSpec

#: A private key, as a test has one.
KEY = Key(bytes(range(32)))

#: Texts that others mistake for numbers, missing values, markup or each other.
TEXTS = ["Ulm", "Łódź", "東京", "007", "7", "7.0", "nan", "None", "", " ", "*", "missing", "{a, b}", 'q"q', "a\nb"]

Column = Callable[[np.random.Generator, int, int], pd.Series]


def _of(values: Any, generator: np.random.Generator, n: int) -> pd.Series:
    values = pd.Series(values)
    return values.take(generator.integers(len(values), size=n)).reset_index(drop=True)


#: Kinds of columns: a generator, n rows and about how many distinct values give a column.
COLUMNS: dict[str, Column] = {
    "whole": lambda g, n, m: pd.Series(g.integers(-m, m + 1, n)),
    "negative": lambda g, n, m: pd.Series(-g.integers(50, 50 + m, n).astype(np.int16)),
    "huge": lambda g, n, m: _of(g.integers(-(10**17), 10**17, m), g, n),
    "neighbours": lambda g, n, m: pd.Series(2**53 + g.integers(0, m, n)),
    "near_unique": lambda g, n, m: pd.Series(g.normal(1e6, 1e3, n)),
    "tiny": lambda g, n, m: _of(g.normal(0, 1e-7, m), g, n),
    "offset": lambda g, n, m: pd.Series(1e12 + g.random(n)),
    "tenths": lambda g, n, m: pd.Series(g.integers(-m, m, n) * 0.1),
    "single": lambda g, n, m: pd.Series(g.integers(-m, m, n).astype(np.float32) / 4),
    "boolean": lambda g, n, m: pd.Series(g.random(n) < 0.7),
    "nullable_boolean": lambda g, n, m: pd.Series(g.random(n) < 0.7, dtype="boolean"),
    "nullable_whole": lambda g, n, m: pd.Series(g.integers(0, m + 1, n), dtype="Int64"),
    "date": lambda g, n, m: pd.Series(np.datetime64("1969-12-01", "ns") + g.integers(0, m * 9, n).astype("m8[D]")),
    "moment": lambda g, n, m: pd.Series(np.datetime64("1999-12-31", "us") + g.integers(0, m * 10**9, n)),
    "zoned": lambda g, n, m: COLUMNS["moment"](g, n, m).dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
    "text": lambda g, n, m: _of(TEXTS[: max(1, m)], g, n),
    "string": lambda g, n, m: _of(TEXTS[: max(1, m)], g, n).astype("string"),
    "category": lambda g, n, m: _of(TEXTS[: max(1, m)], g, n).astype("category"),
    "constant": lambda g, n, m: pd.Series(np.full(n, 0.37)),
    "one_text": lambda g, n, m: pd.Series(["same"] * n),
    "unknown": lambda g, n, m: pd.Series(np.full(n, np.nan)),
}


@dataclass(frozen=True)
class Table:
    """People, what a model says of each (two columns of guidance), and a k that they allow."""

    frame: pd.DataFrame
    guidance: np.ndarray
    k: int


def random_frame(
    generator: np.random.Generator, n: int, kinds: Mapping[str, str], distinct: int, missing: float
) -> pd.DataFrame:
    """n rows of columns of these kinds (name to kind), a share of their values missing."""
    columns = {}
    for name, kind in kinds.items():
        column = COLUMNS[kind](generator, n, distinct)
        gone = generator.random(n) < missing
        columns[name] = column.mask(gone) if gone.any() else column
    return pd.DataFrame(columns)


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 60, kinds: list[str] | None = None) -> Table:
    """Small tables in which ties, constants, missing values and lone values are common; k from 2 to n."""
    n = draw(st.integers(2, most_rows))
    chosen = draw(st.lists(st.sampled_from(kinds or sorted(COLUMNS)), min_size=1, max_size=4))
    distinct = draw(st.sampled_from([1, 2, 3, 8, 40]))
    missing = draw(st.sampled_from([0.0, 0.0, 0.1, 0.6]))
    k = draw(st.integers(2, min(n, 6)) | st.integers(2, n))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    frame = random_frame(generator, n, {f"{kind} {i}": kind for i, kind in enumerate(chosen)}, distinct, missing)
    return Table(frame, generator.random((n, 2)).round(draw(st.sampled_from([0, 1, 9]))), k)


def write_spec(folder: Path, columns: Mapping[str, Any], path: str, k: int = 2, **more: Any) -> ReleaseSpec:
    """The spec of a source in `folder`, written there and loaded.

    `columns` maps a name to its role or to all that is said of it; the target is `t` where no other is given. A source
    whose `path` is None lies elsewhere.
    """
    source = {"path": path, **more.pop("source", {})}
    content = {
        "dataset": "people",
        "source": {name: value for name, value in source.items() if value is not None},
        "target": "t",
        "columns": {name: {"role": said} if isinstance(said, str) else dict(said) for name, said in columns.items()},
        "privacy": {"k_anonymity": {"k": k}},
        **more,
    }
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return ReleaseSpec.load(file)
