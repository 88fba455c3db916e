"""Questions that may be asked: one SELECT over the dataset's own table, parsed into a `Statement`.

sqlglot only parses the text. The query that runs is built anew from the statement, from quoted names and literals, so
that no part of the text itself reaches a database. Any SQL that is not allowed here is refused before anything is
reserved. Functions, casts and arithmetic are refused, since they fail on some values and so reveal them; so are other
tables, subqueries and an order.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from anon_pipeline.errors import InputError
from anon_pipeline.spec import DifferentialPrivacy, PublicDomain, ReleaseSpec

LONGEST, DEEPEST = 10_000, 60
#: The largest number of groups of one question; each costs time, not budget.
MOST_GROUPS = 100_000
#: The largest number of values of a range among which a quantile is sought.
MOST_CANDIDATES = 100_000
ALLOWED = (
    "a question is SELECT columns and COUNT, SUM, AVG, MEDIAN or QUANTILE_CONT FROM the dataset, with WHERE that "
    "compares columns with values, and GROUP BY"
)

Value = str | float
Operator = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    """A condition that compares a column with a value."""

    column: str
    operator: Operator
    value: Value


@dataclass(frozen=True)
class Among:
    """A condition that a column has one of these values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Missing:
    """A condition that a column has no value."""

    column: str


@dataclass(frozen=True)
class Negated:
    """The negation of a condition; unknown where the condition is unknown, as in SQL."""

    of: Predicate


@dataclass(frozen=True)
class Joined:
    """Two conditions joined by AND or OR."""

    by: Literal["AND", "OR"]
    left: Predicate
    right: Predicate


Predicate = Compare | Among | Missing | Negated | Joined


@dataclass(frozen=True)
class Statistic:
    """One figure per group.

    `count` counts rows, `known` rows with a value of the column, `people` people; `part` of `whole` names a quantile.
    """

    kind: Literal["count", "known", "people", "sum", "mean", "quantile"]
    column: str | None = None
    part: int = 0
    whole: int = 1


@dataclass(frozen=True)
class Item:
    """A column of the answer: a group's value, or a statistic."""

    name: str
    shows: str | Statistic


@dataclass(frozen=True)
class Statement:
    """A question: the columns of its answer, its groups, and the condition on people."""

    items: tuple[Item, ...]
    groups: tuple[str, ...]
    where: Predicate | None

    @property
    def statistics(self) -> list[Statistic]:
        """The distinct statistics, in the order of the question."""
        return list(dict.fromkeys(item.shows for item in self.items if isinstance(item.shows, Statistic)))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def parse(text: str, spec: ReleaseSpec, asked: DifferentialPrivacy) -> Statement:
    """Read a question.

    Raises
    ------
    InputError
        For anything that is not allowed; the message is one sentence.
    """
    if len(text) > LONGEST:
        raise InputError(f"query: is longer than {LONGEST:,} letters; ask in several questions")
    if any(not (letter.isprintable() or letter in "\n\t\r") for letter in text):
        raise InputError("query: holds letters that cannot be printed; take them out")
    depth = deepest = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise InputError(f"query: brackets stand more than {DEEPEST} deep in it; write it flat")
    try:
        return _Reader(spec, asked).statement(_tree(text))
    except RecursionError:
        raise InputError("query: its conditions are nested too deep; ask in several questions") from None


