"""Expressions over columns, written once: as SQL for databases, by narwhals for data frames."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from ordinate.errors import BadInput
from ordinate.readers.duckdb_connection import quote_identifier, quote_literal
from ordinate.readers.number_spelling import NO_NUMBER

Constant = str | float | int | bool | Decimal | None


def _make_method(name: str) -> Callable[..., "Expression"]:
    """Return the method that applies an operator to an expression, and to others."""
    return lambda *operands: _apply(name, *operands)


@dataclass(frozen=True, eq=False)
class Expression:
    """An operator and what it is applied to.

    >>> weight = column("weight")
    >>> (weight.is_missing() | (weight != 0)).to_sql(POSTGRES)
    '(("weight" IS NULL) OR ("weight" <> 0))'
    """

    operator: str
    operands: tuple[Any, ...]

    def to_sql(self, dialect: "Dialect") -> str:
        """Return SQL."""
        if self.operator == "sql":
            return f"({self.operands[0]})"
        if self.operator == "column":
            return quote_identifier(self.operands[0])
        if self.operator == "constant":
            return dialect.write_constant(self.operands[0])
        if self.operator == "choose":
            *cases, last = (x.to_sql(dialect) for x in self.operands)
            listed = zip(cases[::2], cases[1::2], strict=True)
            return f"CASE {' '.join(f'WHEN {x} THEN {y}' for x, y in listed)} ELSE {last} END"
        template = dialect.templates.get(self.operator, OPERATORS[self.operator].sql)
        return template.format(*(x.to_sql(dialect) for x in self.operands))

    def to_narwhals(self) -> Any:
        """Return an expression of narwhals."""
        if self.operator == "column":
            return _narwhals().col(self.operands[0])
        if self.operator == "constant":
            return _narwhals().lit(self.operands[0])
        return OPERATORS[self.operator].apply(*(x.to_narwhals() for x in self.operands))

    __add__, __sub__, __mul__, __truediv__ = map(_make_method, "+-*/")
    __lt__, __gt__, __ge__ = map(_make_method, ("<", ">", ">="))
    __eq__, __ne__ = map(_make_method, ("=", "<>"))  # type: ignore[assignment] # expressions
    __hash__ = None  # type: ignore[assignment] # equality makes an expression
    __and__, __or__, __invert__ = map(_make_method, ("and", "or", "not"))
    floor = _make_method("floor")
    is_missing = _make_method("is missing")
    is_finite = _make_method("is finite")  # neither NaN nor infinite
    is_infinite = _make_method("is infinite")  # of either sign
    is_text = _make_method("is text")  # whether something stands here that is no number
    is_missing_word = _make_method("is missing word")  # such as n/a in a column of text
    to_number = _make_method("number")  # of double precision

    def is_in(self, values: Iterable[Constant]) -> "Expression":
        """Tell whether it is one of some values, of which there is at least one."""
        return join_by_or([self == value for value in values])


def sql(text: str) -> Expression:
    """Return what one dialect alone knows."""
    return Expression("sql", (text,))


def column(name: str) -> Expression:
    """Return a column."""
    return Expression("column", (name,))


ALWAYS = Expression("constant", (True,))


def constant(value: Constant) -> Expression:
    """Return a constant."""
    return Expression("constant", (value,))


def choose(*cases: Any) -> Expression:
    """Return the value after the first condition that holds, or the last one.

    >>> choose(column("a") > 0, 1, column("a") < 0, -1, 0).to_sql(POSTGRES)
    'CASE WHEN ("a" > 0) THEN 1 WHEN ("a" < 0) THEN -1 ELSE 0 END'
    """
    return _apply("choose", *cases)


def _apply(name: str, *given: Any) -> Expression:
    return Expression(name, tuple(x if isinstance(x, Expression) else constant(x) for x in given))


def join_by_or(parts: Sequence[Expression]) -> Expression:
    """Tell whether one of some conditions holds."""
    return _join(parts, operator.or_)


def find_largest(parts: Sequence[Expression]) -> Expression:
    """Return the largest of some numbers."""
    return _join(parts, lambda a, b: choose(a >= b, a, b))


def _join(
    parts: Sequence[Expression], combine: Callable[[Expression, Expression], Expression]
) -> Expression:
    """Return a balanced tree: engines refuse, or take long for, expressions that are deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return combine(_join(parts[:half], combine), _join(parts[half:], combine))


