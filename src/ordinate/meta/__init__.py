"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""

from ordinate.meta.meta_evaluation import evaluate_metrics
from ordinate.meta.properties_search import check_properties

__all__ = ["check_properties", "evaluate_metrics"]
