"""Cells and fitted trees as files of the private zone: plain arrays and JSON, so that reading runs no code.

Both hold the values of the table's columns, rare ones included, so neither belongs into a release folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.axes import SplitFeature
from anon_pipeline.anonymize.classes import Partition
from anon_pipeline.anonymize.labels import Labels
from anon_pipeline.anonymize.recode import CategorySummary, OrderedSummary, Summary
from anon_pipeline.anonymize.tree import SplitTree
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Cells, Domain, Nodes

FORMAT = 3
NODE_ARRAYS = ("feature", "threshold", "left", "right", "leaf")
ORDERED_ARRAYS = (
    *("representative", "withheld", "low", "high", "open_low", "open_high"),
    *("known", "missing", "missing_told"),
)
SPARSE_ARRAYS = ("data", "indices", "indptr")


def save_cells(cells: Cells, folder: Path) -> None:
    """Write cells into a folder, as `cells.npz` and `domains.json`."""
    np.savez(folder / "cells.npz", codes=cells.codes, counts=cells.counts, guidance=cells.guidance)
    (folder / "domains.json").write_text(json.dumps([_domain_to_json(domain) for domain in cells.domains]))


def load_cells(folder: Path) -> Cells:
    """Read what `save_cells` wrote."""
    domains = tuple(_domain_from_json(domain) for domain in json.loads((folder / "domains.json").read_text()))
    with np.load(folder / "cells.npz", allow_pickle=False) as arrays:
        return Cells(domains, arrays["codes"], arrays["counts"], arrays["guidance"])


def fitted_to_json(parameters: dict[str, Any], fitted: dict[str, Any]) -> str:
    """A fitted tree as text.

    Parameters
    ----------
    parameters : of the estimator
    fitted : its attributes `domains_`, `partition_`, `summaries_`, `sizes_` and `information_loss_`
    """
    partition: Partition = fitted["partition_"]
    return json.dumps(
        {
            "format": FORMAT,
            "parameters": parameters,
            **tree_to_json(partition.tree, fitted["domains_"]),
            "class_of_leaf": partition.class_of_leaf.tolist(),
            "elsewhere": partition.elsewhere.tolist(),
            "class_elsewhere": partition.class_elsewhere.tolist(),
            "summaries": [_summary_to_json(summary) for summary in fitted["summaries_"]],
            "sizes": fitted["sizes_"].tolist(),
            "information_loss": fitted["information_loss_"],
        },
        default=_plain,
    )


def _plain(value: Any) -> Any:
    """A parameter that is no plain data: numbers and lists of numpy (a search over k gives these), and mappings."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else list(value)


