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
    from ordinate.integrations.sklearn import scorer as scorer
    from ordinate.integrations.sklearn import scorers as scorers
    from ordinate.meta import MetricAdvice, advise
    from ordinate.metrics import Metric, list_metrics, metric
    from ordinate.readers.columns import Files
    from ordinate.readers.databases import Query
    from ordinate.results import Evaluation, evaluate, score
    from ordinate.results.calibration import Calibration
    from ordinate.results.case_averages import CaseAverages
    from ordinate.results.case_scales import evaluate_cases
    from ordinate.results.comparison import Comparison, compare
    from ordinate.results.decoding import decode
    from ordinate.results.label_evaluation import evaluate_sql
    from ordinate.results.recalibration import RecalibrationEvaluation
    from ordinate.results.regression import RegressionEvaluation
    from ordinate.results.regression_sources import evaluate_regression, regression_report
    from ordinate.results.sample_size import SampleSizePlan, power
    from ordinate.results.text_reports import (
        calibration_report,
        cefr_calibration_report,
        cefr_classification_report,
        classification_report,
    )
    from ordinate.results.verification import Verification, verify
    from ordinate.scale import Scale
    from ordinate.summaries import ConfusionMatrix
    from ordinate.summaries.accumulator import Accumulator
    from ordinate.summaries.normalization import Normalization
    from ordinate.tuning.classify import predict, rank, tune
    from ordinate.tuning.regress import predict_regression, tune_regression
    from ordinate.tuning.search.analysis import analyze_search
    from ordinate.tuning.search.tuning_result import TuningResult

# Where each public name lives; it is imported when somebody asks for it.
_HOMES = {
    "Accumulator": "ordinate.summaries.accumulator",
    "Calibration": "ordinate.results.calibration",
    "CaseAverages": "ordinate.results.case_averages",
    "Comparison": "ordinate.results.comparison",
    "ConfidenceIntervals": "ordinate.inference",
    "ConfusionMatrix": "ordinate.summaries",
    "Estimate": "ordinate.inference",
    "Evaluation": "ordinate.results",
    "Files": "ordinate.readers.columns",
    "Metric": "ordinate.metrics",
    "MetricAdvice": "ordinate.meta",
    "Normalization": "ordinate.summaries.normalization",
    "OrdinateError": "ordinate.errors",
    "Query": "ordinate.readers.databases",
    "RecalibrationEvaluation": "ordinate.results.recalibration",
    "RegressionEvaluation": "ordinate.results.regression",
    "SampleSizePlan": "ordinate.results.sample_size",
    "Scale": "ordinate.scale",
    "TuningResult": "ordinate.tuning.search.tuning_result",
    "Verification": "ordinate.results.verification",
    "advise": "ordinate.meta",
    "analyze_search": "ordinate.tuning.search.analysis",
    "calibration_report": "ordinate.results.text_reports",
    "cefr_calibration_report": "ordinate.results.text_reports",
    "cefr_classification_report": "ordinate.results.text_reports",
    "classification_report": "ordinate.results.text_reports",
    "compare": "ordinate.results.comparison",
    "decode": "ordinate.results.decoding",
    "evaluate": "ordinate.results",
    "evaluate_cases": "ordinate.results.case_scales",
    "evaluate_sql": "ordinate.results.label_evaluation",
    "evaluate_regression": "ordinate.results.regression_sources",
    "list_metrics": "ordinate.metrics",
    "metric": "ordinate.metrics",
    "power": "ordinate.results.sample_size",
    "predict": "ordinate.tuning.classify",
    "predict_regression": "ordinate.tuning.regress",
    "rank": "ordinate.tuning.classify",
    "regression_report": "ordinate.results.regression_sources",
    "score": "ordinate.results",
    "scorer": "ordinate.integrations.sklearn",
    "scorers": "ordinate.integrations.sklearn",
    "tune": "ordinate.tuning.classify",
    "tune_regression": "ordinate.tuning.regress",
    "verify": "ordinate.results.verification",
}

# `scorer` and `scorers` are not among them: `from ordinate import *` needs no scikit-learn.
__all__ = [
    "Accumulator",
    "Calibration",
    "CaseAverages",
    "Comparison",
    "ConfidenceIntervals",
    "ConfusionMatrix",
    "Estimate",
    "Evaluation",
    "Files",
    "Metric",
    "MetricAdvice",
    "Normalization",
    "OrdinateError",
    "Query",
    "RecalibrationEvaluation",
    "RegressionEvaluation",
    "SampleSizePlan",
    "Scale",
    "TuningResult",
    "Verification",
    "advise",
    "analyze_search",
    "calibration_report",
    "cefr_calibration_report",
    "cefr_classification_report",
    "classification_report",
    "compare",
    "decode",
    "evaluate",
    "evaluate_cases",
    "evaluate_regression",
    "evaluate_sql",
    "list_metrics",
    "metric",
    "power",
    "predict",
    "predict_regression",
    "rank",
    "regression_report",
    "score",
    "tune",
    "tune_regression",
    "verify",
]


# Packages and modules with public names of their own, reached after `import ordinate`.
PACKAGES = (
    "errors",
    "examples",
    "inference",
    "integrations",
    "meta",
    "metrics",
    "postprocess",
    "readers",
    "render",
    "results",
    "scale",
    "schemas",
    "summaries",
    "tuning",
)


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return import_module(f"ordinate.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ordinate' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *_HOMES, *PACKAGES})
