"""Free text among texts of any kind: what people wrote in sentences, and what therefore hardly recurs.

Categories may have long names ("Married, spouse present"), but these recur. Free text recurs only where it says nothing
("see letter"), so a column of notes can have few different texts for its rows, as a category does.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

#: A word of letters, with an apostrophe or a hyphen within.
WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
#: From this many words on, a text is no usual name of a category.
WORDS = 4
#: How many such texts stand in one row alone at least, and the share of them among all texts of so many words.
FEWEST, ALONE = 10, 2 / 3


def written_once(column: pa.ChunkedArray) -> int:
    """How many texts of several words stand in one row alone, if the column seems to be free text; else 0.

    Parameters
    ----------
    column : the texts of a column in a sample, with those that are missing
    """
    if not pa.types.is_string(column.type):
        return 0
    counted = pc.value_counts(column.drop_null().combine_chunks())
    rows = counted.field("counts").to_pylist()
    long = [
        people
        for text, people in zip(counted.field("values").to_pylist(), rows, strict=True)
        if len(WORD.findall(text)) >= WORDS
    ]
    alone = long.count(1)
    return alone if alone >= max(FEWEST, ALONE * len(long)) else 0
