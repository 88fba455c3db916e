"""The command `releases deliver`: it copies a release to its destinations again, or removes a withdrawn one there."""

from __future__ import annotations

from typing import Annotated

import typer

from anon_pipeline.cli.app import AsJson, OfDataset, out, print_json, releases
from anon_pipeline.home import Home


@releases.command("deliver")
def deliver_release(
    version: Annotated[str, typer.Argument(help="A release, as `anon-pipeline releases list` names it.")],
    dataset: OfDataset = None,
    as_json: AsJson = False,
) -> None:
    """Put a release to its destinations again, or take a withdrawn one back there: done (exit 0), or not yet (4)."""
    from anon_pipeline.destinations import delivery, record
    from anon_pipeline.release import ledger

    home = Home.default().existing()
    entry = ledger.published(home, version, dataset)
    delivery.deliver(home, entry.dataset, version, compare=True)
    copies = record.read(home, entry.dataset, version)
    if as_json:
        print_json({"dataset": entry.dataset, "version": version, "copies": [copy.to_json() for copy in copies]})
        return
    for copy in copies:
        out.print(f"{copy.state} at {copy.place.label}  {copy.why}", highlight=False)
    if not copies:
        out.print(f"{entry.dataset}/{version} was put nowhere; name places under publish: in its spec and run it")
