"""A run of tuning as a whole: what it writes, what it is decided by, and what it refuses."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from experiments import CEFR, lay_out, models_of, results_of, write_data, write_features

from ordinate.classify.cross_validation import split_folds
from ordinate.classify.settings import Settings
from ordinate.classify.trained_model import load_model
from ordinate.classify.tuning import tune
from ordinate.errors import BadInput, BadOption, BadStore, OffScale, OrdinateError
from ordinate.experiment.folder import Experiment
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import compute_digest
from ordinate.metrics import find_metric

QUICK = Settings(models="logistic,regression", stage2_trials=3, folds=3, top_k=1)
SOURCE_METRICS = (
    *("accuracy", "f1_macro", "f1_weighted", "f1_micro", "precision_macro", "recall_macro"),
    *("ordinal_accuracy", "ordinal_distance_linear", "ordinal_distance_quadratic", "ordinal_mse"),
)


def tuned(root, settings=QUICK, **options):
    return tune(Experiment.open(root), settings, **options)


def stage2(root) -> dict:
    return json.loads((root / "ho_multifeat_results/stage2_optimization_results.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An experiment that was tuned once; tests that change it take a copy."""
    root = lay_out(tmp_path_factory.mktemp("finished"), sets=("strong", "weak", "noise"))
    return root, tuned(root)


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "copy")


# --- what comes out ------------------------------------------------------------------------------


def test_the_winner_is_the_best_by_cross_validation_and_its_model_predicts(finished):
    root, result = finished
    values = [one.evaluation.value for one in result.finalists]
    assert result.winner.evaluation.value == max(values)
    assert stage2(root)["winner"] == result.winner.name
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
    folder = root / "models" / model.name
    answers = np.load(folder / "out_of_fold.npy")
    gold = np.arange(60) % 6
    assert len(answers) == 60
    from ordinate.classify.cross_validation import (
        calibrate_out_of_fold,
        compute_value,
        count_confusion,
    )
    from ordinate.classify.decision_rules import CalibrationPlan

    plan = CalibrationPlan.of(
        result.winner.kind, model.scale, find_metric("cem_ord"), weighted=False
    )
    decided = calibrate_out_of_fold(plan, answers, gold, split_folds(gold, None, 3, 0))
    found, _ = compute_value(
        find_metric("cem_ord"), count_confusion(model.scale, gold, decided.levels["decoded"])
    )
    assert result.winner.evaluation.value == found
    assert model.config["cv"]["value"] == found


def test_four_files_tell_what_was_found_with_full_precision_and_no_time(finished):
    root, result = finished
    folder = root / "ho_multifeat_results"
    assert sorted(path.name for path in folder.iterdir()) == [
        "optimization_summary.md",
        "stage1_screening_results.json",
        "stage2_detailed_results.json",
        "stage2_optimization_results.json",
    ]
    assert stage2(root) == json.loads(json.dumps(result.convert_search_to_dict()))
    assert stage2(root)["winning"]["cross_validation"]["value"] == result.winner.evaluation.value
    detailed = json.loads((folder / "stage2_detailed_results.json").read_text())
    assert [len(study["trials"]) for study in detailed["studies"]] == [3, 3]
    assert detailed["studies"][0]["trials"][0]["after_folds"].keys() == {"1", "2"}
    own = root / "results" / result.run
    for path in folder.iterdir():
        assert (own / path.name).read_bytes() == path.read_bytes()
    Manifest.read(own).verify(own)


def test_every_model_has_a_manifest_that_holds(finished):
    root, result = finished
    for one in result.finalists:
        folder = root / "models" / one.name
        manifest = Manifest.read(folder)
        manifest.verify(folder)
        assert manifest.artifact == "model"
        assert manifest.config["scale"] == list(CEFR)
        assert manifest.config["run"] == result.run
        assert manifest.data.keys() == {"train", f"{one.sets[0]}/train"}


