"""Cross-validation: folds, fits of one fold, decisions that never saw what they decide, values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.class_weights import class_weights
from ordinate.classify.decision_rules import WAYS, Bools, Decision, Floats, Plan, Positions, Way
from ordinate.errors import BadOption, NotApplicable
from ordinate.experiment.workers import Workers
from ordinate.metrics import Metric
from ordinate.postprocess.class_priors import undone
from ordinate.postprocess.decoder import labels_of
from ordinate.postprocess.scored_items import groups_of
from ordinate.scale import Scale
from ordinate.summaries import Confusion

# --- folds ---------------------------------------------------------------------------------------


def folds(levels: Positions, groups: Any, k: int, seed: int) -> list[Positions]:
    """Return the rows of k test parts, each with about the same share of each level.

    A level with fewer items than folds is in some of them only. Groups stay together.

    >>> [part.tolist() for part in folds(np.array([0, 0, 1, 1, 2]), None, 2, seed=0)]
    [[0, 2, 4], [1, 3]]
    """
    own = (
        np.arange(len(levels)) if groups is None else groups_of(groups, len(levels), "items").codes
    )
    count, what = len(np.unique(own)), "items" if groups is None else "groups"
    if not 2 <= k <= count:
        raise BadOption(
            f"{k} folds cannot be made of {count} {what}: ask for 2 or more (--folds), and for no "
            f"more than there are {what}."
        )
    rng = np.random.default_rng(seed)
    part = _dealt(levels, k, rng) if groups is None else _spread(levels, own, k, rng)
    return [np.flatnonzero(part == number) for number in range(k)]


def _dealt(levels: Positions, k: int, rng: np.random.Generator) -> Positions:
    """Deal the items out like cards, one level after the other, each shuffled."""
    shuffled = rng.permutation(len(levels))
    order = shuffled[np.argsort(levels[shuffled], kind="stable")]
    part = np.empty(len(levels), np.intp)
    part[order] = np.arange(len(levels)) % k
    return part


def _spread(levels: Positions, own: Positions, k: int, rng: np.random.Generator) -> Positions:
    """Give each group, large ones first, to the fold that is shortest of what it brings."""
    count, size = int(own.max()) + 1, int(levels.max()) + 1
    brings = np.bincount(own * size + levels, minlength=count * size).reshape(count, size)
    total = brings.sum(axis=0)
    shares = np.column_stack([brings / np.maximum(total, 1), brings.sum(axis=1) / len(levels)])
    shuffled = rng.permutation(count)
    held, taken, home = np.zeros((k, size + 1)), np.zeros(k), np.empty(count, np.intp)
    for group in shuffled[np.argsort(-(shares[shuffled] ** 2).sum(axis=1), kind="stable")]:
        # The least sum of squares: adding c to s adds 2 s·c, and the same c·c everywhere.
        # So an empty fold comes first.
        fold = int(np.lexsort((taken, (held @ shares[group]).round(12)))[0])
        held[fold] += shares[group]
        taken[fold] += brings[group].sum()
        home[group] = fold
    return home[own]


# --- fits ----------------------------------------------------------------------------------------


class Data(NamedTuple):
    """What workers keep under the name of a feature set."""

    matrix: Any  # [N, d], sparse or dense
    levels: Positions  # on the full scale


@dataclass(frozen=True)
class Candidate:
    """One model that may be chosen: data, kind and parameters, and how its items are weighed."""

    data: str  # the name under which workers keep it
    kind: str
    params: Mapping[str, Any]
    size: int  # levels of the scale
    seed: int = 0
    strategy: str = "equal"
    alpha: float = 1.0

    @property
    def weighted(self) -> bool:
        """Whether levels differ in weight."""
        return self.strategy != "equal" and self.alpha > 0.0


class FoldTask(NamedTuple):
    """A candidate to be fitted on some rows, and asked about others."""

    candidate: Candidate
    train: Positions
    test: Positions


def fitted(
    data: Data, candidate: Candidate, rows: Positions | None = None
) -> tuple[Any, Floats | None]:
    """Return the model fitted on rows (all, without any), and its class weights or None.

    The weights come from these rows alone.
    """
    from ordinate.models.classifiers import create  # noqa: PLC0415 - only those who fit pay for it

    matrix, levels = data if rows is None else (data.matrix[rows], data.levels[rows])
    weights = None
    if candidate.weighted:
        weights = class_weights(levels, candidate.size, candidate.strategy, candidate.alpha)
    params, size = dict(candidate.params), candidate.size
    model = create(candidate.kind, params, size=size, seed=candidate.seed)
    model.fit(matrix, levels, None if weights is None else weights[levels])
    return model, weights


def to_undo(kind: str, weights: Floats | None) -> Floats | None:
    """Return the class weights that division undoes: those of likelihood fits, or None."""
    from ordinate.models.classifiers import KINDS  # noqa: PLC0415 - only those who fit pay for it

    return weights if KINDS[kind].likelihood and KINDS[kind].gives == "probabilities" else None


def fit_fold(kept: Mapping[str, Data], task: FoldTask) -> Floats:
    """Return answers about the test rows, class weights undone where that is possible."""
    candidate, data = task.candidate, kept[task.candidate.data]
    model, weights = fitted(data, candidate, task.train)
    answers = np.asarray(model.answers(data.matrix[task.test]), float)
    return undone(answers, to_undo(candidate.kind, weights))


def fold_tasks(
    candidate: Candidate, parts: Sequence[Positions], rows: Positions | None = None
) -> list[FoldTask]:
    """Return the task of each fold; parts number the given rows of the data, or all of them."""
    n = sum(map(len, parts))
    within = np.arange(n) if rows is None else rows
    tasks = []
    for part in parts:
        rest = np.ones(n, bool)
        rest[part] = False
        tasks.append(FoldTask(candidate, within[rest], within[part]))
    return tasks


def assembled(answers: Sequence[NDArray[Any]], parts: Sequence[Positions]) -> NDArray[Any]:
    """Return the answers of all folds as one array, in the order of the rows."""
    n = sum(map(len, parts))
    whole = np.empty((n, *answers[0].shape[1:]), answers[0].dtype)
    for found, part in zip(answers, parts, strict=True):
        whole[part] = found
    return whole


def out_of_fold(
    workers: Workers,
    candidate: Candidate,
    parts: Sequence[Positions],
    rows: Positions | None = None,
) -> Floats:
    """Return the answers of a candidate about each row, from a fit that lacked its fold."""
    return assembled(workers.map(fit_fold, fold_tasks(candidate, parts, rows)), parts)


# --- decisions -----------------------------------------------------------------------------------


Member = tuple[Plan, Floats]  # of a vote, with its answers


class Crossed(NamedTuple):
    """What decisions fitted on the other folds say about each item."""

    levels: dict[Way, Positions]
    probabilities: Floats
    notes: tuple[str, ...]


Learned = Callable[[Positions], tuple[Decision, Floats]]  # from the rows to learn from


def crossed(plan: Plan, answers: Floats, gold: Positions, parts: Sequence[Positions]) -> Crossed:
    """Decide each fold by what was learned from the answers and the gold of the other folds."""
    return _crossed(_alone(plan, answers, gold, parts), parts)


def crossed_vote(
    plan: Plan, members: Sequence[Member], gold: Positions, parts: Sequence[Positions]
) -> Crossed:
    """Do the same with the average of the members' probabilities, each from its own decision."""
    return _crossed(_together(plan, members, gold, parts), parts)


