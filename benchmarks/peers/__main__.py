"""Side by side with other tools: cost, achieved k, information lost and utility, in one table per setting.

Run: python -m benchmarks.peers [--install] [--rows 30000,300000] [--k 10,100] [--only ours,anjana] [--markdown FILE]

Without --install, only tools whose environment exists already are run. An environment is a folder under
benchmarks/.environments/, made with venv and pip from the pinned requirements beside this file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.data import FEATURES, GUIDANCE, QUASI_IDENTIFIERS, TARGET, People, people
from benchmarks.peers.environments import TOOLS, Tool, install
from benchmarks.peers.report import Line, Setting, circumstances, goals, table
from benchmarks.peers.runner import Failed, run
from benchmarks.peers.score import score, utility


def main() -> None:
    options = _options()
    tools = [tool for tool in TOOLS if not options.only or any(name in tool.name for name in options.only)]
    reasons: dict[str, str] = {}
    if options.install:
        for tool in tools:
            _say(f"{tool.name}: environment")
            reasons[tool.name] = install(tool) or ""
    settings = []
    for rows in options.rows:
        _say(f"{rows:,} rows: the people, and the guidance")
        given = people(rows)
        raw = utility(given.train[[*FEATURES, TARGET]], given)
        for k in options.k:
            lines = tuple(_line(tool, given, k, options, reasons.get(tool.name, "")) for tool in tools)
            settings.append(Setting(rows, k, raw, lines))
            print(f"\n{table(settings[-1])}\n", flush=True)
    summary = f"Against the goals:\n\n{goals(settings)}"
    said = circumstances(tools, options.seconds, options.memory)
    print(f"{summary}\n\n{said}")
    if options.markdown:
        parts = [said, *map(table, settings), summary]
        options.markdown.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _line(tool: Tool, given: People, k: int, options: argparse.Namespace, reason: str) -> Line:
    if not tool.installed:
        return Line(tool, reason=f"not installed{reason and f': {reason}'}")
    _say(f"{tool.name}, {len(given.train):,} rows, k = {k}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        given.train[[*QUASI_IDENTIFIERS, TARGET, GUIDANCE]].to_parquet(folder / "people.parquet", index=False)
        try:
            cost = run(tool, k, folder, options.seconds, options.memory)
        except Failed as failure:
            return Line(tool, reason=str(failure))
        try:
            return Line(tool, cost, score(folder / "released.parquet", given, tool.learned))
        except ValueError as error:
            return Line(tool, reason=f"its release cannot be judged: {error}")


def _options() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=numbers, default=[30_000, 300_000], help="default: 30000,300000")
    parser.add_argument("--k", type=numbers, default=[10, 100], help="default: 10,100")
    parser.add_argument("--only", type=lambda text: text.split(","), help="parts of the names of the tools to run")
    parser.add_argument("--install", action="store_true", help="make the environments of the tools first")
    parser.add_argument("--seconds", type=float, default=300, help="cpu time that each run may take; default: 300")
    parser.add_argument(
        "--memory",
        type=lambda gib: int(float(gib) * 2**30),
        default=16 * 2**30,
        metavar="GIB",
        help="address space that each run may take; default: 16",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
