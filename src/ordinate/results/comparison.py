"""Compare: many systems on the same items in, a leaderboard for each metric out."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.paired_tests import (
    TestResult,
    bowker_test,
    has_few_swaps,
    mcnemar_test,
    permutation_test,
    sign_test,
    stuart_maxwell_test,
)
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric, find_metric
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.tables import to_plain
from ordinate.results.arguments import (
    MetricSelection,
    ScaleDeclaration,
    check_system_count,
    count_panel,
    find_column_name,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    SCHEMA,
    Origin,
    Record,
    Result,
    align_columns,
    record_call,
    to_json_label,
)
from ordinate.results.case_averages import CASES_ARE_CLUSTERS, Cases
from ordinate.results.case_comparison import CaseComparison
from ordinate.results.comparison_settings import (
    AGAINST_ALL,
    MANY_SYSTEMS,
    ComparisonSettings,
    Correction,
    resolve_settings,
)
from ordinate.results.leaderboard import Leaderboard, LeaderboardBuilder
from ordinate.results.leaderboard_text import describe_comparison
from ordinate.scale.label_maps import LabelMap
from ordinate.summaries import PairedPredictions, Panel
from ordinate.summaries.tabulation import MissingPolicy


@dataclass(frozen=True)
class PairTests:
    """Tests for one named pair: whether predictions could be swapped, who is right, who shifts."""

    first: str
    second: str
    permutation: dict[str, TestResult]
    others: dict[str, TestResult]

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        head = {"first": self.first, "second": self.second}
        return head | {"permutation": to_plain(self.permutation)} | to_plain(self.others)

    def rows(self) -> list[Record]:
        """Return one flat record for each test."""
        tests = {f"permutation, {name}": test for name, test in self.permutation.items()}
        return [
            {"first": self.first, "second": self.second, "test": name} | test.to_dict()
            for name, test in (tests | self.others).items()
        ]


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Result):
    """Many systems on the same items: a leaderboard for each metric, tests for named pairs.

    >>> gold = ["A1", "A2", "B1", "B2"] * 10
    >>> result = compare(gold, {"good": gold, "flat": ["A2"] * 40}, scale="cefr", metrics="mae")
    >>> result.leaderboards["mae"].standings[0].system
    'good'
    """

    panel: Panel
    leaderboards: dict[str, Leaderboard]
    tests: tuple[PairTests, ...]
    settings: ComparisonSettings
    origin: Origin = field(default_factory=Origin)
    case_averages: CaseComparison | None = None  # by means over cases, which are the clusters then

    @classmethod
    @record_call
    def from_panel(
        cls,
        panel: Panel,
        metrics: MetricSelection = None,
        settings: ComparisonSettings | None = None,
        *,
        cases: Cases | None = None,
        origin: Origin | None = None,
        progress: ProgressCallback | None = None,
    ) -> "Comparison":
        """Compare the systems of a panel that is already counted.

        `cases` says that its groups are cases, by whose means systems are compared as well.
        """
        settings = resolve_settings(panel, settings or ComparisonSettings())
        selected = select_metrics(metrics)
        unknown = set(settings.margins) - {metric.expression for metric in selected}
        if unknown:
            raise BadOption(f"A margin is given for {min(unknown)}, which is not compared.")
        # verdicts that are not by swaps take the tests of named pairs, so as not to contradict them
        unswapped = settings.against == AGAINST_ALL and len(panel.systems) > MANY_SYSTEMS
        tested = {
            pair: _run_permutation_tests(selected, paired, settings.seed)
            for pair, paired in _pair_systems(panel, settings)
            if unswapped or has_few_swaps(paired)
        }
        boards = LeaderboardBuilder(panel, selected, settings, progress, tested).all()
        return cls(
            panel=panel,
            leaderboards=boards,
            tests=tuple(
                PairTests(
                    *pair,
                    tested.get(pair)
                    or _find_permutation_tests(boards, pair, paired, settings.seed),
                    _run_classical_tests(paired, settings.seed),
                )
                for pair, paired in _pair_systems(panel, settings)
            ),
            settings=settings,
            origin=origin or Origin(),
            case_averages=None
            if cases is None
            else CaseComparison.from_panel(panel, selected, settings, cases.column),
        )

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        panel, settings = self.panel, self.settings
        return {
            "schema": SCHEMA,
            "task": "compare",
            "n": panel.n,
            "weight": float(panel.weights.sum()),
            "scale": [to_json_label(label) for label in panel.scale.labels],
            "systems": list(panel.systems),
            "groups": len(panel.group_values) or None,
            "dropped": panel.dropped,
            "level": settings.level,
            "resamples": settings.resamples,
            "seed": settings.seed,
            "against": settings.against,
            "correction": settings.correction,
            "metrics": to_plain(self.leaderboards),
            "average_over": to_plain(self.case_averages),
            "tests": to_plain(self.tests),
            "source": {k: v for k, v in self.origin.to_dict().items() if k != "predicted"},
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return leaderboards, differences and significance of pairs, and rankings by metric."""
        from ordinate.results.comparison_charts import chart_comparison  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_comparison(self)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return the systems, the pairs and the tests of named pairs."""
        tables = {
            "metrics": self.rows(),
            "pairs": _list_pairs(self.leaderboards),
            "tests": [row for tests in self.tests for row in tests.rows()],
        }
        if self.case_averages is not None:
            boards = self.case_averages.leaderboards
            tables |= {
                "case_averages": _list_standings(boards, self.panel.n),
                "case_average_pairs": _list_pairs(boards),
                "cases": self.case_averages.list_cases(),
            }
        return tables

    def rows(self) -> list[Record]:
        """Return one flat record for each metric and system."""
        rows = _list_standings(self.leaderboards, self.panel.n)
        if self.case_averages is None:
            return rows
        means = _list_standings(self.case_averages.leaderboards, self.panel.n)
        return align_columns([*rows, *({"mean_over_cases": True} | row for row in means)])

    def document(self) -> Document:
        """Return the report for people."""
        return describe_comparison(self)


def _list_standings(boards: dict[str, Leaderboard], n: float) -> list[Record]:
    return [
        {
            "metric": name,
            "system": standing.system,
            "value": standing.estimate.value,
            "low": standing.estimate.low,
            "high": standing.estimate.high,
            "method": standing.estimate.method,
            "note": standing.estimate.note,
            "rank": standing.rank,
            "rank_low": standing.rank_low,
            "rank_high": standing.rank_high,
            "compact_letter_display": standing.compact_letter_display,
            "n": n,
        }
        for name, board in boards.items()
        for standing in board.standings
    ]


def _list_pairs(boards: dict[str, Leaderboard]) -> list[Record]:
    return [
        {"metric": name} | pair.to_dict() for name, board in boards.items() for pair in board.pairs
    ]


def compare(
    data: Any = None,
    systems: Any = None,
    scale: ScaleDeclaration = None,
    metrics: MetricSelection = None,
    *,
    gold: Any = None,
    weights: Any = None,
    groups: Any = None,
    average_over: Any = None,
    missing: MissingPolicy = "error",
    label_map: Mapping[str, str | None] | None = None,
    tidy_labels: bool = False,
    edges: Iterable[float] = (),
    interval: ConfidenceIntervals | float = 0.95,
    resamples: int | None = None,
    seed: int | None = None,
    against: str | None = None,
    correction: Correction = "max_t",
    margins: Mapping[str, float] | None = None,
    pairs: Iterable[tuple[str, str]] = (),
) -> Comparison:
    """Compare systems that predict levels for the same items.

    `data` is a column of gold levels, and `systems` are columns of predictions by name; or it is a
    table, as for `evaluate`, and the other arguments name its columns: `compare(frame,
    gold="level", systems=["a", "b"])`. `groups` is a column that says which items belong
    together (writers, topics, documents); `average_over` is such a column, too: of cases, by whose
    means systems are compared as well, paired by case. `label_map`, `tidy_labels` and `edges` are
    those of `evaluate`. `interval` is the confidence level, or
    `ConfidenceIntervals` with all choices; `resamples` (2,000) and `seed` (0) go with a level.
    `against` is 'all', 'leader' or the name of a system; `margins` are differences that do not
    matter, by metric; `pairs` get permutation tests.

    >>> gold = ["low", "mid", "high"] * 20
    >>> systems = {"near": ["low", "mid", "mid"] * 20, "flat": ["mid"] * 60}
    >>> result = compare(gold, systems, "low,mid,high", metrics="mae")
    >>> [standing.system for standing in result.leaderboards["mae"].standings]
    ['near', 'flat']
    """
    intervals = resolve_intervals(interval, seed=seed, resamples=resamples)
    if average_over is not None and groups is not None:
        raise BadOption(CASES_ARE_CLUSTERS)
    if intervals is None:
        raise BadOption("Systems are compared at a confidence level: give interval=0.95, say.")
    if intervals.stratified:
        raise BadOption("Joint resamples of systems are not stratified: leave out stratified=True.")
    named = [tuple(map(str, pair)) for pair in pairs]
    if any(len(pair) != 2 for pair in named):
        raise BadOption("A pair is two different systems.")
    panel, origin = count_panel(
        data,
        systems,
        gold=gold,
        scale=scale,
        weights=weights,
        groups=groups if average_over is None else average_over,
        missing=missing,
        label_map=LabelMap(label_map, tidy=tidy_labels, edges=edges),
        check_count=check_system_count,
    )
    settings = ComparisonSettings(
        level=intervals.level,
        method=intervals.method,
        resamples=intervals.resamples,
        seed=intervals.seed,
        against=against,
        correction=correction,
        margins={find_metric(name).expression: margin for name, margin in (margins or {}).items()},
        pairs=[(first, second) for first, second in named],
    )
    cases = None
    if average_over is not None:
        cases = Cases(panel.group_values, find_column_name(average_over))
    return Comparison.from_panel(panel, metrics, settings, cases=cases, origin=origin)


# --- tests of named pairs ------------------------------------------------------------------------


def _pair_systems(
    panel: Panel, settings: ComparisonSettings
) -> Iterator[tuple[tuple[str, str], PairedPredictions]]:
    for pair in settings.pairs:
        yield pair, panel.pair_systems(*pair, grouped=panel.groups is not None)


def _run_permutation_tests(
    metrics: Iterable[Metric], pairs: PairedPredictions, seed: int
) -> dict[str, TestResult]:
    tests = {}
    for metric in metrics:
        try:
            tests[metric.expression] = permutation_test(metric, pairs, seed)
        except NotApplicable as reason:
            tests[metric.expression] = TestResult(math.nan, note=str(reason))
    return tests


def _find_permutation_tests(
    boards: dict[str, Leaderboard], pair: tuple[str, str], pairs: PairedPredictions, seed: int
) -> dict[str, TestResult]:
    """Return the tests that are behind the verdicts, and those of metrics that have none."""
    found = {name: _find_swaps(board, pair) for name, board in boards.items()}
    rest = [boards[name].metric for name, test in found.items() if test is None]
    others = _run_permutation_tests(rest, pairs, seed)
    return {name: test or others[name] for name, test in found.items()}


def _find_swaps(board: Leaderboard, pair: tuple[str, str]) -> TestResult | None:
    """Return the test of a pair by the swaps that all pairs share, if the leaderboard has it."""
    if board.test is None or not board.test.has_swaps:
        return None
    own = [x.p for x in board.pairs if {x.first, x.second} == set(pair)]
    return TestResult(own[0], resamples=board.test.resamples) if own else None


def _run_classical_tests(pairs: PairedPredictions, seed: int) -> dict[str, TestResult]:
    tests: dict[str, Callable[[], TestResult]] = {
        "mcnemar": lambda: mcnemar_test(pairs),
        "sign": lambda: sign_test(pairs),
        "bowker": lambda: bowker_test(pairs.predictions, seed),
        "stuart_maxwell": lambda: stuart_maxwell_test(pairs.predictions),
    }
    if pairs.groups is not None:
        return {name: TestResult(math.nan, note="items come in clusters") for name in tests}
    if not pairs.has_integer_weights:
        return {name: TestResult(math.nan, note="the weights are no counts") for name in tests}
    return {name: run_test() for name, run_test in tests.items()}
