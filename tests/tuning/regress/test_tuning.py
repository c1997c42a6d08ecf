"""Tuning on tables: errors in the unit of the target, blends, shifts, leaks, and odd rows."""

import json
import re

import numpy as np
import pytest
from regression_tables import columns, open_task, smooth

from ordinate.errors import BadInput, BadValues
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import split_randomly
from ordinate.tuning.regress.table import make_table
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.fits import FitOutputs
from ordinate.tuning.search.task import Candidate, Ensemble

QUICK = {"models": "poly_ridge,kernel_ridge", "trials": 3, "folds": 3}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("found")
    return root, tune_table(smooth(), root, Settings(**QUICK), unit="kg")


def test_the_law_is_found(found):
    _, result = found
    test = result.tests[0].evaluation
    assert test.metrics["rmse"].value < 0.25  # noise of 0.1, σ of 1
    assert test.metrics["r2"].value > 0.9
    assert test.unit == "kg"


def test_the_blend_wins_unless_a_model_is_better_by_more_than_chance(found):
    _, result = found
    assert [one.model_type for one in result.finalists] == ["poly_ridge", "kernel_ridge", "blend"]
    assert result.winner.model_type == "blend"


def test_a_model_that_is_better_by_more_than_chance_wins(tmp_path):
    task = open_task(smooth(), tmp_path, Settings())
    n = len(task.held_out)
    noise, more = np.random.default_rng(0).normal(0.0, 1.0, (2, n))

    def select(size):
        """Return who wins: a model of noise 1, or a blend of a little more."""
        candidate = Candidate("", "svr", {})
        one, other = (
            task.evaluate_candidate(candidate, FitOutputs(task.targets + errors))
            for errors in (noise, noise + size * more)
        )
        facts = {"name": "blend", "members": (one, one), "rule": None, "outputs": other.outputs}
        blend = Ensemble(**facts, value=other.value, evaluation=other.evaluation)
        return task.select_winner([one], blend) is one

    assert select(2.0)
    assert not select(0.05)


FURTHER_ERRORS = ("mae", "r2", "relative_accuracy")


def test_trials_have_further_errors_beside_their_rmse(found):
    _, result = found
    training = result.tests[0].evaluation.normalization
    for study in result.studies:
        for trial in study.trials:
            assert trial.attributes.keys() == {*FURTHER_ERRORS, "baseline_rmse", "normalized_rmse"}
            assert trial.attributes["normalized_rmse"] * training.std == pytest.approx(trial.value)
        metrics = study.best.evaluation.metrics
        best = min(study.trials, key=lambda trial: trial.value)
        assert best.value == metrics["rmse"].value == study.best.value
        for name in FURTHER_ERRORS:
            assert best.attributes[name] == pytest.approx(metrics[name].value)
        baseline = study.best.evaluation.baselines[0]
        assert best.attributes["baseline_rmse"] == pytest.approx(baseline.rmse)


def odd_row(part, value):
    """Return the table of the law with one odd value in a row of a part."""
    x, y = columns(300)
    x[getattr(split_randomly(smooth(300), 0), part)[0], 0] = value
    return make_table(x, y, names=["a", "b", "c"], target_name="y")


@pytest.mark.parametrize("value", [1e20, -1e99])
@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_one_odd_value_ends_no_search(tmp_path, part, value):
    pytest.importorskip("torch")
    deep = {"block": "swiglu", "depth": 3, "epochs": 2, "members": 2}
    fixed = {"mlp": deep, "poly_ridge": {"degree": 6}, "svr": {}}
    settings = Settings(models="mlp,poly_ridge,svr", folds=2, params=fixed)
    result = tune_table(odd_row(part, value), tmp_path, settings)
    assert all(one.best is not None for one in result.studies)
    assert not [note for note in result.notes if "failed" in note]


def test_the_unit_of_the_target_chooses_nothing(tmp_path):
    x, y = columns()
    found = {}
    for unit in (1.0, 1e-17):
        table = make_table(x, unit * y, names=["a", "b", "c"], target_name="y")
        settings = Settings(**QUICK | {"models": "svr,poly_ridge", "trials": 1}, blend="never")
        result = found[unit] = tune_table(table, tmp_path / str(unit), settings)
        for one in result.studies:
            assert one.best.value == pytest.approx(min(t.value for t in one.trials))
        assert result.winner.value == min(one.value for one in result.finalists)
    model_types = [result.winner.model_type for result in found.values()]
    assert model_types == ["poly_ridge", "poly_ridge"]


