"""Cross-validation: stratified folds, recalibration out of fold, and metric values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ordinate.errors import BadOption, NotApplicable
from ordinate.metrics import Metric
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.estimator import encode_groups
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix
from ordinate.tuning.classify.decision_rules import (
    DECISION_RULES,
    Bools,
    CalibrationPlan,
    DecisionRule,
    Floats,
    OutputCalibration,
    Positions,
)
from ordinate.tuning.search.fits import join_folds

# --- folds ---------------------------------------------------------------------------------------


def split_folds(levels: Positions, groups: Any, k: int, seed: int) -> list[Positions]:
    """Return the test rows of k folds, each with about the same share of each level.

    A level with fewer items than folds is in some of them only. Groups stay together.

    >>> [fold.tolist() for fold in split_folds(np.array([0, 0, 1, 1, 2]), None, 2, seed=0)]
    [[0, 2, 4], [1, 3]]
    """
    codes = (
        np.arange(len(levels))
        if groups is None
        else encode_groups(groups, len(levels), "items").codes
    )
    count, units = len(np.unique(codes)), "items" if groups is None else "groups"
    if not 2 <= k <= count:
        raise BadOption(
            f"{k} folds cannot be made of {count} {units}: ask for 2 or more (--folds), and for no "
            f"more than there are {units}."
        )
    rng = np.random.default_rng(seed)
    fold_of_item = (
        _assign_items_to_folds(levels, k, rng)
        if groups is None
        else _assign_groups_to_folds(levels, codes, k, rng)
    )
    return [np.flatnonzero(fold_of_item == number) for number in range(k)]


def _assign_items_to_folds(levels: Positions, k: int, rng: np.random.Generator) -> Positions:
    """Deal the items out like cards, one level after the other, each shuffled."""
    shuffled = rng.permutation(len(levels))
    order = shuffled[np.argsort(levels[shuffled], kind="stable")]
    fold_of_item = np.empty(len(levels), np.intp)
    fold_of_item[order] = np.arange(len(levels)) % k
    return fold_of_item


def _assign_groups_to_folds(
    levels: Positions, groups: Positions, k: int, rng: np.random.Generator
) -> Positions:
    """Give each group, large ones first, to the fold that is shortest of what it brings."""
    count, size = int(groups.max()) + 1, int(levels.max()) + 1
    counts = np.bincount(groups * size + levels, minlength=count * size).reshape(count, size)
    total = counts.sum(axis=0)
    shares = np.column_stack([counts / np.maximum(total, 1), counts.sum(axis=1) / len(levels)])
    shuffled = rng.permutation(count)
    fold_shares, fold_sizes = np.zeros((k, size + 1)), np.zeros(k)
    fold_of_group = np.empty(count, np.intp)
    for group in shuffled[np.argsort(-(shares[shuffled] ** 2).sum(axis=1), kind="stable")]:
        # The least sum of squares: adding c to s adds 2 s·c, and the same c·c everywhere.
        # So an empty fold comes first.
        fold = int(np.lexsort((fold_sizes, (fold_shares @ shares[group]).round(12)))[0])
        fold_shares[fold] += shares[group]
        fold_sizes[fold] += counts[group].sum()
        fold_of_group[group] = fold
    return fold_of_group[groups]


# --- recalibration -------------------------------------------------------------------------------


VoteMember = tuple[CalibrationPlan, Floats]  # of a vote, with its out-of-fold outputs


class OutOfFoldPredictions(NamedTuple):
    """What calibrations fitted on the other folds predict for each item."""

    levels: dict[DecisionRule, Positions]
    probabilities: Floats
    notes: tuple[str, ...]


CalibrationLearner = Callable[
    [Positions], tuple[OutputCalibration, Floats]
]  # from the rows to learn from


def calibrate_out_of_fold(
    plan: CalibrationPlan, outputs: Floats, gold: Positions, folds: Sequence[Positions]
) -> OutOfFoldPredictions:
    """Calibrate each fold by what was learned from outputs and gold of the other folds."""
    return _fit_by_fold(_make_single_learner(plan, outputs, gold, folds), folds)


def calibrate_vote_out_of_fold(
    plan: CalibrationPlan,
    members: Sequence[VoteMember],
    gold: Positions,
    folds: Sequence[Positions],
) -> OutOfFoldPredictions:
    """Do the same with the mean of the members' probabilities, each from its own calibration."""
    return _fit_by_fold(_make_vote_learner(plan, members, gold, folds), folds)


def fit_calibration(
    plan: CalibrationPlan,
    outputs: Floats,
    gold: Positions,
    folds: Sequence[Positions],
    class_weights: Floats | None = None,
) -> OutputCalibration:
    """Learn from all outputs what is saved with a model, whose class weights may be undone.

    Prediction sets come from out-of-fold probabilities, in which no item has seen its own gold.
    """
    learner = _make_single_learner(plan, outputs, gold, folds)
    return replace(_fit_on_all_items(learner, gold, folds), class_weights=class_weights)