def fitted_from_json(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and attributes, as `fitted_to_json` takes them.

    Raises
    ------
    InputError
        For a file of another format.
    """
    content = json.loads(text)
    if content.get("format") != FORMAT:
        raise InputError("the tree was stored by another version of anon_pipeline; fit it again")
    tree, domains = tree_from_json(content)
    partition = Partition(
        tree,
        np.array(content["class_of_leaf"], np.int64),
        np.array(content["elsewhere"], np.int32).reshape(-1, len(domains)),
        np.array(content["class_elsewhere"], np.int64),
    )
    return content["parameters"], {
        "domains_": domains,
        "partition_": partition,
        "summaries_": [
            _summary_from_json(summary, d) for summary, d in zip(content["summaries"], domains, strict=True)
        ],
        "sizes_": np.array(content["sizes"], np.int64),
        "information_loss_": content["information_loss"],
    }


def summaries_to_json(summaries: list[Summary]) -> list[dict[str, Any]]:
    """The summaries of the classes, and their columns, as plain data."""
    return [{"domain": _domain_to_json(summary.domain), **_summary_to_json(summary)} for summary in summaries]


def summaries_from_json(content: list[dict[str, Any]]) -> list[Summary]:
    """What `summaries_to_json` gave."""
    return [_summary_from_json(summary, _domain_from_json(summary["domain"])) for summary in content]


def tree_to_json(tree: SplitTree, domains: tuple[Domain, ...]) -> dict[str, Any]:
    """A tree and the values that its codes stand for, as plain data."""
    return {
        "domains": [_domain_to_json(domain) for domain in domains],
        "features": [_axis_to_json(axis) for axis in tree.features],
        "nodes": {name: getattr(tree, name).tolist() for name in NODE_ARRAYS},
    }


def tree_from_json(content: dict[str, Any]) -> tuple[SplitTree, tuple[Domain, ...]]:
    """What `tree_to_json` gave."""
    features = tuple(_axis_from_json(axis) for axis in content["features"])
    nodes = {name: np.array(content["nodes"][name], float if name == "threshold" else np.int64) for name in NODE_ARRAYS}
    return SplitTree(features, **nodes), tuple(_domain_from_json(domain) for domain in content["domains"])


def _axis_to_json(axis: SplitFeature) -> dict[str, Any]:
    within = {} if axis.within is None else {"within": axis.within.tolist()}
    return {"column": axis.column, "rank": axis.rank.tolist(), **within}


def _axis_from_json(content: dict[str, Any]) -> SplitFeature:
    within = np.array(content["within"], np.int64) if "within" in content else None
    return SplitFeature(content["column"], np.array(content["rank"], np.int32), within)


def _domain_to_json(domain: Domain) -> dict[str, Any]:
    return {
        "name": domain.name,
        "type": domain.type.value,
        "number": domain.values.dtype.kind,
        "values": domain.values.tolist(),
        "counts": domain.counts.tolist(),
        "storage": domain.storage,
        **({"lows": domain.low.tolist(), "highs": domain.high.tolist()} if domain.binned else {}),
        **({} if domain.levels is None else {"levels": domain.levels.tolist()}),
        **({} if domain.nodes is None else {"nodes": _nodes_to_json(domain.nodes)}),
    }


def _nodes_to_json(nodes: Nodes) -> dict[str, Any]:
    return {"node": nodes.node.tolist(), "labels": nodes.labels, "strict": nodes.strict, "named": nodes.named}


def _nodes_from_json(content: dict[str, Any]) -> Nodes:
    labels = tuple(map(tuple, content["labels"]))
    node = np.array(content["node"], np.int64).reshape(-1, len(labels))
    return Nodes(node, labels, content["strict"], content["named"])


def _domain_from_json(content: dict[str, Any]) -> Domain:
    number = {"i": np.int64, "f": np.float64}.get(content["number"], object)
    values = np.array(content["values"], dtype=number)
    counts = np.array(content["counts"], np.int64)
    lows, highs = (np.array(content[name], dtype=number) if name in content else None for name in ("lows", "highs"))
    return Domain(
        content["name"],
        ColumnType(content["type"]),
        values,
        counts,
        content["storage"],
        lows,
        highs,
        levels=np.array(content["levels"], np.int64) if "levels" in content else None,
        nodes=_nodes_from_json(content["nodes"]) if "nodes" in content else None,
    )


def _summary_to_json(summary: Summary) -> dict[str, Any]:
    labels = {}
    if summary.labels is not None:
        labels = {"labels": {"texts": summary.labels.texts.tolist(), "levels": summary.labels.levels.tolist()}}
    if isinstance(summary, OrderedSummary):
        return {name: getattr(summary, name).tolist() for name in ORDERED_ARRAYS} | labels
    members = {name: getattr(summary.members, name).tolist() for name in SPARSE_ARRAYS}
    named = summary.named.tolist()
    return {"representative": summary.representative.tolist(), "members": members, "named": named} | labels


def _summary_from_json(content: dict[str, Any], domain: Domain) -> Summary:
    labels = None
    if "labels" in content:
        stored = content["labels"]
        labels = Labels(np.array(stored["texts"], dtype=object), np.array(stored["levels"], np.int64))
    if domain.ordered:
        return OrderedSummary(domain, **{name: np.array(content[name]) for name in ORDERED_ARRAYS}, labels=labels)
    representative = np.array(content["representative"], np.int64)
    members = tuple(np.array(content["members"][name], np.int64) for name in SPARSE_ARRAYS)
    people = sparse.csr_array(members, shape=(len(representative), len(domain)))
    return CategorySummary(domain, representative, people, np.array(content["named"], bool), labels)
