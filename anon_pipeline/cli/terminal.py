"""The terminal: what is printed there may hold names of other people's columns, which it must not obey."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from anon_pipeline.visible import visible


class Terminal(Console):
    """A console of rich that shows control characters of texts; those of its own styles are no texts.

    Texts are printed as they are: rich would take `[age]` for a style and `:heart:` for a letter, also in tables.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
