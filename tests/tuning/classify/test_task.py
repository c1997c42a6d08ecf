"""The ordinal task: its fits, its subsets of items, its values, and what it caches."""

from dataclasses import replace

import numpy as np
import pytest
from classifier_fits import draw_items, make_fit, predict_out_of_fold
from experiments import CEFR, lay_out
from tuned_experiments import open_task

from ordinate.errors import NotApplicable
from ordinate.metrics import find_metric
from ordinate.scale import Scale
from ordinate.tuning.classify.class_weights import compute_class_weights
from ordinate.tuning.classify.cross_validation import split_folds
from ordinate.tuning.classify.decision_rules import DECISION_RULES, METRIC_OPTIMAL, CalibrationPlan
from ordinate.tuning.classify.task import LabelledFeatures
from ordinate.tuning.models.classifiers import load_classifier
from ordinate.tuning.search.fits import FitOutputs, run_fit
from ordinate.tuning.search.task import Candidate, StudyKey

LOGISTIC = Candidate("strong", "logistic", {})
SCALE = Scale.of("A1,A2,B1,B2")


@pytest.fixture(scope="module")
def data():
    return draw_items(0)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("task"), n=36, sets=("strong", "weak"))


@pytest.fixture
def task(root):
    return open_task(root)


# --- fits ----------------------------------------------------------------------------------------


def test_an_output_does_not_depend_on_the_levels_of_its_own_fold(data):
    folds = split_folds(data.levels, None, 4, seed=0)
    other = data.levels.copy()
    other[folds[1]] = 3 - other[folds[1]]
    weighting = {"strategy": "inverse", "alpha": 0.7}  # weights, too, come from the other folds
    first = predict_out_of_fold(data, folds, **weighting)
    second = predict_out_of_fold(LabelledFeatures(data.matrix, other), folds, **weighting)
    assert np.array_equal(first[folds[1]], second[folds[1]])
    assert not np.array_equal(first[folds[0]], second[folds[0]])


def test_undone_weights_nearly_give_what_an_unweighted_fit_gives(tmp_path):
    data = draw_items(5, n=600)
    folds = split_folds(data.levels, None, 3, seed=0)
    plain = predict_out_of_fold(data, folds)
    undone = predict_out_of_fold(data, folds, strategy="inverse")
    assert np.abs(plain - undone).mean() < 0.02
    folder, every = tmp_path / "model", np.arange(600)
    fitted = make_fit(every, None, strategy="inverse", folder=str(folder)).run({"set": data})
    raw = load_classifier(folder).predict(data.matrix)
    assert np.abs(plain - raw).mean() > 0.05  # so there was something to undo
    calibration = CalibrationPlan.of("logistic", SCALE, find_metric("mae"), weighted=True).fit(
        undone, data.levels, np.array(fitted.facts["class_weights"])
    )
    assert np.abs(calibration.probabilities(raw) - plain).mean() < 0.02


def test_class_weights_are_those_of_the_rows_fitted_on(data):
    rows = np.flatnonzero(data.levels != 1)
    fitted = make_fit(rows, rows[:1], strategy="inverse", alpha=0.5).run({"set": data})
    expected = compute_class_weights(data.levels[rows], 4, "inverse", 0.5)
    assert fitted.facts["class_weights"] == expected.tolist()


@pytest.mark.parametrize(
    ("strategy", "alpha"), [("equal", 1.0), ("inverse", 0.0)], ids=["equal", "alpha 0"]
)
def test_equal_weights_are_none(data, strategy, alpha):
    rows = np.arange(len(data.levels))
    fitted = make_fit(rows, rows[:1], strategy=strategy, alpha=alpha).run({"set": data})
    assert fitted.facts["class_weights"] is None


@pytest.mark.parametrize(
    ("model_type", "undone"), [("logistic", True), ("svm", False), ("regression", False)]
)
def test_only_weights_of_likelihood_fits_are_undone(data, model_type, undone):
    rows = np.arange(len(data.levels))
    fitted = make_fit(rows, rows[:1], model_type, strategy="inverse").run({"set": data})
    assert (fitted.facts["class_weights"] is not None) == undone


def test_a_level_that_training_lacks_gets_no_probability_and_no_error(data):
    lacking = make_fit(np.flatnonzero(data.levels != 2), np.arange(5), strategy="inverse")
    outputs = lacking.run({"set": data}).predictions
    assert (outputs[:, 2] == 0).all()
    assert np.allclose(outputs.sum(axis=1), 1.0)


# --- subsets of the items ------------------------------------------------------------------------


def test_folds_of_a_subset_are_fitted_on_its_rows_alone(task):
    left_out = task.folds[0]
    rest = task.restrict_to_rest(left_out, "outer-1")
    rows = np.setdiff1d(np.arange(36), left_out)
    assert sorted(rest.get_rows(np.concatenate(rest.folds))) == rows.tolist()
    for fit, fold in zip(rest.make_fold_fits(LOGISTIC), rest.folds, strict=True):
        assert sorted([*fit.train, *fit.new]) == rows.tolist()
        assert np.array_equal(fit.new, rows[fold])
    last = rest.make_final_fit(LOGISTIC, None, left_out)
    assert np.array_equal(last.train, rows)
    assert np.array_equal(last.new, left_out)