def decision(
    plan: Plan,
    answers: Floats,
    gold: Positions,
    parts: Sequence[Positions],
    class_weights: Floats | None = None,
) -> Decision:
    """Learn from all answers what is kept with a model, whose class weights may be undone.

    Sets come from the crossed probabilities, in which no item has seen its own gold.
    """
    found = _whole(_alone(plan, answers, gold, parts), gold, parts)
    return replace(found, class_weights=class_weights)


def decision_of_vote(
    plan: Plan, members: Sequence[Member], gold: Positions, parts: Sequence[Positions]
) -> Decision:
    """Do the same with the average of the members' probabilities."""
    return _whole(_together(plan, members, gold, parts), gold, parts)


def taught(gold: Positions, parts: Sequence[Positions]) -> Bools:
    """Tell of which items the level is in other folds, too, so that their fit has seen it.

    >>> taught(np.array([0, 0, 1, 1]), [np.array([0, 2, 3]), np.array([1])]).tolist()
    [True, True, False, False]
    """
    of_levels, known = np.bincount(gold), np.empty(len(gold), bool)
    for part in parts:
        here = np.bincount(gold[part], minlength=len(of_levels))
        known[part] = (here < of_levels)[gold[part]]
    return known


def _alone(plan: Plan, answers: Floats, gold: Positions, parts: Sequence[Positions]) -> Learned:
    known = taught(gold, parts)

    def learned(rest: Positions) -> tuple[Decision, Floats]:
        return plan.fit(answers[rest], gold[rest], taught=known[rest]), answers

    return learned