def test_a_target_that_is_constant_where_it_is_learned_is_named(tmp_path):
    x, y = columns()
    split = split_randomly(smooth(), 0)
    settings = Settings(models="poly_ridge", trials=1, folds=3)
    y[split.train] = 5.0
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    with pytest.raises(BadValues, match="The target is 5 in all 64 of the training rows"):
        tune_table(table, tmp_path, settings)
    y[split.known], y[split.train[0]] = 5.0, 6.0
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    with pytest.raises(BadInput, match=r"The target is 5 in all 48 of the rows of a fit"):
        tune_table(table, tmp_path, settings)


def test_workers_never_have_the_targets_of_rows_that_teach_nothing(tmp_path, monkeypatch):
    seen = []
    keep = WorkerPool.keep

    def spied(self, name, value):
        seen.append(value.targets.copy())
        keep(self, name, value)

    monkeypatch.setattr(WorkerPool, "keep", spied)
    table = smooth(600)
    tune_table(table, tmp_path, Settings(models="poly_ridge", trials=1, folds=2))
    split = split_randomly(table, 0)
    rows = [*split.test, *split.validation]
    assert seen
    assert all(np.isnan(targets[rows]).all() for targets in seen)


def test_without_folds_the_validation_rows_decide(tmp_path):
    result = tune_table(smooth(), tmp_path, Settings(models="poly_ridge", trials=2, folds=0))
    assert result.winner.evaluation.summary.n == result.source.sizes["validation"]
    assert "calibrated on validation rows" in " ".join(str(result).split())


def test_a_region_beyond_a_shift_is_tested_apart_and_learned_by_nobody(tmp_path):
    table = smooth()
    settings = Settings(models="poly_ridge", trials=1, folds=2, shift="a", shift_share=0.2)
    result = tune_table(table, tmp_path, settings)
    inside, outside = result.tests
    assert outside.name == "shifted"
    beyond = table.column("a")[np.array(outside.columns["rows"]) - 1]
    assert beyond.min() > table.column("a")[np.array(inside.columns["rows"]) - 1].max()
    assert sum(result.source.sizes.values()) == len(table)
    assert set(outside.evaluation.prediction_intervals) == set(
        inside.evaluation.prediction_intervals
    )


@pytest.mark.parametrize("names", [["a", "b", "c"], ["a", "b", "target"]], ids=str)
def test_a_feature_called_target_goes_before_the_target(tmp_path, names):
    x, y = columns()
    table = make_table(x, y, names=names, target_name="y")
    settings = Settings(models="poly_ridge", trials=1, folds=2, shift="target")
    outside = tune_table(table, tmp_path, settings).tests[1]
    column = x[:, 2] if "target" in names else y
    assert set(np.array(outside.columns["rows"]) - 1) == set(np.argsort(column)[-8:])


def test_of_a_shift_only_the_parts_that_are_used_are_told(tmp_path):
    x, y = columns(600)
    groups = ["a"] * 300 + ["b"] * 280 + ["c", "d"] * 10
    table = make_table(x, y, names=["a", "b", "c"], groups=groups)
    settings = Settings(models="poly_ridge", trials=1, folds=2, shift="b")
    notes = tune_table(table, tmp_path, settings).source.notes
    (note,) = [note for note in notes if "Groups are of unequal size" in note]
    assert " 0 % test" not in note


def test_a_planted_leak_is_named(tmp_path):
    x, y = columns()
    split = split_randomly(smooth(), 0)
    x[split.test[0]], y[split.test[0]] = x[split.train[0]], y[split.train[0]]
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    result = tune_table(table, tmp_path, Settings(models="poly_ridge", trials=1, folds=2))
    assert any(
        "1 of 8 test rows also stand in training" in note and str(split.test[0] + 1) in note
        for note in result.source.notes
    )


def test_a_leak_into_the_region_beyond_a_shift_is_named_and_written(tmp_path):
    x, y = columns()
    order = np.argsort(y)
    top = order[-8:]
    x[top[:4]] = x[order[:4]]  # some of which are learned from
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    settings = Settings(models="poly_ridge", trials=1, folds=2, shift="target")
    result = tune_table(table, tmp_path, settings)
    assert any("of 8 shifted rows also stand in" in note for note in result.source.notes)
    written = json.loads((tmp_path / "results/results.json").read_text())["data"]["leaks"]
    beyond = {one["row"] for one in written["rows"] if one["part"] == "shifted"}
    assert beyond
    assert beyond <= set(top[:4] + 1)


