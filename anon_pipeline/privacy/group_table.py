"""The verdict on a table of groups: its counts as they are written, and compared with the people it was made of.

Nothing here calls the technique that makes such a table; only the technique's parameters are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.engine.base import Engine
from anon_pipeline.engine.groups import MEASURES, GroupColumns
from anon_pipeline.errors import number_of
from anon_pipeline.masking.aggregation import MEAN, PEOPLE, Aggregate, aggregate_of
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.masking.rounded_means import parts_of_unit, unit_of
from anon_pipeline.privacy.judge import Finding
from anon_pipeline.privacy.verdict import Verdict
from anon_pipeline.spec import ReleaseSpec

#: By how much sums of floats may differ if added in another order, as a share of their size.
ROUNDING = 1e-9
#: By how much of a step a mean may differ from that of the people.
HALF = 0.5 * (1 + ROUNDING)


@dataclass(frozen=True, eq=False)
class WrittenGroups:
    """The contents of a table of groups.

    Attributes
    ----------
    counts : people of each group as written, shape (J,); 0 where no whole number is written
    repeated : groups that stand in several rows
    not_whole : groups whose count is no whole number
    """

    counts: IntArray
    repeated: int
    not_whole: int

    def finding(self, threshold: int) -> Finding:
        """Whether every group counts enough people; a table without groups meets nothing."""
        failing = int((self.counts < threshold).sum()) if len(self.counts) else 1
        measured = float(self.counts.min()) if len(self.counts) else None
        return Finding("k_anonymity", f"every group counts at least {threshold} people", measured, failing)


@dataclass(frozen=True)
class GroupsAndPeople:
    """A table of groups compared with the people themselves.

    Attributes
    ----------
    miscounted : groups whose count is not the number of their people, groups without people included
    left_out_groups, left_out_people : groups that are not in the table, and their people
    means_hidden : means that are not published of groups that are in the table
    wrong_means : means that are not those of the people, but for half a step in which they are shown
    exact_means : means that are shown in finer steps, so that their digits may tell of how many values they are
    means_of_few : means of fewer known values than the threshold
    dominated_means : means that break a rule of `Dominance`: few contributions make up most of them, or the second
        largest settles the largest
    exposed : groups below the threshold that are left out, though readers can compute how many people they count
    """

    miscounted: int
    left_out_groups: int
    left_out_people: int
    means_hidden: int
    wrong_means: int
    means_of_few: int
    dominated_means: int
    exact_means: int = 0
    exposed: int = 0

    def stays_hidden(self, threshold: int) -> bool:
        """Whether the people left out are in several groups, with enough people together.

        Otherwise a group that was left out could be computed from the number of all people, or of those whose known
        values are the same.
        """
        if self.exposed:
            return False
        return not self.left_out_groups or (self.left_out_groups > 1 and self.left_out_people >= threshold)


def threshold_of(spec: ReleaseSpec) -> int:
    """How many people a group must count: the threshold of the step, and never fewer than k."""
    return max(aggregate_of(spec).threshold, spec.k)


def group_columns(step: Aggregate) -> GroupColumns:
    """The columns of the table that a step makes, and what each of them holds."""
    means = {MEAN + name: name for name in step.means}
    return GroupColumns(step.columns, PEOPLE, means, step.dominance.n, step.known_beside_others)


def read_groups(frame: pd.DataFrame) -> WrittenGroups:
    """Read the counts that the table has written.

    Parameters
    ----------
    frame : as `Engine.groups` gives it
    """
    groups = frame[frame["times"] > 0]
    written = groups["people"].to_numpy(dtype=np.float64)
    whole = np.isfinite(written) & (written == np.floor(written)) & (written >= 0) & (written < 2**53)
    counts: IntArray = np.where(whole, written, 0).astype(np.int64)
    return WrittenGroups(counts, int((groups["times"] > 1).sum()), int((~whole).sum()))


def units_of(engine: Engine, people: Path, table: Path, step: Aggregate) -> dict[str, Fraction]:
    """The unit of each column that is averaged, which says in what steps its means are shown.

    It follows from the values behind the means that `table` shows, and from no others.
    """
    if not step.means:
        return {}
    columns, shown = engine.everybody(people).select(step.used), engine.everybody(table)
    both = (pa.chunked_array([*_alike(columns, shown, name)]).combine_chunks() for name in step.columns)
    group = groups_of(list(both))
    of_people, of_shown = group[: len(columns)], group[len(columns) :]
    units = {}
    for name in step.means:
        values = to_floats(columns.column(name).combine_chunks())
        is_shown = shown.column(MEAN + name).is_valid().to_numpy()
        units[name] = unit_of(values[np.isin(of_people, of_shown[is_shown])])
    return units


def _alike(columns: pa.Table, shown: pa.Table, name: str) -> Iterator[pa.Array]:
    """The chunks of a column of people and of groups, in the type of people's: groups may be shown by days alone.

    Negative zero is zero, as in the groups that DuckDB and the technique make.
    """
    for of in (columns.column(name), shown.column(name).cast(columns.schema.field(name).type)):
        yield from (pc.add(of, 0.0) if pa.types.is_floating(of.type) else of).chunks


def compare_groups(
    frame: pd.DataFrame, step: Aggregate, threshold: int, units: Mapping[str, Fraction]
) -> GroupsAndPeople:
    """Compare the table with the people, whose counts and means are computed once more.

    Parameters
    ----------
    frame : as `Engine.groups` gives it with people
    units : as `units_of` gives them
    """
    in_table = (frame["times"] > 0).to_numpy()
    groups, left_out = frame[in_table], frame[~in_table]
    hidden = wrong = few = dominated = exact = 0
    parts = parts_of_unit(groups["counted"].fillna(1).to_numpy(dtype=np.int64))
    for place, name in enumerate(step.means):
        mean, known, total, size, largest, first, two = (
            groups[f"{measure}{place}"].to_numpy(dtype=np.float64) for measure in ("mean", *MEASURES)
        )
        is_published = ~np.isnan(mean)
        # Written so that numbers that cannot be compared (infinite, or of nobody) count as wrong.
        width = float(units[name]) / parts
        right = np.abs(mean * known - total) <= ROUNDING * size + known * width * HALF
        in_limits = largest <= step.dominance.share * size * (1 + ROUNDING)
        in_limits &= (size - two) + ROUNDING * size >= step.dominance.p_percent / 100 * first
        hidden += int((~is_published).sum())
        wrong += int((is_published & ~right).sum())
        exact += int((is_published & ~_in_steps(mean, width)).sum())
        few += int((is_published & ~(known >= threshold)).sum())
        dominated += int((is_published & ~in_limits).sum())
    return GroupsAndPeople(
        miscounted=int((groups["people"].to_numpy() != groups["counted"].to_numpy()).sum()),
        left_out_groups=len(left_out),
        left_out_people=int(left_out["counted"].sum()),
        means_hidden=hidden,
        wrong_means=wrong,
        means_of_few=few,
        dominated_means=dominated,
        exact_means=exact,
        exposed=_exposed(groups, left_out, threshold),
    )


def _in_steps(means: FloatArray, width: FloatArray) -> npt.NDArray[np.bool_]:
    """Which means are whole multiples of the width of their step, shape (J,); all, where there is no step."""
    steps = np.nan_to_num(means / np.where(width > 0, width, 1), posinf=0.5, neginf=0.5)
    in_steps: npt.NDArray[np.bool_] = np.abs(steps - np.rint(steps)) <= ROUNDING * np.maximum(np.abs(steps), 1)
    in_steps[width == 0] = True
    return in_steps


def _exposed(groups: pd.DataFrame, left_out: pd.DataFrame, threshold: int) -> int:
    """How many groups below the threshold are left out beside too few people of the same known values.

    Readers know how many people share these values. If some of their groups are shown, the difference is what is left
    out; if none is shown, the difference is what readers know already.
    """
    beside = left_out[left_out["alike"].isin(groups["alike"])].groupby("alike")["counted"]
    alone = (beside.size() < 2) | (beside.sum() < threshold)
    small = left_out[left_out["counted"] < threshold]
    return int(small["alike"].isin(alone.index[alone]).sum())


def judge_group_table(engine: Engine, table: Path, spec: ReleaseSpec) -> Verdict:
    """Judge a table of groups by reading it afresh, without the people: its columns, its groups and their counts."""
    columns, threshold = engine.columns(table), threshold_of(spec)
    extra = sorted(set(columns) - set(spec.released))
    problems = [f"the column {name} is not one that the spec releases" for name in extra]
    absent = [name for name in spec.released if name not in columns]
    if absent:
        problems.append(f"the table has no column {', '.join(absent)}")
        nothing = WrittenGroups(np.empty(0, dtype=np.int64), 0, 0)
        return _verdict(nothing, threshold, problems)
    groups = read_groups(engine.groups(table, group_columns(aggregate_of(spec))))
    if groups.repeated:
        problems.append(f"{number_of(groups.repeated, 'group stands', 'groups stand')} in several rows")
    if groups.not_whole:
        problems.append(f"{number_of(groups.not_whole, 'group has', 'groups have')} a count that is no whole number")
    return _verdict(groups, threshold, problems)


def _verdict(groups: WrittenGroups, threshold: int, problems: list[str]) -> Verdict:
    counts = groups.counts
    return Verdict(
        rows=len(counts),
        classes=len(counts),
        smallest_class=int(counts.min()) if len(counts) else 0,
        rows_below=int((counts < threshold).sum()),
        findings=[groups.finding(threshold)],
        problems=problems,
        sensitive={},
        groups=True,
    )
