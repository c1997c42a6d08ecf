"""Results: what a system is worth, beside what it must beat."""

from ordinate.evaluate.classification import cefr_classification_report, classification_report
from ordinate.evaluate.compare import Comparison, compare
from ordinate.evaluate.evaluation import (
    DEFAULT_METRICS,
    Evaluation,
    Origin,
    chosen,
    evaluate,
    score,
)
from ordinate.evaluate.power import Plan, power

__all__ = [
    "DEFAULT_METRICS",
    "Comparison",
    "Evaluation",
    "Origin",
    "Plan",
    "cefr_classification_report",
    "chosen",
    "classification_report",
    "compare",
    "evaluate",
    "power",
    "score",
]
