"""A comparison in words and grids."""

import math

from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.results.comparison import Comparison, PairTests
from ordinate.results.evaluation import BETTER_VALUES, Origin
from ordinate.results.evaluation_text import describe_interval_methods, format_with_interval
from ordinate.results.leaderboard import AGAINST_ALL, AGAINST_LEADER, Leaderboard, PairDifference
from ordinate.summaries import Panel

MOST_METRICS = 3  # metrics in one grid
MOST_FILES = 12  # named
MOST_PAIRS = 30  # in one grid; JSON has all
CORRECTION_NAMES = {
    "max_t": "max-T, stepping down",
    "holm": "Holm",
    "bh": "Benjamini and Hochberg",
    "by": "Benjamini and Yekutieli",
    "none": "no correction",
}


def describe_comparison(result: Comparison) -> Document:
    """Return the report: who leads, the leaderboard, the differences, the tests."""
    first, *others = result.leaderboards.values()
    blocks: list[str | Grid] = [
        _describe_source(result),
        first.conclusion,
        _make_leaderboard_grid(result, first),
    ]
    blocks += [*first.notes, *_describe_uncertainty(first), _explain_columns(result)]
    blocks += [_make_pairs_grid(result, first), *_note_omitted_pairs(first)]
    if others:
        blocks += _make_metrics_grids(result)
        blocks += [" ".join((b.conclusion, *b.notes, *_describe_uncertainty(b))) for b in others]
    for tests in result.tests:
        blocks += _make_test_grids(tests)
    return Document(_write_title(result), tuple(blocks))


def _write_title(result: Comparison) -> str:
    panel = result.panel
    items = f"{panel.n:,} item{'' if panel.n == 1 else 's'}"
    return f"{len(panel.systems)} systems, {items} on {panel.scale}"


def describe_files(origin: Origin, panel: Panel, gold: str) -> list[str]:
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


def _describe_source(result: Comparison) -> str:
    origin, panel = result.origin, result.panel
    parts = describe_files(origin, panel, f"Gold: {origin.gold}.")
    if panel.group_values:
        count = len(panel.group_values)
        few = "; so few that limits are unsure" if count < VERY_FEW_CLUSTERS else ""
        parts.append(f"Items come in {count:,} groups, which are drawn whole{few}.")
    return " ".join([*parts, *origin.notes])


def _format_percent(level: float) -> str:
    return f"{100 * level:g} % interval"


def _make_leaderboard_grid(result: Comparison, board: Leaderboard) -> Grid:
    name, better = board.metric.expression, BETTER_VALUES[board.metric.direction]
    header = (
        "rank",
        "system",
        name,
        _format_percent(result.how.level),
        "ranks",
        "first in",
        "letters",
    )
    rows: list[tuple[Cell, ...]] = []
    for one in board.standings:
        ranks = None if one.rank is None else f"{one.rank_low} to {one.rank_high}"
        first = f"{100 * one.rank_shares[0]:.1f} %" if one.rank_shares else None
        found = one.estimate
        limits = format_interval(found.low, found.high)
        rank = None if one.rank is None else str(one.rank)
        rows.append((rank, one.system, found.value, limits, ranks, first, one.letters))
    rows += [(None, name, value, None, None, None, None) for name, value in _list_baselines(board)]
    return Grid(f"Leaderboard by {name} ({better} is better)", header, tuple(rows), left=2)


def _list_baselines(board: Leaderboard) -> list[tuple[str, float]]:
    against = board.baselines
    best, majority = against.best_constant, against.majority
    rows = [(f"(always {majority.level})", majority.value)]
    if best.level is not None and best.level != majority.level:
        rows.insert(0, (f"(always {best.level})", best.value))
    return [*rows, ("(chance)", against.chance.value)]


def _explain_columns(result: Comparison) -> str:
    text = (
        "Ranks and the limits of differences hold for all systems at once; adjusted p-values step "
        "down and may decide a little more. 'First in' is how often a system was first when the "
        f"items were resampled ({result.how.resamples:,} resamples, seed {result.how.seed})."
    )
    if (
        result.leaderboards
        and next(iter(result.leaderboards.values())).standings[0].letters is not None
    ):
        text += " Systems that share a letter are not significantly different."
    return text


