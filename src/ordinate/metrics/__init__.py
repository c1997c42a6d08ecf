"""What we measure: pure functions from a summary to a number, in one catalogue."""

# The catalogue lists the families in this order.
# isort: off
from ordinate.metrics import closeness, agreement, distance, ranking, per_level, clustering, path
from ordinate.metrics import proper, calibration, regression, predictive

# isort: on
from ordinate.metrics.catalogue import Metric, all_metrics, find, metric, split_expressions
from ordinate.summary import Confusion
from ordinate.summary.bounds import Bounds
from ordinate.summary.ensemble import Ensemble
from ordinate.summary.moments import Moments
from ordinate.summary.reliability import Reliability

FAMILIES = (closeness, agreement, distance, ranking, per_level, clustering, path)
OTHERS = (proper, calibration, regression, predictive)
KINDS = {  # of what metrics are functions, by the name that people use
    "labels": Confusion,
    "probabilities": Reliability,
    "values": Moments,
    "intervals": Bounds,
    "ensembles": Ensemble,
}

__all__ = [
    "FAMILIES",
    "KINDS",
    "OTHERS",
    "Metric",
    "all_metrics",
    "find",
    "metric",
    "split_expressions",
]
