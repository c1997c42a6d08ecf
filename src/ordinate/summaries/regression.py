"""Moments: sums over targets and predictions of a regression."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, NoItems
from ordinate.scale.encoding import Groups
from ordinate.summaries.base import (
    SAME,
    SUM,
    BatchSummary,
    Dropped,
    Every,
    Maximum,
    Sum,
    load_counts,
    load_numbers,
)
from ordinate.summaries.counting import check_weights
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers, match_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]
HIGHEST_ORDER = 4  # of the highest moments
MOMENT_ORDERS = (2, HIGHEST_ORDER)
MOMENT_POWERS = [(a, b) for a in range(HIGHEST_ORDER + 1) for b in range(HIGHEST_ORDER + 1 - a)]
ROWS_PER_BLOCK = 40_000  # which are looked at together: they fit into the cache
ROWS_PER_PRODUCT = 7_000  # of matrices, for which BLAS starts no threads that wait for each other
ROWS_PER_SUM = 1_000_000  # rows whose sums are taken about the same point
SAMPLE_ROWS = 2_000  # of them, whose mean it is, about
SUMS_PER_BLOCK = 1 << 14  # central sums that are moved together
NEAR_DEVIATIONS = {
    2: 10.0,
    HIGHEST_ORDER: 1.0,
}  # deviations: a point this near to the mean costs no digits that count
LARGEST_VALUE = 1e70  # values this large, or this small beside 1, cannot be squared twice
TRAIN_MEAN = "train_mean"  # the constant prediction that training data suggest
TARGET_MEAN = "mean"  # the mean of the targets themselves
BIN_PRECISION = 0.005  # relative error of percentiles from the histogram
BIN_GROWTH = (1.0 + BIN_PRECISION) / (1.0 - BIN_PRECISION)
ZERO_BIN = -(2**31) + 1  # the bin of errors that are exactly 0
UNIT_HINT = "Give them in another unit."


_POWERS = np.arange(HIGHEST_ORDER + 1)
_POWER_DIFFERENCES = np.maximum(_POWERS[:, None] - _POWERS, 0)
_BINOMIALS = np.array(
    [[math.comb(a, k) for k in _POWERS.tolist()] for a in _POWERS.tolist()], float
)
_KNOWN_POWERS = _POWERS[:, None] + _POWERS <= HIGHEST_ORDER


def _build_shift_matrix(by: Array) -> Array:
    """Return the matrix that turns sums of powers into those of values moved by so much."""
    by = np.asarray(by)
    powers = np.stack([np.ones_like(by), by, by**2, by**3, by**4], axis=-1)
    return _BINOMIALS * powers[..., _POWER_DIFFERENCES]


class CentralSums(NamedTuple):
    """Weighted central sums [..., 5, 5]: Σ w (y - ȳ)^a (e - ē)^b for a + b up to 4.

    y is the target, e = prediction - target. The sum of a = b = 0 is the weight.
    """

    y: Array  # [...]: the mean
    e: Array
    sums: Array

    @property
    def weight(self) -> Array:
        """Σw."""
        return self.sums[..., 0, 0]

    def recenter_sums(self, y: Array, e: Array) -> "CentralSums":
        """Return the same sums about other points."""
        left, right = (
            _build_shift_matrix(self.y - y),
            _build_shift_matrix(self.e - e).swapaxes(-1, -2),
        )
        with np.errstate(over="ignore", invalid="ignore"):  # in orders that nobody keeps
            half = np.where(_KNOWN_POWERS, left @ self.sums, 0.0)
            return CentralSums(y, e, np.where(_KNOWN_POWERS, half @ right, 0.0))

    def __add__(self, other: "CentralSums") -> "CentralSums":  # type: ignore[override] # sums, not a longer tuple
        mine, theirs = self.weight, other.weight
        total = np.where(mine + theirs > 0, mine + theirs, 1.0)
        y = self.y + (other.y - self.y) * theirs / total
        e = self.e + (other.e - self.e) * theirs / total
        first, second = self.recenter_sums(y, e), other.recenter_sums(y, e)
        return CentralSums(y, e, first.sums + second.sums)

    def compute_sums(self, index: Array, count: int) -> "CentralSums":
        """Return the sums of the items of those with an index, about their means."""
        weight = np.bincount(index, self.weight, count)
        first = np.zeros(count, int)  # of those with an index
        first[index[::-1]] = np.arange(len(index))[::-1]

        def find_mean(points: Array, gaps: Array) -> Array:
            start = np.where(weight > 0, points[first], 0.0) if len(points) else weight
            gaps = gaps + self.weight * (points - start[index])
            return start + np.bincount(index, gaps, count) / np.where(weight > 0, weight, 1.0)

        y, e = find_mean(self.y, self.sums[:, 1, 0]), find_mean(self.e, self.sums[:, 0, 1])
        sums = np.zeros((count, *self.sums.shape[1:]))
        for start in range(0, len(index), SUMS_PER_BLOCK):
            block = slice(start, start + SUMS_PER_BLOCK)
            there, near = index[block], CentralSums(*(part[block] for part in self))
            np.add.at(sums, there, near.recenter_sums(y[there], e[there]).sums)
        return CentralSums(y, e, sums)

    def scaled(self, factor: float, shift: float, powers: Array) -> "CentralSums":
        """Return the sums of values in another unit; an error is not shifted."""
        return CentralSums(self.y * factor + shift, self.e * factor, self.sums * powers)

    def mean(self, a: int, b: int) -> Array:
        """Return the central moment of an order, nan where there are no items."""
        weight = self.weight
        filled = np.full(np.shape(weight), np.nan, weight.dtype)
        return np.divide(self.sums[..., a, b], weight, out=filled, where=weight != 0)


CENTRAL_SUM = replace(SUM, merge=None, load=lambda parts: CentralSums(*map(load_numbers, parts)))
NAMED_SUM = replace(SUM, load=lambda parts: {key: load_counts(x) for key, x in parts.items()})
NAMED_NUMBERS = replace(
    SAME, load=lambda parts: {key: load_numbers(x).item() for key, x in parts.items()}
)
HISTOGRAM = replace(
    SUM, sparse=True, load=lambda bins: {int(place): load_counts(x) for place, x in bins.items()}
)


@dataclass(frozen=True, eq=False)
class Moments(BatchSummary):
    """Sums over items from which every metric of regression follows; they merge with `+`.

    `plain` has weights w, `squared` weights w², which the errors of weighted results need.
    `constants` are constant predictions of interest, `spread` Σw|y - c| of each. `histogram` says
    how many errors have which size, in bins that are a half per cent wide, and so is its error.

    >>> morning = Moments.of([1.0, 2.0, 4.0], [1.5, 2.0, 3.0])
    >>> evening = Moments.of([3.0], [3.5])
    >>> round(float((morning + evening).plain.mean(2, 0)), 4)  # the variance of the targets
    1.25
    """

    items: Sum  # [...]
    plain: Annotated[CentralSums, CENTRAL_SUM]
    squared: Annotated[CentralSums, CENTRAL_SUM]
    absolute: Sum  # Σw|e|
    absolute_squared: Sum  # Σw²|e|
    largest: Maximum  # max|e|
    squares: Sum  # Σw e², from the errors themselves
    constants: Annotated[Mapping[str, float], NAMED_NUMBERS] = field(default_factory=dict)
    spread: Annotated[Mapping[str, Array], NAMED_SUM] = field(default_factory=dict)
    histogram: Annotated[Mapping[int, Array] | None, HISTOGRAM] = None
    counted: Every = True  # whether every weight is an integer
    dropped: Dropped = 0
    order: Annotated[int, SAME] = HIGHEST_ORDER  # of the moments; what is above it says nothing
    step: Annotated[float, SAME] = 1.0  # the unit in which the sizes of the histogram are
    has_unanswered = False

    @classmethod
    def of(
        cls,
        target: Any,
        predicted: Any,
        weights: Any = None,
        *,
        constants: Mapping[str, float] | None = None,
        histogram: bool = False,
        groups: Groups | None = None,
        order: int = HIGHEST_ORDER,
    ) -> "Moments":
        """Sum up two columns of numbers; with groups, a batch of summaries, one for each.

        Values alone need moments of order 2 only, which take less time; their errors need 4.
        """
        y, p = (
            convert_to_numbers(target, "targets"),
            convert_to_numbers(predicted, "predictions"),
        )
        check_same_length(len(y), len(p), "targets", "predictions")
        weighing = match_weights(weights, len(y))
        if not len(y):
            raise NoItems("There are no items to evaluate: the columns are empty.")
        counter = MomentsAccumulator(constants or {}, histogram=histogram, order=order)
        if groups is not None:
            check_same_length(len(y), len(groups.codes), "targets", "groups")
            return _summarize_groups(y, p, weighing, groups, counter)
        for start in range(0, len(y), ROWS_PER_SUM):
            where = slice(start, start + ROWS_PER_SUM)
            counter.add(y[where], p[where], None if weighing is None else weighing[where])
        return counter.summary()

    @property
    def has_integer_weights(self) -> bool:
        """Whether the weights are counts."""
        return self.counted

    @property
    def total(self) -> Array:
        """Σw."""
        return self.plain.weight

    def _merge(self, other: Self) -> dict[str, Any]:
        """Return the fields of both; central sums are moved to the means of all items."""
        plain = squared = self.plain + other.plain
        if self.squared is not self.plain or other.squared is not other.plain:
            squared = self.squared + other.squared
        return super()._merge(other) | {"plain": plain, "squared": squared}

    def compute_sums(self, index: Array, count: int) -> Self:
        """Return a batch of sums; central sums are moved to the means of all items of each."""
        plain = self.plain.compute_sums(index, count)
        squared = plain
        if not np.array_equal(self.squared.sums, self.plain.sums, equal_nan=True):
            squared = self.squared.compute_sums(index, count)
        return replace(super().compute_sums(index, count), plain=plain, squared=squared)

    def _get_cell_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the axes of the powers."""
        return dict.fromkeys(("plain.sums", "squared.sums"), (HIGHEST_ORDER + 1,) * 2)

    def _require_shapes(self) -> None:
        """Refuse orders that there are not, and constants without their spread, too."""
        super()._require_shapes()
        self._require(self.order in MOMENT_ORDERS, "order")
        self._require(self.constants.keys() == self.spread.keys(), "spread")

    def scaled(self, factor: float, shift: float) -> "Moments":
        """Return the summary of the same items in another unit: values times factor plus shift."""
        if not (np.isfinite(factor) and np.isfinite(shift) and factor > 0):
            raise BadOption(f"Values are scaled by a number above 0 and moved, not by {factor}.")
        powers = factor ** (_POWERS[:, None] + _POWERS)
        return replace(
            self,
            plain=self.plain.scaled(factor, shift, powers),
            squared=self.squared.scaled(factor, shift, powers),
            absolute=self.absolute * factor,
            absolute_squared=self.absolute_squared * factor,
            largest=self.largest * factor,
            squares=self.squares * factor**2,
            constants={name: value * factor + shift for name, value in self.constants.items()},
            spread={name: part * factor for name, part in self.spread.items()},
            step=self.step * factor,
        )

    @property
    def pooled(self) -> "Moments":
        """The one summary of all items of a batch [G]."""
        rest, single = self[np.asarray(self.items) > 0], []
        if not len(rest.items):
            raise NoItems("There are no items to evaluate: no group has any.")
        while (count := len(rest.items)) > 1:  # each group is added to another, all at once
            if count % 2:
                single.append(rest[-1])
            rest = rest[: count // 2] + rest[count // 2 : count // 2 * 2]
        return replace(sum(single, rest[0]), dropped=np.sum(self.dropped))


class MomentsAccumulator:
    """Adds rows of targets and predictions up, part by part."""

    def __init__(
        self, constants: Mapping[str, float], *, histogram: bool = False, order: int = HIGHEST_ORDER
    ) -> None:
        if order not in MOMENT_ORDERS:
            raise BadOption(
                f"Moments have the order {' or '.join(map(str, MOMENT_ORDERS))}, not {order}."
            )
        self.constants, self.histogram, self.order = constants, histogram, order
        self.total: Moments | None = None
        self.seen = 0
        self.low, self.high = math.inf, -math.inf  # of the targets, about
        self.buffer = np.ones((0, 0))  # for parts, one after the other: new memory costs time

    def add(self, y: Floats, p: Floats, weight: Floats | None = None) -> None:
        """Add rows, whose sums are taken about one point."""
        start, counted = self.seen, True
        rows: Any = range(start, start + len(y))
        self.seen += len(y)
        if weight is not None:
            there = check_weights(weight, start) > 0
            counted = bool((weight == np.floor(weight)).all())
            rows = start + np.flatnonzero(there)
            y, p, weight = y[there], p[there], weight[there]
        if len(y):
            if self.buffer.shape[1] < min(len(y), ROWS_PER_BLOCK):
                self.buffer = np.ones((8 if self.order > 2 else 5, min(len(y), ROWS_PER_BLOCK)))
            part = _MomentsBlock(y, p, weight, self.buffer, self.order)
            part.check(rows)
            self.low, self.high = min(self.low, part.low), max(self.high, part.high)
            moments = part.summary(self.constants, histogram=self.histogram, counted=counted)
            self.total = moments if self.total is None else self.total + moments

    def summary(self) -> Moments:
        """Return the sums of all rows."""
        if self.total is None:
            reason = "all weights are 0" if self.seen else "the columns are empty"
            raise NoItems(f"There are no items to evaluate: {reason}.")
        refuse_small_values(self.low, self.high, float(self.total.largest))
        return self.total


class _MomentsBlock:
    """Sums of some items about one point near their means, a few rows at a time."""

    def __init__(
        self, y: Floats, p: Floats, weight: Floats | None, buffer: Floats, order: int
    ) -> None:
        self.y, self.p, self.weight, self.order = y, p, weight, order
        self.buffer = buffer  # of ones in the first row, then powers, errors and their sizes
        self.once, self.twice = np.zeros((2, 6, 6))
        self.sums = np.zeros(3)  # Σw|e|, Σw²|e|, Σw e²
        self.largest = 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            self.at = self._point()
            size = ROWS_PER_BLOCK if order == 2 else min(ROWS_PER_BLOCK, ROWS_PER_PRODUCT)
            for start in range(0, len(y), size):
                self._add_rows(slice(start, start + size))

    def _point(self) -> tuple[float, float]:
        """Return a point near the means: of some rows, or of all if they weigh differently."""
        if self.weight is not None:
            return _compute_mean(self.y, self.weight), _compute_mean(self.p - self.y, self.weight)
        sample = slice(None, None, 1 + len(self.y) // SAMPLE_ROWS)
        y, e = self.y[sample], self.p[sample] - self.y[sample]
        return _choose_center(y, NEAR_DEVIATIONS[self.order]), _choose_center(
            e, NEAR_DEVIATIONS[self.order]
        )

    def _add_rows(self, where: slice) -> None:
        y, p = self.y[where], self.p[where]
        e, size = self.buffer[-2 if self.at[1] else 2, : len(y)], self.buffer[-1, : len(y)]
        np.subtract(p, y, out=e)
        np.abs(e, out=size)
        self.largest = max(self.largest, float(size.max()))
        if self.weight is None:
            absolute = float(size.sum())
            squares = (
                self._add_second_order(y, e) if self.order == 2 else self._add_fourth_order(y, e)
            )
            self.sums += absolute, absolute, squares
            return
        weight, powers = self.weight[where], self._compute_powers(y, e)
        weighted = powers * weight
        self.once += _sum_products(weighted, powers)
        self.twice += _sum_products(weighted)
        self.sums += weight @ size, (weight * size) @ weight, (weight * e) @ e

    def _add_second_order(self, y: Floats, e: Floats) -> float:
        """Add sums of order two of items that weigh the same, in few passes; return Σe²."""
        ones = self.buffer[0, : len(y)]
        d = np.subtract(y, self.at[0], out=self.buffer[1, : len(y)]) if self.at[0] else y
        f = np.subtract(e, self.at[1], out=self.buffer[2, : len(y)]) if self.at[1] else e
        of_d, of_f, both, squares = map(float, (d @ ones, f @ ones, d @ f, f @ f))
        self.once[:3, :3] += (
            (len(y), of_d, of_f),
            (of_d, float(d @ d), both),
            (of_f, both, squares),
        )
        return squares if f is e else float(e @ e)

    def _add_fourth_order(self, y: Floats, e: Floats) -> float:
        """Add sums of order four of items that weigh the same; return Σe²."""
        products = _sum_products(self._compute_powers(y, e))
        self.once += products
        return float(e @ e if self.at[1] else products[2, 2])

    def _compute_powers(self, y: Floats, e: Floats) -> Floats:
        """Return 1, d, f, and d², df, f² where there are higher moments."""
        powers = self.buffer[: 6 if self.order > 2 else 3, : len(y)]
        np.subtract(y, self.at[0], out=powers[1])
        if self.at[1]:
            np.subtract(e, self.at[1], out=powers[2])
        if self.order > 2:
            np.multiply(powers[1], powers[1], out=powers[3])
            np.multiply(powers[1], powers[2], out=powers[4])
            np.multiply(powers[2], powers[2], out=powers[5])
        return powers

    def summary(self, constants: Mapping[str, float], *, histogram: bool, counted: bool) -> Moments:
        """Return the sums about the means."""
        plain = self._center_products(self.once)
        squared = plain if self.weight is None else self._center_products(self.twice)
        size = np.abs(self.p - self.y) if histogram else None
        return Moments(
            np.asarray(len(self.y)),
            plain,
            squared,
            np.asarray(self.sums[0]),
            np.asarray(self.sums[1]),
            np.asarray(self.largest),
            np.asarray(self.sums[2]),
            constants,
            {
                name: _sum_deviations(self.y, value, self.weight)
                for name, value in constants.items()
            },
            None if size is None else bin_error_sizes(size, self.weight),
            counted=counted,
            order=self.order,
        )

    def _center_products(self, products: Floats) -> CentralSums:
        sums = np.zeros((HIGHEST_ORDER + 1, HIGHEST_ORDER + 1))
        parts = _PRODUCT_POWERS if self.order > 2 else _PRODUCT_POWERS[:3]
        for i, (a, b) in enumerate(parts):
            for j, (c, d) in enumerate(parts):
                sums[a + c, b + d] = products[i, j]
        near = CentralSums(np.asarray(self.at[0]), np.asarray(self.at[1]), sums)
        y, e = (near.sums[k] / near.sums[0, 0] for k in ((1, 0), (0, 1)))
        return near.recenter_sums(near.y + y, near.e + e)

    def check(self, rows: Sequence[int] | Array) -> None:
        """Refuse what is no finite number, with its row, from 0, and what is too large."""
        self._find_target_range()
        finite = np.isfinite(self.sums).all()  # a nan is in none of these
        if not (finite and max(abs(self.low), abs(self.high), self.largest) < LARGEST_VALUE):
            _refuse_large_values(self.y, self.p, np.abs(self.p - self.y), rows)

    def _find_target_range(self) -> None:
        """Note between which values the targets lie; no further than that is near enough."""
        reach = math.sqrt(self.once[1, 1]) if self.once[1, 1] >= 0.0 else math.nan
        self.low, self.high = self.at[0] - reach, self.at[0] + reach
        if self.weight is not None or not 1.0 / LARGEST_VALUE < reach < LARGEST_VALUE:
            self.low, self.high = float(self.y.min()), float(self.y.max())


def _compute_mean(values: Floats, weight: Floats | None) -> float:
    """Return about the mean; exactly the value, where all are equal."""
    gaps = values - values[0]
    return float(values[0] + (gaps.mean() if weight is None else weight @ gaps / weight.sum()))


def _choose_center(values: Floats, near: float) -> float:
    """Return about the mean, or 0, where it is so many deviations away at most: a pass is saved."""
    middle = _compute_mean(values, None)
    gaps = values - middle
    return middle if middle * middle * len(values) > near**2 * float(gaps @ gaps) else 0.0


def _sum_products(first: Floats, second: Floats | None = None) -> Floats:
    """Return all sums of products of rows [6, 6]."""
    products = np.zeros((6, 6))
    products[: len(first), : len(first)] = first @ (first if second is None else second).T
    return products


_PRODUCT_POWERS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))


