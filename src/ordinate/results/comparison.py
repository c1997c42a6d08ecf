"""Compare: many systems on the same items in, a leaderboard for each metric out."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable, word_advice
from ordinate.inference import Estimate
from ordinate.inference.case_averages import CaseValues, average_cases, compute_case_values
from ordinate.inference.case_differences import (
    count_differing_cases,
    randomize_case_means,
    resample_case_means,
)
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
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
from ordinate.render import Document, Grid
from ordinate.render.document import Variants
from ordinate.render.estimates import format_count
from ordinate.render.tables import NAME, P_VALUE, Column, Table, to_plain
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    ScaleDeclaration,
    check_system_count,
    count_panel,
    find_column_name,
    resolve_intervals,
)
from ordinate.results.base import Origin, Record, record_call, to_json_label
from ordinate.results.case_averages import CASES_ARE_CLUSTERS, Cases
from ordinate.results.comparison_report import ComparisonReport, tabulate_all
from ordinate.results.comparison_settings import (
    AGAINST_ALL,
    MANY_SYSTEMS,
    ComparisonSettings,
    Correction,
    resolve_settings,
)
from ordinate.results.given_columns import (
    refuse_idle_options,
)
from ordinate.results.joint_comparison import CASES, JointComparison
from ordinate.results.leaderboard import (
    Leaderboard,
    LeaderboardBuilder,
    PanelLeaderboardBuilder,
    select_compared_metrics,
)
from ordinate.results.report_parts import describe_interval_methods
from ordinate.scale.label_maps import LabelMap
from ordinate.summaries import ConfusionMatrix, PairedPredictions, Panel
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import MissingPolicy

if TYPE_CHECKING:
    from ordinate.results.regression_comparison import RegressionComparison

Array = NDArray[Any]
MEANS_NOTE = (
    "Means over cases: each case counts the same, systems are paired by case, and cases are the "
    "sample."
)
TEST_TITLES = {
    "mcnemar": "McNemar: right equally often",
    "sign": "sign: nearer to gold equally often",
    "bowker": "Bowker: moves up and down alike",
    "stuart_maxwell": "Stuart-Maxwell: same use of levels",
}


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

    def list_records(self) -> list[Record]:
        """Return the records of its tests, with their titles and what they rest on."""
        swaps = [
            (f"permutation, {name}", test.describe_basis("swaps"), test)
            for name, test in self.permutation.items()
        ]
        others = [(name, test.describe_basis(), test) for name, test in self.others.items()]
        return [
            {"first": self.first, "second": self.second, "pair": f"{self.first} and {self.second}"}
            | {"test": name, "title": TEST_TITLES.get(name, name), "basis": basis}
            | vars(test)
            for name, basis, test in swaps + others
        ]


TEST_COLUMNS = (
    Column("pair", stored=False),
    Column("first", shown=False),
    Column("second", shown=False),
    Column("test", shown=False),
    Column("title", "test", NAME, stored=False),
    Column("p", kind=P_VALUE),
    Column("basis", stored=False),
    *(Column(x, shown=False) for x in ("statistic", "degrees_of_freedom", "resamples", "note")),
)


# --- means over cases ----------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseComparison:
    """A leaderboard of each metric's mean over cases, and the value of each system and case.

    Systems are paired by case: only those cases count in which all of them have a value.
    """

    panel: Panel  # its groups are the cases
    leaderboards: dict[str, Leaderboard]
    values: dict[str, Array]  # by metric, [S, C]
    column: str | None = None

    @classmethod
    def from_panel(
        cls,
        panel: Panel,
        metrics: list[Metric],
        settings: ComparisonSettings,
        column: str | None = None,
    ) -> "CaseComparison":
        """Compare the systems of a panel by their means over its groups."""
        builder = CaseLeaderboardBuilder(panel, metrics, settings)
        found = {name: one.values for name, one in builder.measured.items()}
        return cls(panel, builder.all(), found, column)

    @property
    def cases(self) -> int:
        """The number of cases, with a value or not."""
        return len(self.panel.group_values)

    def to_dict(self) -> Record:
        """Return plain values, nan as None; every case is there."""
        by_case = [
            {
                "case": to_json_label(case),
                "metrics": {
                    name: dict(
                        zip(self.panel.systems, to_plain(values[:, k].tolist()), strict=True)
                    )
                    for name, values in self.values.items()
                },
            }
            for k, case in enumerate(self.panel.group_values)
        ]
        boards = {
            name: board.to_dict()
            | {"cases_compared": int(find_shared_cases(self.values[name]).sum())}
            for name, board in self.leaderboards.items()
        }
        return {"column": self.column, "cases": self.cases, "metrics": boards, "by_case": by_case}

    def tabulate_cases(self) -> Table:
        """Return the value of each case, system and metric."""
        records = [
            {"case": case, "system": system, "metric": name, "value": value}
            for name, values in self.values.items()
            for system, row in zip(self.panel.systems, values.tolist(), strict=True)
            for case, value in zip(map(to_json_label, self.panel.group_values), row, strict=True)
        ]
        columns = [Column(key) for key in ("case", "system", "metric", "value")]
        return Table("cases", "Cases", columns, records)


def find_shared_cases(values: Array) -> Array:
    """Return which cases [C] have a value of all systems [S, C] that have any."""
    known = ~np.isnan(values)
    return np.asarray(known[known.any(axis=1)].all(axis=0) & known.any())


class CaseLeaderboardBuilder(LeaderboardBuilder):
    """The same leaderboards for means over cases: cases are resampled, and swapped whole.

    There are no baselines: constants and chance are of all items.
    """

    unit = "cases"

    def __init__(
        self, panel: Panel, metrics: Sequence[Metric], settings: ComparisonSettings
    ) -> None:
        self.panel = panel
        super().__init__(panel.systems, metrics, settings)

    @cached_property
    def measured(self) -> dict[str, CaseValues]:
        """Each metric of each system in each case: values [S, C]."""
        by_system = [self.panel.count_by_group(system) for system in self.systems]
        found = {}
        for metric in self.metrics:
            each = [compute_case_values(metric, cases) for cases in by_system]
            values = np.stack([one.values for one in each])
            reason = next((one.reason for one in each if one.reason), None)
            found[metric.expression] = CaseValues(values, np.full_like(values, np.nan), reason)
        return found

    def _measure_systems(self, progress: ProgressCallback | None) -> None:
        del progress  # it takes no time
        self.estimates: list[dict[str, Estimate]] = [{} for _ in self.systems]
        self.resampled = {}
        for metric in self.metrics:
            name, values = metric.expression, self._select_shared(metric)
            reason = self.measured[name].reason
            for place, row in enumerate(values):
                found = CaseValues(row, np.full_like(row, np.nan), reason)
                average = average_cases(found, self.settings.level, metric.bounds)
                self.estimates[place][name] = average.estimate
            known = ~np.isnan(values).any(axis=1)
            drawn = np.full((self.resamples.count, len(values)), np.nan)
            drawn[:, known] = resample_case_means(values[known], self.resamples)
            self.resampled[name] = drawn

    def _select_shared(self, metric: Metric) -> Array:
        values = self.measured[metric.expression].values
        shared = find_shared_cases(values)
        return values[:, shared] if shared.any() else np.full((len(values), 1), np.nan)

    def _count_differing(self, metric: Metric) -> Array:
        return count_differing_cases(self._select_shared(metric))

    def _choose_resampling(self, metric: Metric) -> str:
        del metric
        return CASES

    def _decide(self, compared: Iterable[JointComparison]) -> None:
        """Test the pairs of each metric by swaps of whole cases."""
        for joint in compared:
            values = self._select_shared(joint.metric)
            pairs = joint.locate_swapped_pairs()
            joint.decide({}, randomize_case_means(joint.metric, values, pairs, self.settings.seed))

    def _note_gaps(self, metric: Metric) -> list[str]:
        """Say how many cases are compared, where not all are."""
        shared = int(find_shared_cases(self.measured[metric.expression].values).sum())
        total = len(self.panel.group_values)
        if shared == total:
            return []
        note = f"The means of {metric.expression} are over the {shared:,} of {total:,} cases in "
        note += "which all systems have a value."
        return [note if shared > 1 else f"{note} Too few to compare."]


# --- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(ComparisonReport):
    """Many systems on the same items: a leaderboard for each metric, tests for named pairs.

    >>> gold = ["A1", "A2", "B1", "B2"] * 10
    >>> result = compare(gold, {"good": gold, "flat": ["A2"] * 40}, scale="cefr", metrics="mae")
    >>> result.leaderboards["mae"].standings[0].system
    'good'
    """

    task: ClassVar[str] = "compare"
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
        settings = resolve_settings(panel.systems, settings or ComparisonSettings())
        selected = select_compared_metrics(metrics, settings)
        # verdicts that are not by swaps take the tests of named pairs, so as not to contradict them
        unswapped = settings.against == AGAINST_ALL and len(panel.systems) > MANY_SYSTEMS
        tested = {
            pair: _run_permutation_tests(selected, paired, settings.seed)
            for pair, paired in _pair_systems(panel, settings)
            if unswapped or has_few_swaps(paired)
        }
        boards = PanelLeaderboardBuilder(panel, selected, settings, progress, tested).all()
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

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems in the order in which they were given."""
        return self.panel.systems

    @property
    def n(self) -> float:
        """The number of items."""
        return self.panel.n

    @property
    def _swapped_unit(self) -> str:
        """What is swapped whole."""
        return "item" if self.panel.groups is None else "cluster"

    def _explain_no_swaps(self) -> str | None:
        """Say why predictions were not swapped, where that is the usual test."""
        if self.panel.groups is None and not self.panel.has_integer_weights:
            return "The weights are no counts of items that could be swapped."
        return None

    def _describe_items(self) -> Record:
        """Return what JSON says of the items."""
        panel = self.panel
        return {
            "n": panel.n,
            "weight": float(panel.weights.sum()),
            "scale": [to_json_label(label) for label in panel.scale.labels],
            "systems": list(panel.systems),
            "groups": len(panel.group_values) or None,
            "dropped": panel.dropped,
        }

    def _describe_further(self) -> Record:
        """Return the means over cases, and the tests of named pairs."""
        return {"average_over": to_plain(self.case_averages), "tests": to_plain(self.tests)}

    def _list_further_tables(self) -> Iterable[Table]:
        """Yield the tests of named pairs, and the means over cases."""
        records = [record for tests in self.tests for record in tests.list_records()]
        yield Table("tests", lambda pair: f"Tests: {pair}", TEST_COLUMNS, records, by="pair")
        if self.case_averages is not None:
            boards = self.case_averages.leaderboards
            yield tabulate_all("case_averages", boards, lambda x: x.tabulate_standings(n=self.n))
            yield tabulate_all("case_average_pairs", boards, Leaderboard.tabulate_pairs)
            yield self.case_averages.tabulate_cases()

    def _list_case_boards(self) -> Mapping[str, Leaderboard]:
        """Return the leaderboards of means over cases."""
        return {} if self.case_averages is None else self.case_averages.leaderboards

    def document(self) -> Document:
        """Return the report for people."""
        return self._make_document(
            f"{len(self.systems)} systems, {format_count(self.n)} on {self.panel.scale}",
            sections=self._describe_cases(),
            further=self.get_table("tests").grids(),
            notes=(
                *describe_interval_methods(self._collect_estimates()),
                *self._list_board_notes(),
                *self._describe_source(),
            ),
        )

    def _describe_cases(self) -> list[Document]:
        """Return the section of means over cases: the same blocks, of other values."""
        found = self.case_averages
        if found is None:
            return []
        means = replace(self, leaderboards=found.leaderboards, tests=(), case_averages=None)
        column = "" if found.column is None else f" of {found.column}"
        title = f"Mean over {format_count(found.cases, 'case')}{column}"

        def retitle(block: str | Grid) -> str | Grid:
            if isinstance(block, str):
                return block
            own = f"{title}: {block.title[:1].lower()}{block.title[1:]}"
            return replace(block, title=own)

        blocks = [
            block.map(retitle) if isinstance(block, Variants) else retitle(block)
            for block in means.make_board_blocks()
        ]
        first = next(iter(found.leaderboards.values()))
        notes = [note for board in found.leaderboards.values() for note in board.notes]
        said = " ".join([MEANS_NOTE, *means.explain_board(first, "case")])
        return [Document(title, tuple(blocks), f"{title}: {first.conclusion}", (said, *notes))]

    def _describe_source(self) -> list[str]:
        parts = describe_files(self.origin, self.panel, f"Gold: {self.origin.gold}.")
        if self.panel.group_values:
            count = len(self.panel.group_values)
            few = "; so few that intervals are unsure" if count < VERY_FEW_CLUSTERS else ""
            parts.append(f"Items come in {count:,} clusters, which stay whole{few}.")
        return [" ".join(parts), *self.origin.notes]


