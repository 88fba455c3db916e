"""What classes show, and where rows go afterwards, is the same in every version and on every machine: it is pinned.

As in test_pinned_parts.py, for the steps after the grouping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from anon_pipeline.anonymize import classes, recode, release_space
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.encoding import apply_domain, count_cells, learn_domain
from anon_pipeline.anonymize.hierarchy import Calendar, Prefixes
from anon_pipeline.anonymize.labels import lowest_labels
from anon_pipeline.anonymize.levels import in_order, median_levels, named_spans
from anon_pipeline.anonymize.naming import Values, named_ends, scale
from anon_pipeline.anonymize.recoding_statistics import column_statistics
from anon_pipeline.anonymize.release_space import ReleaseSpace
from anon_pipeline.anonymize.storage import summaries_from_json, summaries_to_json
from anon_pipeline.anonymize.value_groups import group_values
from anon_pipeline.privacy.statistics import histogram
from anon_pipeline.tables import Domain
from anon_pipeline_tests.anonymize.test_pinned import people
from anon_pipeline_tests.anonymize.test_pinned_parts import LEVELS, digest
from anon_pipeline_tests.people import COLUMNS, random_frame

KINDS = sorted(COLUMNS)


def columns(seed: int, n: int, distinct: int, missing: float) -> Iterator[tuple[str, pd.Series, Domain, np.ndarray]]:
    """A column of every kind: its name, values, domain and codes."""
    frame = random_frame(np.random.default_rng(seed), n, {kind: kind for kind in KINDS}, distinct, missing)
    for name in frame:
        domain, codes = learn_domain(str(name), frame[name])
        yield str(name), frame[name], domain, codes


def grouped(codes: np.ndarray, width: int, seed: int, most: int) -> sparse.csr_array:
    """People by class and code: some classes are of neighbours, as those of a tree are, others of anybody."""
    draw = np.random.default_rng(seed)
    order = np.argsort(codes, kind="stable")
    group = np.empty(len(codes), dtype=np.int64)
    group[order] = np.arange(len(codes)) // most
    mixed = draw.random(len(codes)) < 0.1
    group[mixed] = draw.permutation(group[mixed])
    return histogram(group, codes.astype(np.int64), np.ones(len(codes), dtype=np.int64), (int(group.max()) + 1, width))


def of_scales() -> Iterator[Any]:
    for seed in range(60):
        draw = np.random.default_rng(seed)
        size, spread = int(draw.integers(1, 60)), int(draw.choice([20, 200, 10**6]))
        at = np.unique(draw.integers(-spread, spread, size)) * draw.choice([1, 2])
        wide = draw.integers(0, 3, len(at)) * (seed % 3 == 0)
        values = Values(at, np.maximum.accumulate(at + wide), (at + 1) // 2, draw.integers(0, 4, len(at)))
        for k in (2, 5, 11):
            found = scale(values, k)
            yield from (found.points, found.of_few, found.between, found.apart, found.open_below, found.open_above)
            for use in (found.lower(values.first), found.upper(values.last)):
                yield from use
            yield found.stand_in(values.first, values.last, values.nearest)
        named = draw.random(len(at)) < 0.4
        first = draw.integers(0, len(at), 9)
        yield from named_ends(first, np.minimum(first + draw.integers(0, 5, 9), len(at) - 1), values.people, named)


def of_summaries() -> Iterator[Any]:
    for seed, n, distinct, missing in ((0, 300, 40, 0.0), (1, 200, 8, 0.2), (2, 120, 300, 0.7), (3, 40, 3, 0.1)):
        for _, _, domain, codes in columns(seed, n, distinct, missing):
            for k, most in ((2, 2), (5, 7), (12, 40)):
                members = grouped(codes, len(domain), seed, most)
                if not domain.ordered:
                    told: recode.Summary = recode.summarize_category(domain, members, k)
                    sets = [list(map(str, names)) for names in told.sets()]  # type: ignore[union-attr]
                    yield from (told.representative, told.ranges(), repr(sets))
                    continue
                grid = recode.default_grid(domain, k)
                told = recode.summarize_ordered(domain, members, grid * (1 + seed), k)
                assert isinstance(told, recode.OrderedSummary)
                yield from (grid, told.withheld, told.open_low, told.open_high, told.known, told.missing)
                yield from (told.missing_told, told.ranges(), told.representative.astype(str))


def of_levels_and_labels() -> Iterator[Any]:
    for seed in range(12):
        draw = np.random.default_rng(seed)
        frame = pd.DataFrame(
            {
                "town": pd.Series(draw.choice(LEVELS["town"], 60, p=[0.05, 0.4, 0.3, 0.2, 0.05])),
                "code": pd.Series(draw.choice(["1011", "1012", "1020", "2011", "2013", "3055"], 60)),
                "since": np.datetime64("2001-01-01") + draw.integers(0, 700 * (1 + seed % 5), 60).astype("m8[D]"),
            }
        ).mask(draw.random((60, 3)) < 0.15)
        for name in frame:
            domain, codes = learn_domain(name, frame[name])
            for k, most in ((2, 3), (4, 6), (9, 20)):
                members = grouped(codes, len(domain), seed, most)
                if name == "town":
                    levels = in_order(domain, LEVELS["town"]).levels
                    assert levels is not None
                    named = np.asarray(members.sum(axis=0)).ravel() >= k
                    yield median_levels(levels, members, -1, named)
                    yield from named_spans(levels, members, named)
                    told = recode.summarize_category(replace(domain, levels=levels), members, k)
                    yield from (told.ranges(), repr(told.sets()))
                    continue
                hierarchy = Calendar() if name == "since" else Prefixes((2, 1))
                labels = lowest_labels(domain, hierarchy.nodes(domain), members, k)
                yield from (labels.texts, labels.levels)


def of_tables() -> Iterator[Any]:
    """The class table, its figures and the recoded columns, with people left out, and all of it after storing."""
    for form, k in (("value", 4), ("range", 9)):
        table, _, guidance = people(300)
        learned = [learn_domain(str(name), table[name]) for name in table]
        codes = np.stack([code for _, code in learned], axis=1)
        cells, _ = count_cells(tuple(domain for domain, _ in learned), codes, guidance)
        group = np.arange(len(cells.counts)) // (3 * k) - 1  # the first ones are left out
        number = int(group.max()) + 1
        summaries = recode.summarize(cells, group, number, k, {"age": 5.0})
        sizes = classes.sizes(cells, group, number)
        for told in (summaries, summaries_from_json(summaries_to_json(summaries))):
            shown = classes.class_table(sizes, told)
            yield from (
                shown.astype(str).to_numpy(),
                shown.dtypes.astype(str),
                recode.recoded_table(told, form).to_pylist(),
            )
            yield repr(column_statistics(told, sizes, {"age": "years"}))
        for given in (summaries, ()):
            lost = classes.information_loss(cells, group, number, given)
            yield from (list(lost), list(lost.values()))


def of_new_rows() -> Iterator[Any]:
    """The codes of values that a column has and of others of its kind."""
    for seed, missing in ((0, 0.0), (1, 0.3)):
        fitted = {name: domain for name, _, domain, _ in columns(seed, 60, 8, missing)}
        for name, column, _, codes in columns(seed + 5, 60, 40, 0.2):
            yield from (apply_domain(fitted[name], column), codes)


def of_release_spaces() -> Iterator[Any]:
    table, _, guidance = people(500)
    table = table.assign(kept=table["age"].notna(), half=table["age"].astype("float64") / 2)
    shown = AnonymizerTree(k=6).fit(table.iloc[:400], guidance[:400]).classes_
    space = ReleaseSpace(shown)
    rows = table.iloc[300:]
    with pytest.MonkeyPatch.context() as patch:
        for at_once in (4_000_000, 1000, 1):
            patch.setattr(release_space, "AT_ONCE", at_once)
            yield space.apply(rows)
    moved = space.transform(rows)
    yield from (moved.astype(str).to_numpy(), moved.dtypes.astype(str))
    for column, values in zip(space.columns, (rows[name] for name in rows), strict=True):
        known, place = column.distinct(values)
        yield from (np.array(list(map(str, known))), place, column.likelihood(known))  # type: ignore[arg-type]
    strange = rows.assign(age=[500, -500] * 100, town="Rome", code=None, half=np.nan)
    yield space.apply(strange)


def of_value_groups() -> Iterator[Any]:
    for seed, n, distinct, missing in ((0, 200, 40, 0.0), (1, 200, 12, 0.2), (2, 60, 300, 0.02), (3, 30, 3, 0.7)):
        for _, column, domain, _ in columns(seed, n, distinct, missing):
            for smallest, alone in ((1, 0), (5, 0), (5, 20), (40, 0)):
                groups = group_values(domain, smallest, alone)
                yield from (groups.labels, groups.of_code)
                if groups.place is not None and column.notna().any():
                    yield groups.place(domain.values[::-1])


PARTS: dict[Callable[[], Iterator[Any]], str] = {
    of_scales: "99b5fe54caec",
    of_summaries: "8f980635c403",
    of_levels_and_labels: "686ee7bc30d8",
    of_tables: "5ed08ecc09af",
    of_new_rows: "fe7426674c8b",
    of_release_spaces: "27059968f7ee",
    of_value_groups: "f23e79b02a92",
}


@pytest.mark.long
@pytest.mark.parametrize(("shown", "pinned"), PARTS.items(), ids=lambda given: getattr(given, "__name__", ""))
def test_each_part_shows_the_same_in_every_version(shown: Callable[[], Iterator[Any]], pinned: str) -> None:
    assert digest(shown()) == pinned
