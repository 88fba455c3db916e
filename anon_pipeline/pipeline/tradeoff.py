"""The price list of a dataset: as a command measures it, and as an asset that a spec switches on.

It releases nothing, and no release waits for it.
"""

import base64
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import InputError
from anon_pipeline.home import remove_leftovers
from anon_pipeline.learning.tradeoff import Price, Settings, price_list
from anon_pipeline.pipeline.following import people_of
from anon_pipeline.pipeline.runtime import Runtime, log
from anon_pipeline.pipeline.technical_names import owners
from anon_pipeline.release import manifest
from anon_pipeline.release.publish import DATA
from anon_pipeline.report import tradeoff as shown
from anon_pipeline.spec import NO_ROWS, ColumnType, ReleaseSpec


def measure(spec: ReleaseSpec, runtime: Runtime, settings: Sequence[Settings], with_utility: bool) -> list[Price]:
    """Read the source afresh and measure each setting; the stored results of the pipeline stay as they are."""
    if spec.aggregates:
        raise InputError(f"sweep: prices groupings of people, and {NO_ROWS}")
    home = runtime.place()
    with home.lock(f"sweep-{spec.dataset}"):
        folder = home.private_folder(spec.dataset, "sweep")
        remove_leftovers(folder)
        with tempfile.TemporaryDirectory(prefix=".", dir=folder) as scratch:
            table = Path(scratch) / DATA
            types = runtime.engine(spec).store_source(spec, table).types()
            return _measured(spec, runtime, table, types, settings, with_utility)


def build_frontier(spec: ReleaseSpec) -> list[dg.AssetsDefinition]:
    """The asset `frontier`, where the spec asks for a price list."""
    if spec.frontier is None:
        return []
    settings = spec.frontier.settings()

    @dg.asset(
        key_prefix=spec.dataset,
        group_name=spec.dataset,
        owners=owners(spec.owner),
        code_version=manifest.code_hash()[:12],
        pool=spec.dataset,
        deps=[dg.AssetKey([spec.dataset, people_of(spec)])],
        kinds={"scikitlearn"},
        description="The price list: what each setting under `frontier:` in the spec would cost and protect. "
        f"{spec.dataset}_release does not make it: materialize it by its own button, after {people_of(spec)}, or with "
        f"`anon-pipeline sweep`.",
    )
    def frontier(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "frontier") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(people_of(spec))
            types = SourceFacts.from_json(raw.facts).types()
            prices = _measured(spec, runtime, raw.folder / DATA, types, settings, True)
            facts = {"settings": len(prices), "refused": sum(price.refused is not None for price in prices)}
            with stages.store("frontier", {"raw_data": raw}, {**facts, "prices": shown.as_json(prices)}) as folder:
                shown.write(prices, spec.dataset, folder)
            noted.update(facts)
        return dg.MaterializeResult(metadata={**facts, **_metadata(spec, prices)})

    return [frontier]


def _measured(
    spec: ReleaseSpec,
    runtime: Runtime,
    table: Path,
    types: dict[str, ColumnType],
    settings: Sequence[Settings],
    with_utility: bool,
) -> list[Price]:
    def progress(done: int, trees: int) -> None:
        log.info("%s: price list, tree %s of %s", spec.dataset, done, trees)

    load_model = runtime.tracking().load_model
    key = runtime.key(spec)
    engine = runtime.engine(spec)
    workers = runtime.workers(spec, engine.rows(table))
    return price_list(engine, table, spec, types, key, settings, with_utility, load_model, progress, workers)


def _metadata(spec: ReleaseSpec, prices: Sequence[Price]) -> dict[str, Any]:
    headings, rows = shown.table(prices)
    picture = base64.b64encode(shown.picture(prices, spec.dataset).encode()).decode()
    return {
        "price_list": dg.MetadataValue.md(shown.markdown_table(headings, rows)),
        "refusals": dg.MetadataValue.md("\n".join(f"- {one}" for one in shown.notes(prices)) or "none"),
        "picture": dg.MetadataValue.md(f"![what each setting costs and protects](data:image/svg+xml;base64,{picture})"),
    }
