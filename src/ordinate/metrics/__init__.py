"""What we measure: pure functions from a summary to a number, in one catalogue."""

from ordinate.metrics import (
    closeness,  # noqa: F401 - imported so that its metrics are declared; so are all below
)
from ordinate.metrics import agreement, clustering, distance, path, per_level, ranking  # noqa: F401
from ordinate.metrics.catalogue import Metric, all_metrics, find, metric, split_expressions

__all__ = ["Metric", "all_metrics", "find", "metric", "split_expressions"]
