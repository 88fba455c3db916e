"""Texts among the numbers of a JSON file mean what they would in a CSV, and change nothing for all other people."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import profile_table
from anon_pipeline.spec import ReleaseSpec, Source

NUMBERS = [20, 21, 25, 20, 21, 25, 30, 30]


def stored(folder: Path, values: Sequence[object], form: str, column: dict[str, object], **said: Any) -> SourceFacts:
    """What is stored of people whose column `a` holds these values; the last person is out of `where`."""
    folder.mkdir(exist_ok=True)
    rows = [{"a": value, "ill": "ny"[place % 2], "kept": 1} for place, value in enumerate(values)]
    rows[-1]["kept"] = 0
    with (folder / f"p.{form}").open("w", newline="") as file:
        if form == "json":
            json.dump(rows, file)
        else:
            writer = csv.DictWriter(file, ["a", "ill", "kept"])
            writer.writeheader()
            writer.writerows(rows)
    columns = {"a": {"role": "quasi_identifier", **column}, "ill": {"role": "sensitive"}, "kept": {"role": "exclude"}}
    source = {"path": f"p.{form}", "where": "kept = 1", **said}
    content = {"dataset": "p", "source": source, "target": "ill", "columns": columns}
    (folder / "release.yaml").write_text(yaml.safe_dump({**content, "privacy": {"k_anonymity": {"k": 2}}}))
    spec = ReleaseSpec.load(folder)
    return DuckDBEngine(folder / "spill", threads=1).store_source(spec, folder / "stored.parquet")


@pytest.mark.parametrize(
    ("values", "column", "said"),
    [
        ([*NUMBERS, "?", 0], {"type": "numeric"}, {"missing": ["?"]}),
        ([*NUMBERS, "", 0], {"type": "numeric"}, {}),
        ([*NUMBERS, "22", None], {"type": "numeric"}, {}),
        ([*NUMBERS, "2,5", 0.5], {"type": "numeric"}, {"decimal": ","}),
        ([*NUMBERS, "$2", 0], {"type": "numeric"}, {"symbols": ["$"]}),
        (["2020-01-03", "31.12.2020", 20210101, "?", 0], {"type": "date", "format": ["%d.%m.%Y", "%Y%m%d"]}, {}),
        ([*NUMBERS, "many", 0], {}, {}),
    ],
)
def test_a_text_among_numbers_is_what_it_is_in_a_csv(
    tmp_path: Path, values: list[object], column: dict[str, object], said: dict[str, object]
) -> None:
    """The run ended: "holds JSON values; flatten or exclude it"."""
    if column.get("type") == "date":
        said = {"missing": ["?"]}
    as_csv = [str(value).replace(".", ",") if isinstance(value, float) else value for value in values]
    one, other = (
        stored(tmp_path / "j", values, "json", column, **said),
        stored(tmp_path / "c", as_csv, "csv", column, **said),
    )
    assert one.content_hash == other.content_hash
    assert one.types() == other.types()


@pytest.mark.parametrize(
    ("values", "column", "sentence"),
    [
        ([*NUMBERS, "secret", 0], {"type": "numeric"}, "columns.a: 1 value is no number"),
        ([*NUMBERS, True, 0], {"type": "numeric"}, "columns.a: 1 value is no number"),
        (["2020-01-03"] * 8 + [7, "2020-01-04"], {"type": "date"}, "columns.a: 1 value is no date"),
        ([*NUMBERS, "secret", "x", 0], {"type": "categorical"}, "columns.a: holds 2 texts among 9 other values; write"),
        ([*NUMBERS, [1], "secret"], {"type": "numeric"}, "columns.a: holds JSON values; flatten or exclude it"),
    ],
)
def test_what_does_not_fit_is_counted_and_not_shown(
    tmp_path: Path, values: list[object], column: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError) as error:
        stored(tmp_path / "j", values, "json", column)
    assert str(error.value).startswith(sentence) and "secret" not in str(error.value)


@pytest.mark.parametrize("fractions", [0, 0.5])
def test_the_text_of_somebody_who_is_left_out_changes_nothing(tmp_path: Path, fractions: float) -> None:
    """Whoever knows all others would see by the type of a column whether that person has a text."""
    values = [number + fractions for number in NUMBERS]
    facts = [
        stored(tmp_path / str(place), [*values, odd], "json", {"type": "numeric"}, missing=["?"])
        for place, odd in enumerate([9, "?", "9", None])
    ]
    assert len({fact.content_hash for fact in facts}) == 1
    assert len({tuple((column.name, column.storage) for column in fact.columns) for fact in facts}) == 1
    categories = [
        stored(tmp_path / "d", [*values, odd], "json", {"type": "categorical"}) for odd in (9 + fractions, None)
    ]
    assert categories[0].content_hash == categories[1].content_hash
    with pytest.raises(InputError, match="holds 1 text among 8 other values"):
        stored(tmp_path / "d", [*values, "9"], "json", {"type": "categorical"})


@pytest.mark.parametrize("kind", ["numeric", "categorical"])
@pytest.mark.parametrize("odd", [2.5, 1e300, 2**53 + 2, 2**62, 2**63 + 5, 10**25, None])
def test_the_number_of_somebody_who_is_not_read_makes_no_floats(tmp_path: Path, kind: str, odd: object) -> None:
    """One fraction outside of `where` showed 20.0 in place of 20 of everybody, and drew all folds anew."""
    facts = [
        stored(tmp_path / str(place), [*NUMBERS, last], "json", {"type": kind}) for place, last in enumerate([9, odd])
    ]
    assert len({fact.content_hash for fact in facts}) == 1
    assert {fact.columns[0].storage for fact in facts} == {"BIGINT"}


def test_a_fraction_of_somebody_who_is_read_makes_floats(tmp_path: Path) -> None:
    facts = stored(tmp_path / "p", [*NUMBERS, 2.5, 9], "json", {"type": "numeric"})
    assert facts.columns[0].storage == "DOUBLE"


def test_init_looks_at_texts_among_numbers(tmp_path: Path) -> None:
    """The column was left out as one of lists; it asks now whether the text stands for "not known"."""
    rows = [{"age": 20 + place % 40 if place else "N/A", "ill": "ny"[place % 2], "more": [1]} for place in range(200)]
    (tmp_path / "p.json").write_text(json.dumps(rows))
    found = profile_table(DuckDBEngine(tmp_path / "spill", threads=1), tmp_path / "p.json", Source(path="p.json"), None)
    age, _, more = found.columns
    assert (age.type, age.role, found.missing) == ("numeric", "quasi_identifier", ("N/A",))
    assert "lists" in more.why


@pytest.mark.parametrize("said", [{}, {"format": "%d.%m.%Y"}])
@pytest.mark.parametrize("offset", ["+02:00", "+0200", "-03", ".250-03:30", "Z", ""])
def test_the_clock_of_everybody_does_not_hang_on_the_text_of_somebody(
    tmp_path: Path, offset: str, said: dict[str, object]
) -> None:
    """Beside a single "?" of somebody who is left out, everybody was shown hours apart from where they were without."""
    moments = [f"2024-05-0{1 + place % 4}T10:00:00{offset}" for place in range(8)]
    facts = [
        stored(tmp_path / str(place), [*moments, odd], "json", {"type": "date", **said}, missing=["?", "5"])
        for place, odd in enumerate([moments[0], "?", 5, None])
    ]
    assert len({fact.content_hash for fact in facts}) == 1
