"""Queries for Spark: sqlglot's translation from DuckDB, and corrections where the meaning would differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp


def spark_sql(query: str) -> str:
    """A query of `engine/relational.py` in Spark's dialect."""
    import sqlglot

    tree = sqlglot.parse_one(query, read="duckdb")
    for node in reversed(list(tree.walk())):  # the inner ones first
        translated = _in_sparks_words(node)
        if translated is not None:
            node.replace(translated)
    return str(tree.sql(dialect="spark"))


def _in_sparks_words(node: exp.Expression) -> exp.Expression | None:
    """The translation of an expression that sqlglot does not translate, or translates with another meaning."""
    from sqlglot import exp

    def spark(text: str, *values: exp.Expression) -> exp.Expression:
        expression: exp.Expression = exp.maybe_parse(text, dialect="spark")
        for place, value in zip(list(expression.find_all(exp.Placeholder)), values, strict=True):
            place.replace(value)
        return expression

    if isinstance(node, exp.IsInf):
        return spark("(ABS(?) = CAST('Infinity' AS DOUBLE))", node.this)
    if isinstance(node, exp.UnixToTime):
        return spark("CAST(TIMESTAMP_MICROS(?) AS TIMESTAMP_NTZ)", node.this)
    if isinstance(node, exp.RegexpFullMatch):
        return exp.RegexpLike(this=node.this, expression=exp.Literal.string(rf"\A(?:{node.expression.name})\z"))
    if isinstance(node, exp.DataType) and node.is_type("timestamptz"):
        return exp.DataType.build("timestampltz")
    if isinstance(node, exp.Anonymous) and node.name.lower() == "epoch_us":
        return spark("UNIX_MICROS(CAST(? AS TIMESTAMP_LTZ))", node.expressions[0])
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isfinite":
        # Spark has no endless dates; outside of these years it writes dates as nobody else reads them.
        return spark("(YEAR(?) BETWEEN 1 AND 9999)", _as_it_is(node.expressions[0]))
    if isinstance(node, exp.Year):
        return exp.Year(this=_as_it_is(node.this))
    return None


def _as_it_is(moment: exp.Expression) -> exp.Expression:
    """A date or a moment without a cast to a moment, which ends in an error for dates beyond Spark's last moment."""
    from sqlglot import exp

    return moment.this if isinstance(moment, exp.Cast) and not isinstance(moment, exp.TryCast) else moment


def backticks(name: str) -> str:
    """A name of a column as an identifier of Spark's."""
    return "`" + name.replace("`", "``") + "`"
