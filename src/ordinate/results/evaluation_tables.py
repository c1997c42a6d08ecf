"""From columns to the tables that an evaluation needs: all items, subgroups, groups, humans."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NoItems
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


class EvaluationTables(NamedTuple):
    """The table of all items, those of subgroups, the batch of groups, and gold against humans.

    With groups, the tables of subgroups are batches, too.
    """

    table: ConfusionMatrix
    by: list[tuple[Any, ConfusionMatrix]]
    groups: ConfusionMatrix | None
    human: ConfusionMatrix | None


def count_tables(
    scale: Scale,
    gold: Any,
    predicted: Any,
    weights: Any,
    by: Any,
    groups: Any,
    second: Any,
    missing: MissingPolicy,
) -> EvaluationTables:
    """Count columns, each item once for the system."""
    parts = None if by is None else factorize_column(by, "by")
    units = None if groups is None else factorize_column(groups, "groups")
    crossed = _cross_groups(parts, units, missing)
    batch, human = _count_batch(scale, gold, predicted, weights, crossed, second, missing)
    if crossed is None:
        return EvaluationTables(batch, [], None, human)
    place = np.array(crossed.values, np.int64)
    alone = place[:, 1] == (-1 if units is None else _find_missing_group(units))
    lost = int(batch[alone].items.sum() + np.sum(batch[alone].dropped))
    batch, place = batch[~alone], place[~alone]
    table = batch.pooled
    if not table.items.any():
        raise NoItems("There are no items to evaluate: none has a group.")
    units_of, count = _densify_index(place[:, 1])
    by_unit = None if units is None else batch.compute_sums(units_of, count)
    if human is not None:
        human = human[~alone].compute_sums(units_of, count) if units is not None else human.pooled
    found = [] if parts is None else _split_subgroups(batch, place[:, 0], parts, units_of, by_unit)
    return EvaluationTables(replace(table, dropped=table.dropped + lost), found, by_unit, human)


def _count_batch(
    scale: Scale,
    gold: Any,
    predicted: Any,
    weights: Any,
    crossed: Groups | None,
    second: Any,
    missing: MissingPolicy,
) -> tuple[ConfusionMatrix, ConfusionMatrix | None]:
    """Return the table of the system, or a batch of it, and that of a second rater."""
    if second is None and crossed is None:
        return ConfusionMatrix.of(scale, gold, predicted, weights, missing), None
    if second is None and crossed is not None:
        return ConfusionMatrix.count_by_group(
            scale, gold, predicted, crossed, weights, missing
        ), None
    _refuse_missing(scale, second, weights, missing)
    answers = {"predicted": predicted, SECOND_RATER: second}
    panel = Panel.of(scale, gold, answers, weights, crossed, missing)
    if crossed is None:
        return replace(
            panel.confusion_matrix("predicted"), dropped=panel.dropped
        ), panel.confusion_matrix(SECOND_RATER)
    return _count_crossed(panel, "predicted", crossed, weights), _count_crossed(
        panel, SECOND_RATER, crossed, weights
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
        way = f"Leave them out with {DROP_HINT}."
        raise make_missing_labels_error(
            int(lacking.sum()), len(lacking), "labels of the second rater", rows, way
        )


def _count_crossed(panel: Panel, system: str, crossed: Groups, weights: Any) -> ConfusionMatrix:
    """Return a table for each pair of subgroup and group, also for those without items left."""
    known = {value: index for index, value in enumerate(crossed.values)}
    index = np.array([known[value] for value in panel.group_values])
    batch = panel.count_by_group(system).compute_sums(index, len(crossed.values))
    alive = np.ones(len(crossed.codes), bool) if weights is None else np.asarray(weights) > 0
    before = np.bincount(crossed.codes[alive], minlength=len(crossed.values))
    return replace(batch, dropped=before - batch.items.sum(axis=(-2, -1)).astype(np.int64))


def _cross_groups(
    parts: Groups | None, units: Groups | None, missing: MissingPolicy
) -> Groups | None:
    """Return the pairs (subgroup, group) that occur, and which of them each item has."""
    if parts is None and units is None:
        return None
    if units is not None and None in units.values and missing != "drop":
        alone = np.flatnonzero(units.codes == units.values.index(None))
        rows = [f"row {row + 1}" for row in alone[:ROWS_SHOWN]]
        raise make_missing_groups_error(len(alone), len(units.codes), "groups", rows)
    if parts is not None and units is not None:
        check_same_length(len(parts.codes), len(units.codes), "subgroups", "groups")
    none = np.zeros_like(next(x.codes for x in (parts, units) if x is not None))
    both = [none if x is None else x.codes for x in (parts, units)]
    pairs, codes = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
    return Groups([tuple(pair) for pair in pairs.tolist()], codes.reshape(-1))


def _find_missing_group(units: Groups) -> int:
    return units.values.index(None) if None in units.values else -1


def _split_subgroups(
    batch: ConfusionMatrix,
    part_of: Index,
    parts: Groups,
    units_of: Index,
    by_unit: ConfusionMatrix | None,
) -> list[tuple[Any, ConfusionMatrix]]:
    """Return the table of each subgroup; with groups, a batch that has every group."""
    if by_unit is None:
        return [(parts.values[part], batch[k]) for k, part in enumerate(part_of)]
    count = len(by_unit.weights)
    return [
        (value, batch[part_of == part].compute_sums(units_of[part_of == part], count))
        for part, value in enumerate(parts.values)
        if (part_of == part).any()
    ]


def _densify_index(index: Index) -> tuple[Index, int]:
    values, dense = np.unique(index, return_inverse=True)
    return dense.reshape(-1), len(values)
