"""Results: what a system is worth, beside what it must beat."""

from ordinate.results.classification import cefr_classification_report, classification_report
from ordinate.results.evaluation import (
    DEFAULT_METRICS,
    Evaluation,
    Origin,
    by_kind,
    chosen,
    evaluate,
    needs_probabilities,
    score,
)

__all__ = [
    "DEFAULT_METRICS",
    "Evaluation",
    "Origin",
    "by_kind",
    "cefr_classification_report",
    "chosen",
    "classification_report",
    "evaluate",
    "needs_probabilities",
    "score",
]