def _tree(text: str) -> Any:
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
    except ImportError:
        raise InputError("differential privacy needs a library: `pip install 'anon-pipeline[dp]'`") from None
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # everything it warns of is refused below
    try:
        trees = [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
    except (SqlglotError, ValueError, TypeError, AttributeError, LookupError):
        raise InputError(f"query: is no SQL that can be read; {ALLOWED}") from None
    finally:
        logger.setLevel(level)
    if not trees:
        raise InputError(f"query: is empty; {ALLOWED}")
    if len(trees) != 1:
        raise InputError("query: is one statement; ask one question at a time")
    return trees[0]


class _Reader:
    """Converts a syntax tree of sqlglot into a statement; kinds of nodes that are not named here are refused."""

    def __init__(self, spec: ReleaseSpec, asked: DifferentialPrivacy) -> None:
        from sqlglot import exp

        self._exp: Any = exp
        self._spec, self._asked = spec, asked
        self._names = {name.casefold(): name for name in spec.columns}
        self._comparisons: dict[type[Any], Operator] = {
            exp.EQ: "=",
            exp.NEQ: "<>",
            exp.LT: "<",
            exp.LTE: "<=",
            exp.GT: ">",
            exp.GTE: ">=",
        }

    def statement(self, tree: Any) -> Statement:
        exp = self._exp
        if type(tree) is not exp.Select:
            raise InputError(f"query: is no SELECT; {ALLOWED}")
        self._only(tree, "expressions", "from_", "where", "group")
        self._table(tree.args.get("from_"))
        groups: tuple[str, ...] = ()
        if (grouped := tree.args.get("group")) is not None:
            self._only(grouped, "expressions")
            groups = tuple(self._declared(expression) for expression in grouped.expressions)
        if len(set(groups)) < len(groups):
            raise InputError("query: GROUP BY names a column twice; name it once")
        where = None
        if (condition := tree.args.get("where")) is not None:
            self._only(condition, "this")
            where = self._condition(condition.this)
        items = tuple(self._item(expression, groups) for expression in tree.expressions)
        names = [item.name for item in items]
        if len(set(names)) < len(names):
            raise InputError("query: two columns of the answer have one name; give one of them another with AS")
        statement = Statement(items, groups, where)
        if not statement.statistics:
            raise InputError("query: asks for no figure; rows of people are never shown, but COUNT, SUM or AVG are")
        self._check_groups(groups)
        return statement

    def _table(self, source: Any) -> None:
        exp = self._exp
        if source is None:
            raise InputError(f"query: names no table; write FROM {self._spec.dataset}")
        self._only(source, "this")
        table = source.this
        plain = type(table) is exp.Table and type(table.this) is exp.Identifier
        if not plain or table.name.casefold() != self._spec.dataset:
            raise InputError(f"query: asks another table than {self._spec.dataset}, which is the only one there is")
        self._only(table, "this")

    def _check_groups(self, groups: tuple[str, ...]) -> None:
        domains = [self._asked.domains[name] for name in groups]
        listed = [domain.size + 1 for domain in domains if domain.unknown is None]
        if math.prod(listed) > MOST_GROUPS:
            raise InputError(
                f"query: GROUP BY makes {math.prod(listed):,} groups, and {MOST_GROUPS:,} are the most; group by fewer "
                "columns, or declare bins"
            )
        if len(listed) < len(groups) and not self._asked.budget.thresholds:
            raise InputError(
                "query: groups by values that nobody listed, and budget.thresholds leaves no delta for that; declare "
                "the column's values, or state thresholds"
            )

    def _item(self, node: Any, groups: tuple[str, ...]) -> Item:
        exp = self._exp
        name = None
        if type(node) is exp.Alias:
            self._only(node, "this", "alias")
            name, node = node.alias, node.this
        if type(node) is exp.Column:
            column = self._declared(node)
            if column not in groups:
                raise InputError(f"query: shows {column} and does not group by it; add GROUP BY {column}")
            return Item(name or column, column)
        statistic = self._statistic(node)
        of = "" if statistic.column is None else f"_{statistic.column}"
        if statistic.kind == "quantile":
            middle = statistic.part * 2 == statistic.whole
            plain = f"median{of}" if middle else f"quantile_{statistic.part / statistic.whole:g}{of}"
        else:
            plain = {"count": "count", "known": f"count{of}", "people": "people", "sum": f"sum{of}"}.get(
                statistic.kind, f"avg{of}"
            )
        return Item(name or plain, statistic)

    def _statistic(self, node: Any) -> Statistic:
        exp = self._exp
        kind = type(node)
        if kind is exp.Count:
            self._only(node, "this", "big_int")
            return self._count(node.this)
        if kind in (exp.Sum, exp.Avg, exp.Median):
            self._only(node, "this")
            column = self._numbers(node.this)
            if kind is exp.Median:
                return self._quantile(column, Fraction(1, 2))
            return Statistic("sum" if kind is exp.Sum else "mean", column)
        if kind in (exp.Quantile, exp.PercentileCont, exp.PercentileDisc):
            which = "quantile" if kind is exp.Quantile else "expression"
            self._only(node, "this", which)
            place = node.args.get(which)
            if type(place) is not exp.Literal or place.is_string:
                raise InputError("query: a quantile is a number between 0 and 1, as QUANTILE_CONT(age, 0.25)")
            return self._quantile(self._numbers(node.this), Fraction(_number(place.this)).limit_denominator(1000))
        raise InputError(f"query: has an expression that is not allowed; {ALLOWED}")

    def _count(self, of: Any) -> Statistic:
        exp = self._exp
        if type(of) is exp.Star:
            self._only(of)
            return Statistic("count")
        if type(of) is exp.Distinct:
            self._only(of, "expressions")
            (first, *more) = of.expressions
            if more or type(first) is not exp.Column or self._name(first) != self._asked.person:
                person = self._asked.person
                raise InputError(
                    "query: COUNT(DISTINCT ...) counts people, and the unit is a row; use COUNT(*)"
                    if person is None
                    else f"query: COUNT(DISTINCT ...) counts people; write COUNT(DISTINCT {person})"
                )
            return Statistic("people")
        return Statistic("known", self._declared(of))

    def _quantile(self, column: str, place: Fraction) -> Statistic:
        if not 0 < place < 1:
            raise InputError("query: a quantile lies between 0 and 1; the smallest and largest values tell of people")
        if self._asked.domains[column].size > MOST_CANDIDATES:
            raise InputError(
                f"query: the range of {column} has more than {MOST_CANDIDATES:,} steps; declare a wider step"
            )
        return Statistic("quantile", column, place.numerator, place.denominator)

    # ------------------------------------------------------------------ conditions

    def _condition(self, node: Any) -> Predicate:
        exp = self._exp
        kind = type(node)
        readers: dict[type[Any], Callable[[Any], Predicate]] = {
            exp.Paren: lambda condition: self._condition(condition.this),
            exp.Not: lambda condition: Negated(self._condition(condition.this)),
            exp.And: lambda condition: Joined(
                "AND", self._condition(condition.this), self._condition(condition.expression)
            ),
            exp.Or: lambda condition: Joined(
                "OR", self._condition(condition.this), self._condition(condition.expression)
            ),
            exp.In: self._among,
            exp.Between: self._between,
            exp.Is: self._missing,
        }
        if kind in readers:
            allowed = {exp.In: ("this", "expressions"), exp.Between: ("this", "low", "high")}
            self._only(node, *allowed.get(kind, ("this", "expression")))
            return readers[kind](node)
        if kind in self._comparisons:
            self._only(node, "this", "expression")
            column = self._declared(node.this)
            operator = self._comparisons[kind]
            if not self._asked.domains[column].numeric and operator not in ("=", "<>"):
                raise InputError(f"query: {column} has texts, which have no order; compare with = or <>")
            return Compare(column, operator, self._value(column, node.expression))
        raise InputError(
            "query: WHERE has an expression that is not allowed; compare a column with a value: =, <>, <, <=, >, >=, "
            "IN, BETWEEN and IS NULL, joined by AND, OR and NOT"
        )

    def _among(self, node: Any) -> Predicate:
        column = self._declared(node.this)
        return Among(column, tuple(self._value(column, value) for value in node.expressions))

    def _between(self, node: Any) -> Predicate:
        column = self._declared(node.this)
        if not self._asked.domains[column].numeric:
            raise InputError(f"query: {column} has texts, which have no order; compare with = or <>")
        low, high = self._value(column, node.args["low"]), self._value(column, node.args["high"])
        return Joined("AND", Compare(column, ">=", low), Compare(column, "<=", high))

    def _missing(self, node: Any) -> Predicate:
        if type(node.expression) is not self._exp.Null:
            raise InputError("query: IS goes with NULL alone")
        return Missing(self._declared(node.this))

    def _value(self, column: str, node: Any) -> Value:
        """A literal of the column's kind: a column is compared with a public number or text, never a column."""
        exp = self._exp
        domain = self._asked.domains[column]
        sign = 1
        if type(node) is exp.Neg:
            self._only(node, "this")
            sign, node = -1, node.this
        if type(node) is not exp.Literal:
            raise InputError(f"query: compares {column} with what is no plain number or text")
        if domain.numeric == bool(node.is_string) or (sign < 0 and node.is_string):
            kind = "a number" if domain.numeric else "a text in single quotes"
            raise InputError(f"query: compare {column} with {kind}, as its public domain has")
        if domain.numeric:
            return sign * _number(node.this)
        if domain.values is not None and node.this not in domain.values:
            raise InputError(f"query: compares {column} with what is none of its public values")
        return str(node.this)

    # ------------------------------------------------------------------ columns

    def _numbers(self, node: Any) -> str:
        column = self._declared(node)
        if self._asked.domains[column].range is None:
            raise InputError(f"query: SUM, AVG and quantiles need a public range with a step, which {column} has not")
        return column

    def _declared(self, node: Any) -> str:
        if type(node) is not self._exp.Column:
            raise InputError(f"query: has an expression that is not allowed where a column stands; {ALLOWED}")
        name = self._name(node)
        if name not in self._asked.domains:
            raise InputError(
                f"query: {name} has no public domain; declare it under differential_privacy.domains, without looking "
                "at the data, or ask without it"
            )
        return name

    def _name(self, node: Any) -> str:
        self._only(node, "this")
        if type(node.this) is not self._exp.Identifier or node.name.casefold() not in self._names:
            raise InputError(f"query: names a column that {self._spec.dataset} has not")
        return self._names[node.name.casefold()]

    def _only(self, node: Any, *allowed: str) -> None:
        """Refuse any present part of a node that is not among `allowed`, such as HAVING, FILTER or LIMIT."""
        for part, value in node.args.items():
            if part not in allowed and value not in (None, False, [], ()):
                word = part.rstrip("_").upper()
                raise InputError(f"query: has a part that is not allowed ({word}); {ALLOWED}")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) <= 1e15:
        raise InputError("query: has a number that is none, or beyond 1e15")
    return number


def domain_of(asked: DifferentialPrivacy, statistic: Statistic) -> PublicDomain:
    """The public domain of the column of a statistic; the statistic must have a column."""
    return asked.domains[str(statistic.column)]