# --- aggregates ----------------------------------------------------------------------------------


class Aggregate(NamedTuple):
    """What is taken over the rows of a group: the count, sum, min or max of something."""

    kind: str
    of: Expression

    def to_sql(self, dialect: "Dialect") -> str:
        """Return SQL."""
        return f"{self.kind}({self.of.to_sql(dialect)})"


COUNT = Aggregate("count", constant(1))


def name_columns(columns: Mapping[str, Expression | Aggregate], dialect: "Dialect") -> list[str]:
    """Return SQL for columns under their names."""
    return [f"{x.to_sql(dialect)} AS {quote_identifier(name)}" for name, x in columns.items()]


def build_sum_query(
    items: str,
    keys: Sequence[str],
    sums: Mapping[str, Aggregate],
    where: Expression | None,
    dialect: "Dialect",
) -> str:
    """Return SQL for the sums over the items that share all keys."""
    listed = [quote_identifier(key) for key in keys]
    condition = "" if where is None else f" WHERE {where.to_sql(dialect)}"
    selected = ", ".join([*listed, *name_columns(sums, dialect)])
    return f"SELECT {selected} FROM {items}{condition} GROUP BY {', '.join(listed)}"


def count_where(condition: Expression) -> Aggregate:
    """Count the rows for which a condition holds."""
    return Aggregate("sum", choose(condition, 1, 0))


# --- what operators are, in SQL and for data frames ----------------------------------------------


class Operator(NamedTuple):
    """A template of SQL, and a function of expressions of narwhals."""

    sql: str
    apply: Callable[..., Any]


def _narwhals() -> Any:
    from narwhals.stable import v2  # takes as long to import as NumPy

    return v2


def _choose(condition: Any, value: Any, *others: Any) -> Any:
    otherwise = others[0] if len(others) == 1 else _choose(*others)
    return _narwhals().when(condition).then(value).otherwise(otherwise)


OPERATORS: Mapping[str, Operator] = {
    "+": Operator("({} + {})", operator.add),
    "-": Operator("({} - {})", operator.sub),
    "*": Operator("({} * {})", operator.mul),
    "/": Operator("({} / {})", operator.truediv),
    "=": Operator("({} = {})", operator.eq),
    "<>": Operator("({} <> {})", operator.ne),
    "<": Operator("({} < {})", operator.lt),
    ">": Operator("({} > {})", operator.gt),
    ">=": Operator("({} >= {})", operator.ge),
    "and": Operator("({} AND {})", operator.and_),
    "or": Operator("({} OR {})", operator.or_),
    "not": Operator("(NOT {})", operator.invert),
    "is missing": Operator("({} IS NULL)", lambda x: x.is_null()),
    # NaN is larger than any number to some engines, and equal to none to others.
    "is finite": Operator("(abs({0}) <= 1.7976931348623157e308)", lambda x: x.is_finite()),
    # One over infinity is 0.
    "is infinite": Operator(
        "CASE WHEN abs({0}) > 1e300 THEN 1e0 / {0} = 0 ELSE 1 = 0 END",
        lambda x: ~(x.is_finite() | x.is_nan()),
    ),
    # Databases refuse to cast it; columns of frames have one type.
    "is text": Operator(
        "({0} <> CAST({0} AS DOUBLE PRECISION))", lambda _: _narwhals().lit(value=False)
    ),
    "is missing word": Operator("(1 = 0)", lambda _: _narwhals().lit(value=False)),
    "floor": Operator("floor({})", lambda x: x.floor()),
    "number": Operator("CAST({} AS DOUBLE PRECISION)", lambda x: x.cast(_narwhals().Float64)),
    "choose": Operator("", _choose),
}


class Parameters(list[Any]):
    """Values of a statement, which travel beside its text."""

    def bind(self, value: Any) -> str:
        """Keep a value, and return what stands for it in the text."""
        self.append(value)
        return f"${len(self)}"


