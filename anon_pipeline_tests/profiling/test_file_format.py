"""The format of a text file, and what is refused where it is stated wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.profiling.file_format import file_format
from anon_pipeline.spec import Source


@pytest.mark.parametrize("encoding", ["klingon", "base64", "utf-8\0"])
def test_an_encoding_that_does_not_exist_is_refused_in_a_sentence(tmp_path: Path, encoding: str) -> None:
    table = tmp_path / "people.csv"
    table.write_text("town,pay\nUlm,1\n")
    with pytest.raises(InputError, match=f"^source.encoding: {encoding} is no encoding; usual are utf-8"):
        file_format(table, Source(path=table.name, encoding=encoding))


def test_a_file_that_is_not_in_the_encoding_is_left_to_whoever_reads_it_whole(tmp_path: Path) -> None:
    """UTF-16 without a mark of the byte order ended with an internal error."""
    table = tmp_path / "people.csv"
    table.write_text("town,pay\nUlm,1\n")
    source = Source(path=table.name, encoding="utf-16")
    assert file_format(table, source).source.encoding == "utf-16"