def _together(
    plan: Plan, members: Sequence[Member], gold: Positions, parts: Sequence[Positions]
) -> Learned:
    known = taught(gold, parts)

    def learned(rest: Positions) -> tuple[Decision, Floats]:
        each = [
            own.fit(x[rest], gold[rest], taught=known[rest]).probabilities(x) for own, x in members
        ]
        average = np.mean(each, axis=0)
        return plan.fit(average[rest], gold[rest], taught=known[rest]), average

    return learned


def _whole(learned: Learned, gold: Positions, parts: Sequence[Positions]) -> Decision:
    found, _ = learned(np.arange(len(gold)))
    return found.with_sets(_crossed(learned, parts).probabilities, gold)


def _crossed(learned: Learned, parts: Sequence[Positions]) -> Crossed:
    levels: dict[Way, list[Positions]] = {way: [] for way in WAYS}
    probabilities: list[Floats] = []
    notes: list[str] = []
    for part in parts:
        rest = np.concatenate([other for other in parts if other is not part])
        rest.sort()
        decision, answers = learned(rest)
        for way in WAYS:
            levels[way].append(decision.levels(answers[part], way))
        probabilities.append(decision.probabilities(answers[part]))
        notes += decision.notes
    return Crossed(
        {way: assembled(found, parts) for way, found in levels.items()},
        assembled(probabilities, parts),
        tuple(dict.fromkeys(notes)),
    )


# --- values --------------------------------------------------------------------------------------


def table(
    scale: Scale, gold: Positions, levels: Positions, groups: Any = None, weights: Any = None
) -> Confusion:
    """Count levels against gold: one table, or one for each group.

    `weights` are those of the items, for metrics that are to be weighted as well.
    """
    labels = labels_of(scale)
    columns = labels[gold], labels[levels]
    if groups is None:
        return Confusion.of(scale, *columns, weights)
    return Confusion.by_group(scale, *columns, groups_of(groups, len(gold), "items"), weights)


def value(metric: Metric, counted: Confusion) -> tuple[float, str | None]:
    """Return the value of all items together; where it is undefined, nan and the reason.

    >>> from ordinate.metrics import find
    >>> value(find("mae"), Confusion.of("low,mid,high", ["low", "high"], ["mid", "high"]))
    (0.5, None)
    """
    whole = counted.pooled if counted.shape else counted
    try:
        found = float(metric(whole))
    except NotApplicable as reason:
        return math.nan, str(reason)
    if math.isfinite(found):
        return found, None
    return math.nan, metric.undefined_when or "the metric is undefined here"


def objective(metric: Metric, found: float) -> float:
    """Return the number to optimise: the value, or its distance from 0 where 0 is best."""
    return float(metric.size(found))
