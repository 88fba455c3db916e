"""Numbers in SQL are the numbers that they were."""

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anon_pipeline.engine.expressions import number_literal


@pytest.mark.long
@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1)))
@example(0.1)
@example(1e-20)
@example(2**53 + 1)
def test_a_number_comes_back_from_sql_as_it_was(number: float) -> None:
    with duckdb.connect() as connection:
        ((kind, found),) = connection.execute(
            f"SELECT typeof({number_literal(number)}), {number_literal(number)}"
        ).fetchall()
    assert found == number
    assert (kind == "DOUBLE") == isinstance(number, float)


@pytest.mark.parametrize("number", [0.5, 1e300])
def test_a_fraction_is_no_decimal(number: float) -> None:
    assert "e" in number_literal(number)