def describe_files(origin: Origin, panel: Panel, gold: str) -> list[str]:
    """Return sentences on the files, the gold levels, and what became of missing labels."""
    parts = [f"{origin.name_files()}{gold}"]
    if panel.dropped:
        parts.append(f"Dropped for a missing label in any column: {panel.dropped:,} items.")
    if (panel.rows == len(panel.scale)).any():
        parts.append("Missing predictions count as the worst answer.")
    return parts


def compare(
    data: Any = None,
    systems: Any = None,
    scale: ScaleDeclaration = None,
    metrics: MetricSelection = None,
    *,
    gold: Any = None,
    target: Any = None,
    predicted: Any = None,
    unit: str | None = None,
    weights: Any = None,
    groups: Any = None,
    average_over: Any = None,
    missing: MissingPolicy = "error",
    label_map: Mapping[str, str | None] | None = None,
    tidy_labels: bool = False,
    edges: Iterable[float] = (),
    interval: IntervalOption = 0.95,
    resamples: int | None = None,
    seed: int | None = None,
    against: str | None = None,
    correction: Correction = "max_t",
    margins: Mapping[str, float] | None = None,
    pairs: Iterable[tuple[str, str] | str] = (),
    progress: ProgressCallback | None = None,
) -> "Comparison | RegressionComparison":
    """Compare systems that predict levels, or a target, for the same items.

    `data` is a column of gold levels, and `systems` are columns of predictions by name; or it is a
    table, as for `evaluate`, and the other arguments name its columns: `compare(frame,
    gold="level", systems=["a", "b"])`; or it is files, of which either one has all systems, or the
    first has gold, and each further one the `predicted` column of a system, joined by an id:
    `compare(Files(["gold.csv", *runs], id="essay"), gold="level")`. With `target`, a column of
    numbers and their `unit` in place of gold levels, systems are regression models. `groups` is a
    column that says which items belong together (writers, topics, documents); `average_over` is
    such a column, too: of cases, by whose means systems are compared as well, paired by case.
    `missing` is what becomes of items that lack a value: 'error', 'drop', and of levels 'worst'.
    `label_map`, `tidy_labels` and `edges` are those of `evaluate`. `interval` is the confidence
    level, or `ConfidenceIntervals` with all choices; `resamples` (2,000) and `seed` (0) go with a
    level. `against` is 'all', 'leader' or the name of a system; `margins` are differences that do
    not matter, by metric; `pairs` get permutation tests.

    >>> gold = ["low", "mid", "high"] * 20
    >>> systems = {"near": ["low", "mid", "mid"] * 20, "flat": ["mid"] * 60}
    >>> result = compare(gold, systems, "low,mid,high", metrics="mae")
    >>> [standing.system for standing in result.leaderboards["mae"].standings]
    ['near', 'flat']
    >>> y = [float(k) for k in range(40)]
    >>> models = {"near": [k + (-1) ** k for k in y], "far": [k + 2 for k in y]}
    >>> compare(target=y, systems=models, metrics="rmse", unit="kg").leaderboards["rmse"].conclusion
    'near leads on rmse with 1.000 kg. It is not tested against far: it is the same for all items.'
    """
    intervals = resolve_intervals(interval, seed=seed, resamples=resamples)
    same = isinstance(groups, str) and isinstance(average_over, str) and groups == average_over
    if average_over is not None and groups is not None and not same:
        raise BadOption(CASES_ARE_CLUSTERS)
    if intervals is None:
        advice = word_advice("give {interval}, say", interval=0.95)
        raise BadOption(f"Systems are compared at a confidence level: {advice}.")
    if intervals.stratified:
        raise BadOption("Joint resamples of systems are not stratified: leave out stratified=True.")
    named = list(pairs)
    summary = ConfusionMatrix if target is None else Moments
    if margins is not None and not isinstance(margins, Mapping):
        raise BadOption(f"margins={margins!r} names no metric: pass {{'cem_ord': 0.02}}, say.")
    given_margins = (margins or {}).items()
    settings = ComparisonSettings(
        level=intervals.level,
        method=intervals.method,
        resamples=intervals.resamples,
        seed=intervals.seed,
        against=against,
        correction=correction,
        margins={find_metric(name, summary).expression: margin for name, margin in given_margins},
    )
    label_map = LabelMap(label_map, tidy=tidy_labels, edges=edges)
    if target is not None:
        refuse_idle_options(
            "it is for levels, and a target is a number",
            gold=gold,
            predicted=predicted,
            scale=scale,
            average_over=average_over,
            label_map=label_map if len(label_map) else None,
            tidy_labels=tidy_labels,
            edges=label_map.edges or None,
            pairs=named or None,
        )
        columns = {"target": target, "weights": weights, "groups": groups}
        return _compare_models(data, systems, metrics, settings, unit, missing, **columns)
    refuse_idle_options("it is that of a target: name one", unit=unit)
    selected = select_compared_metrics(metrics, settings)
    panel, origin = count_panel(
        data,
        systems,
        gold=gold,
        predicted=predicted,
        scale=scale,
        weights=weights,
        groups=groups if average_over is None else average_over,
        missing=missing,
        label_map=label_map,
        check_count=check_system_count,
    )
    cases = None
    if average_over is not None:
        cases = Cases(panel.group_values, find_column_name(average_over))
    settings = replace(settings, pairs=[_split_pair(pair, panel.systems) for pair in named])
    return Comparison.from_panel(
        panel, selected, settings, cases=cases, origin=origin, progress=progress
    )


def _split_pair(pair: Any, systems: Sequence[str]) -> tuple[str, str]:
    """Return the two systems of a pair, 'a:b' or by names; these may have colons, too."""
    if isinstance(pair, str):
        parts = pair.split(":")
        splits = [(":".join(parts[:k]), ":".join(parts[k:])) for k in range(1, len(parts))]
        known = [split for split in splits if set(split) <= set(systems)]
        pair = [*known, *splits, (pair,)][0]
    if len(pair) != 2:
        raise BadOption("A pair is two different systems.")
    first, second = map(str, pair)
    return first, second


def _compare_models(
    data: Any,
    systems: Any,
    metrics: MetricSelection,
    settings: ComparisonSettings,
    unit: str | None,
    missing: MissingPolicy,
    **columns: Any,
) -> "RegressionComparison":
    from ordinate.results.regression_comparison import (  # noqa: PLC0415 - start-up: levels need it not
        collect_models,
        compare_models,
    )

    models, origin = collect_models(data, systems, columns, missing)
    return compare_models(models, metrics, settings, unit, origin)


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
