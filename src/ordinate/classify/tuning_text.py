"""The report of a tuning run: sentences and tables."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ordinate.classify.decision_rules import RULE_TITLES
from ordinate.classify.scoring import NO_BETTER_THAN_CHANCE, DecisionRuleScores
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.results.base import BETTER_VALUES
from ordinate.results.evaluation import Score
from ordinate.results.evaluation_text import describe_interval_methods

if TYPE_CHECKING:
    from ordinate.classify.tuning_result import Finalist, HeldOutResult, StudyResult, TuningResult

DECODE_PHRASES = {
    "metric": "with the levels that the metric rewards",
    "argmax": "with the most probable levels",
    "rounded_mean": "with rounded means",
}
BASELINE_TITLES = ("best constant", "chance")
GROUPED_UNITS, INDEPENDENT_UNITS = "the groups for units", "items as independent"
OPTIMISM_NOTE = (
    "The best of many is optimistically biased: each value was selected among others on the same "
    "items, so expect less of new ones."
)


def describe_tuning(result: "TuningResult") -> Document:
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


def _describe_source(result: "TuningResult") -> str:
    source, settings = result.source, result.settings
    counts = zip(source.scale.names, source.counts, strict=True)
    levels = ", ".join(f"{name} {count}" for name, count in counts)
    groups = "" if source.groups is None else f" in {source.groups:,} groups, kept whole"
    weights = (
        ""
        if settings.weight_strategy == "equal"
        else f" Class weights: {settings.weight_strategy}, alpha {settings.weight_alpha:g}"
        f"{', in the metric too' if settings.weight_metric else ''}."
    )
    better = BETTER_VALUES[settings.measure.direction].capitalize()
    return (
        f"Trained on {', '.join(source.training)} ({levels}). Cross-validated in {settings.folds} "
        f"folds{groups}, seed {settings.seed}. {better} values of {settings.metric} are better."
        f"{weights}"
    )


# --- screening -----------------------------------------------------------------------------------


def _build_screening_grid(result: "TuningResult") -> Grid:
    header = ("set", "features", *_build_score_header(result), "searched", "flag")
    rows = tuple(
        (
            one.set,
            one.features,
            *_build_evaluation_cells(result, one.evaluation),
            "yes" if one.shortlisted else "no",
            _get_flag(one.evaluation),
        )
        for one in result.screened
    )
    return Grid("Screening: each feature set with logistic regression", header, rows)


def _describe_discarded(result: "TuningResult") -> list[str]:
    matched: dict[str, list[str]] = {}
    for one in result.screened:
        matched.setdefault(one.matched, []).append(one.set)
    lines = [f"Rows matched {method}: {', '.join(sets)}." for method, sets in matched.items()]
    lines += [f"{one.set} failed: {one.failed}" for one in result.screened if one.failed]
    lines += [
        f"{one.set} is not searched: {one.discard_reason}."
        for one in result.screened
        if one.discard_reason and not one.failed
    ]
    return [" ".join(lines)] if lines else []


def _build_score_header(result: "TuningResult") -> tuple[str, ...]:
    return (result.settings.metric, "95 % CI", *BASELINE_TITLES)


def _build_evaluation_cells(
    result: "TuningResult", evaluation: DecisionRuleScores | None
) -> tuple[Cell, ...]:
    """Return a value with its confidence interval, beside what it must beat."""
    if evaluation is None:
        return ("failed", None, None, None)
    return _build_score_cells(result, evaluation.score)


def _get_flag(evaluation: DecisionRuleScores | None) -> str | None:
    return None if evaluation is None else evaluation.flag


def _build_score_cells(result: "TuningResult", score: Score) -> tuple[Cell, ...]:
    best_constant, estimate = score.baselines.best_constant, score.estimate
    constant = format_cell(best_constant.value)
    if best_constant.level is not None:
        scale = result.source.scale
        constant += f" ({scale.names[scale.lookup[best_constant.level]]})"
    interval = None if estimate is None else format_interval(estimate.low, estimate.high)
    return (score.value, interval or "none", constant, score.baselines.chance.value)


# --- search --------------------------------------------------------------------------------------


def _build_search_grid(result: "TuningResult") -> Grid:
    header = ("set", "model", *_build_score_header(result), "trials", "pruned", "failed", "flag")
    rows = [_build_search_row(result, study) for study in result.studies]
    if vote := result.vote:
        cells = _build_evaluation_cells(result, vote.evaluation)
        rows.append(
            ("+".join(vote.sets), vote.model_type, *cells, None, None, None, vote.evaluation.flag)
        )
    title = "Search: the best trial of each feature set and model, by cross-validation"
    return Grid(title, header, tuple(rows), left=2)


def _build_search_row(result: "TuningResult", study: "StudyResult") -> tuple[Cell, ...]:
    evaluation = study.best.evaluation if study.best else None
    complete, *others = study.counts.values()
    return (
        study.set,
        study.model_type,
        *_build_evaluation_cells(result, evaluation),
        f"{complete} of {study.requested}",
        *others,
        _get_flag(evaluation),
    )


def _describe_hyperparameters(result: "TuningResult") -> list[str]:
    return [
        f"{one.name}: {_format_hyperparameters(_get_hyperparameters(one))}."
        for one in result.finalists
    ]


def _get_hyperparameters(one: "Finalist") -> Mapping[str, Any]:
    return {"members": " ".join(one.members)} if one.members else one.params


def _format_hyperparameters(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _build_rule_grid(result: "TuningResult") -> Grid:
    """Return what each decision rule is worth, beside what it must beat."""
    rules = list(result.winner.evaluation.scores)
    rows = tuple(_build_rule_row(result, one, rules) for one in result.finalists)
    title = f"{result.settings.metric} by the decision rule, by cross-validation"
    return Grid(
        title, ("model", *(RULE_TITLES[rule] for rule in rules), *BASELINE_TITLES, "flag"), rows
    )


def _build_rule_row(result: "TuningResult", one: "Finalist", rules: list[str]) -> tuple[Cell, ...]:
    values = [one.evaluation.scores[rule].value for rule in rules]
    *_, constant, chance = _build_evaluation_cells(result, one.evaluation)
    flagged = [RULE_TITLES[rule] for rule in rules if one.evaluation.get_flag(rule)]
    flag = (
        NO_BETTER_THAN_CHANCE
        if len(flagged) == len(rules)
        else f"{', '.join(flagged)}: {NO_BETTER_THAN_CHANCE}"
    )
    return (one.name, *values, constant, chance, flag if flagged else None)


# --- the winner ----------------------------------------------------------------------------------


def _describe_winner(result: "TuningResult") -> str:
    winner, evaluation = result.winner, result.winner.evaluation
    bounds = format_interval(*evaluation.bounds)
    interval = f" ({bounds})" if bounds else ""
    flag = (
        f" It is {evaluation.flag}: the confidence interval of its quadratic kappa reaches 0."
        if evaluation.flag
        else ""
    )
    notes = "".join(f" {note}" for note in winner.notes)
    return (
        f"The winner is {winner.name}: {result.settings.metric} "
        f"{format_cell(evaluation.value)}{interval} by cross-validation, "
        f"{DECODE_PHRASES[result.settings.decode]}. It was fitted again on all training data and "
        f"saved.{flag}{notes}"
    )


def _build_test_blocks(result: "TuningResult") -> list[str | Grid]:
    header = ("data", "decision rule", "n", *_build_score_header(result), "flag")
    tested = [(one, one.evaluation) for one in result.tests if one.evaluation]
    rows = tuple(
        (
            one.name,
            RULE_TITLES[rule],
            one.n,
            *_build_score_cells(result, score),
            evaluation.get_flag(rule),
        )
        for one, evaluation in tested
        for rule, score in evaluation.scores.items()
    )
    title = "Test: the winner on data by which nothing was selected"
    blocks: list[str | Grid] = [Grid(title, header, rows, left=2)] if rows else []
    lines = [_describe_optimism(one) for one, _ in tested]
    lines += [f"{one.name}: {one.note}" for one in result.tests if one.note]
    return [*blocks, " ".join(lines)] if lines else blocks


def _describe_optimism(one: "HeldOutResult") -> str:
    if math.isnan(one.optimism):
        return f"On {one.name} the optimistic bias of cross-validation is unknown."
    if one.optimism > 0:
        return f"Optimism: cross-validation was {format_cell(one.optimism)} better than {one.name}."
    return f"No optimism: {one.name} was {format_cell(-one.optimism)} better than cross-validation."


def _build_nested_blocks(result: "TuningResult") -> list[str | Grid]:
    if result.nested is None:
        return []
    won, nested = result.winner.evaluation, result.nested.evaluation
    rows = (
        ("cross-validation", *_build_evaluation_cells(result, won), won.flag),
        ("nested", *_build_evaluation_cells(result, nested), nested.flag),
    )
    title = "Nested cross-validation: the whole selection repeated for each outer fold"
    sentence = (
        f"The outer folds selected {', '.join(result.nested.selected)}. Each was evaluated on "
        "items that it had not seen, so the nested value has no optimistic bias from the selection."
    )
    return [Grid(title, ("estimate", *_build_score_header(result), "flag"), rows), sentence]


def _describe_intervals(result: "TuningResult") -> str:
    """Describe the methods of the intervals that matter most, and what they leave out."""
    evaluated = {"cross-validation": result.winner.evaluation}
    evaluated |= {one.name: one.evaluation for one in result.tests if one.evaluation}
    found = {name: one.score.estimate for name, one in evaluated.items() if one.score.estimate}
    head = f"Intervals take {_describe_units(result)}, and the model as given."
    return " ".join([f"{head} {OPTIMISM_NOTE}", *describe_interval_methods(found)])


def _describe_units(result: "TuningResult") -> str:
    """Say what intervals take for one: test data may lack the groups that training data have."""
    groups = {"cross-validation": result.source.groups}
    groups |= {one.name: one.groups for one in result.tests if one.evaluation}
    units: dict[str, list[str]] = {}
    for name, count in groups.items():
        units.setdefault(INDEPENDENT_UNITS if count is None else GROUPED_UNITS, []).append(name)
    if len(units) == 1:
        return next(iter(units))
    return " and ".join(f"{unit} ({', '.join(names)})" for unit, names in units.items())
