"""A run of tuning in words and grids."""

import math
from collections.abc import Mapping
from typing import Any

from ordinate.classify.scoring import CHANCE, Judged
from ordinate.classify.tuning_result import STATES, Finalist, HeldOut, Searched, Tuning
from ordinate.render import Document, Grid
from ordinate.render.document import Cell, between, shown
from ordinate.results.evaluation import BETTER, Score
from ordinate.results.evaluation_text import by_method

WAYS = {"decoded": "decoded", "argmax": "argmax", "average": "rounded average"}
ANSWERS = {
    "metric": "with the levels that the metric rewards",
    "argmax": "with the most probable levels",
    "average": "with rounded averages",
}
BASELINES = ("best constant", "chance")
GROUPED, INDEPENDENT = "the groups for units", "items as independent"
FLATTERED = (
    "The best of many is flattered: each value was chosen among others on the same items, so "
    "expect less of new ones."
)


def describe(result: Tuning) -> Document:
    """Return the report: screening, search, the winner, its test, and what to keep in mind."""
    blocks: list[str | Grid] = [_source(result), _screening(result), *_set_aside(result)]
    blocks += [_search(result), *_parameters(result), _ways(result), _winner(result)]
    blocks += [*_tests(result), *_nested(result), _surety(result), *result.notes]
    title = f"Tuned for {result.settings.metric} on {result.source.n:,} items"
    return Document(f"{title} of {result.source.scale}", tuple(blocks))


def _source(result: Tuning) -> str:
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
        f"folds{groups}, seed {asked.seed}. {BETTER[asked.measure.direction].capitalize()} values "
        f"of {asked.metric} are better.{weights}"
    )


# --- screening -----------------------------------------------------------------------------------


def _screening(result: Tuning) -> Grid:
    header = ("set", "features", *_beside_header(result), "searched", "flag")
    rows = tuple(
        (
            one.set,
            one.features,
            *_beside(result, one.judged),
            "yes" if one.kept else "no",
            _flag(one.judged),
        )
        for one in result.screened
    )
    return Grid("Screening: each feature set with logistic regression", header, rows)


def _set_aside(result: Tuning) -> list[str]:
    matched: dict[str, list[str]] = {}
    for one in result.screened:
        matched.setdefault(one.matched, []).append(one.set)
    lines = [f"Rows matched {how}: {', '.join(sets)}." for how, sets in matched.items()]
    lines += [f"{one.set} failed: {one.failed}" for one in result.screened if one.failed]
    lines += [
        f"{one.set} is not searched: {one.why}."
        for one in result.screened
        if one.why and not one.failed
    ]
    return [" ".join(lines)] if lines else []


def _beside_header(result: Tuning) -> tuple[str, ...]:
    return (result.settings.metric, "95 % interval", *BASELINES)


def _beside(result: Tuning, judged: Judged | None) -> tuple[Cell, ...]:
    """Return a value with its interval, beside what it must beat."""
    if judged is None:
        return ("failed", None, None, None)
    return _scored(result, judged.score)


def _flag(judged: Judged | None) -> str | None:
    return None if judged is None else judged.flag


def _scored(result: Tuning, score: Score) -> tuple[Cell, ...]:
    against, found = score.baselines, score.estimate
    constant = shown(against.best_constant.value)
    if against.best_constant.level is not None:
        scale = result.source.scale
        constant += f" ({scale.names[scale.lookup[against.best_constant.level]]})"
    limits = None if found is None else between(found.low, found.high)
    return (score.value, limits or "none", constant, against.chance.value)


# --- search --------------------------------------------------------------------------------------


def _search(result: Tuning) -> Grid:
    header = ("set", "model", *_beside_header(result), "trials", "pruned", "failed", "flag")
    rows = [_searched(result, one) for one in result.searched]
    if vote := result.vote:
        beside = _beside(result, vote.judged)
        rows.append(("+".join(vote.sets), vote.kind, *beside, None, None, None, vote.judged.flag))
    title = "Search: the best trial of each feature set and model, by cross-validation"
    return Grid(title, header, tuple(rows), left=2)


def _searched(result: Tuning, one: Searched) -> tuple[Cell, ...]:
    judged = one.best.judged if one.best else None
    complete, pruned, failed = map(one.count, STATES)
    counts = (f"{complete} of {one.wanted}", pruned, failed)
    return (one.set, one.kind, *_beside(result, judged), *counts, _flag(judged))


def _parameters(result: Tuning) -> list[str]:
    return [f"{one.name}: {_spelled(_params(one))}." for one in result.finalists]


