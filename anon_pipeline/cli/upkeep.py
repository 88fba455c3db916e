"""Commands for the operator of the service: `prune` removes ended runs, and `alerts` sends a test alert."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from anon_pipeline.cli.app import BAD_INPUT, AsJson, app, out, print_json
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, data_folder
from anon_pipeline.imports import large_imports
from anon_pipeline.spec import ReleaseSpec


@app.command()
def prune(
    older_than: Annotated[str | None, typer.Option(help="Runs that ended before: 30d, 12h, 8w.")] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Runs of each job that stay, however old.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and leave it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove ended runs from Dagster and MLflow, and private results that no step makes any more; releases stay."""
    from anon_pipeline.pipeline.automation.operations import Operations, period

    home = Home.default().existing()
    policy = Operations.of(home).prune
    policy = policy.model_copy(
        update={
            "older_than": policy.older_than if older_than is None else period(older_than),
            "keep": policy.keep if keep is None else keep,
        }
    )
    with large_imports():
        from anon_pipeline.pipeline.automation.pruning import Pruning
        from anon_pipeline.pipeline.instance import open_instance

    with open_instance(home.prepare()) as instance:
        pruned = Pruning(home, policy, _readable_specs(), dry_run).prune(instance)
    if as_json:
        print_json({**asdict(pruned), "dry_run": dry_run})
    else:
        out.print(f"{'would remove' if dry_run else 'removed'} {pruned}", highlight=False)


def _readable_specs() -> list[ReleaseSpec]:
    """The specs under the data folder that can be read; results of other datasets stay."""
    specs = []
    for file in sorted(data_folder().glob("*/release.yaml")):
        try:
            specs.append(ReleaseSpec.load(file))
        except InputError:
            continue
    return specs


@app.command("alerts")
def try_alerts(as_json: AsJson = False) -> None:
    """Send a test alert to every target of operations.yaml in the home (exit 0), and say who did not take it (2)."""
    from anon_pipeline.pipeline.automation.alerts import DELIVERED, Alert, send
    from anon_pipeline.pipeline.automation.operations import FILE, Operations

    home = Home.default().existing()
    operations = Operations.of(home)
    if not operations.alerts:
        raise InputError(f"{home.root / FILE}: names no target; write alerts: [{{webhook: {{url: ...}}}}]")
    outcomes: dict[str, str] = {}
    for target in operations.alerts:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        alert = Alert("test", "test", target.on[0], f"a test alert, sent by hand at {now}", operations.address)
        for name, outcome in send((target,), alert).items():
            outcomes[name if name not in outcomes else f"{name} ({len(outcomes) + 1})"] = outcome
    code = 0 if set(outcomes.values()) == {DELIVERED} else BAD_INPUT
    if as_json:
        print_json({"outcomes": outcomes, "exit_code": code})
    else:
        for target_name, outcome in outcomes.items():
            out.print(f"{target_name}: {outcome}", highlight=False)
    raise typer.Exit(code)
