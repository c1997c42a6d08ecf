"""What is particular about the report of tuning a classifier."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.render import Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import format_count
from ordinate.results.arguments import select_metrics
from ordinate.results.base import BETTER_VALUES, Record
from ordinate.results.evaluation import Evaluation
from ordinate.results.label_evaluation import evaluate
from ordinate.results.metric_scores import Score, compare_with_baselines
from ordinate.results.report_parts import describe_interval_methods
from ordinate.scale import Scale
from ordinate.tuning.classify.decision_rules import RULE_TITLES
from ordinate.tuning.classify.scoring import DecisionRuleScores
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.search.tuning_result import HeldOutResult, TaskReport

if TYPE_CHECKING:
    from ordinate.tuning.search.tuning_result import TuningResult

DECODE_PHRASES = {
    "metric": "those that the metric rewards",
    "argmax": "the most probable ones",
    "rounded_mean": "rounded means",
}
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
        score = evaluation.score
        return score.estimate or make_point_estimate(score.value, score.undefined or "")

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

    def describe_title(self, result: "TuningResult") -> str:
        """Return what was tuned on what."""
        return f"Tuned for {self.metric} on {result.source.n:,} items of {self.scale}"

    def describe_source(self, result: "TuningResult") -> list[str]:
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

    @property
    def value_header(self) -> tuple[str, ...]:
        """A value with its confidence interval, beside what it must beat."""
        return (self.metric, "95 % CI", "best constant", "chance", "flag")

    def build_value_cells(self, evaluation: DecisionRuleScores | None) -> tuple[Cell, ...]:
        """Return the value of the metric-optimal levels."""
        if evaluation is None:
            return ("none", None, None, None, None)
        return (*self._build_score_cells(evaluation.score), evaluation.flag)

    def _build_score_cells(self, score: Score) -> tuple[Cell, ...]:
        best_constant, estimate = score.baselines.best_constant, score.estimate
        constant = format_cell(best_constant.value)
        if best_constant.level is not None:
            constant += f" ({self.scale.names[self.scale.lookup[best_constant.level]]})"
        interval = None if estimate is None else format_interval(estimate.low, estimate.high)
        return (score.value, interval or "none", constant, score.baselines.chance.value)

    def build_test_blocks(self, result: "TuningResult") -> list[str | Grid]:
        """Return the winner by each decision rule, cross-validated and on the tests."""
        evaluated = [("cross-validation", result.source.n, result.winner.evaluation)]
        evaluated += [(one.name, one.n, one.evaluation) for one in result.tests if one.evaluation]
        rows = tuple(
            (
                name,
                RULE_TITLES[rule],
                n,
                *self._build_score_cells(score),
                evaluation.get_flag(rule),
            )
            for name, n, evaluation in evaluated
            for rule, score in evaluation.scores.items()
        )
        header = ("data", "decision rule", "n", *self.value_header)
        seen = any(self.count_seen_items(result, one) for one in result.tests)
        tested = "tested" if seen else "on data that selected nothing"
        title = f"The winner by the decision rule, cross-validated and {tested}"
        optional = ("flag", "chance", "n", "best constant")
        return [Grid(title, header, rows, left=2, optional=optional).drop_empty_columns()]

    def evaluate_test(self, result: "TuningResult", test: HeldOutResult) -> Evaluation | None:
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

    def describe_methods(self, result: "TuningResult") -> list[str]:
        """Return how intervals came about, and what is odd about the winner."""
        return list(self._describe_methods(result))

    def _describe_methods(self, result: "TuningResult") -> Iterator[str]:
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


def _describe_units(result: "TuningResult") -> str:
    """Say what intervals take for one: test data may lack the groups that training data have."""
    groups = {"cross-validation": result.source.groups}
    groups |= {one.name: one.groups for one in result.tests if one.evaluation}
    units: dict[str, list[str]] = {}
    for name, count in groups.items():
        units.setdefault(INDEPENDENT_ITEMS if count is None else CLUSTERS, []).append(name)
    if len(units) == 1:
        return next(iter(units))
    return " and ".join(f"{unit} ({', '.join(names)})" for unit, names in units.items())
