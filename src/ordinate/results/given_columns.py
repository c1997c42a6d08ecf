"""Columns as arguments of results: at hand, or named of a table."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, word_advice
from ordinate.readers.column_names import check_column, expand_columns
from ordinate.readers.tables import ColumnTable, LazyTable, is_table, open_table
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.encoding import factorize_column, rename_labels
from ordinate.scale.label_maps import LabelMap
from ordinate.summaries.tabulation import check_same_length, convert_weights, encode_positions


@dataclass(frozen=True)
class GivenColumns:
    """Columns by argument, as they were given: at hand, or those of a table.

    `names` is what the `table` calls them. Of a lazy one none is at hand: its engine is asked.
    """

    columns: Mapping[str, Any]
    names: Mapping[str, str]
    table: "ColumnTable | LazyTable | None" = None

    def __getitem__(self, argument: str) -> Any:
        """Return a column, None where there is none."""
        return self.columns.get(argument)

    def encode_labels(self, scale: Scale) -> dict[str, NDArray[Any]]:
        """Return the positions of the labels of each side; one past the last where one is missing.

        Labels that are not on the scale are refused, those of all sides in one error.
        """
        sides = {x: self[x] for x in ("gold", "predicted", "second_rater") if self[x] is not None}
        weights = convert_weights(self["weights"])
        return {x: encode_positions(scale, y, x, weights, beside=sides) for x, y in sides.items()}

    def blank_incomplete_items(
        self, scale: Scale, levels: Mapping[str, NDArray[Any]]
    ) -> "GivenColumns":
        """Return the columns, without gold where another label or the cluster is missing.

        So probabilities are evaluated on no other items than labels.
        """
        from ordinate.summaries.probabilities import take_labels  # noqa: PLC0415 - start-up: labels alone need none

        rows, missing = self["probabilities"], [x == len(scale) for x in levels.values()]
        if self["groups"] is not None:
            clusters = factorize_column(self["groups"], "groups")
            missing.append(np.array([x is None for x in clusters.values], bool)[clusters.codes])
        for each in missing:
            check_same_length(len(rows), len(each), "rows of probabilities", "labels and groups")
        positions = np.where(np.any(missing, axis=0), len(scale), levels["gold"])
        return replace(self, columns={**self.columns, "gold": take_labels(scale, positions)})

    def read_labels(
        self, declared: Any, label_map: LabelMap, predicted: Iterable[str]
    ) -> tuple["GivenColumns", Scale]:
        """Return the columns with labels renamed and predicted scores cut, and the scale.

        It is the declared one, the one that columns carry, or the one preset that fits.
        """
        predicted = [x for x in predicted if self[x] is not None]
        given = self
        if len(label_map):
            given = self.rename_labels(("gold", "second_rater", *predicted), label_map.rename)
        sides = ["gold"] if label_map.edges else ["gold", *predicted]
        scale = resolve_scale(declared, *(given[x] for x in sides), tidy=label_map.tidy)
        if label_map.edges:
            given = given.rename_labels(predicted, lambda label: label_map.cut(label, scale))
        return given, label_map.adjust(scale)

    def rename_labels(
        self, arguments: Iterable[str], rename: Callable[[Any], Any]
    ) -> "GivenColumns":
        """Return the columns with other labels in those of some arguments."""
        there = [x for x in arguments if self[x] is not None]
        renamed = {x: rename_labels(self[x], rename) for x in there}
        return replace(self, columns={**self.columns, **renamed})

    def add_probabilities(
        self, probabilities: Any, columns: Any, scale: Scale, *, drop: bool = False
    ) -> "GivenColumns":
        """Return the columns with a table of probabilities, or those that were named.

        Without predictions, the most probable levels are taken. `drop` takes gold away where
        another label or the cluster is missing.
        """
        from ordinate.summaries.probabilities import arrange_columns, find_most_probable_labels  # noqa: PLC0415 - start-up: labels alone need none

        if isinstance(self.table, ColumnTable):
            columns = expand_columns(list_names(probabilities, columns), self.table, scale)
            probabilities = self.table.take_matrix(columns)
        rows = arrange_columns(scale, probabilities, columns, self["gold"])
        found = replace(self, columns={**self.columns, "probabilities": rows})
        levels = found.encode_labels(scale)
        if drop:
            found = found.blank_incomplete_items(scale, levels)
        if self["predicted"] is None:
            more = {"predicted": find_most_probable_labels(scale, rows)}
            found = replace(found, columns={**found.columns, **more})
        return found

    def measure_agreement(self, scale: Scale) -> float:
        """Return how often the most probable level is the predicted one, of items with gold."""
        from ordinate.summaries.probabilities import count_agreement  # noqa: PLC0415 - start-up: labels alone need none

        rows, weights = self["probabilities"], convert_weights(self["weights"])
        sides = self.encode_labels(scale)
        count, same = count_agreement(rows, sides["gold"], sides["predicted"], len(scale), weights)
        return float(same / count) if count else math.nan


def take_columns(data: Any, first: str, **given: Any) -> GivenColumns:
    """Return the columns of a table that were named, or columns as they were given.

    Without a table, `data` itself may be the `first` column.

    >>> take_columns([1, 2], "gold", gold=None, predicted=[2, 2])["gold"]
    [1, 2]
    >>> take_columns({"level": [1, 2]}, "gold", gold="level")["gold"]
    [1, 2]
    """
    named = {argument: column for argument, column in given.items() if column is not None}
    refuse_strange_table(data, named.get(first))
    if not is_table(data):
        if data is not None and first in named:
            raise BadOption(f"Pass {first} once: first, or as {first}=…, or name it of a table.")
        return GivenColumns(named if data is None else {first: data, **named}, {})
    names = {argument: _check_name(argument, column) for argument, column in named.items()}
    table = open_table(data)
    for name in names.values():
        check_column(table.name, name, table.columns)
    if isinstance(table, LazyTable):
        return GivenColumns({}, names, table)
    return GivenColumns({x: table.take_column(name) for x, name in names.items()}, names, table)


def refuse_idle_options(reason: str, **options: Any) -> None:
    """Refuse options that were given (not None, not False) and have no meaning here."""
    for name, value in options.items():
        if value is not None and value is not False:
            option: Any = {name: ...}
            named = word_advice(f"{{{name}}}", **option)
            raise BadOption(f"{named} has no meaning here: {reason}.")


def refuse_strange_table(data: Any, column: Any) -> None:
    """Refuse a model in the place of data, and data that are no table where columns are named."""
    if hasattr(data, "predict") and not is_table(data):
        raise BadOption(
            f"{type(data).__name__} is a model. Predict first, and pass y and model.predict(X), of "
            "levels also probabilities=model.predict_proba(X) with columns=model.classes_. As "
            "scoring=… scikit-learn takes ordinate.scorer(metric, scale=…)."
        )
    if data is not None and isinstance(column, str) and not is_table(data):
        open_table(data)  # says what is one


def list_names(probabilities: Any, columns: Any = None) -> tuple[str, ...]:
    """Return the columns of a table that hold probabilities, or the prefix that they share."""
    names = [probabilities] if isinstance(probabilities, str) else list(probabilities)
    if is_table(probabilities) or not all(isinstance(name, str) for name in names):
        raise BadOption(
            "With a table, probabilities=… are the names of its columns, or their prefix. Put the "
            "columns into the table, or pass columns alone: evaluate(table['level'], …)."
        )
    if columns is not None:
        raise BadOption(
            "columns=… is for an array of probabilities. Columns of a table are known by their "
            "names, such as p_low, p_mid, p_high."
        )
    return tuple(names)


def _check_name(argument: str, column: Any) -> str:
    if isinstance(column, str):
        return column
    kind = "a column" if isinstance(column, Iterable) else type(column).__name__
    raise BadOption(
        f"With a table, {argument}=… is the name of one of its columns, not {kind}. Put the "
        "column into the table, or pass columns alone."
    )
