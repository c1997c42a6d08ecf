"""Evaluation of saved models on a test set: metrics, decision rules, prediction sets, baselines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordinate.errors import NotApplicable
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.estimates import to_json_number
from ordinate.metrics import Metric
from ordinate.postprocess.conformal_sets import PredictionSetEvaluation, evaluate_prediction_sets
from ordinate.render import Grid
from ordinate.render.document import Cell, format_cell
from ordinate.render.estimates import format_percent, format_with_interval, join_names
from ordinate.results.base import BETTER_VALUES, Origin
from ordinate.results.evaluation import Evaluation
from ordinate.results.metric_scores import BaselinePredictors, Baselines, Score, format_score
from ordinate.summaries import ConfusionMatrix
from ordinate.tuning.classify.decision_rules import ALPHA, METRIC_OPTIMAL, RULE_TITLES, DecisionRule
from ordinate.tuning.classify.scoring import flatten_score
from ordinate.tuning.classify.system_predictions import SystemPredictions, format_chance_flag

METRICS_PER_GRID = 2  # metrics in one grid
NOMINAL_COVERAGE = format_percent(1.0 - ALPHA, 0)  # of prediction sets
OTHER_RULES: tuple[DecisionRule, ...] = ("argmax", "rounded_mean")


@dataclass(frozen=True)
class ModelEvaluation:
    """One model on one test set: by each decision rule, and its prediction sets."""

    model: str
    evaluation: Evaluation
    by_decision_rule: dict[DecisionRule, dict[str, float]]  # and by metric
    sets: PredictionSetEvaluation
    kappa: Estimate

    @classmethod
    def of(
        cls,
        test_set: SystemPredictions,
        model: str,
        metrics: list[Metric],
        intervals: ConfidenceIntervals | None,
    ) -> "ModelEvaluation":
        """Evaluate the predictions of a model."""
        predictions = test_set.of_models[model]
        matrices = {
            rule: test_set.count_confusion(levels, "error")
            for rule, levels in predictions.by_decision_rule.items()
        }
        by_rule = {
            rule: {
                metric.expression: _compute_value(metric, _pool_groups(matrix))
                for metric in metrics
            }
            for rule, matrix in matrices.items()
        }
        matrix = matrices[METRIC_OPTIMAL]
        evaluation = Evaluation.from_summary(
            _pool_groups(matrix),
            metrics,
            groups=matrix if matrix.shape else None,
            interval=intervals,
            origin=Origin(predicted=model, files=(test_set.file,)),
        )
        level = 0.95 if intervals is None else intervals.level
        sets = evaluate_prediction_sets(predictions.sets, test_set.get_labels(test_set.gold), level)
        kappa = test_set.estimate_kappa(model, intervals or ConfidenceIntervals())
        return cls(model, evaluation, by_rule, sets, kappa)

    @property
    def flag(self) -> str | None:
        """What a table says beside a model that is no better than chance."""
        return format_chance_flag(self.kappa)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        by_rule = {
            rule: {name: to_json_number(value) for name, value in values.items()}
            for rule, values in self.by_decision_rule.items()
        }
        return self.evaluation.to_dict() | {
            "model": self.model,
            "decision_rules": by_rule,
            "sets": self.sets.to_dict(),
            "kappa": self.kappa.to_dict(),
            "flag": self.flag,
        }


@dataclass(frozen=True)
class DatasetEvaluation:
    """One test set with all models, and what constants and chance reach on it."""

    name: str
    models: tuple[ModelEvaluation, ...]
    baselines: dict[str, Baselines]

    @classmethod
    def of(
        cls,
        test_set: SystemPredictions,
        metrics: list[Metric],
        intervals: ConfidenceIntervals | None,
    ) -> "DatasetEvaluation":
        """Evaluate all models on a test set, the best first."""
        perfect = _pool_groups(test_set.count_confusion(test_set.gold, "error"))
        models = [
            ModelEvaluation.of(test_set, model, metrics, intervals) for model in test_set.of_models
        ]
        first = metrics[0]
        models.sort(key=lambda one: _make_sort_key(first, one.evaluation.metrics[first.expression]))
        predictors = BaselinePredictors(perfect)
        baselines = {metric.expression: predictors.measure(metric)[0] for metric in metrics}
        return cls(test_set.name, tuple(models), baselines)

    def list_baselines(self, metric: str) -> dict[str, tuple[float, str | None]]:
        """Return what needs no model: values, and the level of a constant."""
        found = self.baselines[metric]
        points = {
            "best constant": found.best_constant,
            "majority": found.majority,
            "chance": found.chance,
        }
        return {
            name: (point.value, None if point.level is None else str(point.level))
            for name, point in points.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "baselines": {name: found.to_dict() for name, found in self.baselines.items()},
            "models": {one.model: one.to_dict() for one in self.models},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each model or baseline, and metric."""
        return [row for name in self.baselines for row in self._build_metric_rows(name)]

    def _build_metric_rows(self, name: str) -> list[dict[str, Any]]:
        rows = [
            {"role": "model", "metric": name, "system": one.model}
            | flatten_score(one.evaluation.metrics[name])
            | {rule: one.by_decision_rule[rule][name] for rule in OTHER_RULES}
            | {"n": one.evaluation.confusion_matrix.n, "flag": one.flag}
            for one in self.models
        ]
        baselines = self.list_baselines(name).items() if rows else ()
        return rows + [
            dict.fromkeys(rows[0])
            | {"role": "baseline", "metric": name, "system": _format_title(title, level)}
            | {"value": value}
            for title, (value, level) in baselines
        ]


