"""Evaluate, compare and tune models whose outcomes are ordered.

>>> import ordinate
>>> result = ordinate.evaluate(["A1", "B1", "B2"], ["A1", "B1", "C1"], scale="cefr")
>>> round(float(result.metrics["cem_ord"]), 3)
0.871
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordinate.errors import OrdinateError
    from ordinate.inference import Estimate, Intervals
    from ordinate.metrics import Metric, list_metrics, metric
    from ordinate.results import (
        Evaluation,
        cefr_classification_report,
        classification_report,
        evaluate,
        score,
    )
    from ordinate.results.calibration import Calibration
    from ordinate.results.calibration_report import calibration_report, cefr_calibration_report
    from ordinate.results.comparison import Comparison, compare
    from ordinate.results.recalibration import Recalibrated
    from ordinate.results.regression import Values, evaluate_values, regression_report
    from ordinate.results.regression_comparison import compare_values
    from ordinate.results.sample_size import Plan, power
    from ordinate.scale import Scale
    from ordinate.summaries import Confusion
    from ordinate.summaries.normalization import Normalization

# Where each public name lives; it is imported when somebody asks for it.
_HOMES = {
    "Calibration": ("ordinate.results.calibration", "Calibration"),
    "Comparison": ("ordinate.results.comparison", "Comparison"),
    "Confusion": ("ordinate.summaries", "Confusion"),
    "Estimate": ("ordinate.inference", "Estimate"),
    "Evaluation": ("ordinate.results", "Evaluation"),
    "Intervals": ("ordinate.inference", "Intervals"),
    "Metric": ("ordinate.metrics", "Metric"),
    "Normalization": ("ordinate.summaries.normalization", "Normalization"),
    "OrdinateError": ("ordinate.errors", "OrdinateError"),
    "Plan": ("ordinate.results.sample_size", "Plan"),
    "Recalibrated": ("ordinate.results.recalibration", "Recalibrated"),
    "Scale": ("ordinate.scale", "Scale"),
    "Values": ("ordinate.results.regression", "Values"),
    "calibration_report": ("ordinate.results.calibration_report", "calibration_report"),
    "cefr_calibration_report": ("ordinate.results.calibration_report", "cefr_calibration_report"),
    "cefr_classification_report": ("ordinate.results", "cefr_classification_report"),
    "classification_report": ("ordinate.results", "classification_report"),
    "compare": ("ordinate.results.comparison", "compare"),
    "compare_values": ("ordinate.results.regression_comparison", "compare_values"),
    "evaluate": ("ordinate.results", "evaluate"),
    "evaluate_values": ("ordinate.results.regression", "evaluate_values"),
    "list_metrics": ("ordinate.metrics", "list_metrics"),
    "metric": ("ordinate.metrics", "metric"),
    "power": ("ordinate.results.sample_size", "power"),
    "regression_report": ("ordinate.results.regression", "regression_report"),
    "score": ("ordinate.results", "score"),
}

__all__ = [
    "Calibration",
    "Comparison",
    "Confusion",
    "Estimate",
    "Evaluation",
    "Intervals",
    "Metric",
    "Normalization",
    "OrdinateError",
    "Plan",
    "Recalibrated",
    "Scale",
    "Values",
    "calibration_report",
    "cefr_calibration_report",
    "cefr_classification_report",
    "classification_report",
    "compare",
    "compare_values",
    "evaluate",
    "evaluate_values",
    "list_metrics",
    "metric",
    "power",
    "regression_report",
    "score",
]


# Packages with public names of their own, reached after `import ordinate`.
_PACKAGES = ("classify", "inference", "meta", "metrics", "postprocess", "regress", "summaries")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"ordinate.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ordinate' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
