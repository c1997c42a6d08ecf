"""Data frames of pandas and Polars with `frame.ordinate.evaluate(…)`, once it is asked for."""

import sys
from typing import Any

from ordinate.errors import MissingExtra
from ordinate.results import Evaluation, evaluate
from ordinate.results.comparison import Comparison, compare
from ordinate.results.regression import RegressionEvaluation
from ordinate.results.regression_comparison import RegressionComparison
from ordinate.results.regression_sources import evaluate_regression

__all__ = ["FrameNamespace", "register_frames"]

NAME = "ordinate"


class FrameNamespace:
    """What Ordinate does with a frame: columns are named, everything else is as in the functions.

    >>> frame = {"level": ["A1", "B1"], "guess": ["A1", "B2"]}
    >>> FrameNamespace(frame).evaluate("level", "guess").metrics["mae"].value
    0.5
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def evaluate(self, gold: Any, predicted: Any = None, **options: Any) -> Evaluation:
        """Evaluate predicted levels against gold levels: `ordinate.evaluate`."""
        return evaluate(self._frame, gold=gold, predicted=predicted, **options)

    def compare(
        self, gold: Any = None, systems: Any = None, **options: Any
    ) -> Comparison | RegressionComparison:
        """Compare systems, each a column of predictions: `ordinate.compare`."""
        return compare(self._frame, systems, gold=gold, **options)

    def evaluate_regression(
        self, target: Any, predicted: Any, **options: Any
    ) -> RegressionEvaluation:
        """Evaluate predictions of a target: `ordinate.evaluate_regression`."""
        return evaluate_regression(self._frame, target=target, predicted=predicted, **options)


def register_frames() -> list[str]:
    """Give frames the namespace `ordinate`, and return the libraries whose frames have it.

    They are those that the program has imported: pandas, and Polars with its lazy frames.
    """
    done = [name for name, register in _REGISTRIES.items() if name in sys.modules and register()]
    if not done:
        raise MissingExtra("There are no frames yet: import pandas or polars first.")
    return done


def _register_pandas() -> bool:
    import pandas as pd  # noqa: PLC0415 - who has no frames of it needs it not

    if not hasattr(pd.DataFrame, NAME):
        pd.api.extensions.register_dataframe_accessor(NAME)(FrameNamespace)
    return True


def _register_polars() -> bool:
    import polars as pl  # noqa: PLC0415 - who has no frames of it needs it not

    if not hasattr(pl.DataFrame, NAME):
        pl.api.register_dataframe_namespace(NAME)(FrameNamespace)
        pl.api.register_lazyframe_namespace(NAME)(FrameNamespace)
    return True


_REGISTRIES = {"pandas": _register_pandas, "polars": _register_polars}
