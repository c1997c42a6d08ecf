"""Residuals: where regression predictions are off: by prediction, by feature, row by row."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, shorten
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.delta_method import compute_bounded_interval as bounded
from ordinate.inference.delta_method import normal_quantile
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.regression import estimate_regression_metrics
from ordinate.metrics import find_metric
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.estimates import format_number
from ordinate.render.tables import to_plain
from ordinate.results.arguments import IntervalOption, resolve_intervals
from ordinate.results.base import SCHEMA, Record, Result, Serializable, split_by_part
from ordinate.results.residuals_text import describe_residuals
from ordinate.scale.encoding import Groups, factorize_column, read_ordered_categories
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers

__all__ = ["ResidualAnalysis", "analyse_residuals"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
MISSING, OTHERS = "(missing)", "(others)"
MOST_LEVELS = 50  # of a feature; rarer ones are taken together
DEFAULT_LEVEL = 0.95  # where no interval was asked for


@dataclass(frozen=True)
class ResidualBin(Serializable):
    """Items whose prediction, or whose feature, is about the same.

    `low` and `high` are the least and the largest value, None for levels and missing values.
    rmse² = bias² + spread². `share` is the share of all squared errors that these items make.
    """

    name: str
    low: float | None
    high: float | None
    n: int
    target: float  # means
    prediction: float
    bias: Estimate
    spread: float
    rmse: float
    share: float


@dataclass(frozen=True)
class FeatureResiduals(Serializable):
    """The bias in the bins of a feature, and the share of the squared error that it explains.

    `by_chance` is the share if errors were shuffled over the items, on average; `limit` the one
    that chance rarely exceeds, for any of the features.
    """

    name: str
    bins: tuple[ResidualBin, ...]
    explained: float
    by_chance: float
    limit: float

    @property
    def beyond_chance(self) -> bool:
        """Whether chance would rarely explain as much."""
        return self.explained > self.limit

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return super().to_dict() | {"beyond_chance": self.beyond_chance}


@dataclass(frozen=True)
class LargestError(Serializable):
    """One of the largest errors: where it is, and how much of the squared error it makes."""

    row: int  # from 1
    name: str | None
    target: float
    prediction: float
    error: float
    share: float
    cumulative: float  # with all that are larger


@dataclass(frozen=True, repr=False, eq=False)
class ResidualAnalysis(Result):
    """Errors by prediction and by feature, and the largest of them.

    `trend` is the rank correlation of the prediction with the distance of an error from the bias
    of its bin: above 0 the spread grows with the prediction.

    >>> result = analyse_residuals([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 3.0, 6.0], bins=2, largest=1)
    >>> [(bin_.n, bin_.bias.value) for bin_ in result.bins]
    [(2, 0.25), (2, 1.0)]
    >>> result.largest[0].row
    4
    """

    summary: Moments
    bias: Estimate
    bins: tuple[ResidualBin, ...]
    trend: Estimate
    features: tuple[FeatureResiduals, ...]
    largest: tuple[LargestError, ...]
    unit: str | None = None
    interval: ConfidenceIntervals | None = None

    @property
    def rmse(self) -> float:
        """The root of the mean squared error of all items."""
        return float(find_metric("rmse", Moments)(self.summary))

    def take_bias(self, metrics: Mapping[str, Estimate]) -> "ResidualAnalysis":
        """Return the same with the bias of an evaluation, so that one number has one interval."""
        return replace(self, bias=metrics.get("bias", self.bias))

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason."""
        return {
            "schema": SCHEMA,
            "task": "residuals",
            "n": self.summary.n,
            "unit": self.unit,
            "interval": None if self.interval is None else self.interval.level,
            "bias": self.bias.to_dict(),
            "rmse": to_plain(self.rmse),
            "by_prediction": to_plain(self.bins),
            "spread_and_prediction": self.trend.to_dict(),
            "features": to_plain(self.features),
            "largest": to_plain(self.largest),
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return predictions against targets, and errors by prediction and by feature."""
        from ordinate.results.residuals_charts import chart_residuals  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_residuals(self)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the bins by prediction, the features, their bins, and the largest errors."""
        return split_by_part(self.rows())

    def rows(self) -> list[Record]:
        """Return one flat record for each bin, each feature and each of the largest errors."""
        rows = [_make_bin_row("prediction", None, bin_) for bin_ in self.bins]
        for feature in self.features:
            shares = {"explained": feature.explained, "by_chance": feature.by_chance}
            rows.append({"part": "feature", "feature": feature.name, "n": self.summary.n} | shares)
            rows += [_make_bin_row("bin", feature.name, bin_) for bin_ in feature.bins]
        for miss in self.largest:
            plain = {key: getattr(miss, key) for key in ("target", "prediction", "error", "share")}
            name = str(miss.row) if miss.name is None else miss.name
            rows.append({"part": "largest", "name": name, "n": 1} | plain)
        empty = dict.fromkeys(_COLUMNS)
        return [empty | row for row in rows]

    def document(self) -> Document:
        """Return the report for people."""
        return describe_residuals(self)


_BIN_FIELDS = ("name", "n", "target", "prediction", "spread", "rmse", "share")
_COLUMNS = ("part", "feature", *_BIN_FIELDS, "error", "low", "high", "explained", "by_chance")


def _make_bin_row(part: str, feature: str | None, bin_: ResidualBin) -> Record:
    bias = {"error": bin_.bias.value, "low": bin_.bias.low, "high": bin_.bias.high}
    same = {key: getattr(bin_, key) for key in _BIN_FIELDS}
    return {"part": part, "feature": feature} | same | bias


def analyse_residuals(
    target: Any,
    predicted: Any,
    features: Any = None,
    *,
    unit: str | None = None,
    bins: int = 10,
    largest: int = 10,
    interval: IntervalOption = 0.95,
    names: Iterable[Any] | None = None,
    rows: Any = None,
) -> ResidualAnalysis:
    """Look at the errors: by prediction, by feature, and at the largest.

    `features` are columns by name. Numbers are cut into `bins` bins of about equal counts, in
    which equal values stay together; other columns go by their levels. `names` are those of the
    items, for the list of the `largest` errors; `rows` are their row numbers, from 1 on if None.
    """
    for option, least, given in (("bins", 1, bins), ("largest", 0, largest)):
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
            raise BadOption(f"{option} must be an integer of at least {least}, not {given!r}.")
    y, p = convert_to_numbers(target, "targets"), convert_to_numbers(predicted, "predictions")
    summary, intervals = Moments.of(y, p), resolve_intervals(interval)
    analyser = _ResidualAnalyser(y, p, summary, intervals)
    by_prediction = _assign_numbers(p, int(bins))
    columns = _collect_columns(features)
    parts = {
        name: _assign_bins(column, int(bins), name, len(y)) for name, column in columns.items()
    }
    by_feature = [analyser.feature(name, part, len(parts)) for name, part in parts.items()]
    by_feature.sort(key=lambda feature: -np.nan_to_num(feature.explained))
    return ResidualAnalysis(
        summary=summary,
        bias=analyser.bias(summary),
        bins=analyser.bins(by_prediction),
        trend=_estimate_trend(p, p - y, by_prediction.codes, intervals),
        features=tuple(by_feature),
        largest=_find_largest_errors(y, p, int(largest), names, rows),
        unit=unit,
        interval=intervals,
    )


# --- which bin ----------------------------------------------------------------------------


class _BinAssignment(NamedTuple):
    """Bins by name, with the least and largest value of each, and the bin of each item."""

    names: list[str]
    ends: list[tuple[float | None, float | None]]
    codes: NDArray[np.int64]


def _compute_mid_ranks(values: Floats) -> Floats:
    """Return for each item the share of items below it, and half of those that are equal to it."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((counts.cumsum() - counts / 2) / len(values))[place.reshape(-1)]


def _assign_numbers(values: Floats, bins: int) -> _BinAssignment:
    """Cut numbers into bins of about equal counts; missing values have a bin of their own."""
    there = ~np.isnan(values)
    known = values[there]
    distinct, place = np.unique(known, return_inverse=True)
    if len(distinct) > bins:
        place = np.unique(np.floor(bins * _compute_mid_ranks(known)), return_inverse=True)[1]
    count = int(place.max()) + 1 if len(known) else 0
    ends: list[tuple[float | None, float | None]] = []
    for k in range(count):
        inside = known[place == k]
        ends.append((float(inside.min()), float(inside.max())))
    codes = np.full(len(values), count)
    codes[there] = place
    names = [_format_range(*end) for end in ends]
    if there.all():
        return _BinAssignment(names, ends, codes)
    return _BinAssignment([*names, MISSING], [*ends, (None, None)], codes)


def _format_range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return MISSING
    ends = [_format_end(x) for x in (low, high)]
    return ends[0] if low == high else " to ".join(ends)


def _format_end(value: float) -> str:
    """Return an end of a bin, an integer as such."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else format_number(value)


def _assign_levels(column: Any, name: str) -> _BinAssignment:
    """Return the levels of a column: in their order where they have one, else the largest first."""
    values, codes = factorize_column(column, f"The feature {shorten(name)}")
    order = {label: rank for rank, label in enumerate(read_ordered_categories(column) or ())}
    counts = np.bincount(codes, minlength=len(values))
    shown = sorted(range(len(values)), key=lambda k: -counts[k])
    if len(values) > MOST_LEVELS:
        shown = shown[: MOST_LEVELS - 1]
    if order:
        shown.sort(key=lambda k: order.get(values[k], len(order)))
    place = np.full(len(values), len(shown))
    place[shown] = np.arange(len(shown))
    names = [MISSING if values[k] is None else str(values[k]) for k in shown]
    names += [OTHERS] if len(shown) < len(values) else []
    return _BinAssignment(names, [(None, None)] * len(names), place[codes])


def _collect_columns(features: Any) -> dict[str, Any]:
    if features is None:
        return {}
    if not hasattr(features, "items"):
        raise BadOption('Pass the features by name: {"name": column, …}.')
    return {str(name): column for name, column in features.items()}


def _assign_bins(column: Any, bins: int, name: str, n: int) -> _BinAssignment:
    values = _to_numbers(column, name)
    found = _assign_levels(column, name) if values is None else _assign_numbers(values, bins)
    check_same_length(n, len(found.codes), "targets", f"values of the feature {shorten(name)}")
    return found


def _to_numbers(column: Any, name: str) -> Floats | None:
    """Return a column of numbers as such, and None for one of levels."""
    if type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype":
        return None
    try:
        values = convert_to_numbers(column, f"values of the feature {shorten(name)}")
    except BadValues:
        return None
    return None if np.asarray(column).dtype.kind == "b" else values


# --- what is in the bins ------------------------------------------------------------------


class _ResidualAnalyser:
    """What all bins share: the items, their summary and the intervals that are wanted."""

    def __init__(
        self, y: Floats, p: Floats, summary: Moments, intervals: ConfidenceIntervals | None
    ) -> None:
        self.y, self.p, self.summary, self.intervals = y, p, summary, intervals
        self.squares = float(summary.squares)

    def bias(self, part: Moments) -> Estimate:
        """Return the bias of some items with its interval."""
        metric = find_metric("bias", Moments)
        if self.intervals is None:
            return make_point_estimate(float(metric(part)))
        return estimate_regression_metrics([metric], part, self.intervals)[metric.expression]

    def bins(self, places: _BinAssignment) -> tuple[ResidualBin, ...]:
        """Return the bins that have items."""
        batch = Moments.of(self.y, self.p, groups=Groups(list(places.names), places.codes))
        return tuple(
            self._make_bin(name, ends, batch[k])
            for k, (name, ends) in enumerate(zip(places.names, places.ends, strict=True))
            if batch.items[k]
        )

    def _make_bin(
        self, name: str, ends: tuple[float | None, float | None], part: Moments
    ) -> ResidualBin:
        y, e = float(part.plain.y), float(part.plain.e)
        spread = math.sqrt(max(float(part.plain.mean(0, 2)), 0.0))
        return ResidualBin(
            name=name,
            low=ends[0],
            high=ends[1],
            n=part.n,
            target=y,
            prediction=y + e,
            bias=self.bias(part),
            spread=spread,
            rmse=float(find_metric("rmse", Moments)(part)),
            share=self._share(float(part.squares)),
        )

    def _share(self, squares: float) -> float:
        return squares / self.squares if self.squares else math.nan

    def feature(self, name: str, places: _BinAssignment, features: int) -> FeatureResiduals:
        """Return the bins of a feature, and what their biases explain."""
        bins = self.bins(places)
        explained = self._share(sum(bin_.n * bin_.bias.value**2 for bin_ in bins))
        level = DEFAULT_LEVEL if self.intervals is None else self.intervals.level
        rare = 1.0 - (1.0 - level) / features
        chance = [
            self._compute_chance(x)
            for x in (len(bins) - 1, _chi_square_quantile(len(bins) - 1, rare))
        ]
        return FeatureResiduals(name, bins, explained, chance[0], chance[1])

    def _compute_chance(self, degrees: float) -> float:
        """Return the share that shuffled errors explain: the bias of all items, and some spread."""
        n, squared_bias = self.summary.n, float(self.summary.plain.e) ** 2
        spread = float(self.summary.plain.mean(0, 2)) * degrees / max(n - 1, 1)
        return min(self._share(n * (squared_bias + spread)), 1.0)


def _chi_square_quantile(freedom: int, share: float) -> float:
    """Return the chi-square value below which a share lies, by Wilson and Hilferty.

    >>> round(_chi_square_quantile(9, 0.95), 1)  # tables say 16.92
    16.9
    """
    if not freedom:
        return 0.0
    part = 2.0 / (9.0 * freedom)
    z = normal_quantile(2.0 * share - 1.0)
    return freedom * (1.0 - part + z * math.sqrt(part)) ** 3


def _estimate_trend(
    p: Floats, e: Floats, codes: Array, intervals: ConfidenceIntervals | None
) -> Estimate:
    """Return the rank correlation of the prediction with the distance from the bin's bias."""
    counts = np.bincount(codes)
    away = np.abs(e - (np.bincount(codes, e) / np.maximum(counts, 1))[codes])
    first, second = _compute_mid_ranks(p) - 0.5, _compute_mid_ranks(away) - 0.5
    size = math.sqrt(float(first @ first) * float(second @ second))
    if not size or counts.max() < 2:
        return make_point_estimate(math.nan, "the predictions or the errors do not vary")
    value = float(np.clip(first @ second / size, -1.0, 1.0))
    if intervals is None:
        return make_point_estimate(value)
    if len(p) < 5 or abs(value) == 1.0:
        return make_point_estimate(value, "there are too few items")
    z = math.sqrt((1.0 + value**2 / 2.0) / (len(p) - 3))  # Bonett and Wright, of Fisher's z
    error = z * (1.0 - value**2)
    return Estimate(
        value, *bounded(value, error, (-1.0, 1.0), normal_quantile(intervals.level)), "fisher"
    )


def _find_largest_errors(
    y: Floats, p: Floats, count: int, names: Iterable[Any] | None, numbered: Any
) -> tuple[LargestError, ...]:
    called = names if names is None or isinstance(names, Sequence) else list(names)
    if called is not None:
        check_same_length(len(y), len(called), "targets", "names")
    if numbered is not None:
        check_same_length(len(y), len(numbered), "targets", "row numbers")
    e = p - y
    rows = np.argsort(-np.abs(e), kind="stable")[:count]
    total = float(e @ e)
    shares = e[rows] ** 2 / total if total else np.full(len(rows), math.nan)
    return tuple(
        LargestError(
            row=int(row) + 1 if numbered is None else int(numbered[row]),
            name=None if called is None else str(called[row]),
            target=float(y[row]),
            prediction=float(p[row]),
            error=float(e[row]),
            share=float(share),
            cumulative=float(cumulative),
        )
        for row, share, cumulative in zip(rows, shares, shares.cumsum(), strict=True)
    )
