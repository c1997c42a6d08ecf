"""Decoding in charts: both decision rules on each metric, and how often they give each level."""

from ordinate.render.charts import Chart
from ordinate.results.decoding import ARGMAX, DECODED, Decoding
from ordinate.results.level_shares_charts import chart_level_shares
from ordinate.results.metric_strips import MetricStrip, MetricStrips


def chart_decoding(result: Decoding) -> list[Chart]:
    """Return the views of decoded levels beside argmax."""
    return [
        *chart_gains(result),
        *chart_level_shares(result.scale.names, result.compute_level_shares()),
    ]


def chart_gains(result: Decoding) -> list[Chart]:
    """Return each metric of both decision rules, on an axis of its own."""
    compared = result.comparison
    if compared is None:
        return []
    strips = [
        MetricStrip(
            board.metric,
            board.get_standing(DECODED).estimate,
            {ARGMAX: board.get_standing(ARGMAX).estimate},
        )
        for board in compared.leaderboards.values()
    ]
    level = compared.settings.level
    return MetricStrips(strips, level, DECODED, in_rows=True).make_charts(
        f"Each metric of the levels decoded for {result.metric} and of the most probable ones, "
        "with confidence intervals, on an axis of its own.",
        "decoding",
        "Decoded levels beside argmax",
    )
