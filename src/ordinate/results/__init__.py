"""Results: what a system is worth, beside what it must beat."""

from ordinate.results.classification import cefr_classification_report, classification_report
from ordinate.results.evaluation import (
    DEFAULT_METRICS,
    Evaluation,
    Origin,
    evaluate,
    needs_probabilities,
    score,
    select_metrics,
    split_metrics_by_kind,
)

__all__ = [
    "DEFAULT_METRICS",
    "Evaluation",
    "Origin",
    "cefr_classification_report",
    "classification_report",
    "evaluate",
    "needs_probabilities",
    "score",
    "select_metrics",
    "split_metrics_by_kind",
]
