"""Reliability: how predicted probabilities relate to what happened, in a few sums."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, MissingLabels, NoItems
from ordinate.scale import Scale
from ordinate.summaries.base import (
    SUM,
    BatchSummary,
    Dropped,
    FieldRule,
    Sum,
    load_counts,
    to_plain_value,
)
from ordinate.summaries.confusion import ConfusionMatrix
from ordinate.summaries.counting import check_weights
from ordinate.summaries.probabilities import (
    ColumnLabels,
    arrange_columns,
    check_probability_columns,
    check_same_rows,
    format_row_name,
)
from ordinate.summaries.probability_bins import (
    BlockTally,
    Events,
    compute_events,
    count_events,
    cumulate_levels,
    find_most_probable_level,
    sum_bins,
)
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    RowPolicy,
    check_missing_policy,
    check_same_length,
    convert_weights,
    encode_positions,
    suggest_missing_policy,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
EPS = float(np.finfo(float).eps)  # to which the log loss clips probabilities, like scikit-learn
FINE_BINS = (
    1_000  # bins of the scores that ranks are taken from, and the most that anybody may ask for
)
# Bins of isotonic curves: each probability of up to three decimals has one of its own, inside.
CURVE_BINS = 1_001
NUDGE = 1e-6  # of a bin: equal scores that differ by rounding stay together
MOST_ORDERED_ITEMS = 5_000  # whose order is kept as it is, beside the fine bins
SCORE_NAMES = ("brier", "log_loss", "rps_sum")
ROWS_PER_BLOCK = (
    1 << 15
)  # rows that are counted together: few calls, and what they make stays in caches


@dataclass(frozen=True)
class ReliabilityParts:
    """Which parts a summary has; they unite with `|`.

    `bins` says for which events and in how many bins: the most probable level (`top`), each level,
    each event "gold is at most level k". `curves` are the bins of isotonic curves of the last, and
    `order` makes ranks exact where items are few.
    """

    bins: frozenset[tuple[Events, int]] = frozenset()
    scores: bool = False
    confusion_matrix: bool = False
    ranking: bool = False
    curves: bool = False
    order: bool = False

    def __post_init__(self) -> None:
        for _, count in self.bins:
            if not (count == int(count) and 1 <= count <= FINE_BINS):
                raise BadOption(
                    f"{count} is no number of bins: that is an integer from 1 to {FINE_BINS:,}."
                )

    def __or__(self, other: "ReliabilityParts") -> "ReliabilityParts":
        return ReliabilityParts(
            self.bins | other.bins,
            self.scores or other.scores,
            self.confusion_matrix or other.confusion_matrix,
            self.ranking or other.ranking,
            self.curves or other.curves,
            self.order or other.order,
        )


class ReliabilityBins(NamedTuple):
    """Per event and bin [..., events, bins]: items, weights, squared weights, and weighted sums.

    f is the predicted probability of the event, o is 1 if it happened.
    """

    items: Array
    weight: Array
    squares: Array
    f: Array
    o: Array
    ff: Array
    fo: Array

    @property
    def confidence(self) -> Array:
        """The mean probability in a bin, nan where it is empty."""
        return _divide_or_nan(self.f, self.weight)

    @property
    def frequency(self) -> Array:
        """How often the event happened in a bin, nan where it is empty."""
        return _divide_or_nan(self.o, self.weight)

    @property
    def effective_size(self) -> Array:
        """How many items of equal weight say as much as those of a bin, nan where it is empty."""
        return _divide_or_nan(self.weight**2, self.squares)


class ProperScores(NamedTuple):
    """Sums of proper scores [..., 3] in the order of `SCORE_NAMES`, and what their errors need.

    `weighted` are Σw s, `squared` Σw² s, `products` Σw² s sᵀ. `clipped` counts the items to whose
    level next to no probability was given; `beyond` is what clipping took off their log loss, and
    `impossible` the weight of those that had none at all.
    """

    weighted: Array
    squared: Array
    products: Array
    clipped: Array
    beyond: Array
    impossible: Array


def _dump_bins(bins: Mapping[tuple[Events, int], ReliabilityBins]) -> list[dict[str, Any]]:
    return [
        {"events": events, "count": count, "sums": to_plain_value(sums)}
        for (events, count), sums in bins.items()
    ]


def _load_bins(stored: Iterable[Mapping[str, Any]]) -> dict[tuple[Events, int], ReliabilityBins]:
    return {
        (part["events"], part["count"]): ReliabilityBins(*map(load_counts, part["sums"]))
        for part in stored
    }


BIN_SUMS = replace(SUM, dump=_dump_bins, load=_load_bins)
CURVE_SUMS = FieldRule(
    operator.add, load=lambda parts: ReliabilityBins(*map(load_counts, parts))
)  # of a batch as a whole: in each of many blocks they would take most of the memory


def join_orders(first: Array, second: Array) -> Array:
    """Return places, gold levels and weights [3, n] of both, sorted; of very many, none.

    Their weights tell whether they are all.
    """
    both = np.concatenate([first, second], axis=-1)
    keys, index = np.unique(both[:2], axis=1, return_inverse=True)
    weights = np.bincount(index.reshape(-1), both[2], keys.shape[1])
    return np.vstack([keys, weights])[
        :, : len(weights) if len(weights) <= MOST_ORDERED_ITEMS else 0
    ]


ORDER = FieldRule(join_orders, load=load_counts)  # of a batch as a whole
SCORE_SUMS = replace(SUM, load=lambda parts: ProperScores(*map(load_counts, parts)))


@dataclass(frozen=True, eq=False)
class Reliability(BatchSummary):
    """What N rows of probabilities were worth: bins, scores and matrices, as its parts say.

    Leading axes hold many summaries at once; `curves` and `order` are of all of them. `argmax` is
    the confusion matrix of the most probable level, the lowest of equal ones; `confusion_matrix`
    sums the probabilities of each level by gold level.

    >>> parts = ReliabilityParts(scores=True)
    >>> summary = Reliability.of([0, 1], [[0.9, 0.1], [0.4, 0.6]], "0..1", parts)
    >>> summary.scores.weighted.round(3).tolist()
    [0.34, 0.616, 0.17]
    """

    argmax: Annotated[ConfusionMatrix, replace(SUM, load=ConfusionMatrix.from_dict)]
    items: Sum  # [...]
    weight: Sum  # Σw
    squares: Sum  # Σw²
    confidence: Sum  # [..., K]: Σw of the highest probability, by the level that has it
    bins: Annotated[Mapping[tuple[Events, int], ReliabilityBins], BIN_SUMS] = field(
        default_factory=dict
    )
    scores: Annotated[ProperScores | None, SCORE_SUMS] = None
    confusion_matrix: Annotated[Array | None, SUM] = None  # [..., K, K]
    ranking: Annotated[Array | None, SUM] = None  # [..., K, FINE]: weight by gold and position
    curves: Annotated[ReliabilityBins | None, CURVE_SUMS] = None  # [K - 1, CURVE_BINS], of a batch
    order: Annotated[Array | None, ORDER] = None  # [3, n], of a batch: what ranking has in bins
    dropped: Dropped = 0
    has_unanswered = False
    whole = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "argmax", replace(self.argmax, dropped=self.dropped))

    @classmethod
    def of(
        cls,
        gold: Any,
        probabilities: Any,
        scale: "Scale | str | Iterable[Any]",
        parts: ReliabilityParts,
        *,
        columns: ColumnLabels = None,
        weights: Any = None,
        missing: RowPolicy = "error",
        renormalize: bool = False,
        blocks: int | None = None,
    ) -> "Reliability":
        """Summarise gold labels and a table of probabilities, a few thousand rows at a time.

        With `blocks` the items are spread over that many summaries by their row numbers, whatever
        the order of the file, so that the spread of the blocks says how sure a value is.
        """
        check_missing_policy(missing, RowPolicy)
        scale = Scale.of(scale)
        values = arrange_columns(scale, probabilities, columns, gold)
        weighing = convert_weights(weights)
        truth = encode_positions(scale, gold, "gold", weighing)
        check_same_rows(truth, values)
        if weighing is not None:
            check_same_length(len(truth), len(weighing), "labels", "weights")
        counter = ReliabilityAccumulator(scale, parts, renormalize=renormalize, blocks=blocks)
        for start in range(0, len(truth), ROWS_PER_BLOCK):
            stop = min(start + ROWS_PER_BLOCK, len(truth))
            weight = None if weighing is None else weighing[start:stop]
            counter.add(truth[start:stop], values[start:stop], weight, missing)
        counter.refuse_no_items()
        return counter.summary()

    def _get_cell_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the axes of levels, events, bins and scores."""
        size = len(self.scale)
        events = count_events(size)
        return {
            "confidence": (size,),
            "confusion_matrix": (size, size),
            "ranking": (size, FINE_BINS),
            "scores.weighted": (3,),
            "scores.squared": (3,),
            "scores.products": (3, 3),
            **{f"bins[{key}]": (events[key[0]], key[1]) for key in self.bins},
        }

    def _require_shapes(self) -> None:
        super()._require_shapes()
        self._require(self.order is None or (self.order.ndim, len(self.order)) == (2, 3), "order")
        shape = (len(self.scale) - 1, CURVE_BINS)
        for part in self.curves or ():
            self._require(part.shape == shape, "curves")

    @property
    def scale(self) -> Scale:
        """The scale of the levels."""
        return self.argmax.scale

    @cached_property
    def exact_ranking(self) -> Array | None:
        """The weight by gold and expected level [K, places], if the order of all items is known."""
        if self.shape or self.order is None or not self.order.size:
            return None
        places, gold, weights = self.order
        if not math.isclose(weights.sum(), float(self.weight), rel_tol=1e-9):
            return None
        _, place = np.unique(places, return_inverse=True)
        table = np.zeros((len(self.scale), int(place.max()) + 1))
        np.add.at(table, (gold.astype(np.intp), place), weights)
        return table

    @property
    def total(self) -> Any:
        """The weight of all items."""
        return self.weight

    @property
    def gold_share(self) -> Array:
        """The share of each gold level."""
        return self.argmax.gold_share


