"""What a search for a surrogate found: the trials, the blend, the winner, and its test."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ordinate.inference.estimates import Estimate, make_point_estimate, to_json_number
from ordinate.regress.duplicate_rows import LeakageReport
from ordinate.regress.settings import Settings
from ordinate.regress.tuning_text import describe_tuning
from ordinate.render import Document
from ordinate.results.base import SCHEMA, Result, align_columns
from ordinate.results.regression import RegressionEvaluation, evaluate_regression
from ordinate.results.regression_comparison import RegressionComparison
from ordinate.search.trials import TRIAL_STATES, Trial

TASK = "surrogate"
UNITLESS_MEASURES = (
    "interval_coverage",
)  # all other measures of intervals have the unit of the target


@dataclass(frozen=True)
class TrainingDataSummary:
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

    def to_dict(self) -> dict[str, Any]:
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
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Finalist:
    """The best model of a model type, or the blend of them, evaluated on held-out rows.

    `name` is that of the saved surrogate; a blend has members, by their names, and weights.
    """

    name: str
    model_type: str
    params: dict[str, Any]
    evaluation: RegressionEvaluation
    members: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def rmse(self) -> Estimate:
        """What it was chosen by."""
        return self.evaluation.metrics["rmse"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        found: dict[str, Any] = {"name": self.name, "model": self.model_type, "params": self.params}
        if self.members:
            found |= {"members": list(self.members), "weights": list(self.weights)}
        return found | {"validation": _convert_evaluation_to_dict(self.evaluation)}


@dataclass(frozen=True)
class StudyResult:
    """One model type: the trials of its study, and the best of them."""

    model_type: str
    wanted: int  # trials
    trials: "tuple[Trial, ...]"
    best: Finalist | None  # None where no trial was completed

    def count(self, state: str) -> int:
        """Return how many trials ended so."""
        return sum(trial.state == state for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "model": self.model_type,
            "trials": {"wanted": self.wanted}
            | {state: self.count(state) for state in TRIAL_STATES},
            "best": self.best and self.best.to_dict(),
        }

    def list_trials(self) -> dict[str, Any]:
        """Return every trial, as plain values."""
        trials = [
            {
                "number": trial.number,
                "state": trial.state,
                "value": trial.value,
                "params": trial.params,
                "after_parts": {str(step): to_json_number(x) for step, x in trial.steps.items()},
                "reason": trial.reason,
                **trial.attributes,
            }
            for trial in self.trials
        ]
        return {"model": self.model_type, "trials": trials}


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """The winner on rows that chose nothing: the test, or the region beyond the shift."""

    name: str
    what: str  # which rows these are
    rows: tuple[int, ...]
    targets: Any
    predictions: dict[str, Any]  # of all finalists, by name
    lower: Any  # of the winner
    upper: Any
    values: RegressionEvaluation  # of the winner
    comparison: RegressionComparison | None = None
    groups: Any = None  # of the rows, if there are any
    notes: tuple[str, ...] = ()  # that came with the predictions of the winner

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        compared = None if self.comparison is None else self.comparison.to_dict()
        further = {"rows": self.what, "finalists": compared, "notes": list(self.notes)}
        return _convert_evaluation_to_dict(self.values) | further

    def columns(self) -> dict[str, Any]:
        """Return the rows themselves."""
        return {
            "rows": list(self.rows),
            "groups": None if self.groups is None else self.groups.tolist(),
            "targets": self.targets.tolist(),
            "predictions": {name: column.tolist() for name, column in self.predictions.items()},
            "lower": [to_json_number(x) for x in self.lower.tolist()],
            "upper": [to_json_number(x) for x in self.upper.tolist()],
        }


@dataclass(frozen=True, repr=False, eq=False)
class TuningResult(Result):
    """A search for a surrogate: what was tried, what won, and what it is worth."""

    run: str
    settings: Settings
    source: TrainingDataSummary
    searched: tuple[StudyResult, ...]
    blend: Finalist | None
    winner: Finalist
    tests: tuple[HeldOutResult, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def finalists(self) -> list[Finalist]:
        """The best of each model type, and the blend."""
        found = [one.best for one in self.searched if one.best is not None]
        return [*found, self.blend] if self.blend else found

    def summary(self) -> list[dict[str, Any]]:
        """Return the measures that matter most, each with its interval, as plain values."""
        unit = self.source.unit
        lowest = min(self.finalists, key=lambda one: one.rmse.value)
        rows = [
            _build_measure(
                "validation_rmse", "held-out RMSE of the winner", self.winner.rmse, unit
            ),
            _build_measure(
                "lowest_validation_rmse",
                f"lowest held-out RMSE ({lowest.model_type})",
                lowest.rmse,
                unit,
            ),
        ]
        for test in self.tests:
            usual = test.name == "test"
            before, short = ("", "") if usual else (f"{test.name}: ", f"{test.name}_")
            rows += [
                _build_measure(short + key, before + title, one, unit if in_unit else None)
                for key, title, one, in_unit in _list_measures(test)
            ]
        return rows

    def _build_header(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "task": TASK,
            "run": self.run,
            "settings": self.settings.result_settings,
            "data": self.source.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None: what `--format json` writes."""
        leaks = self.source.leaks
        return self._build_header() | {
            "winner": self.winner.name,
            "winning": self.winner.to_dict(),
            "summary": self.summary(),
            "studies": [one.to_dict() for one in self.searched],
            "blend": self.blend and self.blend.to_dict(),
            "tests": {one.name: one.to_dict() for one in self.tests},
            "leaks": None if leaks is None else leaks.to_dict(),
            "notes": list(self.notes),
        }

    def list_trials(self) -> dict[str, Any]:
        """Return every trial of every study."""
        return self._build_header() | {"studies": [one.list_trials() for one in self.searched]}

    def list_test_predictions(self) -> dict[str, Any]:
        """Return the test rows, with what all finalists predict for them."""
        tests = {one.name: one.columns() for one in self.tests}
        return self._build_header() | {"winner": self.winner.name, "tests": tests}

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each value: of finalists by held-out rows, and of tests."""
        evaluated = [
            ("validation", one.name, one.model_type, one.evaluation) for one in self.finalists
        ]
        evaluated += [
            (one.name, self.winner.name, self.winner.model_type, one.values) for one in self.tests
        ]
        return align_columns(
            [
                {"stage": stage, "name": name, "model": model_type} | row
                for stage, name, model_type, values in evaluated
                for row in _flatten_evaluation(values)
            ]
        )

    def document(self) -> Document:
        """Return the report for people."""
        return describe_tuning(self)


def _build_measure(key: str, title: str, one: Estimate, unit: str | None) -> dict[str, Any]:
    """Return a measure: the key is for programs, and stays; the title is for people."""
    return {"key": key, "measure": title, "unit": unit} | one.to_dict()


def _convert_evaluation_to_dict(values: RegressionEvaluation) -> dict[str, Any]:
    """Return plain values, in which baselines and measures of intervals have their unit, too."""
    found = values.to_dict()
    found["baselines"] = [one | {"unit": values.unit} for one in found["baselines"]]
    found["prediction_intervals"] = {
        name: one | {"unit": _get_unit(values, name)}
        for name, one in found["prediction_intervals"].items()
    }
    return found


def _get_unit(values: RegressionEvaluation, name: str) -> str | None:
    return None if name in UNITLESS_MEASURES else values.unit


def _flatten_evaluation(values: RegressionEvaluation) -> Iterator[dict[str, Any]]:
    """Yield one flat record for each value; a baseline has a column of its own for its name."""
    for row in values.rows():
        baseline = row.pop("model", None)
        yield row | ({} if baseline is None else {"baseline": baseline, "unit": values.unit})
    for name, one in values.prediction_intervals.items():
        about = {"part": "prediction_intervals", "metric": name, "unit": _get_unit(values, name)}
        yield about | {"value": one.value, "low": one.low, "high": one.high, "method": one.method}


def _list_measures(test: HeldOutResult) -> Iterator[tuple[str, str, Estimate, bool]]:
    """Yield the measures of a test by key and title: errors in the unit of the target, and shares.

    σ and the error of the baseline are the errors of constants, so they have their intervals.
    """
    values, y = test.values, test.targets
    for name, title in (("rmse", "test RMSE"), ("mae", "test MAE")):
        yield f"test_{name}", title, values.metrics[name], True
    yield "test_sigma", "σ of the test targets", _evaluate_constant(test, float(np.mean(y))), True
    for name, title in (("r2", "R²"), ("relative_accuracy", "relative accuracy, 1 - RMSE/σ")):
        yield name, title, values.metrics[name], False
    training = values.normalization
    if training is not None:
        error = _evaluate_constant(test, training.mean)
        yield "baseline_rmse", "baseline error: RMSE of the training mean", error, True
    yield "improvement", "improvement over the baseline", values.metrics["skill"], False
    if "interval_coverage" in values.prediction_intervals:
        coverage, width = (
            values.prediction_intervals[name]
            for name in ("interval_coverage", "mean_interval_width")
        )
        yield "interval_coverage", "coverage of prediction intervals", coverage, False
        yield "interval_width", "mean width of prediction intervals", width, True


def _evaluate_constant(test: HeldOutResult, constant: float) -> Estimate:
    targets = test.targets
    if len(targets) < 2:
        return make_point_estimate(
            float(np.abs(targets - constant).mean()), "there is one item only"
        )
    same = np.full(len(targets), constant)
    found = evaluate_regression(targets, same, ["rmse"], groups=test.groups)
    return found.metrics["rmse"]
