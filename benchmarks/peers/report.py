"""The printed report of the measurements: tables, goals, and the circumstances of the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks import machine
from benchmarks.peers import data, score
from benchmarks.peers.environments import OURS, Tool, python_version, version
from benchmarks.peers.runner import REPEATS, SHORT, Cost
from benchmarks.peers.score import Score

#: A tool whose AUC is this close to ours must be slower by this factor; from `LARGE` rows on, every tool that finishes.
CLOSE, FACTOR = 0.005, 10
LARGE, LARGE_FACTOR = 300_000, 30

LEARNED = {
    "released": "the released values",
    "middle": "the median or mode of each class",
    "better": "the released values or the median or mode of each class, whichever gives the higher AUC",
}

HEADER = (
    "tool",
    "cpu s",
    "with imports",
    "wall s",
    "peak MB",
    "k",
    "classes",
    "left out",
    "lost",
    "AUC",
    "accuracy",
    "cpu / ours",
)


@dataclass(frozen=True)
class Line:
    """One tool at one setting: its cost and scores, or the reason why there are none."""

    tool: Tool
    cost: Cost | None = None
    score: Score | None = None
    reason: str = ""

    @property
    def measured(self) -> tuple[Cost, Score] | None:
        return None if self.cost is None or self.score is None else (self.cost, self.score)


@dataclass(frozen=True)
class Setting:
    """One table: all tools at the same rows and k, and the scores of a forest on the raw rows (AUC, accuracy)."""

    rows: int
    k: int
    raw: tuple[float, float]
    lines: tuple[Line, ...]

    @property
    def ours(self) -> tuple[Cost, Score] | None:
        return next((line.measured for line in self.lines if line.tool.name == OURS), None)

    @property
    def peers(self) -> list[tuple[str, Cost, Score]]:
        return [
            (line.tool.name, *line.measured)
            for line in self.lines
            if line.tool.environment is not None and line.measured is not None
        ]


def table(setting: Setting) -> str:
    """Markdown that also reads well as plain text."""
    ours = setting.ours
    rows = [[_cell(cell) for cell in _cells(line, ours)] for line in setting.lines]
    raw = ["raw data", *[""] * 7, _cell(0.0), *map(_cell, setting.raw), ""]
    lines = aligned([list(HEADER), raw, *rows])
    return f"### {setting.rows:,} rows, k = {setting.k}\n\n{lines}"


def _cells(line: Line, ours: tuple[Cost, Score] | None) -> list[str | float | int]:
    if line.measured is None:
        return [f"{line.tool.name}: {line.reason}", *[""] * (len(HEADER) - 1)]
    cost, worth = line.measured
    return [
        line.tool.name,
        f"{cost.cpu:.2f}",
        f"{cost.cpu_with_imports:.2f}",
        f"{cost.wall:.2f}",
        cost.peak // 10**6,
        worth.k,
        worth.classes,
        f"{worth.left_out:.2%}",
        worth.lost,
        worth.auc,
        worth.accuracy,
        f"{cost.cpu / ours[0].cpu:.1f}" if ours else "",
    ]


def _cell(value: str | float | int) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its columns padded; a row whose other cells are empty may be longer than its column."""
    width = [max(len(row[column]) for row in rows if column or any(row[1:])) for column in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(width[0]), *(cell.rjust(size) for cell, size in zip(row[1:], width[1:], strict=True))]
        return f"| {' | '.join(cells)} |"

    rule = f"|{'-' * (width[0] + 2)}|{'|'.join('-' * (size + 1) + ':' for size in width[1:])}|"
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])


def goals(settings: Iterable[Setting]) -> str:
    """One line per goal and setting: reached or missed, with the figures."""
    said = []
    for setting in settings:
        if setting.ours is None or not setting.peers:
            continue
        cost, worth = setting.ours
        where = f"{setting.rows:,} rows, k = {setting.k}"

        def judge(holds: bool, text: str, where: str = where) -> None:
            said.append(f"- {'reached' if holds else '**missed**'}: {where}: {text}")

        name, least = min(((name, peer.cpu) for name, peer, _ in setting.peers), key=lambda one: one[1])
        judge(cost.cpu < least, f"less cpu than every peer (ours {cost.cpu:.2f} s, {name} {least:.2f} s)")
        large = setting.rows >= LARGE
        factor = LARGE_FACTOR if large else FACTOR
        rivals = [one for one in setting.peers if large or one[2].auc >= worth.auc - CLOSE]
        whose = "every peer that finishes" if large else f"every peer whose AUC comes within {CLOSE} of ours"
        if rivals:
            name, least = min(((name, peer.cpu) for name, peer, _ in rivals), key=lambda one: one[1])
            judge(least >= factor * cost.cpu, f"{factor} times less than {whose} ({name}: {least / cost.cpu:.1f})")
        else:
            judge(True, f"{factor} times less than {whose} (there is none)")
        name, best = max(((name, peer.auc) for name, _, peer in setting.peers), key=lambda one: one[1])
        judge(worth.auc >= best, f"AUC no worse than the best peer's (ours {worth.auc:.4f}, {name} {best:.4f})")
        name, best = max(((name, peer.accuracy) for name, _, peer in setting.peers), key=lambda one: one[1])
        judge(
            worth.accuracy >= best,
            f"accuracy no worse than the best peer's (ours {worth.accuracy:.4f}, {name} {best:.4f})",
        )
        name, best = min(((name, peer.lost) for name, _, peer in setting.peers), key=lambda one: one[1])
        judge(
            worth.lost <= best,
            f"information lost no more than the best peer's (ours {worth.lost:.4f}, {name} {best:.4f})",
        )
    return "\n".join(said) or "- nothing to compare: ours and at least one peer are needed"


def circumstances(tools: Iterable[Tool], seconds: float, memory: int) -> str:
    """The circumstances: the input of all tools, the limits, the machine, and the meaning of the lines of tables."""
    libraries = machine.versions("scikit-learn", "pandas", "numpy", "duckdb")
    said = [
        f"{date.today():%Y-%m-%d}, {machine.processor()}, {machine.memory()}, {libraries}.",
        data.DESCRIPTION,
        "Guidance, where a tool takes it: out-of-fold probabilities of scikit-learn's HistGradientBoostingClassifier "
        "(5 folds); training it is not counted for anyone.",
        "cpu s: user and system time of the call that anonymizes, from a pandas or Polars frame to one; with imports: "
        f"of the whole process from its start to the end of that call. Below {SHORT:.0f} s the run of median cpu of "
        f"{REPEATS}. Peak: largest resident memory of the process. Limits: {seconds:.0f} s of cpu, {memory >> 30} GiB "
        "of address space.",
        "k: the smallest group alike on the released quasi-identifiers, counted in the written file. Classes: as the "
        "tool grouped people, or where it does not say, groups alike in the release.",
        score.DESCRIPTION,
        "The tools:\n",
    ]
    tools = [tool for tool in tools if tool.installed]
    listed = "\n".join(
        f"- {tool.name}: {tool.distribution} {version(tool)}, Python {python_version(tool)}; {tool.note}; the forest "
        f"learns from {LEARNED[tool.learned]}"
        for tool in tools
    )
    return "\n\n".join(said) + listed
