"""A comparison in words and grids."""

import math

from ordinate.inference.clustered_errors import VERY_FEW
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, between, shown
from ordinate.results.comparison import Comparison, PairTests
from ordinate.results.evaluation import BETTER, Origin
from ordinate.results.evaluation_text import by_method, with_limits
from ordinate.results.leaderboard import ALL, LEADER, Board, Pair
from ordinate.summaries import Panel

BESIDE = 3  # metrics in one grid
MOST_FILES = 12  # named
MOST_PAIRS = 30  # in one grid; JSON has all
CORRECTED = {
    "max_t": "max-T, stepping down",
    "holm": "Holm",
    "bh": "Benjamini and Hochberg",
    "by": "Benjamini and Yekutieli",
    "none": "no correction",
}


def describe(result: Comparison) -> Document:
    """Return the report: who leads, the leaderboard, the differences, the tests."""
    first, *others = result.boards.values()
    blocks: list[str | Grid] = [_source(result), first.conclusion, _leaderboard(result, first)]
    blocks += [*first.notes, *_surety(first), _how_to_read(result)]
    blocks += [_pairs(result, first), *_cut(first)]
    if others:
        blocks += _all_metrics(result)
        blocks += [" ".join((b.conclusion, *b.notes, *_surety(b))) for b in others]
    for tests in result.tests:
        blocks += _tests(tests)
    return Document(_title(result), tuple(blocks))


def _title(result: Comparison) -> str:
    panel = result.panel
    items = f"{panel.n:,} item{'' if panel.n == 1 else 's'}"
    return f"{len(panel.systems)} systems, {items} on {panel.scale}"


