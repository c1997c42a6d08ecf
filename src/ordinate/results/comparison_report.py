"""Comparisons of systems, whatever their task: leaderboards and pairs in tables and words."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ordinate.inference import Estimate
from ordinate.inference.system_differences import BOOTSTRAP
from ordinate.render import Block, Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.document import Cell, Variants, format_cell
from ordinate.render.estimates import format_estimate, format_with_interval, join_names
from ordinate.render.tables import NAME, Column, Kind, Table, to_plain
from ordinate.results.base import SCHEMA, Origin, Record, Result
from ordinate.results.comparison_settings import AGAINST_ALL, AGAINST_LEADER, ComparisonSettings
from ordinate.results.joint_comparison import (
    FEW_INFLUENCES,
    INFLUENCES,
    RANDOMIZATION,
    RESAMPLING_NAMES,
    VerdictTest,
)
from ordinate.results.leaderboard import MOST_PAIRS, Leaderboard, Standing, state_leader

MOST_METRICS = 3  # metrics in one grid
CORRECTION_NAMES = {
    "max_t": "max-T, stepping down",
    "holm": "Holm",
    "bh": "Benjamini and Hochberg",
    "by": "Benjamini and Yekutieli",
    "none": "no correction",
}
ALL_VERDICTS = "Verdicts, p-values, rank intervals and the compact letter display"
LARGER_FAMILY = (
    " Rank intervals are over all pairs, a larger family, so they may leave open what a verdict "
    "decides; there is no compact letter display of the smaller one."
)


class ComparisonReport(Result):
    """Systems on the same items: a leaderboard for each metric, and how the pairs differ.

    A subclass knows the items, and says what there is beside the leaderboards.
    """

    task: ClassVar[str]
    leaderboards: dict[str, Leaderboard]
    settings: ComparisonSettings
    origin: Origin

    # --- what a subclass knows -------------------------------------------------------------------

    @property
    @abstractmethod
    def systems(self) -> tuple[str, ...]:
        """The systems in the order in which they were given."""

    @abstractmethod
    def _describe_items(self) -> Record:
        """Return what JSON says of the items."""

    @abstractmethod
    def _describe_further(self) -> Record:
        """Return what JSON says beside the leaderboards."""

    @abstractmethod
    def _list_further_tables(self) -> Iterable[Table]:
        """Yield the tables beside those of the leaderboards."""

    @property
    @abstractmethod
    def n(self) -> float:
        """The number of items."""

    @property
    @abstractmethod
    def _swapped_unit(self) -> str:
        """What stands for itself, and is swapped whole: an item, or a cluster."""

    def _explain_no_swaps(self) -> str | None:
        """Say why predictions were not swapped, where that is the usual test."""
        return None

    # --- for programs ----------------------------------------------------------------------------

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        settings = self.settings
        return {
            "schema": SCHEMA,
            "task": self.task,
            **self._describe_items(),
            "level": settings.level,
            "resamples": settings.resamples,
            "seed": settings.seed,
            "against": settings.against,
            "correction": settings.correction,
            "metrics": to_plain(self.leaderboards),
            **self._describe_further(),
            "source": {k: v for k, v in self.origin.to_dict().items() if k != "predicted"},
        }

    def tables(self) -> Iterable[Table]:
        """Yield the systems, the pairs, and what else there is."""
        yield tabulate_all("metrics", self.leaderboards, lambda x: x.tabulate_standings(n=self.n))
        yield tabulate_all("pairs", self.leaderboards, Leaderboard.tabulate_pairs)
        yield from self._list_further_tables()

    def make_charts(self) -> Iterable[Chart]:
        """Return leaderboards, differences and significance of pairs, and rankings by metric."""
        from ordinate.results.comparison_charts import chart_comparison  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_comparison(self.leaderboards, self.settings.level, self._list_case_boards())

    def _list_case_boards(self) -> Mapping[str, Leaderboard]:
        """Return the leaderboards of means over cases."""
        return {}

    # --- for people ------------------------------------------------------------------------------

    def _make_document(
        self,
        title: str,
        *,
        sections: Iterable[Document] = (),
        further: Iterable[Block] = (),
        notes: Iterable[str] = (),
    ) -> Document:
        """Return the report: who leads, the leaderboard, the differences, and what else there is.

        Sections add to the verdict of each metric, and stand after the leaderboards.
        """
        more = [section.verdict for section in sections]
        verdicts = {name: " ".join([x.conclusion, *more]) for name, x in self.leaderboards.items()}
        first = next(iter(self.leaderboards.values()))
        return Document(
            title,
            (
                *self.make_board_blocks(),
                *(replace(section, verdict="") for section in sections),
                *further,
            ),
            verdict=next(iter(verdicts.values())),
            verdicts=verdicts,
            notes=(" ".join(self.explain_board(first, self._swapped_unit)), *notes),
            source=self.origin.name_tab(),
            metric_titles={name: x.metric.title for name, x in self.leaderboards.items()},
        )

    def make_board_blocks(self) -> "list[str | Grid | Variants]":
        """Return the leaderboard and the differences by one metric, and what the others say."""

        def make(metric: str) -> list[str | Grid]:
            board = self.leaderboards[metric]
            return [self._make_leaderboard_grid(board), *self._make_pair_blocks(board)]

        _, *others = self.leaderboards.values()
        blocks: list[str | Grid | Variants] = [Variants(tuple(self.leaderboards), make)]
        # a margin is asked of its metric, whichever comes first
        for board in others:
            if board.metric.expression in self.settings.margins:
                blocks += self._make_pair_blocks(board)
        return blocks + ([*self._make_values_grids(), *_join_conclusions(others)] if others else [])

    def _make_leaderboard_grid(self, board: Leaderboard) -> Grid:
        table = board.tabulate_standings(self.settings.level)
        grid = table.grids()[0]
        empty = (None,) * (len(grid.header) - 3)
        baselines = tuple((None, *row, *empty) for row in _list_baselines(board))
        return replace(grid, rows=(*grid.rows, *baselines), optional=("P(rank 1)", "rank interval"))

    def _make_pair_blocks(self, board: Leaderboard) -> list[str | Grid]:
        families = {AGAINST_ALL: "all pairs", AGAINST_LEADER: "each against the leader"}
        against = families.get(str(self.settings.against), f"each against {self.settings.against}")
        table = board.tabulate_pairs(
            self.settings.level,
            f"{against}, {CORRECTION_NAMES[self.settings.correction]}",
            margin=board.metric.expression in self.settings.margins,
        )
        surest = sorted(board.pairs, key=lambda pair: pair.p_adjusted)
        left = len(surest) - MOST_PAIRS
        more = [f"{left:,} more pairs are in the JSON report."] if left > 0 else []
        return [*replace(table, records=surest).grids(), *more]

    def _make_values_grids(self) -> list[Grid]:
        """Return the values of every system on every metric, as many as fit on a page."""
        boards = list(self.leaderboards.values())
        order = {x.system: place for place, x in enumerate(boards[0].standings)}
        grids = []
        for start in range(0, len(boards), MOST_METRICS):
            part = boards[start : start + MOST_METRICS]
            show = format_estimate if part[0].is_quantity else format_with_interval
            standings = [x for board in part for x in board.standings]
            columns = (
                Column("system", kind=NAME),
                Column("metric", get=_name_metric(part)),
                Column("value", kind=Kind(_join_letters(show)), get=lambda x: x),
            )
            letters = " with their compact letter display"
            title = f"Values{letters if any(x.has_letters for x in part) else ''}"
            records = sorted(standings, key=lambda x: order[x.system])
            grids += Table("values", title, columns, records).cross("system", "metric", "value")
        if len(grids) == 1:
            return grids
        return [replace(x, title=f"{x.title}, {k} of {len(grids)}") for k, x in enumerate(grids, 1)]

    def list_estimates(self, system: str) -> list[Estimate]:
        """Return the value of a system on each metric."""
        return [board.get_standing(system).estimate for board in self.leaderboards.values()]

    def _collect_estimates(self) -> dict[str, Estimate]:
        """Return the values of the systems, those that were found in one way by metric alone."""
        found: dict[str, Estimate] = {}
        for name, board in self.leaderboards.items():
            estimates = {x.system: x.estimate for x in board.standings}
            ways = {(x.method, x.note, x.undefined_share) for x in estimates.values()}
            if len(ways) == 1:  # of all systems alike
                found[name] = next(iter(estimates.values()))
            else:
                found |= {f"{name} of {system}": x for system, x in estimates.items()}
        return found

    def _list_board_notes(self) -> list[str]:
        """Return the notes of the leaderboards, and say why a system has no value."""
        notes = []
        for name, board in self.leaderboards.items():
            notes += [*board.notes]
            notes += [
                f"{x.system} has no value of {name}: {x.estimate.note}."
                for x in board.standings
                if math.isnan(x.estimate.value)
            ]
        return list(dict.fromkeys(notes))

    # --- what stands behind it -------------------------------------------------------------------

    def explain_board(self, board: Leaderboard, unit: str) -> list[str]:
        """Say what stands behind verdicts, intervals, P(rank 1) and the compact letter display."""
        settings = self.settings
        parts = [self._describe_test(board.test, unit)] if board.test and board.pairs else []
        margins = ", and decide margins" if settings.margins else ""
        first = "in it" if board.resampling == BOOTSTRAP else "among values drawn likewise"
        parts.append(
            f"The intervals of differences are by {RESAMPLING_NAMES[board.resampling]}, for all "
            f"pairs at once{margins}; P(rank 1) is how often a system was first {first} "
            f"({settings.resamples:,} resamples, seed {settings.seed})."
        )
        if board.has_letters:
            parts.append(
                "Systems that share a letter of the compact letter display (CLD) are not "
                "significantly different."
            )
        return parts

    def _describe_test(self, test: VerdictTest, unit: str) -> str:
        """Say what stands behind the verdicts, and why it is not the usual test, if it is not."""
        count, over = len(self.systems), self._describe_correction()
        many = f"Too many for swaps of predictions: {count * (count - 1) // 2:,} pairs."
        named = self.settings.against not in {AGAINST_ALL, AGAINST_LEADER} and count > 2
        decided = "Verdicts and p-values" if named else ALL_VERDICTS
        if test.own_p_values in {INFLUENCES, FEW_INFLUENCES}:
            law = RESAMPLING_NAMES[test.own_p_values]
            max_t = " with max-T" if self.settings.correction == "max_t" else ""
            return f"{decided} are by {law}{max_t} {over}.{LARGER_FAMILY if named else ''}"
        if not test.has_swaps:
            return (
                f"{self._explain_no_swaps() or many} So verdicts, p-values and rank intervals are "
                f"by {test.method} {over}, which finds too much with few clusters or rare levels."
            )
        coins = _describe_coins(test, unit)
        if named:
            swapped_all = test.rank_intervals == test.method
            ranks = "" if swapped_all else f" {many} So these are by {test.rank_intervals}."
            return f"{decided} are by {test.method} {over} {coins}.{LARGER_FAMILY}{ranks}"
        if test.method.startswith(RANDOMIZATION):
            return f"{decided} are by {test.method} {over} {coins}."
        return (
            f"{many} Only p-values of the pairs shown are by swaps {coins}; adjusted against the "
            f"leader, which all pairs have chosen, and for rank intervals they are by "
            f"{test.method} {over}, never below a pair's own."
        )

    def _describe_correction(self) -> str:
        """Say which pairs p-values are adjusted for, and how, if that is not max-T."""
        against, correction = self.settings.against, self.settings.correction
        family = f"the pairs with {against}"
        if against in {AGAINST_ALL, AGAINST_LEADER} or len(self.systems) == 2:
            family = "all pairs"
        if correction == "none":
            return "without a correction"
        return f"over {family}" + (
            "" if correction == "max_t" else f", corrected by {CORRECTION_NAMES[correction]}"
        )


def tabulate_all(
    name: str, boards: Mapping[str, Leaderboard], tabulate: Callable[[Leaderboard], Table]
) -> Table:
    """Return one table of all metrics, for programs."""
    tables = [tabulate(board) for board in boards.values()]
    units = {metric: board.unit for metric, board in boards.items() if board.is_quantity}
    unit = Column("unit", get=lambda record: units[record.metric])
    return replace(
        tables[0],
        name=name,
        columns=(*tables[0].columns, *([unit] if units else [])),
        records=[record for table in tables for record in table.records],
    )


def _describe_coins(test: VerdictTest, unit: str) -> str:
    every = "all ways are tried" if test.resamples is None else f"{test.resamples:,} times"
    return (
        f"(one coin for each {unit}, the same for all pairs, decides whether two systems exchange "
        f"their predictions of it; {every})"
    )


def _join_conclusions(boards: Sequence[Leaderboard]) -> list[str]:
    """Return what further metrics say, those that agree in one sentence: grids have the values."""
    agreeing: dict[tuple[str, str], list[Leaderboard]] = {}
    for board in boards:
        verdicts = board.conclusion
        if board.ranked:
            verdicts = verdicts.removeprefix(state_leader(board))
        agreeing.setdefault((board.standings[0].system, verdicts), []).append(board)
    return [
        f"{leader} leads on {join_names([x.metric.expression for x in some])}.{verdicts}"
        if len(some) > 1 and some[0].ranked
        else " ".join(x.conclusion for x in some)
        for (leader, verdicts), some in agreeing.items()
    ]


def _list_baselines(board: Leaderboard) -> list[tuple[str, float]]:
    against = board.baselines
    if against is None:
        return []
    best, majority = against.best_constant, against.majority
    rows = [(f"(always {majority.level})", majority.value)]
    if best.level is not None and best.level != majority.level:
        rows.insert(0, (f"(always {best.level})", best.value))
    return [*rows, ("(chance)", against.chance.value)]


def _name_metric(boards: Sequence[Leaderboard]) -> Callable[[Standing], str]:
    headings = {board.metric.expression: board.heading for board in boards}
    return lambda standing: headings[standing.metric]


def _join_letters(show: Callable[[Estimate], Cell]) -> Callable[[Standing], str]:
    """Return how a value, its interval and its letters stand in one cell."""

    def join(standing: Standing) -> str:
        letters = standing.compact_letter_display or ""
        return f"{format_cell(show(standing.estimate))} {letters}".strip()

    return join
