"""Tuning that is refused: settings, data, and damaged caches."""

import math
from dataclasses import replace

import numpy as np
import pytest
from experiments import CEFR, lay_out, write_data, write_features
from tuned_experiments import QUICK, read_results, tuned

from ordinate.errors import BadInput, BadOption, OffScale, OrdinateError
from ordinate.tuning.classify.settings import Settings

# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "macro_f1"}, "Did you mean 'f1_macro'"),
        ({"metric": "mae,mse"}, "takes one metric"),
        ({"metric": "brier"}, "brier"),
        ({"metric": "expected_cost"}, "expected_cost needs matrix"),
        ({"weight_alpha": 1.1}, "--weight-alpha takes a finite number of 0 to 1, not 1.1"),
        ({"weight_alpha": math.nan}, "--weight-alpha takes a finite number"),
        ({"weight_alpha": 0.7}, "--weight-alpha is of the weights of a strategy"),
        ({"weight_metric": True}, "add --weight-strategy \\(inverse or inverse_sqrt\\)"),
        ({"weight_strategy": "inverse-sqrt"}, "Did you mean 'inverse_sqrt'"),
        ({"models": "logistik"}, "There is no model 'logistik'. Did you mean 'logistic'"),
        ({"models": ""}, "no model"),
        ({"models": "vote"}, "A vote combines other models. Name some of logistic, "),
        ({"folds": 1}, "--folds takes 2 or more, not 1"),
        ({"folds": 0}, "--folds takes 2 or more: levels are calibrated out of fold"),
        ({"models": "auto,svm"}, "--models takes auto alone"),
        ({"preset": "maximal"}, "--preset takes minimal, balanced or thorough"),
        ({"models": "svm", "params": {"svn": {}}}, "hyperparameters of 'svn', which --models does"),
        ({"models": "svm", "params": {"svm": {"D": 1.0}}}, "svm has no parameter 'D'"),
        ({"top_k": 0}, "--top-k takes"),
        ({"trials": 0}, "--trials takes"),
        ({"jobs": 0}, "--jobs takes"),
        ({"seed": -1}, "--seed takes"),
        ({"timeout": -1.0}, "--timeout takes a finite number of at least 0"),
        ({"early_discard_percentile": 101.0}, "of 0 to 100"),
        ({"early_discard_threshold": math.inf}, "takes a finite number, not inf"),
        ({"decode": "best"}, "--decode takes metric, argmax or rounded_mean"),
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
        ({"training_sets": ["trian"]}, "Did you mean 'train'"),
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
    with pytest.raises(OffScale, match=r"'B3' \(row 1 of column 'label' .*label_map="):
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
    with pytest.raises(BadInput, match=r"5 and 6 of them.*--training-sets more"):
        tuned(copied)


def test_ids_that_were_corrected_count_for_training_and_test(copied):
    before = read_results(copied)
    _shuffle(copied / "features/strong/test/ids.csv")
    tuned(copied)
    after = read_results(copied)
    assert after["winner"] == before["winner"]
    assert after["tests"] != before["tests"]
    _shuffle(copied / "features/strong/train/ids.csv")
    tuned(copied)
    assert read_results(copied)["winner"] != before["winner"]


def _shuffle(path):
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *lines[7:], *lines[:7]]) + "\n")


def test_a_whole_option_is_refused_as_an_error_of_options():
    with pytest.raises(BadOption, match="--models takes names"):
        Settings(models=5)


def test_no_progress_is_a_way_to_say_that_none_is_wanted(copied):
    assert tuned(copied, replace(QUICK, models="logistic", trials=1), progress=None).winner