def test_the_report_shows_baselines_flags_ways_and_the_test(finished):
    _, result = finished
    text = " ".join(str(result).split())
    for words in (
        "best constant",
        "chance",
        "no better than chance",
        "rounded average",
        "The winner is strong-",
        "matched by row order: noise",
        "The best of many is optimistically biased",
        "ptimism",
        "3 of 3",
    ):
        assert words in text
    stages = {row["stage"] for row in result.rows()}
    assert stages == {"screen", "search", "test"}
    assert {"low", "high", "best_constant", "chance", "flag"} <= result.rows()[0].keys()


def test_a_second_run_finds_everything_and_writes_the_same(copied):
    before = results_of(copied) | models_of(copied)
    stages = []
    tuned(copied, tell=lambda *told: stages.append(told))
    assert results_of(copied) | models_of(copied) == before
    assert not list(copied.rglob(".ordinate-*"))
    assert not (copied / ".lock").exists()


def test_more_trials_go_on_from_those_that_are_there(copied, monkeypatch):
    from ordinate.classify import hyperparameter_search

    made = []
    whole = hyperparameter_search._finish_trial
    monkeypatch.setattr(
        hyperparameter_search,
        "_finish_trial",
        lambda *a: (made.append(a[2].asked.number), whole(*a)),
    )
    more = tuned(copied, replace(QUICK, stage2_trials=5))
    assert sorted(set(made)) == [3, 4]
    assert [len(one.trials) for one in more.searched] == [5, 5]


def test_fewer_trials_than_there_are_give_the_result_of_fewer(copied):
    before = results_of(copied)
    tuned(copied, replace(QUICK, stage2_trials=5))
    tuned(copied)
    after = results_of(copied)
    assert {name: after[name] for name in before} == before  # the other run has tests of its own


def test_processes_do_not_change_the_result(finished, tmp_path):
    other = lay_out(tmp_path / "other", sets=("strong", "weak", "noise"))
    tuned(other, replace(QUICK, jobs=2))
    assert results_of(other) == results_of(finished[0])
    assert models_of(other) == models_of(finished[0])


# --- what it is decided by -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_test_labels_change_neither_models_nor_choices(finished, tmp_path, seed):
    root, result = finished
    other = lay_out(tmp_path / "other", sets=("strong", "weak", "noise"))
    labels = np.random.default_rng(seed).choice(CEFR, 24).tolist()
    write_data(other, "ml-test-data", "test", labels)
    changed = tuned(other)
    assert models_of(other) == models_of(root)
    assert changed.winner == result.winner
    assert changed.convert_screening_to_dict() == result.convert_screening_to_dict()
    assert changed.list_trials() == result.list_trials()
    assert changed.convert_search_to_dict() | {"tests": []} == result.convert_search_to_dict() | {
        "tests": []
    }
    assert changed.tests[0].evaluation.value != result.tests[0].evaluation.value


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
    assert "no levels" in test.note


def test_items_without_a_label_are_left_out_of_the_test(copied):
    write_data(copied, "ml-test-data", "test", ["", *(CEFR[i % 6] for i in range(1, 24))])
    (test,) = tuned(copied).tests
    assert (test.n, test.note) == (23, "1 items without a level were left out.")


def test_a_test_set_without_features_is_noted(copied):
    shutil.rmtree(copied / "features/strong/test")
    (test,) = tuned(copied).tests
    assert test.evaluation is None
    assert "no features of strong" in test.note


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
    only = tuned(root, replace(QUICK, train=["train"]))
    assert (only.source.n, only.source.training) == (60, ("train",))


def test_groups_stay_whole_and_are_the_units_of_intervals(tmp_path):
    from ordinate.experiment.dataset import DataColumns

    root = lay_out(tmp_path, n=72, sets=("strong",), writers=12)
    grouped = Experiment.open(root, columns=DataColumns(group="writer"))
    result = tune(grouped, QUICK)
    assert result.source.groups == 12
    assert result.winner.evaluation.score.estimate.method == "t"
    assert result.tests[0].groups == 12
    assert "Intervals take the groups for units, and the model as given." in str(result)


