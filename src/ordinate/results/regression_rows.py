"""Rows of files that were summed up, one by one: for residuals and resamples."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinate.readers.columns import ItemColumns
from ordinate.readers.file_formats import Watch
from ordinate.readers.item_columns import ItemTable, read_columns
from ordinate.readers.regression import RegressionData
from ordinate.scale.encoding import factorize_column
from ordinate.summaries.normalization import Normalization


@dataclass(frozen=True)
class RegressionRows:
    """The items that were evaluated, and which of their columns is what."""

    table: ItemTable
    target: str
    predicted: str
    columns: ItemColumns

    @property
    def y(self) -> Any:
        """The targets."""
        return self.table[self.target]

    @property
    def p(self) -> Any:
        """The predictions."""
        return self.table[self.predicted]

    @property
    def weights(self) -> Any:
        """The weights, None where all items are alike."""
        return None if self.columns.weights is None else self.table[self.columns.weights]

    @property
    def groups(self) -> Any:
        """The groups of items that belong together, None without."""
        return None if self.columns.groups is None else self.table.labels[self.columns.groups]

    @property
    def by(self) -> Any:
        """The subgroups, None without."""
        return None if self.columns.by is None else self.table.labels[self.columns.by]

    def split_subgroups(self) -> "dict[Any, RegressionRows]":
        """Return the items of each subgroup, None for those without one."""
        by = factorize_column(self.by)
        return {name: self._select_items(by.codes == k) for k, name in enumerate(by.values)}

    def _select_items(self, mask: Any) -> "RegressionRows":
        return replace(self, table=self.table.select_rows(mask))

    def denormalize_items(self, training: Normalization) -> "RegressionRows":
        """Return the items in the unit of the targets."""
        columns = self.table.columns
        denormalized = {
            name: training.denormalize(columns[name])
            for name in {self.target, self.predicted}
            if not isinstance(columns[name], list)
        }
        return replace(self, table=replace(self.table, columns=columns | denormalized))


def read_regression_rows(
    paths: list[str],
    columns: ItemColumns,
    found: RegressionData,
    further: Sequence[str],
    *,
    watch: Watch = lambda _: nullcontext(),
) -> RegressionRows:
    """Read the items of files that were summed up: with numbers, a group, and a weight above 0."""
    optional = (columns.lower, columns.upper, columns.weights)
    needed = [found.target, found.predicted, *(name for name in optional if name is not None)]
    labels = [name for name in (columns.groups, columns.by) if name is not None]
    table = read_columns(paths, [*needed, *further], columns, labels=labels, watch=watch)
    cells = {name: _convert_to_numbers(table[name]) for name in needed}
    mask = ~np.isnan(np.stack(list(cells.values()))).any(axis=0)
    if columns.groups is not None:
        mask &= np.array([name is not None for name in table.labels[columns.groups]], bool)
    if columns.weights is not None:
        mask &= cells[columns.weights] > 0
    table = replace(table, columns=table.columns | cells).select_rows(mask)
    converted = {name: _convert_if_numeric(column) for name, column in table.columns.items()}
    table = replace(table, columns=converted)
    return RegressionRows(table, found.target, found.predicted, columns)


def _convert_if_numeric(column: Any) -> Any:
    """Return strings as numbers if those that are no numbers stood in items that do not count."""
    if not isinstance(column, list):
        return column
    cells = _convert_to_numbers(column)
    known = all(cell is None or not math.isnan(x) for cell, x in zip(column, cells, strict=True))
    return cells if known else column


def _convert_to_numbers(column: Any) -> Any:
    """Return a column as numbers, nan where there is none."""
    if not isinstance(column, list):
        return column
    return np.array([_parse_number(cell) for cell in column], float)


def _parse_number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan
