"""Tabulation: columns of labels to sums over the cells of a scale, columns of numbers to arrays.

Sums have the shape [..., K + 1, K + 1] here: the last row holds items without a gold label, the
last column items without a prediction.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadInput,
    BadOption,
    BadValues,
    BadWeights,
    MissingLabels,
    NoItems,
    OrdinateError,
    UnequalLengths,
    shorten,
    word_advice,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import (
    CHUNK,
    OFF_SCALE_CODE,
    CodeOutOfRange,
    Groups,
    LabelCodes,
    encode_labels,
)
from ordinate.scale.label_maps import make_off_scale_error
from ordinate.scale.labels import is_hashable, is_missing
from ordinate.summaries.counting import (
    CellSums,
    GroupedCodes,
    check_group_count,
    count_pairs,
    count_weighted,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
MissingPolicy = Literal["error", "drop", "worst"]
RowPolicy = Literal["error", "drop"]  # where no prediction can be counted as the worst
Weights = Floats | None
ROWS_SHOWN = 5  # rows named in an error


class MissingRows(NamedTuple):
    """Which rows are the first without a label, as an error names them; asked only for an error."""

    gold: Callable[[], Sequence[str]]
    predicted: Callable[[], Sequence[str]]


def count_columns(
    scale: Scale, gold: Any, predicted: Any, weights: Any, groups: Groups | None = None
) -> tuple[CellSums, MissingRows]:
    """Count two columns of labels, within groups where there are any."""
    rows, columns = encode_labels(scale, gold, "gold"), encode_labels(scale, predicted, "predicted")
    check_same_length(len(rows), len(columns), "gold labels", "predictions")
    if groups is not None:
        check_same_length(len(rows), len(groups.codes), "labels", "groups")
        check_group_count(len(groups.values), len(scale))
    if not len(rows):
        raise NoItems("There are no items to evaluate: the columns are empty.")
    weighing = convert_weights(weights, len(rows))
    try:
        raw = _count_cells(rows, columns, weighing, groups)
    except CodeOutOfRange:
        rows.widen()
        columns.widen()
        raw = _count_cells(rows, columns, weighing, groups)
    raw = raw.map(lambda x: x.reshape(-1, len(rows.levels), len(columns.levels)))
    for axis, codes in ((1, rows), (2, columns)):
        if np.compress(codes.levels == OFF_SCALE_CODE, raw.items, axis=axis).any():
            both = {"gold": rows, "predicted": columns}
            raise _list_off_scale_labels(scale, both, weighing)
    if groups is None:
        raw = raw.map(lambda x: x[0])
    return _move_to_positions(scale, raw, rows, columns), _locate_missing_rows(
        scale, rows, columns, weighing
    )


def encode_positions(
    scale: Scale,
    column: Any,
    name: str,
    weights: Weights = None,
    *,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> NDArray[Any]:
    """Return the position of each item on the scale; one past the last where it is missing.

    Where a label is off the scale, the error lists those of the columns `beside` this one, too.
    """
    codes = encode_labels(scale, column, name)
    try:
        positions = _read_positions(codes)
    except CodeOutOfRange:
        codes.widen()
        positions = _read_positions(codes)
    off = positions == OFF_SCALE_CODE
    if weights is not None and len(weights) == len(off):
        off &= weights > 0
    if off.any():
        others = {x: encode_labels(scale, y, x) for x, y in beside.items() if x != name}
        raise _list_off_scale_labels(scale, {name: codes, **others}, weights)
    return positions


def _list_off_scale_labels(
    scale: Scale, columns: Mapping[str, LabelCodes], weights: Weights
) -> OrdinateError:
    """Return the error for all labels of some columns that are not on the scale."""
    counts: Counter[Any] = Counter()
    places: list[tuple[Any, str]] = []
    for name, codes in columns.items():
        codes.widen()
        for row in _find_rows(codes, OFF_SCALE_CODE, weights):
            label = codes.label(row)
            counts[label if is_hashable(label) else shorten(label)] += 1
            places = places or [(label, f"row {row + 1} of {name}")]
    return make_off_scale_error(scale, counts, *places[0])


def _read_positions(codes: LabelCodes) -> NDArray[Any]:
    starts = range(0, len(codes), CHUNK)
    parts = [codes.levels[codes.chunk(s, min(s + CHUNK, len(codes)))] for s in starts]
    return np.concatenate(parts).astype(np.int16) if parts else np.empty(0, np.int16)


def check_missing_policy(
    missing: str, known: Any = MissingPolicy, *, argument: str = "missing"
) -> None:
    """Refuse a policy that does not exist."""
    if missing not in get_args(known):
        raise BadOption(f"{argument}={missing!r} is not one of {', '.join(get_args(known))}.")


def apply_missing_policy(
    scale: Scale, sums: CellSums, rows: MissingRows, missing: MissingPolicy
) -> tuple[CellSums, NDArray[np.int64]]:
    """Return sums [..., K, K + 1] and how many items were dropped."""
    check_missing_policy(missing)
    size, n = len(scale), int(sums.items.sum())
    without_gold = sums.items[..., size, :].sum(axis=-1)
    without_prediction = sums.items[..., :size, size].sum(axis=-1)
    no_gold, no_prediction = int(without_gold.sum()), int(without_prediction.sum())
    if no_gold and missing != "drop":
        raise make_missing_labels_error(no_gold, n, "gold labels", rows.gold())
    if no_prediction and missing == "error":
        way = suggest_missing_policy(worst=True)
        raise make_missing_labels_error(no_prediction, n, "predictions", rows.predicted(), way)
    present = np.arange(size + 1) < size if missing == "drop" else np.ones(size + 1, bool)
    cells = sums.map(lambda x: x[..., :size, :] * present)
    if not cells.items.any():
        reason = f"all {n} have a missing label" if n else "all weights are 0"
        raise NoItems(f"There are no items to evaluate: {reason}.")
    dropped = without_gold + without_prediction
    return cells, dropped if missing == "drop" else np.zeros_like(dropped)


def make_missing_labels_error(
    count: int,
    n: int,
    column: str,
    rows: Sequence[str],
    way: str | None = None,
) -> MissingLabels:
    """Return the error for missing labels: how many, where, and what to do."""
    shown = f" ({list_places(rows, count)})" if rows else ""
    way = suggest_missing_policy() if way is None else way
    return MissingLabels(f"{count} of {n} {column} are missing{shown}. {way}")


def suggest_missing_policy(leave: str = "Leave them out", *, worst: bool = False) -> str:
    """Return what to do about missing labels, by the policies that the caller has."""
    way = word_advice(leave + " with {missing}", "Take these items out first", missing="drop")
    other = word_advice(", or count them as wrong with {missing}", missing="worst")
    return f"{way}{other if worst else ''}."


def list_places(places: Sequence[str], count: int) -> str:
    """Return the first of some places."""
    return ", ".join(places) + (", …" if count > len(places) else "")


def make_missing_groups_error(
    count: int, n: int, column: str, places: Sequence[str]
) -> MissingLabels:
    """Return the error for items whose group is unknown."""
    shown = f"{list_places(places, count)} of {column}" if places else column
    return MissingLabels(
        f"{count} of {n} items have no group ({shown}). {suggest_missing_policy()}"
    )


def check_same_length(first: int, second: int, these: str, those: str) -> None:
    """Refuse columns of different lengths."""
    if first != second:
        raise UnequalLengths(f"{first} {these} and {second} {those}: each item needs both.")


def convert_weights(weights: Any, n: int | None = None) -> Weights:
    """Return weights as numbers, one for each of n items; None stays None."""
    if weights is None:
        return None
    try:
        given = convert_to_array(weights)
        values = given.astype(float, copy=False) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        values = None
    if values is None:
        raise BadWeights("Weights must be numbers of at least 0, one for each item.")
    if n is not None:
        check_same_length(n, values.size if values.ndim == 1 else 0, "labels", "weights")
    if values.ndim != 1:
        raise BadWeights("Weights must be one column of numbers.")
    return values


def _count_cells(
    rows: LabelCodes, columns: LabelCodes, weights: Weights, groups: Groups | None
) -> CellSums:
    if groups is not None:
        rows = GroupedCodes(groups.codes, len(groups.values), rows)
    if weights is not None:
        return count_weighted(rows, columns, weights)
    counts = count_pairs(rows, columns)
    return CellSums(counts, counts.astype(float), counts.astype(float))


def _move_to_positions(
    scale: Scale, raw: CellSums, rows: LabelCodes, columns: LabelCodes
) -> CellSums:
    """Move sums from the columns' own codes to the positions of the scale."""
    to_rows, to_columns = (
        _encode_one_hot(codes.levels, len(scale) + 1) for codes in (rows, columns)
    )
    return raw.map(lambda x: to_rows.T @ x @ to_columns)


