"""What is particular about the report of tuning a regression model."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinate.inference.distributions import FEW_CLUSTERS
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.render import Grid
from ordinate.render.estimates import (
    format_estimate,
    format_interval_head,
    format_number,
    format_with_unit,
)
from ordinate.render.tables import NAME, Column, Estimates, Table
from ordinate.results.base import Record
from ordinate.results.regression import RegressionEvaluation
from ordinate.results.regression_sources import evaluate_regression
from ordinate.results.report_parts import ReportPart
from ordinate.results.residuals import analyse_residuals
from ordinate.tuning.regress.row_checks import LeakageReport
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.search.search_charts import LEVEL, WINNER
from ordinate.tuning.search.tuning_result import VALUE, HeldOutResult, TaskReport, TuningResult

MAE = Estimates(format_number, format_estimate, joined=format_estimate, prefix="mae_")
UNITLESS = ("interval_coverage",)  # all other measures of intervals have the unit of the target
EARLY_STOPPING_NOTE = ", a tenth of which only tells boosting and networks when to stop"


@dataclass(frozen=True)
class TableSummary:
    """What was learned from, and which rows were kept for what."""

    path: str | None
    target: str
    unit: str | None
    features: tuple[str, ...]
    n: int
    split: str
    sizes: dict[str, int]
    groups: int | None = None
    notes: tuple[str, ...] = ()
    apart: bool = False  # whether validation rows are for the intervals alone
    leaks: LeakageReport | None = None

    def to_dict(self) -> Record:
        """Return plain values."""
        return {
            "path": self.path,
            "target": self.target,
            "unit": self.unit,
            "features": list(self.features),
            "n": self.n,
            "split": self.split,
            "rows": self.sizes,
            "groups": self.groups,
            "validation_rows_apart": self.apart,
            "leaks": None if self.leaks is None else self.leaks.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class RegressionReport(TaskReport):
    """Errors in the unit of the target, beside the baseline, and prediction intervals."""

    settings: Settings
    unit: str | None = None

    task = "tune_regression"
    pipeline_tag = "tabular-regression"
    metric = "RMSE"
    direction = "minimize"

    @property
    def basis(self) -> str:
        """By what models are evaluated and selected."""
        return "by cross-validation" if self.settings.folds else "on the validation rows"

    def convert_evaluation(self, evaluation: RegressionEvaluation) -> Record:
        """Return plain values, in which baselines and measures of intervals have their unit."""
        found = evaluation.to_dict()
        found["baselines"] = [one | {"unit": evaluation.unit} for one in found["baselines"]]
        found["prediction_intervals"] = {
            name: one | {"unit": None if name in UNITLESS else self.unit}
            for name, one in found["prediction_intervals"].items()
        }
        return found

    def flatten_evaluation(self, evaluation: RegressionEvaluation) -> list[Record]:
        """Return flat records of the metrics."""
        return evaluation.rows()

    def get_estimate(self, evaluation: RegressionEvaluation) -> Estimate:
        """Return the RMSE with its confidence interval."""
        return evaluation.metrics["rmse"]

    def list_measures(self, result: TuningResult) -> list[tuple[str, str, Estimate, str | None]]:
        """Return the errors that matter most, each with its interval."""
        winner = self.get_estimate(result.winner.evaluation)
        lowest = min(result.finalists, key=lambda one: one.value)
        measures = [
            ("validation_rmse", "held-out RMSE of the winner", winner, self.unit),
            (
                "lowest_validation_rmse",
                f"lowest held-out RMSE ({lowest.model_type})",
                self.get_estimate(lowest.evaluation),
                self.unit,
            ),
        ]
        for test in result.tests:
            usual = test.name == "test"
            before, short = ("", "") if usual else (f"{test.name}: ", f"{test.name}_")
            measures += [
                (short + key, before + title, one, self.unit if in_unit else None)
                for key, title, one, in_unit in _list_test_measures(test)
            ]
        return measures

    # --- words and tables --------------------------------------------------------------------

    def describe_weakness(self, evaluation: RegressionEvaluation) -> str:
        """Return which baseline predictions are not better than."""
        tests, baseline = evaluation.against_constant, evaluation.baselines[0]
        leading = None if tests is None else tests.leading
        if tests is None or leading is None or leading.verdict == "better":
            return ""
        name, error = ("MAE", baseline.mae) if tests.absolute else ("RMSE", baseline.rmse)
        how = "worse" if leading.verdict == "worse" else "not significantly better"
        error_in_unit = format_with_unit(error, self.unit)
        return f"by {name} {how} than always predicting the {baseline.name} ({error_in_unit})"

    def get_steadier_estimate(
        self, evaluation: RegressionEvaluation
    ) -> tuple[str, Estimate] | None:
        """Return the MAE where a few items leave the interval of the RMSE open."""
        is_open = evaluation.metrics["rmse"].is_open
        return ("MAE", evaluation.metrics["mae"]) if is_open else None

    def count_seen_items(self, result: TuningResult, test: HeldOutResult) -> int:
        """Return how many rows of a test also stand, with their target, where models learn.

        Features that repeat with another target, as those of designs do, are new measurements.
        """
        leaks = result.source.leaks
        if leaks is None:
            return 0
        return sum(leak.part == test.name and leak.same_target for leak in leaks.leaks)

    def describe_title(self, result: TuningResult) -> str:
        """Return what is predicted from what."""
        unit = f" in {self.unit}" if self.unit else ""
        return f"Model of {result.source.target}{unit} from {result.source.n:,} rows"

    def describe_source(self, result: TuningResult) -> list[str]:
        """Return which rows were for what, and what is odd about them."""
        source, settings = result.source, self.settings
        read = f"Read from {source.path}. " if source.path else ""
        rows = ", ".join(f"{count:,} {name}" for name, count in source.sizes.items())
        groups = "" if source.groups is None else f" in {source.groups:,} groups, kept whole"
        evaluated = "Evaluated on the validation rows"
        if settings.folds:
            rows_in = "training rows" if source.apart else "training and validation rows"
            evaluated = f"Evaluated in {settings.folds} folds of the {rows_in}"
        features = (
            f"{read}Features: {', '.join(source.features)}. Split: {source.split}: {rows}{groups}. "
            f"{evaluated}, seed {settings.seed}."
        )
        return [*source.notes, features]

    def list_value_columns(self) -> list[Column]:
        """Return RMSE and MAE, each with its confidence interval."""
        unit = f" ({self.unit})" if self.unit else ""
        return [
            Column("rmse", f"RMSE{unit}", VALUE, self.take_estimate),
            Column("mae", f"MAE{unit}", MAE, _take_mae),
        ]

    def build_test_blocks(self, result: TuningResult) -> list[str | Grid]:
        """Return what matters most, and all finalists on rows that chose none of them."""
        summary = result.get_table("summary").grids()
        blocks: list[str | Grid] = [grid.drop_empty_columns() for grid in summary]
        titles = {one.name: one.title for one in result.finalists}
        for test in result.tests:
            blocks.append(self._describe_coverage(test))
            if (found := test.comparison) is None:
                continue
            columns = (
                Column("title", "model", NAME),
                *(replace(column, get=None) for column in self.list_value_columns()),
                Column("r2", "R²", VALUE, optional=True),
                Column("won", ""),
            )
            records = [
                {"title": titles[name], "won": WINNER if name == result.winner.name else None}
                | dict(zip(("rmse", "mae", "r2"), found.list_estimates(name), strict=True))
                for name in found.systems
            ]
            head = format_interval_head(0.95)
            title = f"{test.name.capitalize()}: all finalists, once chosen, with {head}"
            blocks += Table("finalists", title, columns, records, LEVEL).grids()
        return blocks

    def _describe_coverage(self, test: HeldOutResult) -> str:
        promised = 100 * (1 - self.settings.alpha)
        said = f"{promised:g} % prediction intervals of the winner"
        lower, upper = test.columns["lower"], test.columns["upper"]
        if None in lower or None in upper:
            return f"{said} have no end on {test.name}, so that they hold anything."
        held = 100 * test.evaluation.prediction_intervals["interval_coverage"].value
        return f"{said} hold {held:.1f} % of {test.n:,} targets of {test.name}."

    def list_test_estimates(self, result: TuningResult, test: HeldOutResult) -> dict[str, Estimate]:
        """Return the RMSE of all finalists on a test."""
        if test.comparison is None:
            return super().list_test_estimates(result, test)
        board = test.comparison.leaderboards["rmse"]
        return {name: board.get_standing(name).estimate for name in test.comparison.systems}

    def evaluate_test(
        self, result: TuningResult, test: HeldOutResult
    ) -> RegressionEvaluation | None:
        """Return errors and prediction intervals of the winner, and a look at the residuals."""
        if test.evaluation is None or not test.columns:
            return None
        predicted = test.columns["predictions"][result.winner.name]
        rows, targets = test.columns["rows"], test.columns["targets"]
        found = analyse_residuals(targets, predicted, unit=self.unit, rows=rows)
        found = found.take_bias(test.evaluation.metrics)
        return test.evaluation.add_parts([ReportPart("residuals", found)])

    def describe_methods(self, result: TuningResult) -> list[str]:
        """Return what intervals take for one, and how saved models were fitted."""
        grouped = result.source.groups is not None
        units = "groups, not rows," if grouped else "rows"
        blend = "The blend wins unless one model is significantly better, in RMSE and in MAE."
        return [
            *([blend] if result.ensemble and self.settings.blend == "auto" else []),
            f"Confidence intervals take {units} as independent, and the model as given.",
            *(
                f"Fewer than {FEW_CLUSTERS} rows leave the confidence intervals of {one.name} "
                "unsure."
                for one in result.tests
                if one.n < FEW_CLUSTERS
            ),
            self._describe_final_fit(apart=result.source.apart, grouped=grouped),
        ]

    def _describe_final_fit(self, *, apart: bool, grouped: bool) -> str:
        if apart:
            promise = (
                "take them as approximate, for rows of one cluster are alike."
                if grouped
                else "they cover as stated for rows from the same source."
            )
            return (
                f"Saved models were fitted on the training rows{EARLY_STOPPING_NOTE}. Their "
                "prediction intervals are calibrated on the validation rows, which have been used "
                f"for nothing else: {promise}"
            )
        if self.settings.folds:
            few = "of too few groups" if grouped else "too few"
            return (
                f"Saved models were fitted on training and validation rows{EARLY_STOPPING_NOTE}; "
                f"these are {few} to keep some apart for the prediction intervals, which are "
                "calibrated on rows that were held out in turn, of fits on fewer rows: take them "
                "as approximate."
            )
        return (
            f"Saved models were fitted on training rows{EARLY_STOPPING_NOTE}; their prediction "
            "intervals are calibrated on validation rows, by which models were chosen, too: take "
            "them as too narrow."
        )


def _take_mae(record: Record) -> Estimate | None:
    found: RegressionEvaluation | None = record["evaluation"]
    return None if found is None else found.metrics["mae"]


def _list_test_measures(test: HeldOutResult) -> Iterator[tuple[str, str, Estimate, bool]]:
    """Yield the measures of a test by key and title: errors in the unit of the target, and shares.

    σ and the error of the baseline are the errors of constants, so they have their intervals.
    """
    values, targets = test.evaluation, np.array(test.columns["targets"])
    for name, title in (("rmse", "test RMSE"), ("mae", "test MAE")):
        yield f"test_{name}", title, values.metrics[name], True
    sigma = _evaluate_constant(test, targets, float(np.mean(targets)))
    yield "test_sigma", "σ of the test targets", sigma, True
    for name, title in (("r2", "R²"), ("relative_accuracy", "relative accuracy, 1 - RMSE/σ")):
        yield name, title, values.metrics[name], False
    training = values.normalization
    if training is not None:
        error = _evaluate_constant(test, targets, training.mean)
        yield "baseline_rmse", "baseline error: RMSE of the training mean", error, True
    yield "improvement", "improvement over the baseline", values.metrics["skill"], False
    if "interval_coverage" in values.prediction_intervals:
        coverage, width = (
            values.prediction_intervals[name]
            for name in ("interval_coverage", "mean_interval_width")
        )
        yield "interval_coverage", "coverage of prediction intervals", coverage, False
        yield "interval_width", "mean width of prediction intervals", width, True


def _evaluate_constant(test: HeldOutResult, targets: Any, constant: float) -> Estimate:
    if len(targets) < 2:
        return make_point_estimate(
            float(np.abs(targets - constant).mean()), "there is one item only"
        )
    same, groups = np.full(len(targets), constant), test.columns["groups"]
    return evaluate_regression(targets, same, ["rmse"], groups=groups).metrics["rmse"]
