"""What we measure: pure functions from a summary to a number, in one catalogue."""

# The catalogue lists the families in this order.
# isort: off
from ordinate.metrics import closeness, agreement, distance, ranking, per_level, clustering, path

# isort: on
from ordinate.metrics.catalogue import (
    KINDS,
    Metric,
    find,
    list_metrics,
    metric,
    split_expressions,
    summary_of,
)

FAMILIES = (closeness, agreement, distance, ranking, per_level, clustering, path)

__all__ = [
    "FAMILIES",
    "KINDS",
    "Metric",
    "find",
    "list_metrics",
    "metric",
    "split_expressions",
    "summary_of",
]