def _sum_deviations(y: Floats, value: float, weight: Floats | None) -> Array:
    gaps = np.abs(y - value)
    return np.asarray(gaps.sum() if weight is None else weight @ gaps)


def bin_error_sizes(
    size: Floats, weight: Floats | None = None, codes: Array | None = None, count: int = 1
) -> dict[int, Array]:
    """Return the weight of errors by bin, with codes in an array of so many weights."""
    none = np.zeros(len(size), np.intp)
    bins, weights = count_error_sizes(size, weight, none if codes is None else codes, count)
    rows = weights if codes is not None else weights[:, 0]
    return {k: np.asarray(row) for k, row in zip(bins.tolist(), rows, strict=True)}


def count_error_sizes(
    size: Floats, weight: Floats | None, codes: Array, count: int
) -> tuple[Array, Array]:
    """Return bins, the logarithms of errors rounded up, and the weights in them [bins, count]."""
    with np.errstate(divide="ignore"):
        place = np.ceil(np.log(size) / np.log(BIN_GROWTH))
    first = np.min(place, initial=0.0, where=size > 0)
    index = np.where(size > 0, place - first + 1.0, 0.0).astype(np.intp)  # 0 where there is none
    present = np.flatnonzero(np.bincount(index))
    weights = np.bincount(index * count + codes, weight, (index.max(initial=0) + 1) * count)
    bins = np.where(present == 0, ZERO_BIN, present - 1 + int(first))
    return bins, weights.astype(float).reshape(-1, count)[present]


