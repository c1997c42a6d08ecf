"""A comparison in charts: leaderboards with rank intervals, pairs, rankings by each metric."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ordinate.render.charts import Axis, Cell, Chart, Line, Mark, Panel, Point, Text
from ordinate.render.document import format_cell
from ordinate.render.estimates import (
    format_number,
    format_p_value,
    format_percent,
    join_names,
)
from ordinate.render.forest_plots import MOST_ROWS, ForestPlot, ForestRow
from ordinate.results.evaluation_charts import CHANCE, CONSTANT
from ordinate.results.joint_comparison import PairDifference
from ordinate.results.leaderboard import Leaderboard, Standing
from ordinate.results.metric_strips import SYSTEM

MOST_RANKED = 30  # systems whose lines can be followed
SHADES = {"better": 1.0, "worse": -1.0}


def chart_comparison(
    boards: Mapping[str, Leaderboard], level: float, cases: Mapping[str, Leaderboard]
) -> list[Chart]:
    """Return the views of a comparison, the first ones those that answer first."""
    paired = [PairChart(board, level) for board in boards.values()]
    return [
        *(chart_leaderboard(x, level) for x in boards.values() if _has_values(x)),
        *(chart_leaderboard(x, level, cases=True) for x in cases.values() if _has_values(x)),
        *(pairs.chart_differences() for pairs in paired if pairs.board.pairs),
        *(pairs.chart_significance() for pairs in paired if pairs.is_matrix),
        *chart_rankings(boards),
    ]


# --- leaderboards --------------------------------------------------------------------------------


def _has_values(board: Leaderboard) -> bool:
    return any(not math.isnan(x.estimate.value) for x in board.standings)


def choose_format(board: Leaderboard) -> Callable[[float], str]:
    """Return how values on a metric are shown."""
    return format_number if board.is_quantity else format_cell


def chart_leaderboard(board: Leaderboard, level: float, *, cases: bool = False) -> Chart:
    """Return the systems with their intervals, and their ranks with theirs."""
    ranked, metric = board.ranked, board.metric
    references = {}
    if board.baselines is not None:
        references = {
            CONSTANT: board.baselines.best_constant.value,
            CHANCE: board.baselines.chance.value,
        }
    title = metric.expression + (", mean over cases" if cases else "")
    plot = ForestPlot(
        [ForestRow(x.system, x.estimate, _describe_rank(x)) for x in board.standings],
        Axis(f"{title}, {board.better} is better", unit=board.unit),
        level,
        SYSTEM,
        references,
        choose_format(board),
    )
    has_intervals = any(x.rank_low is not None for x in ranked)
    return plot.make_chart(
        "case_leaderboard" if cases else "leaderboard",
        f"Leaderboard by {title}",
        "Systems, best first: the value with its confidence interval, and the rank with its "
        "rank interval.",
        more=(_make_rank_panel(ranked),) if has_intervals else (),
        variant=metric.expression,
    )


def _make_rank_panel(ranked: list[Standing]) -> Panel:
    points = tuple(
        Point(
            float(x.rank or 0),
            x.system,
            float(x.rank_low or 0),
            float(x.rank_high or 0),
            series=SYSTEM,
            detail=f"{x.system}: {_describe_rank(x)}",
        )
        for x in ranked[:MOST_ROWS]
    )
    axis = Axis("rank, with its rank interval", low=0.5, high=len(ranked) + 0.5, integer=True)
    return Panel(points, x=axis)


def _describe_rank(standing: Standing) -> str:
    if standing.rank_interval is None:
        return "" if standing.rank is None else f"rank {standing.rank}"
    text = f"rank {standing.rank} (rank interval {standing.rank_low} to {standing.rank_high})"
    if standing.rank_shares:
        text += f", P(rank 1) {format_percent(standing.rank_shares[0])}"
    letters = standing.compact_letter_display
    return f"{text}, compact letter display {letters}" if letters else text


# --- pairs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairChart:
    """The pairs of systems on one metric, with intervals at a level."""

    board: Leaderboard
    level: float

    @cached_property
    def systems(self) -> list[str]:
        """The systems that have a value, best first."""
        return [standing.system for standing in self.board.ranked]

    @property
    def is_matrix(self) -> bool:
        """Whether all pairs of a few systems are compared."""
        count = len(self.systems)
        return 3 <= count <= MOST_ROWS and len(self.board.pairs) == count * (count - 1) // 2

    def chart_differences(self) -> Chart:
        """Return how systems differ from the one that all of them are compared with."""
        centre, name = self._find_centre(), self.board.metric.expression
        test = f"Verdicts are by {self.board.test.method}: they" if self.board.test else "Verdicts"
        return self._make_plot(
            [side for side in self._list_sides() if side.second == centre],
            Axis(f"difference of {name}, {self.board.better} is better", unit=self.board.unit),
            {centre: 0.0},
        ).make_chart(
            "differences",
            f"Differences from one {SYSTEM} by {name}",
            f"Each {SYSTEM} less the one at 0, with the interval of the difference. {test} "
            "may differ from what an interval suggests.",
            variant=name,
        )

    def chart_significance(self) -> Chart:
        """Return which system is significantly better than which, pair by pair."""
        sides = self._list_sides()
        plot = self._make_plot(sides, Axis(unit=self.board.unit), {})
        cells = tuple(
            Cell(
                side.second,
                side.first,
                SHADES.get(side.verdict, 0.0),
                self._format_signed(side.difference.value),
                f"less {side.second}: {plot.describe_row(row)}",
            )
            for side, row in zip(sides, plot.rows, strict=True)
        )
        name, levels = self.board.metric.expression, tuple(self.systems)
        return Chart(
            "significance",
            f"Who is significantly better by {name}",
            "Each row beside each column, best first: shaded where the row is significantly "
            "better, in the other colour where it is worse; the number is the row less the column.",
            Axis("than", "ordered", levels),
            Axis(SYSTEM, "ordered", levels),
            (Panel(cells),),
            shades="the row is significantly",
            shade_ticks=_make_shade_ticks(side.verdict for side in sides),
            variant=name,
        )

    def _make_plot(
        self, sides: Sequence[PairDifference], axis: Axis, references: dict[str, float]
    ) -> ForestPlot:
        rows = [ForestRow(side.first, side.difference, _describe_side(side)) for side in sides]
        return ForestPlot(rows, axis, self.level, SYSTEM, references, self._format_signed)

    def _format_signed(self, value: float) -> str:
        return f"{'+' if value > 0 else ''}{choose_format(self.board)(value)}"

    def _find_centre(self) -> str:
        """Return the system that is in all pairs, or else the best one."""
        sides = [{pair.first, pair.second} for pair in self.board.pairs]
        return next((x for x in self.systems if all(x in y for y in sides)), self.systems[0])

    def _list_sides(self) -> list[PairDifference]:
        """Return each pair from both sides."""
        return [side for pair in self.board.pairs for side in (pair, pair.turn())]


def _describe_side(side: PairDifference) -> str:
    p = f"p {format_p_value(side.p)}, adjusted {format_p_value(side.p_adjusted)}"
    margin = f"; margin: {side.margin_verdict}" if side.margin_verdict else ""
    return f"{p}: {side.verdict}{margin}"


def _make_shade_ticks(verdicts: Iterable[str]) -> tuple[tuple[float, str], ...]:
    """Return what the shades of some verdicts stand for."""
    found = {SHADES[verdict]: verdict for verdict in verdicts if verdict in SHADES}
    return tuple(sorted(({0.0: "neither"} | found).items()))


# --- rankings ------------------------------------------------------------------------------------


def chart_rankings(boards: Mapping[str, Leaderboard]) -> list[Chart]:
    """Return the ranks of the systems under each metric, joined by lines, if there are several."""
    ranked = {name: board.ranked for name, board in boards.items()}
    ranked = {name: standings for name, standings in ranked.items() if len(standings) > 1}
    if len(ranked) < 2:
        return []
    every = dict.fromkeys(x.system for standings in ranked.values() for x in standings)
    systems = tuple(every)[:MOST_RANKED]
    shown = {
        name: {x.system: x for x in standings if x.system in systems}
        for name, standings in ranked.items()
    }
    ranks = {x.rank or 0 for standings in shown.values() for x in standings.values()}
    few = len(systems) < len(every)
    left_out = f" The first {MOST_RANKED} of {len(every):,} are shown." if few else ""
    return [
        Chart(
            "rankings",
            "Rankings by each metric",
            "The rank of each system under each metric: where lines cross, metrics disagree."
            + left_out,
            Axis("metric", "ordered", tuple(shown)),
            Axis("rank", "ordered", tuple(str(rank) for rank in sorted(ranks))),
            (Panel((*_make_rank_lines(shown, systems), *_name_rank_lines(shown))),),
            series=systems,
        )
    ]


def _make_rank_lines(
    shown: Mapping[str, Mapping[str, Standing]], systems: tuple[str, ...]
) -> list[Mark]:
    marks: list[Mark] = []
    for system in systems:
        found = {name: x[system] for name, x in shown.items() if system in x}
        ranks = tuple(str(standing.rank) for standing in found.values())
        marks.append(Line(tuple(found), ranks, series=system, detail=system))
        marks += [
            Point(
                name,
                str(standing.rank),
                series=system,
                detail=f"{system} by {name}: {_describe_rank(standing)}",
            )
            for name, standing in found.items()
        ]
    return marks


def _name_rank_lines(shown: Mapping[str, Mapping[str, Standing]]) -> list[Text]:
    """Return the names at the ends of the lines; of equals, the legend has all but the first."""
    last = list(shown)[-1]
    by_rank: dict[int, list[str]] = {}
    for system, standing in shown[last].items():
        by_rank.setdefault(standing.rank or 0, []).append(system)
    return [
        Text(last, str(rank), join_names(names), series=names[0]) for rank, names in by_rank.items()
    ]
