"""Cross-validation: folds, recalibration out of fold, and metric values."""

import math

import numpy as np
import pytest
from classifier_fits import draw_items, predict_out_of_fold

from ordinate.errors import BadOption, MissingLabels
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.metrics import find_metric
from ordinate.scale import Scale
from ordinate.tuning.classify.class_weights import compute_class_weights
from ordinate.tuning.classify.cross_validation import (
    calibrate_out_of_fold,
    calibrate_vote_out_of_fold,
    compute_objective,
    compute_value,
    count_confusion,
    fit_calibration,
    fit_vote_calibration,
    mark_seen_levels,
    split_folds,
)
from ordinate.tuning.classify.decision_rules import DECISION_RULES, CalibrationPlan
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import LabelledFeatures

SCALE = Scale.of("A1,A2,B1,B2")


@pytest.fixture(scope="module")
def data():
    return draw_items(0)


# --- folds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [2, 5])
def test_each_item_is_tested_once(k, grouped):
    levels = np.random.default_rng(0).integers(0, 4, 83)
    groups = [f"g{row % 29}" for row in range(83)] if grouped else None
    parts = split_folds(levels, groups, k, seed=3)
    assert sorted(np.concatenate(parts)) == list(range(83))
    assert len(parts) == k


def test_levels_are_spread_evenly_and_so_are_items():
    levels = np.repeat([0, 1, 2, 3], [41, 7, 3, 22])
    counts = np.array(
        [np.bincount(levels[part], minlength=4) for part in split_folds(levels, None, 5, 0)]
    )
    assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_groups_stay_together_and_levels_are_still_spread():
    rng = np.random.default_rng(2)
    groups = rng.integers(0, 60, 400)
    levels = rng.choice(4, 400, p=[0.1, 0.4, 0.4, 0.1])
    parts = split_folds(levels, groups, 5, seed=0)
    for part in parts:
        assert not set(groups[part]) & set(np.delete(groups, part))
    shares = np.array([np.bincount(levels[part], minlength=4) for part in parts])
    assert (np.abs(shares - shares.mean(axis=0)) <= 0.25 * shares.mean(axis=0)).all()


def test_no_fold_is_empty_though_one_group_is_most_of_the_items():
    groups = np.repeat([0, 1, 2, 3, 4], [96, 1, 1, 1, 1])
    parts = split_folds(np.zeros(100, int), groups, 5, seed=0)
    assert sorted(map(len, parts)) == [1, 1, 1, 1, 96]


def test_levels_with_fewer_items_than_folds_are_fine():
    levels = np.array([0, 1, 2, 3, 3, 3])
    assert sorted(map(len, split_folds(levels, None, 5, seed=0))) == [1, 1, 1, 1, 2]