def _encode_one_hot(levels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return (levels[:, None] == np.arange(size)).astype(np.int64)


def _locate_missing_rows(
    scale: Scale, rows: LabelCodes, columns: LabelCodes, weights: Weights
) -> MissingRows:
    def find(codes: LabelCodes) -> Callable[[], list[str]]:
        missing = _find_rows(codes, len(scale), weights)
        return lambda: [f"row {row + 1}" for row in islice(missing, ROWS_SHOWN)]

    return MissingRows(find(rows), find(columns))


def _find_rows(codes: LabelCodes, level: int, weights: Weights) -> Iterator[int]:
    """Return the rows at a level, or missing, or off; an item of weight 0 does not exist."""
    for start in range(0, len(codes), CHUNK):
        stop = min(start + CHUNK, len(codes))
        fits = codes.levels[codes.chunk(start, stop)] == level
        if weights is not None:
            fits &= weights[start:stop] > 0
        yield from (start + int(row) for row in np.flatnonzero(fits))


# --- numbers -------------------------------------------------------------------------------------


def convert_to_numbers(column: Any, name: str) -> Floats:
    """Return one column of numbers, not yet checked; what is missing is nan."""
    try:
        given = convert_to_array(column)
        if given.ndim == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if given.ndim == 1 and given.dtype.kind == "O":
            given = np.array(
                [_convert_number(x, row, name) for row, x in enumerate(given, 1)], float
            )
        values = given.astype(float, copy=False) if given.dtype.kind in "biuf" else None
    except (TypeError, ValueError) as problem:
        if isinstance(problem, OrdinateError):
            raise
        values = None
    if values is None:
        raise BadValues(f"The {name} must be numbers.")
    if values.ndim != 1:
        raise BadInput(f"The {name} must be one column of numbers, not {values.ndim} axes.")
    return values


def find_missing_numbers(column: Any) -> NDArray[np.bool]:
    """Tell which cells of a column of numbers are missing: nulls, and NaN in those of pandas.

    >>> find_missing_numbers([1.0, None]).tolist(), find_missing_numbers([float("nan")]).tolist()
    ([False, True], [False])
    """
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.getmaskarray(column).reshape(-1)
    for name in ("isna", "is_null"):
        if hasattr(column, name):
            return np.asarray(getattr(column, name)(), bool).reshape(-1)
    cells = np.asarray(column).reshape(-1)
    if cells.dtype.kind != "O":
        return np.zeros(len(cells), bool)
    return np.array([is_missing(x) and not isinstance(x, (float, str)) for x in cells], bool)


def convert_to_array(column: Any) -> Array:
    """Return a column as its library gives it; what a mask hides is missing."""
    if isinstance(column, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(column), np.nan, column.data.astype(float))
    column = narrow_integers(column)
    if hasattr(column, "__array__"):  # Arrow copies here where it has to
        return np.asarray(column)
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def narrow_integers(column: Any) -> Any:
    """Return integers of 128 bits, which NumPy does not have, as floating point numbers."""
    wide = str(getattr(column, "dtype", "")) in {"Int128", "UInt128"}
    return column.cast(float) if wide else column


def _convert_number(value: Any, row: int, name: str) -> float:
    """Return a value of mixed ones; a string is no number, even if it looks like one."""
    if isinstance(value, (Real, Decimal, np.bool_)):
        try:
            return float(value)
        except (OverflowError, ValueError):  # an integer of 400 digits, a signalling nan
            return math.inf
    if is_missing(value):
        return math.nan
    raise BadValues(f"The {name} must be numbers; row {row} is {shorten(value)}.")


def match_weights(weights: Any, n: int) -> Floats | None:
    """Return the weights of n items as numbers; None stays None."""
    values = convert_weights(weights)
    if values is not None:
        check_same_length(n, len(values), "targets", "weights")
    return values