@dataclass(frozen=True)
class Dialect:
    """How an engine writes SQL: the operators that it writes in another way than the standard.

    A subquery that ends in its `fence` is computed as it stands. Some engines put its expressions
    into the query around it otherwise, once for each time that one is named. Columns of any other
    type than `numbers` are read as an `exact_text`, whose letters and spaces tell values apart.
    What is no number of Python is never text of a query: `bind` returns what stands for it.
    """

    bind: Callable[[Any], str] = field(default_factory=lambda: Parameters().bind)
    templates: Mapping[str, str] = field(default_factory=dict)
    fence: str = ""
    exact_text: str = "{}"
    numbers: frozenset[str] = frozenset()

    def write_constant(self, value: Constant) -> str:
        """Return a constant: a number as it stands, and what stands for any other value.

        >>> parameters = Parameters()
        >>> dialect = Dialect(bind=parameters.bind)
        >>> [dialect.write_constant(x) for x in (1, "'); drop table items; --")], parameters
        (['1', '$1'], ["'); drop table items; --"])
        """
        kind = type(value)  # exactly: what a subclass writes is anything
        if value is None:
            return "NULL"
        if kind is bool:
            return f"({int(value)} = 1)"
        if kind is int:
            return str(value)
        if kind is float and math.isfinite(float(value)):
            # With an exponent it is of double precision, and no decimal number.
            return repr(value) if "e" in repr(value) else f"{value!r}e0"
        if kind in {str, float, Decimal}:
            return self.bind(value)
        raise BadInput(
            f"Values of type {kind.__name__} cannot be looked up: cast them to text or to numbers."
        )

    def read_exactly(self, column: str, kind: str) -> str:
        """Return SQL for a column of a type, by which values are grouped as they are stored."""
        return column if kind.partition("(")[0] in self.numbers else self.exact_text.format(column)


MISSING_WORD = f"lower(trim({{}})) IN ({', '.join(map(quote_literal, NO_NUMBER))})"
SQLITE_TEXT = "(typeof({0}) IN ('text', 'blob') AND {0} <> CAST({0} AS DOUBLE PRECISION))"
SQLITE = Dialect(
    fence=" LIMIT -1",
    exact_text="{} COLLATE BINARY",
    templates={
        "is text": SQLITE_TEXT,
        "is missing word": f"(typeof({{0}}) = 'text' AND {MISSING_WORD.format('{0}')})",
        # A cast alone takes 'abc' for 0, and '1,5' for 1.
        "number": f"CASE WHEN {SQLITE_TEXT} THEN NULL ELSE CAST({{0}} AS DOUBLE PRECISION) END",
    },
)
POSTGRES = Dialect(
    fence=" OFFSET 0",
    # Without the padding of `char`, and as bytes have it: collations and `citext` merge labels.
    exact_text='CAST({} AS text) COLLATE "C"',
    # Types by number: bool, int8, int2, int4, float4, float8, numeric.
    numbers=frozenset({"16", "20", "21", "23", "700", "701", "1700"}),
)
INTEGERS = [f"{u}{x}INT" for u in ("", "U") for x in ("TINY", "SMALL", "", "BIG", "HUGE")]
DUCKDB = Dialect(
    bind=quote_literal,
    exact_text='CAST({} AS VARCHAR) COLLATE "C"',
    numbers=frozenset({"BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", "INTEGER", "UINTEGER", *INTEGERS}),
    templates={
        "number": "TRY_CAST({} AS DOUBLE)",
        # Of all questions about NaN and infinity, `isfinite` alone is never looked up in the
        # statistics of a Parquet file, which leave NaN out; a comparison, and even `isnan`, may be.
        "is finite": "isfinite({})",
        "is missing word": "CASE WHEN TRY_CAST({0} AS DOUBLE) IS NULL THEN "
        f"coalesce({MISSING_WORD.format('CAST({0} AS VARCHAR)')}, false) ELSE false END",
        "is infinite": "CASE WHEN isfinite({0}) THEN false "
        "ELSE ends_with(CAST({0} AS VARCHAR), 'inf') END",
        "is text": "(TRY_CAST({0} AS DOUBLE) IS NULL AND coalesce(CAST({0} AS VARCHAR), '') <> '')",
    },
)