def test_a_blend_is_made_always_never_or_if_it_is_better(tmp_path):
    always = tune_table(smooth(), tmp_path / "a", Settings(**QUICK | {"trials": 1}, blend="always"))
    assert always.winner.model_type == "blend"
    never = tune_table(smooth(), tmp_path / "b", Settings(**QUICK | {"trials": 1}, blend="never"))
    assert never.ensemble is None


def test_what_is_to_be_known_of_a_model_stands_in_the_report(tmp_path):
    x, y = columns(200)
    y[:3] -= 30.0  # rows that nobody can predict
    table = make_table(x, y, target_name="y")
    result = tune_table(table, tmp_path, Settings(models="gp", trials=1, folds=2))
    (note,) = result.notes
    assert note.startswith("gp: 2 of 180 training rows are left out")


@pytest.mark.parametrize("n", [20])
def test_twenty_rows_and_one_feature_give_a_sound_result(tmp_path, n):
    x, y = columns(n)
    table = make_table(x[:, :1], y, names=["a"], target_name="y")
    result = tune_table(table, tmp_path, Settings(models="poly_ridge,lightgbm", trials=1, folds=2))
    assert np.isfinite(result.winner.value)
    assert any("20 rows" in note for note in result.source.notes)


def test_a_network_is_searched_and_its_members_make_a_spread(tmp_path):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    settings = Settings(models="mlp", trials=1, folds=2, epochs=3)
    result = tune_table(smooth(), tmp_path, settings)
    assert result.winner.params["epochs"] == 3
    tested = result.tests[0].columns
    widths = np.subtract(tested["upper"], tested["lower"])
    assert np.ptp(widths) > 0.0
    assert result.studies[0].trials[0].attributes["curves"]


def test_progress_tells_parts_epochs_and_errors_in_the_unit(tmp_path, monkeypatch):
    from ordinate.tuning.regress import fitting

    pytest.importorskip("torch")
    monkeypatch.setattr(fitting, "PROGRESS_SECONDS", 0.0)
    told = []
    settings = Settings(models="mlp,poly_ridge", trials=1, folds=2, epochs=3)
    tune_table(smooth(), tmp_path, settings, unit="kg", progress=lambda *word: told.append(word))
    shares = [share for stage, share, _ in told if stage == "searching"]
    assert shares == sorted(shares)
    assert {0.0, 0.25, 0.5, 1.0} <= set(shares)  # each of two trials has two parts
    words = [beside for _, _, beside in told]
    assert any(re.fullmatch(r"mlp, epoch 2 of 3: RMSE [0-9.]+ kg", word) for word in words)
    assert any(re.fullmatch(r"best RMSE [0-9.]+ kg", word) for word in words)
    assert {stage for stage, _, _ in told} == {"columns", "searching", "saving"}
    assert any(stage == "saving" and "epoch" in beside for stage, _, beside in told)


@pytest.mark.parametrize("model_type", ["lightgbm", "hist_boosting", "kernel_ridge"])
def test_without_folds_the_model_that_was_judged_is_the_one_that_is_saved(tmp_path, model_type):
    from ordinate.tuning.regress.trained_model import load_regression_model

    table = smooth(120)
    result = tune_table(table, tmp_path, Settings(models=model_type, trials=1, folds=0))
    saved = load_regression_model(tmp_path, result.winner.name)
    rows = split_randomly(table, 0).validation
    judged = np.sort(saved.calibration.predictions)
    assert judged == pytest.approx(np.sort(saved.predict(table.features[rows]).values), abs=1e-12)


def test_one_validation_row_is_too_few_for_a_blend(tmp_path):
    settings = {"models": "poly_ridge,kernel_ridge", "trials": 1, "folds": 0}
    assert tune_table(smooth(12), tmp_path, Settings(**settings)).ensemble is None
    with pytest.raises(BadInput, match="two validation rows or more"):
        tune_table(smooth(12), tmp_path, Settings(**settings, blend="always"))


def test_a_library_that_is_there_but_broken_costs_its_kinds_only(tmp_path, monkeypatch):
    from ordinate.tuning.models.regressors.boosting import LightGBM

    def broken(*_):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(LightGBM, "_train_booster", broken)
    result = tune_table(
        smooth(), tmp_path, Settings(models="lightgbm,poly_ridge", trials=1, folds=2)
    )
    assert result.winner.model_type == "poly_ridge"
    (note,) = result.notes
    assert "lightgbm is installed, but cannot be loaded: libgomp.so.1" in note
