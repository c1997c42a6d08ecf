"""Cross-validation: folds, fits of one fold, decisions that never saw what they decide, values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.class_weights import compute_class_weights
from ordinate.classify.decision_rules import (
    DECISION_RULES,
    Bools,
    CalibrationPlan,
    DecisionRule,
    Floats,
    OutputCalibration,
    Positions,
)
from ordinate.errors import BadOption, NotApplicable
from ordinate.experiment.workers import WorkerPool
from ordinate.metrics import Metric
from ordinate.postprocess.class_priors import undo_class_weights
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.input_columns import encode_groups
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

# --- folds ---------------------------------------------------------------------------------------


def split_folds(levels: Positions, groups: Any, k: int, seed: int) -> list[Positions]:
    """Return the rows of k test parts, each with about the same share of each level.

    A level with fewer items than folds is in some of them only. Groups stay together.

    >>> [part.tolist() for part in split_folds(np.array([0, 0, 1, 1, 2]), None, 2, seed=0)]
    [[0, 2, 4], [1, 3]]
    """
    own = (
        np.arange(len(levels))
        if groups is None
        else encode_groups(groups, len(levels), "items").codes
    )
    count, what = len(np.unique(own)), "items" if groups is None else "groups"
    if not 2 <= k <= count:
        raise BadOption(
            f"{k} folds cannot be made of {count} {what}: ask for 2 or more (--folds), and for no "
            f"more than there are {what}."
        )
    rng = np.random.default_rng(seed)
    part = (
        _assign_items_to_folds(levels, k, rng)
        if groups is None
        else _assign_groups_to_folds(levels, own, k, rng)
    )
    return [np.flatnonzero(part == number) for number in range(k)]


def _assign_items_to_folds(levels: Positions, k: int, rng: np.random.Generator) -> Positions:
    """Deal the items out like cards, one level after the other, each shuffled."""
    shuffled = rng.permutation(len(levels))
    order = shuffled[np.argsort(levels[shuffled], kind="stable")]
    part = np.empty(len(levels), np.intp)
    part[order] = np.arange(len(levels)) % k
    return part


def _assign_groups_to_folds(
    levels: Positions, own: Positions, k: int, rng: np.random.Generator
) -> Positions:
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


class LabelledFeatures(NamedTuple):
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


def fit_candidate(
    data: LabelledFeatures, candidate: Candidate, rows: Positions | None = None
) -> tuple[Any, Floats | None]:
    """Return the model fitted on rows (all, without any), and its class weights or None.

    The weights come from these rows alone.
    """
    from ordinate.models.classifiers import create_classifier  # noqa: PLC0415 - only those who fit pay for it

    matrix, levels = data if rows is None else (data.matrix[rows], data.levels[rows])
    weights = None
    if candidate.weighted:
        weights = compute_class_weights(levels, candidate.size, candidate.strategy, candidate.alpha)
    params, size = dict(candidate.params), candidate.size
    model = create_classifier(candidate.kind, params, size=size, seed=candidate.seed)
    model.fit(matrix, levels, None if weights is None else weights[levels])
    return model, weights


def select_reversible_weights(kind: str, weights: Floats | None) -> Floats | None:
    """Return the class weights that division undoes: those of likelihood fits, or None."""
    from ordinate.models.classifiers import MODEL_TYPES  # noqa: PLC0415 - only those who fit pay for it

    return (
        weights
        if MODEL_TYPES[kind].likelihood and MODEL_TYPES[kind].output_type == "probabilities"
        else None
    )


def fit_fold(kept: Mapping[str, LabelledFeatures], task: FoldTask) -> Floats:
    """Return answers about the test rows, class weights undone where that is possible."""
    candidate, data = task.candidate, kept[task.candidate.data]
    model, weights = fit_candidate(data, candidate, task.train)
    answers = np.asarray(model.predict(data.matrix[task.test]), float)
    return undo_class_weights(answers, select_reversible_weights(candidate.kind, weights))


def make_fold_tasks(
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


def join_folds(answers: Sequence[NDArray[Any]], parts: Sequence[Positions]) -> NDArray[Any]:
    """Return the answers of all folds as one array, in the order of the rows."""
    n = sum(map(len, parts))
    whole = np.empty((n, *answers[0].shape[1:]), answers[0].dtype)
    for found, part in zip(answers, parts, strict=True):
        whole[part] = found
    return whole


def predict_out_of_fold(
    workers: WorkerPool,
    candidate: Candidate,
    parts: Sequence[Positions],
    rows: Positions | None = None,
) -> Floats:
    """Return the answers of a candidate about each row, from a fit that lacked its fold."""
    return join_folds(workers.map(fit_fold, make_fold_tasks(candidate, parts, rows)), parts)


# --- decisions -----------------------------------------------------------------------------------


VoteMember = tuple[CalibrationPlan, Floats]  # of a vote, with its answers


class OutOfFoldPredictions(NamedTuple):
    """What decisions fitted on the other folds say about each item."""

    levels: dict[DecisionRule, Positions]
    probabilities: Floats
    notes: tuple[str, ...]


CalibrationLearner = Callable[
    [Positions], tuple[OutputCalibration, Floats]
]  # from the rows to learn from


def calibrate_out_of_fold(
    plan: CalibrationPlan, answers: Floats, gold: Positions, parts: Sequence[Positions]
) -> OutOfFoldPredictions:
    """Decide each fold by what was learned from the answers and the gold of the other folds."""
    return _fit_by_fold(_make_single_learner(plan, answers, gold, parts), parts)


def calibrate_vote_out_of_fold(
    plan: CalibrationPlan,
    members: Sequence[VoteMember],
    gold: Positions,
    parts: Sequence[Positions],
) -> OutOfFoldPredictions:
    """Do the same with the average of the members' probabilities, each from its own decision."""
    return _fit_by_fold(_make_vote_learner(plan, members, gold, parts), parts)


