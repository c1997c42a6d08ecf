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
from ordinate.scale.encoding import CHUNK, MAPPED, OFF, Codes, Groups, Strange, encode, off_scale
from ordinate.summaries.counting import Sums, Within, check_size, count, count_weighted

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
    same_length(len(rows), len(columns), "gold labels", "predictions")
    if groups is not None:
        same_length(len(rows), len(groups.codes), "labels", "groups")
        check_size(len(groups.values), len(scale))
    if not len(rows):
        raise NoItems("There are no items to evaluate: the columns are empty.")
    weighing = checked_weights(weights, len(rows))
    try:
        raw = _sums(rows, columns, weighing, groups)
    except Strange:
        rows.widen()
        columns.widen()
        raw = _sums(rows, columns, weighing, groups)
    raw = raw.map(lambda x: x.reshape(-1, len(rows.levels), len(columns.levels)))
    for axis, codes, name in ((1, rows, "gold"), (2, columns, "predicted")):
        if np.compress(codes.levels == OFF, raw.items, axis=axis).any():
            row = next(_rows(codes, OFF, weighing))
            raise off_scale(scale, codes.label(row), f"row {row + 1} of {name}")
    if groups is None:
        raw = raw.map(lambda x: x[0])
    return _placed(scale, raw, rows, columns), _missing_rows(scale, rows, columns, weighing)


def positions_of(
    scale: Scale, column: Any, name: str, weights: Weights = None, *, way: str = MAPPED
) -> NDArray[Any]:
    """Return the position of each item on the scale; one past the last where it is missing.

    `way` says what to do about a label off the scale.
    """
    codes = encode(scale, column, name)
    try:
        found = _positions(codes)
    except Strange:
        codes.widen()
        found = _positions(codes)
    off = found == OFF
    if weights is not None and len(weights) == len(off):
        off &= weights > 0
    if off.any():
        row = int(np.argmax(off))
        raise off_scale(scale, codes.label(row), f"row {row + 1} of {name}", way)
    return found


def _positions(codes: Codes) -> NDArray[Any]:
    starts = range(0, len(codes), CHUNK)
    parts = [codes.levels[codes.chunk(s, min(s + CHUNK, len(codes)))] for s in starts]
    return np.concatenate(parts).astype(np.int16) if parts else np.empty(0, np.int16)


def settle(
    scale: Scale, sums: Sums, rows: MissingRows, missing: Missing
) -> tuple[Sums, NDArray[np.int64]]:
    """Return sums [..., K, K + 1] and how many items were dropped."""
    if missing not in get_args(Missing):
        raise BadOption(f"missing={missing!r} is not one of {', '.join(get_args(Missing))}.")
    size, n = len(scale), int(sums.items.sum())
    without_gold = sums.items[..., size, :].sum(axis=-1)
    without_answer = sums.items[..., :size, size].sum(axis=-1)
    no_gold, no_answer = int(without_gold.sum()), int(without_answer.sum())
    if no_gold and missing != "drop":
        raise absent(no_gold, n, "gold labels", rows.gold(), f"Leave them out with {DROP}.")
    if no_answer and missing == "error":
        way = f"Leave them out with {DROP}, or count them as wrong with {WORST}."
        raise absent(no_answer, n, "predictions", rows.predicted(), way)
    answered = np.arange(size + 1) < size if missing == "drop" else np.ones(size + 1, bool)
    kept = sums.map(lambda x: x[..., :size, :] * answered)
    if not kept.items.any():
        reason = f"all {n} have a missing label" if n else "all weights are 0"
        raise NoItems(f"There are no items to evaluate: {reason}.")
    dropped = without_gold + without_answer
    return kept, dropped if missing == "drop" else np.zeros_like(dropped)


def absent(count: int, n: int, what: str, rows: Sequence[str], way: str) -> MissingLabels:
    """Return the error for missing labels: how many, where, and what to do."""
    shown = ", ".join(rows) + (", …" if count > len(rows) else "")
    return MissingLabels(f"{count} of {n} {what} are missing ({shown}). {way}")


def no_group(count: int, n: int, column: str, places: Sequence[str]) -> MissingLabels:
    """Return the error for items of which nobody knows to which group they belong."""
    shown = ", ".join(places) + (", …" if count > len(places) else "")
    return MissingLabels(
        f"{count} of {n} items have no group ({shown} of {column}). Leave them out with {DROP}."
    )


def same_length(first: int, second: int, these: str, those: str) -> None:
    """Refuse columns of different lengths."""
    if first != second:
        raise UnequalLengths(f"{first} {these} and {second} {those}: each item needs both.")


def checked_weights(weights: Any, n: int | None = None) -> Weights:
    """Return weights as numbers, one for each of n items; None stays None."""
    if weights is None:
        return None
    try:
        given = np.asarray(weights)
        values = given.astype(float, copy=False) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        values = None
    if values is None:
        raise BadWeights("Weights must be numbers of at least 0, one for each item.")
    if n is not None:
        same_length(n, values.size if values.ndim == 1 else 0, "labels", "weights")
    if values.ndim != 1:
        raise BadWeights("Weights must be one column of numbers.")
    return values


def _sums(rows: Codes, columns: Codes, weights: Weights, groups: Groups | None) -> Sums:
    if groups is not None:
        rows = Within(groups.codes, len(groups.values), rows)
    if weights is not None:
        return count_weighted(rows, columns, weights)
    counts = count(rows, columns)
    return Sums(counts, counts.astype(float), counts.astype(float))


def _placed(scale: Scale, raw: Sums, rows: Codes, columns: Codes) -> Sums:
    """Move sums from the columns' own codes to the positions of the scale."""
    to_rows, to_columns = (_one_hot(codes.levels, len(scale) + 1) for codes in (rows, columns))
    return raw.map(lambda x: to_rows.T @ x @ to_columns)


def _one_hot(levels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return (levels[:, None] == np.arange(size)).astype(np.int64)


def _missing_rows(scale: Scale, rows: Codes, columns: Codes, weights: Weights) -> MissingRows:
    def find(codes: Codes) -> Callable[[], list[str]]:
        found = _rows(codes, len(scale), weights)
        return lambda: [f"row {row + 1}" for row in islice(found, SHOWN)]

    return MissingRows(find(rows), find(columns))


def _rows(codes: Codes, level: int, weights: Weights) -> Iterator[int]:
    """Return the rows at a level, or missing, or off; an item of weight 0 does not exist."""
    for start in range(0, len(codes), CHUNK):
        stop = min(start + CHUNK, len(codes))
        fits = codes.levels[codes.chunk(start, stop)] == level
        if weights is not None:
            fits &= weights[start:stop] > 0
        yield from (start + int(row) for row in np.flatnonzero(fits))
