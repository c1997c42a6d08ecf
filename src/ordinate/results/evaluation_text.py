"""An evaluation in words and grids."""

import math
from typing import Any

from ordinate.inference import Estimate
from ordinate.inference.clustered_errors import VERY_FEW
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, between, shown
from ordinate.results.evaluation import BETTER, Evaluation, Score
from ordinate.results.per_level import VALUES

BESIDE, APART = 6, 3  # groups in one grid
MOST_LOSSES = 15  # cells in one grid; JSON has all
METHODS = {
    "delta": "the delta method",
    "percentile": "percentile bootstrap",
    "bca": "BCa bootstrap",
    "wilson": "Wilson",
    "mover": "MOVER over the levels",
    "simultaneous": "limits of all levels at once",
    "dirichlet": "Dirichlet posterior",
    "jeffreys": "Dirichlet posterior with Jeffreys' prior",
    "t": "Student's t over groups",
}


def describe(result: Evaluation) -> Document:
    """Return the report: the metrics beside their baselines, the table, the levels, the groups."""
    blocks: list[str | Grid] = [_source(result), _metrics(result), *_verdicts(result)]
    blocks += [*_surety(result), *_human(result)]
    blocks += [_table(result), _shift(result), _levels(result), *_losses(result)]
    blocks += [*_groups(result), *_apart(result)]
    blocks += result.probabilities.blocks() if result.probabilities else []
    return Document(_title(result), tuple(blocks))


def _title(result: Evaluation) -> str:
    table = result.table
    weight = "" if table.total == table.n else f" of weight {shown(float(table.total))}"
    return f"{table.n:,} item{'' if table.n == 1 else 's'}{weight} on {table.scale}"


def _source(result: Evaluation) -> str:
    origin, table = result.origin, result.table
    parts = [f"Gold: {origin.gold}. Predicted: {origin.predicted}."]
    if origin.files:
        parts.insert(0, f"Read from {', '.join(origin.files)}.")
    if origin.joined:
        matched, missing, unknown = (f"{n:,}" for n in origin.joined.values())
        parts.append(
            f"Joined by id: {matched} matched, {missing} gold without a prediction, {unknown} "
            "predictions unknown to gold and left out."
        )
    if table.dropped:
        parts.append(f"Dropped for a missing label: {table.dropped:,} items.")
    if table.has_unanswered:
        unanswered = shown(_count(float(table.unanswered.sum())))
        parts.append(f"Without a prediction: {unanswered} items, counted as the worst answer.")
    return " ".join([*parts, *origin.notes])


def _metrics(result: Evaluation) -> Grid:
    majority = result.table.scale.names[int(result.table.gold.argmax())]
    header = ("metric", "better", "value", *_interval_title(result), "best constant")
    rows = tuple(_metric_row(result, name, score) for name, score in result.metrics.items())
    return Grid("Metrics", (*header, f"majority {majority}", "chance", "attainable"), rows, left=2)


def _interval_title(result: Evaluation) -> tuple[str, ...]:
    return () if result.interval is None else (f"{100 * result.interval.level:g} % interval",)


def _metric_row(result: Evaluation, name: str, score: Score) -> tuple[Cell, ...]:
    against = score.baselines
    constant = shown(against.best_constant.value)
    if against.best_constant.level is not None:
        constant += f" ({_name(result, score)})"
    reach = against.attainable
    return (
        name,
        BETTER[score.metric.direction],
        score.value,
        *_interval(result, score.estimate),
        constant,
        against.majority.value,
        against.chance.value,
        None if reach is None else f"{shown(reach[0])} to {shown(reach[1])}",
    )


def _interval(result: Evaluation, found: Estimate | None) -> tuple[Cell, ...]:
    """Return the cell of an interval, or no cell where none was asked for."""
    if result.interval is None:
        return ()
    return ("none",) if found is None or found.method is None else (between(found.low, found.high),)


def _name(result: Evaluation, score: Score) -> str:
    """Return the display name of the level that is the best constant."""
    scale = result.table.scale
    return scale.names[scale.lookup[score.baselines.best_constant.level]]


def _verdicts(result: Evaluation) -> list[str]:
    scores = result.metrics.items()
    judged = [(n, s) for n, s in scores if s.metric.direction != "zero"]
    beaten = [(name, score) for name, score in judged if score.beats_constant is False]
    lines = []
    if beaten:
        each = [
            f"{name} (always {_name(result, score)}: {shown(score.baselines.best_constant.value)})"
            for name, score in beaten
        ]
        lines.append(f"Does not beat a constant on {', '.join(each)}.")
    elif any(score.beats_constant for _, score in judged):
        lines.append("Better than every constant prediction on each metric that allows one.")
    lines += [f"{name} is undefined: {s.undefined}." for name, s in scores if s.undefined]
    used, size = int((result.table.gold > 0).sum()), len(result.table.scale)
    if used < size:
        lines.append(f"Gold has {used} of the {size} levels; macro averages leave the others out.")
    return lines


def _surety(result: Evaluation) -> list[str]:
    """Say how the intervals were found, and what is unsure about them."""
    if result.interval is None:
        return []
    found = {name: score.estimate for name, score in result.metrics.items() if score.estimate}
    parts = by_method(found)
    if result.groups is not None:
        few = " So few groups leave the limits unsure." if result.groups < VERY_FEW else ""
        count = f"{result.groups:,} group{'' if result.groups == 1 else 's'}"
        parts.append(f"Items come in {count}, taken as units; levels have no limits then.{few}")
    return parts


