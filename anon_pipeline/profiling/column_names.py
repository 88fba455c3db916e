"""Names of columns: their words, and whether one of these is on a list.

A list has whole words, and beginnings of words, which end in "*". Words are compared without capitals and accents, so
that one list serves several languages: "Krankheit" is on a list with "krank*", "état_de_santé" on one with "sante".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

#: Letters that cannot be separated into a plain letter and an accent.
PLAIN = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"})


def words_of(name: str) -> list[str]:
    """The words of a column's name: "homeAddress_2" gives home, address and 2."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    decomposed = unicodedata.normalize("NFKD", apart.casefold().translate(PLAIN))
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return re.findall(r"[^\W\d_]+|\d+", plain)


def named_by(name: str, listed: Sequence[str]) -> bool:
    """Whether a name has a listed word; an entry of several words must occur as these words in a row."""
    words = words_of(name)
    for entry in listed:
        parts = entry.split()
        for start in range(len(words) - len(parts) + 1):
            if all(_is(word, part) for word, part in zip(words[start:], parts, strict=False)):
                return True
    return False


def _is(word: str, part: str) -> bool:
    return word.startswith(part[:-1]) if part.endswith("*") else word == part
