"""Overview: every saved model on every test set, beside constants and chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ordinate.classify.decision_rules import METRIC_OPTIMAL, RULE_TITLES, DecisionRule
from ordinate.classify.scoring import KAPPA, NO_BETTER_THAN_CHANCE, flatten_score
from ordinate.classify.system_predictions import SystemPredictions, format_chance_flag
from ordinate.errors import NotApplicable
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric
from ordinate.postprocess.conformal_sets import PredictionSetEvaluation, evaluate_prediction_sets
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, format_cell
from ordinate.render.estimates import format_count, format_with_interval
from ordinate.render.model_names import use_short_names
from ordinate.results.base import BETTER_VALUES, SCHEMA, Origin, Result, to_json_label
from ordinate.results.baselines import BaselinePredictors, Baselines
from ordinate.results.evaluation import Evaluation, Score
from ordinate.summaries import ConfusionMatrix

METRICS_PER_GRID = 2  # metrics in one grid
OTHER_RULES: tuple[DecisionRule, ...] = ("argmax", "rounded_mean")
SHOWN_METRICS = ("cem_ord", KAPPA, "accuracy", "mae")  # of the default metrics; JSON has all
CHANCE_NOTE = (
    f"'{NO_BETTER_THAN_CHANCE}' stands beside a model whose interval of quadratic_kappa is not "
    "above 0. Test sets that helped to choose a model are optimistically biased: choose by "
    "cross-validation."
)


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
            rule: {name: _replace_nonfinite(value) for name, value in values.items()}
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

    test_set: SystemPredictions
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
        baselines = {metric.expression: predictors.measure(metric) for metric in metrics}
        return cls(test_set, tuple(models), baselines)

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


@dataclass(frozen=True, repr=False, eq=False)
class ModelOverview(Result):
    """All models on all test sets."""

    metrics: tuple[Metric, ...]
    shown: tuple[str, ...]  # metrics in the tables
    tests: tuple[DatasetEvaluation, ...]
    interval: ConfidenceIntervals | None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        test_sets: Sequence[SystemPredictions],
        metrics: Sequence[Metric],
        intervals: ConfidenceIntervals | None,
        *,
        shown: Sequence[str] = (),
        notes: Sequence[str] = (),
        progress: ProgressCallback | None = None,
    ) -> "ModelOverview":
        """Evaluate the models on all test sets; `shown` are the metrics of tables, else all."""
        names = tuple(shown) or tuple(metric.expression for metric in metrics)
        tests = []
        for index, test_set in enumerate(test_sets):
            tests.append(DatasetEvaluation.of(test_set, list(metrics), intervals))
            if progress is not None:
                progress((index + 1) / len(test_sets))
        return cls(tuple(metrics), names, tuple(tests), intervals, tuple(notes))

    @cached_property
    def _by_name(self) -> dict[str, Metric]:
        return {metric.expression: metric for metric in self.metrics}

    # --- plain values ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        scale = self.tests[0].test_set.scale
        return {
            "schema": SCHEMA,
            "task": "evaluate models",
            "scale": [to_json_label(label) for label in scale.labels],
            "interval": None if self.interval is None else self.interval.level,
            "tests": {one.test_set.name: _convert_test_to_dict(one) for one in self.tests},
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each test set, model or baseline, and metric."""
        return [
            row
            for one in self.tests
            for name in self._by_name
            for row in _build_metric_rows(one, name)
        ]

    # --- for people --------------------------------------------------------------------------

    def document(self) -> Document:
        """Return the report."""
        starts = range(0, len(self.shown), METRICS_PER_GRID)
        grids = [self._build_grid(self.shown[start : start + METRICS_PER_GRID]) for start in starts]
        models = list(
            dict.fromkeys(model for one in self.tests for model in one.test_set.of_models)
        )
        title = (
            f"{format_count(len(models), 'model')} on {format_count(len(self.tests), 'test set')}"
        )
        document = Document(
            title,
            (*grids, self._build_rule_grid(), self._build_set_grid()),
            verdict=" ".join(map(self._state_best, self.tests)),
            notes=(CHANCE_NOTE, *self.notes, *(_describe_test_set(x.test_set) for x in self.tests)),
        )
        return use_short_names(document, models)

    def _state_best(self, test: DatasetEvaluation) -> str:
        """Say which model is best on a test set, by the first metric of the tables."""
        name, one = self.metrics[0].expression, test.models[0]
        value = format_cell(_format_score(one.evaluation.metrics[name]))
        flag = f", {one.flag}" if one.flag else ""
        return f"{test.test_set.name}: {one.model} has the best {name}, {value}{flag}."

    def _build_grid(self, names: Sequence[str]) -> Grid:
        """Return models and baselines in rows, metrics in columns."""
        rows: list[tuple[Cell, ...]] = []
        for test in self.tests:
            for one in test.models:
                scores = (one.evaluation.metrics[name] for name in names)
                rows.append((test.test_set.name, one.model, *map(_format_score, scores), one.flag))
            rows += _build_baseline_rows(test, names)
        better = (f"{name} ({BETTER_VALUES[self._by_name[name].direction]})" for name in names)
        level = self.interval and f"{100 * self.interval.level:g} % confidence intervals"
        shown = f" with {level}" if level else ""
        title = f"Models on test sets{shown} (in brackets: which values are better)"
        return Grid(title, ("test set", "model", *better, "flag"), tuple(rows), left=2)

    def _build_rule_grid(self) -> Grid:
        name = self.shown[0]
        rows: list[tuple[Cell, ...]] = [
            (
                test.test_set.name,
                one.model,
                *(values[name] for values in one.by_decision_rule.values()),
            )
            for test in self.tests
            for one in test.models
        ]
        header = ("test set", "model", *RULE_TITLES.values())
        return Grid(f"{name} by the decision rule", header, tuple(rows), left=2)

    def _build_set_grid(self) -> Grid:
        rows = tuple(
            (
                test.test_set.name,
                one.model,
                format_with_interval(one.sets.coverage),
                one.sets.mean_size,
            )
            for test in self.tests
            for one in test.models
        )
        header = ("test set", "model", "coverage", "mean size")
        return Grid("Conformal prediction sets", header, rows, left=2)


