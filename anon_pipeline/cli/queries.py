"""The commands `query` and `budget`: noisy answers within an enforced privacy budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anon_pipeline.cli.app import REFUSED, AsJson, EngineName, MemoryLimit, app, err, out, print_json, show_progress
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, scratch
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.parts import MOST_THREADS

if TYPE_CHECKING:
    from anon_pipeline.differential_privacy.budget import Budget
    from anon_pipeline.differential_privacy.reading import Counting

budget = typer.Typer(help="Read and check what the people of a dataset have been asked.", no_args_is_help=True)
app.add_typer(budget, name="budget")

SpecFile = Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")]
EngineThreads = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads of the engine; all cores where absent.")
]
PublicKey = Annotated[Path | None, typer.Option(help="Check the signatures too, with this public key in PEM.")]


@app.command()
def query(
    spec: SpecFile,
    sql: Annotated[str, typer.Argument(help="One SELECT over the dataset; COUNT, SUM, AVG, MEDIAN, QUANTILE_CONT.")],
    epsilon: Annotated[float | None, typer.Option(help="What it may cost, at the budget's delta.")] = None,
    rho: Annotated[float | None, typer.Option(help="Or in rho of zero-concentrated differential privacy.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Tell noise and cost; read and spend nothing.")] = False,
    engine: EngineName = "duckdb",
    threads: EngineThreads = None,
    memory: MemoryLimit = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question with noise, under the budget of the people it is about (exit 3 when it is spent)."""
    from anon_pipeline.differential_privacy import queries

    policy, share = ReleaseSpec.load(spec), queries.Share(epsilon, rho)
    if preview:
        content = queries.preview(policy, sql, share)
    else:
        home = Home.default().prepare()
        with scratch(home.private_folder("scratch")) as folder:
            counting = _engine(engine, folder, memory or policy.engine.memory_limit, threads or policy.engine.threads)
            content = queries.ask(policy, home, counting, sql, share).to_json()
    if as_json:
        print_json(content)
    elif preview:
        _show_preview(content)
    else:
        _show_answer(content)


@app.command()
def statistics(
    spec: SpecFile,
    engine: EngineName = "duckdb",
    threads: EngineThreads = None,
    memory: MemoryLimit = None,
    as_json: AsJson = False,
) -> None:
    """Ask the questions of the spec's file and publish the answers (exit 3 when the budget does not suffice)."""
    from anon_pipeline.differential_privacy.queries import read_queries

    policy = ReleaseSpec.load(spec)
    read_queries(policy)
    home = Home.default().prepare()
    show_progress()
    from anon_pipeline.pipeline.launch import launch
    from anon_pipeline.pipeline.runtime import Runtime

    runtime = Runtime(home=str(home.root), engine_name=engine, threads=threads, memory_limit=memory)
    outcome = launch(policy, home, runtime, "statistics")
    if as_json:
        print_json(outcome.to_json())
    elif outcome.exit_code == 0:
        privacy = outcome.manifest["differential_privacy"]
        state = "published" if outcome.new else "stands already; nothing was spent"
        _say(out, f"{outcome.manifest['dataset']} {outcome.manifest['version']}: {state}")
        _say(
            out,
            f"together an epsilon of {privacy['epsilon']:.4g} at delta {privacy['delta']:g}",
            *_budget_lines(privacy["budget"]),
        )
        _say(out, f"in {outcome.folder}")
    else:
        _say(err, *outcome.failures)
    raise typer.Exit(outcome.exit_code)


@budget.command("show")
def show_budget(spec: SpecFile, as_json: AsJson = False) -> None:
    """What is spent and what is left of the budget that a dataset draws on, with every reservation."""
    from anon_pipeline.differential_privacy.ledger import RESERVE

    state = _budget(spec).state()
    content = state.to_json()
    if as_json:
        asked = [{"time": line.time, **line.entries} for line in state.lines if line.action == RESERVE]
        print_json({**content, "questions": asked})
        return
    table = Table(title=f"budget of {content['subject']}", title_justify="left")
    for heading in ("time", "dataset", "rho", "question"):
        table.add_column(heading)
    for line in state.lines:
        if line.action == RESERVE:
            rho = f"{line.entries['nano_rho'] / 1e9:.6f}"
            table.add_row(line.time, line.entries["dataset"], rho, Text(line.entries["what"]))
    out.print(table)
    _say(out, *_budget_lines(content), f"head {content['head']}")


