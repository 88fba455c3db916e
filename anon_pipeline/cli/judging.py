"""Commands that assess any table, from this package or another tool: `verify` and `attack`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from anon_pipeline.cli.app import REFUSED, AsJson, Delimiter, Encoding, Sheet, app, names_in, print_json, source_of
from anon_pipeline.cli.tables import show_attacks, show_verdict
from anon_pipeline.errors import InputError
from anon_pipeline.home import scratch as scratch_folder
from anon_pipeline.imports import large_imports
from anon_pipeline.spec import Column, ReleaseSpec, Role


@app.command()
def verify(
    table: Annotated[
        Path, typer.Argument(help="Any CSV or Parquet table, workbook, file of Stata or SPSS, or folder of a release.")
    ],
    spec: Annotated[Path | None, typer.Option(help="Judge it by this spec, or that in a manifest.json.")] = None,
    quasi_identifiers: Annotated[str | None, typer.Option(help="Or by these columns: a,b,c.")] = None,
    k: Annotated[int | None, typer.Option(min=2, help="People a class must have at least.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="Columns to measure inference for: x,y.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Judge a table by reading it afresh: it holds (exit 0) or does not (3)."""
    with large_imports():
        from anon_pipeline.engine.duckdb import DuckDBEngine
        from anon_pipeline.engine.measured_columns import with_values_of
        from anon_pipeline.privacy.verdict import verify_by_columns, verify_by_spec
        from anon_pipeline.profiling.unread_texts import formats_not_stated
        from anon_pipeline.release.single_release import spec_to_judge_by, table_of

    if (spec is None) == (quasi_identifiers is None):
        raise InputError(
            "name either --spec, or --quasi-identifiers with --k; a release's manifest.json is a spec, too"
        )
    if spec is not None and (k is not None or sensitive is not None):
        raise InputError("--k and --sensitive: the spec says both; leave them out, or name no --spec")
    if quasi_identifiers is not None and not names_in(quasi_identifiers):
        raise InputError("--quasi-identifiers: names no column; without one everybody would be alike")
    table = table_of(table)
    written = source_of({"path": table.name, "delimiter": delimiter, "encoding": encoding, "sheet": sheet})
    with scratch_folder() as scratch:
        engine = DuckDBEngine(scratch)
        if spec is not None:
            policy = spec_to_judge_by(spec)
            if policy.is_synthetic:
                raise InputError(
                    "--spec: is of a synthetic release, whose promise cannot be counted in its table; take "
                    "`anon-pipeline releases verify` and `anon-pipeline budget verify`"
                )
            measured = {name: policy.columns[name] for name in policy.with_role(Role.SENSITIVE)}
            file = engine.import_table(table, scratch, measured, with_values_of(written, policy.source))
            if policy.aggregates:
                from anon_pipeline.privacy.group_table import judge_group_table

                verdict = judge_group_table(engine, file, policy)
            else:
                verdict = verify_by_spec(engine, file, policy, table.parent / "classes.parquet", of_texts=file != table)
        else:
            if k is None:
                raise InputError("--k is missing: say how many people a class must have at least")
            named = names_in(sensitive)
            undescribed = {name: Column(role=Role.SENSITIVE) for name in named}
            file = engine.import_table(table, scratch, undescribed, written)
            verdict = verify_by_columns(engine, file, names_in(quasi_identifiers), k, named)
            verdict = replace(verdict, notes=formats_not_stated(file, named))
    if as_json:
        print_json(verdict.to_json())
    else:
        show_verdict(table.name, verdict)
    raise typer.Exit(0 if verdict.holds else REFUSED)


@app.command()
def attack(
    table: Annotated[
        Path, typer.Argument(help="Any CSV or Parquet table, anonymized by any tool, or the folder of a release.")
    ],
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
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Attack a table: who in it is linked, singled out, inferred or recognised (exit 0, whatever is found)."""
    from anon_pipeline.audit.attacked_files import Files
    from anon_pipeline.audit.foreign_columns import Roles
    from anon_pipeline.audit.foreign_table import attack_table
    from anon_pipeline.release.single_release import table_of

    if (spec is None) == (quasi_identifiers is None) or (spec is not None and sensitive is not None):
        raise InputError("name either --spec, or --quasi-identifiers and, where there are any, --sensitive")
    roles = (
        Roles(names_in(quasi_identifiers), names_in(sensitive)) if spec is None else Roles.of(ReleaseSpec.load(spec))
    )
    table = table_of(table)
    written = source_of({"path": table.name, "delimiter": delimiter, "encoding": encoding, "sheet": sheet})
    with scratch_folder() as scratch:
        attacked = attack_table(Files(table, original, control, written), roles, scratch, targets, seed)
    if as_json:
        print_json(attacked.to_json())
        return
    show_attacks(table.name, attacked)
