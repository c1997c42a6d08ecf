"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""

from ordinate.meta.advice import MetricAdvice, advise
from ordinate.meta.meta_evaluation import evaluate_metrics
from ordinate.meta.meta_result import MetaEvaluation
from ordinate.meta.properties_search import check_properties
from ordinate.meta.property_verdicts import PropertyVerdicts, find_properties

__all__ = [
    "MetaEvaluation",
    "MetricAdvice",
    "PropertyVerdicts",
    "advise",
    "check_properties",
    "evaluate_metrics",
    "find_properties",
]