# --- tables --------------------------------------------------------------------------------------


def build_model_grids(
    tests: Sequence[DatasetEvaluation], metrics: Sequence[Metric], level: float
) -> list[Grid]:
    """Return the tables of models: metrics with baselines, decision rules, prediction sets."""
    starts = range(0, len(metrics), METRICS_PER_GRID)
    return [
        *(_build_grid(tests, metrics[start : start + METRICS_PER_GRID], level) for start in starts),
        _build_rule_grid(tests, metrics[0].expression),
        _build_set_grid(tests),
    ]


def _build_grid(
    tests: Sequence[DatasetEvaluation], metrics: Sequence[Metric], level: float
) -> Grid:
    """Return models and baselines in rows, metrics in columns."""
    names, rows = [metric.expression for metric in metrics], []
    for test in tests:
        for one in test.models:
            scores = (one.evaluation.metrics[name] for name in names)
            rows.append((test.name, one.model, *map(format_score, scores), one.flag))
        rows += _build_baseline_rows(test, names)
    better = (f"{metric.expression} ({BETTER_VALUES[metric.direction]})" for metric in metrics)
    title = f"Models on test sets with {100 * level:g} % confidence intervals (in brackets: which "
    header = ("test set", "model", *better, "flag")
    return Grid(f"{title}values are better)", header, tuple(rows), left=2).drop_empty_columns()


def _build_rule_grid(tests: Sequence[DatasetEvaluation], name: str) -> Grid:
    rows: list[tuple[Cell, ...]] = [
        (test.name, one.model, *(values[name] for values in one.by_decision_rule.values()))
        for test in tests
        for one in test.models
    ]
    header = ("test set", "model", *RULE_TITLES.values())
    return Grid(f"{name} by the decision rule", header, tuple(rows), left=2)


def _build_set_grid(tests: Sequence[DatasetEvaluation]) -> Grid:
    rows = tuple(
        (test.name, one.model, format_with_interval(one.sets.coverage), one.sets.mean_size)
        for test in tests
        for one in test.models
    )
    header = ("test set", "model", f"coverage (nominal {NOMINAL_COVERAGE})", "mean size")
    return Grid("Conformal prediction sets", header, rows, left=2)


def describe_coverage(tests: Sequence[DatasetEvaluation]) -> list[str]:
    """Say which prediction sets hold gold less often than is promised, and what the promise is."""
    below = [
        f"{one.model} on {test.name}"
        for test in tests
        for one in test.models
        if one.sets.coverage.high < 1.0 - ALPHA
    ]
    if not below:
        return []
    said = (
        f"The coverage of {join_names(below)} has a confidence interval wholly below the nominal "
        f"{NOMINAL_COVERAGE}. Coverage varies with the items of calibration: it is promised on "
        "average over sets of these, for items like them."
    )
    return [said]


def _build_baseline_rows(test: DatasetEvaluation, names: Sequence[str]) -> list[tuple[Cell, ...]]:
    by_metric = [test.list_baselines(name) for name in names]
    return [
        (
            test.name,
            f"({title})",
            *(_format_with_level(baselines[title]) for baselines in by_metric),
            None,
        )
        for title in by_metric[0]
    ]


def _format_with_level(point: tuple[float, str | None]) -> Cell:
    value, level = point
    return value if level is None or math.isnan(value) else f"{format_cell(value)} ({level})"


def _format_title(title: str, level: str | None) -> str:
    return title if level is None else f"{title} ({level})"


def _pool_groups(matrix: ConfusionMatrix) -> ConfusionMatrix:
    return matrix.pooled if matrix.shape else matrix


def _compute_value(metric: Metric, matrix: ConfusionMatrix) -> float:
    try:
        return float(metric(matrix))
    except NotApplicable:
        return math.nan


def _make_sort_key(metric: Metric, score: Score) -> float:
    """Return what sorts the best first, and the undefined last."""
    return math.inf if math.isnan(score.value) else -round(float(metric.merit(score.value)), 12)
