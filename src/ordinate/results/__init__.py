"""Results: what a system is worth, beside what it must beat."""

from ordinate.results.arguments import (
    DEFAULT_METRICS,
    needs_probabilities,
    select_metrics,
    split_metrics_by_summary,
)
from ordinate.results.base import Origin, Result
from ordinate.results.evaluation import Evaluation
from ordinate.results.label_evaluation import evaluate, score

__all__ = [
    "DEFAULT_METRICS",
    "Evaluation",
    "Origin",
    "Result",
    "evaluate",
    "needs_probabilities",
    "score",
    "select_metrics",
    "split_metrics_by_summary",
]
