"""The catalog of masking techniques, as text."""

from __future__ import annotations

from anon_pipeline.errors import InputError
from anon_pipeline.masking.catalog import CatalogRow, catalog, technique_named


def techniques(name: str | None = None) -> tuple[CatalogRow, ...]:
    """All techniques, or the one of this name.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    if name is None:
        return catalog()
    try:
        technique_named(name)
    except ValueError as error:
        raise InputError(str(error)) from None
    return tuple(row for row in catalog() if row.technique == name)


def as_text(row: CatalogRow, whole: bool) -> str:
    """A technique as text: its effect, its use, its parameters; with `whole` also its source in the literature."""
    place = "under a column" if row.stands == "column" else "in the table's steps"
    lines = [
        f"{row.technique}: {row.meaning}",
        f"  when       {row.use_when}",
        f"  guarantee  {row.guarantee}",
        f"  stands     {place}; works on {', '.join(row.on)}",
    ]
    for number, parameter in enumerate(row.parameters):
        default = parameter.default if parameter.default == "required" else f"default {parameter.default}"
        text = f"{parameter.name}: {parameter.type}, {default}{f' ({parameter.meaning})' if parameter.meaning else ''}"
        lines.append(f"  {'' if number else 'parameters':10} {text}")
    if whole:
        lines += ["", *(f"  {line}".rstrip() for line in row.source.splitlines())]
    return "\n".join(lines)
