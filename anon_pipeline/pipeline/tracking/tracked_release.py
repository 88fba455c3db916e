"""The parent run of a release in MLflow: parameters, a few headline metrics, two datasets, two files.

Everything is from the spec or the published manifest. Nothing is measured here, and the only hash of the source is the
published commitment. Figures of single steps are in their child runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, cast

from anon_pipeline.pipeline.technical_names import technical
from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.release.publication import Published
from anon_pipeline.release.publish import REPORT
from anon_pipeline.report import charts
from anon_pipeline.report.wording import part
from anon_pipeline.spec import ReleaseSpec

CLASS_SIZES = "class_sizes.svg"
#: The longest parameter that MLflow stores, in letters.
LONGEST = 6000
#: The longest digest of a dataset that MLflow stores.
DIGEST = 36
#: The tag with which MLflow marks the role of a dataset in a run.
CONTEXT = "mlflow.data.context"
#: MLflow's names of the types of columns.
TYPES = {"categorical": "string", "numeric": "double", "date": "datetime"}


def parameters(spec: ReleaseSpec) -> dict[str, str]:
    """The policy as parameters, so that runs can be compared; never the seed."""
    stated: dict[str, object] = {
        "release": "groups" if spec.aggregates else spec.release,
        "target": spec.target or "none",
        "spec_hash": spec.policy_hash,
        "seed_policy": "private key of the home" if spec.draws is None else "private key that the spec names",
    }
    if spec.is_synthetic:
        asked = spec.differential_privacy
        stated |= {} if asked is None else {"budget": json.dumps(asked.budget.model_dump(mode="json"))}
    else:
        demands = cast(tuple[PrivacyModel, ...], spec.privacy)
        stated |= {
            "k": spec.k,
            "demands": "; ".join(demand.demand() for demand in demands),
            "quasi_identifiers": ", ".join(spec.quasi_identifiers),
        }
    if not spec.is_synthetic and not spec.aggregates:
        stated |= {
            "guide_model": _model_of(spec),
            "guide_on": spec.guide.on,
            "guide_predictions": spec.guide.predictions,
            "spread": spec.guide.spread,
            "orders": spec.guide.orders,
            "recode_form": spec.recode.form,
            "suppression_limit": spec.suppression.limit,
        }
    return {name: str(value)[:LONGEST] for name, value in stated.items()}


def headline(manifest: Mapping[str, Any]) -> dict[str, float]:
    """The few figures by which releases are compared, from a manifest.

    For people: their number, the number and sizes of classes, the information lost, the risk, and the first score
    before and after. For groups and synthetic rows: their number, and the budget spent.
    """
    if manifest.get("kind") == "synthetic" or "questions" in manifest:
        spent = part(manifest, "differential_privacy")
        return _known({**part(manifest, "rows"), **{name: spent.get(name) for name in ("epsilon", "delta", "rho")}})
    if groups := manifest.get("groups"):
        return _known({name: groups[name] for name in ("groups", "people", "people_left_out", "smallest")})
    rows, measured = part(manifest, "rows"), part(manifest, "measured")
    sizes, risk = part(measured, "class_sizes"), part(measured, "risk", "after", "prosecutor")
    figures = {
        "people": rows.get("source"),
        "released": rows.get("released"),
        "suppressed": rows.get("suppressed"),
        "classes": sizes.get("classes"),
        "smallest_class": sizes.get("smallest"),
        "mean_class_size": sizes.get("mean"),
        "information_loss": part(measured, "information_loss").get("mean"),
        "prosecutor_risk_max": risk.get("max"),
        "prosecutor_risk_mean": risk.get("mean"),
    }
    for score, comparison in list(part(manifest, "utility", "metrics").items())[:1]:
        figures |= {f"{score}_{when}": comparison[when]["mean"] for when in ("before", "after", "difference")}
    return _known(figures)


def record(tracking: Tracking, run: str, spec: ReleaseSpec, published: Published) -> None:
    """Log a published release to the parent run: metrics, the name of the release, datasets, report and chart."""
    from anon_pipeline.pipeline.tracking.mlflow_client import Metric, RunTag

    manifest, client, now = published.manifest, tracking.client, int(time.time() * 1000)
    metrics = [Metric(technical(name), value, now, 0) for name, value in headline(manifest).items()]
    state = "published" if published.new else "stood already"
    note = "\n\n".join(text for text in (spec.description, f"Release {published.version}, {state}.") if text)
    client.log_batch(run, metrics, tags=[RunTag("mlflow.note.content", note), RunTag("state", state)])
    client.update_run(run, name=f"{spec.dataset} {published.version}")
    client.log_inputs(run, _datasets(spec, published))
    report = published.folder / REPORT
    if report.is_file():
        client.log_text(run, report.read_text(encoding="utf-8"), REPORT)
    if groups := part(manifest, "measured", "class_sizes").get("groups"):
        client.log_text(run, charts.class_size_chart(groups), CLASS_SIZES)


def _datasets(spec: ReleaseSpec, published: Published) -> list[Any]:
    """The source and the release as datasets of MLflow: schema, size and digest, but no rows.

    The digest of the source is the published commitment, which confirms no guess without its private opening.
    """
    from anon_pipeline.pipeline.tracking.mlflow_client import Dataset, DatasetInput, InputTag

    manifest = published.manifest
    source, rows = part(manifest, "source"), part(manifest, "rows")
    columns = [(column["name"], column.get("type")) for column in source.get("columns", [])]
    released = [(name, kind) for name, kind in columns if name in spec.released]
    read_from = {"uri": spec.source.path} if spec.source.database is None else {"database": spec.source.database}
    written_to = {"uri": str(published.folder)}
    known = [
        ("source", spec.dataset, source.get("commitment", "not told"), read_from, columns, rows.get("source")),
        ("release", f"{spec.dataset} release", published.version, written_to, released, rows.get("released")),
    ]
    return [
        DatasetInput(
            Dataset(
                name=name,
                digest=str(digest)[:DIGEST],
                source_type="local" if "uri" in where else "database",
                source=json.dumps(where),
                schema=json.dumps({"mlflow_colspec": [_column(*column) for column in columns_of]}),
                profile=None if count is None else json.dumps({"num_rows": count}),
            ),
            [InputTag(CONTEXT, context)],
        )
        for context, name, digest, where, columns_of, count in known
    ]


def _column(name: str, kind: str | None) -> dict[str, object]:
    return {"name": name, "type": TYPES.get(kind or "", "string"), "required": False}


def _model_of(spec: ReleaseSpec) -> str:
    """The guide's model, as written in the spec."""
    model = spec.guide.model
    return model if isinstance(model, str) else str(next(iter(model.model_dump(by_alias=True).values())))


def _known(figures: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}
