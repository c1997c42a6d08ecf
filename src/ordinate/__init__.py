"""Evaluate, compare and tune models whose outcomes are ordered.

>>> import ordinate
>>> result = ordinate.evaluate(["A1", "B1", "B2"], ["A1", "B1", "C1"], scale="cefr")
>>> round(float(result.metrics["cem_ord"]), 3)
0.871
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordinate.errors import OrdinateError
    from ordinate.evaluate import (
        Evaluation,
        cefr_classification_report,
        classification_report,
        evaluate,
        score,
    )
    from ordinate.evaluate.calibration import Calibration
    from ordinate.evaluate.calibration_report import calibration_report, cefr_calibration_report
    from ordinate.evaluate.compare import Comparison, compare
    from ordinate.evaluate.power import Plan, power
    from ordinate.evaluate.recalibration import Recalibrated
    from ordinate.evaluate.value_comparison import compare_values
    from ordinate.evaluate.values import Values, evaluate_values, regression_report
    from ordinate.inference import Estimate, Intervals
    from ordinate.metrics import Metric, metric
    from ordinate.metrics import all_metrics as metrics
    from ordinate.scale import Scale
    from ordinate.summary import Confusion
    from ordinate.summary.normalization import Normalization

# Where each public name lives; it is imported when somebody asks for it.
_HOMES = {
    "Calibration": ("ordinate.evaluate.calibration", "Calibration"),
    "Comparison": ("ordinate.evaluate.compare", "Comparison"),
    "Confusion": ("ordinate.summary", "Confusion"),
    "Estimate": ("ordinate.inference", "Estimate"),
    "Evaluation": ("ordinate.evaluate", "Evaluation"),
    "Intervals": ("ordinate.inference", "Intervals"),
    "Metric": ("ordinate.metrics", "Metric"),
    "Normalization": ("ordinate.summary.normalization", "Normalization"),
    "OrdinateError": ("ordinate.errors", "OrdinateError"),
    "Plan": ("ordinate.evaluate.power", "Plan"),
    "Recalibrated": ("ordinate.evaluate.recalibration", "Recalibrated"),
    "Scale": ("ordinate.scale", "Scale"),
    "Values": ("ordinate.evaluate.values", "Values"),
    "calibration_report": ("ordinate.evaluate.calibration_report", "calibration_report"),
    "cefr_calibration_report": ("ordinate.evaluate.calibration_report", "cefr_calibration_report"),
    "cefr_classification_report": ("ordinate.evaluate", "cefr_classification_report"),
    "classification_report": ("ordinate.evaluate", "classification_report"),
    "compare": ("ordinate.evaluate.compare", "compare"),
    "compare_values": ("ordinate.evaluate.value_comparison", "compare_values"),
    "evaluate": ("ordinate.evaluate", "evaluate"),
    "evaluate_values": ("ordinate.evaluate.values", "evaluate_values"),
    "metric": ("ordinate.metrics", "metric"),
    "metrics": ("ordinate.metrics", "all_metrics"),
    "power": ("ordinate.evaluate.power", "power"),
    "regression_report": ("ordinate.evaluate.values", "regression_report"),
    "score": ("ordinate.evaluate", "score"),
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
    "metric",
    "metrics",
    "power",
    "regression_report",
    "score",
]


class _Front(ModuleType):
    """The package as people see it: `ordinate.evaluate` is the function, not the folder."""

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'ordinate' has no attribute {name!r}")
        module, attribute = _HOMES[name]
        return getattr(import_module(module), attribute)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):  # else: an import of the folder
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *__all__]


sys.modules[__name__].__class__ = _Front