def fit_vote_calibration(
    plan: CalibrationPlan,
    members: Sequence[VoteMember],
    gold: Positions,
    folds: Sequence[Positions],
) -> OutputCalibration:
    """Do the same with the mean of the members' probabilities."""
    return _fit_on_all_items(_make_vote_learner(plan, members, gold, folds), gold, folds)


def mark_seen_levels(gold: Positions, folds: Sequence[Positions]) -> Bools:
    """Mark the items whose level is in other folds, too, so that their fit has seen it.

    >>> mark_seen_levels(np.array([0, 0, 1, 1]), [np.array([0, 2, 3]), np.array([1])]).tolist()
    [True, True, False, False]
    """
    counts, seen = np.bincount(gold), np.empty(len(gold), bool)
    for fold in folds:
        counts_here = np.bincount(gold[fold], minlength=len(counts))
        seen[fold] = (counts_here < counts)[gold[fold]]
    return seen


def _make_single_learner(
    plan: CalibrationPlan, outputs: Floats, gold: Positions, folds: Sequence[Positions]
) -> CalibrationLearner:
    seen = mark_seen_levels(gold, folds)

    def learn(rows: Positions) -> tuple[OutputCalibration, Floats]:
        return plan.fit(outputs[rows], gold[rows], seen=seen[rows]), outputs

    return learn


def _make_vote_learner(
    plan: CalibrationPlan,
    members: Sequence[VoteMember],
    gold: Positions,
    folds: Sequence[Positions],
) -> CalibrationLearner:
    seen = mark_seen_levels(gold, folds)

    def learn(rows: Positions) -> tuple[OutputCalibration, Floats]:
        each = [
            own.fit(x[rows], gold[rows], seen=seen[rows]).probabilities(x) for own, x in members
        ]
        mean = np.mean(each, axis=0)
        return plan.fit(mean[rows], gold[rows], seen=seen[rows]), mean

    return learn


def _fit_on_all_items(
    learn: CalibrationLearner, gold: Positions, folds: Sequence[Positions]
) -> OutputCalibration:
    calibration, _ = learn(np.arange(len(gold)))
    return calibration.calibrate_sets(_fit_by_fold(learn, folds).probabilities, gold)


def _fit_by_fold(learn: CalibrationLearner, folds: Sequence[Positions]) -> OutOfFoldPredictions:
    levels: dict[DecisionRule, list[Positions]] = {rule: [] for rule in DECISION_RULES}
    probabilities: list[Floats] = []
    notes: list[str] = []
    for fold in folds:
        rest = np.concatenate([other for other in folds if other is not fold])
        rest.sort()
        calibration, outputs = learn(rest)
        for rule in DECISION_RULES:
            levels[rule].append(calibration.levels(outputs[fold], rule))
        probabilities.append(calibration.probabilities(outputs[fold]))
        notes += calibration.notes
    return OutOfFoldPredictions(
        {rule: join_folds(of_folds, folds) for rule, of_folds in levels.items()},
        join_folds(probabilities, folds),
        tuple(dict.fromkeys(notes)),
    )


# --- values --------------------------------------------------------------------------------------


def count_confusion(
    scale: Scale, gold: Positions, levels: Positions, groups: Any = None, weights: Any = None
) -> ConfusionMatrix:
    """Count levels against gold: one confusion matrix, or one for each group.

    `weights` are those of the items, for metrics that are to be weighted as well.
    """
    labels = make_label_array(scale)
    columns = labels[gold], labels[levels]
    if groups is None:
        return ConfusionMatrix.of(*columns, scale, weights)
    return ConfusionMatrix.count_by_group(
        *columns, scale, encode_groups(groups, len(gold), "items"), weights
    )


def compute_value(metric: Metric, matrix: ConfusionMatrix) -> tuple[float, str | None]:
    """Return the value of all items together; where it is undefined, nan and the reason.

    >>> from ordinate.metrics import find_metric
    >>> matrix = ConfusionMatrix.of(["low", "high"], ["mid", "high"], "low,mid,high")
    >>> compute_value(find_metric("mae"), matrix)
    (0.5, None)
    """
    try:
        value = float(metric(matrix.pooled if matrix.shape else matrix))
    except NotApplicable as reason:
        return math.nan, str(reason)
    if math.isfinite(value):
        return value, None
    return math.nan, metric.undefined_when or "the metric is undefined here"


def compute_objective(metric: Metric, value: float) -> float:
    """Return the number to optimise: the value, or its distance from 0 where 0 is best."""
    return float(metric.size(value))
