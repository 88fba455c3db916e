"""The Jinja templates of the pages: an undefined name is an error, every text is escaped, and none is unseen."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from anon_pipeline.report.wording import sentence
from anon_pipeline.visible import visible


@cache
def template(name: str) -> Template:
    """A template of this package, with the filters `breakable` and `capitalized`."""
    loader = PackageLoader("anon_pipeline", "report")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    environment.filters["capitalized"] = sentence
    return environment.get_template(name)


def _seen(value: Any) -> Any:
    """Everything that a template writes, charts and values of people alike, without characters that HTML forbids."""
    if isinstance(value, Markup):
        return Markup(visible(str(value)))  # noqa: S704 (it was markup before, and no sign has a meaning in it)
    return visible(value) if isinstance(value, str) else value


def _breakable(name: str) -> Markup:
    """The name of a column, in which a narrow page may break the line after an underscore."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))  # noqa: S704 (escaped before)
