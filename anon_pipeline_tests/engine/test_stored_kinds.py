"""The same content in the kinds of another export has the hash that it had there, and no other content has it."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine.content import ContentHash, kind_of, row_hashes
from anon_pipeline.engine.stored_kinds import as_kind, content_hash_as, kinds_of

DAY = dt.date(2000, 1, 31)
#: The same values in two kinds.
ALIKE: list[tuple[list[Any], pa.DataType, list[Any], pa.DataType]] = [
    (["1", "20", None], pa.string(), [1, 20, None], pa.int64()),
    ([1, None], pa.int64(), [1.0, None], pa.float64()),
    (["1", None], pa.string(), [1.0, float("nan")], pa.float64()),
    (["true"], pa.string(), [True], pa.bool_()),
    ([DAY, None], pa.date32(), [dt.datetime(2000, 1, 31), None], pa.timestamp("us")),
    ([Decimal("1.25")], pa.decimal128(12, 2), [1.25], pa.float64()),
    ([0.1, 70.3], pa.float32(), [0.1, 70.3], pa.float64()),
]


@pytest.mark.parametrize(("one", "kind", "other", "other_kind"), ALIKE)
def test_values_are_the_same_in_either_kind(
    one: list[Any], kind: pa.DataType, other: list[Any], other_kind: pa.DataType
) -> None:
    first, second = pa.array(one, kind), pa.array(other, other_kind)
    for here, there in ((first, second), (second, first)):
        put = as_kind(here, kind_of(there.type))
        assert put is not None
        assert (row_hashes([put], ["age"]) == row_hashes([there], ["age"])).all()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["01"]), "whole"),
        (pa.array([1.5]), "whole"),
        (pa.array(["Ulm"]), "whole"),
        (pa.array([1.255]), "decimal128(12, 2)"),
        (pa.array([dt.datetime(2000, 1, 31, 12)]), "day"),
        (pa.array([1]), "of another time"),
    ],
)
def test_other_values_are_not_changed_into_those(values: pa.Array, kind: str) -> None:
    assert as_kind(values, kind) is None


def test_a_stored_table_has_the_hash_of_another_export_of_it(tmp_path: Path) -> None:
    people, texts, numbers = tmp_path / "people.parquet", pa.array(["7", "12"]), pa.array([7, 12])
    pq.write_table(pa.table({"code": texts, "#people": pa.array([3, 1])}), people)
    assert kinds_of(people) == {"code": "text"}
    then = ContentHash()
    then.add(row_hashes([numbers], ["code"]), pa.array([3, 1]).to_numpy())
    assert content_hash_as(people, {"code": "whole"}) == then.hexadecimal([("code", "whole")])
    assert content_hash_as(people, {"code": "day"}) is None
    assert content_hash_as(people, {"code": "whole", "age": "whole"}) is None
