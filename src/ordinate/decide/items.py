"""The columns that decisions are learned from: scores, gold labels, groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, brief
from ordinate.scale import Scale
from ordinate.scale.encode import Groups, factorise
from ordinate.scale.labels import is_missing
from ordinate.summary.tabulate import SHOWN, Weights, absent, positions_of, same_length

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


def score_column(scores: Any) -> Floats:
    """Return one column of finite numbers, or say which row is none.

    >>> score_column([[0.5], [2]]).tolist()
    [0.5, 2.0]
    """
    try:
        given = np.asarray(scores)
        values = given.astype(float) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        values = None
    if values is None:
        raise BadInput("Scores must be numbers, one for each item.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise BadInput(f"Scores must be one column of numbers, not of the shape {values.shape}.")
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise BadInput(
            f"Score {values[row]} (row {row + 1}) is not a finite number. Leave such items out, "
            "or give them a score."
        )
    return values


def gold_levels(scale: Scale, gold: Any, weights: Weights = None) -> Positions:
    """Return the position of each gold label; none may be missing, unless its weight is 0."""
    levels = positions_of(scale, gold, "gold", weights)
    lacking = levels == len(scale)
    if weights is not None and len(weights) == len(levels):
        lacking &= weights > 0
    if lacking.any():
        rows = [f"row {row + 1}" for row in np.flatnonzero(lacking)[:SHOWN]]
        way = "Leave these items out: nothing can be learned from them."
        raise absent(int(lacking.sum()), len(levels), "gold labels", rows, way)
    return levels.astype(np.intp)


def groups_of(groups: Any, n: int, what: str) -> Groups:
    """Return the groups of n items, of which none is missing; one group where there are none."""
    if groups is None:
        return Groups([None], np.zeros(n, np.int64))
    found = factorise(groups)
    same_length(n, len(found.codes), what, "groups")
    missing = [value for value in found.values if is_missing(value)]
    if missing:
        row = int(np.argmax(found.codes == found.values.index(missing[0])))
        raise MissingLabels(f"The group of row {row + 1} is missing. Leave such items out.")
    return found


def several(names: list[Any]) -> str:
    """Return the first of some names, as an error or a note lists them."""
    shown = ", ".join(str(name) if isinstance(name, str) else brief(name) for name in names[:SHOWN])
    return shown + (", …" if len(names) > SHOWN else "")