class ReliabilityAccumulator:
    """Adds rows of probabilities up, part by part; `place` says how errors name a row."""

    def __init__(
        self,
        scale: Scale,
        parts: ReliabilityParts,
        *,
        renormalize: bool = False,
        blocks: int | None = None,
        place: Callable[[int], str] = format_row_name,
    ) -> None:
        self.scale, self.parts, self.renormalize, self.place = scale, parts, renormalize, place
        self.blocks, self.seen = blocks, 0
        self.fractions = False
        size, many = len(scale), blocks or 1
        self.dropped = np.zeros(many, np.int64)
        self.items, self.cells = np.zeros(many), np.zeros((3, many, size, size + 1))
        counts = count_events(size)
        self.bins = {
            (events, count): np.zeros((7, many, counts[events], count))
            for events, count in sorted(parts.bins)
        }
        self.scores = [np.zeros((many, 3)), np.zeros((many, 3)), np.zeros((many, 3, 3))]
        self.confidence = np.zeros((many, size))
        self.tails = np.zeros((3, many))
        self.confusion_matrix = np.zeros((many, size, size)) if parts.confusion_matrix else None
        self.ranking = np.zeros((many, size, FINE_BINS)) if parts.ranking else None
        self.order = np.zeros((3, 0)) if parts.order else None
        self.curves = np.zeros((7, size - 1, CURVE_BINS)) if parts.curves else None

    def add(
        self,
        truth: Array,
        rows: Array,
        weight: Floats | None = None,
        missing: RowPolicy = "error",
    ) -> None:
        """Add rows [n, K] of probabilities with the gold positions of their items.

        Items are missing that have no gold label, or only empty cells.
        """
        start, self.seen = self.seen, self.seen + len(truth)
        absent = truth == len(self.scale)
        if missing == "drop":
            absent |= _find_empty_rows(rows)
        present = self._select_items(absent, weight, start, missing)
        numbers = np.arange(start, self.seen)
        if present is not None:
            truth, rows, numbers = truth[present], rows[present], numbers[present]
            weight = None if weight is None else weight[present]
        if not len(truth):
            return
        columns = np.ascontiguousarray(rows.T, dtype=float)
        columns = check_probability_columns(
            columns, numbers, renormalize=self.renormalize, place=self.place
        )
        tally = BlockTally(self.blocks, numbers, weight)
        self._count_rows(tally, truth.astype(np.intp), columns)

    def _select_items(
        self, absent: Array, weight: Floats | None, start: int, missing: str
    ) -> NDArray[np.bool_] | None:
        """Return which items count: those with a weight that are not absent; None says all."""
        there = None
        if weight is not None:
            there = check_weights(weight, start) > 0
            self.fractions |= bool((weight != np.floor(weight)).any())
        if not absent.any():
            return there
        if there is not None:
            absent &= there
        if missing != "drop" and absent.any():
            first = np.flatnonzero(absent)[:ROWS_SHOWN].tolist()
            rows = ", ".join(self.place(start + row) for row in first)
            raise MissingLabels(f"Gold labels are missing ({rows}). {suggest_missing_policy()}")
        numbers = start + np.flatnonzero(absent)
        self.dropped += BlockTally(self.blocks, numbers, None).items()
        return ~absent if there is None else there & ~absent

    def _count_rows(self, tally: BlockTally, gold: Array, columns: Floats) -> None:
        size, best = len(self.scale), columns.max(axis=0)
        predicted = find_most_probable_level(columns, best)
        self.items += tally.items()
        cells = tally.sums(gold * (size + 1) + predicted, size * (size + 1))
        self.cells += cells.reshape(self.cells.shape)
        self.confidence += tally.of(best, predicted, size)
        needed: set[Events] = {event_set for event_set, _ in self.parts.bins}
        if self.curves is not None:
            needed.add("cumulative")
        events = {
            event_set: compute_events(event_set, gold, columns, best, predicted)
            for event_set in needed
        }
        for (event_set, count), sums in self.bins.items():
            for event, (f, o) in enumerate(zip(*events[event_set], strict=True)):
                sums[:, :, event] += sum_bins(tally, f, o, count)
        if self.parts.scores:
            self._count_scores(tally, gold, columns)
        if self.confusion_matrix is not None:
            for k, column in enumerate(columns):
                self.confusion_matrix[:, :, k] += tally.of(column, gold, size)
        if self.curves is not None:
            for event, (f, o) in enumerate(zip(*events["cumulative"], strict=True)):
                self.curves[:, event] += sum_bins(tally.pooled, f, o, CURVE_BINS)[:, 0]
        if self.ranking is not None:
            self.ranking += self._count_ranking(tally, gold, columns)

    def _count_scores(self, tally: BlockTally, gold: Array, columns: Floats) -> None:
        here = gold * len(gold) + np.arange(len(gold))
        given = columns.ravel().take(here)
        scores = np.empty((3, len(gold)))
        gaps = columns.copy()
        gaps.ravel()[here] = given - 1.0
        scores[0] = np.einsum("kn,kn->n", gaps, gaps)
        scores[1] = -np.log(np.clip(given, EPS, 1.0 - EPS))
        gaps = cumulate_levels(gaps)[:-1]  # of the events "gold is at most level k"
        scores[2] = np.einsum("kn,kn->n", gaps, gaps)
        for total, part in zip(self.scores, tally.moments(scores), strict=True):
            total += part  # noqa: PLW2901 - in place
        tiny = np.flatnonzero(given < EPS)
        if len(tiny):
            few, clipped = given[tiny], tally.select(tiny)
            able = few > 0
            excess = np.zeros(len(few))
            excess[able] = np.log(EPS) - np.log(few[able])
            self.tails += clipped.items(), clipped.of(excess), clipped.of(~able)

    def _count_ranking(self, tally: BlockTally, gold: Array, columns: Floats) -> Array:
        at = (self.scale.positions - self.scale.positions[0]) / self.scale.span
        bins = at @ columns * FINE_BINS
        if self.order is not None and self.seen <= MOST_ORDERED_ITEMS:
            weight = np.ones(len(gold)) if tally.weight is None else tally.weight
            own = np.stack([np.floor(bins * (1.0 / NUDGE) + 0.5), gold, weight])
            self.order = join_orders(self.order, own)
        place = (bins + NUDGE).astype(np.intp)
        cell = gold * FINE_BINS + np.clip(place, 0, FINE_BINS - 1)
        return tally.of(1.0, cell, len(at) * FINE_BINS).reshape(-1, len(at), FINE_BINS)

    def refuse_no_items(self) -> None:
        """Say why no item was counted, if none was."""
        if not self.items.any():
            needed = "a gold label, probabilities and weight"
            reason = f"none has {needed}" if self.seen else "the columns are empty"
            raise NoItems(f"There are no items to evaluate: {reason}.")

    def summary(self) -> Reliability:
        """Return the sums of all rows."""
        parts = self.parts
        once, twice, products = self.scores
        items, weights, squares = self.cells
        summary = Reliability(
            argmax=ConfusionMatrix(self.scale, items, weights, squares, counted=not self.fractions),
            items=self.items,
            weight=weights.sum(axis=(-2, -1)),
            squares=squares.sum(axis=(-2, -1)),
            confidence=self.confidence,
            bins={key: ReliabilityBins(*sums) for key, sums in self.bins.items()},
            scores=ProperScores(once, twice, products, *self.tails) if parts.scores else None,
            confusion_matrix=self.confusion_matrix,
            ranking=self.ranking,
            curves=None if self.curves is None else ReliabilityBins(*self.curves),
            order=self.order,
            dropped=self.dropped,
        )
        return summary if self.blocks is not None else summary[0]


def _find_empty_rows(rows: Array) -> NDArray[np.bool_]:
    """Tell which rows have no number at all."""
    empty = np.isnan(rows[:, 0])
    if empty.any():
        empty[empty] = np.isnan(rows[empty]).all(axis=1)
    return empty


def _divide_or_nan(part: Array, total: Array) -> Array:
    return np.divide(part, total, out=np.full(np.shape(part), np.nan), where=total > 0)
