"""Cross-validation: folds, out-of-fold answers, crossed decisions, values."""

import math

import numpy as np
import pytest

from ordinate.classify.class_weights import compute_class_weights
from ordinate.classify.cross_validation import (
    Candidate,
    LabelledFeatures,
    calibrate_out_of_fold,
    calibrate_vote_out_of_fold,
    compute_objective,
    compute_value,
    count_confusion,
    fit_calibration,
    fit_candidate,
    fit_fold,
    fit_vote_calibration,
    make_fold_tasks,
    mark_seen_levels,
    predict_out_of_fold,
    select_reversible_weights,
    split_folds,
)
from ordinate.classify.decision_rules import DECISION_RULES, CalibrationPlan
from ordinate.classify.settings import Settings
from ordinate.errors import BadOption, MissingLabels
from ordinate.experiment.workers import WorkerPool
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.metrics import find_metric
from ordinate.scale import Scale

SCALE = Scale.of("A1,A2,B1,B2")


@pytest.fixture(scope="module")
def data():
    return made(0)


def made(seed, n=160):
    """Return noisy copies of a latent score, and the levels that it is cut into."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    levels = np.digitize(latent, [-1.2, 0.2, 1.3]).astype(np.intp)
    noisy = [latent + 0.8 * rng.normal(size=n) for _ in range(3)]
    return LabelledFeatures(np.column_stack([*noisy, rng.normal(size=n)]), levels)


def answers_of(data, parts, kind="logistic", **weighting):
    with WorkerPool(1) as workers:
        workers.keep("set", data)
        return predict_out_of_fold(
            workers, Candidate("set", kind, {}, size=4, seed=0, **weighting), parts
        )


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


# --- fits ----------------------------------------------------------------------------------------


def test_an_answer_does_not_depend_on_the_levels_of_its_own_fold(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    other = data.levels.copy()
    other[parts[1]] = 3 - other[parts[1]]
    how = {"strategy": "inverse", "alpha": 0.7}  # weights, too, come from the other folds
    first = answers_of(data, parts, **how)
    second = answers_of(LabelledFeatures(data.matrix, other), parts, **how)
    assert np.array_equal(first[parts[1]], second[parts[1]])
    assert not np.array_equal(first[parts[0]], second[parts[0]])


def test_folds_of_some_rows_are_fitted_on_those_rows_alone(data):
    rows = np.arange(0, len(data.levels), 2)
    parts = split_folds(data.levels[rows], None, 4, seed=0)
    tasks = make_fold_tasks(Candidate("set", "logistic", {}, size=4, seed=0), parts, rows)
    for task, part in zip(tasks, parts, strict=True):
        assert sorted([*task.train, *task.test]) == rows.tolist()
        assert np.array_equal(task.test, rows[part])
    some = LabelledFeatures(data.matrix[rows], data.levels[rows])
    with WorkerPool(1) as workers:
        workers.keep("set", data)
        found = predict_out_of_fold(workers, tasks[0].candidate, parts, rows)
    assert np.array_equal(found, answers_of(some, parts))


def test_undone_weights_nearly_give_what_an_unweighted_fit_gives():
    data = made(5, n=600)
    parts = split_folds(data.levels, None, 3, seed=0)
    plain = answers_of(data, parts)
    undone = answers_of(data, parts, strategy="inverse")
    assert np.abs(plain - undone).mean() < 0.02
    model, weights = fit_candidate(data, Candidate("set", "logistic", {}, 4, 0, "inverse"))
    raw = model.predict(data.matrix)
    assert np.abs(plain - raw).mean() > 0.05  # so there was something to undo
    decision = CalibrationPlan.of("logistic", SCALE, find_metric("mae"), weighted=True).fit(
        undone, data.levels, select_reversible_weights("logistic", weights)
    )
    assert np.abs(decision.probabilities(raw) - plain).mean() < 0.02


def test_class_weights_are_those_of_the_rows_fitted_on(data):
    rows = np.flatnonzero(data.levels != 1)
    _, weights = fit_candidate(data, Candidate("set", "logistic", {}, 4, 0, "inverse", 0.5), rows)
    assert np.array_equal(weights, compute_class_weights(data.levels[rows], 4, "inverse", 0.5))


@pytest.mark.parametrize(
    ("strategy", "alpha"), [("equal", 1.0), ("inverse", 0.0)], ids=["equal", "alpha 0"]
)
def test_equal_weights_are_none(data, strategy, alpha):
    _, weights = fit_candidate(data, Candidate("set", "logistic", {}, 4, 0, strategy, alpha))
    assert weights is None


def test_only_weights_of_likelihood_fits_are_undone():
    weights = np.array([1.0, 2.0])
    assert select_reversible_weights("logistic", weights) is weights
    assert [
        select_reversible_weights(kind, weights) for kind in ("svm", "forest", "regression")
    ] == [None] * 3


def test_a_level_that_training_lacks_gets_no_probability_and_no_error(data):
    task = make_fold_tasks(Candidate("set", "logistic", {}, 4, 0, "inverse"), [np.arange(5)])[0]
    lacking = task._replace(train=np.flatnonzero(data.levels != 2))
    answers = fit_fold({"set": data}, lacking)
    assert (answers[:, 2] == 0).all()
    assert np.allclose(answers.sum(axis=1), 1.0)


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
    answers = data.matrix[:, 0] if scores else answers_of(data, parts)
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
    answers = answers_of(data, parts)
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
        data = made(seed, n=300)
        parts = split_folds(data.levels, None, 4, seed=0)
        found = calibrate_out_of_fold(
            CalibrationPlan(SCALE, find_metric(metric)), answers_of(data, parts), data.levels, parts
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
    answers, plan = answers_of(data, parts), CalibrationPlan(SCALE, find_metric("cem_ord"))
    alone = calibrate_out_of_fold(plan, answers, data.levels, parts)
    vote = calibrate_vote_out_of_fold(plan, [(plan, answers)], data.levels, parts)
    for way in DECISION_RULES:
        assert np.array_equal(alone.levels[way], vote.levels[way])


def test_no_fold_of_a_vote_is_decided_by_its_own_gold(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    plan = CalibrationPlan(SCALE, find_metric("quadratic_kappa"))
    sharp = CalibrationPlan(SCALE, find_metric("quadratic_kappa"), recalibration="vector")
    answers = answers_of(data, parts)
    members = [(plan, answers), (sharp, answers_of(data, parts, "svm"))]
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
    data = made(3, n=200)
    some = np.flatnonzero(data.levels < 3)
    rare = np.sort(np.append(some, np.flatnonzero(data.levels == 3)[0]))
    plan, surest = CalibrationPlan(SCALE, find_metric("cem_ord")), []
    for rows in (some, rare):
        gold = data.levels[rows]
        parts = split_folds(gold, None, 4, seed=0)
        answers = answers_of(LabelledFeatures(data.matrix[rows], gold), parts)
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
        data = made(seed, n=400)
        weights = compute_class_weights(data.levels, 4, "inverse")
        parts = split_folds(data.levels, None, 4, seed=0)
        answers = answers_of(data, parts)
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
    answers = answers_of(data, parts)
    sharp = CalibrationPlan(SCALE, find_metric("mae"), recalibration="vector")
    found = fit_calibration(sharp, answers, data.levels, parts)
    rows = calibrate_out_of_fold(sharp, answers, data.levels, parts).probabilities
    assert (
        found.threshold
        == sharp.fit(answers, data.levels).calibrate_sets(rows, data.levels).threshold
    )
    members = [(sharp, answers), (sharp, answers_of(data, parts, "svm"))]
    vote = fit_vote_calibration(sharp, members, data.levels, parts)
    rows = calibrate_vote_out_of_fold(sharp, members, data.levels, parts).probabilities
    assert vote.threshold == vote.calibrate_sets(rows, data.levels).threshold


def test_class_weights_are_kept_to_be_undone(data):
    parts = split_folds(data.levels, None, 4, seed=0)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    found = fit_calibration(
        CalibrationPlan(SCALE, find_metric("mae")),
        answers_of(data, parts),
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
