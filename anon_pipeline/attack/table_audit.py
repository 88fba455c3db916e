"""Every attack on a table, in one call."""

from __future__ import annotations

from collections.abc import Sequence

from anon_pipeline.attack.inference import inference
from anon_pipeline.attack.intersection import Earlier, intersection
from anon_pipeline.attack.kept_columns import linkage_by_kept_columns
from anon_pipeline.attack.linkage import linkage, row_order
from anon_pipeline.attack.membership import membership
from anon_pipeline.attack.minimality import minimality
from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.singling_out import singling_out
from anon_pipeline.attack.targets import Tables, read_attacked

__all__ = ["Earlier", "Knowledge", "Tables", "audit_table"]


def audit_table(
    tables: Tables,
    knowledge: Knowledge,
    earlier: Sequence[Earlier] = (),
    targets: int = 2000,
    seed: int = 0,
) -> list[Finding]:
    """Attack a released table with everything this package knows.

    Parameters
    ----------
    knowledge : the columns and their roles
    earlier : releases that were published before and hold some of the same people
    targets : members, and control people, who are attacked at most
    seed : of all random draws; the same tables and seed give the same findings, whatever the order of their rows
    """
    control = None if tables.control is None or not len(tables.control) else tables.control
    attacked = read_attacked(tables, knowledge, seed)
    return [
        *linkage(attacked, targets),
        *linkage_by_kept_columns(attacked, targets),
        *row_order(attacked),
        *intersection(attacked, earlier, tables.original, control, targets),
        *singling_out(attacked),
        *inference(attacked, targets),
        *minimality(attacked, targets),
        *membership(attacked, targets),
    ]
