"""A comparison in words and grids."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ordinate.inference import Estimate
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.inference.system_differences import BOOTSTRAP
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell, Variants, format_cell, format_interval
from ordinate.render.estimates import (
    format_count,
    format_interval_head,
    format_p_value,
    format_with_interval,
    join_names,
)
from ordinate.results.base import BETTER_VALUES, Origin
from ordinate.results.comparison_settings import AGAINST_ALL, AGAINST_LEADER
from ordinate.results.interval_methods_text import describe_interval_methods
from ordinate.results.joint_comparison import (
    RANDOMIZATION,
    RESAMPLING_NAMES,
    PairDifference,
    VerdictTest,
)
from ordinate.results.leaderboard import Leaderboard, state_leader
from ordinate.summaries import Panel

if TYPE_CHECKING:
    from ordinate.results.comparison import Comparison, PairTests

MOST_METRICS = 3  # metrics in one grid
MOST_PAIRS = 30  # in one grid; JSON has all
CORRECTION_NAMES = {
    "max_t": "max-T, stepping down",
    "holm": "Holm",
    "bh": "Benjamini and Hochberg",
    "by": "Benjamini and Yekutieli",
    "none": "no correction",
}


def describe_comparison(result: "Comparison") -> Document:
    """Return the report: who leads, the leaderboard, the differences, the tests."""
    cases = _describe_cases(result)
    blocks: list[Block] = [
        *_make_board_blocks(result),
        *(replace(section, verdict="") for section in cases),
    ]
    for tests in result.tests:
        blocks += _make_test_grids(tests)
    panel = result.panel
    verdicts = {
        name: " ".join([board.conclusion, *(section.verdict for section in cases)])
        for name, board in result.leaderboards.items()
    }
    return Document(
        f"{len(panel.systems)} systems, {format_count(panel.n)} on {panel.scale}",
        tuple(blocks),
        verdict=next(iter(verdicts.values())),
        verdicts=verdicts,
        notes=(_explain_columns(result), *_describe_uncertainty(result), *_describe_source(result)),
        source=result.origin.name_tab(),
        metric_titles={name: x.metric.title for name, x in result.leaderboards.items()},
    )


def _make_board_blocks(result: "Comparison") -> "list[str | Grid | Variants]":
    """Return the leaderboard and the differences by one metric, and what the others say."""

    def make(metric: str) -> list[str | Grid]:
        board = result.leaderboards[metric]
        grids = _make_leaderboard_grid(result, board), _make_pairs_grid(result, board)
        return [*grids, *_note_omitted_pairs(board)]

    _, *others = result.leaderboards.values()
    blocks: list[str | Grid | Variants] = [Variants(tuple(result.leaderboards), make)]
    # a margin is asked of its metric, whichever comes first
    for board in others:
        if board.metric.expression in result.settings.margins:
            blocks += [_make_pairs_grid(result, board), *_note_omitted_pairs(board)]
    if others:
        blocks += [*_make_metrics_grids(result), *_join_conclusions(others)]
    return blocks


def _join_conclusions(boards: list[Leaderboard]) -> list[str]:
    """Return what further metrics say, those that agree in one sentence: grids have the values."""
    agreeing: dict[tuple[str, str], list[Leaderboard]] = {}
    for board in boards:
        leader = board.standings[0]
        verdicts = board.conclusion.removeprefix(state_leader(board.metric, leader))
        agreeing.setdefault((leader.system, verdicts), []).append(board)
    return [
        f"{leader} leads on {join_names([x.metric.expression for x in some])}.{verdicts}"
        if len(some) > 1
        else some[0].conclusion
        for (leader, verdicts), some in agreeing.items()
    ]


def _describe_cases(result: "Comparison") -> list[Document]:
    """Return the section of means over cases, if there is one: the same blocks, of other values."""
    found = result.case_averages
    if found is None:
        return []
    means = replace(result, leaderboards=found.leaderboards, tests=(), case_averages=None)
    column = "" if found.column is None else f" of {found.column}"
    title = f"Mean over {format_count(found.cases, 'case')}{column}"

    def retitle(block: str | Grid) -> str | Grid:
        if isinstance(block, str):
            return block
        own = f"{title}: {block.title[:1].lower()}{block.title[1:]}"
        return replace(block, title=own)

    blocks = [
        block.map(retitle) if isinstance(block, Variants) else retitle(block)
        for block in _make_board_blocks(means)
    ]
    first = next(iter(found.leaderboards.values()))
    notes = [note for board in found.leaderboards.values() for note in board.notes]
    return [
        Document(
            title,
            tuple(blocks),
            verdict=f"{title}: {first.conclusion}",
            notes=(_explain_case_means(means, first), *notes),
        )
    ]


def _explain_case_means(result: "Comparison", board: Leaderboard) -> str:
    """Say how systems are compared by their means over cases."""
    means = "Means over cases: each case counts the same, systems are paired by case, and cases "
    return " ".join([f"{means}are the sample.", *_explain_board(result, board, "case")])


def describe_files(origin: Origin, panel: Panel, gold: str) -> list[str]:
    """Return sentences on the files, the gold levels, and what became of missing labels."""
    parts = [f"{origin.name_files()}{gold}"]
    if panel.dropped:
        parts.append(f"Dropped for a missing label in any column: {panel.dropped:,} items.")
    if (panel.rows == len(panel.scale)).any():
        parts.append("Missing predictions count as the worst answer.")
    return parts


def _describe_source(result: "Comparison") -> list[str]:
    origin, panel = result.origin, result.panel
    parts = describe_files(origin, panel, f"Gold: {origin.gold}.")
    if panel.group_values:
        count = len(panel.group_values)
        few = "; so few that intervals are unsure" if count < VERY_FEW_CLUSTERS else ""
        parts.append(f"Items come in {count:,} clusters, which stay whole{few}.")
    return [" ".join(parts), *origin.notes]


def _make_leaderboard_grid(result: "Comparison", board: Leaderboard) -> Grid:
    name, better = board.metric.expression, BETTER_VALUES[board.metric.direction]
    header = (
        "rank",
        "system",
        name,
        format_interval_head(result.settings.level),
        "rank interval",
        "P(rank 1)",
        *(("CLD",) if _has_letters(board) else ()),
    )
    rows: list[tuple[Cell, ...]] = []
    for standing in board.standings:
        rank = ranks = None
        if standing.rank is not None:
            rank, ranks = str(standing.rank), f"{standing.rank_low} to {standing.rank_high}"
        first = f"{100 * standing.rank_shares[0]:.1f} %" if standing.rank_shares else None
        value = standing.estimate.value
        interval = format_interval(standing.estimate.low, standing.estimate.high)
        row = (rank, standing.system, value, interval, ranks, first)
        rows.append((*row, standing.compact_letter_display)[: len(header)])
    empty = (None,) * (len(header) - 3)
    rows += [(None, name, value, *empty) for name, value in _list_baselines(board)]
    title = f"Leaderboard by {name} ({better} is better)"
    optional = ("P(rank 1)", "rank interval")
    return Grid(title, header, tuple(rows), left=2, optional=optional)


def _list_baselines(board: Leaderboard) -> list[tuple[str, float]]:
    against = board.baselines
    if against is None:
        return []
    best, majority = against.best_constant, against.majority
    rows = [(f"(always {majority.level})", majority.value)]
    if best.level is not None and best.level != majority.level:
        rows.insert(0, (f"(always {best.level})", best.value))
    return [*rows, ("(chance)", against.chance.value)]


def _explain_columns(result: "Comparison") -> str:
    board = next(iter(result.leaderboards.values()))
    unit = "item" if result.panel.groups is None else "cluster"
    return " ".join(_explain_board(result, board, unit))


def _explain_board(result: "Comparison", board: Leaderboard, unit: str) -> list[str]:
    """Say what stands behind verdicts, intervals, P(rank 1) and the compact letter display."""
    settings = result.settings
    parts = [_describe_test(result, board.test, unit)] if board.test and board.pairs else []
    margins = ", and decide margins" if settings.margins else ""
    first = "in it" if board.resampling == BOOTSTRAP else "among values drawn likewise"
    parts.append(
        f"The intervals of differences are by {RESAMPLING_NAMES[board.resampling]}, for all pairs "
        f"at once{margins}; P(rank 1) is how often a system was first {first} "
        f"({settings.resamples:,} resamples, seed {settings.seed})."
    )
    if _has_letters(board):
        parts.append(
            "Systems that share a letter of the compact letter display (CLD) are not "
            "significantly different."
        )
    return parts


def _has_letters(board: Leaderboard) -> bool:
    return board.standings[0].compact_letter_display is not None


def _describe_test(result: "Comparison", test: VerdictTest, unit: str) -> str:
    """Say what stands behind the verdicts, and why it is not the usual test, if it is not."""
    count = len(result.panel.systems)
    many = f"Too many for swaps of predictions: {count * (count - 1) // 2:,} pairs."
    coins = _describe_coins(test, unit)
    over = _describe_correction(result)
    if not test.has_swaps:
        uncounted = result.panel.groups is None and not result.panel.has_integer_weights
        why = "The weights are no counts of items that could be swapped." if uncounted else many
        return (
            f"{why} So verdicts, p-values and rank intervals are by {test.method} {over}, which "
            "finds too much with few clusters or rare levels."
        )
    swapped_all = test.rank_intervals == test.method
    if result.settings.against not in {AGAINST_ALL, AGAINST_LEADER} and count > 2:
        ranks = "" if swapped_all else f" {many} So these are by {test.rank_intervals}."
        return (
            f"Verdicts and p-values are by {test.method} {over} {coins}. Rank intervals are over "
            "all pairs, a larger family, so they may leave open what a verdict decides; there is "
            f"no compact letter display of the smaller one.{ranks}"
        )
    if test.method.startswith(RANDOMIZATION):
        return (
            "Verdicts, p-values, rank intervals and the compact letter display are by "
            f"{test.method} {over} {coins}."
        )
    return (
        f"{many} Only p-values of the pairs shown are by swaps {coins}; adjusted against the "
        f"leader, which all pairs have chosen, and for rank intervals they are by {test.method} "
        f"{over}, never below a pair's own."
    )


def _describe_coins(test: VerdictTest, unit: str) -> str:
    every = "all ways are tried" if test.resamples is None else f"{test.resamples:,} times"
    return (
        f"(one coin for each {unit}, the same for all pairs, decides whether two systems exchange "
        f"their predictions of it; {every})"
    )


def _describe_correction(result: "Comparison") -> str:
    """Say which pairs p-values are adjusted for, and how, if that is not max-T."""
    against, correction = result.settings.against, result.settings.correction
    family = f"the pairs with {against}"
    if against in {AGAINST_ALL, AGAINST_LEADER} or len(result.panel.systems) == 2:
        family = "all pairs"
    if correction == "none":
        return "without a correction"
    return f"over {family}" + (
        "" if correction == "max_t" else f", corrected by {CORRECTION_NAMES[correction]}"
    )


def _make_pairs_grid(result: "Comparison", board: Leaderboard) -> Grid:
    margin = board.metric.expression in result.settings.margins
    header = (
        "first",
        "second",
        "difference",
        format_interval_head(result.settings.level),
        "p",
        "adjusted p",
    )
    header = (*header, "the first is", *(("margin",) if margin else ()))
    pairs = sorted(board.pairs, key=lambda pair: pair.p_adjusted)[:MOST_PAIRS]
    rows = tuple(_make_pair_row(pair, margin=margin) for pair in pairs)
    family = {AGAINST_ALL: "all pairs", AGAINST_LEADER: "each against the leader"}
    against = family.get(str(result.settings.against), f"each against {result.settings.against}")
    title = f"Differences in {board.metric.expression} ({against}, "
    title += f"{CORRECTION_NAMES[result.settings.correction]})"
    return Grid(title, header, rows, left=2, optional=("p", "adjusted p"))


def _make_pair_row(pair: PairDifference, *, margin: bool) -> tuple[Cell, ...]:
    interval = format_interval(pair.low, pair.high)
    p, adjusted = format_p_value(pair.p), format_p_value(pair.p_adjusted)
    row = (pair.first, pair.second, pair.difference, interval, p, adjusted, pair.verdict)
    return (*row, pair.margin_verdict) if margin else row


def _note_omitted_pairs(board: Leaderboard) -> list[str]:
    left = len(board.pairs) - MOST_PAIRS
    return [f"{left:,} more pairs are in the JSON report."] if left > 0 else []


def _make_metrics_grids(result: "Comparison") -> list[Grid]:
    """Return the values of every system on every metric, as many as fit on a page."""
    boards = list(result.leaderboards.values())
    order = [standing.system for standing in boards[0].standings]
    grids = []
    for start in range(0, len(boards), MOST_METRICS):
        part = boards[start : start + MOST_METRICS]
        rows: list[tuple[Cell, ...]] = [
            (system, *(_format_value(board, system) for board in part)) for system in order
        ]
        header = ("system", *(board.metric.expression for board in part))
        letters = " with their compact letter display" if any(map(_has_letters, part)) else ""
        grids.append(Grid(f"Values{letters}", header, tuple(rows)))
    if len(grids) == 1:
        return grids
    return [replace(x, title=f"{x.title}, {k} of {len(grids)}") for k, x in enumerate(grids, 1)]


def _describe_uncertainty(result: "Comparison") -> list[str]:
    """Say how the intervals were found, and why a system has no value."""
    found: dict[str, Estimate] = {}
    lines = []
    for name, board in result.leaderboards.items():
        estimates = {x.system: x.estimate for x in board.standings}
        ways = {(x.method, x.note, x.undefined_share) for x in estimates.values()}
        if len(ways) == 1:  # of all systems alike
            found[name] = next(iter(estimates.values()))
        else:
            found |= {f"{name} of {system}": x for system, x in estimates.items()}
        lines += [*board.notes]
        lines += [
            f"{system} has no value of {name}: {x.note}."
            for system, x in estimates.items()
            if math.isnan(x.value)
        ]
    return [*describe_interval_methods(found), *dict.fromkeys(lines)]


def _format_value(board: Leaderboard, system: str) -> str:
    standing = board.get_standing(system)
    value = format_cell(format_with_interval(standing.estimate))
    return f"{value} {standing.compact_letter_display or ''}".strip()


def _make_test_grids(tests: "PairTests") -> list[Grid]:
    rows: list[tuple[Cell, ...]] = []
    for name, test in tests.permutation.items():
        method = "exact" if test.resamples is None else f"{test.resamples:,} swaps"
        rows.append((f"permutation, {name}", format_p_value(test.p), test.note or method))
    titles = {
        "mcnemar": "McNemar: right equally often",
        "sign": "sign: nearer to gold equally often",
        "bowker": "Bowker: moves up and down alike",
        "stuart_maxwell": "Stuart-Maxwell: same use of levels",
    }
    for name, test in tests.others.items():
        rows.append((titles[name], format_p_value(test.p), test.note or test.basis))
    return [Grid(f"Tests: {tests.first} and {tests.second}", ("test", "p", "basis"), tuple(rows))]