def _convert_test_to_dict(one: DatasetEvaluation) -> dict[str, Any]:
    return {
        "n": len(one.test_set.gold),
        "file": one.test_set.file,
        "unlabelled": one.test_set.unlabelled,
        "groups": None if one.test_set.groups is None else len(np.unique(one.test_set.groups)),
        "notes": list(one.test_set.notes),
        "baselines": {name: found.to_dict() for name, found in one.baselines.items()},
        "models": {model.model: model.to_dict() for model in one.models},
    }


def _build_metric_rows(test: DatasetEvaluation, name: str) -> list[dict[str, Any]]:
    head = {"test": test.test_set.name, "n": len(test.test_set.gold), "metric": name}
    rows = [
        head
        | {"role": "model", "name": one.model, **flatten_score(one.evaluation.metrics[name])}
        | {rule: one.by_decision_rule[rule][name] for rule in OTHER_RULES}
        | {"flag": one.flag}
        for one in test.models
    ]
    blank = dict.fromkeys(rows[0]) if rows else {}
    return rows + [
        blank | head | {"role": "baseline", "name": _format_title(title, level), "value": value}
        for title, (value, level) in test.list_baselines(name).items()
    ]


def _build_baseline_rows(test: DatasetEvaluation, names: Sequence[str]) -> list[tuple[Cell, ...]]:
    by_metric = [test.list_baselines(name) for name in names]
    return [
        (
            test.test_set.name,
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


def _describe_test_set(test_set: SystemPredictions) -> str:
    items = format_count(len(test_set.gold))
    source = f"{test_set.name}: {items} of {test_set.file} on {test_set.scale}."
    return " ".join([source, *test_set.report_sentences])


def _format_score(score: Score) -> Cell:
    return score.value if score.estimate is None else format_with_interval(score.estimate)


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


def _replace_nonfinite(value: float) -> float | None:
    return value if math.isfinite(value) else None
