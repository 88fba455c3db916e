"""What a spec states about columns beyond their values: the order of their categories, and their hierarchies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anon_pipeline.anonymize.hierarchy import Calendar, Hierarchy, Listed, Prefixes
from anon_pipeline.anonymize.levels import in_order
from anon_pipeline.errors import InputError
from anon_pipeline.spec import HierarchyFile, PrefixHierarchy, ReleaseSpec
from anon_pipeline.tables import Domain


def described(
    domains: Sequence[Domain], levels: Mapping[str, Sequence[str]], hierarchies: Mapping[str, Hierarchy]
) -> tuple[Domain, ...]:
    """The columns with their levels and nodes.

    Raises
    ------
    InputError
        For a column that does not exist, or that has values which its levels or its hierarchy do not know.
    """
    absent = {*levels, *hierarchies} - {domain.name for domain in domains}
    if absent:
        raise InputError(f"{', '.join(sorted(absent))}: has levels or a hierarchy, and is no quasi-identifier")
    result = []
    for domain in domains:
        if domain.name in levels:
            domain = in_order(domain, levels[domain.name])
        if domain.name in hierarchies:
            domain = replace(domain, nodes=hierarchies[domain.name].nodes(domain))
        result.append(domain)
    return tuple(result)


def levels_of(spec: ReleaseSpec) -> dict[str, tuple[str, ...]]:
    """The levels that a spec states, by column."""
    return {name: column.levels for name, column in spec.columns.items() if column.levels is not None}


def hierarchies_of(spec: ReleaseSpec) -> dict[str, Hierarchy]:
    """The hierarchies that a spec names, by column; files are read.

    Raises
    ------
    InputError
        For a file that cannot be used.
    """
    hierarchies: dict[str, Hierarchy] = {}
    for name, column in spec.columns.items():
        stated = column.hierarchy
        if isinstance(stated, HierarchyFile):
            path = spec.folder / stated.file
            try:
                listed = Listed.read(path, stated.strict, stated.delimiter)
            except InputError as error:
                raise InputError(f"columns.{name}.hierarchy: {error}") from None
            hierarchies[name] = Listed(listed.paths, listed.strict, stated.file)
        elif isinstance(stated, PrefixHierarchy):
            hierarchies[name] = Prefixes(stated.prefix, stated.strict)
        elif stated is not None:
            hierarchies[name] = Calendar()
    return hierarchies