def test_a_subset_shares_the_time_and_the_workers_and_nothing_that_was_found(task):
    task.cache_outputs(LOGISTIC, 0.5, FitOutputs(np.zeros((36, 6))))
    rest = task.restrict_to_rest(task.folds[0], "outer-1")
    assert (rest.budget, rest.workers, rest.loaded) == (task.budget, task.workers, task.loaded)
    assert rest.get_cached_outputs(LOGISTIC) is None
    assert rest.name_study(StudyKey("strong", "logistic")).startswith("outer-1/strong/logistic/")
    assert rest.compute_digest("strong") != task.compute_digest("strong")


# --- values --------------------------------------------------------------------------------------


def answer(levels):
    return dict.fromkeys(DECISION_RULES, np.asarray(levels))


def test_where_zero_is_best_a_trial_keeps_the_side_on_which_it_errs(root):
    below = open_task(root, metric="bias")
    score = below.score(answer(np.maximum(below.levels - 1, 0)))
    assert score.attributes == {"signed_value": -score.objective}
    assert 0.0 < score.objective < 1.0
    assert open_task(root).score(answer(below.levels)) == (1.0, {})


def test_a_metric_that_is_undefined_says_why(root):
    settings = {"metric": "krippendorff_alpha", "weight_strategy": "inverse", "weight_metric": True}
    labels = [CEFR[0 if i % 3 else i % 6] for i in range(36)]
    unbalanced = open_task(
        lay_out(root / "unbalanced", labels=labels, sets=("strong",)), **settings
    )
    with pytest.raises(NotApplicable, match=r"krippendorff_alpha is undefined: .*integer counts"):
        unbalanced.score(answer(unbalanced.levels))


def test_the_interim_objective_counts_the_folds_that_are_done(task):
    right = [np.eye(6)[task.levels[fold]] for fold in task.folds]
    wrong = [np.eye(6)[(task.levels[fold] + 3) % 6] for fold in task.folds]
    good, bad = ([FitOutputs(x) for x in outputs] for outputs in (right, wrong))
    assert task.compute_interim_objective(good[:1]) == 1.0
    both = task.compute_interim_objective([good[0], bad[1]])
    assert task.compute_interim_objective(bad[:2]) < both < 1.0


def test_the_value_is_that_of_one_confusion_matrix_over_all_folds(task):
    task.load_input("strong")
    outputs = task.join_outputs(task.workers.map(run_fit, task.make_fold_fits(LOGISTIC)))
    predictions, _ = task.predict_out_of_fold(LOGISTIC, outputs)
    whole = task.items.count_confusion(predictions[METRIC_OPTIMAL])
    assert whole.n == 36
    assert task.evaluate_candidate(LOGISTIC, outputs).value == task.settings.measure(whole)
    assert task.score(predictions).objective == task.settings.measure(whole)


# --- what is cached ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"folds": 4}, {"metric": "mae"}, {"seed": 1}, {"decode": "argmax"}],
    ids=["folds", "metric", "seed", "decode"],
)
def test_settings_that_change_values_change_digests(task, root, options):
    assert task.compute_digest("strong") != open_task(root, **options).compute_digest("strong")


@pytest.mark.parametrize("options", [{"top_k": 1}, {"trials": 7}, {"jobs": 2}], ids=str)
def test_settings_that_change_no_value_share_what_is_cached(task, root, options):
    assert task.compute_digest("strong") == open_task(root, **options).compute_digest("strong")


def test_a_changed_label_changes_digests(task, tmp_path):
    labels = ["C2", *(CEFR[i % 6] for i in range(1, 36))]
    other = open_task(lay_out(tmp_path, labels=labels, sets=("strong", "weak")))
    assert task.compute_digest() != other.compute_digest()


def test_given_hyperparameters_make_a_study_of_their_own(task, root):
    key, given = StudyKey("strong", "logistic"), open_task(root, params={"logistic": {"C": 2.0}})
    assert given.name_study(key) != task.name_study(key)
    space, defaults = given.select_space("logistic")
    assert (space(None)["C"], list(defaults)) == (2.0, [])
    assert given.settings.count_trials("logistic") == 1


def test_the_levels_of_a_rule_come_back_from_the_cache_as_they_were(task):
    levels = answer(task.levels)
    stored = task.encode_predictions(levels)
    found = task.decode_predictions(stored, 36)
    assert all(np.array_equal(found[rule], levels[rule]) for rule in DECISION_RULES)


@pytest.mark.parametrize("level", [99, -1, 0.5, "x", True, None], ids=str)
def test_what_is_no_level_is_not_taken_from_the_cache(task, level):
    stored = task.encode_predictions(answer(task.levels))
    stored["argmax"][0] = level
    assert task.decode_predictions(stored, 36) is None


def test_levels_of_other_items_or_rules_are_not_taken_from_the_cache(task):
    stored = task.encode_predictions(answer(task.levels))
    assert task.decode_predictions(stored, 35) is None
    assert task.decode_predictions({"argmax": stored["argmax"]}, 36) is None
    assert task.decode_predictions(stored | {"other": stored["argmax"]}, 36) is None
    assert task.decode_predictions(None, 36) is None


def test_a_dropped_set_is_read_again_where_it_is_needed(task):
    task.load_input("strong")
    task.drop_input("strong")
    task.drop_input("strong")  # which is not there any more
    assert "strong" not in task.loaded
    task.load_input("strong")
    (first, *_) = task.make_fold_fits(LOGISTIC)
    (outputs,) = task.workers.map(run_fit, [replace(first, checkpoint=None)])
    assert len(outputs.predictions) == len(first.new)
