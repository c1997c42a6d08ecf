"""What is particular about the report of tuning a classifier."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.render import Grid
from ordinate.render.document import format_cell, format_interval
from ordinate.render.estimates import format_count
from ordinate.render.tables import NAME, Column, Estimates, Table
from ordinate.results.arguments import select_metrics
from ordinate.results.base import BETTER_VALUES, Record
from ordinate.results.evaluation import Evaluation
from ordinate.results.label_evaluation import evaluate
from ordinate.results.metric_scores import Score, compare_with_baselines
from ordinate.results.report_parts import describe_interval_methods
from ordinate.scale import Scale
from ordinate.tuning.classify.decision_rules import METRIC_OPTIMAL, RULE_TITLES
from ordinate.tuning.classify.scoring import DecisionRuleScores
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.search.search_charts import LEVEL
from ordinate.tuning.search.tuning_result import HeldOutResult, TaskReport, TuningResult

DECODE_PHRASES = {
    "metric": "those that the metric rewards",
    "argmax": "the most probable ones",
    "rounded_mean": "rounded means",
}
SCORE = Estimates(lambda x: x, lambda x: format_interval(x.low, x.high) or "none", missing="none")
CLUSTERS, INDEPENDENT_ITEMS = "clusters as units", "items as independent"


@dataclass(frozen=True)
class ClassificationReport(TaskReport):
    """Values of a metric of labels by decision rule, beside constants and chance."""

    settings: Settings
    scale: Scale

    task = "tune"
    pipeline_tag = "text-classification"
    test_charts = ("confusion", "confusion_shares", "distances")

    @property
    def metric(self) -> str:  # type: ignore[override] # of the settings
        """The metric that is tuned for."""
        return self.settings.metric

    @property
    def direction(self) -> str:  # type: ignore[override] # of the metric
        """Where better values lie."""
        return self.settings.measure.direction

    def format_value(self, value: float) -> str:
        """Return a value of the metric with three digits."""
        return format_cell(value)

    def convert_evaluation(self, evaluation: DecisionRuleScores) -> Record:
        """Return an evaluation as plain values."""
        return evaluation.to_dict()

    def flatten_evaluation(self, evaluation: DecisionRuleScores) -> list[Record]:
        """Return an evaluation as flat records, one for each decision rule."""
        return evaluation.rows()

    def get_estimate(self, evaluation: DecisionRuleScores) -> Estimate:
        """Return the value of the metric-optimal levels with its confidence interval."""
        return _get_estimate(evaluation.score)

    # --- words and tables --------------------------------------------------------------------

    def describe_weakness(self, evaluation: DecisionRuleScores) -> str:
        """Return which baselines the metric-optimal levels are not better than."""
        score = evaluation.score
        if score.undefined or score.metric.direction == "zero":
            return ""
        level = score.baselines.best_constant.level
        name = "" if level is None else self.scale.names[self.scale.lookup[level]]
        found = compare_with_baselines(score, name)
        return " and ".join(said for how, said in found.items() if how != "better than")

    def describe_title(self, result: TuningResult) -> str:
        """Return what was tuned on what."""
        return f"Tuned for {self.metric} on {result.source.n:,} items of {self.scale}"

    def describe_source(self, result: TuningResult) -> list[str]:
        """Return what the models were trained on."""
        source, settings = result.source, self.settings
        counts = zip(self.scale.names, source.counts, strict=True)
        levels = ", ".join(f"{name} {count}" for name, count in counts)
        groups = "" if source.groups is None else f" in {source.groups:,} groups, kept whole"
        better = BETTER_VALUES[self.direction].capitalize()
        trained = (
            f"Trained on {', '.join(source.training)} ({levels}), cross-validated in "
            f"{settings.folds} folds{groups}, seed {settings.seed}. {better} values of "
            f"{self.metric} are better. Levels are {DECODE_PHRASES[settings.decode]}."
        )
        lines = [trained]
        if source.copies:
            lines.append(
                f"Copies of texts stay in one fold: {format_count(source.copies, 'text')} repeated."
            )
        if settings.weight_strategy != "equal":
            further = ", in the metric too" if settings.weight_metric else ""
            lines.append(
                f"Class weights: {settings.weight_strategy}, alpha {settings.weight_alpha:g}"
                f"{further}."
            )
        matched: dict[str, list[str]] = {}
        for one in result.screened:
            matched.setdefault(one.matched, []).append(one.set)
        return lines + [f"Rows matched {how}: {', '.join(x)}." for how, x in matched.items()]

    def list_value_columns(self) -> list[Column]:
        """Return a value with its confidence interval, beside what it must beat."""
        return [
            Column("value", self.metric, SCORE, self.take_estimate),
            Column("constant", "best constant", get=self._format_constant, optional=5),
            Column("chance", get=_take_chance, optional=3),
            Column("flag", get=_take_flag),
        ]

    def take_estimate(self, record: Record) -> Estimate | None:
        """Return the value of the metric by the decision rule of a record of a table."""
        score = _take_score(record)
        return None if score is None else _get_estimate(score)

    def _format_constant(self, record: Record) -> str | None:
        if (score := _take_score(record)) is None:
            return None
        value, level = score.baselines.best_constant.value, score.baselines.best_constant.level
        name = "" if level is None else f" ({self.scale.names[self.scale.lookup[level]]})"
        return f"{format_cell(value)}{name}"

    def build_test_blocks(self, result: TuningResult) -> list[str | Grid]:
        """Return the winner by each decision rule, cross-validated and on the tests."""
        evaluated = [("cross-validation", result.source.n, result.winner.evaluation)]
        evaluated += [(one.name, one.n, one.evaluation) for one in result.tests if one.evaluation]
        records = [
            {"data": name, "rule": rule, "n": n, "evaluation": evaluation}
            for name, n, evaluation in evaluated
            for rule in evaluation.scores
        ]
        columns = (
            Column("data", kind=NAME),
            Column("rule", "decision rule", NAME, lambda x: RULE_TITLES[x["rule"]]),
            Column("n", optional=4),
            *self.list_value_columns(),
        )
        seen = any(self.count_seen_items(result, one) for one in result.tests)
        tested = "tested" if seen else "on data that selected nothing"
        title = f"The winner by the decision rule, cross-validated and {tested}"
        grids = Table("tests", title, columns, records, LEVEL).grids()
        return [grid.drop_empty_columns() for grid in grids]

    def evaluate_test(self, result: TuningResult, test: HeldOutResult) -> Evaluation | None:
        """Return the levels of the winner beside gold, first of all by the metric of the search."""
        if not test.columns:
            return None
        tuned = self.settings.measure
        others = [one for one in select_metrics(None) if one.expression != tuned.expression]
        return evaluate(
            test.columns["gold"],
            test.columns["predictions"][result.winner.name],
            self.scale,
            [tuned, *others],
            groups=test.columns["groups"],
            seed=self.settings.seed,
        )

    def describe_methods(self, result: TuningResult) -> list[str]:
        """Return how intervals came about, and what is odd about the winner."""
        return list(self._describe_methods(result))

    def _describe_methods(self, result: TuningResult) -> Iterator[str]:
        winner = result.winner
        if winner.evaluation.flag:
            yield (
                f"{winner.title} is {winner.evaluation.flag}: the confidence interval of its "
                "quadratic kappa reaches 0."
            )
        yield from winner.notes
        evaluated: dict[str, Any] = {"cross-validation": winner.evaluation}
        evaluated |= {one.name: one.evaluation for one in result.tests if one.evaluation}
        found = {name: one.score.estimate for name, one in evaluated.items() if one.score.estimate}
        yield " ".join(
            [
                f"Intervals take {_describe_units(result)}, and the model as given.",
                *describe_interval_methods(found),
            ]
        )


def _describe_units(result: TuningResult) -> str:
    """Say what intervals take for one: test data may lack the groups that training data have."""
    groups = {"cross-validation": result.source.groups}
    groups |= {one.name: one.groups for one in result.tests if one.evaluation}
    units: dict[str, list[str]] = {}
    for name, count in groups.items():
        units.setdefault(INDEPENDENT_ITEMS if count is None else CLUSTERS, []).append(name)
    if len(units) == 1:
        return next(iter(units))
    return " and ".join(f"{unit} ({', '.join(names)})" for unit, names in units.items())


def _get_estimate(score: Score) -> Estimate:
    return score.estimate or make_point_estimate(score.value, score.undefined or "")


def _take_score(record: Record) -> Score | None:
    found: DecisionRuleScores | None = record["evaluation"]
    return None if found is None else found.scores[record.get("rule", METRIC_OPTIMAL)]


def _take_chance(record: Record) -> float | None:
    score = _take_score(record)
    return None if score is None else score.baselines.chance.value


def _take_flag(record: Record) -> str | None:
    found: DecisionRuleScores | None = record["evaluation"]
    return None if found is None else found.get_flag(record.get("rule", METRIC_OPTIMAL))
