"""Compare: many systems on the same items in, a leaderboard for each metric out."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ordinate.errors import BadOption, MissingExtra, NotApplicable
from ordinate.inference.paired_tests import (
    TestResult,
    bowker_test,
    mcnemar_test,
    permutation_test,
    sign_test,
    stuart_maxwell_test,
)
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric, find_metric
from ordinate.render import Document, html, render
from ordinate.results.baselines import to_json_label
from ordinate.results.evaluation import (
    SCHEMA,
    MetricSelection,
    Origin,
    ScaleDeclaration,
    describe_preset,
    select_metrics,
)
from ordinate.results.leaderboard import (
    ComparisonSettings,
    Correction,
    Leaderboard,
    LeaderboardBuilder,
    check_system_count,
    resolve_settings,
)
from ordinate.scale import resolve_scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import PairedPredictions, Panel
from ordinate.summaries.tabulation import MissingPolicy


@dataclass(frozen=True)
class PairTests:
    """Tests for one named pair: whether answers could be swapped, who is right, who shifts."""

    first: str
    second: str
    permutation: dict[str, TestResult]
    others: dict[str, TestResult]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        found: dict[str, Any] = {"first": self.first, "second": self.second}
        found["permutation"] = {name: test.to_dict() for name, test in self.permutation.items()}
        return found | {name: test.to_dict() for name, test in self.others.items()}


@dataclass(frozen=True)
class Comparison:
    """Many systems on the same items: a leaderboard for each metric, tests for named pairs.

    >>> gold = ["A1", "A2", "B1", "B2"] * 10
    >>> result = compare(gold, {"good": gold, "flat": ["A2"] * 40}, scale="cefr", metrics="mae")
    >>> result.leaderboards["mae"].standings[0].system
    'good'
    """

    panel: Panel
    leaderboards: dict[str, Leaderboard]
    tests: tuple[PairTests, ...]
    how: ComparisonSettings
    origin: Origin = field(default_factory=Origin)

    @classmethod
    def from_panel(
        cls,
        panel: Panel,
        metrics: MetricSelection = None,
        how: ComparisonSettings | None = None,
        *,
        origin: Origin | None = None,
        tick: ProgressCallback | None = None,
    ) -> "Comparison":
        """Compare the systems of a panel that is already counted."""
        how = resolve_settings(panel, how or ComparisonSettings())
        wanted = select_metrics(metrics)
        unknown = set(how.margins) - {metric.expression for metric in wanted}
        if unknown:
            raise BadOption(f"A margin is given for {min(unknown)}, which is not compared.")
        boards = LeaderboardBuilder(panel, wanted, how, tick).all()
        tests = tuple(_run_tests(panel, wanted, *pair, how.seed) for pair in how.pairs)
        return cls(panel, boards, tests, how, origin or Origin())

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        panel, how = self.panel, self.how
        return {
            "schema": SCHEMA,
            "task": "compare",
            "n": panel.n,
            "weight": float(panel.weights.sum()),
            "scale": [to_json_label(label) for label in panel.scale.labels],
            "systems": list(panel.systems),
            "groups": len(panel.group_values) or None,
            "dropped": panel.dropped,
            "level": how.level,
            "resamples": how.resamples,
            "seed": how.seed,
            "against": how.against,
            "correction": how.correction,
            "metrics": {name: board.to_dict() for name, board in self.leaderboards.items()},
            "tests": [test.to_dict() for test in self.tests],
            "source": {k: v for k, v in self.origin.to_dict().items() if k != "predicted"},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric and system."""
        return [
            {
                "metric": name,
                "system": one.system,
                "value": one.estimate.value,
                "low": one.estimate.low,
                "high": one.estimate.high,
                "method": one.estimate.method,
                "note": one.estimate.note,
                "rank": one.rank,
                "rank_low": one.rank_low,
                "rank_high": one.rank_high,
                "letters": one.letters,
                "n": self.panel.n,
            }
            for name, board in self.leaderboards.items()
            for one in board.standings
        ]

    def document(self) -> Document:
        """Return the report for people."""
        from ordinate.results.leaderboard_text import describe_comparison  # noqa: PLC0415 - it shows results

        return describe_comparison(self)


def compare(
    gold: Any,
    systems: Mapping[str, Any],
    scale: ScaleDeclaration = None,
    metrics: MetricSelection = None,
    groups: Any = None,
    weights: Any = None,
    *,
    missing: MissingPolicy = "error",
    interval: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    against: str | None = None,
    correction: Correction = "max_t",
    margins: Mapping[str, float] | None = None,
    pairs: Iterable[tuple[str, str]] = (),
) -> Comparison:
    """Compare systems that predict levels for the same items.

    `systems` are columns of predictions by name; `groups` is a column that says which items belong
    together (writers, topics, documents). `against` is 'all', 'leader' or the name of a system;
    `margins` are differences that do not matter, by metric; `pairs` get permutation tests.
    """
    if not isinstance(systems, Mapping):
        raise BadOption('Pass the systems by name: {"name": predictions, …}.')
    check_system_count(len(systems))
    named = [tuple(map(str, pair)) for pair in pairs]
    if any(len(pair) != 2 for pair in named):
        raise BadOption("A pair is two different systems.")
    declared = resolve_scale(scale, gold, *systems.values())
    origin = Origin(notes=describe_preset(declared) if scale is None else ())
    grouped = None if groups is None else factorize_column(groups, "groups")
    panel = Panel.of(declared, gold, systems, weights, grouped, missing)
    how = ComparisonSettings(
        interval,
        resamples,
        seed,
        against,
        correction,
        {find_metric(name).expression: margin for name, margin in (margins or {}).items()},
        [(first, second) for first, second in named],
    )
    return Comparison.from_panel(panel, metrics, how, origin=origin)


# --- tests of named pairs ------------------------------------------------------------------------


def _run_tests(
    panel: Panel, metrics: list[Metric], first: str, second: str, seed: int
) -> PairTests:
    pairs = panel.pair_systems(first, second, grouped=panel.groups is not None)
    swapped = {metric.expression: _run_permutation_test(metric, pairs, seed) for metric in metrics}
    return PairTests(first, second, swapped, _run_classical_tests(pairs))


def _run_permutation_test(metric: Metric, pairs: PairedPredictions, seed: int) -> TestResult:
    try:
        return permutation_test(metric, pairs, seed)
    except NotApplicable as reason:
        return TestResult(math.nan, note=str(reason))


def _run_classical_tests(pairs: PairedPredictions) -> dict[str, TestResult]:
    ways: dict[str, Callable[[], TestResult]] = {
        "mcnemar": lambda: mcnemar_test(pairs),
        "sign": lambda: sign_test(pairs),
        "bowker": lambda: bowker_test(pairs.predictions),
        "stuart_maxwell": lambda: stuart_maxwell_test(pairs.predictions),
    }
    if pairs.groups is not None:
        note = "it takes items as independent, and they come in groups"
        return {name: TestResult(math.nan, note=note) for name in ways}
    if not pairs.whole:
        return {name: TestResult(math.nan, note="the weights are no counts") for name in ways}
    found = {}
    for name, way in ways.items():
        try:
            found[name] = way()
        except MissingExtra as reason:
            found[name] = TestResult(math.nan, note=str(reason))
    return found
