"""Which columns of a file hold numbers, and these as one matrix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues, shorten, word_advice
from ordinate.readers.duckdb_connection import quote_literal
from ordinate.readers.file_formats import FileSource
from ordinate.readers.item_columns import read_labels
from ordinate.readers.item_query import resolve_number
from ordinate.readers.number_spelling import WRITTEN_PATTERN, suggest_decimal
from ordinate.render.estimates import format_count
from ordinate.summaries.tabulation import RowPolicy, check_missing_policy
from ordinate.tuning.experiment.dataset import USUAL_NAMES
from ordinate.tuning.experiment.numeric_matrix import (
    describe_cells,
    list_further_cells,
    read_numbers,
)

MOST_CELLS = 20_000_000  # cells that are taken into memory
MOST_COLUMNS = 10_000  # that are looked through: each query reads the file again
COLUMNS_PER_QUERY = 256  # columns that one query looks at
COLUMNS_SHOWN = 5  # names that an error lists
ADVICE = (
    "Nothing is filled in: mend the cells, leave out their rows with {missing}, or leave out the "
    "columns."
)


@dataclass(frozen=True)
class NumericTable:
    """Columns of numbers [N, d], and what is known of the others.

    A column of nothing but true and false is one of 1 and 0. `texts` are the columns that hold no
    numbers, such as dates, too; `few` those of which fewer than half of the cells are numbers;
    `ids` columns that are called as ids are, unless they were named; `labels` a column that was
    named as such. `rows` are those of the file that are there, from 1, and `dropped` says which
    are not.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    texts: tuple[str, ...]
    few: tuple[str, ...]
    labels: NDArray[Any] | None
    path: str
    ids: tuple[str, ...]
    rows: NDArray[np.intp]
    dropped: str = ""


def read_numeric_table(
    source: FileSource,
    names: Sequence[str] | None = None,
    *,
    label: str | None = None,
    missing: RowPolicy = "error",
    most_cells: int = MOST_CELLS,
    columns_per_query: int = COLUMNS_PER_QUERY,
) -> NumericTable:
    """Return the named columns, or all that hold numbers; each cell of them is a finite number.

    Where fewer than half of its cells are numbers, a column is left out; in others a cell that is
    none is an error, with its row, or by `missing` its row is dropped. A column of numbers such as
    3,1 or 1,234.5 or 3.1% is an error, too, unless it was said how they are written: it is neither
    guessed what they mean, nor is the column left out without a word.
    """
    check_missing_policy(missing, RowPolicy)
    ids = [c for c in source.columns if names is None and c != label and is_id_name(c)]
    free = [c for c in source.columns if c != label and c not in ids]
    named = free if names is None else list(names)
    if len(named) > MOST_COLUMNS:
        raise BadInput(
            f"{source.name} has {len(named):,} columns that may be features, and at most "
            f"{MOST_COLUMNS:,} are looked through: name those to take with features=[…] "
            "(--features A,B,…)."
        )
    n = source.count_rows()
    if n * len(named) > most_cells:
        raise BadInput(
            f"{source.name} has {n:,} rows of {len(named):,} columns: too many to hold in "
            f"memory (at most {most_cells:,} cells)."
        )
    table = _NumericTableReader(source, named, columns_per_query)
    table.sort_columns()
    table.refuse_written_numbers(named=names is not None)
    if names is not None:
        table.refuse_texts()
    matrix = table.read_matrix(missing)
    labels = None if label is None else table.read_group_labels(label, missing)
    found = NumericTable(
        names=tuple(table.numbers),
        matrix=matrix,
        texts=tuple(table.texts),
        few=tuple(table.few),
        labels=labels,
        path=source.name,
        ids=tuple(ids),
        rows=np.arange(1, n + 1),
    )
    return found if missing == "error" else _drop_rows(found, label)


def is_id_name(name: str) -> bool:
    """Tell whether a column is called as columns of ids are.

    >>> is_id_name("ID"), is_id_name("sample_id"), is_id_name("solid")
    (True, True, False)
    """
    bare = name.strip().lower()
    return bare in USUAL_NAMES["id"] or bare.endswith(("_id", " id"))


def _drop_rows(table: NumericTable, label: str | None) -> NumericTable:
    """Return the table without the rows in which a number or the group is missing, and say so."""
    odd, names = ~np.isfinite(table.matrix), [*table.names]
    if table.labels is not None:
        odd = np.column_stack([odd, [one is None for one in table.labels]])
        names.append(str(label))
    whole = ~odd.any(axis=1)
    if whole.all():
        return table
    dropped = (
        f"Left out: {np.sum(~whole):,} of {format_count(len(odd), 'row')}, for cells that are "
        f"empty or no finite numbers: {describe_cells(odd, names)}."
    )
    return replace(
        table,
        matrix=table.matrix[whole],
        labels=None if table.labels is None else table.labels[whole],
        rows=table.rows[whole],
        dropped=dropped,
    )


