"""From columns to the tables that an evaluation needs: all items, subgroups, groups, humans."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, NoItems
from ordinate.scale import Scale
from ordinate.scale.encode import Groups, factorise
from ordinate.summary import Confusion, Panel
from ordinate.summary.tabulate import DROP, SHOWN, Missing, same_length

Index = NDArray[np.int64]
SECOND = "second_gold"


class Tables(NamedTuple):
    """The table of all items, those of subgroups, the batch of groups, and gold against humans.

    With groups, the tables of subgroups are batches, too.
    """

    table: Confusion
    by: list[tuple[Any, Confusion]]
    groups: Confusion | None
    human: Confusion | None


def tables_of(
    scale: Scale,
    gold: Any,
    predicted: Any,
    weights: Any,
    by: Any,
    groups: Any,
    second: Any,
    missing: Missing,
) -> Tables:
    """Count columns, each item once for the system."""
    parts = None if by is None else factorise(by, "by")
    units = None if groups is None else factorise(groups, "groups")
    crossed = _crossed(parts, units, missing)
    batch, human = _batch(scale, gold, predicted, weights, crossed, second, missing)
    if crossed is None:
        return Tables(batch, [], None, human)
    place = np.array(crossed.values, np.int64)
    kept = np.ones(len(place), bool) if units is None else place[:, 1] != _nowhere(units)
    lost = int(batch[~kept].items.sum() + np.sum(batch[~kept].dropped))
    batch, place = batch[kept], place[kept]
    table = batch.pooled
    if not table.items.any():
        raise NoItems("There are no items to evaluate: none has a group.")
    found = [] if parts is None else _subgroups(batch, place, parts, grouped=units is not None)
    whole = None if units is None else batch.summed(*_dense(place[:, 1]))
    return Tables(replace(table, dropped=table.dropped + lost), found, whole, human)


def _batch(
    scale: Scale,
    gold: Any,
    predicted: Any,
    weights: Any,
    crossed: Groups | None,
    second: Any,
    missing: Missing,
) -> tuple[Confusion, Confusion | None]:
    """Return the table of the system, or a batch of it, and that of a second human."""
    if second is None and crossed is None:
        return Confusion.of(scale, gold, predicted, weights, missing), None
    if second is None and crossed is not None:
        return Confusion.by_group(scale, gold, predicted, crossed, weights, missing), None
    answers = {"predicted": predicted, SECOND: second}
    panel = Panel.of(scale, gold, answers, weights, crossed, missing)
    human = panel.table(SECOND)
    if human.has_unanswered:
        raise MissingLabels(
            f"{human.unanswered.sum():g} levels of {SECOND} are missing. Leave these items out "
            f"with {DROP}."
        )
    if crossed is None:
        return replace(panel.table("predicted"), dropped=panel.dropped), human
    batch = panel.by_group("predicted")
    first = np.zeros(len(batch.weights), np.int64)
    first[:1] = panel.dropped
    return replace(batch, dropped=first), human


def _crossed(parts: Groups | None, units: Groups | None, missing: Missing) -> Groups | None:
    """Return the pairs (subgroup, group) that occur, and which of them each item has."""
    if parts is None and units is None:
        return None
    if units is not None and None in units.values and missing != "drop":
        places = np.flatnonzero(units.codes == units.values.index(None))
        rows = ", ".join(f"row {row + 1}" for row in places[:SHOWN])
        raise BadInput(f"{len(places)} items have no group ({rows}). Leave them out with {DROP}.")
    if parts is not None and units is not None:
        same_length(len(parts.codes), len(units.codes), "subgroups", "groups")
    none = np.zeros_like(next(x.codes for x in (parts, units) if x is not None))
    both = [none if x is None else x.codes for x in (parts, units)]
    pairs, codes = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
    return Groups([tuple(pair) for pair in pairs.tolist()], codes.reshape(-1))


def _nowhere(units: Groups) -> int:
    return units.values.index(None) if None in units.values else -1


def _subgroups(
    batch: Confusion, place: Index, parts: Groups, *, grouped: bool
) -> list[tuple[Any, Confusion]]:
    if not grouped:
        return [(parts.values[part], batch[k]) for k, (part, _) in enumerate(place)]
    return [
        (value, batch[place[:, 0] == part])
        for part, value in enumerate(parts.values)
        if (place[:, 0] == part).any()
    ]


def _dense(index: Index) -> tuple[Index, int]:
    values, dense = np.unique(index, return_inverse=True)
    return dense.reshape(-1), len(values)