def read_from(origin: Origin, panel: Panel, gold: str) -> list[str]:
    """Return sentences on the files, the gold levels, and what became of missing labels."""
    parts = [gold]
    if origin.files:
        more = len(origin.files) - MOST_FILES
        named = ", ".join(origin.files[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")
        parts.insert(0, f"Read from {named}.")
    if panel.dropped:
        parts.append(f"Dropped for a missing label in any column: {panel.dropped:,} items.")
    if (panel.rows == len(panel.scale)).any():
        parts.append("Missing predictions count as the worst answer.")
    return parts


def _source(result: Comparison) -> str:
    origin, panel = result.origin, result.panel
    parts = read_from(origin, panel, f"Gold: {origin.gold}.")
    if panel.group_values:
        count = len(panel.group_values)
        few = "; so few that limits are unsure" if count < VERY_FEW else ""
        parts.append(f"Items come in {count:,} groups, which are drawn whole{few}.")
    return " ".join([*parts, *origin.notes])


def _percent(level: float) -> str:
    return f"{100 * level:g} % interval"


def _leaderboard(result: Comparison, board: Board) -> Grid:
    name, better = board.metric.expression, BETTER[board.metric.direction]
    header = ("rank", "system", name, _percent(result.how.level), "ranks", "first in", "letters")
    rows: list[tuple[Cell, ...]] = []
    for one in board.standings:
        ranks = None if one.rank is None else f"{one.rank_low} to {one.rank_high}"
        first = f"{100 * one.rank_shares[0]:.1f} %" if one.rank_shares else None
        found = one.estimate
        limits = between(found.low, found.high)
        rank = None if one.rank is None else str(one.rank)
        rows.append((rank, one.system, found.value, limits, ranks, first, one.letters))
    rows += [(None, name, value, None, None, None, None) for name, value in _baselines(board)]
    return Grid(f"Leaderboard by {name} ({better} is better)", header, tuple(rows), left=2)


def _baselines(board: Board) -> list[tuple[str, float]]:
    against = board.baselines
    best, majority = against.best_constant, against.majority
    rows = [(f"(always {majority.level})", majority.value)]
    if best.level is not None and best.level != majority.level:
        rows.insert(0, (f"(always {best.level})", best.value))
    return [*rows, ("(chance)", against.chance.value)]


def _how_to_read(result: Comparison) -> str:
    text = (
        "Ranks and the limits of differences hold for all systems at once; adjusted p-values step "
        "down and may decide a little more. 'First in' is how often a system was first when the "
        f"items were drawn again ({result.how.draws:,} draws, seed {result.how.seed})."
    )
    if result.boards and next(iter(result.boards.values())).standings[0].letters is not None:
        text += " Systems that share a letter cannot be told apart."
    return text


def _pairs(result: Comparison, board: Board) -> Grid:
    margin = board.metric.expression in result.how.margins
    header = ("first", "second", "difference", _percent(result.how.level), "p", "adjusted p")
    header = (*header, "the first is", *(("margin",) if margin else ()))
    pairs = sorted(board.pairs, key=lambda pair: pair.p_adjusted)[:MOST_PAIRS]
    rows = tuple(_pair_row(pair, margin=margin) for pair in pairs)
    family = {ALL: "all pairs", LEADER: "each against the leader"}
    against = family.get(str(result.how.against), f"each against {result.how.against}")
    how = f"{against}, {CORRECTED[result.how.correction]}"
    return Grid(f"Differences in {board.metric.expression} ({how})", header, rows, left=2)


def _pair_row(pair: Pair, *, margin: bool) -> tuple[Cell, ...]:
    limits = between(pair.low, pair.high)
    p, adjusted = _p(pair.p), _p(pair.p_adjusted)
    row = (pair.first, pair.second, pair.difference, limits, p, adjusted, pair.verdict)
    return (*row, pair.margin_verdict) if margin else row


def _cut(board: Board) -> list[str]:
    left = len(board.pairs) - MOST_PAIRS
    return [f"{left:,} more pairs are in the JSON report."] if left > 0 else []


def _all_metrics(result: Comparison) -> list[str | Grid]:
    """Return the values of every system on every metric, as many as fit on a page."""
    boards = list(result.boards.values())
    order = [one.system for one in boards[0].standings]
    grids: list[str | Grid] = []
    for start in range(0, len(boards), BESIDE):
        part = boards[start : start + BESIDE]
        rows: list[tuple[Cell, ...]] = [
            (system, *(_value(board, system) for board in part)) for system in order
        ]
        header = ("system", *(board.metric.expression for board in part))
        grids.append(Grid("Values and letters", header, tuple(rows)))
    return grids


def _surety(board: Board) -> list[str]:
    """Say how the intervals of the systems were found, and why a system has no value."""
    lines = by_method({one.system: one.estimate for one in board.standings})
    return lines + [
        f"{one.system} has no value: {one.estimate.note}."
        for one in board.standings
        if math.isnan(one.estimate.value)
    ]


def _value(board: Board, system: str) -> str:
    one = board.standing(system)
    return f"{shown(with_limits(one.estimate))} {one.letters or ''}".strip()


def _tests(tests: PairTests) -> list[str | Grid]:
    rows: list[tuple[Cell, ...]] = []
    for name, test in tests.permutation.items():
        kind = "exact" if test.draws is None else f"{test.draws:,} swaps"
        rows.append((f"permutation, {name}", _p(test.p), test.note or kind))
    words = {
        "mcnemar": "McNemar: right equally often",
        "sign": "sign: nearer to gold equally often",
        "bowker": "Bowker: moves up and down alike",
        "stuart_maxwell": "Stuart-Maxwell: same use of levels",
    }
    for name, test in tests.others.items():
        ways = "degree" if test.freedom == 1 else "degrees"
        freedom = "exact" if test.freedom is None else f"{test.freedom} {ways} of freedom"
        rows.append((words[name], _p(test.p), test.note or freedom))
    return [Grid(f"Tests: {tests.first} and {tests.second}", ("test", "p", ""), tuple(rows))]


def _p(p: float) -> str:
    if math.isnan(p):
        return "undefined"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