def compute_bin_size(place: int) -> float:
    """Return the size for which a bin stands: in the middle of it, relative to both ends."""
    return 0.0 if place == ZERO_BIN else float(2.0 * BIN_GROWTH**place / (1.0 + BIN_GROWTH))


def _summarize_groups(
    y: Floats, p: Floats, weight: Floats | None, groups: Groups, like: MomentsAccumulator
) -> Moments:
    """Return a batch with the summary of each group."""
    parts = []
    for start in range(0, len(y), ROWS_PER_SUM):
        where = slice(start, start + ROWS_PER_SUM)
        block = _GroupedRows(y[where], p[where], None if weight is None else weight[where], start)
        parts.append(block.summarize(groups.codes[where], len(groups.values), like))
    return sum(parts[1:], parts[0])


class _GroupedRows:
    """Rows whose sums are taken within groups, about the mean of each."""

    def __init__(self, y: Floats, p: Floats, weight: Floats | None, start: int) -> None:
        self.there: Any = slice(None)
        self.rows: Any = range(start, start + len(y))
        self.counted = True
        if weight is not None:
            self.there = check_weights(weight, start) > 0
            self.rows = start + np.flatnonzero(self.there)
            weight = weight[self.there]
            self.counted = bool((weight == np.floor(weight)).all())
        self.y, self.p, self.weight = y[self.there], p[self.there], weight
        with np.errstate(invalid="ignore", over="ignore"):
            self.e = self.p - self.y
            self.size = np.abs(self.e)
        _refuse_large_values(self.y, self.p, self.size, self.rows)

    def summarize(self, codes: Array, count: int, like: MomentsAccumulator) -> Moments:
        """Return a batch with the summary of each code."""
        self.codes, self.count = codes[self.there], count
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        self.total = self._sum(weight)
        y, e = self._find_means(self.y, weight), self._find_means(self.e, weight)
        with np.errstate(over="ignore", invalid="ignore"):  # in orders that nobody keeps
            gaps = self.y - y[self.codes], self.e - e[self.codes]
            plain = squared = self._sum_powers(y, e, gaps, weight, like.order)
            absolute = absolute_squared = self._sum(weight * self.size)
            if self.weight is not None:
                squared = self._sum_powers(y, e, gaps, weight * weight, like.order)
                absolute_squared = self._sum(weight * weight * self.size)
        largest = np.zeros(count)
        np.maximum.at(largest, self.codes, self.size)
        return Moments(
            np.bincount(self.codes, minlength=count),
            plain,
            squared,
            absolute,
            absolute_squared,
            largest,
            self._sum(weight * self.e * self.e),
            like.constants,
            {x: self._sum(weight * np.abs(self.y - c)) for x, c in like.constants.items()},
            bin_error_sizes(self.size, weight, self.codes, count) if like.histogram else None,
            counted=self.counted,
            order=like.order,
        )

    def _sum(self, values: Floats) -> Array:
        return np.bincount(self.codes, values, self.count)

    def _find_means(self, values: Floats, weight: Floats) -> Array:
        """Return the mean of each code: exactly the value, where all are equal; 0 without items."""
        start = np.zeros(self.count)
        start[self.codes[::-1]] = values[::-1]  # the first of each
        gaps = self._sum(weight * (values - start[self.codes]))
        return start + gaps / np.where(self.total > 0, self.total, 1.0)

    def _sum_powers(
        self, y: Array, e: Array, gaps: tuple[Floats, Floats], weight: Floats, order: int
    ) -> CentralSums:
        """Return the sums of w d^a f^b, moved from these points to the means proper."""
        sums = np.zeros((self.count, HIGHEST_ORDER + 1, HIGHEST_ORDER + 1))
        outer = weight
        for b in range(order + 1):
            term = outer
            for a in range(order + 1 - b):
                sums[:, a, b] = self._sum(term)
                term = term * gaps[0]
            outer = outer * gaps[1]
        rest = sums[:, [1, 0], [0, 1]] / np.where(sums[:, 0, 0] > 0, sums[:, 0, 0], 1.0)[:, None]
        return CentralSums(y, e, sums).recenter_sums(y + rest[:, 0], e + rest[:, 1])


def _refuse_large_values(y: Floats, p: Floats, size: Floats, rows: Any) -> None:
    """Refuse what is no finite number, with its row, and what cannot be squared twice."""
    if not len(y) or (size.max() < LARGEST_VALUE and np.abs(y).max() < LARGEST_VALUE):
        return
    for name, column in (("target", y), ("prediction", p)):
        bad = ~np.isfinite(column)
        if bad.any():
            place = int(np.argmax(bad))
            row = int(rows[place]) + 1
            raise BadValues(f"The {name} of row {row} is {column[place]}, not a finite number.")
    raise BadValues(f"The values are too large to be squared twice. {UNIT_HINT}")


def refuse_small_values(low: float, high: float, largest: float) -> None:
    """Refuse targets from low to high, and errors up to the largest, that cannot be squared."""
    if 0.0 < max(high - low, largest) < 1.0 / LARGEST_VALUE:
        raise BadValues(f"The values are too small to be squared twice. {UNIT_HINT}")
