"""The steps of a synthetic release as plain functions: people are measured once, and the rest uses that alone."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.differential_privacy import accounting, mechanisms
from anon_pipeline.differential_privacy.accounting import NANO, Cost
from anon_pipeline.differential_privacy.budget import Allowance, Budget, Question, question_keys
from anon_pipeline.differential_privacy.reading import SPENT, UNSPENT, asked_of, broken
from anon_pipeline.differential_privacy.same_source import SeenSource
from anon_pipeline.differential_privacy.synthesis import measuring, stored
from anon_pipeline.differential_privacy.synthesis.coded_table import Axis, axes_of, read_coded
from anon_pipeline.differential_privacy.synthesis.drawn_rows import as_table, draw_codes, with_all_values
from anon_pipeline.differential_privacy.synthesis.estimation import Model, fit, total_of
from anon_pipeline.differential_privacy.synthesis.measuring import Measurements, Settings
from anon_pipeline.differential_privacy.synthesis.quality import count_quality, value_counts
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.spec import PublicDomain, PublicSize, ReleaseSpec, Synthesis

#: The number of the method of measurement: another method is another question, which costs again.
METHOD = 2
CONVERSION = "Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12"
NEIGHBOURS = {
    "row": "tables that differ by one row, added or removed",
    "person": "tables that differ by all rows of one person, added or removed; so many of them are counted",
}


@dataclass(frozen=True)
class Synthetic:
    """A synthetic table, and the measurements and model it was made from; nothing here reads people.

    Attributes
    ----------
    table : the rows, as they are released
    codes : their codes in the public domains, shape (n, d)
    model : the distribution that fits the noisy counts
    """

    axes: Sequence[Axis]
    measurements: Measurements
    model: Model
    codes: IntArray
    table: pa.Table

    def quality(self) -> dict[str, Any]:
        """Noisy and synthetic counts side by side, as plain data."""
        names = [axis.name for axis in self.axes]
        shared = np.stack(
            [mapping[self.codes[:, place]] for place, mapping in enumerate(self.measurements.codes)], axis=1
        )
        lines = [
            {**asdict(count), "columns": [names[column] for column in count.columns]}
            for count in count_quality(self.measurements.tables, shared, self.model.total)
        ]
        columns = {
            axis.name: [asdict(count) for count in value_counts(self.measurements.first, self.codes, place)]
            for place, axis in enumerate(self.axes)
        }
        return {"counts": lines, "values": columns}


def settings_of(spec: ReleaseSpec, axes: Sequence[Axis]) -> Settings:
    """The settings of the measurement, from the spec alone."""
    asked, stated = asked_of(spec), spec.synthesis or Synthesis()
    names = [axis.name for axis in axes]
    if stated.rho is not None:
        nano = accounting.nano_of(stated.rho)
    elif stated.epsilon is not None:
        nano = accounting.nano_for(stated.epsilon, asked.conversion_delta)
    else:
        nano = Allowance.of(asked).total.nano_rho
    people = asked.size.public if isinstance(asked.size, PublicSize) else None
    targets = tuple(sorted(names.index(name) for name in spec.targets))
    return Settings(targets, nano, asked.most_rows, stated.rounds, stated.cells, people)


def measure_people(engine: Any, spec: ReleaseSpec, home: Home, key: Key) -> tuple[bytes, bool]:
    """The noisy counts of the source, and whether they are new; stored counts are returned again at no cost.

    Only this function reads people. The cost is reserved before, and stays spent whatever happens afterwards.

    Raises
    ------
    Refused
        Where the budget does not suffice.
    InputError
        Where the spec or the source cannot be used.
    """
    mechanisms.require_library()
    axes = axes_of(spec)
    settings, asked = settings_of(spec, axes), asked_of(spec)
    domains = {axis.name: axis.domain.model_dump(mode="json", exclude={"why"}, exclude_none=True) for axis in axes}
    parameters = {"synthesis": METHOD, "settings": asdict(settings), "domains": domains, "unit": str(asked.unit)}
    subject, seen = asked.budget.subject, SeenSource.now(spec, key)
    question = Question.of(
        spec.dataset,
        question_keys(key, subject, spec.dataset, seen.versions, parameters),
        f"a synthetic table of {len(axes)} columns",
        Cost(settings.nano_rho),
    )

    def answer() -> bytes:
        try:
            table = read_coded(engine, spec, axes)
        except InputError as error:
            seen.require_same(SPENT)
            raise InputError(f"{spec.source.path} {broken(error)}") from None
        seen.require_same(SPENT)
        measurements = measuring.measure(table, settings)
        return stored.to_bytes(measurements, secrets.token_hex(16))

    seen.require_same(UNSPENT)  # a server that has another answer each time could not be answered for
    return Budget(home, Allowance.of(asked)).ask(question, answer)


def make_table(spec: ReleaseSpec, content: bytes) -> Synthetic:
    """The synthetic table of some measurements: the same each time, since its random numbers depend on them alone."""
    axes, measurements = axes_of(spec), stored.from_bytes(content)
    asked = asked_of(spec)
    total = float(asked.size.public) if isinstance(asked.size, PublicSize) else total_of(measurements.tables)
    model = fit(measurements.sizes, measurements.tables, total)
    random = np.random.default_rng(np.frombuffer(hashlib.sha256(content).digest(), dtype=np.uint32))
    shared = draw_codes(model, max(1, round(total)), random)
    codes = with_all_values(shared, measurements, random)
    return Synthetic(axes, measurements, model, codes, as_table(codes, axes, random))


def protection(spec: ReleaseSpec, content: bytes) -> dict[str, Any]:
    """The guarantee, for the manifest: unit, bounds, cost, conversion, mechanisms, domains."""
    asked, measurements = asked_of(spec), stored.from_bytes(content)
    delta = asked.conversion_delta
    unit = "row" if asked.person is None else "person"
    domains = {name: asked.domains[name].model_dump(mode="json", exclude_none=True) for name in spec.released}
    return {
        "unit": unit,
        "neighbours": NEIGHBOURS[unit],
        "rows_per_unit": asked.most_rows,
        "subject": asked.budget.subject,
        "rho": measurements.nano_rho / NANO,
        "epsilon": accounting.epsilon_of(measurements.nano_rho, delta),
        "delta": delta,
        "conversion": CONVERSION,
        "mechanisms": measuring.described(measurements, spec.released),
        "domains": domains,
        "domains_sha256": hashlib.sha256(json.dumps(domains, sort_keys=True).encode()).hexdigest(),
        "size": "public" if isinstance(asked.size, PublicSize) else "noisy",
    }


def outside(table: pa.Table, domains: Mapping[str, PublicDomain]) -> dict[str, int]:
    """The number of values of each column outside its public domain: a check of the written table."""
    counts = {}
    for name, domain in domains.items():
        values = table.column(name).drop_null()
        if domain.values is not None:
            public = set(domain.values)
            counts[name] = sum(value not in public for value in values.to_pylist())
        else:
            low, high = (domain.bins[0], domain.bins[-1]) if domain.bins is not None else domain.range or (0.0, 0.0)
            numbers = np.asarray(values, dtype=np.float64)
            counts[name] = int(((numbers < low) | (numbers > high)).sum())
    return counts
