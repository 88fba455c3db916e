"""The Jinja templates of the pages: an undefined name is an error, and every text is escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from anon_pipeline.report.wording import sentence


@cache
def template(name: str) -> Template:
    """A template of this package, with the filters `breakable` and `capitalized`."""
    loader = PackageLoader("anon_pipeline", "report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = _breakable
    environment.filters["capitalized"] = sentence
    return environment.get_template(name)


def _breakable(name: str) -> Markup:
    """The name of a column, in which a narrow page may break the line after an underscore."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))  # noqa: S704 (escaped before)
