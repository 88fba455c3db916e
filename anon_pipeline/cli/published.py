"""Commands on published releases: `report`, and most of `releases`: `list`, `show`, `verify`, `withdraw`, `key` ..."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from anon_pipeline.cli.app import REFUSED, AsJson, OfDataset, app, err, out, print_json, releases
from anon_pipeline.cli.tables import show_ledger, show_release
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.home import Home, write_file
from anon_pipeline.spec import ReleaseSpec


@app.command()
def report(
    version: Annotated[str, typer.Argument(help="A release, as `anon-pipeline releases list` names it.")],
    form: Annotated[
        str | None, typer.Option("--as", help="markdown, html or pdf; what --out ends in, else markdown.")
    ] = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="Write it to this file; else to stdout.")] = None,
    dataset: OfDataset = None,
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
    err.print(f"wrote {out_file}", highlight=False, soft_wrap=True)


@releases.command("export")
def export_release(
    version: Annotated[str, typer.Argument(help="A release, as `anon-pipeline releases list` names it.")],
    file: Annotated[Path, typer.Argument(help="A file to write; its ending says its kind: csv, tsv, xlsx, dta, sav.")],
    dataset: OfDataset = None,
) -> None:
    """Write the table of a release as a CSV, a workbook, or a file of Stata or SPSS: the same rows."""
    from anon_pipeline.destinations.files import export_table

    rows = export_table(Home.default().existing(), version, file, dataset)
    err.print(f"wrote {number_of(rows, 'row', 'rows')} to {file}", highlight=False, soft_wrap=True)


@releases.command("list")
def list_releases(as_json: AsJson = False) -> None:
    """All releases and withdrawals, oldest first."""
    from anon_pipeline.release import ledger

    entries = ledger.read(Home.default().existing())
    if as_json:
        print_json({"releases": [vars(entry) for entry in entries]})
        return
    show_ledger(entries)


@releases.command("show")
def show_one(version: str, dataset: OfDataset = None, as_json: AsJson = False) -> None:
    """One release: what was asked, what holds, what it cost, and whether it was withdrawn."""
    from anon_pipeline.destinations import record
    from anon_pipeline.release import ledger

    home = Home.default().existing()
    entry = ledger.published(home, version, dataset)
    folder = home.releases / entry.dataset / entry.version
    try:
        content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{version}: its manifest cannot be read; run `anon-pipeline releases verify`") from None
    withdrawn = ledger.withdrawal(home, entry.dataset, version)
    copies = record.read(home, entry.dataset, version)
    if as_json:
        withdrawal = {} if withdrawn is None else {"withdrawn": {"time": withdrawn.time, "why": withdrawn.why}}
        placed = {"copies": [copy.to_json() for copy in copies]} if copies else {}
        print_json({**content, **withdrawal, **placed})
        return
    if withdrawn is not None:
        out.print(f"withdrawn on {withdrawn.time}: {withdrawn.why}", style="bold red")
    show_release(content, folder, True, withdrawn is not None)
    for copy in copies:
        out.print(f"{copy.state} at {copy.place.label} since {copy.time}  {copy.why}", highlight=False)


@releases.command("verify")
def verify_releases(
    version: Annotated[
        str | None, typer.Argument(help="Look at the copies of this release only; at those of all where absent.")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(help="Check the ledger's signature too, with this public key in PEM.")
    ] = None,
    dataset: OfDataset = None,
    as_json: AsJson = False,
) -> None:
    """Re-check the ledger's chain, every file hash and the copies elsewhere: all is as it was (exit 0) or not (3)."""
    from anon_pipeline.destinations import delivery
    from anon_pipeline.release import ledger, signing

    home = Home.default().existing()
    if version is not None:
        dataset = ledger.published(home, version, dataset).dataset
    key = None if public_key is None else signing.read_public_key(public_key)
    with ledger.undisturbed(home):
        problems = ledger.verify(home, key)
    problems += delivery.verify(home, dataset, version)
    if home.private.exists() and not os.access(home.private, os.X_OK):
        told = f"{home.private} belongs to the user {home.owner}, who alone can check copies and the newest line"
        err.print(told, highlight=False, soft_wrap=True)
    if as_json:
        print_json({"holds": not problems, "problems": problems})
    else:
        for problem in problems:
            err.print(problem, soft_wrap=True)
        if not problems:
            lines = number_of(len(ledger.read(home)), "ledger line and all its", "ledger lines and all their")
            out.print(f"{lines} files are what they were")
        if public_key is None and ledger.signature_file(home).exists():
            err.print("the ledger's signature was not checked; name the publisher's --public-key")
    raise typer.Exit(REFUSED if problems else 0)


@releases.command("withdraw")
def withdraw_release(
    version: str,
    why: Annotated[str, typer.Option(help="The reason, one line; everyone can read it in the ledger.")],
    dataset: OfDataset = None,
    as_json: AsJson = False,
) -> None:
    """Take a release back: its files are removed, its manifest stays, and the ledger says why.

    Called again, it takes back what destinations that could not be reached still have.
    """
    from anon_pipeline.destinations import delivery, record
    from anon_pipeline.release.withdraw import WithdrawnAlready, withdraw

    home, ending = Home.default().prepare(), "is withdrawn; whoever has copied it has it still"
    try:
        entry = withdraw(home, version, why, dataset)
        copies = record.read(home, entry.dataset, version)
        if copies:
            delivery.deliver(home, entry.dataset, version)
            copies = record.read(home, entry.dataset, version)
    except WithdrawnAlready as before:
        entry = before.entry
        copies = delivery.finish_withdrawal(home, entry.dataset, version)
        if not copies:
            raise
        ending = f"was withdrawn already, on {entry.time}: {entry.why}; now its destinations follow, too"
    if as_json:
        print_json({**vars(entry), **({"copies": [copy.to_json() for copy in copies]} if copies else {})})
    else:
        for copy in copies:
            err.print(f"{copy.state} at {copy.place.label}; {copy.why}", highlight=False, soft_wrap=True)
        out.print(f"{entry.dataset}/{entry.version} {ending}", highlight=False, markup=False, soft_wrap=True)


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
    out.print(f"{number_of(lines, 'ledger line is', 'ledger lines are')} signed")


@releases.command("expire")
def expire_private(
    spec: Annotated[Path, typer.Argument(help="A release.yaml, or the folder it lies in.")],
    as_json: AsJson = False,
) -> None:
    """Remove what the private zone has kept of a dataset for longer than its spec says; releases stay."""
    from anon_pipeline.pipeline.automation.retention import expire

    expired = expire(Home.default().prepare(), ReleaseSpec.load(spec))
    if as_json:
        print_json(asdict(expired))
    else:
        removed = ", ".join(expired.stages) or "no stored result"
        out.print(f"removed {removed}; {expired.stories} stories of errors, {expired.spilled} spilled files")
