"""From columns to confusion matrices: of all items, subgroups, clusters and a second rater."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NoItems
from ordinate.results.given_columns import GivenColumns
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.confusion import ConfusionData, EncodedCells
from ordinate.summaries.panel import sum_single_items
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    MissingPolicy,
    MissingRows,
    check_same_length,
    convert_weights,
    encode_positions,
    make_missing_groups_error,
    make_missing_labels_error,
)

Index = NDArray[np.int64]
SECOND_RATER = "second_rater"


def count_tables(given: GivenColumns, scale: Scale, missing: MissingPolicy) -> ConfusionData:
    """Count columns at hand, each item once for the system."""
    found = _count_columns(given, scale, missing)
    gold, predicted = (given.names.get(x, x) for x in ("gold", "predicted"))
    return replace(found, gold=gold, predicted=predicted)


def _count_columns(given: GivenColumns, scale: Scale, missing: MissingPolicy) -> ConfusionData:
    gold, predicted, weights = given["gold"], given["predicted"], given["weights"]
    by, groups, second = given["by"], given["groups"], given["second_rater"]
    if by is None and groups is None and second is None:
        return ConfusionData(ConfusionMatrix.of(gold, predicted, scale, weights, missing))
    subgroups = None if by is None else factorize_column(by, "by")
    units = None if groups is None else _find_clusters(groups, missing)
    if subgroups is not None and units is not None:
        check_same_length(len(subgroups.codes), len(units.codes), "subgroups", "groups")
    weighing = convert_weights(weights)
    columns = {"gold": gold, "predicted": predicted}
    if second is not None:
        columns[SECOND_RATER] = second
    levels = {x: encode_positions(scale, columns[x], x, weighing, beside=columns) for x in columns}
    n = len(levels["gold"])
    check_same_length(n, len(levels["predicted"]), "gold labels", "predictions")
    for part in (subgroups, units):
        if part is not None:
            check_same_length(n, len(part.codes), "labels", "groups")
    if not n:
        raise NoItems("There are no items to evaluate: the columns are empty.")
    weighing = convert_weights(weights, n)
    sums = sum_single_items(n, weighing)
    cells = EncodedCells(
        scale,
        subgroups,
        units,
        levels["gold"],
        levels["predicted"],
        levels.get(SECOND_RATER),
        sums,
    )
    left_out = np.zeros(n, bool) if units is None else units.codes == len(units.values)
    if left_out.all():
        raise NoItems("There are no items to evaluate: none has a group.")
    if second is not None:
        check_same_length(n, len(levels[SECOND_RATER]), "gold labels", f"levels of {SECOND_RATER}")
        _refuse_missing_ratings(cells.lacks_second_rating & (sums.items > 0), missing)
        left_out = left_out | cells.lacks_second_rating
    rows = MissingRows(
        *(
            partial(_find_rows, (levels[side] == len(scale)) & (sums.items > 0))
            for side in ("gold", "predicted")
        )
    )
    return cells.exclude(left_out).build_data(rows, missing)


def _find_clusters(groups: Any, missing: MissingPolicy) -> Groups:
    """Return the clusters; items without one, which are dropped, have the number after the last."""
    found = factorize_column(groups, "groups")
    if None not in found.values:
        return found
    place = found.values.index(None)
    alone = found.codes == place
    if missing != "drop":
        rows = _find_rows(alone)
        raise make_missing_groups_error(int(alone.sum()), len(alone), "groups", rows)
    codes = np.where(alone, len(found.values) - 1, found.codes - (found.codes > place))
    return Groups([x for x in found.values if x is not None], codes)


def _refuse_missing_ratings(lacking: Any, missing: MissingPolicy) -> None:
    """Say which levels of the second rater are missing, unless their items are dropped."""
    if missing != "drop" and lacking.any():
        raise make_missing_labels_error(
            int(lacking.sum()), len(lacking), "labels of the second rater", _find_rows(lacking)
        )


def _find_rows(where: Any) -> list[str]:
    """Return the first rows of a mask."""
    return [f"row {row + 1}" for row in np.flatnonzero(where)[:ROWS_SHOWN]]


def pool_rests(parts: ConfusionMatrix) -> ConfusionMatrix:
    """Return for each matrix of a batch all others: what comes before it, and what comes after."""

    def add_others(array: Index) -> Index:
        before, after = np.zeros_like(array), np.zeros_like(array)
        before[1:] = np.cumsum(array[:-1], axis=0)
        after[:-1] = np.cumsum(array[:0:-1], axis=0)[::-1]
        return before + after

    return parts.map(add_others)