def _params(one: Finalist) -> Mapping[str, Any]:
    return {"members": " ".join(one.members)} if one.members else one.params


def _spelled(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _ways(result: Tuning) -> Grid:
    """Return what each way of answering is worth, beside what it must beat."""
    ways = list(result.winner.judged.scores)
    rows = tuple(_answering(result, one, ways) for one in result.finalists)
    title = f"{result.settings.metric} by the way of answering, by cross-validation"
    return Grid(title, ("model", *(WAYS[way] for way in ways), *BASELINES, "flag"), rows)


def _answering(result: Tuning, one: Finalist, ways: list[str]) -> tuple[Cell, ...]:
    values = [one.judged.scores[way].value for way in ways]
    *_, constant, chance = _beside(result, one.judged)
    flagged = [WAYS[way] for way in ways if one.judged.flag_of(way)]
    said = CHANCE if len(flagged) == len(ways) else f"{', '.join(flagged)}: {CHANCE}"
    return (one.name, *values, constant, chance, said if flagged else None)


# --- the winner ----------------------------------------------------------------------------------


def _winner(result: Tuning) -> str:
    won, judged = result.winner, result.winner.judged
    limits = between(*judged.limits)
    interval = f" ({limits})" if limits else ""
    flag = (
        f" It is {judged.flag}: the interval of its quadratic kappa reaches 0."
        if judged.flag
        else ""
    )
    notes = "".join(f" {note}" for note in won.notes)
    answers = ANSWERS[result.settings.decode]
    return (
        f"The winner is {won.name}: {result.settings.metric} {shown(judged.value)}{interval} by "
        f"cross-validation, {answers}. It was fitted again on all training "
        f"data and saved.{flag}{notes}"
    )


def _tests(result: Tuning) -> list[str | Grid]:
    header = ("data", "answers", "n", *_beside_header(result), "flag")
    told = [(one, one.judged) for one in result.tests if one.judged]
    rows = tuple(
        (
            one.name,
            WAYS[way],
            one.n,
            *_scored(result, score),
            judged.flag_of(way),
        )
        for one, judged in told
        for way, score in judged.scores.items()
    )
    title = "Test: the winner on data that nothing was chosen by"
    blocks: list[str | Grid] = [Grid(title, header, rows, left=2)] if rows else []
    lines = [_optimism(one) for one, _ in told]
    lines += [f"{one.name}: {one.note}" for one in result.tests if one.note]
    return [*blocks, " ".join(lines)] if lines else blocks


def _optimism(one: HeldOut) -> str:
    if math.isnan(one.optimism):
        return f"On {one.name} nobody can say how much cross-validation flattered."
    if one.optimism > 0:
        return f"Optimism: cross-validation was {shown(one.optimism)} better than {one.name}."
    return f"No optimism: {one.name} was {shown(-one.optimism)} better than cross-validation."


def _nested(result: Tuning) -> list[str | Grid]:
    if result.nested is None:
        return []
    found, won = result.nested, result.winner.judged
    rows = (
        ("cross-validation", *_beside(result, won), won.flag),
        ("nested", *_beside(result, found.judged), found.judged.flag),
    )
    title = "Nested: the whole choice repeated on parts of the training data"
    told = (
        f"The parts chose {', '.join(found.chosen)}. What each chose was judged on items that it "
        "had not seen, so the nested value is not flattered by the choice."
    )
    return [Grid(title, ("estimate", *_beside_header(result), "flag"), rows), told]


def _surety(result: Tuning) -> str:
    """Say how the intervals that matter most were found, and what they leave out."""
    judged = {"cross-validation": result.winner.judged}
    judged |= {one.name: one.judged for one in result.tests if one.judged}
    found = {name: one.score.estimate for name, one in judged.items() if one.score.estimate}
    head = f"Intervals take {_units(result)}, and the model as given."
    return " ".join([f"{head} {FLATTERED}", *by_method(found)])


def _units(result: Tuning) -> str:
    """Say what intervals take for one: test data may lack the groups that training data have."""
    groups = {"cross-validation": result.source.groups}
    groups |= {one.name: one.groups for one in result.tests if one.judged}
    parts: dict[str, list[str]] = {}
    for name, count in groups.items():
        parts.setdefault(INDEPENDENT if count is None else GROUPED, []).append(name)
    if len(parts) == 1:
        return next(iter(parts))
    return " and ".join(f"{how} ({', '.join(names)})" for how, names in parts.items())
