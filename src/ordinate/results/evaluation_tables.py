"""From columns to confusion matrices: of all items, subgroups, clusters and a second rater."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NoItems
from ordinate.readers.confusion import ConfusionData
from ordinate.results.given_columns import GivenColumns
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.tabulation import (
    DROP_HINT,
    ROWS_SHOWN,
    MissingPolicy,
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
    found = _count_columns(
        scale,
        given["gold"],
        given["predicted"],
        given["weights"],
        given["by"],
        given["groups"],
        given["second_rater"],
        missing,
    )
    gold, predicted = (given.names.get(x, x) for x in ("gold", "predicted"))
    return replace(found, gold=gold, predicted=predicted)


def _count_columns(
    scale: Scale,
    gold: Any,
    predicted: Any,
    weights: Any,
    by: Any,
    groups: Any,
    second: Any,
    missing: MissingPolicy,
) -> ConfusionData:
    subgroups = None if by is None else factorize_column(by, "by")
    units = None if groups is None else factorize_column(groups, "groups")
    group_pairs = _pair_groups(subgroups, units, missing)
    batch, rater = _count_batch(scale, gold, predicted, weights, group_pairs, second, missing)
    if group_pairs is None:
        return ConfusionData(batch, second_rater=rater)
    place = np.array(group_pairs.values, np.int64)
    alone = place[:, 1] == (-1 if units is None else _find_missing_group(units))
    lost = int(batch[alone].items.sum() + np.sum(batch[alone].dropped))
    batch, place = batch[~alone], place[~alone]
    matrix = batch.pooled
    if not matrix.items.any():
        raise NoItems("There are no items to evaluate: none has a group.")
    there, units_of = np.unique(place[:, 1], return_inverse=True)
    count = len(there)

    def split(pairs: ConfusionMatrix) -> list[tuple[Any, ConfusionMatrix]]:
        clusters = None if units is None else count
        return (
            []
            if subgroups is None
            else _split_subgroups(pairs, place, subgroups, units_of, clusters)
        )

    def pool(pairs: ConfusionMatrix) -> ConfusionMatrix:
        return pairs.pooled if units is None else pairs.compute_sums(units_of, count)

    return ConfusionData(
        replace(matrix, dropped=matrix.dropped + lost),
        split(batch),
        groups=None if units is None else pool(batch),
        second_rater=None if rater is None else pool(rater[~alone]),
        second_rater_by=[] if rater is None else split(rater[~alone]),
        group_values=() if units is None else tuple(units.values[index] for index in there),
    )


def _count_batch(
    scale: Scale,
    gold: Any,
    predicted: Any,
    weights: Any,
    group_pairs: Groups | None,
    second: Any,
    missing: MissingPolicy,
) -> tuple[ConfusionMatrix, ConfusionMatrix | None]:
    """Return the confusion matrix of the system, or a batch of it, and that of a second rater."""
    if second is None and group_pairs is None:
        return ConfusionMatrix.of(gold, predicted, scale, weights, missing), None
    if second is None and group_pairs is not None:
        return ConfusionMatrix.count_by_group(
            gold, predicted, scale, group_pairs, weights, missing
        ), None
    _refuse_missing(scale, second, weights, missing)
    columns = {"predicted": predicted, SECOND_RATER: second}
    panel = Panel.of(gold, columns, scale, weights, group_pairs, missing)
    if group_pairs is None:
        own, rater = panel.confusion_matrix("predicted"), panel.confusion_matrix(SECOND_RATER)
        return replace(own, dropped=panel.dropped), rater
    return _count_group_pairs(panel, "predicted", group_pairs, weights), _count_group_pairs(
        panel, SECOND_RATER, group_pairs, weights
    )


def _refuse_missing(scale: Scale, second: Any, weights: Any, missing: MissingPolicy) -> None:
    """Say which levels of the second rater are missing, unless their items are dropped."""
    if missing == "drop":
        return
    weighing = convert_weights(weights)
    lacking = encode_positions(scale, second, SECOND_RATER, weighing) == len(scale)
    if weighing is not None and len(weighing) == len(lacking):
        lacking &= weighing > 0
    if lacking.any():
        rows = [f"row {row + 1}" for row in np.flatnonzero(lacking)[:ROWS_SHOWN]]
        hint = f"Leave them out with {DROP_HINT}."
        raise make_missing_labels_error(
            int(lacking.sum()), len(lacking), "labels of the second rater", rows, hint
        )


def _count_group_pairs(
    panel: Panel, system: str, group_pairs: Groups, weights: Any
) -> ConfusionMatrix:
    """Return a matrix for each pair of subgroup and group, also for those without items left."""
    known = {value: index for index, value in enumerate(group_pairs.values)}
    index = np.array([known[value] for value in panel.group_values])
    batch = panel.count_by_group(system).compute_sums(index, len(group_pairs.values))
    alive = np.ones(len(group_pairs.codes), bool) if weights is None else np.asarray(weights) > 0
    before = np.bincount(group_pairs.codes[alive], minlength=len(group_pairs.values))
    return replace(batch, dropped=before - batch.items.sum(axis=(-2, -1)).astype(np.int64))


def _pair_groups(
    subgroups: Groups | None, units: Groups | None, missing: MissingPolicy
) -> Groups | None:
    """Return the pairs (subgroup, group) that occur, and which of them each item has."""
    if subgroups is None and units is None:
        return None
    if units is not None and None in units.values and missing != "drop":
        alone = np.flatnonzero(units.codes == units.values.index(None))
        rows = [f"row {row + 1}" for row in alone[:ROWS_SHOWN]]
        raise make_missing_groups_error(len(alone), len(units.codes), "groups", rows)
    if subgroups is not None and units is not None:
        check_same_length(len(subgroups.codes), len(units.codes), "subgroups", "groups")
    none = np.zeros_like(next(x.codes for x in (subgroups, units) if x is not None))
    both = [none if x is None else x.codes for x in (subgroups, units)]
    pairs, codes = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
    return Groups([tuple(pair) for pair in pairs.tolist()], codes.reshape(-1))


def _find_missing_group(units: Groups) -> int:
    return units.values.index(None) if None in units.values else -1


def _split_subgroups(
    batch: ConfusionMatrix,
    place: Index,
    subgroups: Groups,
    units_of: Index,
    clusters: int | None,
) -> list[tuple[Any, ConfusionMatrix]]:
    """Return the matrix of each subgroup; with clusters, a batch that has every cluster."""
    part_of = place[:, 0]
    if clusters is None:
        return [(subgroups.values[part], batch[k]) for k, part in enumerate(part_of)]
    return [
        (value, batch[part_of == part].compute_sums(units_of[part_of == part], clusters))
        for part, value in enumerate(subgroups.values)
        if (part_of == part).any()
    ]


def pool_rests(parts: ConfusionMatrix) -> ConfusionMatrix:
    """Return for each matrix of a batch all others: what comes before it, and what comes after."""

    def add_others(array: Index) -> Index:
        before, after = np.zeros_like(array), np.zeros_like(array)
        before[1:] = np.cumsum(array[:-1], axis=0)
        after[:-1] = np.cumsum(array[:0:-1], axis=0)[::-1]
        return before + after

    return parts.map(add_others)