def test_groups_that_only_the_training_data_have_are_units_there_alone(tmp_path):
    from ordinate.experiment.dataset import DataColumns

    root = lay_out(tmp_path, n=72, sets=("strong",), writers=12)
    write_data(root, "ml-test-data", "test", [CEFR[i % 6] for i in range(24)])
    result = tune(Experiment.open(root, columns=DataColumns(group="writer")), QUICK)
    assert (result.source.groups, result.tests[0].groups) == (12, None)
    said = "take the groups for units (cross-validation) and items as independent (test), and"
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
    config = Manifest.read(root / "models" / weighted.winner.name).config
    assert min(config["class_weights"]) < 1.0 < max(config["class_weights"])


def test_a_weighted_metric_is_what_decisions_are_made_for(tmp_path):
    labels = [CEFR[0 if i % 3 else i % 6] for i in range(60)]
    root = lay_out(tmp_path, labels=labels, sets=("weak",))
    asked = replace(QUICK, metric="mae", models="logistic,regression,vote", stage2_trials=1)
    result = tuned(root, replace(asked, weight_strategy="inverse", weight_metric=True))
    for one in result.finalists:
        decision = load_model(Experiment.open(root), one.name).calibration
        config = Manifest.read(root / "models" / result.finalists[0].name).config
        if decision.cuts is None:
            scale = np.arange(6)
            distances = np.abs(np.subtract.outer(scale, scale))
            weights = np.array(config["class_weights"])[:, None]
            np.testing.assert_allclose(decision.gain, -distances * weights, atol=1e-9)


