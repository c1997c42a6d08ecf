"""What we measure: pure functions from a summary to a number, in one catalogue."""

# The catalogue lists the families in this order.
# isort: off
from ordinate.metrics import closeness, agreement, distance, ranking, per_level, clustering, path
from ordinate.metrics import proper, calibration, regression

# isort: on
from ordinate.metrics.catalogue import Metric, all_metrics, find, metric, split_expressions

FAMILIES = (closeness, agreement, distance, ranking, per_level, clustering, path)
OF_PROBABILITIES, OF_VALUES = (proper, calibration), (regression,)

__all__ = [
    "FAMILIES",
    "OF_PROBABILITIES",
    "Metric",
    "all_metrics",
    "find",
    "metric",
    "split_expressions",
]
