"""The parts of the grouping, each by itself, give the same numbers in every version and on every machine.

As in test_pinned.py a change here changes releases; here it is seen in which part. Numbers that are not whole are
compared to seven decimals, so that no processor decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon_pipeline.anonymize import (
    classes,
    cluster_statistics,
    counts,
    criterion,
    cuts,
    encoding,
    enforce,
    neighbours,
    refinement,
    tree,
)
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.axes import split_features
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.cluster_statistics import ClusterStatistics
from anon_pipeline.anonymize.criterion import Criterion, criterion_outputs
from anon_pipeline.anonymize.description import described
from anon_pipeline.anonymize.feature_importance import FeatureImportance
from anon_pipeline.anonymize.hierarchy import Calendar, Prefixes
from anon_pipeline.anonymize.ladder import Rung, ladder, nearly_fails
from anon_pipeline.anonymize.mixing import Mixing
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline.tables import Cells
from anon_pipeline_tests.anonymize.test_pinned import people
from anon_pipeline_tests.people import KEY
from anon_pipeline_tests.processors import plain

LEVELS = {"town": ["Kiel", "Ulm", "Bonn", "Jena", "Trier"]}
PREFIXES = {"code": Prefixes((2, 1), strict=True)}
STRICT = {**PREFIXES, "since": Calendar(strict=True)}


def digest(numbers: Iterator[Any]) -> str:
    """Of arrays, with their shapes."""
    told = hashlib.sha256()
    for array in map(np.asarray, numbers):
        if array.dtype.kind == "f":
            array = np.round(array.astype(float) + 3e-9, 7)  # so that no multiple of a small power of 1/2 is a tie
        told.update(repr((array.shape, array.tolist())).encode())
    return told.hexdigest()[:12]


@cache
def counted(
    n: int = 700, levels: bool = False, strict: bool = False, single: bool = False, coarse: bool = False
) -> Cells:
    """The cells of the people of test_pinned.py, with two models' guesses or a single one; large cells if `coarse`."""
    table, _, guidance = people(n)
    if coarse:
        table = table.assign(age=table["age"] // 9).drop(columns="since")
    learned = [encoding.learn_domain(str(name), table[name]) for name in table]
    codes = np.stack([code for _, code in learned], axis=1)
    domains = tuple(domain for domain, _ in learned)
    cells, _ = encoding.count_cells(domains, codes, guidance[:, :1] if single else guidance)
    return replace(
        cells, domains=described(domains, LEVELS if levels else {}, (PREFIXES if coarse else STRICT) if strict else {})
    )


@cache
def repair_of(n: int, demands: tuple[PrivacyModel, ...], suppression: float = 0.0, strict: bool = False) -> Repair:
    table, others, guidance = people(n)
    frame = table[["age", "town", "code"]]
    learned = [encoding.learn_domain(str(name), frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance)
    fitted = AnonymizerTree(
        k=4, demands=demands, suppression=suppression, hierarchies=PREFIXES if strict else None, refine=9000
    )
    return fitted.repair_of(cells, encoding.count_sensitive(cells, cell, others))


ILL, WAGE, CLOSE = LDiversity(column="ill", l=3), TCloseness(column="wage", t=0.35), TCloseness(column="ill", t=0.12)


def of_axes() -> Iterator[Any]:
    for levels, strict in ((False, False), (True, False), (False, True)):
        for orders in ("guidance", "both", "each"):
            for axis in split_features(counted(levels=levels, strict=strict), orders):  # type: ignore[arg-type]
                yield from (axis.column, axis.rank, [] if axis.within is None else axis.within)


def of_criterion() -> Iterator[Any]:
    for spread in (0.0, 0.7):
        for single in (False, True):
            for weighed in (False, True):
                yield Criterion(counted(single=single), spread, 3, weighed=weighed).of()
    told = FeatureImportance.of(counted())
    yield from (*told.effects, told.shares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(criterion, "ONE_HOT_LIMIT", 100)
        yield criterion_outputs(counted(levels=True), 0.7, 3)
        patch.setattr(criterion, "PAIRS_LIMIT", 100)
        projected = Criterion(counted(), 0.7, 3, at_once=False)
        yield from (projected.width, projected.of(np.arange(5), constant=False))


def of_trees() -> Iterator[Any]:
    """Of trees that counts have grown, of bins of the dates too, and of samples of large groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "WHOLE", 0)
        patch.setattr(tree, "BLOCK", 70)
        for bins, limit in ((1000, 9999), (40, 9999), (1000, 200)):
            patch.setattr(counts, "BINS", bins)
            patch.setattr(tree, "EXACT_LIMIT", limit)
            patch.setattr(tree, "SAMPLE", limit)
            for strict, weighed in ((False, False), (False, True), (True, False)):
                fitted = tree.fit_tree(counted(400, strict=strict), 9, 0.7, "both", 3, weighed=weighed)
                yield from (fitted.feature, fitted.threshold, fitted.left, fitted.right, fitted.leaf)
        patch.setattr(criterion, "ONE_HOT_LIMIT", 100)
        patch.setattr(criterion, "PAIRS_LIMIT", 100)
        yield tree.fit_tree(counted(400), 9, 0.7, "each", 3).threshold
        yield tree.fit_tree(counted(coarse=True, strict=True), 9, 0.7, "both", 3).threshold


def of_counts() -> Iterator[Any]:
    for bins, projected, coarse in ((1000, False, False), (40, False, False), (40, True, False), (5, False, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(counts, "BINS", bins)
            if projected:
                patch.setattr(criterion, "ONE_HOT_LIMIT", 100)
            cells = counted(levels=projected, coarse=coarse)
            features = split_features(cells, "both")
            counter = counts.Counter(features, cells, Criterion(cells, 0.7, 3, weighed=True))
            everyone = np.arange(len(cells.counts))
            whole = counter.count(everyone)
            for step in (1, 2, 9, 40):
                part = counter.count(everyone[::step])
                rest = whole.without(part)
                yield from (part.codes, part.sums, rest.codes, rest.sums)
                yield [counter.best_split(part, k) or (-1, -1.0) for k in (1, 5, 30, 200, 400)]


def of_refinement() -> Iterator[Any]:
    for n, k, effort, at_once, tabulated in (
        (300, 2, refinement.THOROUGH, 500, 256),
        (500, 5, refinement.THOROUGH, 500, 20),
        (700, 6, refinement.QUICK, 500, 256),
        (700, 3, refinement.SPARING, 40, 0),
        (700, 11, refinement.THOROUGH, 25, 256),
        (700, 25, refinement.THOROUGH, 500, 256),
        (700, 300, refinement.THOROUGH, 500, 256),
        (700, 400, refinement.THOROUGH, 500, 256),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(refinement, "THOROUGH", effort)
            patch.setattr(refinement, "CLASSES", at_once)
            patch.setattr(refinement, "TABULATED", tabulated)
            patch.setattr(cluster_statistics, "TABULATED", tabulated)
            cells = counted(n, levels=k == 6, single=k == 3, coarse=k in (5, 25))
            leaf = tree.fit_tree(cells, k, 1.0, "both", 0, weighed=True).apply(cells.codes)
            yield refinement.refine(cells, leaf, k, 1.0)
            patch.setattr(refinement, "NUMBERS", 100)
            for members, group in refinement._parts(cells, np.arange(len(cells.counts)) // 3):
                yield from (members, group)
            yield from (members for members, _ in refinement._parts(cells, np.arange(len(cells.counts)) % 65))


def of_clusters() -> Iterator[Any]:
    for tabulated, coarse in ((0, False), (60, False), (256, False), (256, True), (4, True)):
        cells = counted(300, coarse=coarse)
        everyone = np.arange(len(cells.counts))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster_statistics, "TABULATED", tabulated)
            patch.setattr(cluster_statistics, "TOGETHER", 50)
            weighed = Criterion(cells, 1.0, 0, at_once=False, weighed=True)
            clusters = ClusterStatistics(weighed, everyone % 17)
            for cover, decay in ((0.0, 0.0), (2.0, 0.8), (2.0, 0.0)):
                clusters.weigh_cover(cover, decay)
                near = clusters.near(6)
                choice, costs = clusters.choices(near, 3)
                clusters.change(everyone[::31], choice[0, ::31])
                yield from (near, choice, costs, clusters.removal_cost(everyone))
                yield from (clusters.insertion_cost(everyone, choice[1]), clusters.objective())
                yield from (clusters.group, clusters.apart(everyone, everyone[::-1]))
            yield clusters.error(everyone % 5, everyone)


def of_neighbours() -> Iterator[Any]:
    """Of classes that are all compared, and of blocks of them."""
    draw = np.random.default_rng(5)
    mean, weight = np.cumsum(draw.integers(-9, 10, (150, 3)), axis=0) / 16, draw.integers(3, 9, 150).astype(float)
    for every, block, blocks, many in ((200, 64, 32, 200), (100, 20, 4, 200), (100, 20, 4, 100), (149, 16, 5, 149)):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"ALL": every, "BLOCK": block, "BLOCKS": blocks, "MANY": many}.items():
                patch.setattr(neighbours, name, value)
            for asking, width in ((np.arange(150), 1), (np.arange(3, 90, 4), 5)):
                yield from neighbours.nearest(mean, weight, asking, width)


def of_rungs(rungs: list[Rung]) -> Iterator[Any]:
    for rung in rungs:
        yield from (rung.group, rung.holds, rung.parted, rung.nearly, rung.above, rung.classes)


def of_ladders() -> Iterator[Any]:
    for demands in ((ILL, WAGE), (CLOSE,)):
        repair = repair_of(700, demands)
        mixing = repair.mixing()
        assert mixing is not None
        for mixed in (None, mixing):
            yield from of_rungs(ladder(repair.people, repair.class_of_cell, repair.outputs, repair.holds, None, mixed))
        threes = repair.class_of_cell // 3
        yield nearly_fails(repair.people.pool(classes.members(threes, int(threes.max()) + 1)), repair.holds)


def of_mixing() -> Iterator[Any]:
    for n in (500, 700):
        repair = repair_of(n, (CLOSE,))
        mixing = Mixing.of(repair.cells, repair.people)
        assert mixing is not None
        yield from (mixing.guidance, mixing.outputs, mixing.step, mixing.leverage)
        yield from (*mixing.lines.values(), *mixing.slopes.values())
        chosen = classes.members(repair.class_of_cell, int(repair.class_of_cell.max()) + 1)
        weight = chosen @ repair.people.sizes
        mean = (chosen @ (repair.outputs * repair.people.sizes[:, None])) / weight[:, None]
        counted_ = repair.people.pool(chosen)
        yield from mixing.partners(counted_, mean, chosen @ mixing.guidance, repair.holds)
        yield mixing.holds(counted_, weight.astype(float), chosen @ mixing.guidance, repair.holds)
    yield Mixing.of(repair_of(499, (CLOSE,)).cells, repair_of(499, (CLOSE,)).people) is None


def of_chance() -> Iterator[Any]:
    cells = counted(300)
    for number in (1, 2):
        chance = Chance.of(Key(bytes([number]) * 32), cells)
        yield from (chance.members, chance.uniform("cut", chance.members), cuts._signs(cells.codes, chance))
        yield chance.joined(classes.members(np.arange(len(cells.counts)) // 4 - 1, len(cells.counts) // 4))


def of_cuts() -> Iterator[Any]:
    for strict, together in ((False, 500_000), (False, 900), (True, 500_000)):
        repair = repair_of(700, (ILL, WAGE), strict=strict)
        order = np.argsort(repair.class_of_cell // 5, kind="stable")
        starts = np.flatnonzero(np.diff(repair.class_of_cell[order] // 5, prepend=-1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cuts, "TOGETHER", together)
            points = cuts.rounded(repair.outputs)
            chance = Chance.of(KEY, repair.cells)
            for least in (4, 12):
                cutter = cuts.Cutter(repair.features, repair.cells.codes, points, chance, repair.holds, least)
                # No order is promised of the cells of a half: those at one place are sorted as the processor likes.
                yield from (points, *map(np.sort, cutter.halves(repair.people, order, starts)))
                yield cutter.ways(repair.people, cutter.tried(order[: starts[1]], repair.people.sizes))
    yield cuts.rounded(np.random.default_rng(0).normal(size=(9, 40)))


def of_repairs() -> Iterator[Any]:
    """Of several keys, with people left out, with a strict hierarchy, and where the demands look at no values."""
    for demands, suppression, strict in (
        ((ILL,), 0.0, False),
        ((ILL, WAGE), 0.2, False),
        ((CLOSE,), 0.0, False),
        ((CLOSE,), 0.4, False),
        ((ILL, WAGE), 0.1, True),
    ):
        repair = repair_of(500, demands, suppression, strict)
        prepared = repair.prepared()
        yield from (prepared.group, prepared.least, *(chance.stays for chance in prepared.union_chances))
        yield from (*(chance.whole for chance in prepared.union_chances), *(places for places, _ in prepared.rounds))
        for number in range(4):
            chance = repair.chance(Key(bytes([number]) * 32))
            work = enforce.Work(prepared.people, prepared.group, chance)
            yield from (*enforce.descend(work, prepared.rungs, prepared.union_chances), work.group)
            yield prepared.under(chance)


def of_recounted_repairs() -> Iterator[Any]:
    """Of demands that are judged anew on every rung, as those on a population are."""

    def recount(counted_: ClassStatistics, group: IntArray, number: int) -> ClassStatistics:
        return replace(counted_, population=3 * counted_.sizes + (np.arange(len(group)) % 2))

    cells = counted(500)
    group = tree.fit_tree(cells, 4, 1.0, "both", 0).apply(cells.codes)
    prepared = enforce.prepare(
        cells,
        split_features(cells, "both"),
        group,
        criterion_outputs(cells, 1.0, 0),
        ClassStatistics(sizes=cells.counts),
        lambda found: found.population % 7 > 0 if found.population is not None else found.sizes > 0,
        recount=recount,
        least=1,
        mixing=None,
        former=None,
    )
    assert prepared.rounds == []
    yield from of_rungs(prepared.rungs)
    yield prepared.under(Chance.of(KEY, cells))
    yield prepared.under(Chance.none(cells))


PARTS: dict[Callable[[], Iterator[Any]], str] = {
    of_axes: "1e71f43139df",
    of_criterion: "b8e2bfaa4065",
    of_trees: "10de880b5559",
    of_counts: "ec6f5e40c92b",
    of_refinement: "199da41b0063",
    of_clusters: "551979333072",
    of_neighbours: "b2b61dfd647a",
    of_ladders: "d0bdb3816f3c",
    of_mixing: "e1ccb61956b1",
    of_chance: "dd320b8d0adb",
    of_cuts: "a5ec2bf6d67b",
    of_repairs: "bd8b4542ba44",
    of_recounted_repairs: "906cfae3830f",
}


@pytest.mark.long
@pytest.mark.parametrize(("numbers", "pinned"), PARTS.items(), ids=lambda given: getattr(given, "__name__", ""))
def test_each_part_gives_the_same_numbers_in_every_version(numbers: Callable[[], Iterator[Any]], pinned: str) -> None:
    assert digest(numbers()) == pinned


@pytest.mark.slow
def test_a_processor_of_fewer_instructions_gives_the_same_numbers() -> None:
    """Sorting and adding go in another order there, and logarithms end in another digit."""
    code = f"import json; from {__name__} import PARTS, digest; print(json.dumps([digest(part()) for part in PARTS]))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | plain() | {"OPENBLAS_CORETYPE": "Prescott"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == list(PARTS.values())