def by_method(found: dict[str, Estimate]) -> list[str]:
    """Say how the intervals of metrics were found, why there are none, and what was left out."""
    methods: dict[str, list[str]] = {}
    for name, one in found.items():
        if one.method is not None:
            why = f" ({one.note})" if one.note else ""
            methods.setdefault(f"{METHODS[one.method]}{why}", []).append(name)
    lines = [f"Intervals by {how}: {', '.join(names)}." for how, names in methods.items()]
    parts = [" ".join(lines)] if lines else []
    parts += [
        f"No interval for {name}: {one.note}."
        for name, one in found.items()
        if one.method is None and not math.isnan(one.value)
    ]
    parts += [
        f"{name} was undefined in {100 * one.undefined_share:.1f} % of the draws, which are left "
        "out."
        for name, one in found.items()
        if one.undefined_share
    ]
    return parts


def _human(result: Evaluation) -> list[Grid]:
    """Return the system beside a second human on the same items."""
    if result.human is None:
        return []
    title = _interval_title(result)
    header = ("metric", "system", *title, "second human", *title)
    rows = tuple(
        (
            name,
            score.value,
            *_interval(result, score.estimate),
            result.human[name].value,
            *_interval(result, result.human[name]),
        )
        for name, score in result.metrics.items()
    )
    return [Grid("System and second human, both against gold", header, rows)]


def _losses(result: Evaluation) -> list[Grid]:
    grids = []
    for name, found in result.losses.items():
        header = ("gold", "predicted", "items", "gain if right", "per item")
        rows = tuple(
            (
                str(loss.gold),
                "no answer" if loss.predicted is None else str(loss.predicted),
                _count(loss.weight),
                loss.gain,
                shown(loss.per_item) if math.isnan(loss.per_item) else f"{loss.per_item:.2g}",
            )
            for loss in found[:MOST_LOSSES]
        )
        if rows:
            grids.append(Grid(f"Where the loss of {name} comes from", header, rows, left=2))
    return grids


def _table(result: Evaluation) -> Grid:
    table = result.table
    names = table.scale.names
    header = ["gold \\ predicted", *names]
    if table.has_unanswered:
        header.append("no answer")
    cells = table.weights if table.has_unanswered else table.counts
    rows = [
        (name, *map(_count, row.tolist()), _count(float(total)))
        for name, row, total in zip(names, cells, table.gold, strict=True)
    ]
    totals = cells.sum(axis=0)
    rows.append(("total", *map(_count, totals.tolist()), _count(float(table.total))))
    return Grid("Confusion table", (*header, "total"), tuple(rows))


def _count(value: float) -> Cell:
    return int(value) if value == int(value) else value


def _shift(result: Evaluation) -> str:
    table = result.table
    above = table.scale.positions > table.scale.positions[:, None]
    over, under = ((table.share * side).sum() for side in (above, above.T))
    return f"Predicted too high: {100 * over:.1f} %. Predicted too low: {100 * under:.1f} %."


def _levels(result: Evaluation) -> Grid:
    counts = ("support", "predicted")
    rows = tuple(
        (row["name"], *(_level_cell(row, value) for value in VALUES), *(row[x] for x in counts))
        for row in result.per_level
    )
    return Grid("Levels", ("level", *VALUES, *counts), rows)


def _level_cell(row: dict[str, Any], value: str) -> Cell:
    """Return a value with its limits, in two digits to save room."""
    limits = between(row[f"{value}_low"], row[f"{value}_high"], digits=2)
    return _or_nothing(row[value]) if limits is None else f"{shown(row[value])} ({limits})"


def _or_nothing(value: Cell) -> Cell:
    return "n/a" if isinstance(value, float) and math.isnan(value) else value


def _groups(result: Evaluation) -> list[Grid]:
    """Return the subgroups side by side, as many as fit on a page."""
    groups = result.named_groups()
    fit = BESIDE if result.interval is None else APART
    return [_beside(result, groups[k : k + fit]) for k in range(0, len(groups), fit)]


def _apart(result: Evaluation) -> list[Grid]:
    """Return how each subgroup differs from all other items; of two, the first is enough."""
    groups = [(name, part) for name, part in result.named_groups() if part.against_rest]
    groups = groups[:1] if len(groups) == 2 else groups
    grids = []
    for start in range(0, len(groups), APART):
        part = groups[start : start + APART]
        rows: list[tuple[Cell, ...]] = [
            (metric, *(with_limits(group.against_rest[metric]) for _, group in part))
            for metric in result.metrics
        ]
        header = ("metric", *(name for name, _ in part))
        grids.append(Grid("Groups: difference from all other items", header, tuple(rows)))
    return grids


def with_limits(found: Estimate) -> Cell:
    """Return a value with its limits in one cell."""
    limits = between(found.low, found.high, digits=2)
    return found.value if limits is None else f"{shown(found.value)} ({limits})"


def _beside(result: Evaluation, groups: list[tuple[str, Evaluation]]) -> Grid:
    header = ("metric", "(all)", *(group for group, _ in groups))
    counts: tuple[Cell, ...] = ("items", result.table.n, *(part.table.n for _, part in groups))
    rows: list[tuple[Cell, ...]] = [
        (name, _cell(score), *(_cell(part.metrics[name]) for _, part in groups))
        for name, score in result.metrics.items()
    ]
    return Grid("Groups", header, (counts, *rows))


def _cell(score: Score) -> Cell:
    return score.value if score.estimate is None else with_limits(score.estimate)
