"""What we measure: pure functions from a summary to a number, in one catalogue."""

# isort: off - the catalogue lists the families in this order
from ordinate.metrics import agreement, closeness, clustering, distance, path, per_level, ranking

# isort: on
from ordinate.metrics.catalogue import Metric, all_metrics, find, metric, split_expressions

FAMILIES = (closeness, agreement, distance, ranking, per_level, clustering, path)

__all__ = ["FAMILIES", "Metric", "all_metrics", "find", "metric", "split_expressions"]
