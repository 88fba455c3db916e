"""Texts of other people with a sign in place of each character that is not seen, for pages and terminals."""

from __future__ import annotations

import re

#: Characters that HTML forbids, that a terminal obeys, or that turn the text around them: controls except blanks, marks
#: of direction, separators of lines, halves of surrogates, and what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef"
    "\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with a sign or a number in place of each character that cannot be seen, so that labels stay apart."""
    return UNSEEN.sub(lambda found: _sign(ord(found[0])), text)


def on_one_line(text: str) -> str:
    """The text with a sign in place of line feeds and tabs too, for names that a line holds: a name may have them."""
    return visible(text).replace("\n", _sign(0x0A)).replace("\t", _sign(0x09))


def _sign(number: int) -> str:
    if number < 0x20:
        return chr(0x2400 + number)  # Unicode has a picture of each
    return "\u2421" if number == 0x7F else f"[U+{number:04X}]"
