"""From columns of labels to sums over the cells of a scale, and what becomes of missing labels.

Sums have the shape [..., K + 1, K + 1] here: the last row holds items without a gold label, the
last column items without a prediction.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadWeights, MissingLabels, NoItems, UnequalLengths
from ordinate.scale import Scale
from ordinate.scale.encode import CHUNK, OFF, Codes, Groups, Strange, encode, off_scale
from ordinate.summary.counting import Sums, Within, count, count_weighted

Missing = Literal["error", "drop", "worst"]
Weights = NDArray[np.float64] | None
SHOWN = 5  # rows named in an error
DROP, WORST = "missing='drop' (--missing drop)", "missing='worst' (--missing worst)"


class MissingRows(NamedTuple):
    """Which rows are the first without a label, as an error names them; asked only for an error."""

    gold: Callable[[], Sequence[str]]
    predicted: Callable[[], Sequence[str]]


def count_columns(
    scale: Scale, gold: Any, predicted: Any, weights: Any, groups: Groups | None = None
) -> tuple[Sums, MissingRows]:
    """Count two columns of labels, within groups where there are any."""
    rows, columns = encode(scale, gold, "gold"), encode(scale, predicted, "predicted")
    _same_length(len(rows), len(columns), "gold labels", "predictions")
    if groups is not None:
        _same_length(len(rows), len(groups.codes), "labels", "groups")
    counted = rows if groups is None else Within(groups.codes, len(groups.values), rows)
    weighing = _weights(weights, len(rows))
    try:
        raw = _sums(counted, columns, weighing)
        raw = Sums(*(x.reshape(-1, len(rows.levels), len(columns.levels)) for x in raw))
        strange = any(
            np.compress(codes.levels == OFF, raw.items, axis=axis).any()
            for axis, codes in ((1, rows), (2, columns))
        )
    except Strange:
        strange = True
    if strange:
        _refuse(scale, rows, "gold", weighing)
        _refuse(scale, columns, "predicted", weighing)
    if groups is None:
        raw = Sums(*(x[0] for x in raw))
    return _placed(scale, raw, rows, columns), _missing_rows(scale, rows, columns, weighing)


def settle(scale: Scale, sums: Sums, rows: MissingRows, missing: Missing) -> tuple[Sums, int]:
    """Return sums [..., K, K + 1] and how many items were dropped."""
    if missing not in get_args(Missing):
        raise BadOption(f"missing={missing!r} is not one of {', '.join(get_args(Missing))}.")
    size, n = len(scale), int(sums.items.sum())
    no_gold = int(sums.items[..., size, :].sum())
    no_answer = int(sums.items[..., :size, size].sum())
    if no_gold and missing != "drop":
        raise _absent(no_gold, n, "gold labels", rows.gold(), f"Leave them out with {DROP}.")
    if no_answer and missing == "error":
        way = f"Leave them out with {DROP}, or count them as wrong with {WORST}."
        raise _absent(no_answer, n, "predictions", rows.predicted(), way)
    kept = Sums(*(np.array(x[..., :size, :]) for x in sums))
    if missing == "drop":
        for array in kept:
            array[..., size] = 0
    if not kept.items.any():
        reason = f"all {n} have a missing label" if n else "the columns are empty"
        raise NoItems(f"There are no items to evaluate: {reason}.")
    return kept, no_gold + no_answer if missing == "drop" else 0


def _absent(count: int, n: int, what: str, rows: Sequence[str], way: str) -> MissingLabels:
    shown = ", ".join(rows) + (", …" if count > len(rows) else "")
    return MissingLabels(f"{count} of {n} {what} are missing ({shown}). {way}")


def _same_length(first: int, second: int, these: str, those: str) -> None:
    if first != second:
        raise UnequalLengths(f"{first} {these} and {second} {those}: each item needs both.")


def _weights(weights: Any, n: int) -> Weights:
    if weights is None:
        return None
    try:
        values = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise BadWeights("Weights must be numbers of at least 0, one for each item.") from None
    _same_length(n, values.size if values.ndim == 1 else 0, "labels", "weights")
    return values


def _sums(rows: Codes, columns: Codes, weights: Weights) -> Sums:
    if weights is not None:
        return count_weighted(rows, columns, weights)
    counts = count(rows, columns)
    return Sums(counts, counts.astype(float), counts.astype(float))


def _placed(scale: Scale, raw: Sums, rows: Codes, columns: Codes) -> Sums:
    """Move sums from the columns' own codes to the positions of the scale."""
    to_rows, to_columns = (_one_hot(codes.levels, len(scale) + 1) for codes in (rows, columns))
    return Sums(*(to_rows.T @ part @ to_columns for part in raw))


def _one_hot(levels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return (levels[:, None] == np.arange(size)).astype(np.int64)


# --- where something is wrong --------------------------------------------------------------------


def _refuse(scale: Scale, codes: Codes, name: str, weights: Weights) -> None:
    """Raise the error for the first label that is not on the scale, if there is one."""
    for row in _rows(codes, weights, codes.off):
        raise off_scale(scale, codes.label(row), f"row {row + 1} of {name}")


def _missing_rows(scale: Scale, rows: Codes, columns: Codes, weights: Weights) -> MissingRows:
    def find(codes: Codes) -> Callable[[], list[str]]:
        def missing(start: int, stop: int) -> NDArray[np.bool_]:
            return np.asarray(codes.levels[codes.chunk(start, stop)] == len(scale))

        return lambda: [f"row {row + 1}" for row in islice(_rows(codes, weights, missing), SHOWN)]

    return MissingRows(find(rows), find(columns))


def _rows(
    codes: Codes, weights: Weights, wanted: Callable[[int, int], NDArray[np.bool_]]
) -> Iterator[int]:
    """Return the rows that fit; an item of weight 0 does not exist."""
    for start in range(0, len(codes), CHUNK):
        stop = min(start + CHUNK, len(codes))
        fits = wanted(start, stop)
        if weights is not None:
            fits &= weights[start:stop] > 0
        yield from (start + int(row) for row in np.flatnonzero(fits))
