"""Answers from exact sums: noise, public groups, intervals, and the notes that every answer carries."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from anon_pipeline.differential_privacy import aggregates, intervals, mechanisms
from anon_pipeline.differential_privacy.mechanisms import IntArray
from anon_pipeline.differential_privacy.plan import Cell, Measurement, Plan, grid, measured
from anon_pipeline.differential_privacy.statement import Statistic, domain_of
from anon_pipeline.errors import number_of
from anon_pipeline.spec import PublicDomain, ReleaseSpec, exactly, in_full


class Exact:
    """The exact and secret sums of a question, read once."""

    def __init__(self, plan: Plan, table: pa.Table, histograms: dict[str, pa.Table]) -> None:
        self._plan = plan
        self._columns = aggregates.columns_of(plan.statement)
        self.cells = _cells_of(table, len(plan.statement.groups))
        self._table = table
        self._histograms = histograms

    def numbers(self, measurement: Measurement, cells: list[Cell]) -> list[int]:
        """The exact numbers of a measurement, 0 for a group that has nobody."""
        by_cell = dict(zip(self.cells, self._of_present(measurement), strict=True))
        return [by_cell.get(cell, 0) for cell in cells]

    def _of_present(self, measurement: Measurement) -> list[int]:
        if measurement.kind == "count":
            return self._column(aggregates.ROWS)
        if measurement.kind == "people":
            return self._column(aggregates.PEOPLE)
        place = self._columns.index(str(measurement.column))
        known = self._column(aggregates.known_name(place))
        if measurement.kind == "known":
            return known
        codes = self._column(aggregates.sum_name(place))
        domain = self._plan.asked.domains[str(measurement.column)]
        if measurement.kind == "centred":
            middle = (domain.size - 1) // 2
            return [code - middle * rows for code, rows in zip(codes, known, strict=True)]
        _, low, step = grid(domain)
        # Clamped to the range to which noise can be added; clamping moves no two sums further apart.
        return [
            max(-mechanisms.LARGEST, min(mechanisms.LARGEST, low * rows + step * code))
            for code, rows in zip(codes, known, strict=True)
        ]

    def histogram(self, column: str, cells: list[Cell]) -> list[IntArray]:
        """For each group its rows per place on the column's grid."""
        size = self._plan.asked.domains[column].size
        found = {cell: np.zeros(size, dtype=np.int64) for cell in cells}
        table = self._histograms[column]
        places = table.column(aggregates.CODE).to_pylist()
        rows = table.column(aggregates.ROWS).to_pylist()
        for cell, place, count in zip(_cells_of(table, len(self._plan.statement.groups)), places, rows, strict=True):
            if cell in found:
                found[cell][int(place)] = int(count)
        return [found[cell] for cell in cells]

    def _column(self, name: str) -> list[int]:
        return [int(number or 0) for number in self._table.column(name).to_pylist()]


def draw(plan: Plan, exact: Exact) -> dict[str, Any]:
    """Add the noise, and return everything that may leave: groups with their figures, and how these were made."""
    cells, drawn = _measure(plan, exact)
    rows = []
    for place, cell in enumerate(cells):
        row: dict[str, Any] = {}
        for item in plan.statement.items:
            if isinstance(item.shows, str):
                number = plan.statement.groups.index(item.shows)
                row[item.name] = label(plan.asked.domains[item.shows], cell[number])
            else:
                row[item.name] = figure(
                    plan, item.shows, {measurement: int(drawn[measurement][place]) for measurement in drawn}
                )
        rows.append(row)
    return {"columns": [item.name for item in plan.statement.items], "rows": rows, **about(plan)}


def about(plan: Plan) -> dict[str, Any]:
    """The public part of an answer, known before noise is drawn: unit, bounds, mechanisms, half-widths and warnings."""
    unit: dict[str, Any] = {"unit": "row"}
    if plan.asked.person is not None:
        unit = {"unit": "person", "groups": plan.groups_of_unit, "rows": plan.asked.most_rows}
    widths = {item.name: width(plan, item.shows) for item in plan.statement.items if isinstance(item.shows, Statistic)}
    return {
        "neighbours": {**unit, "relation": "add or remove one"},
        "mechanisms": plan.described(),
        "half_widths": widths,
        "notes": notes(plan),
    }


