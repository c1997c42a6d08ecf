"""A run of tuning in words and grids."""

import math
from collections.abc import Mapping
from typing import Any

from ordinate.classify.scoring import NO_BETTER_THAN_CHANCE, DecisionRuleScores
from ordinate.classify.tuning_result import (
    STATES,
    Finalist,
    HeldOutResult,
    StudyResult,
    TuningResult,
)
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.results.base import BETTER_VALUES
from ordinate.results.evaluation import Score
from ordinate.results.evaluation_text import describe_interval_methods

RULE_TITLES = {"decoded": "decoded", "argmax": "argmax", "average": "rounded average"}
DECODE_PHRASES = {
    "metric": "with the levels that the metric rewards",
    "argmax": "with the most probable levels",
    "average": "with rounded averages",
}
BASELINE_TITLES = ("best constant", "chance")
GROUPED_UNITS, INDEPENDENT_UNITS = "the groups for units", "items as independent"
OPTIMISM_NOTE = (
    "The best of many is optimistically biased: each value was chosen among others on the same "
    "items, so expect less of new ones."
)


def describe_tuning(result: TuningResult) -> Document:
    """Return the report: screening, search, the winner, its test, and what to keep in mind."""
    blocks: list[str | Grid] = [
        _describe_source(result),
        _build_screening_grid(result),
        *_describe_discarded(result),
    ]
    blocks += [
        _build_search_grid(result),
        *_describe_hyperparameters(result),
        _build_rule_grid(result),
        _describe_winner(result),
    ]
    blocks += [
        *_build_test_blocks(result),
        *_build_nested_blocks(result),
        _describe_intervals(result),
        *result.notes,
    ]
    title = f"Tuned for {result.settings.metric} on {result.source.n:,} items"
    return Document(f"{title} of {result.source.scale}", tuple(blocks))


def _describe_source(result: TuningResult) -> str:
    source, asked = result.source, result.settings
    counts = zip(source.scale.names, source.counts, strict=True)
    levels = ", ".join(f"{name} {count}" for name, count in counts)
    groups = "" if source.groups is None else f" in {source.groups:,} groups, kept whole"
    weights = (
        ""
        if asked.weight_strategy == "equal"
        else f" Class weights: {asked.weight_strategy}, alpha {asked.weight_alpha:g}"
        f"{', in the metric too' if asked.weight_metric else ''}."
    )
    return (
        f"Learned from {', '.join(source.training)} ({levels}). Cross-validated in {asked.folds} "
        f"folds{groups}, seed {asked.seed}. {BETTER_VALUES[asked.measure.direction].capitalize()} "
        f"values of {asked.metric} are better.{weights}"
    )


# --- screening -----------------------------------------------------------------------------------


def _build_screening_grid(result: TuningResult) -> Grid:
    header = ("set", "features", *_build_score_header(result), "searched", "flag")
    rows = tuple(
        (
            one.set,
            one.features,
            *_build_evaluation_cells(result, one.evaluation),
            "yes" if one.kept else "no",
            _get_flag(one.evaluation),
        )
        for one in result.screened
    )
    return Grid("Screening: each feature set with logistic regression", header, rows)


def _describe_discarded(result: TuningResult) -> list[str]:
    matched: dict[str, list[str]] = {}
    for one in result.screened:
        matched.setdefault(one.matched, []).append(one.set)
    lines = [f"Rows matched {how}: {', '.join(sets)}." for how, sets in matched.items()]
    lines += [f"{one.set} failed: {one.failed}" for one in result.screened if one.failed]
    lines += [
        f"{one.set} is not searched: {one.discard_reason}."
        for one in result.screened
        if one.discard_reason and not one.failed
    ]
    return [" ".join(lines)] if lines else []


def _build_score_header(result: TuningResult) -> tuple[str, ...]:
    return (result.settings.metric, "95 % interval", *BASELINE_TITLES)


def _build_evaluation_cells(
    result: TuningResult, judged: DecisionRuleScores | None
) -> tuple[Cell, ...]:
    """Return a value with its interval, beside what it must beat."""
    if judged is None:
        return ("failed", None, None, None)
    return _build_score_cells(result, judged.score)


def _get_flag(judged: DecisionRuleScores | None) -> str | None:
    return None if judged is None else judged.flag


def _build_score_cells(result: TuningResult, score: Score) -> tuple[Cell, ...]:
    against, found = score.baselines, score.estimate
    constant = format_cell(against.best_constant.value)
    if against.best_constant.level is not None:
        scale = result.source.scale
        constant += f" ({scale.names[scale.lookup[against.best_constant.level]]})"
    limits = None if found is None else format_interval(found.low, found.high)
    return (score.value, limits or "none", constant, against.chance.value)


# --- search --------------------------------------------------------------------------------------


def _build_search_grid(result: TuningResult) -> Grid:
    header = ("set", "model", *_build_score_header(result), "trials", "pruned", "failed", "flag")
    rows = [_build_search_row(result, one) for one in result.searched]
    if vote := result.vote:
        beside = _build_evaluation_cells(result, vote.evaluation)
        rows.append(
            ("+".join(vote.sets), vote.kind, *beside, None, None, None, vote.evaluation.flag)
        )
    title = "Search: the best trial of each feature set and model, by cross-validation"
    return Grid(title, header, tuple(rows), left=2)


