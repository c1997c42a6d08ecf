"""What we measure: pure functions from a summary to a number, in one catalogue."""

# The catalogue lists the families in this order.
# isort: off
from ordinate.metrics import closeness, agreement, distance, ranking, per_level, clustering, path

# isort: on
from ordinate.metrics.catalogue import (
    METRIC_KINDS,
    Metric,
    find_metric,
    get_summary_type,
    list_metrics,
    metric,
    split_expressions,
)

FAMILIES = (closeness, agreement, distance, ranking, per_level, clustering, path)

__all__ = [
    "FAMILIES",
    "METRIC_KINDS",
    "Metric",
    "find_metric",
    "get_summary_type",
    "list_metrics",
    "metric",
    "split_expressions",
]
