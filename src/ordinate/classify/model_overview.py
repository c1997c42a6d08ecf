"""Overview: every saved model on every test set, beside constants and chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ordinate.classify.contest import Contest, format_chance_flag
from ordinate.classify.scoring import KAPPA, NO_BETTER_THAN_CHANCE
from ordinate.errors import NotApplicable
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric
from ordinate.postprocess.prediction_sets import PredictionSetEvaluation, evaluate_prediction_sets
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, format_cell
from ordinate.render.estimates import format_with_interval
from ordinate.results.base import BETTER_VALUES, SCHEMA, Origin, Result, to_json_label
from ordinate.results.baselines import BaselinePredictors, Baselines
from ordinate.results.evaluation import Evaluation, Score
from ordinate.summaries import ConfusionMatrix

METRICS_PER_GRID = 4  # metrics in one grid
SHOWN_METRICS = ("cem_ord", KAPPA, "accuracy", "mae")  # of the default metrics; JSON has all
CHANCE_NOTE = (
    f"'{NO_BETTER_THAN_CHANCE}' stands beside a model whose interval of quadratic_kappa is not "
    "above 0. Test sets that helped to choose a model are optimistically biased: choose by "
    "cross-validation."
)


@dataclass(frozen=True)
class ModelEvaluation:
    """One model on one test set: its decoded levels, the other decision rules, its sets."""

    model: str
    evaluation: Evaluation
    by_decision_rule: dict[str, dict[str, float]]  # by decision rule and metric
    sets: PredictionSetEvaluation
    kappa: Estimate

    @classmethod
    def of(
        cls, contest: Contest, model: str, metrics: list[Metric], how: ConfidenceIntervals | None
    ) -> "ModelEvaluation":
        """Evaluate the answers of a model."""
        predictions = contest.predictions[model]
        tables = {
            way: contest.source(levels, "error")
            for way, levels in predictions.by_decision_rule.items()
        }
        ways = {
            way: {
                metric.expression: _compute_value(metric, _pool_groups(table)) for metric in metrics
            }
            for way, table in tables.items()
        }
        source = tables["decoded"]
        evaluation = Evaluation.from_summary(
            _pool_groups(source),
            metrics,
            groups=source if source.shape else None,
            interval=how,
            origin=Origin(predicted=model, files=(contest.file,)),
        )
        level = 0.95 if how is None else how.level
        sets = evaluate_prediction_sets(predictions.sets, contest.get_labels(contest.gold), level)
        return cls(
            model, evaluation, ways, sets, contest.kappa(model, how or ConfidenceIntervals())
        )

    @property
    def flag(self) -> str | None:
        """What a table says beside a model that is no better than chance."""
        return format_chance_flag(self.kappa)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        ways = {
            way: {name: _replace_nonfinite(value) for name, value in values.items()}
            for way, values in self.by_decision_rule.items()
        }
        return self.evaluation.to_dict() | {
            "model": self.model,
            "ways": ways,
            "sets": self.sets.to_dict(),
            "kappa": self.kappa.to_dict(),
            "flag": self.flag,
        }


@dataclass(frozen=True)
class DatasetEvaluation:
    """One test set with all models, and what constants and chance reach on it."""

    contest: Contest
    models: tuple[ModelEvaluation, ...]
    baselines: dict[str, Baselines]

    @classmethod
    def of(
        cls, contest: Contest, metrics: list[Metric], how: ConfidenceIntervals | None
    ) -> "DatasetEvaluation":
        """Evaluate all models of a contest."""
        yardstick = BaselinePredictors(_pool_groups(contest.source(contest.gold, "error")))
        found = [ModelEvaluation.of(contest, model, metrics, how) for model in contest.predictions]
        first = metrics[0]
        found.sort(key=lambda one: _make_sort_key(first, one.evaluation.metrics[first.expression]))
        baselines = {metric.expression: yardstick.measure(metric) for metric in metrics}
        return cls(contest, tuple(found), baselines)

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


@dataclass(frozen=True, repr=False)
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
        contests: Sequence[Contest],
        metrics: Sequence[Metric],
        how: ConfidenceIntervals | None,
        *,
        shown: Sequence[str] = (),
        notes: Sequence[str] = (),
        tick: ProgressCallback | None = None,
    ) -> "ModelOverview":
        """Evaluate the models of all contests; `shown` are the metrics of the tables, else all."""
        wanted = list(metrics)
        names = tuple(shown) or tuple(metric.expression for metric in wanted)
        tests = []
        for index, one in enumerate(contests):
            tests.append(DatasetEvaluation.of(one, wanted, how))
            if tick is not None:
                tick((index + 1) / len(contests))
        return cls(tuple(wanted), names, tuple(tests), how, tuple(notes))

    @cached_property
    def _by_name(self) -> dict[str, Metric]:
        return {metric.expression: metric for metric in self.metrics}

    # --- plain values ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        scale = self.tests[0].contest.scale
        return {
            "schema": SCHEMA,
            "task": "evaluate models",
            "scale": [to_json_label(label) for label in scale.labels],
            "interval": None if self.interval is None else self.interval.level,
            "tests": {one.contest.name: _convert_test_to_dict(one) for one in self.tests},
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
        blocks: list[str | Grid] = [
            *self.notes,
            *(_describe_contest(one.contest) for one in self.tests),
        ]
        starts = range(0, len(self.shown), METRICS_PER_GRID)
        blocks += [
            self._build_grid(self.shown[start : start + METRICS_PER_GRID]) for start in starts
        ]
        blocks += [self._build_rule_grid(), self._build_set_grid(), CHANCE_NOTE]
        models = len({model for one in self.tests for model in one.contest.predictions})
        sets = len(self.tests)
        title = f"{models} model{'' if models == 1 else 's'} on {sets} test set"
        return Document(title + ("" if sets == 1 else "s"), tuple(blocks))

    def _build_grid(self, names: Sequence[str]) -> Grid:
        """Return models and baselines in rows, metrics in columns."""
        rows: list[tuple[Cell, ...]] = []
        for test in self.tests:
            for one in test.models:
                scores = (one.evaluation.metrics[name] for name in names)
                rows.append((test.contest.name, one.model, *map(_format_score, scores), one.flag))
            rows += _build_baseline_rows(test, names)
        better = (f"{name} ({BETTER_VALUES[self._by_name[name].direction]})" for name in names)
        level = "" if self.interval is None else f" with {100 * self.interval.level:g} % intervals"
        title = f"Models on test sets{level} (in brackets: which values are better)"
        return Grid(title, ("test set", "model", *better, "flag"), tuple(rows), left=2)

    def _build_rule_grid(self) -> Grid:
        name = self.shown[0]
        rows: list[tuple[Cell, ...]] = [
            (
                test.contest.name,
                one.model,
                *(values[name] for values in one.by_decision_rule.values()),
            )
            for test in self.tests
            for one in test.models
        ]
        header = ("test set", "model", "decoded", "argmax", "rounded average")
        return Grid(f"{name} by the decision rule", header, tuple(rows), left=2)

    def _build_set_grid(self) -> Grid:
        rows = tuple(
            (
                test.contest.name,
                one.model,
                format_with_interval(one.sets.coverage),
                one.sets.mean_size,
            )
            for test in self.tests
            for one in test.models
        )
        header = ("test set", "model", "gold in the set", "levels on average")
        return Grid("Conformal prediction sets", header, rows, left=2)


def _convert_test_to_dict(one: DatasetEvaluation) -> dict[str, Any]:
    return {
        "n": len(one.contest.gold),
        "file": one.contest.file,
        "unlabelled": one.contest.unlabelled,
        "groups": None if one.contest.groups is None else len(np.unique(one.contest.groups)),
        "notes": list(one.contest.notes),
        "baselines": {name: found.to_dict() for name, found in one.baselines.items()},
        "models": {model.model: model.to_dict() for model in one.models},
    }


def _build_metric_rows(test: DatasetEvaluation, name: str) -> list[dict[str, Any]]:
    head = {"test": test.contest.name, "n": len(test.contest.gold), "metric": name}
    found = [
        head
        | {"kind": "model", "name": one.model, **_flatten_score(one.evaluation.metrics[name])}
        | {
            "argmax": one.by_decision_rule["argmax"][name],
            "average": one.by_decision_rule["average"][name],
        }
        | {"flag": one.flag}
        for one in test.models
    ]
    blank = dict.fromkeys(found[0]) if found else {}
    return found + [
        blank | head | {"kind": "baseline", "name": _format_title(kind, level), "value": value}
        for kind, (value, level) in test.list_baselines(name).items()
    ]


def _flatten_score(score: Score) -> dict[str, Any]:
    found = score.estimate
    return {
        "value": score.value,
        "low": found and found.low,
        "high": found and found.high,
        "method": found and found.method,
        "undefined": score.undefined,
    }


def _build_baseline_rows(test: DatasetEvaluation, names: Sequence[str]) -> list[tuple[Cell, ...]]:
    by_metric = [test.list_baselines(name) for name in names]
    return [
        (
            test.contest.name,
            f"({kind})",
            *(_format_with_level(found[kind]) for found in by_metric),
            None,
        )
        for kind in by_metric[0]
    ]


def _format_with_level(point: tuple[float, str | None]) -> Cell:
    value, level = point
    return value if level is None or math.isnan(value) else f"{format_cell(value)} ({level})"


def _format_title(kind: str, level: str | None) -> str:
    return kind if level is None else f"{kind} ({level})"


def _describe_contest(contest: Contest) -> str:
    items = f"{len(contest.gold):,} item{'' if len(contest.gold) == 1 else 's'}"
    parts = [f"{contest.name}: {items} of {contest.file} on {contest.scale}."]
    return " ".join([*parts, *contest.report_sentences])


def _format_score(score: Score) -> Cell:
    return score.value if score.estimate is None else format_with_interval(score.estimate)


def _pool_groups(table: ConfusionMatrix) -> ConfusionMatrix:
    return table.pooled if table.shape else table


def _compute_value(metric: Metric, table: ConfusionMatrix) -> float:
    try:
        return float(metric(table))
    except NotApplicable:
        return math.nan


def _make_sort_key(metric: Metric, score: Score) -> float:
    """Return what sorts the best first, and the undefined last."""
    return math.inf if math.isnan(score.value) else -round(float(metric.merit(score.value)), 12)


def _replace_nonfinite(value: float) -> float | None:
    return value if math.isfinite(value) else None
