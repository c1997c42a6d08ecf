"""An evaluation in words and grids."""

import math

from ordinate.evaluate.evaluation import BETTER, Evaluation, Score
from ordinate.report import Document, Grid
from ordinate.report.document import Cell, shown

BESIDE = 6  # groups in one grid


def describe(result: Evaluation) -> Document:
    """Return the report: the metrics beside their baselines, the table, the levels, the groups."""
    blocks: list[str | Grid] = [_source(result), _metrics(result), *_verdicts(result)]
    blocks += [_table(result), _shift(result), _levels(result)]
    blocks += _groups(result)
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
    header = ("metric", "better", "value", "best constant", f"majority {majority}", "chance")
    rows = tuple(_metric_row(result, name, score) for name, score in result.metrics.items())
    return Grid("Metrics", (*header, "attainable"), rows, left=2)


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
        constant,
        against.majority.value,
        against.chance.value,
        None if reach is None else f"{shown(reach[0])} to {shown(reach[1])}",
    )


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
    columns = ("precision", "recall", "f1", "mae", "support", "predicted")
    rows = tuple(
        (row["name"], *(_or_nothing(row[column]) for column in columns)) for row in result.per_level
    )
    return Grid("Levels", ("level", *columns), rows)


def _or_nothing(value: Cell) -> Cell:
    return "n/a" if isinstance(value, float) and math.isnan(value) else value


def _groups(result: Evaluation) -> list[Grid]:
    """Return the subgroups side by side, as many as fit on a page."""
    groups = result.named_groups()
    return [_beside(result, groups[k : k + BESIDE]) for k in range(0, len(groups), BESIDE)]


def _beside(result: Evaluation, groups: list[tuple[str, Evaluation]]) -> Grid:
    header = ("metric", "(all)", *(group for group, _ in groups))
    counts: tuple[Cell, ...] = ("items", result.table.n, *(part.table.n for _, part in groups))
    rows: list[tuple[Cell, ...]] = [
        (name, score.value, *(part.metrics[name].value for _, part in groups))
        for name, score in result.metrics.items()
    ]
    return Grid("Groups", header, (counts, *rows))
