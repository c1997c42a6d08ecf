"""An evaluation in words and grids."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.subgroup_differences import SubgroupDifference, choose_deal_count
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import (
    describe_clusters,
    format_count,
    format_headline,
    format_interval_head,
    format_with_interval,
    join_names,
)
from ordinate.results.base import BETTER_VALUES
from ordinate.results.case_averages_text import describe_case_averages
from ordinate.results.interval_methods_text import describe_interval_methods
from ordinate.results.per_level import LEVEL_METRICS
from ordinate.results.report_parts import lay_out_subgroups, list_subgroup_blocks

if TYPE_CHECKING:
    from ordinate.inference.constant_tests import ConstantTest
    from ordinate.results.evaluation import Evaluation
    from ordinate.results.metric_scores import Score
    from ordinate.summaries import ConfusionMatrix

CONSTANT_WORDS = {
    "better": "better than",
    "inconclusive": "not significantly better than",
    "worse": "worse than",
}
MOST_NAMED = 5  # subgroups that differ from the rest
MOST_ERROR_CELLS = 15  # cells in one grid; JSON has all
ROUNDING = 1e-12  # of a p-value
MOST_LEVELS = 20  # of a scale whose levels are shown one by one
FEWEST_PER_LEVEL = 5  # items that a scale of more levels needs
DETAILS_NOTE = (
    "The confusion matrix and the levels, which are many, are in a file (-o) and in JSON."
)


def describe_evaluation(result: "Evaluation") -> Document:
    """Return the report: metrics beside baselines, the confusion matrix, levels, subgroups."""
    levels: tuple[Block, ...] = (
        _make_confusion_grid(result),
        _describe_over_and_under(result),
        _make_levels_grid(result),
    )
    many = len(result.confusion_matrix.scale) > MOST_LEVELS
    subgroups = (*_make_subgroup_grids(result), *_make_difference_grids(result))
    cases = _describe_cases(result)
    blocks: list[Block] = [
        _describe_left_out(result),
        _make_metrics_grid(result),
        *_describe_gaps(result),
        *(replace(section, verdict="") for section in cases),
        *_make_second_rater_grid(result),
        *([Document("", details=levels, details_note=DETAILS_NOTE)] if many else levels),
        *_list_proximities(result),
        *_make_error_attribution_grids(result),
        *list_subgroup_blocks(subgroups, len(result.by)),
    ]
    others = [*(section.verdict for section in cases), *_compare_with_constants(result)]
    if result.probabilities is not None:
        if (n := result.probabilities.summary.n) != result.confusion_matrix.n:
            blocks.append(f"Probabilities are those of {format_count(n)}.")
        section = result.probabilities.document()
        blocks.append(replace(section, verdict=""))
        others.append(section.verdict)
    verdicts = {
        name: " ".join(
            [_state_metric(result, name, score), *_name_different_subgroups(result, name), *others]
        )
        for name, score in result.metrics.items()
    }
    return Document(
        _write_title(result),
        tuple(blocks),
        verdict=next(iter(verdicts.values())),
        verdicts=verdicts,
        notes=(
            *_describe_uncertainty(result),
            *_describe_subgroup_tests(result),
            *_describe_source(result),
        ),
        source=result.origin.name_tab(result.origin.predicted),
        metric_titles={name: score.metric.title for name, score in result.metrics.items()},
    )


def _describe_cases(result: "Evaluation") -> list[Document]:
    """Return the section of means over cases, if there is one."""
    if result.case_averages is None:
        return []
    pooled = {name: score.value for name, score in result.metrics.items()}
    return [describe_case_averages(result.case_averages, pooled)]


def _write_title(result: "Evaluation") -> str:
    matrix = result.confusion_matrix
    weight = "" if matrix.total == matrix.n else f" of weight {format_cell(float(matrix.total))}"
    return f"{format_count(matrix.n)}{weight} on {matrix.scale}"


# --- the verdict ---------------------------------------------------------------------------------


def _state_metric(result: "Evaluation", name: str, score: "Score") -> str:
    """Say what a metric is, beside the best constant, chance and a second rater."""
    if score.undefined:
        return f"{name} has no value: {score.undefined}."
    found = _state_value(result, name, score.estimate or make_point_estimate(score.value, ""))
    if score.metric.direction == "zero":
        return f"{found}; nearest to 0 is best."
    no_level = score.baselines.best_constant.level is None
    level = "" if no_level else _get_level_name(result, score)
    said = ", ".join(compare_with_baselines(score, level).values())
    rater = ""
    if result.second_rater is not None:
        rater = (
            f" The second rater reaches {_state_value(result, name, result.second_rater[name])}."
        )
    return f"{found}{': ' if said else ''}{said}.{rater}"


def _state_value(result: "Evaluation", name: str, found: Estimate) -> str:
    level = None if result.interval is None else result.interval.level
    interval = format_interval(found.low, found.high)
    return f"{name} {format_headline(format_cell(found.value), interval, level)}"


def compare_with_baselines(score: "Score", level: str) -> dict[str, str]:
    """Return by relation, such as 'better than', what is said of the baselines that it holds for.

    `level` is the name of the best constant.
    """
    constant, chance = score.baselines.best_constant, score.baselines.chance
    found: dict[str, list[str]] = {}
    for baseline, words in ((constant, f"always predicting {level}"), (chance, "chance")):
        if not math.isnan(baseline.value):
            test = score.against_constant if baseline is constant else None
            how = _compare_with_baseline(score, baseline.value, test)
            found.setdefault(how, []).append(f"{words} ({format_cell(baseline.value)})")
    return {how: f"{how} {' and than '.join(each)}" for how, each in found.items()}


def _compare_with_baseline(score: "Score", baseline: float, test: "ConstantTest | None") -> str:
    """Say whether a value is better than a baseline: by a test, or else by the interval."""
    if test is not None:
        return CONSTANT_WORDS[test.verdict]
    found = score.estimate
    if found is not None and found.low <= baseline <= found.high:
        return "not significantly better than"
    if score.metric.is_better(score.value, baseline):
        return "better than"
    return "no better than" if score.value == baseline else "worse than"


def _compare_with_constants(result: "Evaluation") -> list[str]:
    """Say which metrics do not beat a constant, in the sense of the sentence on each of them."""
    known = {
        name: _compare_with_baseline(
            score, score.baselines.best_constant.value, score.against_constant
        )
        for name, score in result.metrics.items()
        if score.metric.direction != "zero" and score.beats_constant is not None
    }
    beaten = {name: result.metrics[name] for name, how in known.items() if how != "better than"}
    if beaten:
        each = [
            f"{name} (always {_get_level_name(result, score)}: "
            f"{format_cell(score.baselines.best_constant.value)})"
            for name, score in beaten.items()
        ]
        surely = "" if result.interval is None else "significantly "
        return [f"Does not {surely}beat a constant on {', '.join(each)}."]
    if known:
        return ["Better than every constant prediction on each metric that allows one."]
    return []


# --- what was counted, and how -------------------------------------------------------------------


def _describe_left_out(result: "Evaluation") -> str:
    """Say which items are missing or unanswered, and whether the scale is too fine for the rest."""
    matrix, parts = result.confusion_matrix, result.origin.describe_join("gold levels")
    if matrix.dropped:
        parts.append(f"Dropped for a missing label: {matrix.dropped:,} items.")
    if matrix.has_unanswered:
        unanswered = format_cell(_format_count(float(matrix.unanswered.sum())))
        parts.append(f"Without a prediction: {unanswered} items, counted as the worst answer.")
    if len(matrix.scale) > MOST_LEVELS and matrix.n < FEWEST_PER_LEVEL * len(matrix.scale):
        parts.append(
            f"The scale is too fine for its items: {len(matrix.scale):,} levels for {matrix.n:,} "
            "items. Declare a coarser one, or evaluate as regression."
        )
    return " ".join(parts)


def _describe_source(result: "Evaluation") -> list[str]:
    origin = result.origin
    return [
        f"{origin.name_files()}Gold: {origin.gold}. Predicted: {origin.predicted}.",
        *origin.notes,
    ]


# --- grids ---------------------------------------------------------------------------------------


def _make_metrics_grid(result: "Evaluation") -> Grid:
    majority = result.confusion_matrix.scale.names[int(result.confusion_matrix.gold.argmax())]
    header = ("metric", "better", "value", *_make_interval_title(result), "best constant")
    rows = tuple(_make_metric_row(result, name, score) for name, score in result.metrics.items())
    header = (*header, f"majority {majority}", "chance", "attainable")
    optional = ("attainable", f"majority {majority}")
    return Grid("Metrics", header, rows, left=2, optional=optional)


def _make_interval_title(result: "Evaluation") -> tuple[str, ...]:
    return () if result.interval is None else (format_interval_head(result.interval.level),)


def _make_metric_row(result: "Evaluation", name: str, score: "Score") -> tuple[Cell, ...]:
    against = score.baselines
    constant = format_cell(against.best_constant.value)
    if against.best_constant.level is not None:
        constant += f" ({_get_level_name(result, score)})"
    reach = against.attainable
    return (
        name,
        BETTER_VALUES[score.metric.direction],
        score.value,
        *_make_interval_cell(result, score.estimate),
        constant,
        against.majority.value,
        against.chance.value,
        None if reach is None else f"{format_cell(reach[0])} to {format_cell(reach[1])}",
    )


def _make_interval_cell(result: "Evaluation", found: Estimate | None) -> tuple[Cell, ...]:
    """Return the cell of an interval, or no cell where none was asked for."""
    if result.interval is None:
        return ()
    return (
        ("none",)
        if found is None or found.method is None
        else (format_interval(found.low, found.high),)
    )


def _get_level_name(result: "Evaluation", score: "Score") -> str:
    """Return the display name of the level that is the best constant."""
    scale = result.confusion_matrix.scale
    return scale.names[scale.lookup[score.baselines.best_constant.level]]


def _describe_gaps(result: "Evaluation") -> list[str]:
    """Say why values are undefined, and which levels gold does not have."""
    lines = [
        f"{name} is undefined: {s.undefined}." for name, s in result.metrics.items() if s.undefined
    ]
    used, size = int((result.confusion_matrix.gold > 0).sum()), len(result.confusion_matrix.scale)
    if used < size:
        lines.append(f"Gold has {used} of the {size} levels; macro averages leave the others out.")
    return [" ".join(lines)]


def _describe_uncertainty(result: "Evaluation") -> list[str]:
    """Say how the intervals were found, and what is unsure about them."""
    if result.interval is None:
        return []
    found = {name: score.estimate for name, score in result.metrics.items() if score.estimate}
    parts = describe_interval_methods(found)
    if result.groups is not None:
        parts.append(f"{describe_clusters(result.groups)} With clusters, levels have no intervals.")
    return parts


def _make_second_rater_grid(result: "Evaluation") -> list[Grid]:
    """Return the system beside a second rater on the same items."""
    if result.second_rater is None:
        return []
    title = _make_interval_title(result)
    header = ("metric", "system", *title, "second rater", *title)
    rows = tuple(
        (
            name,
            score.value,
            *_make_interval_cell(result, score.estimate),
            result.second_rater[name].value,
            *_make_interval_cell(result, result.second_rater[name]),
        )
        for name, score in result.metrics.items()
    )
    return [Grid("System and second rater, both against gold", header, rows)]


def _make_error_attribution_grids(result: "Evaluation") -> list[Grid]:
    grids = []
    for name, costs in result.error_attribution.items():
        header = ("gold", "predicted", "items", "gain if right", "per item")
        rows = tuple(
            (
                str(cost.gold),
                "no answer" if cost.predicted is None else str(cost.predicted),
                _format_count(cost.weight),
                cost.gain,
                format_cell(cost.per_item) if math.isnan(cost.per_item) else f"{cost.per_item:.2g}",
            )
            for cost in costs[:MOST_ERROR_CELLS]
        )
        if rows:
            grids.append(Grid(f"Error attribution of {name}", header, rows, left=2))
    return grids


def _make_confusion_grid(result: "Evaluation") -> Grid:
    matrix = result.confusion_matrix
    names = matrix.scale.names
    header = ["gold \\ predicted", *names]
    if matrix.has_unanswered:
        header.append("no answer")
    cells = matrix.weights if matrix.has_unanswered else matrix.counts
    rows = [
        (name, *map(_format_count, row.tolist()), _format_count(float(total)))
        for name, row, total in zip(names, cells, matrix.gold, strict=True)
    ]
    totals = cells.sum(axis=0)
    rows.append(("total", *map(_format_count, totals.tolist()), _format_count(float(matrix.total))))
    return Grid("Confusion matrix", (*header, "total"), tuple(rows), totals=1)


def _list_proximities(result: "Evaluation") -> list[Block]:
    """Return the proximities behind CEM where it is reported, for files and on demand."""
    matrix = result.confusion_matrix
    if "cem_ord" not in result.metrics or len(matrix.scale) > MOST_LEVELS:
        return []
    return [Document("", details=(make_proximity_grid(matrix),))]


def make_proximity_grid(matrix: "ConfusionMatrix") -> Grid:
    """Return what CEM counts an answer for each gold level, in bits."""
    names = matrix.scale.names
    rows = zip(names, matrix.proximities().tolist(), strict=True)
    title = "Proximities of cem_ord, in bits: the fewer gold items lie between, the more"
    return Grid(title, ("gold \\ predicted", *names), tuple((name, *row) for name, row in rows))


def _format_count(value: float) -> Cell:
    return int(value) if value == int(value) else value


def _describe_over_and_under(result: "Evaluation") -> str:
    matrix = result.confusion_matrix
    above = matrix.scale.positions > matrix.scale.positions[:, None]
    over, under = ((matrix.share * side).sum() for side in (above, above.T))
    return f"Predicted too high: {100 * over:.1f} %. Predicted too low: {100 * under:.1f} %."


def _make_levels_grid(result: "Evaluation") -> Grid:
    rows = tuple(
        (row["name"], *(_format_level_cell(row, value) for value in LEVEL_METRICS), row["support"])
        for row in result.per_level
    )
    return Grid("Levels", ("level", *LEVEL_METRICS, "support"), rows, optional=("support", "f1"))


def _format_level_cell(row: dict[str, Any], value: str) -> Cell:
    """Return a value with its confidence interval, in two digits to save space."""
    found = Estimate(row[value], row[f"{value}_low"], row[f"{value}_high"], None)
    return "n/a" if math.isnan(found.value) else format_with_interval(found, digits=2)


def _name_different_subgroups(result: "Evaluation", name: str) -> list[str]:
    """Say which subgroups differ from the rest by a metric, those that differ most first."""
    gaps = _list_differences(result).get(name, {})
    if not gaps or result.interval is None:
        return []
    tested = {group: gap for group, gap in gaps.items() if gap.p_note is None}
    reasons = "; ".join(dict.fromkeys(gap.p_note for gap in gaps.values() if gap.p_note))
    if not tested:
        return [f"No subgroup has a verdict by {name}: {reasons}."]
    alpha = 1.0 - result.interval.level + ROUNDING
    clear = {group: gap.value for group, gap in tested.items() if gap.p_adjusted <= alpha}
    family = f" (max-T over {len(tested):,} subgroups)" if len(tested) > 2 else ""
    left = len(gaps) - len(tested)
    untold = f" Without a verdict: {format_count(left, 'subgroup')} ({reasons})." if left else ""
    if not clear:
        return [f"No subgroup is significantly different from the rest by {name}{family}.{untold}"]
    named = [
        f"{group} ({format_cell(clear[group])})"
        for group in sorted(clear, key=lambda group: -abs(clear[group]))
    ]
    some = join_names(named, most=MOST_NAMED)
    return [f"Significantly different from the rest by {name}{family}: {some}.{untold}"]


def _list_differences(result: "Evaluation") -> "dict[str, dict[str, SubgroupDifference]]":
    """Return by metric how each subgroup differs from the rest."""
    parts = result.list_subgroups()
    return {
        name: {
            group: part.difference_from_rest[name]
            for group, part in parts
            if name in part.difference_from_rest
        }
        for name in result.metrics
    }


def _describe_subgroup_tests(result: "Evaluation") -> list[str]:
    """Say how verdicts on subgroups were found, and what they and the intervals stand for."""
    gaps = [gap for each in _list_differences(result).values() for gap in each.values()]
    if not gaps:
        return []
    intervals = "Intervals of differences from the rest are each of one subgroup alone."
    if all(gap.p_note for gap in gaps):
        return [intervals]
    units = "items" if result.groups is None else "clusters, or items within clusters,"
    how = (
        f"Verdicts on subgroups: randomisation max-T, {choose_deal_count(len(result.by)):,} times "
        f"with the {units} dealt anew to subgroups of the same sizes. A subgroup with another mix "
        "of levels may be found by that alone. "
    )
    return [how + intervals]


def _make_subgroup_grids(result: "Evaluation") -> list[Grid]:
    """Return the values of every subgroup."""
    subgroups = result.list_subgroups()
    if not subgroups:
        return []
    parts = [part for _, part in subgroups]
    rows: list[tuple[Cell, ...]] = [("items", *(part.confusion_matrix.n for part in parts))]
    for name in result.metrics:
        rows.append((name, *(format_score(part.metrics[name]) for part in parts)))
        if result.second_rater is not None:
            raters = (_format_second_rater(part, name) for part in parts)
            rows.append((f"{name} of the second rater", *raters))
    rows += [
        (name, *(_format_probability_score(part, name) for part in parts))
        for name in (result.probabilities.metrics if result.probabilities else ())
    ]
    grid = Grid("Subgroups", ("metric", *(group for group, _ in subgroups)), tuple(rows))
    return [lay_out_subgroups(grid, intervals=result.interval is not None)]


def _make_difference_grids(result: "Evaluation") -> list[Grid]:
    """Return how each subgroup differs from all other items; of two, the first is enough."""
    subgroups = [
        (name, part) for name, part in result.list_subgroups() if part.difference_from_rest
    ]
    subgroups = subgroups[:1] if len(subgroups) == 2 else subgroups
    if not subgroups:
        return []
    rows: list[tuple[Cell, ...]] = [
        (metric, *(format_with_interval(x.difference_from_rest[metric]) for _, x in subgroups))
        for metric in result.metrics
    ]
    header = ("metric", *(name for name, _ in subgroups))
    grid = Grid("Subgroups: difference from the rest", header, tuple(rows))
    return [lay_out_subgroups(grid, intervals=True)]


def format_score(score: "Score") -> Cell:
    """Return a value with its interval, where it has one."""
    return score.value if score.estimate is None else format_with_interval(score.estimate)


def _format_second_rater(part: "Evaluation", name: str) -> Cell:
    return None if part.second_rater is None else format_with_interval(part.second_rater[name])


def _format_probability_score(part: "Evaluation", name: str) -> Cell:
    if part.probabilities is None:
        return None
    return format_with_interval(part.probabilities.metrics[name].estimate)