def _build_search_row(result: TuningResult, one: StudyResult) -> tuple[Cell, ...]:
    judged = one.best.evaluation if one.best else None
    complete, pruned, failed = map(one.count, STATES)
    counts = (f"{complete} of {one.wanted}", pruned, failed)
    return (one.set, one.kind, *_build_evaluation_cells(result, judged), *counts, _get_flag(judged))


def _describe_hyperparameters(result: TuningResult) -> list[str]:
    return [
        f"{one.name}: {_format_hyperparameters(_get_hyperparameters(one))}."
        for one in result.finalists
    ]


def _get_hyperparameters(one: Finalist) -> Mapping[str, Any]:
    return {"members": " ".join(one.members)} if one.members else one.params


def _format_hyperparameters(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _build_rule_grid(result: TuningResult) -> Grid:
    """Return what each decision rule is worth, beside what it must beat."""
    ways = list(result.winner.evaluation.scores)
    rows = tuple(_build_rule_row(result, one, ways) for one in result.finalists)
    title = f"{result.settings.metric} by the decision rule, by cross-validation"
    return Grid(
        title, ("model", *(RULE_TITLES[way] for way in ways), *BASELINE_TITLES, "flag"), rows
    )


def _build_rule_row(result: TuningResult, one: Finalist, ways: list[str]) -> tuple[Cell, ...]:
    values = [one.evaluation.scores[way].value for way in ways]
    *_, constant, chance = _build_evaluation_cells(result, one.evaluation)
    flagged = [RULE_TITLES[way] for way in ways if one.evaluation.get_flag(way)]
    said = (
        NO_BETTER_THAN_CHANCE
        if len(flagged) == len(ways)
        else f"{', '.join(flagged)}: {NO_BETTER_THAN_CHANCE}"
    )
    return (one.name, *values, constant, chance, said if flagged else None)


# --- the winner ----------------------------------------------------------------------------------


def _describe_winner(result: TuningResult) -> str:
    won, judged = result.winner, result.winner.evaluation
    limits = format_interval(*judged.limits)
    interval = f" ({limits})" if limits else ""
    flag = (
        f" It is {judged.flag}: the interval of its quadratic kappa reaches 0."
        if judged.flag
        else ""
    )
    notes = "".join(f" {note}" for note in won.notes)
    answers = DECODE_PHRASES[result.settings.decode]
    return (
        f"The winner is {won.name}: {result.settings.metric} "
        f"{format_cell(judged.value)}{interval} by "
        f"cross-validation, {answers}. It was fitted again on all training "
        f"data and saved.{flag}{notes}"
    )


def _build_test_blocks(result: TuningResult) -> list[str | Grid]:
    header = ("data", "answers", "n", *_build_score_header(result), "flag")
    told = [(one, one.evaluation) for one in result.tests if one.evaluation]
    rows = tuple(
        (
            one.name,
            RULE_TITLES[way],
            one.n,
            *_build_score_cells(result, score),
            judged.get_flag(way),
        )
        for one, judged in told
        for way, score in judged.scores.items()
    )
    title = "Test: the winner on data that nothing was chosen by"
    blocks: list[str | Grid] = [Grid(title, header, rows, left=2)] if rows else []
    lines = [_describe_optimism(one) for one, _ in told]
    lines += [f"{one.name}: {one.note}" for one in result.tests if one.note]
    return [*blocks, " ".join(lines)] if lines else blocks


def _describe_optimism(one: HeldOutResult) -> str:
    if math.isnan(one.optimism):
        return f"On {one.name} the optimistic bias of cross-validation is unknown."
    if one.optimism > 0:
        return f"Optimism: cross-validation was {format_cell(one.optimism)} better than {one.name}."
    return f"No optimism: {one.name} was {format_cell(-one.optimism)} better than cross-validation."


def _build_nested_blocks(result: TuningResult) -> list[str | Grid]:
    if result.nested is None:
        return []
    found, won = result.nested, result.winner.evaluation
    rows = (
        ("cross-validation", *_build_evaluation_cells(result, won), won.flag),
        ("nested", *_build_evaluation_cells(result, found.evaluation), found.evaluation.flag),
    )
    title = "Nested: the whole choice repeated on parts of the training data"
    told = (
        f"The parts chose {', '.join(found.chosen)}. What each chose was judged on items that it "
        "had not seen, so the nested value has no optimistic bias from the choice."
    )
    return [Grid(title, ("estimate", *_build_score_header(result), "flag"), rows), told]


def _describe_intervals(result: TuningResult) -> str:
    """Say how the intervals that matter most were found, and what they leave out."""
    judged = {"cross-validation": result.winner.evaluation}
    judged |= {one.name: one.evaluation for one in result.tests if one.evaluation}
    found = {name: one.score.estimate for name, one in judged.items() if one.score.estimate}
    head = f"Intervals take {_describe_units(result)}, and the model as given."
    return " ".join([f"{head} {OPTIMISM_NOTE}", *describe_interval_methods(found)])


def _describe_units(result: TuningResult) -> str:
    """Say what intervals take for one: test data may lack the groups that training data have."""
    groups = {"cross-validation": result.source.groups}
    groups |= {one.name: one.groups for one in result.tests if one.evaluation}
    parts: dict[str, list[str]] = {}
    for name, count in groups.items():
        parts.setdefault(INDEPENDENT_UNITS if count is None else GROUPED_UNITS, []).append(name)
    if len(parts) == 1:
        return next(iter(parts))
    return " and ".join(f"{how} ({', '.join(names)})" for how, names in parts.items())
