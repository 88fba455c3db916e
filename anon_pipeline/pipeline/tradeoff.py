"""The privacy-utility trade-off of a dataset, measured from its source or from stored people."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from anon_pipeline.errors import InputError
from anon_pipeline.home import remove_leftovers
from anon_pipeline.learning.cells import StoredPeople
from anon_pipeline.learning.problem import Fitting
from anon_pipeline.learning.tradeoff import Settings, TradeOffPoint, trade_off
from anon_pipeline.pipeline.masking import mask_stored
from anon_pipeline.pipeline.step import Run, log
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import NO_ROWS, ColumnType


def measure_source(run: Run, settings: Sequence[Settings], with_utility: bool) -> list[TradeOffPoint]:
    """Read the source again, mask it by the spec and measure each setting.

    The stored results of the pipeline are not changed.

    Raises
    ------
    InputError
        For the spec of a table of groups.
    """
    spec = run.spec
    if spec.aggregates:
        raise InputError(f"sweep: prices groupings of people, and {NO_ROWS}")
    with run.home.lock(f"sweep-{spec.dataset}"):
        folder = run.home.private_folder(spec.dataset, "sweep")
        remove_leftovers(folder)
        with tempfile.TemporaryDirectory(prefix=".", dir=folder) as scratch:
            table = Path(scratch) / DATA
            stored = run.engine.store_source(spec, table)
            if spec.masks:
                masked = Path(scratch) / f"masked_{DATA}"
                stored, table = mask_stored(run, stored, table, masked).stored, masked
            return measured(run, table, stored.types(), settings, with_utility)


def measured(
    run: Run, table: Path, types: dict[str, ColumnType], settings: Sequence[Settings], with_utility: bool
) -> list[TradeOffPoint]:
    """Measure each setting on stored people."""

    def progress(done: int, trees: int) -> None:
        log.info("%s: privacy-utility trade-off, tree %s of %s", run.spec.dataset, done, trees)

    workers = run.workers(run.engine.rows(table))
    stored = StoredPeople(run.engine, table, run.spec, types)
    return trade_off(stored, run.key, settings, with_utility, Fitting(run.load_model, workers, progress))