def _make_pairs_grid(result: Comparison, board: Leaderboard) -> Grid:
    margin = board.metric.expression in result.how.margins
    header = ("first", "second", "difference", _format_percent(result.how.level), "p", "adjusted p")
    header = (*header, "the first is", *(("margin",) if margin else ()))
    pairs = sorted(board.pairs, key=lambda pair: pair.p_adjusted)[:MOST_PAIRS]
    rows = tuple(_make_pair_row(pair, margin=margin) for pair in pairs)
    family = {AGAINST_ALL: "all pairs", AGAINST_LEADER: "each against the leader"}
    against = family.get(str(result.how.against), f"each against {result.how.against}")
    how = f"{against}, {CORRECTION_NAMES[result.how.correction]}"
    return Grid(f"Differences in {board.metric.expression} ({how})", header, rows, left=2)


def _make_pair_row(pair: PairDifference, *, margin: bool) -> tuple[Cell, ...]:
    limits = format_interval(pair.low, pair.high)
    p, adjusted = _format_p_value(pair.p), _format_p_value(pair.p_adjusted)
    row = (pair.first, pair.second, pair.difference, limits, p, adjusted, pair.verdict)
    return (*row, pair.margin_verdict) if margin else row


def _note_omitted_pairs(board: Leaderboard) -> list[str]:
    left = len(board.pairs) - MOST_PAIRS
    return [f"{left:,} more pairs are in the JSON report."] if left > 0 else []


def _make_metrics_grids(result: Comparison) -> list[str | Grid]:
    """Return the values of every system on every metric, as many as fit on a page."""
    boards = list(result.leaderboards.values())
    order = [one.system for one in boards[0].standings]
    grids: list[str | Grid] = []
    for start in range(0, len(boards), MOST_METRICS):
        part = boards[start : start + MOST_METRICS]
        rows: list[tuple[Cell, ...]] = [
            (system, *(_format_value(board, system) for board in part)) for system in order
        ]
        header = ("system", *(board.metric.expression for board in part))
        grids.append(Grid("Values and letters", header, tuple(rows)))
    return grids


def _describe_uncertainty(board: Leaderboard) -> list[str]:
    """Say how the intervals of the systems were found, and why a system has no value."""
    lines = describe_interval_methods({one.system: one.estimate for one in board.standings})
    return lines + [
        f"{one.system} has no value: {one.estimate.note}."
        for one in board.standings
        if math.isnan(one.estimate.value)
    ]


def _format_value(board: Leaderboard, system: str) -> str:
    one = board.get_standing(system)
    return f"{format_cell(format_with_interval(one.estimate))} {one.letters or ''}".strip()


def _make_test_grids(tests: PairTests) -> list[str | Grid]:
    rows: list[tuple[Cell, ...]] = []
    for name, test in tests.permutation.items():
        kind = "exact" if test.resamples is None else f"{test.resamples:,} swaps"
        rows.append((f"permutation, {name}", _format_p_value(test.p), test.note or kind))
    words = {
        "mcnemar": "McNemar: right equally often",
        "sign": "sign: nearer to gold equally often",
        "bowker": "Bowker: moves up and down alike",
        "stuart_maxwell": "Stuart-Maxwell: same use of levels",
    }
    for name, test in tests.others.items():
        ways = "degree" if test.degrees_of_freedom == 1 else "degrees"
        freedom = (
            "exact"
            if test.degrees_of_freedom is None
            else f"{test.degrees_of_freedom} {ways} of freedom"
        )
        rows.append((words[name], _format_p_value(test.p), test.note or freedom))
    return [Grid(f"Tests: {tests.first} and {tests.second}", ("test", "p", ""), tuple(rows))]


def _format_p_value(p: float) -> str:
    if math.isnan(p):
        return "undefined"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