@budget.command("verify")
def verify_budget(
    spec: SpecFile,
    public_key: PublicKey = None,
    head: Annotated[
        str | None,
        typer.Option(help="A head that was told before, as `budget show` prints it: the ledger has it still."),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="The ledger.jsonl of the same subject from another home.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Re-check the ledger: chain, signatures, sums, and other homes (exit 3 where something is wrong)."""
    from anon_pipeline.differential_privacy.verification import verify
    from anon_pipeline.release import signing

    key = None if public_key is None else signing.read_public_key(public_key)
    verified = verify(_budget(spec), key, head, against)
    if as_json:
        print_json(verified.to_json())
    else:
        _say(err, *verified.problems)
        _say(out, *verified.notes)
    raise typer.Exit(REFUSED if verified.problems else 0)


@budget.command("accept")
def accept_budget(
    spec: SpecFile,
    why: Annotated[str, typer.Option(help="The reason, one line; it stands in the ledger for good.")],
    as_json: AsJson = False,
) -> None:
    """Vouch for another allowance than before, or for a home that was moved or restored; the ledger says so."""
    line = _budget(spec, Home.default().prepare()).accept(why)
    if as_json:
        print_json({"sequence": line.sequence, "time": line.time, **line.entries})
    else:
        _say(out, f"entered as line {line.sequence}")


def _engine(name: str, folder: Path, memory: str | None, threads: int | None) -> Counting:
    if name == "duckdb":
        from anon_pipeline.engine.duckdb import DuckDBEngine

        return DuckDBEngine(folder, memory, threads)
    if name == "spark":
        from anon_pipeline.engine.spark import SparkEngine

        return SparkEngine(folder, memory, threads)
    raise InputError(f"--engine: {name!r} is not available; use duckdb or spark")


def _budget(spec: Path, home: Home | None = None) -> Budget:
    """The budget that a dataset draws on; to look at it no home is made, and none need be writable."""
    from anon_pipeline.differential_privacy.budget import Allowance, Budget
    from anon_pipeline.differential_privacy.reading import asked_of

    return Budget(home or Home.default(), Allowance.of(asked_of(ReleaseSpec.load(spec))))


def _show_answer(content: dict[str, Any]) -> None:
    table = Table(title=content["dataset"], title_justify="left")
    for name in content["columns"]:
        table.add_column(Text(name))
    for row in content["rows"]:
        table.add_row(*(Text(_cell(row[name])) for name in content["columns"]))
    out.print(table)
    paid = content["cost"]
    spent = f"spent {_cost(paid)}" if content["new"] else "asked before: nothing was spent"
    _say(out, spent, *_budget_lines(content["budget"]), *(f"note: {note}" for note in content["notes"]))


def _show_preview(content: dict[str, Any]) -> None:
    table = Table(title=f"{content['dataset']}: what the question would cost and tell", title_justify="left")
    for heading in ("measures", "mechanism", "scale", "rho"):
        table.add_column(heading)
    for mechanism in content["mechanisms"]:
        table.add_row(
            Text(mechanism["measures"]), mechanism["mechanism"], f"{mechanism['scale']:.4g}", f"{mechanism['rho']:.6f}"
        )
    out.print(table)
    for name, width in content["half_widths"].items():
        wordings = {
            "value": "{name}: within {value:.4g} of the exact figure",
            "rank": "{name}: within {rank:,} rows of the quantile",
            "rows": "{name}: within about {value_times_rows:.4g} divided by the rows of the group",
        }
        text = next(wording for which, wording in wordings.items() if which in width)
        _say(out, text.format(name=name, **width) + ", with 95 % confidence")
    _say(out, f"would spend {_cost(content['cost'])}; nothing was read or spent")
    _say(out, *(f"note: {note}" for note in content["notes"]))


def _cell(value: Any) -> str:
    if value is None:
        return "(missing)"
    if not isinstance(value, dict):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if value["value"] is None:
        return "too few to tell"
    if value["low"] is None:
        return f"{value['value']:,.6g}"
    return f"{value['value']:,.6g} ({value['low']:,.6g} to {value['high']:,.6g})"


def _cost(cost: dict[str, float]) -> str:
    threshold = f" and {cost['threshold_delta']:g} of delta" if cost["threshold_delta"] else ""
    return (
        f"a rho of {cost['rho']:.6f} (alone an epsilon of {cost['epsilon']:.4g} at delta {cost['delta']:g}){threshold}"
    )


def _budget_lines(state: dict[str, Any]) -> list[str]:
    rho, epsilon = state["rho"], state["epsilon"]
    return [
        f"budget of {state['subject']}: {rho['left']:.6f} of a rho of {rho['total']:.6f} is left; "
        f"epsilon {epsilon['spent']:.4g} of {epsilon['total']:.4g} is spent at delta {state['delta']:g}"
    ]


def _say(console: Console, *sentences: str) -> None:
    for sentence in sentences:
        console.print(sentence, highlight=False, soft_wrap=True)
