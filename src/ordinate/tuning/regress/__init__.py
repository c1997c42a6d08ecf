"""The regression task: table, splits, tuning, blends, prediction intervals, analysis."""

from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import Split, split_by_group, split_by_shift, split_table
from ordinate.tuning.regress.table import Table, make_table, read_table
from ordinate.tuning.regress.trained_model import (
    RegressionModel,
    load_regression_model,
    predict_regression,
)
from ordinate.tuning.regress.tuning import tune_regression, tune_table
from ordinate.tuning.search.tuning_result import TuningResult

__all__ = [
    "RegressionModel",
    "Settings",
    "Split",
    "Table",
    "TuningResult",
    "load_regression_model",
    "make_table",
    "predict_regression",
    "read_table",
    "split_by_group",
    "split_by_shift",
    "split_table",
    "tune_regression",
    "tune_table",
]