def test_decisions_are_made_and_used_with_one_thread(tmp_path, monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    from ordinate.classify.decision_rules import CalibrationPlan, OutputCalibration

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
        tuned(root, replace(QUICK, stage2_trials=1))
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
    assert merit(result.winner.evaluation.value) == max(
        merit(one.evaluation.value) for one in result.finalists
    )


@pytest.mark.parametrize(
    ("metric", "usual", "constant"),
    [("mse", "A1", 1.0), ("bias", "A1", -1.0), ("bias", "C2", 1.0)],
)
def test_less_is_better_or_nearer_to_0_where_the_metric_says_so(tmp_path, metric, usual, constant):
    # Of noise, a model learns to answer the usual level alone, below or above most others.
    labels = [usual if i % 2 else CEFR[i // 2 % 6] for i in range(72)]
    root = lay_out(tmp_path, labels=labels, sets=("noise", "strong"))
    settings = Settings(
        metric=metric, models="logistic", decode="argmax", stage2_trials=1, folds=3, top_k=2
    )
    result = tuned(root, settings)
    assert [one.set for one in result.screened] == ["strong", "noise"]
    assert result.winner.sets == ("strong",)
    (other,) = (one for one in result.finalists if one.sets == ("noise",))
    assert other.evaluation.value * constant > 0.5
    assert abs(result.winner.evaluation.value) < 0.5 * abs(other.evaluation.value)


@pytest.mark.slow
@pytest.mark.parametrize("metric", [*SOURCE_METRICS, "cem_ord", "quadratic_kappa", "macro_mae"])
def test_every_metric_of_the_source_system_can_be_tuned_for(tmp_path, metric):
    root = lay_out(tmp_path, n=240, sets=("strong", "noise"))
    result = tuned(root, Settings(metric=metric, stage2_trials=4))
    assert result.winner.sets == ("strong",)
    assert math.isfinite(result.tests[0].optimism)


def test_a_metric_that_is_undefined_ends_with_its_reason(tmp_path):
    root = lay_out(tmp_path, sets=("strong",))
    settings = replace(QUICK, metric="krippendorff_alpha", weight_strategy="inverse")
    labels = [CEFR[0 if i % 3 else i % 6] for i in range(60)]
    write_data(root, "ml-training-data", "train", labels)
    settings = replace(settings, weight_metric=True)
    with pytest.raises(OrdinateError, match=r"undefined.*whole counts"):
        tuned(root, settings)


# --- what is refused -----------------------------------------------------------------------------


def test_a_timeout_ends_the_search_after_one_round_and_says_so(tmp_path):
    root = lay_out(tmp_path, sets=("strong",))
    settings = replace(QUICK, stage2_trials=9)
    cut = tuned(root, replace(settings, timeout=0.0))
    assert [len(one.trials) for one in cut.searched] == [4, 4]
    assert "timeout ended the search" in str(cut)
    whole = tuned(root, settings)
    assert [len(one.trials) for one in whole.searched] == [9, 9]
    assert "timeout" not in str(whole)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "macro_f1"}, "Did you mean 'f1_macro'"),
        ({"metric": "mae,mse"}, "takes one metric"),
        ({"metric": "brier"}, "brier"),
        ({"metric": "expected_cost"}, "expected_cost needs matrix"),
        ({"weight_alpha": 1.1}, "--weight-alpha takes a finite number of 0 to 1, not 1.1"),
        ({"weight_alpha": math.nan}, "--weight-alpha takes a finite number"),
        ({"weight_strategy": "inverse-sqrt"}, "Did you mean 'inverse_sqrt'"),
        ({"models": "logistik"}, "There is no model 'logistik'. Did you mean 'logistic'"),
        ({"models": ""}, "no model"),
        ({"models": "vote"}, "A vote averages the probabilities"),
        ({"folds": 1}, "--folds takes an integer of at least 2, not 1"),
        ({"top_k": 0}, "--top-k takes"),
        ({"stage2_trials": 0}, "--stage2-trials takes"),
        ({"jobs": 0}, "--jobs takes"),
        ({"seed": -1}, "--seed takes"),
        ({"timeout": -1.0}, "--timeout takes a finite number of at least 0"),
        ({"early_discard_percentile": 101.0}, "of 0 to 100"),
        ({"early_discard_threshold": math.inf}, "takes a finite number, not inf"),
        ({"decode": "best"}, "--decode takes metric, argmax or average"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_settings_are_checked_before_any_work(options, message):
    with pytest.raises(OrdinateError, match=message):
        Settings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_pattern": "tfidf*"}, "No feature set is called 'tfidf"),
        ({"train": ["trian"]}, "Did you mean 'train'"),
        ({"early_discard_threshold": 1.0}, "Every feature set is discarded.*strong, has cem_ord 0"),
        ({"folds": 61}, "61 folds cannot be made of 60 items"),
    ],
    ids=["pattern", "train", "threshold", "folds"],
)
def test_settings_that_do_not_fit_the_data_are_errors(copied, options, message):
    with pytest.raises(OrdinateError, match=message):
        tuned(copied, replace(QUICK, **options))
    assert not (copied / ".lock").exists()


def test_an_experiment_without_data_or_features_is_an_error(tmp_path):
    with pytest.raises(BadInput, match="has no training data"):
        tuned(tmp_path)
    write_data(tmp_path, "ml-training-data", "train", ["A1", "B1"] * 5)
    with pytest.raises(BadInput, match="There are no feature sets in"):
        tuned(tmp_path)


def test_training_data_of_one_level_are_an_error(tmp_path):
    root = lay_out(tmp_path, labels=["B1"] * 20, sets=("strong",))
    with pytest.raises(BadInput, match="All training items are B1"):
        tuned(root)


def test_a_test_label_off_the_scale_is_an_error_before_any_work(tmp_path):
    root = lay_out(tmp_path, sets=("strong",))
    write_data(root, "ml-test-data", "test", ["B3", *(CEFR[i % 6] for i in range(1, 24))])
    words = r"'B3'.*Correct the file, or declare a scale that has it \(--scale\)\.$"
    with pytest.raises(OffScale, match=words):
        tuned(root)
    assert not (root / "results").exists()


