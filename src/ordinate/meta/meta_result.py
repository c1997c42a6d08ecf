"""What a judgement of metrics holds: each metric judged, their agreement, who improves on whom."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, get_args

from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference import Estimate
from ordinate.inference.estimates import to_json_number
from ordinate.inference.resampling import Resampling
from ordinate.meta.rank_correlation import ROUNDING_DIGITS
from ordinate.meta.unanimity import Unanimity
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.results.base import SCHEMA, Origin, Result, to_json_label
from ordinate.summaries import Panel

Array = NDArray[Any]
UNDEFINED_REASONS = {
    "coverage": "the metric, or the unanimous improvement, is the same for all pairs of systems",
    "robustness": "in no two test cases it ranks the same systems",
    "discriminative_power": "it has no difference between any two systems",
    "stability": "in no two halves of the test cases it ranks the same systems",
}
INTERVAL_FIELDS = ("coverage", "robustness", "stability")


@dataclass(frozen=True)
class MetaEvaluationSettings:
    """How to judge: the level of intervals, resamples, the level of tests, what unanimous means."""

    level: float = 0.95
    resamples: int = 1_000
    seed: int = 0
    alpha: float = 0.05
    unanimity: Unanimity = "weak"

    def __post_init__(self) -> None:
        if not (isinstance(self.level, Real) and 0.5 <= self.level < 1.0):
            raise BadOption(f"The level of intervals is 0.5 to below 1, not {self.level!r}.")
        least = 1.0 / (self.drawn.count + 1)
        if not (isinstance(self.alpha, Real) and least <= self.alpha <= 0.5):
            raise BadOption(
                f"alpha is the level of tests, from 1 / (resamples + 1) to 0.5, not {self.alpha!r}."
            )
        if self.unanimity not in get_args(Unanimity):
            choices = ", ".join(get_args(Unanimity))
            raise BadOption(f"unanimity={self.unanimity!r} is not one of {choices}.")

    @property
    def drawn(self) -> Resampling:
        """The resamples, checked."""
        return Resampling(self.resamples, self.seed)


@dataclass(frozen=True)
class MetricEvaluation:
    """One metric: what it captures, and how far its rankings can be trusted.

    `behind` is its coverage less that of the best metric. `undefined` is the share of systems and
    test cases without a value, `infinite` of those with an infinite one. `unranked` says why its
    coverage cannot be set beside that of others, `refused` why the metric cannot be taken at all.
    """

    metric: Metric
    coverage: Estimate
    behind: Estimate | None
    robustness: Estimate
    discriminative_power: float
    stability: Estimate
    undefined: float
    infinite: float = 0.0
    unranked: str | None = None
    refused: str | None = None

    @property
    def reason(self) -> str | None:
        """Why something is undefined, without limits, or not ranked."""
        if self.refused is not None:
            return self.refused
        missing = [
            why for name, why in UNDEFINED_REASONS.items() if math.isnan(float(getattr(self, name)))
        ]
        for name in INTERVAL_FIELDS:
            found: Estimate = getattr(self, name)
            if found.note is not None and not math.isnan(found.value):
                missing.append(f"its {name} has no limits: {found.note}")
        if self.unranked not in {None, self.coverage.note}:
            missing.insert(0, str(self.unranked))
        return "; ".join(missing) or None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "coverage": self.coverage.to_dict(),
            "ranked": self.unranked is None,
            "behind_best": None if self.behind is None else self.behind.to_dict(),
            "robustness": self.robustness.to_dict(),
            "discriminative_power": to_json_number(self.discriminative_power),
            "stability": self.stability.to_dict(),
            "undefined": to_json_number(self.undefined),
            "infinite": to_json_number(self.infinite),
            "reason": self.reason,
        }


def rank_by_coverage(coverage: Sequence[Estimate], unranked: Sequence[str | None]) -> list[int]:
    """Return the places of metrics from the largest coverage to the least.

    Metrics that cannot be ranked follow those that can, and the undefined come last.
    """
    value = [_make_sort_key(round(one.value, ROUNDING_DIGITS)) for one in coverage]
    return sorted(range(len(value)), key=lambda place: (unranked[place] is not None, value[place]))


@dataclass(frozen=True, repr=False)
class MetaEvaluation(Result):
    """Metrics judged on many systems in many test cases."""

    panel: Panel  # its groups are the test cases
    evaluation: tuple[MetricEvaluation, ...]
    references: tuple[Metric, ...]
    agreement: tuple[tuple[Estimate, ...], ...]  # of each metric with each
    unanimous: Array  # [S, S]
    how: MetaEvaluationSettings
    was_split: bool = False  # whether the test cases are parts at random
    only_case: str | None = None  # that all items were of
    unanswered: float = 0.0  # the share of systems and test cases in which a reference is undefined
    origin: Origin = field(default_factory=Origin)
    irregular: tuple[Mapping[str, Any], ...] = ()  # lines of files that were not as they should be

    @property
    def cases(self) -> int:
        """The number of test cases."""
        return len(self.panel.group_values)

    @cached_property
    def ranked(self) -> tuple[MetricEvaluation, ...]:
        """The metrics from the largest coverage to the least; those that are not ranked last."""
        columns = (
            [one.coverage for one in self.evaluation],
            [one.unranked for one in self.evaluation],
        )
        return tuple(self.evaluation[place] for place in rank_by_coverage(*columns))

    @property
    def best(self) -> MetricEvaluation | None:
        """The metric of the largest coverage, if any can be ranked."""
        first = self.ranked[0]
        return first if first.unranked is None else None

    def is_reference(self, metric: Metric) -> bool:
        """Tell whether a metric is among those that coverage is measured by."""
        return metric.expression in {one.expression for one in self.references}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        from ordinate.meta.meta_text import collect_notes  # noqa: PLC0415 - it shows results

        names = [one.metric.expression for one in self.evaluation]
        return {
            "schema": SCHEMA,
            "task": "meta",
            "n": self.panel.n,
            "scale": [to_json_label(label) for label in self.panel.scale.labels],
            "systems": list(self.panel.systems),
            "test_cases": self.cases,
            "test_cases_at_random": self.was_split,
            "references": [metric.expression for metric in self.references],
            "level": self.how.level,
            "resamples": self.how.resamples,
            "seed": self.how.seed,
            "alpha": self.how.alpha,
            "unanimity": self.how.unanimity,
            "metrics": {one.metric.expression: one.to_dict() for one in self.evaluation},
            "agreement": {
                name: {other: one.to_dict() for other, one in zip(names, row, strict=True)}
                for name, row in zip(names, self.agreement, strict=True)
            },
            "unanimous_improvement": {
                name: dict(zip(self.panel.systems, row, strict=True))
                for name, row in zip(self.panel.systems, self.unanimous.tolist(), strict=True)
            },
            "irregular": [dict(one) for one in self.irregular],
            "notes": collect_notes(self),
            "source": {k: v for k, v in self.origin.to_dict().items() if k != "predicted"},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric."""
        return [
            {
                "metric": one.metric.expression,
                "reference": self.is_reference(one.metric),
                "coverage": one.coverage.value,
                "coverage_low": one.coverage.low,
                "coverage_high": one.coverage.high,
                "behind_best": None if one.behind is None else one.behind.value,
                "behind_best_low": None if one.behind is None else one.behind.low,
                "behind_best_high": None if one.behind is None else one.behind.high,
                "robustness": one.robustness.value,
                "robustness_low": one.robustness.low,
                "robustness_high": one.robustness.high,
                "discriminative_power": one.discriminative_power,
                "stability": one.stability.value,
                "stability_low": one.stability.low,
                "stability_high": one.stability.high,
                "undefined": one.undefined,
                "infinite": one.infinite,
                "ranked": one.unranked is None,
                "reason": one.reason,
                "systems": len(self.panel.systems),
                "test_cases": self.cases,
            }
            for one in self.ranked
        ]

    def document(self) -> Document:
        """Return the report for people."""
        from ordinate.meta.meta_text import describe_meta_evaluation  # noqa: PLC0415 - it shows results

        return describe_meta_evaluation(self)


def _make_sort_key(value: float) -> float:
    return math.inf if math.isnan(value) else -value
