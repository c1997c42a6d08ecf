"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""

from ordinate.meta.meta_evaluation import evaluate_metrics
from ordinate.meta.meta_result import MetaEvaluation
from ordinate.meta.properties_search import check_properties
from ordinate.meta.property_verdicts import PropertyVerdicts

__all__ = ["MetaEvaluation", "PropertyVerdicts", "check_properties", "evaluate_metrics"]
