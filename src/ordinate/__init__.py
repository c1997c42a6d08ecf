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
    from ordinate.inference import ConfidenceIntervals, Estimate
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
    from ordinate.results.recalibration import RecalibrationEvaluation
    from ordinate.results.regression import (
        RegressionEvaluation,
        evaluate_regression,
        regression_report,
    )
    from ordinate.results.regression_comparison import compare_regression
    from ordinate.results.sample_size import SampleSizePlan, power
    from ordinate.scale import Scale
    from ordinate.summaries import ConfusionMatrix
    from ordinate.summaries.normalization import Normalization

# Where each public name lives; it is imported when somebody asks for it.
_HOMES = {
    "Calibration": ("ordinate.results.calibration", "Calibration"),
    "Comparison": ("ordinate.results.comparison", "Comparison"),
    "ConfusionMatrix": ("ordinate.summaries", "ConfusionMatrix"),
    "Estimate": ("ordinate.inference", "Estimate"),
    "Evaluation": ("ordinate.results", "Evaluation"),
    "ConfidenceIntervals": ("ordinate.inference", "ConfidenceIntervals"),
    "Metric": ("ordinate.metrics", "Metric"),
    "Normalization": ("ordinate.summaries.normalization", "Normalization"),
    "OrdinateError": ("ordinate.errors", "OrdinateError"),
    "SampleSizePlan": ("ordinate.results.sample_size", "SampleSizePlan"),
    "RecalibrationEvaluation": ("ordinate.results.recalibration", "RecalibrationEvaluation"),
    "Scale": ("ordinate.scale", "Scale"),
    "RegressionEvaluation": ("ordinate.results.regression", "RegressionEvaluation"),
    "calibration_report": ("ordinate.results.calibration_report", "calibration_report"),
    "cefr_calibration_report": ("ordinate.results.calibration_report", "cefr_calibration_report"),
    "cefr_classification_report": ("ordinate.results", "cefr_classification_report"),
    "classification_report": ("ordinate.results", "classification_report"),
    "compare": ("ordinate.results.comparison", "compare"),
    "compare_regression": ("ordinate.results.regression_comparison", "compare_regression"),
    "evaluate": ("ordinate.results", "evaluate"),
    "evaluate_regression": ("ordinate.results.regression", "evaluate_regression"),
    "list_metrics": ("ordinate.metrics", "list_metrics"),
    "metric": ("ordinate.metrics", "metric"),
    "power": ("ordinate.results.sample_size", "power"),
    "regression_report": ("ordinate.results.regression", "regression_report"),
    "score": ("ordinate.results", "score"),
}

__all__ = [
    "Calibration",
    "Comparison",
    "ConfidenceIntervals",
    "ConfusionMatrix",
    "Estimate",
    "Evaluation",
    "Metric",
    "Normalization",
    "OrdinateError",
    "RecalibrationEvaluation",
    "RegressionEvaluation",
    "SampleSizePlan",
    "Scale",
    "calibration_report",
    "cefr_calibration_report",
    "cefr_classification_report",
    "classification_report",
    "compare",
    "compare_regression",
    "evaluate",
    "evaluate_regression",
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
