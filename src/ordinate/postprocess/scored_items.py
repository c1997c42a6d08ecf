"""The columns that decisions are learned from: scores, gold labels, groups."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, brief
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorise
from ordinate.scale.labels import is_missing
from ordinate.summaries.probabilities import probability_array, warn_of_order
from ordinate.summaries.tabulation import SHOWN, Weights, absent, positions_of, same_length

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


def score_column(scores: Any, weights: Weights = None) -> Floats:
    """Return one column of finite numbers, or say which row is none, unless its weight is 0.

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
    if weights is not None and len(weights) == len(values):
        bad &= weights > 0
    if bad.any():
        row = int(np.argmax(bad))
        raise BadInput(
            f"Score {values[row]} (row {row + 1}) is not a finite number. Leave such items out, "
            "or give them a score."
        )
    return values


def gold_levels(
    scale: Scale, gold: Any, weights: Weights = None, *, why: str = "nothing can be learned"
) -> Positions:
    """Return the position of each gold label; none may be missing, unless its weight is 0."""
    levels = positions_of(scale, gold, "gold", weights)
    lacking = levels == len(scale)
    if weights is not None and len(weights) == len(levels):
        lacking &= weights > 0
    if lacking.any():
        rows = [f"row {row + 1}" for row in np.flatnonzero(lacking)[:SHOWN]]
        way = f"Leave these items out: {why} from them."
        raise absent(int(lacking.sum()), len(levels), "gold labels", rows, way)
    return levels.astype(np.intp)


def probability_rows(
    scale: Scale,
    probabilities: Any,
    columns: tuple[Any, ...] | None,
    *,
    renormalize: bool,
    there: NDArray[np.bool] | None = None,
) -> Floats:
    """Return checked rows in the order of the scale, of the items that are there.

    Columns without names are taken in that order, with a warning if the model may have another.
    """
    rows = probability_array(scale, probabilities, columns, renormalize=renormalize, there=there)
    if columns is None and len(rows):
        warn_of_order(scale, probabilities)
    return rows


def once(columns: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Return the names of columns, which may come from where they can be read only once."""
    return None if columns is None else tuple(columns)


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