class _NumericTableReader:
    """One file that is read, and its columns: `numbers` with SQL for each, and the others."""

    def __init__(self, source: FileSource, names: list[str], columns_per_query: int) -> None:
        self.source, self.columns_per_query = source, columns_per_query
        self.cells = {  # SQL for strings, NULL where a cell is empty
            name: f"nullif(CAST({resolve_number(source, name, names)} AS VARCHAR), '')"
            for name in names
        }
        self.numbers: dict[str, str] = {}
        self.texts: list[str] = []
        self.few: list[str] = []  # columns of which fewer than half of the cells are numbers
        self.written: dict[str, str] = {}  # a number that is written as none is read, by column

    def sort_columns(self) -> None:
        """Tell the columns that hold numbers, or nothing but true and false, from others."""
        counts = self._count_cells(list(self.cells), _count_numbers)
        mixed = [name for name, (numbers, cells) in counts.items() if numbers < cells]
        others = self._count_cells(mixed, _count_others)
        for name, (numbers, cells) in counts.items():
            logical, written, example = others.get(name, (0, 0, None))
            texts = cells - numbers - logical
            if logical and not (numbers or texts):
                self.numbers[name] = f"lower({self.cells[name]}) = 'true'"
            elif numbers >= texts + logical:  # among numbers, true and false are strings
                self.numbers[name] = self.cells[name]
            else:
                (self.few if numbers else self.texts).append(name)
                if written and 2 * (numbers + written) >= cells:
                    self.written[name] = example

    def _count_cells(
        self, names: Sequence[str], build_sql: Callable[[str], list[str]]
    ) -> dict[str, tuple[Any, ...]]:
        """Return counts of each column. What a query costs grows faster than what it counts."""
        found: dict[str, tuple[Any, ...]] = {}
        width = len(build_sql(""))
        step = max(1, self.columns_per_query // width)
        for part in (names[start : start + step] for start in range(0, len(names), step)):
            sql = [one for name in part for one in build_sql(self.cells[name])]
            (row,) = self.source.read(", ".join(sql))
            found |= {name: row[width * k : width * (k + 1)] for k, name in enumerate(part)}
        return found

    def refuse_written_numbers(self, *, named: bool) -> None:
        """Refuse columns of numbers that are written as none is read."""
        if not self.written:
            return
        which = ", ".join(map(shorten, list(self.written)[:COLUMNS_SHOWN]))
        further = len(self.written) - COLUMNS_SHOWN
        more = f" and {further} more" if further > 0 else ""
        cell = next(iter(self.written.values()))
        instead = "" if named else " Or name the columns to use with --features."
        advice = suggest_decimal(cell) or " Write them without signs and separators, as in 1234.5."
        raise BadInput(
            f"{self.source.name}: numbers in {which}{more} are written as {shorten(cell)} is, "
            f"which is not read.{advice}{instead}"
        )

    def refuse_texts(self) -> None:
        """Refuse columns that hold no numbers, or few."""
        for name in self.cells:
            column = f"column {shorten(name)} of {self.source.name}"
            problem = f"The {column} holds no numbers, and numbers are needed"
            if name in self.few:
                problem = (
                    f"In the {column} fewer than half of the cells are numbers, which all must be"
                )
            if name not in self.numbers:
                raise BadInput(f"{problem}. Leave it out, or turn it into numbers first.")

    def read_matrix(self, missing: RowPolicy) -> NDArray[np.float64]:
        """Return the columns of numbers."""
        try:
            return read_numbers(
                self.source,
                self.numbers,
                columns_per_query=self.columns_per_query,
                finite=missing == "error",
            )
        except BadValues as problem:
            raise BadValues(f"{problem} {word_advice(ADVICE, missing='drop')}") from None

    def read_group_labels(self, name: str, missing: RowPolicy) -> NDArray[Any]:
        """Return a column of which each cell has a label."""
        labels = read_labels([self.source], name)
        empty = np.array([[label is None] for label in labels], bool).reshape(-1, 1)
        if missing == "error" and empty.any():
            raise BadValues(
                f"{self.source.name}: the cell in row {int(np.argmax(empty)) + 1} of column "
                f"{shorten(name)} is empty, and each row belongs to a group."
                f"{list_further_cells(empty, [name])} {word_advice(ADVICE, missing='drop')}"
            )
        return labels


def _count_numbers(cell: str) -> list[str]:
    """Return SQL for how many cells are numbers, and how many are anything at all."""
    return [f"count(TRY_CAST({cell} AS DOUBLE))", f"count({cell})"]


def _count_others(cell: str) -> list[str]:
    """Return SQL for the true and false ones, for numbers to people alone, and one of these."""
    pattern = quote_literal(WRITTEN_PATTERN)
    written = f"TRY_CAST({cell} AS DOUBLE) IS NULL AND regexp_full_match(trim({cell}), {pattern})"
    return [
        f"count(*) FILTER (lower({cell}) IN ('true', 'false'))",
        f"count(*) FILTER ({written})",
        f"min({cell}) FILTER ({written})",
    ]
