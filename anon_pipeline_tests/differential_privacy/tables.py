"""A small policy and tables of people to ask about, and DuckDB to count them with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.differential_privacy import answering
from anon_pipeline.differential_privacy.answering import Exact
from anon_pipeline.differential_privacy.plan import Plan
from anon_pipeline.differential_privacy.statement import parse
from anon_pipeline.engine.duckdb import DuckDBSession
from anon_pipeline.engine.typed import Reader
from anon_pipeline.spec import ReleaseSpec

NANO_RHO, ATTO_DELTA = 10**8, 10**11
DOMAINS: dict[str, Any] = {
    "age": {"range": [0, 9], "step": 1, "why": "two hands"},
    "weight": {"range": [-0.5, 1], "step": 0.25, "why": "a scale of quarters"},
    "visits": {"bins": [0, 1, 3, 9], "why": "the form asks so"},
    "city": {"values": ["Aberdeen", "Bergen", "Cork"], "why": "three clinics"},
    "street": {"unknown": True, "why": "free text"},
}
PERSON = {"person": "patient", "groups": 2, "rows": 3}


def policy(unit: Any = "row", **budget: Any) -> dict[str, Any]:
    """A spec of `people`, as plain data."""
    roles = {name: {"role": "insensitive"} for name in DOMAINS}
    return {
        "dataset": "people",
        "source": {"path": "people.csv", "missing": ["?"]},
        "target": "ill",
        "columns": {
            "patient": {"role": "identifier"},
            "ill": {"role": "sensitive", "type": "categorical"},
            **roles,
            "age": {"role": "quasi_identifier", "type": "numeric"},
        },
        "privacy": {"k_anonymity": {"k": 2}},
        "differential_privacy": {
            "unit": unit,
            "budget": {"subject": "patients", "rho": 1, "delta": 1e-6, "thresholds": 1e-7, **budget},
            "domains": DOMAINS,
        },
    }


def spec_of(unit: Any = "row", **budget: Any) -> ReleaseSpec:
    return ReleaseSpec.model_validate(policy(unit, **budget))


def plan_of(spec: ReleaseSpec, sql: str, nano_rho: int = NANO_RHO) -> Plan:
    assert spec.differential_privacy is not None
    return Plan.of(parse(sql, spec, spec.differential_privacy), spec.differential_privacy, nano_rho, ATTO_DELTA)


Count = Callable[[Plan, pd.DataFrame], Exact]
CountMany = Callable[[Plan, list[pd.DataFrame]], list[Exact]]


@contextmanager
def counting(spec: ReleaseSpec) -> Iterator[Count]:
    """A function that reads the exact sums of a plan from a frame."""
    with ExitStack() as files:
        connection = files.enter_context(duckdb.connect())
        connection.execute("SET threads=1")
        session = DuckDBSession(connection, files)

        def exact(plan: Plan, people: pd.DataFrame) -> Exact:
            relation = "people_asked"
            connection.register(relation, pa.Table.from_pandas(people, preserve_index=False))

            def aggregated(query: Callable[[Reader, str], str]) -> pa.Table:
                return session.arrow(query(session, relation))

            return answering.read(plan, spec, aggregated)

        yield exact


class _Everything:
    """A reader that knows the columns of the table which all variants lie in."""

    def __init__(self, session: DuckDBSession) -> None:
        self._session = session
        self.rows, self.parsed, self.hashed, self.is_nan = session.rows, session.parsed, session.hashed, session.is_nan

    def storage(self, _: str) -> dict[str, str]:
        return self._session.storage("(SELECT * EXCLUDE (variant) FROM everything)")


@contextmanager
def counting_many(spec: ReleaseSpec, changed: Callable[[str], str] = str) -> Iterator[CountMany]:
    """A function that reads the exact sums of a plan from many frames at once, each as if it were the whole source.

    The same SQL runs once per frame, in a lateral join; `changed` may alter it, to plant a mistake.
    """
    with ExitStack() as files:
        connection = files.enter_context(duckdb.connect())
        connection.execute("SET threads=1")
        session = DuckDBSession(connection, files)

        def exact(plan: Plan, frames: list[pd.DataFrame]) -> list[Exact]:
            rows = pd.concat([frame.assign(variant=number) for number, frame in enumerate(frames)])
            connection.register("everything", pa.Table.from_pandas(rows, preserve_index=False))
            found: list[pa.Table] = []

            def aggregated(query: Callable[[Reader, str], str]) -> pa.Table:
                one = "(SELECT * EXCLUDE (variant) FROM everything WHERE variant = each.id)"
                sql = changed(query(_Everything(session), one))
                variants = f"(SELECT range AS id FROM range({len(frames)})) AS each"
                found.append(
                    session.arrow(f"SELECT each.id AS variant, sums.* FROM {variants}, LATERAL ({sql}) AS sums")
                )
                return found[-1]

            answering.read(plan, spec, aggregated)
            columns = list(dict.fromkeys(str(one.column) for one in plan.measurements if one.kind == "quantile"))
            parts = [_by_variant(table, len(frames)) for table in found]
            return [
                Exact(plan, parts[0][number], {name: parts[1 + i][number] for i, name in enumerate(columns)})
                for number in range(len(frames))
            ]

        yield exact


def _by_variant(table: pa.Table, variants: int) -> list[pa.Table]:
    ordered = table.sort_by("variant")
    ends = np.searchsorted(ordered.column("variant").to_numpy(), np.arange(variants + 1))
    return [ordered.slice(ends[one], ends[one + 1] - ends[one]) for one in range(variants)]


def write_dataset(folder: Path, frame: pd.DataFrame, content: dict[str, Any]) -> Path:
    """A dataset folder: people.csv and release.yaml."""
    import yaml

    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "release.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder
