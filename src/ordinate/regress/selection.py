"""The choice: search, blend, and take the best by rows that were held out of the fits alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ordinate.errors import BadInput
from ordinate.regress.bench import Bench, Candidate
from ordinate.regress.blend import Blend, crossed
from ordinate.regress.fitting import fit, forget
from ordinate.regress.hyperparameter_search import Clock, Explored, joined, search
from ordinate.regress.prediction_intervals import Calibration, inside, spread_of
from ordinate.regress.saved_models import kept_made
from ordinate.results.regression_comparison import compare_values
from ordinate.search.studies import rounded


@dataclass(frozen=True, eq=False)
class Contender:
    """The best trial of a kind, and what it predicts for rows that were held out."""

    candidate: Candidate
    value: float  # RMSE
    held: Calibration  # of the parts that were held out


@dataclass(frozen=True, eq=False)
class Blended:
    """A weighted average of contenders; its predictions have weights that other parts taught."""

    members: tuple[Contender, ...]
    blend: Blend
    value: float
    held: Calibration


@dataclass(frozen=True, eq=False)
class Choice:
    """Everything that led to a winner, and the winner."""

    explored: list[Explored]
    finished: bool  # whether all trials were made that were asked for
    contenders: list[Contender | None]  # the best of each kind that has one
    blend: Blended | None
    winner: Contender | Blended


def choose(bench: Bench, clock: Clock) -> Choice:
    """Choose the best surrogate; no row of the test has a say in it."""
    explored, finished = search(bench, clock)
    contenders = [_contender(bench, one) for one in explored]
    able = [one for one in contenders if one is not None]
    if not able:
        raise BadInput(_nothing(explored))
    enough = len(able) > 1 and len(bench.held) > 1
    blend = blended(bench, able) if bench.settings.blends and enough else None
    if blend and bench.settings.blend == "auto" and blend.blend.weights.max() == 1.0:
        blend = None  # it is one of the models
    best = min(able, key=lambda one: rounded(one.value))
    winner = best if blend is None or _beats(bench, best, blend) else blend
    return Choice(explored, finished, contenders, blend, winner)


def _beats(bench: Bench, one: Contender, blend: Blended) -> bool:
    """Tell whether a model is better than the blend by more than chance, in RMSE and in MAE.

    Otherwise the blend is the safer choice: it leans on no kind of model alone, and a few rows
    that nobody can predict do not decide.
    """
    if bench.settings.blend == "always" or one.value >= blend.value:
        return False
    columns = {"one": one.held.predictions, "blend": blend.held.predictions}
    found = compare_values(bench.targets, columns, ["rmse", "mae"], groups=bench.groups)
    return all(each.first == "one" and each.verdict == "better" for each in found.differences)


def _contender(bench: Bench, one: Explored) -> Contender | None:
    """Return the best trial of a kind; what it predicts is at hand, saved, or made again."""
    if one.best is None:
        return None
    candidate = Candidate(one.kind, one.best.params)
    made = bench.remembered(candidate) or kept_made(bench, candidate)
    if made is None:
        tasks = bench.tasks(candidate)
        made = joined(bench, candidate, bench.workers.map(fit, tasks))
        forget(tasks)
    held = Calibration(bench.targets, made.predictions, made.spread)
    return Contender(candidate, made.value, held)


def blended(bench: Bench, members: Sequence[Contender]) -> Blended:
    """Blend the best of each kind.

    Members of no weight are left out. The value is that of predictions whose weights were learned
    on the other parts, so it can be compared with those of the members.
    """
    predictions = np.column_stack([one.held.predictions for one in members])
    blend = Blend.fit(predictions, bench.targets)
    kept = blend.weights > 0.0
    if kept.sum() > 1 and not kept.all():
        return blended(bench, [one for one, has in zip(members, kept, strict=True) if has])
    honest = crossed(predictions, bench.targets, bench.places)
    spread = spread_of(predictions, blend.weights, inside([one.held for one in members]))
    held = Calibration(bench.targets, honest, spread)
    return Blended(tuple(members), blend, bench.rmse(honest), held)


def _nothing(explored: Sequence[Explored]) -> str:
    reasons = [
        f" {one.kind}: {trial.reason}" for one in explored for trial in one.trials if trial.reason
    ]
    return f"No trial was completed, so there is no surrogate.{reasons[0] if reasons else ''}"
