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
from ordinate.inference.distributions import FEW_CLUSTERS
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.regression import estimate_regression_metrics
from ordinate.metrics import find_metric
from ordinate.render import Document, Grid
from ordinate.render.charts import Axis, Bar, Chart, Line, Mark, Panel, Point, Rule
from ordinate.render.estimates import (
    format_count,
    format_estimate_interval,
    format_headline,
    format_number,
    format_percent,
    format_value_with_interval,
    format_with_unit,
)
from ordinate.render.forest_plots import MOST_ROWS, ForestPlot, ForestRow
from ordinate.render.tables import NAME, NUMBER, UNIT_ESTIMATE, Column, Kind, Table, to_plain
from ordinate.results.arguments import IntervalOption, resolve_intervals
from ordinate.results.base import SCHEMA, Record, Result, Serializable
from ordinate.results.regression_charts import LARGEST, MEAN, make_predicted_chart
from ordinate.scale.encoding import Groups, factorize_column, read_ordered_categories
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers

__all__ = ["ResidualAnalysis", "analyse_residuals"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
BIAS, NO_ERROR = "bias", "no error"
EXPLAINED, BY_CHANCE, LIMIT = "explained", "by chance", "rarely exceeded by chance"
MOST_FEATURES, MOST_SHOWN_BINS = 3, 20  # shown bin by bin; JSON has all
SLIGHT_CORRELATION = 0.1  # a rank correlation below it is no more than that
MISSING, OTHERS = "(missing)", "(others)"
MOST_LEVELS = 50  # of a feature; rarer ones are taken together
DEFAULT_LEVEL = 0.95  # where no interval was asked for


def _format_percent(share: float) -> str:
    return format_percent(share, 1 if share >= 0.1 else 2)


SMALL_SHARE = Kind(_format_percent)
BIN_COLUMNS = (
    Column("name", "prediction", NAME),
    Column("n", "items"),
    Column("target", shown=False),
    Column("prediction", "mean prediction", NUMBER, optional=True),
    Column("bias", kind=UNIT_ESTIMATE),
    Column("spread", kind=NUMBER, optional=True),
    Column("rmse", kind=NUMBER),
    Column("share", shown=False),
)


@dataclass(frozen=True)
class ResidualBin:
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
class LargestError:
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

    @property
    def level(self) -> float | None:
        """The level of the intervals, None where there are none."""
        return None if self.interval is None else self.interval.level

    def tables(self) -> Iterable[Table]:
        """Return the bins by prediction, the features, their bins, and the largest errors."""
        unit = f" ({self.unit})" if self.unit else ""
        yield Table("prediction", f"By prediction{unit}", BIN_COLUMNS, self.bins, self.level)
        columns = (
            Column("name", "feature", NAME),
            Column("bins", get=lambda feature: len(feature.bins), stored=False),
            Column("explained", "share of the squared error", SMALL_SHARE),
            Column("by_chance", "by chance", SMALL_SHARE),
            Column("limit", "rarely above", SMALL_SHARE),
        )
        title = "Bias by feature: what the biases of its bins explain"
        yield Table("feature", title, columns, self.features)
        for feature in self.features:
            yield Table(
                f"bin_{feature.name}",
                f"By {feature.name}{unit}",
                (
                    replace(BIN_COLUMNS[0], head=feature.name),
                    *(replace(x, shown=x.shown and x.key != "prediction") for x in BIN_COLUMNS[1:]),
                ),
                feature.bins,
                self.level,
                most=MOST_SHOWN_BINS,
                common={"feature": feature.name},
            )
        largest = (
            Column("row", kind=Kind(str, words=True)),
            Column("name", kind=NAME, shown=any(miss.name is not None for miss in self.largest)),
            *(Column(key, kind=NUMBER) for key in ("target", "prediction", "error")),
            Column("share", "share of the squared error", SMALL_SHARE),
            Column("cumulative", "together", SMALL_SHARE, optional=True),
        )
        yield Table("largest", f"Largest errors{unit}", largest, self.largest)

    def document(self) -> Document:
        """Return the errors by prediction, by feature, and the largest."""
        unit = f", target in {self.unit}" if self.unit else ""
        rmse = f"Over all items the rmse is {format_with_unit(self.rmse, self.unit)}."
        return Document(
            f"Residuals of {format_count(self.summary.n)}{unit}",
            (
                *self.get_table("prediction").grids(),
                " ".join([rmse, *_describe_biased_bins(self), _describe_trend(self)]),
                *_list_feature_blocks(self),
                *_list_largest_blocks(self),
            ),
            verdict=_state_bias(self),
            notes=("An error is prediction minus target: above 0 the prediction is too high.",),
        )

    # --- charts --------------------------------------------------------------------------------

    def make_charts(self) -> Iterable[Chart]:
        """Return predictions against targets, and errors by prediction and by feature."""
        yield self._chart_predicted()
        yield self._chart_errors()
        if self.features:
            yield _chart_explained(self.features[:MOST_ROWS])
        yield from map(self._chart_feature, self.features)

    def _chart_predicted(self) -> Chart:
        """Return the mean target of each bin of predictions, with its spread.

        It is the mean prediction less the bias, and so are the ends of its interval.
        """
        ends = [
            (x.target, x.prediction - x.bias.high, x.prediction - x.bias.low) for x in self.bins
        ]
        errors = [(x.prediction, x.target) for x in self.largest]
        return make_predicted_chart(
            self._draw_bins(MEAN, ends, errors),
            self.unit,
            "The mean target at predictions of about the same size, with its confidence interval "
            "and a band of one standard deviation: on the dashed line, predictions are right on "
            "average.",
        )

    def _chart_errors(self) -> Chart:
        """Return the bias at predictions of about the same size, with the spread around it."""
        ends = [(x.bias.value, x.bias.low, x.bias.high) for x in self.bins]
        errors = [(x.prediction, x.error) for x in self.largest]
        zero = Rule(y=0.0, series=NO_ERROR)
        return Chart(
            "residuals",
            "Errors by prediction",
            "The bias at predictions of about the same size, with its confidence interval and a "
            "band of one standard deviation of the errors; above 0 predictions are too high.",
            Axis("prediction", unit=self.unit),
            Axis("error", unit=self.unit),
            (Panel((zero, *self._draw_bins(BIAS, ends, errors))),),
            series=(BIAS, NO_ERROR, *([LARGEST] if self.largest else [])),
        )

    def _draw_bins(
        self,
        series: str,
        ends: Sequence[tuple[float, float, float]],
        errors: Sequence[tuple[float, float]],
    ) -> tuple[Mark, ...]:
        """Return bins over predictions: value, interval, a band of the spread; the largest errors.

        `ends` are value, lower and upper bound of each bin, `errors` the places of the largest.
        """
        each = list(zip(self.bins, ends, strict=True))
        band = Line(
            tuple(x.prediction for x in self.bins),
            tuple(value for value, *_ in ends),
            tuple(value - x.spread for x, (value, *_) in each),
            tuple(value + x.spread for x, (value, *_) in each),
            series=series,
        )
        points = (
            Point(x.prediction, *at, series=series, detail=self._describe_bin(x)) for x, at in each
        )
        largest = (
            Point(*at, series=LARGEST, detail=self._describe_error(x))
            for x, at in zip(self.largest, errors, strict=True)
        )
        return (band, *points, *largest)

    def _describe_bin(self, part: ResidualBin) -> str:
        bias = format_value_with_interval(part.bias, self.level, self.unit, format_number)
        spread = format_with_unit(part.spread, self.unit)
        return f"{part.name}: bias {bias}, standard deviation {spread}, {format_count(part.n)}"

    def _describe_error(self, miss: LargestError) -> str:
        name = f"row {miss.row}" if miss.name is None else miss.name
        error = format_with_unit(miss.error, self.unit)
        return f"{name}: error {error}, {format_percent(miss.share)} of the squared error"

    def _chart_feature(self, feature: FeatureResiduals) -> Chart:
        """Return the bias in each bin of a feature."""
        names = _make_distinct(x.name for x in feature.bins)
        rows = [
            ForestRow(name, x.bias, f"{format_count(x.n)}, rmse {format_number(x.rmse)}", BIAS)
            for name, x in zip(names, feature.bins, strict=True)
        ]
        axis = Axis("error: prediction - target", unit=self.unit)
        plot = ForestPlot(rows, axis, self.level, feature.name, {NO_ERROR: 0.0}, format_number)
        chart = plot.make_chart(
            "residuals_by_feature",
            "Errors by feature",
            "The bias of the items whose feature is about the same, with its confidence interval.",
            variant=feature.name,
        )
        return replace(chart, varies_by="feature")


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


# --- in words ------------------------------------------------------------------------------------


def _state_bias(result: ResidualAnalysis) -> str:
    """Say whether predictions are too high or too low on average."""
    bias = result.bias
    value = format_with_unit(bias.value, result.unit)
    shown = format_headline(value, format_estimate_interval(bias), result.level)
    side = "too high" if bias.value > 0 else "too low"
    if bias.low <= 0 <= bias.high:
        side = "neither too high nor too low on average"
    return f"The predictions are {side}: bias {shown}."


def _describe_biased_bins(result: ResidualAnalysis) -> list[str]:
    """Say in how many bins the bias is clear, and in how many it would be by chance."""
    if result.interval is None:
        return []
    known = [bin_.bias for bin_ in result.bins if not math.isnan(bin_.bias.low)]
    clear = sum(bias.low > 0 or bias.high < 0 for bias in known)
    chance = len(known) * (1.0 - result.interval.level)
    count = format_count(len(known), "bin")
    clearly = (
        f"In {clear} of {count} the confidence interval of the bias excludes 0; chance alone "
        f"would do that in about {chance:.2g}."
    )
    lines = [clearly] if known else []
    if any(bin_.n < FEW_CLUSTERS for bin_ in result.bins):
        lines.append(f"Intervals of a bin with fewer than {FEW_CLUSTERS} items are unsure.")
    return lines


def _describe_trend(result: ResidualAnalysis) -> str:
    trend = result.trend
    if math.isnan(trend.value):
        return f"Whether the spread changes with the prediction is undefined: {trend.note}."
    reach = format_estimate_interval(trend)
    found = f"rank correlation {format_number(trend.value)}" + (f" ({reach})" if reach else "")
    if not reach:
        return f"Spread and prediction: {found}."
    if trend.low <= 0.0 <= trend.high:
        return f"There is no sign that the spread changes with the prediction: {found}."
    verb = "grows" if trend.value > 0 else "falls"
    slightly = " slightly" if abs(trend.value) < SLIGHT_CORRELATION else ""
    first = format_number(result.bins[0].spread)
    highest = format_with_unit(result.bins[-1].spread, result.unit)
    ends = f"from {first} in the lowest bin to {highest} in the highest"
    return f"The spread {verb}{slightly} with the prediction: {found}; {ends}."


def _list_feature_blocks(result: ResidualAnalysis) -> list[str | Grid]:
    if not result.features:
        return []
    clear = [feature for feature in result.features if feature.beyond_chance]
    blocks: list[str | Grid] = [*result.get_table("feature").grids(), _describe_explained(clear)]
    for feature in clear[:MOST_FEATURES]:
        blocks += result.get_table(f"bin_{feature.name}").grids()
        more = len(feature.bins) - MOST_SHOWN_BINS
        blocks += [f"{more:,} more bins are in the JSON report."] if more > 0 else []
    return blocks


def _describe_explained(clear: list[FeatureResiduals]) -> str:
    if not clear:
        return "No feature explains more of the squared error than chance would."
    first = clear[0]
    more = f", then {', '.join(feature.name for feature in clear[1:])}" if clear[1:] else ""
    return (
        f"The bias depends most on {first.name}{more}: its bins explain "
        f"{_format_percent(first.explained)} of the squared error, where chance explains about "
        f"{_format_percent(first.by_chance)} and rarely more than {_format_percent(first.limit)}. "
        "Shares of several features do not add up."
    )


def _list_largest_blocks(result: ResidualAnalysis) -> list[str | Grid]:
    if not result.largest:
        return []
    count, last = len(result.largest), result.largest[-1]
    if math.isnan(last.cumulative):
        return ["There are no errors: every prediction is its target."]
    which = f"The {count:,} largest of {result.summary.n:,} errors make"
    which = f"The largest of {result.summary.n:,} errors makes" if count == 1 else which
    said = f"{which} {_format_percent(last.cumulative)} of the squared error."
    return [said, *result.get_table("largest").grids()]


# --- charts --------------------------------------------------------------------------------------


def _chart_explained(features: Sequence[FeatureResiduals]) -> Chart:
    """Return what share of the squared error each feature explains, beside chance."""
    marks: list[Mark] = []
    for x in features:
        share = f"{x.name}: {format_percent(x.explained)} of the squared error"
        chance = f"{format_percent(x.by_chance)} by chance, rarely above {format_percent(x.limit)}"
        detail = f"{share}, {chance}"
        marks += [
            Bar(x.explained, x.name, series=EXPLAINED, detail=detail),
            Point(x.by_chance, x.name, series=BY_CHANCE, detail=detail),
            Point(x.limit, x.name, series=LIMIT, detail=detail),
        ]
    return Chart(
        "explained_errors",
        "Squared error that features explain",
        "The share of the squared error that the biases in the bins of a feature make up, "
        "beside the one that shuffled errors would, on average and at most.",
        Axis("share of the squared error", low=0.0),
        Axis("feature", "ordered", tuple(x.name for x in features)),
        (Panel(tuple(marks)),),
        series=(EXPLAINED, BY_CHANCE, LIMIT),
    )


def _make_distinct(names: Iterable[str]) -> list[str]:
    """Return names of bins, which rounding may have made alike, with a number where it has."""
    found: dict[str, None] = {}
    for name in names:
        distinct, k = name, 1
        while distinct in found:
            k += 1
            distinct = f"{name} ({k})"
        found[distinct] = None
    return list(found)