def test_test_features_of_other_names_are_an_error_before_any_work(copied):
    (copied / "features/noise/test/feature_names.csv").write_text(
        "feature\n" + "".join(f"other_{j}\n" for j in range(6))
    )
    path = copied / "features/noise/test/features_dense.csv"
    rows = path.read_text().splitlines()
    path.write_text("\n".join([",".join(f"other_{j}" for j in range(6)), *rows[1:]]) + "\n")
    with pytest.raises(BadInput, match="are not the same: number 1 is 'noise_0' and 'other_0'"):
        tuned(copied)


def test_training_files_with_other_features_are_an_error(copied):
    labels = [CEFR[i % 6] for i in range(24)]
    write_data(copied, "ml-training-data", "more", labels)
    for name in ("strong", "weak", "noise"):
        write_features(copied, name, "more", labels, rng=np.random.default_rng(5), columns=5)
    with pytest.raises(BadInput, match=r"5 and 6 of them.*--train more"):
        tuned(copied)


def test_a_saved_model_that_was_changed_is_refused(copied, finished):
    (path,) = (copied / "models" / finished[1].winner.name).glob("out_of_fold.npy")
    path.write_bytes(path.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(BadStore, match=f"remove {path.parent} and repeat the command"):
        tuned(copied)


def test_what_is_kept_of_screening_is_made_again_if_it_is_damaged(copied):
    before = results_of(copied)
    for path in (copied / "results/screening").iterdir():
        path.write_text("{")
    tuned(copied)
    assert results_of(copied) == before


@pytest.mark.parametrize("entry", [99, -1, 0.5, "x", True, None], ids=str)
def test_a_record_with_levels_that_are_none_is_made_again(copied, entry):
    before = results_of(copied)
    for path in _records(copied):
        record = json.loads(path.read_text())
        del record["digest"]
        record["levels"]["decoded"][0] = entry
        code = compute_digest({"name": path.name, "record": record}, length=64)
        path.write_text(json.dumps(record | {"digest": code}))
    tuned(copied)
    assert results_of(copied) == before


def test_a_record_that_is_not_as_it_was_kept_is_made_again(copied):
    before = results_of(copied)
    for path in _records(copied):
        record = json.loads(path.read_text())
        levels = record["levels"]["decoded"]
        record["levels"]["decoded"] = [(level + 1) % 6 for level in levels]
        path.write_text(json.dumps(record))
    tuned(copied)
    assert results_of(copied) == before


def test_a_record_under_the_name_of_another_is_made_again(copied):
    first, *others = sorted((copied / "results/screening").iterdir())
    before = results_of(copied)
    for other in others:
        other.write_bytes(first.read_bytes())
    tuned(copied)
    assert results_of(copied) == before


def _records(root):
    found = [*(root / "results/screening").iterdir(), *(root / "results").glob("*/test-*.json")]
    assert len(found) > 1
    return found


def test_ids_that_were_corrected_count_for_training_and_test(copied):
    before = stage2(copied)
    _shuffle(copied / "features/strong/test/ids.csv")
    tuned(copied)
    after = stage2(copied)
    assert after["winner"] == before["winner"]
    assert len(list((copied / "results").glob("*/test-*.json"))) == 2
    assert after["tests"] != before["tests"]
    _shuffle(copied / "features/strong/train/ids.csv")
    tuned(copied)
    assert stage2(copied)["winner"] != before["winner"]


def _shuffle(path):
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *lines[7:], *lines[:7]]) + "\n")


def test_saved_answers_that_do_not_fit_the_items_are_refused(copied, finished):
    folder = copied / "models" / finished[1].winner.name
    np.save(folder / "out_of_fold.npy", np.zeros((3, 6)))
    old = Manifest.read(folder)
    known = {"config": old.config, "data": old.data, "seed": old.seed, "command": old.command}
    Manifest.of(folder, "model", folder.name, **known).write(folder)
    with pytest.raises(BadStore, match=r"does not hold the answers for 60 items\. Remove"):
        tuned(copied)


def test_a_whole_option_is_refused_as_an_error_of_options():
    with pytest.raises(BadOption, match="--models takes names"):
        Settings(models=5)
