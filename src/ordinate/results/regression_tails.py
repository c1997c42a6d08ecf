"""Large errors of a regression: how much hangs on a few items, and what intervals assume of them.

RMSE, R² and skill are made of squared errors, whose mean may hang on a single item. Whether the
sample holds errors as large as those to come cannot be seen from the sample: these figures show
what is known, and none of them certifies an interval.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import Estimate
from ordinate.inference.regression import (
    FEWEST_RESAMPLED_ITEMS,
    MOST_RESAMPLED_ITEMS,
    MOST_RESAMPLED_PARTS,
    SQUARED_METRICS,
    STUDENTIZED,
    count_items,
)
from ordinate.metrics import Metric, find_metric
from ordinate.render import Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import format_number, format_percent, join_names
from ordinate.results.base import Record, Serializable
from ordinate.summaries.regression import HIGHEST_ORDER, Moments, compute_bin_size

Floats = NDArray[np.float64]
WORST_SHARE = 0.01  # of the items
TAIL_SHARE, FEWEST_HILL_ITEMS = 0.05, 1_000
HEAVY_HILL_INDEX = 3.0  # below it, squared errors may have no variance
HEAVY_KURTOSIS = 6.0  # that of Laplace errors: above it, tests of squared errors hold no level
STUDIED_ITEMS = 50
# In percent, with normal, contaminated, t5 and t3 errors: docs/studies/heavy-tails.md. Lower ends
# are rounded down.
MEASURED_COVERAGE = {
    "t": ("93 to 96", "68 to 95", "88 to 95", "72 to 82"),
    "studentized": ("93 to 97", "77 to 97", "93 to 96", "88 to 91"),
}
# In percent, of RMSE with 10 and 20 clusters of unlike spread: the trial in docs/regression.md.
CLUSTER_COVERAGE = {"jackknife": "82 to 89", "t": "80 to 88", "delta": "75 to 86"}
KINDS = {  # of intervals
    "t": "Student's t ",
    "studentized": "studentised ",
    "jackknife": "jackknife ",
}
ROUNDING = 1e-9  # of a number of items
NO_ERROR_NOTE = "all errors are 0"
NO_HISTOGRAM_NOTE = "no histogram of the errors was made"
NO_COUNT_NOTE = "weights that are no counts do not say what the worst item weighs"
TITLES = {
    "worst_item_share": "squared error in the worst item",
    "worst_percent_share": "squared error in the worst 1 %",
    "rmse": "rmse",
    "rmse_without_worst": "rmse without the worst item",
    "mae": "mae",
    "kurtosis": "kurtosis N Σe⁴/(Σe²)²",
    "hill_index": "Hill index of the largest 5 %",
}
SHORT_TITLES = {
    "worst_item_share": "worst item",
    "worst_percent_share": "worst 1 %",
    "rmse": "rmse",
    "rmse_without_worst": "without it",
    "mae": "mae",
    "kurtosis": "kurtosis",
    "hill_index": "Hill",
}
UNIT_FIGURES = {"rmse", "rmse_without_worst", "mae"}
SHARE_FIGURES = ("worst_item_share", "worst_percent_share")


@dataclass(frozen=True)
class ErrorTails(Serializable):
    """How much of the squared error is in a few items, RMSE with and without the worst, and MAE.

    Integer weights are counts of items. Of other weights the worst 1 % is that of the weight, and
    the worst item is not known. What is undefined is nan, and `undefined` has the reason by name.

    >>> tails = compute_tails(Moments.of([0.0] * 5, [1.0, 1.0, 1.0, 1.0, 4.0], histogram=True))
    >>> tails.worst_item_share, tails.rmse, tails.rmse_without_worst
    (0.8, 2.0, 1.0)
    """

    worst_item_share: float
    worst_percent_share: float  # at least one item; from the histogram
    rmse: float
    rmse_without_worst: float
    mae: float
    kurtosis: float  # 3 for normal errors without bias
    hill_index: float  # about the highest power of |e| that has a mean; from the histogram
    undefined: Mapping[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """All figures by name."""
        return {x.name: getattr(self, x.name) for x in fields(self) if x.name != "undefined"}

    @property
    def is_heavy(self) -> bool:
        """Whether the largest errors fall off so slowly that squares may have no variance."""
        return self.hill_index < HEAVY_HILL_INDEX

    @property
    def warns(self) -> bool:
        """Whether what squared errors say is said of these items alone."""
        return self.is_heavy or self.kurtosis > HEAVY_KURTOSIS

    def list_figures(self, unit: str | None) -> list[Record]:
        """Return each figure, with its title, its unit, and why it has no value."""
        return [
            {
                "metric": name,
                "figure": TITLES[name],
                "value": value,
                "shown": _format_figure(self, name),
                "unit": unit if name in UNIT_FIGURES else None,
                "note": self.undefined.get(name),
            }
            for name, value in self.figures.items()
        ]


# --- figures of a summary ------------------------------------------------------------------------


def compute_tails(moments: Moments) -> ErrorTails:
    """Return what the large errors of one summary are."""
    reasons = _explain_undefined(moments)
    figures: dict[str, Callable[[Moments], Any]] = {
        "worst_item_share": _compute_worst_item_share,
        "worst_percent_share": _compute_worst_percent_share,
        "rmse": find_metric("rmse", Moments),
        "rmse_without_worst": _compute_rmse_without_worst,
        "mae": find_metric("mae", Moments),
        "kurtosis": _compute_kurtosis,
        "hill_index": compute_hill_index,
    }
    values = {
        name: math.nan if name in reasons else float(compute(moments))
        for name, compute in figures.items()
    }
    if math.isnan(values["hill_index"]):
        reasons.setdefault("hill_index", f"{1 - TAIL_SHARE:.0%} of the errors are 0")
    return ErrorTails(**values, undefined=reasons)


def _explain_undefined(moments: Moments) -> dict[str, str]:
    """Say why figures have no value, by name, where they have none."""
    reasons = {}
    if count_items(moments) < FEWEST_HILL_ITEMS:
        reasons["hill_index"] = f"there are fewer than {FEWEST_HILL_ITEMS:,} items"
    if not moments.histogram:
        reasons |= dict.fromkeys(("worst_percent_share", "hill_index"), NO_HISTOGRAM_NOTE)
    if moments.order < HIGHEST_ORDER:
        reasons["kurtosis"] = f"moments of order {moments.order} were summed"
    if float(moments.squares) == 0.0:
        reasons |= dict.fromkeys((*SHARE_FIGURES, "kurtosis", "hill_index"), NO_ERROR_NOTE)
    if not moments.has_integer_weights:
        reasons |= dict.fromkeys(("worst_item_share", "rmse_without_worst"), NO_COUNT_NOTE)
    elif count_items(moments) <= 1.0:
        reasons["rmse_without_worst"] = "there is one item only"
    return reasons


def _compute_worst_item_share(moments: Moments) -> float:
    return min(float(moments.largest) ** 2 / float(moments.squares), 1.0)


def _compute_rmse_without_worst(moments: Moments) -> float:
    rest = float(moments.squares) - float(moments.largest) ** 2
    return math.sqrt(max(rest, 0.0) / (float(moments.total) - 1.0))


def _compute_kurtosis(moments: Moments) -> float:
    """Return the mean of e⁴ by the squared mean of e²; a bias counts as error."""
    about_zero = moments.plain.recenter_sums(moments.plain.y, np.zeros_like(moments.plain.e))
    fourth = float(about_zero.sums[0, HIGHEST_ORDER])
    return float(moments.total) * fourth / float(moments.squares) ** 2


def _compute_worst_percent_share(moments: Moments) -> float:
    """Return the share of squared error in the largest 1 % of the errors, one item at least."""
    weight, worst = WORST_SHARE * float(moments.total), 0.0
    if moments.has_integer_weights:
        weight, worst = math.ceil(weight - ROUNDING), _compute_worst_item_share(moments)
        if weight == 1:
            return worst
    sizes, above = _order_sizes(moments)
    own = np.diff(np.minimum(above, weight), prepend=0.0)
    squares = float(own @ np.minimum(sizes, float(moments.largest)) ** 2)
    return min(max(squares / float(moments.squares), worst), 1.0)


def compute_hill_index(moments: Moments) -> float:
    """Return the Hill index of the largest 5 % of the errors: one by their mean log excess.

    P(|e| > x) falls off about like x to the power of minus the index. The excess is that over the
    largest of the other errors; the index is nan where that is 0.
    """
    weight = TAIL_SHARE * float(moments.total)
    if moments.has_integer_weights:
        weight = math.floor(weight + ROUNDING)
    sizes, above = _order_sizes(moments)
    own = np.diff(np.minimum(above, weight), prepend=0.0)
    largest_other = sizes[np.argmax(above > weight + ROUNDING)]
    if largest_other == 0.0:
        return math.nan
    tail = own > 0.0
    excess = float(own[tail] @ np.log(sizes[tail] / largest_other)) / weight
    return 1.0 / excess if excess > 0.0 else math.inf


def _order_sizes(moments: Moments) -> tuple[Floats, Floats]:
    """Return the sizes of the histogram, the largest first, and the weight up to each of them."""
    bins = moments.histogram or {}
    places = sorted(bins, reverse=True)
    sizes = moments.step * np.array([compute_bin_size(place) for place in places])
    return sizes, np.cumsum([float(bins[place]) for place in places])


# --- words and grids -------------------------------------------------------------------------


def make_model_tails_grid(tails: Mapping[str, ErrorTails]) -> Grid:
    """Return the figures of several models, one system a row."""
    rows: list[tuple[Cell, ...]] = [
        (model, *(_format_figure(found, name) for name in SHORT_TITLES))
        for model, found in tails.items()
    ]
    title = "Large errors: squared error in the worst, and what is left"
    return Grid(title, ("system", *SHORT_TITLES.values()), tuple(rows))


def _format_figure(tails: ErrorTails, name: str) -> Cell:
    value = tails.figures[name]
    return format_percent(value) if name in SHARE_FIGURES else format_number(value)


def describe_undefined_tails(tails: Mapping[str, ErrorTails]) -> list[str]:
    """Say why figures have no value, where they have none."""
    found: dict[tuple[str, str], list[str]] = {}
    for model, each in tails.items():
        for name, why in each.undefined.items():
            found.setdefault((TITLES[name], why), []).append(model)
    return [
        f"No {title}{f' for {join_names(models)}' if len(models) < len(tails) else ''}: {why}."
        for (title, why), models in found.items()
    ]


def describe_assumptions(
    selected: Sequence[Metric],
    estimates: Mapping[str, Estimate],
    tails: Mapping[str, ErrorTails],
    *,
    clusters: bool = False,
) -> list[str]:
    """Say what intervals of squared errors assume, how they covered, and where that is doubtful.

    `tails` are those of each model, or of a single one, without a name.
    """
    own = {
        m.expression: estimates[m.expression].method for m in selected if m.name in SQUARED_METRICS
    }
    names = [name for name, method in own.items() if method is not None]
    if not names:
        return []
    method = STUDENTIZED if STUDENTIZED in own.values() else own[names[0]] or ""
    assumption = (
        f"{KINDS.get(method, '')}intervals of squared errors (rmse, r2 and their like) assume "
        f"independent {'clusters' if clusters else 'items'} and a sample that already holds errors "
        "as large as those to come. No figure here certifies that: a sample whose interval misses "
        "has often not met its large error yet."
    )
    describe = _describe_cluster_coverage if clusters else _describe_measured_coverage
    sentences = [assumption, describe(method)]
    heavy = [name for name, found in tails.items() if found.is_heavy]
    if heavy:
        whose = f" of {join_names(heavy)}" if any(heavy) else ""
        sentences.append(
            f"Warning: the largest errors{whose} fall off so slowly (Hill index below "
            f"{HEAVY_HILL_INDEX:g}) that squared errors may have no variance: rely on mae, and on "
            "percentiles of the errors."
        )
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def _describe_measured_coverage(method: str) -> str:
    """Say how often such intervals covered, and beside Student's those of resampled items."""
    kind = method if method == STUDENTIZED else "t"
    normal, contaminated, t5, t3 = MEASURED_COVERAGE[kind]
    text = (
        f"In a study of {STUDIED_ITEMS} items or more, nominal 95 % {KINDS[kind]}intervals covered "
        f"{normal} % with normal errors, {contaminated} % with a contaminated normal (5 % of the "
        f"errors 5 times as large), {t5} % with Student's t of 5 degrees of freedom and {t3} % "
        "with 3"
    )
    if method == STUDENTIZED:
        return f"{text}."
    normal, contaminated, t5, t3 = MEASURED_COVERAGE[STUDENTIZED]
    return (
        f"{text}; studentised ones, from resamples of single items (the default for "
        f"{FEWEST_RESAMPLED_ITEMS} to {MOST_RESAMPLED_ITEMS:,} of them, without clusters, in up to "
        f"{MOST_RESAMPLED_PARTS} subgroups or models), covered {normal}, {contaminated}, {t5} and "
        f"{t3} %."
    )


def _describe_cluster_coverage(method: str) -> str:
    """Say how often intervals of squared errors covered where clusters differ in their spread."""
    return (
        "Clusters whose errors differ in spread leave them too narrow: in a trial of 10 and 20 "
        f"such clusters, nominal 95 % {KINDS.get(method, '')}intervals of rmse covered "
        f"{CLUSTER_COVERAGE[method]} %."
    )
