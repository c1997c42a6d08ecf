"""PredictionIntervals: sums over prediction intervals and the targets that they should hold."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadValues, NoItems
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.base import SAME, BatchSummary, Dropped, Every, SignedSum, Sum
from ordinate.summaries.counting import check_weights
from ordinate.summaries.regression import ROWS_PER_BLOCK
from ordinate.summaries.tabulation import (
    Weights,
    check_same_length,
    convert_to_numbers,
    convert_weights,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
LOWER, UPPER = "lower bounds", "upper bounds"
SCORE_NAMES = ("covered", "width", "below", "above", "error")


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemSums(BatchSummary):
    """Sums of a few scores x of each item, from which means and their standard errors follow.

    With z = (1, x) they are Σw z zᵀ and Σw² z zᵀ: the first row of the one holds Σw and Σw x, that
    of the other Σw² and Σw² x. Leading axes hold many summaries at once.
    """

    items: Sum  # [...]
    plain: SignedSum  # [..., 1 + F, 1 + F]: Σw z zᵀ
    squared: SignedSum  # [..., 1 + F, 1 + F]: Σw² z zᵀ
    counted: Every = True  # whether every weight is an integer
    dropped: Dropped = 0
    has_unanswered = False
    names: ClassVar[tuple[str, ...]] = ()  # of the scores

    def _get_cell_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the axes of the scores."""
        return dict.fromkeys(("plain", "squared"), (1 + len(self.names),) * 2)

    @property
    def has_integer_weights(self) -> bool:
        """Whether the weights are counts."""
        return self.counted

    @property
    def total(self) -> Array:
        """Σw."""
        return self.plain[..., 0, 0]

    @property
    def means(self) -> Array:
        """The mean of each score [..., F], nan where there are no items."""
        weight = self.total[..., None]
        filled = np.full((*self.plain.shape[:-2], len(self.names)), np.nan)
        return np.divide(self.plain[..., 0, 1:], weight, out=filled, where=weight > 0)

    def mean(self, name: str) -> Array:
        """Return the mean of a score, nan where there are no items."""
        return self.means[..., self.names.index(name)][()]

    def at(self, means: Array) -> Self:
        """Return a batch in which the scores have these means [..., F]; the rest is the same."""
        z = np.concatenate([np.ones((*means.shape[:-1], 1)), means], axis=-1)
        return replace(
            self.broadcast(z.shape[:-1]), plain=self.total * z[..., :, None] * z[..., None, :]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionIntervals(ItemSums):
    """Sums over items of whether an interval covers the target, its width and by how much it fails.

    `below` is how far a target lies below the lower bound, `above` how far above the upper one, 0
    where it does not. `error` is |target - prediction|, where there are `points`, 0 otherwise. An
    interval without an end counts for coverage, and is counted in `endless`.

    >>> morning = PredictionIntervals.of([1.0, 2.0, 4.0], [0.0, 1.0, 4.5], [2.0, 3.0, 6.0])
    >>> evening = PredictionIntervals.of([3.0], [1.0], [4.0])
    >>> (morning + evening).mean("covered"), (morning + evening).mean("width")
    (np.float64(0.75), np.float64(2.125))
    """

    endless: Sum  # [...]: items with an infinite bound; their width is not in the sums
    points: Annotated[bool, SAME] = False  # whether there are predictions, too
    names = SCORE_NAMES

    @classmethod
    def of(
        cls,
        target: Any,
        lower: Any,
        upper: Any,
        weights: Any = None,
        groups: Any = None,
        *,
        predicted: Any = None,
    ) -> "PredictionIntervals":
        """Sum up columns of targets and bounds; with groups, a batch of summaries, one for each.

        Bounds may be infinite: -inf says that there is no lower bound, inf no upper one.
        """
        y, low, high = (
            convert_to_numbers(column, name)
            for column, name in ((target, "targets"), (lower, LOWER), (upper, UPPER))
        )
        points = None if predicted is None else convert_to_numbers(predicted, "predictions")
        for column, name in ((low, LOWER), (high, UPPER), (points, "predictions")):
            if column is not None:
                check_same_length(len(y), len(column), "targets", name)
        tally = ScoreTally(len(SCORE_NAMES), encode_groups(groups, len(y)))
        endless = np.zeros(len(tally.items))
        for piece in split_rows(len(y), convert_weights(weights, len(y)), ROWS_PER_BLOCK):
            rows = piece.rows
            middle = None if points is None else points[rows]
            x, open_ = _score_items(y[rows], low[rows], high[rows], middle, rows)
            tally.add(x, piece)
            np.add.at(endless, tally.places(rows[open_]), 1.0)
        return cls(
            **tally.sums(len(y)),
            endless=tally.squeeze_groups(endless),
            points=predicted is not None,
        )

    def scaled(self, by: float) -> "PredictionIntervals":
        """Return the summary of values that are all multiplied by a number above 0.

        >>> summary = PredictionIntervals.of([1.0, 2.0, 4.0], [0.0, 1.0, 4.5], [2.0, 3.0, 6.0])
        >>> summary.scaled(10.0).mean("width"), summary.scaled(10.0).mean("covered")
        (np.float64(18.333333333333332), np.float64(0.6666666666666666))
        """
        size = np.array([1.0, *(1.0 if name == "covered" else by for name in self.names)])
        both = size[:, None] * size
        return replace(self, plain=self.plain * both, squared=self.squared * both)


def check_items(
    y: Floats, lower: Floats, upper: Floats, points: Floats | None, rows: Array
) -> None:
    """Refuse targets, bounds and predictions that are no numbers, by their rows, from 0."""
    require_valid(
        np.isfinite(y), rows, y, "The target of row {row} is {value}, not a finite number."
    )
    for side, none, column in (("lower", -np.inf, lower), ("upper", np.inf, upper)):
        of_row = f"The {side} bound of row {{row}} is {{value}}"
        fine = np.isfinite(column) | (column == none)
        require_valid(fine, rows, column, f"{of_row}: it must be a number, or {none} for none.")
    inverted = "The lower bound of row {row}, {value}, is above its upper bound, {other}."
    require_valid(
        lower <= upper, rows, lower, inverted + " Swap the two, or leave the item out.", upper
    )
    if points is not None:
        finite = "The prediction of row {row} is {value}, not a finite number."
        require_valid(np.isfinite(points), rows, points, finite)


def _score_items(
    y: Floats, lower: Floats, upper: Floats, points: Floats | None, rows: Array
) -> tuple[Floats, NDArray[np.bool]]:
    """Return the scores [5, n] of items, and which of them have an infinite bound."""
    check_items(y, lower, upper, points, rows)
    open_ = np.isinf(lower) | np.isinf(upper)
    x = np.zeros((len(SCORE_NAMES), len(y)))
    with np.errstate(over="ignore"):
        x[0] = (lower <= y) & (y <= upper)
        x[1, ~open_] = upper[~open_] - lower[~open_]
        x[2], x[3] = np.maximum(lower - y, 0.0), np.maximum(y - upper, 0.0)
        if points is not None:
            x[4] = np.abs(y - points)
    return x, open_


def require_valid(
    fine: NDArray[np.bool], rows: Array, column: Floats, message: str, other: Floats | None = None
) -> None:
    """Refuse a column with a value that is not fine; the message names its row."""
    if not fine.all():
        place = int(np.argmin(fine))
        also = None if other is None else other[place]
        raise BadValues(message.format(row=rows[place] + 1, value=column[place], other=also))


@dataclass(frozen=True)
class RowBlock:
    """Some rows that are looked at together, those of weight 0 left out."""

    rows: NDArray[np.intp]
    weight: Floats | None
    counted: bool


def split_rows(n: int, weights: Weights, size: int) -> Iterator[RowBlock]:
    """Cut n rows into pieces; an item of weight 0 does not exist."""
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        if weights is None:
            yield RowBlock(rows, None, counted=True)
            continue
        weight = check_weights(weights[start : start + size], start)
        there = weight > 0
        if there.any():
            counted = bool((weight == np.floor(weight)).all())
            yield RowBlock(rows[there], weight[there], counted)


class ScoreTally:
    """Adds the scores of items up, piece by piece, within groups where there are any."""

    def __init__(self, scores: int, groups: Groups | None) -> None:
        many = 1 if groups is None else len(groups.values)
        self.groups = groups
        self.items = np.zeros(many, np.int64)
        self.once, self.twice = np.zeros((2, many, 1 + scores, 1 + scores))
        self.counted = True

    def add(self, x: Floats, piece: RowBlock) -> None:
        """Add the scores [F, n] of a piece."""
        z = np.vstack([np.ones(x.shape[1]), x])
        weighted = z if piece.weight is None else z * piece.weight
        self.counted &= piece.counted
        with np.errstate(over="ignore", invalid="ignore"):
            if self.groups is None:
                self.items += len(piece.rows)
                self.once += weighted @ z.T
                self.twice += weighted @ weighted.T
                return
            codes = self.groups.codes[piece.rows]
            order = np.argsort(codes, kind="stable")
            present, starts = np.unique(codes[order], return_index=True)
            self.items[present] += np.diff([*starts, len(codes)])
            z, weighted = z[:, order], weighted[:, order]
            self.once[present] += _sum_products(weighted, z, starts)
            self.twice[present] += _sum_products(weighted, weighted, starts)

    def sums(self, n: int) -> dict[str, Any]:
        """Return the sums, as the fields of a summary."""
        if not self.items.any():
            reason = "all weights are 0" if n else "the columns are empty"
            raise NoItems(f"There are no items to evaluate: {reason}.")
        if not np.isfinite(self.twice.sum() + self.once.sum()):
            raise BadValues("The values are too large to be squared. Give them in another unit.")
        arrays = {"items": self.items, "plain": self.once, "squared": self.twice}
        sums = {name: self.squeeze_groups(array) for name, array in arrays.items()}
        return {**sums, "counted": self.counted}

    def places(self, rows: Array) -> Array:
        """Return the group of each of these rows, 0 where there are no groups."""
        return np.zeros(len(rows), np.intp) if self.groups is None else self.groups.codes[rows]

    def squeeze_groups(self, array: Array) -> Array:
        """Return sums by group, or the one sum where there are no groups."""
        return np.asarray(array[0]) if self.groups is None else array


def _sum_products(first: Floats, second: Floats, starts: Array) -> Floats:
    """Return the sums of products of rows within runs of columns: [runs, 1 + F, 1 + F]."""
    pairs = first[:, None] * second[None]
    return np.moveaxis(np.add.reduceat(pairs, starts, axis=-1), -1, 0)


def encode_groups(groups: Any, n: int) -> Groups | None:
    """Return which group each of n items is in, from a column or what was made of one."""
    if groups is None:
        return None
    encoded = groups if isinstance(groups, Groups) else factorize_column(groups)
    check_same_length(n, len(encoded.codes), "targets", "groups")
    return encoded
