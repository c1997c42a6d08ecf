"""A comparison of regression models in charts: metrics of the models, and their differences."""

import math
from typing import TYPE_CHECKING

from ordinate.metrics import Metric
from ordinate.render.charts import Axis, Chart
from ordinate.render.estimates import format_number
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.results.base import BETTER_VALUES
from ordinate.results.comparison_charts import PairChart
from ordinate.results.joint_comparison import PairDifference
from ordinate.results.regression import get_metric_unit

if TYPE_CHECKING:
    from ordinate.results.regression_comparison import RegressionComparison

MODEL, ADJUSTED = "model", "p-values adjusted for all pairs"


def chart_regression_comparison(result: "RegressionComparison") -> list[Chart]:
    """Return the views of a comparison of regression models."""
    paired = [_collect_pairs(result, metric) for metric in result.selected]
    return [
        *(chart for metric in result.selected for chart in _chart_models(result, metric)),
        *(pairs.chart_differences() for pairs in paired if pairs.pairs),
        *(pairs.chart_significance() for pairs in paired if pairs.is_matrix),
    ]


def _chart_models(result: "RegressionComparison", metric: Metric) -> list[Chart]:
    """Return the models with their intervals, best first."""
    name = metric.expression
    rows = [ForestRow(model, result.models[model][name]) for model in _rank_models(result, metric)]
    better = BETTER_VALUES[metric.direction]
    axis = Axis(f"{name}, {better} is better", unit=get_metric_unit(metric, result.unit))
    plot = ForestPlot(rows, axis, _get_level(result), MODEL, format_value=format_number)
    if not plot.shown:
        return []
    about = "Models, best first, each with its confidence interval."
    return [plot.make_chart("leaderboard", f"Leaderboard by {name}", about, variant=name)]


def _rank_models(result: "RegressionComparison", metric: Metric) -> list[str]:
    merits = {x: float(metric.merit(y[metric.expression].value)) for x, y in result.models.items()}
    known = [model for model, merit in merits.items() if not math.isnan(merit)]
    return sorted(known, key=lambda model: -merits[model])


def _collect_pairs(result: "RegressionComparison", metric: Metric) -> PairChart:
    pairs = [
        PairDifference(
            first=pair.first,
            second=pair.second,
            difference=pair.estimate.value,
            low=pair.estimate.low,
            high=pair.estimate.high,
            p=pair.p,
            p_adjusted=pair.p_adjusted,
            verdict=pair.verdict,
        )
        for pair in result.differences
        if pair.metric == metric.expression
    ]
    unit = get_metric_unit(metric, result.unit)
    models, level = _rank_models(result, metric), _get_level(result)
    return PairChart(metric, models, pairs, level, ADJUSTED, MODEL, unit, format_number)


def _get_level(result: "RegressionComparison") -> float | None:
    return result.level if result.has_intervals else None
