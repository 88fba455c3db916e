"""A table that cannot fit into memory is refused with figures; one that can is not."""

from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.masking import memory
from anon_pipeline.masking.memory import BYTES_PER_VALUE, require_memory, usable_memory


def test_what_cannot_fit_is_refused_with_what_it_would_take() -> None:
    require_memory(1_000_000, 10, 10_000_000 * BYTES_PER_VALUE)
    with pytest.raises(
        InputError, match=r"^steps: .* 100,000,000 people with 10 columns take at least 38\.0 GB"
    ) as told:
        require_memory(100_000_000, 10, 4_000_000_000)
    assert "where 4.0 GB may be used" in str(told.value)


@pytest.mark.parametrize(
    ("limit", "usable"),
    [("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("100kb", 100_000), ("50%", 500), (None, 1000), ("100%", 1000)],
)
def test_a_limit_is_read_as_the_engine_reads_it(
    limit: str | None, usable: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path / "memory.max")
    assert usable_memory(limit) == usable


@pytest.mark.parametrize("content", ["max\n", None])
def test_without_a_container_the_machine_counts(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "memory.max").write_text(content)
    monkeypatch.setattr(memory, "CONTAINER", tmp_path / "memory.max")
    assert usable_memory(None) > 2**26


def test_what_is_no_amount_is_told() -> None:
    with pytest.raises(InputError, match="memory: much is no amount of memory"):
        usable_memory("much")