def test_a_seed_gives_the_same_folds_and_another_seed_others():
    levels = np.random.default_rng(0).integers(0, 4, 50)
    first, again, other = (split_folds(levels, None, 5, seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not all(map(np.array_equal, first, other))


@pytest.mark.parametrize(
    ("groups", "k", "said"),
    [(None, 5, "4 items"), (["a", "a", "b", "b"], 3, "2 groups"), (None, 1, "2 or more")],
    ids=["items", "groups", "one fold"],
)
def test_folds_that_cannot_be_made_are_refused(groups, k, said):
    with pytest.raises(BadOption, match=said):
        split_folds(np.array([0, 1, 0, 1]), groups, k, seed=0)


def test_an_item_without_a_group_is_refused():
    with pytest.raises(MissingLabels, match="group of row 2"):
        split_folds(np.array([0, 1, 0, 1]), ["a", None, "b", "c"], 2, seed=0)


# --- decisions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["quadratic_kappa", "cem_ord"])
@pytest.mark.parametrize("how", ["probabilities", "recalibrated", "scores"])
def test_no_fold_is_decided_by_its_own_gold(data, metric, how):
    parts = split_folds(data.levels, None, 4, seed=0)
    scores = how == "scores"
    plan = CalibrationPlan(
        SCALE,
        find_metric(metric),
        scores=scores,
        recalibration="vector" if how == "recalibrated" else "temperature",
    )
    answers = data.matrix[:, 0] if scores else predict_out_of_fold(data, parts)
    other = data.levels.copy()
    other[parts[2]] = 3
    first, second = (
        calibrate_out_of_fold(plan, answers, gold, parts) for gold in (data.levels, other)
    )
    for way in DECISION_RULES:
        assert np.array_equal(first.levels[way][parts[2]], second.levels[way][parts[2]])
    assert np.array_equal(first.probabilities[parts[2]], second.probabilities[parts[2]])
    assert not np.array_equal(
        first.levels["metric_optimal"], second.levels["metric_optimal"]
    )  # of other folds


def test_crossed_decisions_stand_in_the_order_of_the_items(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    answers = predict_out_of_fold(data, parts)
    found = calibrate_out_of_fold(
        CalibrationPlan(SCALE, find_metric("accuracy")), answers, data.levels, parts
    )
    assert np.array_equal(found.levels["argmax"], answers.argmax(axis=1))
    for part in parts:
        rest = np.setdiff1d(np.arange(len(answers)), part)
        own = CalibrationPlan(SCALE, find_metric("accuracy")).fit(answers[rest], data.levels[rest])
        assert np.allclose(found.probabilities[part], own.probabilities(answers[part]))


@pytest.mark.parametrize("metric", ["quadratic_kappa", "cem_ord", "mae", "macro_mae", "f1_macro"])
def test_decoding_is_no_worse_than_argmax_on_average(metric):
    gains = []
    for seed in range(6):
        data = draw_items(seed, n=300)
        parts = split_folds(data.levels, None, 4, seed=0)
        found = calibrate_out_of_fold(
            CalibrationPlan(SCALE, find_metric(metric)),
            predict_out_of_fold(data, parts),
            data.levels,
            parts,
        )
        merits = [
            find_metric(metric).merit(
                compute_value(
                    find_metric(metric), count_confusion(SCALE, data.levels, found.levels[way])
                )[0]
            )
            for way in ("metric_optimal", "argmax")
        ]
        gains.append(merits[0] - merits[1])
    assert np.mean(gains) > (-0.002 if metric == "mae" else 0.0)


def test_a_vote_of_one_is_that_member(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    answers, plan = predict_out_of_fold(data, parts), CalibrationPlan(SCALE, find_metric("cem_ord"))
    alone = calibrate_out_of_fold(plan, answers, data.levels, parts)
    vote = calibrate_vote_out_of_fold(plan, [(plan, answers)], data.levels, parts)
    for way in DECISION_RULES:
        assert np.array_equal(alone.levels[way], vote.levels[way])


def test_no_fold_of_a_vote_is_decided_by_its_own_gold(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    plan = CalibrationPlan(SCALE, find_metric("quadratic_kappa"))
    sharp = CalibrationPlan(SCALE, find_metric("quadratic_kappa"), recalibration="vector")
    answers = predict_out_of_fold(data, parts)
    members = [(plan, answers), (sharp, predict_out_of_fold(data, parts, "svm"))]
    other = data.levels.copy()
    other[parts[0]] = 3 - other[parts[0]]
    first, second = (
        calibrate_vote_out_of_fold(plan, members, gold, parts) for gold in (data.levels, other)
    )
    for way in DECISION_RULES:
        assert np.array_equal(first.levels[way][parts[0]], second.levels[way][parts[0]])
    assert np.array_equal(first.probabilities[parts[0]], second.probabilities[parts[0]])
    assert not np.array_equal(first.probabilities, answers)


def test_items_were_taught_whose_level_is_in_other_folds_as_well():
    gold = np.array([0, 0, 1, 1, 2, 3])
    parts = [np.array([0, 2, 4]), np.array([1, 3]), np.array([5])]
    assert mark_seen_levels(gold, parts).tolist() == [True, True, True, True, False, False]
    assert mark_seen_levels(gold, [np.arange(3), np.arange(3, 6)]).tolist() == [
        *(False, False, True),
        *(True, False, False),
    ]


@pytest.mark.parametrize("how", ["alone", "vote"])
def test_one_item_of_a_level_does_not_wreck_the_probabilities_of_others(how):
    data = draw_items(3, n=200)
    some = np.flatnonzero(data.levels < 3)
    rare = np.sort(np.append(some, np.flatnonzero(data.levels == 3)[0]))
    plan, surest = CalibrationPlan(SCALE, find_metric("cem_ord")), []
    for rows in (some, rare):
        gold = data.levels[rows]
        parts = split_folds(gold, None, 4, seed=0)
        answers = predict_out_of_fold(LabelledFeatures(data.matrix[rows], gold), parts)
        found = (
            fit_calibration(plan, answers, gold, parts)
            if how == "alone"
            else fit_vote_calibration(plan, [(plan, answers)] * 2, gold, parts)
        )
        surest.append(found.probabilities(answers).max(axis=1).mean())
        assert len(
            calibrate_out_of_fold(plan, answers, gold, parts).levels["metric_optimal"]
        ) == len(rows)
    assert surest[1] == pytest.approx(surest[0], abs=0.02)


def test_decisions_for_a_weighted_metric_are_better_by_it():
    gains = {"mae": [], "quadratic_kappa": [], "f1_macro": []}
    for seed in range(4):
        data = draw_items(seed, n=400)
        weights = compute_class_weights(data.levels, 4, "inverse")
        parts = split_folds(data.levels, None, 4, seed=0)
        answers = predict_out_of_fold(data, parts)
        for name, found in gains.items():
            merits = []
            for given in (tuple(weights), None):
                plan = CalibrationPlan(SCALE, find_metric(name), weights=given)
                levels = calibrate_out_of_fold(plan, answers, data.levels, parts).levels[
                    "metric_optimal"
                ]
                whole = count_confusion(SCALE, data.levels, levels, None, weights[data.levels])
                merits.append(find_metric(name).merit(compute_value(find_metric(name), whole)[0]))
            found.append(merits[0] - merits[1])
    assert all(np.mean(found) > 0.01 for found in gains.values())


def test_sets_are_learned_from_probabilities_that_never_saw_their_gold(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    answers = predict_out_of_fold(data, parts)
    sharp = CalibrationPlan(SCALE, find_metric("mae"), recalibration="vector")
    found = fit_calibration(sharp, answers, data.levels, parts)
    rows = calibrate_out_of_fold(sharp, answers, data.levels, parts).probabilities
    assert (
        found.threshold
        == sharp.fit(answers, data.levels).calibrate_sets(rows, data.levels).threshold
    )
    members = [(sharp, answers), (sharp, predict_out_of_fold(data, parts, "svm"))]
    vote = fit_vote_calibration(sharp, members, data.levels, parts)
    rows = calibrate_vote_out_of_fold(sharp, members, data.levels, parts).probabilities
    assert vote.threshold == vote.calibrate_sets(rows, data.levels).threshold


def test_class_weights_are_kept_to_be_undone(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    found = fit_calibration(
        CalibrationPlan(SCALE, find_metric("mae")),
        predict_out_of_fold(data, parts),
        data.levels,
        parts,
        weights,
    )
    assert np.array_equal(found.class_weights, weights)


@pytest.mark.parametrize("recalibrated", ["temperature", "vector"])
def test_sets_hold_new_items_as_often_as_promised(recalibrated):
    def drawn(rng, n):
        middle = 2.0 * rng.normal(size=n)
        gold = np.clip(np.round(1.5 + middle + 0.8 * rng.normal(size=n)), 0, 3).astype(int)
        rows = np.exp(-np.abs(np.arange(4) - (1.5 + middle)[:, None]) + rng.normal(size=(n, 4)) / 2)
        return rows / rows.sum(axis=1, keepdims=True), gold

    plan, covered = (
        CalibrationPlan(SCALE, find_metric("mae"), "argmax", recalibration=recalibrated),
        [],
    )
    for seed in range(100):
        rng = np.random.default_rng(seed)
        answers, gold = drawn(rng, 30)
        asked, truth = drawn(rng, 500)
        sets = fit_calibration(plan, answers, gold, split_folds(gold, None, 5, 0)).sets(asked)
        covered.append(((sets.low_positions <= truth) & (truth <= sets.high_positions)).mean())
    assert np.mean(covered) > 0.9 - 3.0 * np.std(covered) / np.sqrt(len(covered))


# --- values --------------------------------------------------------------------------------------


def test_the_value_of_groups_is_that_of_all_items_together():
    gold, levels = np.array([0, 1, 2, 3, 1, 2]), np.array([0, 1, 1, 3, 2, 2])
    groups = ["a", "a", "b", "b", "c", "c"]
    whole, grouped = (
        count_confusion(SCALE, gold, levels),
        count_confusion(SCALE, gold, levels, groups),
    )
    assert grouped.shape == (3,)
    for name in ("quadratic_kappa", "cem_ord", "mae"):
        assert compute_value(find_metric(name), grouped) == compute_value(find_metric(name), whole)
    found = estimate_metrics([find_metric("mae")], grouped, ConfidenceIntervals(seed=0))["mae"]
    assert found.value == compute_value(find_metric("mae"), whole)[0]


def test_item_weights_count_only_where_they_are_given():
    gold, levels = np.array([0, 1, 1]), np.array([0, 0, 0])
    weights = np.array([3.0, 0.5, 0.5])
    assert compute_value(find_metric("accuracy"), count_confusion(SCALE, gold, levels)) == (
        pytest.approx(1 / 3),
        None,
    )
    assert compute_value(
        find_metric("accuracy"), count_confusion(SCALE, gold, levels, weights=weights)
    ) == (0.75, None)


def test_an_undefined_value_is_nan_with_its_reason():
    one = count_confusion(SCALE, np.array([1, 1]), np.array([1, 1]))
    found, reason = compute_value(find_metric("quadratic_kappa"), one)
    assert math.isnan(found)
    assert reason == find_metric("quadratic_kappa").undefined_when


def test_a_metric_that_has_no_meaning_for_weights_says_so():
    weighted = count_confusion(SCALE, np.array([0, 1]), np.array([0, 1]), weights=[0.5, 0.7])
    found, reason = compute_value(find_metric("krippendorff_alpha"), weighted)
    assert math.isnan(found)
    assert "integer counts" in reason


@pytest.mark.parametrize(
    ("metric", "found", "number", "where"),
    [
        ("mae", 0.3, 0.3, "minimize"),
        ("cem_ord", 0.3, 0.3, "maximize"),
        ("bias", -0.3, 0.3, "minimize"),
    ],
)
def test_the_objective_is_the_value_or_its_distance_from_zero(metric, found, number, where):
    assert compute_objective(find_metric(metric), found) == number
    assert Settings(metric=metric).direction == where
