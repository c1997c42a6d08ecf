"""What we measure: pure functions from a summary to a number, in one catalogue."""

# The catalogue lists the families in this order.
# isort: off
from ordinate.metrics import closeness, agreement, distance, ranking, per_level, clustering
from ordinate.metrics import classification_index

# isort: on
from ordinate.metrics.catalogue import (
    SUMMARY_TYPES,
    Metric,
    find_metric,
    get_summary_type,
    list_metrics,
    metric,
    split_expressions,
)

FAMILIES = (closeness, agreement, distance, ranking, per_level, clustering, classification_index)

__all__ = [
    "FAMILIES",
    "SUMMARY_TYPES",
    "Metric",
    "find_metric",
    "get_summary_type",
    "list_metrics",
    "metric",
    "split_expressions",
]