def width(plan: Plan, statistic: Statistic) -> dict[str, Any]:
    """Half of the 95 % interval of a figure, as far as it is known before anything is drawn.

    That of a mean is the widest, of a mean at an end of its range; one in the middle has up to 1.4 times less.
    """
    if statistic.kind == "quantile":
        measurement = measured(statistic)[0]
        scale, size = plan.scale(measurement), domain_of(plan.asked, statistic).size
        return {"rank": intervals.rank_error(size, measurement.whole, scale)}
    if statistic.kind == "mean":
        centred, known = measured(statistic)
        domain = domain_of(plan.asked, statistic)
        # The noise of the rows moves a mean by its distance from the middle of the grid: furthest at an end.
        furthest = domain.size // 2 * intervals.reach(plan.scale(known))
        unit = float(exactly(domain.step or 1))
        around = math.hypot(intervals.reach(plan.scale(centred)), furthest) * unit
        return {"value_times_rows": around, "rows": intervals.half_width(plan.scale(known))}
    (measurement,) = measured(statistic)
    unit = float(grid(domain_of(plan.asked, statistic))[0]) if statistic.kind == "sum" else 1.0
    return {"value": intervals.half_width(plan.scale(measurement)) * unit}


def notes(plan: Plan) -> list[str]:
    """Notes on what the intervals do not cover; every answer carries them."""
    asked, found = plan.asked, []
    numbers = [statistic for statistic in plan.statement.statistics if statistic.kind in ("sum", "mean", "quantile")]
    if asked.person is None:
        found.append("a row is protected, not a person: whoever has several rows is protected less")
    elif any(statistic.kind != "people" for statistic in plan.statement.statistics) or plan.statement.groups:
        found.append(
            f"a person counts with at most {number_of(asked.most_rows, 'row', 'rows')} in at most "
            f"{number_of(plan.groups_of_unit, 'group', 'groups')}; the intervals are of what is counted, and what "
            "people have beyond is in none of them: true counts are no smaller, and nothing public bounds by how much "
            "they are larger"
        )
    if numbers:
        found.append(
            "numbers beyond the public range count at its end, and all others at the nearest step, which moves a mean "
            "or a quantile by half a step at most; the intervals are of the numbers that are counted, since nothing "
            "public says how many there are"
        )
    if plan.unlisted:
        found.append(
            f"groups that nobody listed are shown from a noisy count of {plan.threshold} on; smaller ones are left "
            "out, and counts near it are more often too large than too small"
        )
    if any(statistic.kind in ("count", "known", "people") for statistic in plan.statement.statistics):
        found.append("a count may be below 0 where there are few: leave it so, or sums of counts become too large")
    return found


def label(domain: PublicDomain, place: int | str | None) -> str | float | None:
    """The label of a group in an answer: a text, a number or an interval; None for a missing value."""
    if place is None or isinstance(place, str):
        return place
    if domain.values is not None:
        return domain.values[place]
    if domain.bins is not None:
        end = "]" if place == domain.size - 1 else ")"
        low, high = (in_full(edge) for edge in domain.bins[place : place + 2])
        return f"[{low}, {high}{end}"
    return domain.number_at(place)


def _measure(plan: Plan, exact: Exact) -> tuple[list[Cell], dict[Measurement, IntArray]]:
    """The groups that are shown, and the noisy numbers of each measurement."""
    drawn: dict[Measurement, IntArray] = {}
    if plan.unlisted:
        count = Measurement("count")
        present = dict(zip(exact.cells, exact.numbers(count, exact.cells), strict=True))
        noisy = mechanisms.noisy_groups(
            present, plan.groups_of_unit, plan.asked.most_rows, plan.share, plan.cost.atto_delta
        )
        cells: list[Cell] = sorted(noisy, key=_order)
        drawn[count] = np.array([noisy[cell] for cell in cells], dtype=np.int64)
    else:
        cells = plan.cells()
    for measurement in plan.measurements:
        if measurement in drawn:
            continue
        if measurement.kind == "quantile":
            share = plan.share // plan.groups_of_unit  # a person is in this many groups, each of which chooses
            histograms = exact.histogram(str(measurement.column), cells)
            drawn[measurement] = np.array(
                [_quantile(plan, measurement, rows, share) for rows in histograms], dtype=np.int64
            )
        else:
            numbers = np.array(exact.numbers(measurement, cells), dtype=np.int64)
            drawn[measurement] = mechanisms.gaussian_counts(numbers, plan.squared_sensitivity(measurement), plan.share)
    return cells, drawn


