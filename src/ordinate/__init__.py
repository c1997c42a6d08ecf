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
    from ordinate.metrics import Metric, metric
    from ordinate.metrics import all_metrics as metrics
    from ordinate.scale import Scale
    from ordinate.summary import Confusion

# Where each public name lives; it is imported when somebody asks for it.
_HOMES = {
    "Confusion": ("ordinate.summary", "Confusion"),
    "Evaluation": ("ordinate.evaluate", "Evaluation"),
    "Metric": ("ordinate.metrics", "Metric"),
    "OrdinateError": ("ordinate.errors", "OrdinateError"),
    "Scale": ("ordinate.scale", "Scale"),
    "cefr_classification_report": ("ordinate.evaluate", "cefr_classification_report"),
    "classification_report": ("ordinate.evaluate", "classification_report"),
    "evaluate": ("ordinate.evaluate", "evaluate"),
    "metric": ("ordinate.metrics", "metric"),
    "metrics": ("ordinate.metrics", "all_metrics"),
    "score": ("ordinate.evaluate", "score"),
}

__all__ = [
    "Confusion",
    "Evaluation",
    "Metric",
    "OrdinateError",
    "Scale",
    "cefr_classification_report",
    "classification_report",
    "evaluate",
    "metric",
    "metrics",
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
