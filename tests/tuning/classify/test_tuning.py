"""A run of tuning as a whole: what it writes, what it is decided by, and what it refuses."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from experiments import CEFR, lay_out, write_data, write_features
from tuned_experiments import QUICK, read_results, tuned

from ordinate.errors import OrdinateError
from ordinate.metrics import find_metric
from ordinate.tuning.classify.cross_validation import (
    calibrate_out_of_fold,
    compute_value,
    count_confusion,
    split_folds,
)
from ordinate.tuning.classify.decision_rules import CalibrationPlan
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.trained_model import load_model
from ordinate.tuning.classify.tuning import tune_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.search.fits import FitOutputs

SOURCE_METRICS = (
    *("accuracy", "f1_macro", "f1_weighted", "f1_micro", "precision_macro", "recall_macro"),
    *("ordinal_accuracy", "ordinal_distance_linear", "ordinal_distance_quadratic", "ordinal_mse"),
)

# --- what comes out ------------------------------------------------------------------------------


def test_the_winner_is_the_best_by_cross_validation_and_its_model_predicts(finished):
    root, result = finished
    values = [one.evaluation.value for one in result.finalists]
    assert result.winner.evaluation.value == max(values)
    assert read_results(root)["winner"] == result.winner.name
    experiment = Experiment.open(root)
    model = load_model(experiment)
    assert model.name == result.winner.name
    features = {name: experiment.features(name, "test") for name in model.sets}
    gold = experiment.dataset("test").gold(model.scale)
    right = (model.predict(features).levels == gold).mean()
    assert right > 0.5


def test_the_value_of_a_model_is_that_of_one_table_over_all_folds(finished):
    root, result = finished
    model = load_model(Experiment.open(root), result.winner.name)
    outputs = FitOutputs.load(root / "models" / model.name / "out_of_fold.npz").predictions
    gold = np.arange(60) % 6
    assert len(outputs) == 60
    plan = CalibrationPlan.of(
        result.winner.model_type, model.scale, find_metric("cem_ord"), weighted=False
    )
    decided = calibrate_out_of_fold(plan, outputs, gold, split_folds(gold, None, 3, 0))
    found, _ = compute_value(
        find_metric("cem_ord"), count_confusion(model.scale, gold, decided.levels["metric_optimal"])
    )
    assert result.winner.value == result.winner.evaluation.value == found
    assert model.manifest.config["cross_validation"] == found


def test_what_the_winner_predicts_for_test_items_is_written(finished):
    root, _ = finished
    experiment = Experiment.open(root)
    model = load_model(experiment)
    predicted = model.predict({name: experiment.features(name, "test") for name in model.sets})
    (test,) = json.loads((root / "results/test_predictions.json").read_text())["tests"]
    assert test["data"] == "test"
    assert (test["rows"], test["gold"]) == (list(range(1, 25)), [CEFR[k % 6] for k in range(24)])
    assert test["ids"] == [f"test-{k}" for k in range(24)]
    assert test["predictions"] == {model.name: [CEFR[k] for k in predicted.levels]}


def test_each_set_and_each_model_type_has_a_study_of_its_own(copied):
    result = tuned(copied, replace(QUICK, top_k=2, trials=1))
    assert [(one.set, one.model_type) for one in result.studies] == [
        ("strong", "logistic"),
        ("strong", "regression"),
        ("weak", "logistic"),
        ("weak", "regression"),
    ]


def test_every_model_has_a_manifest_that_holds(finished):
    root, result = finished
    for one in result.finalists:
        folder = root / "models" / one.name
        manifest = Manifest.read(folder)
        manifest.verify(folder)
        assert (manifest.artifact, manifest.config["task"]) == ("model", "classification")
        assert manifest.config["run"] == result.run
        assert load_model(Experiment.open(root), one.name).config["scale"] == list(CEFR)
        assert manifest.data.keys() == {"train", f"{one.sets[0]}/train"}


def test_the_report_shows_baselines_flags_ways_and_the_test(finished):
    _, result = finished
    text = " ".join(str(result).split())
    for words in (
        "best constant",
        "chance",
        "no better than chance",
        "rounded mean",
        "The best model is strong/",
        "matched by row order: noise",
        "The best of many is optimistically biased",
        "On test, by which nothing was selected, it has",
        "3 of 3",
    ):
        assert words in text
    stages = {row["stage"] for row in result.rows()}
    assert stages == {"screening", "search", "test"}
    assert {"low", "high", "best_constant", "chance", "flag"} <= result.rows()[0].keys()


# --- what it is decided by -----------------------------------------------------------------------


def test_optimism_is_positive_where_cross_validation_was_optimistic(finished):
    _, result = finished
    (test,) = result.tests
    assert test.optimism == pytest.approx(result.winner.evaluation.value - test.evaluation.value)
    assert test.n == 24


def test_a_test_set_without_labels_is_noted(copied):
    path = copied / "ml-test-data/test.csv"
    path.write_text("id,text\n" + "".join(f"test-{i},Text {i} of test.\n" for i in range(24)))
    (test,) = tuned(copied).tests
    assert test.evaluation is None
    assert "no levels" in test.notes[0]


def test_items_without_a_label_are_left_out_of_the_test(copied):
    write_data(copied, "ml-test-data", "test", ["", *(CEFR[i % 6] for i in range(1, 24))])
    (test,) = tuned(copied).tests
    assert (test.n, test.notes) == (23, ("1 items without a level were left out.",))


def test_a_test_set_without_features_is_noted(copied):
    shutil.rmtree(copied / "features/strong/test")
    (test,) = tuned(copied).tests
    assert test.evaluation is None
    assert "no features of strong" in test.notes[0]


def test_a_level_that_training_lacks_is_on_the_scale_all_the_same(tmp_path):
    labels = [CEFR[1 + i % 5] for i in range(50)]
    root = lay_out(tmp_path, labels=labels, sets=("strong",))
    result = tuned(root)
    assert result.source.counts[0] == 0
    assert load_model(Experiment.open(root)).scale.labels == CEFR
    assert result.tests[0].n == 24


def test_one_item_of_a_level_is_no_obstacle(tmp_path):
    labels = ["C2", *(CEFR[i % 4] for i in range(40))]
    assert tuned(lay_out(tmp_path, labels=labels, sets=("strong",))).winner


def test_training_files_are_pooled_or_chosen(tmp_path):
    root = lay_out(tmp_path, sets=("strong",))
    labels = [CEFR[i % 6] for i in range(24)]
    write_data(root, "ml-training-data", "more", labels)
    write_features(root, "strong", "more", labels, rng=np.random.default_rng(5))
    assert tuned(root).source.n == 84
    only = tuned(root, replace(QUICK, training_sets=["train"]))
    assert (only.source.n, only.source.training) == (60, ("train",))


def test_groups_stay_whole_and_are_the_units_of_intervals(tmp_path):
    from ordinate.tuning.experiment.data_columns import DataColumns

    root = lay_out(tmp_path, n=72, sets=("strong",), writers=12)
    grouped = Experiment.open(root, columns=DataColumns(group="writer"))
    result = tune_experiment(grouped, QUICK)
    assert result.source.groups == 12
    assert result.winner.evaluation.score.estimate.method == "jackknife"
    assert result.tests[0].groups == 12
    assert "Intervals take clusters as units, and the model as given." in str(result)


def test_groups_that_only_the_training_data_have_are_units_there_alone(tmp_path):
    from ordinate.tuning.experiment.data_columns import DataColumns

    root = lay_out(tmp_path, n=72, sets=("strong",), writers=12)
    write_data(root, "ml-test-data", "test", [CEFR[i % 6] for i in range(24)])
    result = tune_experiment(Experiment.open(root, columns=DataColumns(group="writer")), QUICK)
    assert (result.source.groups, result.tests[0].groups) == (12, None)
    said = "take clusters as units (cross-validation) and items as independent (test), and"
    assert said in " ".join(str(result).split())


def test_class_weights_reach_fitting_and_the_metric_only_if_asked(tmp_path):
    labels = [CEFR[0 if i % 3 else i % 6] for i in range(60)]
    root = lay_out(tmp_path, labels=labels, sets=("weak",))
    plain = tuned(root, replace(QUICK, models="logistic"))
    weighted = tuned(root, replace(QUICK, models="logistic", weight_strategy="inverse"))
    counted = tuned(
        root, replace(QUICK, models="logistic", weight_strategy="inverse", weight_metric=True)
    )
    values = {one.winner.evaluation.value for one in (plain, weighted, counted)}
    assert len(values) == 3
    weights = load_model(Experiment.open(root), weighted.winner.name).config["class_weights"]
    assert min(weights) < 1.0 < max(weights)


def test_a_weighted_metric_is_what_decisions_are_made_for(tmp_path):
    labels = [CEFR[0 if i % 3 else i % 6] for i in range(60)]
    root = lay_out(tmp_path, labels=labels, sets=("weak",))
    asked = replace(QUICK, metric="mae", models="logistic,regression,vote", trials=1)
    result = tuned(root, replace(asked, weight_strategy="inverse", weight_metric=True))
    experiment, levels = Experiment.open(root), np.arange(6)
    distances = np.abs(np.subtract.outer(levels, levels))
    first = load_model(experiment, result.finalists[0].name)
    weights = np.array(first.config["class_weights"])[:, None]
    for one in result.finalists:
        calibration = load_model(experiment, one.name).calibration
        if calibration.cuts is None:
            np.testing.assert_allclose(calibration.gain, -distances * weights, atol=1e-9)


def test_decisions_are_made_and_used_with_one_thread(tmp_path, monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    from ordinate.tuning.classify.decision_rules import CalibrationPlan, OutputCalibration

    threads = []

    def watched(kind, name):
        whole = getattr(kind, name)

        def with_a_look(*given, **options):
            threads.extend(one["num_threads"] for one in threadpool_info())
            return whole(*given, **options)

        monkeypatch.setattr(kind, name, with_a_look)

    watched(CalibrationPlan, "fit")
    watched(OutputCalibration, "levels")
    root = lay_out(tmp_path, n=36, sets=("strong",))
    with threadpool_limits(2):
        tuned(root, replace(QUICK, trials=1))
        fitted, threads[:] = set(threads), []
        experiment = Experiment.open(root)
        model = load_model(experiment)
        model.predict({name: experiment.features(name, "test") for name in model.sets})
    assert fitted == {1}
    assert set(threads) == {1}


# --- metrics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["ordinal_mse", "bias"])
def test_the_direction_comes_from_the_catalogue(copied, metric):
    result = tuned(copied, replace(QUICK, metric=metric))
    merit = find_metric(metric).merit
    assert merit(result.winner.value) == max(merit(one.value) for one in result.finalists)


@pytest.mark.parametrize(
    ("metric", "usual", "constant"),
    [("mse", "A1", 1.0), ("bias", "A1", -1.0), ("bias", "C2", 1.0)],
)
def test_less_is_better_or_nearer_to_0_where_the_metric_says_so(tmp_path, metric, usual, constant):
    # Of noise, a model learns to answer the usual level alone, below or above most others.
    labels = [usual if i % 2 else CEFR[i // 2 % 6] for i in range(72)]
    root = lay_out(tmp_path, labels=labels, sets=("noise", "strong"))
    settings = Settings(
        metric=metric, models="logistic", decode="argmax", trials=1, folds=3, top_k=2
    )
    result = tuned(root, settings)
    assert [one.set for one in result.screened] == ["strong", "noise"]
    assert result.winner.sets == ("strong",)
    (other,) = (one for one in result.finalists if one.sets == ("noise",))
    assert other.evaluation.value * constant > 0.5
    assert abs(result.winner.evaluation.value) < 0.5 * abs(other.evaluation.value)
    (test,) = result.tests
    assert test.optimism == pytest.approx(abs(test.evaluation.value) - abs(result.winner.value))


@pytest.mark.slow
@pytest.mark.parametrize("metric", [*SOURCE_METRICS, "cem_ord", "quadratic_kappa", "macro_mae"])
def test_every_metric_of_the_source_system_can_be_tuned_for(tmp_path, metric):
    root = lay_out(tmp_path, n=240, sets=("strong", "noise"))
    result = tuned(root, Settings(metric=metric, trials=4))
    assert result.winner.sets == ("strong",)
    assert math.isfinite(result.tests[0].optimism)


def test_a_metric_that_is_undefined_ends_with_its_reason(tmp_path):
    root = lay_out(tmp_path, sets=("strong",))
    settings = replace(QUICK, metric="krippendorff_alpha", weight_strategy="inverse")
    labels = [CEFR[0 if i % 3 else i % 6] for i in range(60)]
    write_data(root, "ml-training-data", "train", labels)
    settings = replace(settings, weight_metric=True)
    with pytest.raises(OrdinateError, match=r"undefined.*integer counts"):
        tuned(root, settings)
