"""The result of a meta-evaluation: each metric evaluated, their agreement, who improves on whom."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference import Estimate
from ordinate.inference.case_averages import CaseAverage, CaseValues, average_cases
from ordinate.inference.estimates import to_json_number
from ordinate.inference.resampling import Resampling
from ordinate.meta.meta_text import collect_notes, describe_meta_evaluation
from ordinate.meta.rank_correlation import ROUNDING_DIGITS
from ordinate.meta.unanimity import Unanimity
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.results.base import SCHEMA, Origin, Result, to_json_label
from ordinate.settings import Level, Resamples, Seed, Setting
from ordinate.summaries import Panel

Array = NDArray[Any]
UNDEFINED_REASONS = {
    "coverage": "the metric, or the unanimous improvement, is the same for all pairs of systems",
    "robustness": "in no two test cases it ranks the same systems",
    "discriminative_power": "it has no difference between any two systems",
    "stability": "in no two halves of the test cases it ranks the same systems",
}
FEWEST_SYSTEMS = 3  # whose pairs tell one metric from another
FEW_SYSTEMS_REASON = f"pairs of {FEWEST_SYSTEMS} systems or more are needed"
INTERVAL_FIELDS = ("coverage", "robustness", "stability")


@dataclass(frozen=True)
class MetaEvaluationSettings:
    """Settings of a meta-evaluation: level of intervals, resamples, level of tests, unanimity."""

    level: Level = 0.95
    resamples: Resamples = 1_000
    seed: Seed = 0
    alpha: Annotated[
        float,
        Setting("level at which systems are significantly different", flag="--significance-level"),
    ] = 0.05
    unanimity: Annotated[
        Unanimity,
        Setting("what an improvement for all references is: no loss, or a gain for each"),
    ] = "weak"

    def __post_init__(self) -> None:
        if not (isinstance(self.level, Real) and 0.5 <= self.level < 1.0):
            raise BadOption(f"The level of intervals is 0.5 to below 1, not {self.level!r}.")
        least = 1.0 / (self.resampling.count + 1)
        if not (isinstance(self.alpha, Real) and least <= self.alpha <= 0.5):
            raise BadOption(
                f"alpha is the level of tests, from 1 / (resamples + 1) to 0.5, not {self.alpha!r}."
            )
        if self.unanimity not in get_args(Unanimity):
            choices = ", ".join(get_args(Unanimity))
            raise BadOption(f"unanimity={self.unanimity!r} is not one of {choices}.")

    @property
    def resampling(self) -> Resampling:
        """The resamples, checked."""
        return Resampling(self.resamples, self.seed)


@dataclass(frozen=True)
class MetricEvaluation:
    """One metric: its coverage, and how far its rankings can be trusted.

    `behind_best` is its coverage less that of the best metric. `undefined_share` is that of systems
    and test cases without a value, `infinite_share` of those with an infinite one.
    `unranked_reason` says why its coverage cannot be compared with that of others, `refusal` why
    the metric cannot be computed at all. `values` [S, T] are those of each system and test case.
    """

    metric: Metric
    coverage: Estimate
    behind_best: Estimate | None
    robustness: Estimate
    discriminative_power: float
    stability: Estimate
    undefined_share: float = math.nan
    infinite_share: float = math.nan
    unranked_reason: str | None = None
    refusal: str | None = None
    values: Array | None = field(default=None, compare=False)

    @property
    def reason(self) -> str | None:
        """Why something is undefined, without an interval, or not ranked."""
        if self.refusal is not None or self.unranked_reason == FEW_SYSTEMS_REASON:
            return self.unranked_reason
        reasons = [
            why for name, why in UNDEFINED_REASONS.items() if math.isnan(float(getattr(self, name)))
        ]
        for name in INTERVAL_FIELDS:
            estimate: Estimate = getattr(self, name)
            if estimate.note is not None and not math.isnan(estimate.value):
                reasons.append(f"its {name} has no interval: {estimate.note}")
        if self.unranked_reason not in {None, self.coverage.note}:
            reasons.insert(0, str(self.unranked_reason))
        return "; ".join(reasons) or None

    def average_systems(self, level: float) -> list[CaseAverage]:
        """Return the mean over test cases of each system, with test cases as the sample."""
        if self.values is None:
            return []
        found = [
            CaseValues(row, np.full_like(row, np.nan), self.metric.undefined_when)
            for row in self.values
        ]
        return [average_cases(one, level, self.metric.bounds) for one in found]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "coverage": self.coverage.to_dict(),
            "ranked": self.unranked_reason is None,
            "behind_best": None if self.behind_best is None else self.behind_best.to_dict(),
            "robustness": self.robustness.to_dict(),
            "discriminative_power": to_json_number(self.discriminative_power),
            "stability": self.stability.to_dict(),
            "undefined": to_json_number(self.undefined_share),
            "infinite": to_json_number(self.infinite_share),
            "reason": self.reason,
        }


def rank_by_coverage(coverage: Sequence[Estimate], unranked: Sequence[str | None]) -> list[int]:
    """Return the places of metrics from the largest coverage to the least.

    Metrics that cannot be ranked follow those that can, and the undefined come last.
    """
    keys = [
        math.inf if math.isnan(estimate.value) else -round(estimate.value, ROUNDING_DIGITS)
        for estimate in coverage
    ]
    return sorted(range(len(keys)), key=lambda place: (unranked[place] is not None, keys[place]))


@dataclass(frozen=True, repr=False, eq=False)
class MetaEvaluation(Result):
    """Meta-evaluation of metrics on many systems in many test cases."""

    panel: Panel  # its groups are the test cases
    metrics: tuple[MetricEvaluation, ...]
    references: tuple[Metric, ...]
    agreement: tuple[tuple[Estimate, ...], ...]  # of each metric with each
    unanimous_improvement: Array  # [S, S]
    settings: MetaEvaluationSettings
    cases_at_random: bool = False  # whether the items were split into test cases at random
    only_case: str | None = None  # that all items were of
    undefined_references: float = 0.0  # share of systems and test cases without a reference
    origin: Origin = field(default_factory=Origin)

    @property
    def has_pairs(self) -> bool:
        """Whether there are enough systems to tell metrics apart by their pairs."""
        return len(self.panel.systems) >= FEWEST_SYSTEMS

    @property
    def cases(self) -> int:
        """The number of test cases."""
        return len(self.panel.group_values)

    @cached_property
    def ranked(self) -> tuple[MetricEvaluation, ...]:
        """The metrics from the largest coverage to the least; those that are not ranked last."""
        columns = (
            [one.coverage for one in self.metrics],
            [one.unranked_reason for one in self.metrics],
        )
        return tuple(self.metrics[place] for place in rank_by_coverage(*columns))

    @property
    def best(self) -> MetricEvaluation | None:
        """The metric of the largest coverage, if any can be ranked."""
        first = self.ranked[0]
        return first if first.unranked_reason is None else None

    def is_reference(self, metric: Metric) -> bool:
        """Tell whether a metric is among those that coverage is measured by."""
        return metric.expression in {one.expression for one in self.references}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        names = [one.metric.expression for one in self.metrics]
        return {
            "schema": SCHEMA,
            "task": "meta",
            "n": self.panel.n,
            "scale": [to_json_label(label) for label in self.panel.scale.labels],
            "systems": list(self.panel.systems),
            "test_cases": self.cases,
            "test_cases_at_random": self.cases_at_random,
            "references": [metric.expression for metric in self.references],
            "level": self.settings.level,
            "resamples": self.settings.resamples,
            "seed": self.settings.seed,
            "alpha": self.settings.alpha,
            "unanimity": self.settings.unanimity,
            "test_case_names": [to_json_label(name) for name in self.panel.group_values],
            "metrics": {
                one.metric.expression: one.to_dict() | {"values": self._describe_values(one)}
                for one in self.metrics
            },
            "agreement": {
                name: {other: one.to_dict() for other, one in zip(names, row, strict=True)}
                for name, row in zip(names, self.agreement, strict=True)
            },
            "unanimous_improvement": {
                name: dict(zip(self.panel.systems, row, strict=True))
                for name, row in zip(
                    self.panel.systems, self.unanimous_improvement.tolist(), strict=True
                )
            },
            "notes": collect_notes(self),
            "source": {k: v for k, v in self.origin.to_dict().items() if k != "predicted"},
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return how far metrics can be trusted, their agreement, unanimous improvements."""
        from ordinate.meta.meta_charts import chart_meta_evaluation  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_meta_evaluation(self)

    def _describe_values(self, evaluation: MetricEvaluation) -> dict[str, Any]:
        """Return the mean of a metric and its value in each test case, by system."""
        averages = evaluation.average_systems(self.settings.level)
        values = [] if evaluation.values is None else evaluation.values.tolist()
        return {
            system: average.estimate.to_dict()
            | {
                "spread": to_json_number(average.spread),
                "cases_with_value": average.cases,
                "by_case": [to_json_number(value) for value in row],
            }
            for system, average, row in zip(self.panel.systems, averages, values, strict=False)
        }

    def list_tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the metrics, and the value of each metric for each system and test case."""
        cases = [to_json_label(name) for name in self.panel.group_values]
        values = [
            {"metric": one.metric.expression, "system": system, "test_case": case, "value": value}
            for one in self.metrics
            if one.values is not None
            for system, row in zip(self.panel.systems, one.values.tolist(), strict=True)
            for case, value in zip(cases, row, strict=True)
        ]
        return {self.table_name: self.rows(), "values": values}

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric."""
        return [
            {
                "metric": evaluation.metric.expression,
                "reference": self.is_reference(evaluation.metric),
                "coverage": evaluation.coverage.value,
                "coverage_low": evaluation.coverage.low,
                "coverage_high": evaluation.coverage.high,
                "behind_best": None
                if evaluation.behind_best is None
                else evaluation.behind_best.value,
                "behind_best_low": None
                if evaluation.behind_best is None
                else evaluation.behind_best.low,
                "behind_best_high": None
                if evaluation.behind_best is None
                else evaluation.behind_best.high,
                "robustness": evaluation.robustness.value,
                "robustness_low": evaluation.robustness.low,
                "robustness_high": evaluation.robustness.high,
                "discriminative_power": evaluation.discriminative_power,
                "stability": evaluation.stability.value,
                "stability_low": evaluation.stability.low,
                "stability_high": evaluation.stability.high,
                "undefined": evaluation.undefined_share,
                "infinite": evaluation.infinite_share,
                "ranked": evaluation.unranked_reason is None,
                "reason": evaluation.reason,
                "systems": len(self.panel.systems),
                "test_cases": self.cases,
            }
            for evaluation in self.ranked
        ]

    def document(self) -> Document:
        """Return the report for people."""
        return describe_meta_evaluation(self)
