"""Input columns of estimators: scores, probabilities, gold labels, groups."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, shorten
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.scale.labels import is_missing
from ordinate.summaries.probabilities import build_probability_array, warn_of_order
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    Weights,
    check_same_length,
    encode_positions,
    make_missing_labels_error,
)

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


def read_score_column(scores: Any, weights: Weights = None) -> Floats:
    """Return scores as one column of finite numbers; a row of weight 0 may have any.

    >>> read_score_column([[0.5], [2]]).tolist()
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


def encode_gold_levels(
    scale: Scale, gold: Any, weights: Weights = None, *, reason: str = "nothing can be learned"
) -> Positions:
    """Return the position of each gold label; none may be missing, unless its weight is 0."""
    levels = encode_positions(scale, gold, "gold", weights)
    lacking = levels == len(scale)
    if weights is not None and len(weights) == len(levels):
        lacking &= weights > 0
    if lacking.any():
        rows = [f"row {row + 1}" for row in np.flatnonzero(lacking)[:ROWS_SHOWN]]
        advice = f"Leave these items out: {reason} from them."
        raise make_missing_labels_error(
            int(lacking.sum()), len(levels), "gold labels", rows, advice
        )
    return levels.astype(np.intp)


def read_probability_rows(
    scale: Scale,
    probabilities: Any,
    columns: tuple[Any, ...] | None,
    *,
    renormalize: bool,
    there: NDArray[np.bool] | None = None,
) -> Floats:
    """Return checked rows in the order of the scale, of the items marked in `there`.

    Columns without names are taken in that order, with a warning if the model may have another.
    """
    rows = build_probability_array(
        scale, probabilities, columns, renormalize=renormalize, there=there
    )
    if columns is None and len(rows):
        warn_of_order(scale, probabilities)
    return rows


def list_columns(columns: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Return the names of columns, which an iterator gives only once."""
    return None if columns is None else tuple(columns)


def encode_groups(groups: Any, n: int, name: str) -> Groups:
    """Return the groups of n items, of which none is missing; one group where there are none."""
    if groups is None:
        return Groups([None], np.zeros(n, np.int64))
    encoded = factorize_column(groups)
    check_same_length(n, len(encoded.codes), name, "groups")
    missing = [value for value in encoded.values if is_missing(value)]
    if missing:
        row = int(np.argmax(encoded.codes == encoded.values.index(missing[0])))
        raise MissingLabels(f"The group of row {row + 1} is missing. Leave such items out.")
    return encoded


def format_names(names: list[Any]) -> str:
    """Return the first names, as an error or a note lists them."""
    shown = ", ".join(
        str(name) if isinstance(name, str) else shorten(name) for name in names[:ROWS_SHOWN]
    )
    return shown + (", …" if len(names) > ROWS_SHOWN else "")
