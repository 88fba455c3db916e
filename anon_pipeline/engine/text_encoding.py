"""The encoding of a text file, found from its bytes.

What is found is a guess where a file is not UTF-8: whoever proposes a spec asks about it. Where rows are only counted,
a wrong guess among encodings of one byte per letter changes letters, but never which fields are equal.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import BinaryIO

from anon_pipeline.engine.unpacked import unpacked

#: Bytes that are read at a time.
BLOCK = 1 << 20
ASCII = bytes(range(0x80))
#: Letters beyond ASCII that texts of Western Europe have. Those that cp1250 and others write with the same bytes as
#: their own letters, such as those of Polish, are not among them.
WESTERN = frozenset("ÄÖÜäöüßÉÈÊËéèêëÀÂàâÇçÎÏîïÔôÛÙùûÑñÁáÍíÓóÚúÃãÕõÅåÆæØø€“”„…°§«»\u00a0\u00b4\u2013\u2014\u2018\u2019")


def encoding_of(table: Path) -> tuple[str, str | None]:
    """The encoding of a file, and a question where its letters leave a doubt."""
    with unpacked(table, None, str(table)) as read:
        block = read.read(BLOCK)
        wide = _wide_encoding(block)
        if wide is not None:
            return wide, None
        beyond = _beyond_utf_8(block, read)
    if beyond is None:
        return "utf-8", None
    try:
        letters = beyond.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1", "its text is neither UTF-8 nor cp1252; usual are cp1250, cp1251, cp437, cp850 and mac-roman"
    if set(letters) <= WESTERN:
        return "cp1252", None
    odd = " ".join(sorted(set(letters) - WESTERN))
    return "cp1252", f"read as cp1252 its text has the letters {odd}; write cp1252 if it has, else cp1250 or another"


def _wide_encoding(block: bytes) -> str | None:
    """The encoding of the first block if it has several bytes per letter: known by its mark, or by zeros in between."""
    if block[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32"
    if block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    for encoding, zeros in (("utf-16-le", block[1::2]), ("utf-16-be", block[::2])):
        if zeros and zeros.count(0) > 0.3 * len(zeros):
            return encoding
    return None


def _beyond_utf_8(block: bytes, read: BinaryIO) -> bytes | None:
    """The bytes beyond ASCII from the first block that is not UTF-8 on, each once, sorted; None if all is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    beyond: set[int] = set()
    is_utf_8 = True
    while True:
        if is_utf_8:
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError:
                is_utf_8 = False
        if not is_utf_8:
            beyond |= set(block.translate(None, ASCII))
        if not block:
            return None if is_utf_8 else bytes(sorted(beyond))
        block = read.read(BLOCK)
