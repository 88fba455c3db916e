"""The commands: thin, each a few lines that read arguments, call one layer and show what came back.

Progress and errors go to stderr; stdout has the summary, or with --json one JSON object and nothing else.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import DATA_VARIABLE, Home, data_folder, out_of_space, write_file
from anon_pipeline.home import scratch as scratch_folder
from anon_pipeline.opening_commands import check_opening, open_release
from anon_pipeline.spec import Frontier, ReleaseSpec, Role, Source, permission

app = typer.Typer(
    help="Turn a table of people into a release that may be published, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
releases = typer.Typer(help="Read, re-check, sign and withdraw what has been published.", no_args_is_help=True)
app.add_typer(releases, name="releases")
releases.command("open")(open_release)
releases.command("check-opening")(check_opening)

out, err = Console(), Console(stderr=True)

BAD_INPUT, REFUSED = 2, 3

DEBUG_VARIABLE = "ANON_PIPELINE_DEBUG"

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Let the spec import the model that it names; its code then runs as you."),
]


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    engine: Annotated[str, typer.Option(help="duckdb, or spark where that extra is installed.")] = "duckdb",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the engine; all cores where absent.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory limit of the engine, for example 4GB.")] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Run the whole graph of a dataset: released (exit 0), bad input (2), or refused by a check (3)."""
    if allow_code:
        permission.allow_code()
    policy = ReleaseSpec.load(spec)
    home = Home.default().prepare()
    _show_progress()
    from anon_pipeline.pipeline.launch import launch
    from anon_pipeline.pipeline.runtime import Runtime

    outcome = launch(
        policy, home, Runtime(home=str(home.root), engine_name=engine, threads=threads, memory_limit=memory)
    )
    if as_json:
        _print_json(outcome.to_json())
    elif outcome.exit_code == 0:
        _show_release(outcome.manifest, outcome.folder, outcome.new)
    else:
        for sentence in outcome.failures:
            err.print(f"[bold red]{'Refused' if outcome.exit_code == REFUSED else 'Not released'}[/]: ", end="")
            err.print(sentence, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(outcome.exit_code)


@app.command()
def verify(
    table: Annotated[Path, typer.Argument(help="Any CSV or Parquet table.")],
    spec: Annotated[Path | None, typer.Option(help="Judge it by this spec.")] = None,
    quasi_identifiers: Annotated[str | None, typer.Option(help="Or by these columns: a,b,c.")] = None,
    k: Annotated[int | None, typer.Option(min=2, help="People a class must have at least.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="Columns to measure inference for: x,y.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a table by reading it afresh: it holds (exit 0) or does not (3)."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.privacy.group_table import judge_group_table
    from anon_pipeline.privacy.verdict import verify_by_columns, verify_by_spec

    if (spec is None) == (quasi_identifiers is None):
        raise InputError("name either --spec, or --quasi-identifiers with --k")
    with scratch_folder() as scratch:
        engine = DuckDBEngine(scratch)
        if spec is not None:
            policy = ReleaseSpec.load(spec)
            file = engine.import_table(table, scratch, policy.with_role(Role.SENSITIVE))
            verdict = (
                judge_group_table(engine, file, policy)
                if policy.aggregates
                else verify_by_spec(engine, file, policy, table.parent / "classes.parquet")
            )
        else:
            if k is None:
                raise InputError("--k is missing: say how many people a class must have at least")
            measured = _names(sensitive)
            file = engine.import_table(table, scratch, measured)
            verdict = verify_by_columns(engine, file, _names(quasi_identifiers), k, measured)
    if as_json:
        _print_json(verdict.to_json())
    else:
        shown = Table(title=f"{table.name}: {'holds' if verdict.holds else 'does not hold'}", title_justify="left")
        for heading in ("demand", "measured", f"{'groups' if verdict.groups else 'classes'} that fail", "holds"):
            shown.add_column(heading)
        for finding in verdict.findings:
            shown.add_row(finding.demand, _number(finding.measured), f"{finding.failing:,}", _yes(finding.holds))
        out.print(shown)
        out.print(
            f"{verdict.rows:,} groups; the smallest counts {verdict.smallest_class:,} people"
            if verdict.groups
            else f"{verdict.rows:,} rows in {verdict.classes:,} classes; the smallest has {verdict.smallest_class:,}; "
            f"{verdict.rows_below:,} rows stand in classes that are too small"
        )
        for column, measures in verdict.sensitive.items():
            told = ", ".join(f"{name} {_number(value)}" for name, value in measures.items())
            out.print(f"{column}: {told}", markup=False)
        for problem in verdict.problems:
            out.print(problem, markup=False)
    raise typer.Exit(0 if verdict.holds else REFUSED)


@app.command()
def attack(
    table: Annotated[Path, typer.Argument(help="Any CSV or Parquet table, anonymized by any tool.")],
    original: Annotated[Path, typer.Option(help="The raw people who are in it.")],
    control: Annotated[
        Path | None, typer.Option(help="Raw people like them who are not in it; without them no leak can be told.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(help="Take the columns' roles from this spec.")] = None,
    quasi_identifiers: Annotated[
        str | None, typer.Option(help="Or name the columns an attacker may know: a,b,c.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="And those worth inferring: x,y.")] = None,
    targets: Annotated[int, typer.Option(min=1, help="People of either kind who are attacked at most.")] = 2_000,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Attack a table: who in it is linked, singled out, inferred or recognised (exit 0, whatever is found)."""
    from anon_pipeline.audit.foreign_table import Roles, attack_table
    from anon_pipeline.report import attacks as audit_report

    if (spec is None) == (quasi_identifiers is None) or (spec is not None and sensitive is not None):
        raise InputError("name either --spec, or --quasi-identifiers and, where there are any, --sensitive")
    roles = Roles(_names(quasi_identifiers), _names(sensitive)) if spec is None else Roles.of(ReleaseSpec.load(spec))
    with scratch_folder() as scratch:
        attacked = attack_table(table, original, control, roles, scratch, targets, seed)
    content = attacked.to_json()
    if as_json:
        _print_json(content)
        return
    shown = Table(title=f"{table.name}: {attacked.rows:,} rows", title_justify="left", box=None, pad_edge=False)
    for heading in ("attack", "people in it", "others", "blind guess", "leak", "verdict"):
        shown.add_column(heading, no_wrap=True)
    for row in audit_report.table(content["findings"]):
        shown.add_row(
            *(Text(cell) for cell in (row.name, row.attack, row.control, row.baseline, row.leak, row.verdict))
        )
    Console(width=max(out.width, 200)).print(shown)  # a line per attack, however narrow the window
    for finding in attacked.findings:
        out.print(f"\n{finding.name}: {finding.sentence}", markup=False, highlight=False, soft_wrap=True)
    for note in attacked.notes:
        out.print(f"\n{note}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="The dataset: small letters, digits and _.")],
    table: Annotated[Path, typer.Option("--from", help="A CSV, Parquet, DuckDB or SQLite file, or a Parquet folder.")],
    copy: Annotated[bool, typer.Option("--copy", help="Copy the table into the folder of the dataset.")] = False,
    query: Annotated[str | None, typer.Option(help="The rows of a DuckDB or SQLite file.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of a CSV; detected where absent.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a CSV; detected where absent.")] = None,
    names: Annotated[str | None, typer.Option(help="Of the columns of a CSV without a header: a,b,c.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write data/NAME/release.yaml, proposed from a table; it runs when a person has decided its open lines."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.profiling.new_dataset import start_dataset

    if delimiter is not None and not 1 <= len(delimiter) <= 4:
        raise InputError("--delimiter: is one to four letters")
    stated = {"query": query, "delimiter": delimiter, "encoding": encoding}
    unnamed = {} if names is None else {"header": 0, "names": _names(names)}
    source = Source.model_validate(
        {"path": str(table), **{key: one for key, one in stated.items() if one is not None}, **unnamed}
    )
    with scratch_folder() as scratch:
        made = start_dataset(DuckDBEngine(scratch), name, table, data_folder(), copy, source)
    if as_json:
        _print_json(made.to_json())
        return
    found = made.profile
    sampled = "" if found.looked_at == found.rows else f", by looking at {found.looked_at:,} of them"
    shown = Table(
        title=f"{name}: {found.rows:,} rows{sampled}", title_justify="left", show_header=False, box=None, pad_edge=False
    )
    shown.add_column(style="bold")
    shown.add_column()
    for role in Role:
        of_role = [one.name for one in found.columns if one.role is role and one.question is None]
        if of_role:
            shown.add_row(role.value, Text(", ".join(of_role)))
    out.print(shown)
    told = [f"wrote {made.file}; decide these lines of it, a reason stands above each column:"]
    told += [f"  line {line}, {one.place}: {one.question}" for line, one in made.open]
    told.append(f"then: anon-pipeline run {made.file.parent}")
    for sentence in told:
        out.print(sentence, markup=False, highlight=False, soft_wrap=True)


@app.command()
def profile(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file, or a folder of Parquet files.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="Write the proposed spec to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a spec as `init` does, without a dataset folder."""
    from anon_pipeline.engine.duckdb import DuckDBEngine
    from anon_pipeline.profiling.new_dataset import draft_beside, profile_table

    if out_file is not None and out_file.exists():
        raise InputError(f"{out_file}: exists already; a policy is not overwritten")
    with scratch_folder() as scratch:
        found = profile_table(DuckDBEngine(scratch), table)
    if out_file is not None:
        try:
            write_file(out_file, draft_beside(found, table, out_file), public=True)
        except OSError as error:
            raise InputError(f"{out_file}: cannot be written ({error.strerror})") from None
    if as_json:
        _print_json(found.to_json())
    elif out_file is None:
        sys.stdout.write(draft_beside(found, table, Path("release.yaml")))
    else:
        err.print(f"wrote {out_file}; decide its lines that say `decide`, then run it", markup=False)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    k: Annotated[str | None, typer.Option("--k", help="Values of k: 2,5,10.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Values at a path of the spec: privacy.t_closeness.t=0.2,0.4; may be repeated."),
    ] = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the files; var/frontier/DATASET where absent.")
    ] = None,
    utility: Annotated[bool, typer.Option(help="Measure accuracy before and after, which takes longest.")] = True,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Price list: what every combination of settings would cost and protect. Nothing is released."""
    if allow_code:
        permission.allow_code()
    policy = ReleaseSpec.load(spec)
    varied = Frontier.parse(k, set_ or []) if k is not None or set_ else policy.frontier
    if varied is None:
        raise InputError("say what to vary with --k or --set, for example --k 2,5,10, or write a frontier: in the spec")
    settings = varied.settings()
    for setting in settings:
        policy.replaced(setting)  # told before any work starts
    home = Home.default().prepare()
    folder = home.root / "frontier" / policy.dataset if out_folder is None else out_folder
    _show_progress()
    from anon_pipeline.pipeline.runtime import Runtime
    from anon_pipeline.pipeline.tradeoff import measure
    from anon_pipeline.report import tradeoff

    prices = measure(policy, Runtime(home=str(home.root)), settings, utility)
    files = tradeoff.write(prices, policy.dataset, folder)
    if as_json:
        content = {"dataset": policy.dataset, "folder": str(folder), "prices": tradeoff.as_json(prices)}
        _print_json(content)
        return
    headings, rows = tradeoff.table(prices, brief=True)
    shown = Table(title=f"{policy.dataset}: the price list", title_justify="left")
    shown.add_column()
    for row in rows:  # a column a setting, since there are more measures than settings
        shown.add_column(Text(row[0]), justify="right")
    for number, heading in enumerate(headings[1:], start=1):
        shown.add_row(Text(heading), *(Text(row[number]) for row in rows))
    out.print(shown)
    if any(price.current for price in prices):
        out.print("* what the spec says", markup=False)
    for sentence in tradeoff.notes(prices):
        out.print(sentence, markup=False, highlight=False)
    out.print(f"written: {', '.join(str(file) for file in files)}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def steps(
    name: Annotated[str | None, typer.Argument(help="One technique; all where absent.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the masking techniques: parameters, what they do, what they guarantee, when to use which."""
    from anon_pipeline.pipeline.masking_commands import techniques, told

    rows = techniques(name)
    if as_json:
        _print_json({"techniques": [asdict(row) for row in rows]})
    else:
        sys.stdout.write("\n\n".join(told(row, name is not None) for row in rows) + "\n")


@app.command()
def mask(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    out_file: Annotated[Path, typer.Option("--out", help="A CSV or Parquet file, new; only you may read it.")],
    as_json: AsJson = False,
) -> None:
    """Apply the masking steps of a spec without grouping anybody. This is no release, and proves nothing."""
    from anon_pipeline.pipeline.masking_commands import mask_source

    masked = mask_source(ReleaseSpec.load(spec), Home.default().prepare(), out_file)
    err.print(f"anon-pipeline: {masked.warning}", markup=False, highlight=False, soft_wrap=True)
    reports = [asdict(report) for report in masked.reports]
    if as_json:
        _print_json({"file": str(out_file), "rows": masked.rows, "groups": masked.groups, "masking": reports})
        return
    shown = Table(
        title=f"{out_file.name}: {masked.rows:,} {'groups' if masked.groups else 'rows'}", title_justify="left"
    )
    for heading in ("columns", "technique", "guarantee", "cells changed"):
        shown.add_column(heading)
    for report in masked.reports:
        changed = ", ".join(f"{cost.changed:.1%}" for cost in report.costs.values()) or "-"
        shown.add_row(Text(", ".join(report.columns) or "-"), report.technique, report.guarantee, changed)
    out.print(shown)


@app.command()
def reveal(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet table that holds tokens.")],
    spec: Annotated[Path, typer.Option(help="The spec that encrypted the column.")],
    column: Annotated[str, typer.Option(help="The column whose tokens are turned back.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="A CSV or Parquet file, new; only you may read it. Else CSV on stdout.")
    ] = None,
) -> None:
    """Turn the tokens of an encrypted column back, for who holds the key."""
    from anon_pipeline.pipeline.masking_commands import as_csv, reveal_column

    revealed = reveal_column(table, ReleaseSpec.load(spec), column, out_file)
    if out_file is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(as_csv(revealed))
    else:
        err.print(f"wrote {out_file}, which names people again", markup=False, highlight=False, soft_wrap=True)


@app.command()
def report(
    version: Annotated[str, typer.Argument(help="A release, as `anon-pipeline releases list` names it.")],
    form: Annotated[
        str | None, typer.Option("--as", help="markdown, html or pdf; what --out ends in, else markdown.")
    ] = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="Write it to this file; else to stdout.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Where several have such a version.")] = None,
) -> None:
    """Write the report of a release as Markdown for a pull request, as the page, or as a PDF."""
    from anon_pipeline.release.exported_report import export, form_of

    written = export(Home.default(), version, form_of(form, out_file), dataset)
    if out_file is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(written)
        return
    try:
        write_file(out_file.absolute(), written, public=True)
    except OSError as error:
        raise InputError(f"{out_file}: cannot be written ({error.strerror})") from None
    err.print(f"wrote {out_file}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def forget(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    identifiers: Annotated[Path, typer.Argument(help="A text file with an identifier of a person per line.")],
    as_json: AsJson = False,
) -> None:
    """Forget people in what is kept of former releases, after they were taken out of the source."""
    from anon_pipeline.pipeline.following import forget_people

    policy = ReleaseSpec.load(spec)
    forgotten = forget_people(policy, Home.default().prepare(), identifiers)
    if as_json:
        _print_json({"dataset": policy.dataset, "entries": forgotten})
    else:
        out.print(f"{forgotten:,} entries about them were replaced by random numbers", highlight=False)


@releases.command("list")
def list_releases(as_json: AsJson = False) -> None:
    """All releases and withdrawals, oldest first."""
    from anon_pipeline.release import ledger

    entries = ledger.read(Home.default())
    if as_json:
        _print_json({"releases": [vars(entry) for entry in entries]})
        return
    shown = Table()
    for heading in ("#", "time", "dataset", "version", "action", "why"):
        shown.add_column(heading)
    for entry in entries:
        shown.add_row(
            str(entry.sequence), entry.time, entry.dataset, entry.version, entry.action, Text(entry.why or "")
        )
    out.print(shown)


@releases.command("show")
def show_release(version: str, as_json: AsJson = False) -> None:
    """One release: what was asked, what holds, what it cost, and whether it was withdrawn."""
    from anon_pipeline.release import ledger

    home = Home.default()
    entry = next((entry for entry in ledger.read(home) if entry.version == version), None)
    if entry is None:
        raise InputError(f"{version}: there is no such release; see `anon-pipeline releases list`")
    folder = home.releases / entry.dataset / entry.version
    try:
        content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{version}: its manifest cannot be read; run `anon-pipeline releases verify`") from None
    withdrawn = ledger.withdrawal(home, entry.dataset, version)
    if as_json:
        gone = {} if withdrawn is None else {"withdrawn": {"time": withdrawn.time, "why": withdrawn.why}}
        _print_json({**content, **gone})
        return
    if withdrawn is not None:
        out.print(f"withdrawn on {withdrawn.time}: {withdrawn.why}", style="bold red", markup=False)
    _show_release(content, folder, True)


@releases.command("verify")
def verify_releases(
    public_key: Annotated[
        Path | None, typer.Option(help="Check the ledger's signature too, with this public key in PEM.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Re-check the ledger's chain and every file hash: all is as it was (exit 0) or not (3)."""
    from anon_pipeline.release import ledger, signing

    home = Home.default()
    key = None if public_key is None else signing.read_public_key(public_key)
    with ledger.undisturbed(home):
        problems = ledger.verify(home, key)
    if as_json:
        _print_json({"holds": not problems, "problems": problems})
    else:
        for problem in problems:
            err.print(problem, markup=False)
        if not problems:
            out.print(f"{len(ledger.read(home))} ledger lines and all their files are what they were")
        if public_key is None and ledger.signature_file(home).exists():
            err.print("the ledger's signature was not checked; name the publisher's --public-key")
    raise typer.Exit(REFUSED if problems else 0)


@releases.command("withdraw")
def withdraw_release(
    version: str,
    why: Annotated[str, typer.Option(help="The reason, one line; everyone can read it in the ledger.")],
    dataset: Annotated[str | None, typer.Option(help="Where several datasets have a release of this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a release back: its files are removed, its manifest stays, and the ledger says why."""
    from anon_pipeline.release.withdraw import withdraw

    entry = withdraw(Home.default().prepare(), version, why, dataset)
    if as_json:
        _print_json(vars(entry))
    else:
        out.print(f"{entry.dataset}/{entry.version} is withdrawn; whoever has copied it has it still", markup=False)


@releases.command("key")
def signing_key(
    new: Annotated[Path | None, typer.Option(help="Make a key and write it to this new file.")] = None,
) -> None:
    """Print the public half of the signing key, of the environment's or of a new one."""
    from anon_pipeline.release import signing

    key = signing.signing_key() if new is None else signing.make_key(new)
    if key is None:
        raise InputError(f"{signing.KEY_VARIABLE} and {signing.FILE_VARIABLE} are not set; {signing.HOW}")
    sys.stdout.write(signing.public_pem(key))


@releases.command("sign")
def sign_releases() -> None:
    """Sign the ledger as it is, for the first time or with a new key; every later line is signed by itself."""
    from anon_pipeline.release import ledger, unfinished

    home = Home.default().prepare()
    with home.lock("ledger"):
        unfinished.finish(home)
        lines = ledger.sign(home)
    out.print(f"{lines} ledger lines are signed")


@releases.command("expire")
def expire_private(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    as_json: AsJson = False,
) -> None:
    """Remove what the private zone has kept of a dataset for longer than its spec says; releases stay."""
    from anon_pipeline.pipeline.retention import expire

    expired = expire(Home.default().prepare(), ReleaseSpec.load(spec))
    if as_json:
        _print_json(asdict(expired))
    else:
        removed = ", ".join(expired.stages) or "no stored result"
        out.print(f"removed {removed}; {expired.stories} stories of errors, {expired.spilled} spilled files")


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Port on the loopback address.")] = 3000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="NAME or NAME:PORT under which a proxy or tunnel reaches it; may be repeated."),
    ] = None,
) -> None:
    """Open Dagster's web UI and daemon on loopback, for the datasets under data/."""
    from anon_pipeline.pipeline.guard import ALLOW_HOSTS
    from anon_pipeline.pipeline.instance import dagster_home

    home, here = Home.default().prepare(), Path.cwd()
    folder = dagster_home(home)
    environment = os.environ | {
        "DAGSTER_HOME": str(folder),
        "ANON_PIPELINE_HOME": str(home.root),
        DATA_VARIABLE: str(here / data_folder()),
        ALLOW_HOSTS: ",".join([*(allow_host or []), os.environ.get(ALLOW_HOSTS, "")]),
    }
    os.chdir(folder)  # else Dagster warns of a dagster.yaml in the folder we are in, which says the same
    quietly = [sys.executable, "-W", "ignore:Function `dev_command` is superseded", "-m", "anon_pipeline.pipeline.ui"]
    os.execve(  # noqa: S606 (no shell is what we want)
        sys.executable,
        [*quietly, "-p", str(port), "-d", str(here), "-m", "anon_pipeline.definitions"],
        environment,
    )


def main() -> None:
    """The console script: a sentence and an exit code for what the user can mend, never a traceback."""
    try:
        sys.exit(app(standalone_mode=False, prog_name="anon-pipeline") or 0)
    except InputError as error:
        _fail(str(error), BAD_INPUT)
    except Refused as error:
        _fail(str(error), REFUSED)
    except typer.Abort:
        _fail("stopped", 130)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except Exception as error:
        show: Callable[..., Any] | None = getattr(error, "show", None)  # click's own usage errors
        if show is not None:
            show()
            sys.exit(BAD_INPUT)
        if out_of_space(error):
            _fail(f"{Home.default().root}: the disk is full; free or allow disk space", BAD_INPUT)
        if os.environ.get(DEBUG_VARIABLE):
            raise
        _fail(
            f"internal error ({type(error).__name__}); {DEBUG_VARIABLE}=1 tells its story, people's values included", 1
        )


def _fail(sentence: str, code: int) -> None:
    err.print(f"anon-pipeline: {sentence}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)


def _show_progress() -> None:
    handler = RichHandler(console=err, show_path=False, show_level=False, markup=False)
    logger = logging.getLogger("anon_pipeline")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


def _show_release(manifest: dict[str, Any], folder: Path | None, new: bool) -> None:
    shown = Table(title=f"{manifest['dataset']} {manifest['version']}", title_justify="left", show_header=False)
    shown.add_column(style="bold")
    shown.add_column()
    if manifest.get("groups"):
        _show_groups(shown, manifest, folder, new)
        return
    rows, measured = manifest["rows"], manifest["measured"]
    sizes = measured["class_sizes"]
    shown.add_row("state", "released" if new else "stands already; nothing new was published")
    shown.add_row("people", f"{rows['released']:,} released, {rows['suppressed']:,} suppressed")
    shown.add_row("classes", f"{sizes['classes']:,}; the smallest has {sizes['smallest']:,} people")
    shown.add_row("information lost", f"{measured['information_loss']['mean']:.1%} of the quasi-identifiers' variance")
    for finding in manifest["verified"]:
        shown.add_row("demand", f"{finding['demand']}: measured {_number(finding['measured'])}")
    for metric, one in manifest["utility"]["metrics"].items():
        shown.add_row(
            metric,
            f"{_interval(one['before'])} before, {_interval(one['after'])} after; "
            f"difference {_interval(one['difference'], sign='+')}",
        )
    if folder is not None:
        shown.add_row("folder", str(folder))
    out.print(shown)


def _show_groups(shown: Table, manifest: dict[str, Any], folder: Path | None, new: bool) -> None:
    groups = manifest["groups"]
    shown.add_row("state", "released" if new else "stands already; nothing new was published")
    shown.add_row("people", f"{groups['people']:,} counted, {groups['people_left_out']:,} in groups that are left out")
    shown.add_row("groups", f"{groups['groups']:,}; the smallest counts {groups['smallest']:,} people")
    if groups["means"]:
        shown.add_row("means", f"{', '.join(groups['means'])}; {groups['means_hidden']:,} values are hidden")
    shown.add_row("note", groups["note"])
    for finding in manifest["verified"]:
        shown.add_row("demand", f"{finding['demand']}: measured {_number(finding['measured'])}")
    if folder is not None:
        shown.add_row("folder", str(folder))
    out.print(shown)


def _interval(estimate: dict[str, float | None], sign: str = "") -> str:
    if estimate["mean"] is None:
        return "not defined"
    text = f"{estimate['mean']:{sign}.4f}"
    if estimate["low"] is None:
        return text
    return f"{text} ({estimate['low']:{sign}.4f} to {estimate['high']:{sign}.4f})"


def _number(value: float | None) -> str:
    return (
        "infinite" if value is None else f"{value:,.4g}" if isinstance(value, float) and value % 1 else f"{value:,.0f}"
    )


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _print_json(content: dict[str, Any]) -> None:
    from anon_pipeline.plain_json import finite

    sys.stdout.write(json.dumps(finite(content), indent=2, default=str) + "\n")