def fit_calibration(
    plan: CalibrationPlan,
    answers: Floats,
    gold: Positions,
    parts: Sequence[Positions],
    class_weights: Floats | None = None,
) -> OutputCalibration:
    """Learn from all answers what is kept with a model, whose class weights may be undone.

    Sets come from the crossed probabilities, in which no item has seen its own gold.
    """
    found = _fit_on_all_items(_make_single_learner(plan, answers, gold, parts), gold, parts)
    return replace(found, class_weights=class_weights)


def fit_vote_calibration(
    plan: CalibrationPlan,
    members: Sequence[VoteMember],
    gold: Positions,
    parts: Sequence[Positions],
) -> OutputCalibration:
    """Do the same with the average of the members' probabilities."""
    return _fit_on_all_items(_make_vote_learner(plan, members, gold, parts), gold, parts)


def mark_seen_levels(gold: Positions, parts: Sequence[Positions]) -> Bools:
    """Tell of which items the level is in other folds, too, so that their fit has seen it.

    >>> mark_seen_levels(np.array([0, 0, 1, 1]), [np.array([0, 2, 3]), np.array([1])]).tolist()
    [True, True, False, False]
    """
    of_levels, known = np.bincount(gold), np.empty(len(gold), bool)
    for part in parts:
        here = np.bincount(gold[part], minlength=len(of_levels))
        known[part] = (here < of_levels)[gold[part]]
    return known


def _make_single_learner(
    plan: CalibrationPlan, answers: Floats, gold: Positions, parts: Sequence[Positions]
) -> CalibrationLearner:
    known = mark_seen_levels(gold, parts)

    def learned(rest: Positions) -> tuple[OutputCalibration, Floats]:
        return plan.fit(answers[rest], gold[rest], taught=known[rest]), answers

    return learned


def _make_vote_learner(
    plan: CalibrationPlan,
    members: Sequence[VoteMember],
    gold: Positions,
    parts: Sequence[Positions],
) -> CalibrationLearner:
    known = mark_seen_levels(gold, parts)

    def learned(rest: Positions) -> tuple[OutputCalibration, Floats]:
        each = [
            own.fit(x[rest], gold[rest], taught=known[rest]).probabilities(x) for own, x in members
        ]
        average = np.mean(each, axis=0)
        return plan.fit(average[rest], gold[rest], taught=known[rest]), average

    return learned


def _fit_on_all_items(
    learned: CalibrationLearner, gold: Positions, parts: Sequence[Positions]
) -> OutputCalibration:
    found, _ = learned(np.arange(len(gold)))
    return found.calibrate_sets(_fit_by_fold(learned, parts).probabilities, gold)


def _fit_by_fold(learned: CalibrationLearner, parts: Sequence[Positions]) -> OutOfFoldPredictions:
    levels: dict[DecisionRule, list[Positions]] = {way: [] for way in DECISION_RULES}
    probabilities: list[Floats] = []
    notes: list[str] = []
    for part in parts:
        rest = np.concatenate([other for other in parts if other is not part])
        rest.sort()
        decision, answers = learned(rest)
        for way in DECISION_RULES:
            levels[way].append(decision.levels(answers[part], way))
        probabilities.append(decision.probabilities(answers[part]))
        notes += decision.notes
    return OutOfFoldPredictions(
        {way: join_folds(found, parts) for way, found in levels.items()},
        join_folds(probabilities, parts),
        tuple(dict.fromkeys(notes)),
    )


# --- values --------------------------------------------------------------------------------------


def count_confusion(
    scale: Scale, gold: Positions, levels: Positions, groups: Any = None, weights: Any = None
) -> ConfusionMatrix:
    """Count levels against gold: one table, or one for each group.

    `weights` are those of the items, for metrics that are to be weighted as well.
    """
    labels = make_label_array(scale)
    columns = labels[gold], labels[levels]
    if groups is None:
        return ConfusionMatrix.of(scale, *columns, weights)
    return ConfusionMatrix.count_by_group(
        scale, *columns, encode_groups(groups, len(gold), "items"), weights
    )


def compute_value(metric: Metric, counted: ConfusionMatrix) -> tuple[float, str | None]:
    """Return the value of all items together; where it is undefined, nan and the reason.

    >>> from ordinate.metrics import find_metric
    >>> table = ConfusionMatrix.of("low,mid,high", ["low", "high"], ["mid", "high"])
    >>> compute_value(find_metric("mae"), table)
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


def compute_objective(metric: Metric, found: float) -> float:
    """Return the number to optimise: the value, or its distance from 0 where 0 is best."""
    return float(metric.size(found))