def _quantile(plan: Plan, sought: Measurement, histogram: IntArray, share: int) -> int:
    """The place of a quantile on its grid, or of an end of its interval."""
    most = plan.asked.most_rows
    if sought.end == 0:
        return mechanisms.quantile(histogram, sought.part, sought.whole, most, share)
    return mechanisms.quantile_end(histogram, sought.part, sought.whole, most, share, plan.off(sought))


def figure(plan: Plan, statistic: Statistic, drawn: dict[Measurement, int]) -> dict[str, Any]:
    """A figure with its interval; the ends of a quantile's interval were drawn themselves."""
    if statistic.kind == "mean":
        return _mean(plan, statistic, drawn)
    if statistic.kind == "quantile":
        value, low, high = (drawn[measurement] for measurement in measured(statistic))
        places = {"value": value, "low": min(low, value), "high": max(high, value)}
        domain = domain_of(plan.asked, statistic)
        return {name: domain.number_at(place) for name, place in places.items()}
    (measurement,) = measured(statistic)
    around = intervals.half_width(plan.scale(measurement))
    if statistic.kind == "sum":
        unit = float(grid(domain_of(plan.asked, statistic))[0])
        return {
            "value": drawn[measurement] * unit,
            "low": (drawn[measurement] - around) * unit,
            "high": (drawn[measurement] + around) * unit,
        }
    return {"value": drawn[measurement], "low": drawn[measurement] - around, "high": drawn[measurement] + around}


def _mean(plan: Plan, statistic: Statistic, drawn: dict[Measurement, int]) -> dict[str, Any]:
    domain = domain_of(plan.asked, statistic)
    centred, known = measured(statistic)
    low, high = domain.range or (0.0, 0.0)
    step = float(exactly(domain.step or 1.0))
    centre = domain.number_at((domain.size - 1) // 2)

    def held(places: float) -> float:
        return min(max(centre + places * step, low), high)

    below, above = intervals.ratio(drawn[centred], drawn[known], (plan.scale(centred), plan.scale(known)))
    if drawn[known] <= 0:
        return {"value": None, "low": low, "high": high}
    return {"value": held(drawn[centred] / drawn[known]), "low": held(below), "high": held(above)}


def _cells_of(table: pa.Table, groups: int) -> list[Cell]:
    if not groups:
        return [()] * len(table)
    columns = [table.column(aggregates.group_name(place)).to_pylist() for place in range(groups)]
    return list(zip(*columns, strict=True))


def _order(cell: Cell) -> tuple[tuple[int, str, float], ...]:
    """The sort key of a group: its values, never the number of its people."""
    return tuple(
        (2, "", 0.0) if value is None else (1, value, 0.0) if isinstance(value, str) else (0, "", float(value))
        for value in cell
    )


Aggregated = Callable[[Callable[[Any, str], str]], pa.Table]


def read(plan: Plan, spec: ReleaseSpec, aggregated: Aggregated) -> Exact:
    """Read the exact sums from an engine; `aggregated` runs a query over the opened source."""

    def over(write: Callable[[aggregates.Source], str]) -> pa.Table:
        return aggregated(lambda reader, relation: write(aggregates.Source(reader, relation, spec)))

    columns = aggregates.columns_of(plan.statement)
    table = over(lambda source: aggregates.totals(source, plan.statement, columns))
    sought = dict.fromkeys(
        str(measurement.column) for measurement in plan.measurements if measurement.kind == "quantile"
    )
    histograms = {
        column: over(partial(aggregates.histogram, statement=plan.statement, column=column)) for column in sought
    }
    return Exact(plan, table, histograms)
