"""The search: all model types in turn, the same for any number of workers, blind to the test."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from surrogates import columns, left_by, open_bench, smooth

from ordinate.errors import BadInput, BadValues, FolderLocked
from ordinate.experiment.lock import hold_lock
from ordinate.regress import hyperparameter_search, tuning
from ordinate.regress.hyperparameter_search import TimeBudget
from ordinate.regress.settings import Settings
from ordinate.regress.splits import split_randomly
from ordinate.regress.table import make_table
from ordinate.regress.tuning import tune

QUICK = {"model": "poly_ridge,kernel_ridge", "trials": 3, "folds": 3}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("found")
    return root, tune(smooth(), root, Settings(**QUICK), unit="kg")


def test_the_law_is_found(found):
    _, result = found
    test = result.tests[0].values
    assert test.metrics["rmse"].value < 0.25  # noise of 0.1, σ of 1
    assert test.metrics["r2"].value > 0.9
    assert test.unit == "kg"


def test_the_blend_wins_unless_a_model_is_better_by_more_than_chance(found):
    _, result = found
    assert [one.model_type for one in result.finalists] == ["poly_ridge", "kernel_ridge", "blend"]
    assert result.winner.model_type == "blend"


def test_a_model_that_is_better_by_more_than_chance_wins():
    from ordinate.regress.prediction_intervals import IntervalCalibration
    from ordinate.regress.selection import BlendCandidate, EvaluatedCandidate, _beats_blend

    y = np.linspace(0.0, 1.0, 200)
    noise = np.random.default_rng(0).normal(0.0, 1.0, 200)

    def against(size):
        """Compare a model of noise 1 with a blend of a little more."""
        blend = noise + np.random.default_rng(1).normal(0.0, size, 200)
        bench = SimpleNamespace(settings=Settings(), targets=y, groups=None)
        one, other = (IntervalCalibration(y, y + errors) for errors in (noise, blend))
        values = [float(np.sqrt(np.mean(errors**2))) for errors in (noise, blend)]
        return _beats_blend(
            bench,
            EvaluatedCandidate(None, values[0], one),
            BlendCandidate((), None, values[1], other),
        )

    assert against(1.0)
    assert not against(0.05)


@pytest.mark.parametrize("folders", ["ab", "aa"], ids=["apart", "in one folder"])
def test_test_targets_choose_nothing(tmp_path, folders):
    rows = split_randomly(smooth(), 0).test
    x, y = columns()
    other = y.copy()
    other[rows] = np.random.default_rng(1).permutation(1000.0 * y[rows])
    settings = Settings(**QUICK)
    tables = [make_table(x, one, names=["a", "b", "c"], target_name="y") for one in (y, other)]
    first, second = (
        tune(table, tmp_path / name, settings) for table, name in zip(tables, folders, strict=True)
    )
    for one, two in zip(first.searched, second.searched, strict=True):
        assert [trial.params for trial in one.trials] == [trial.params for trial in two.trials]
        assert [trial.value for trial in one.trials] == [trial.value for trial in two.trials]
        errors = [run.trials[0].attributes["test_rmse_denorm"] for run in (one, two)]
        assert errors[1] > 100.0 * errors[0]  # what is told of a test is that of its own targets
    assert first.run != second.run
    assert first.winner.name == second.winner.name
    assert first.blend.weights == second.blend.weights
    assert np.array_equal(first.tests[0].upper, second.tests[0].upper)
    assert first.tests[0].values.metrics["rmse"] != second.tests[0].values.metrics["rmse"]


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
    settings = Settings(model="mlp,poly_ridge,svr", folds=2, fixed=fixed)
    result = tune(odd_row(part, value), tmp_path, settings)
    assert all(one.best is not None for one in result.searched)
    assert not [note for note in result.notes if "failed" in note]


def test_a_test_row_that_a_model_cannot_answer_fails_no_trial(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.regress import model_inputs

    deep = {"mlp": {"block": "swiglu", "epochs": 2, "members": 2}}
    settings = Settings(model="mlp", folds=2, fixed=deep)
    monkeypatch.setattr(model_inputs, "REACH", 1e30)
    found, finished = hyperparameter_search.search_hyperparameters(
        open_bench(odd_row("test", 1e30), tmp_path, settings), TimeBudget(None)
    )
    assert finished
    (trial,) = found[0].trials
    assert trial.value is not None
    told = ("test_rmse", "test_rmse_denorm", "mae_denorm", "r2_score", "r2_pct")
    assert [trial.attributes[name] for name in told] == [None] * 5
    assert trial.attributes["validation_rmse_denorm"] == pytest.approx(trial.value)


def test_the_unit_of_the_target_chooses_nothing(tmp_path):
    x, y = columns()
    found = {}
    for unit in (1.0, 1e-17):
        table = make_table(x, unit * y, names=["a", "b", "c"], target_name="y")
        settings = Settings(**QUICK | {"model": "svr,poly_ridge", "trials": 1}, blend="never")
        result = found[unit] = tune(table, tmp_path / str(unit), settings)
        for one in result.searched:
            assert one.best.rmse.value == pytest.approx(min(t.value for t in one.trials))
        assert result.winner.rmse.value == min(one.rmse.value for one in result.finalists)
    model_types = [result.winner.model_type for result in found.values()]
    assert model_types == ["poly_ridge", "poly_ridge"]


@pytest.mark.parametrize("unit", [1.0, 1e-17])
def test_the_unit_of_the_target_chooses_no_trial(unit):
    trials = [SimpleNamespace(value=unit * value) for value in (0.5, 0.2, 0.2 + 1e-16, 0.3)]
    bench = SimpleNamespace(settings=Settings(model="svr", trials=4))
    found = hyperparameter_search._collect_trials(bench, "svr", SimpleNamespace(trials=trials))
    assert found.best is trials[1]


def test_a_target_that_is_constant_where_it_is_learned_is_named(tmp_path):
    x, y = columns()
    split = split_randomly(smooth(), 0)
    settings = Settings(model="poly_ridge", trials=1, folds=3)
    y[split.train] = 5.0
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    with pytest.raises(BadValues, match="The target is 5 in all 64 of the training rows"):
        tune(table, tmp_path, settings)
    y[split.known], y[split.train[0]] = 5.0, 6.0
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    with pytest.raises(BadInput, match=r"The target is 5 in all 48 of the rows of a fit"):
        tune(table, tmp_path, settings)


def test_workers_never_have_the_targets_of_rows_that_teach_nothing(tmp_path, monkeypatch):
    seen = []
    kept = tuning.WorkerPool.keep

    def spied(self, name, value):
        seen.append(value.targets.copy())
        kept(self, name, value)

    monkeypatch.setattr(tuning.WorkerPool, "keep", spied)
    table = smooth(600)
    tune(table, tmp_path, Settings(model="poly_ridge", trials=1, folds=2))
    split = split_randomly(table, 0)
    rows = [*split.test, *split.validation]
    assert seen
    assert all(np.isnan(targets[rows]).all() for targets in seen)


def test_every_complete_trial_has_the_attributes_of_its_test(found):
    _, result = found
    names = {"test_rmse", "test_rmse_denorm", "mae_denorm", "r2_score", "r2_pct"}
    training = result.tests[0].values.normalization
    for one in result.searched:
        for trial in one.trials:
            told = trial.attributes
            assert names <= set(told)
            assert told["r2_pct"] == pytest.approx(100 * told["r2_score"])
            assert told["test_rmse_denorm"] == pytest.approx(told["test_rmse"] * training.std)
            assert told["validation_rmse_denorm"] == trial.value


def test_the_same_again_makes_no_fit_and_changes_no_file(found, monkeypatch):
    root, before = found
    files = left_by(root)

    def refused(*_):
        raise AssertionError("a fit was made")

    monkeypatch.setattr(hyperparameter_search, "fit_model", refused)
    after = tune(smooth(), root, Settings(**QUICK), unit="kg")
    assert after.to_dict() == before.to_dict()
    assert left_by(root) == files


@pytest.mark.parametrize("jobs", [2])
def test_more_processes_change_nothing(found, tmp_path, jobs):
    root, _ = found
    tune(smooth(), tmp_path, Settings(**QUICK, jobs=jobs), unit="kg")
    assert left_by(tmp_path) == left_by(root)


def test_more_trials_go_on_from_those_that_are_there(tmp_path, found):
    settings = QUICK | {"trials": 1}
    tune(smooth(), tmp_path, Settings(**settings), unit="kg")
    after = tune(smooth(), tmp_path, Settings(**QUICK), unit="kg")
    assert after.to_dict() == found[1].to_dict()


def test_another_seed_is_another_search(found, tmp_path):
    other = tune(smooth(), tmp_path, Settings(**QUICK, seed=1))
    assert other.run != found[1].run
    assert other.winner.rmse.value != found[1].winner.rmse.value


def test_without_folds_the_validation_rows_decide(tmp_path):
    result = tune(smooth(), tmp_path, Settings(model="poly_ridge", trials=2, folds=0))
    assert result.winner.evaluation.summary.n == result.source.sizes["validation"]
    assert "calibrated on validation rows" in " ".join(str(result).split())


def test_a_region_beyond_a_shift_is_tested_apart_and_learned_by_nobody(tmp_path):
    table = smooth()
    settings = Settings(model="poly_ridge", trials=1, folds=2, shift="a", shift_share=0.2)
    result = tune(table, tmp_path, settings)
    inside, outside = result.tests
    assert outside.name == "shifted"
    beyond = table.column("a")[np.array(outside.rows) - 1]
    assert beyond.min() > table.column("a")[np.array(inside.rows) - 1].max()
    assert sum(result.source.sizes.values()) == len(table)
    assert set(outside.values.prediction_intervals) == set(inside.values.prediction_intervals)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["a", "b", "target"]], ids=str)
def test_a_feature_called_target_goes_before_the_target(tmp_path, names):
    x, y = columns()
    table = make_table(x, y, names=names, target_name="y")
    settings = Settings(model="poly_ridge", trials=1, folds=2, shift="target")
    outside = tune(table, tmp_path, settings).tests[1]
    column = x[:, 2] if "target" in names else y
    assert set(np.array(outside.rows) - 1) == set(np.argsort(column)[-8:])


def test_of_a_shift_only_the_parts_that_are_used_are_told(tmp_path):
    x, y = columns(600)
    groups = ["a"] * 300 + ["b"] * 280 + ["c", "d"] * 10
    table = make_table(x, y, names=["a", "b", "c"], groups=groups)
    settings = Settings(model="poly_ridge", trials=1, folds=2, shift="b")
    notes = tune(table, tmp_path, settings).source.notes
    (note,) = [note for note in notes if "Groups are of unequal size" in note]
    assert " 0 % test" not in note


def test_a_planted_leak_is_named(tmp_path):
    x, y = columns()
    split = split_randomly(smooth(), 0)
    x[split.test[0]], y[split.test[0]] = x[split.train[0]], y[split.train[0]]
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    result = tune(table, tmp_path, Settings(model="poly_ridge", trials=1, folds=2))
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
    settings = Settings(model="poly_ridge", trials=1, folds=2, shift="target")
    result = tune(table, tmp_path, settings)
    assert any("of 8 shifted rows also stand in" in note for note in result.source.notes)
    written = json.loads((tmp_path / "results.json").read_text())["leaks"]
    beyond = {one["row"] for one in written["rows"] if one["part"] == "shifted"}
    assert beyond
    assert beyond <= set(top[:4] + 1)


def test_given_parameters_are_taken_whole(tmp_path):
    params = {"degree": 2, "penalty": 0.5}
    settings = Settings(model="poly_ridge", folds=2, trials=9, fixed={"poly_ridge": params})
    result = tune(smooth(), tmp_path, settings)
    assert [trial.params for trial in result.searched[0].trials] == [params]


def test_a_blend_is_made_always_never_or_if_it_is_better(tmp_path):
    always = tune(smooth(), tmp_path / "a", Settings(**QUICK | {"trials": 1}, blend="always"))
    assert always.winner.model_type == "blend"
    never = tune(smooth(), tmp_path / "b", Settings(**QUICK | {"trials": 1}, blend="never"))
    assert never.blend is None


def test_all_trials_failed_says_why(tmp_path, monkeypatch):
    def failed(*_):
        raise BadInput("the moon is full")

    monkeypatch.setattr(hyperparameter_search, "fit_model", failed)
    with pytest.raises(BadInput, match=r"no surrogate\. poly_ridge: the moon is full"):
        tune(smooth(), tmp_path, Settings(model="poly_ridge", trials=1, folds=2))


def test_a_second_run_is_told_who_holds_the_folder(tmp_path):
    with hold_lock(tmp_path, "the first"), pytest.raises(FolderLocked, match="the first"):
        tune(smooth(), tmp_path, Settings(model="poly_ridge", trials=1))


def test_results_are_json_without_nan(found):
    root, _ = found
    for name in ("results.json", "trials.json", "test_predictions.json"):
        json.loads((root / name).read_text(), parse_constant=pytest.fail)


def test_what_is_to_be_known_of_a_model_stands_in_the_report(tmp_path):
    x, y = columns(200)
    y[:3] -= 30.0  # rows that nobody can predict
    table = make_table(x, y, target_name="y")
    result = tune(table, tmp_path, Settings(model="gp", trials=1, folds=2))
    (note,) = result.notes
    assert note.startswith("gp: 2 of 180 training rows are left out")


@pytest.mark.parametrize("n", [20])
def test_twenty_rows_and_one_feature_give_a_sound_result(tmp_path, n):
    x, y = columns(n)
    table = make_table(x[:, :1], y, names=["a"], target_name="y")
    result = tune(table, tmp_path, Settings(model="poly_ridge,lightgbm", trials=1, folds=2))
    assert np.isfinite(result.winner.rmse.value)
    assert any("20 rows" in note for note in result.source.notes)


def test_a_network_is_searched_and_its_members_make_a_spread(tmp_path):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    settings = Settings(model="mlp", trials=1, folds=2, epochs=3)
    result = tune(smooth(), tmp_path, settings)
    assert result.winner.params["epochs"] == 3
    widths = result.tests[0].upper - result.tests[0].lower
    assert np.ptp(widths) > 0.0
    assert result.searched[0].trials[0].attributes["curves"]


def test_progress_tells_parts_epochs_and_errors_in_the_unit(tmp_path, monkeypatch):
    from ordinate.regress import fitting

    pytest.importorskip("torch")
    monkeypatch.setattr(fitting, "PROGRESS_SECONDS", 0.0)
    told = []
    settings = Settings(model="mlp,poly_ridge", trials=1, folds=2, epochs=3)
    tune(smooth(), tmp_path, settings, unit="kg", tell=lambda *word: told.append(word))
    shares = [share for stage, share, _ in told if stage == "searching"]
    assert shares == sorted(shares)
    assert {0.0, 0.25, 0.5, 1.0} <= set(shares)  # each of two trials has two parts
    words = [beside for _, _, beside in told]
    assert any(re.fullmatch(r"mlp, epoch 2 of 3: RMSE [0-9.]+ kg", word) for word in words)
    assert any(re.fullmatch(r"best RMSE [0-9.]+ kg", word) for word in words)
    assert {stage for stage, _, _ in told} == {"searching", "saving"}
    assert any(stage == "saving" and "epoch" in beside for stage, _, beside in told)


@pytest.mark.parametrize("model_type", ["lightgbm", "hist_boosting", "kernel_ridge"])
def test_without_folds_the_model_that_was_judged_is_the_one_that_is_saved(tmp_path, model_type):
    from ordinate.regress.trained_model import load_surrogate

    table = smooth(120)
    result = tune(table, tmp_path, Settings(model=model_type, trials=1, folds=0))
    saved = load_surrogate(tmp_path, result.winner.name)
    rows = split_randomly(table, 0).validation
    judged = np.sort(saved.calibration.predictions)
    assert judged == pytest.approx(np.sort(saved.predict(table.features[rows]).values), abs=1e-12)


def test_one_validation_row_is_too_few_for_a_blend(tmp_path):
    settings = {"model": "poly_ridge,kernel_ridge", "trials": 1, "folds": 0}
    assert tune(smooth(12), tmp_path, Settings(**settings)).blend is None
    with pytest.raises(BadInput, match="two validation rows or more"):
        tune(smooth(12), tmp_path, Settings(**settings, blend="always"))


def test_a_library_that_is_there_but_broken_costs_its_kinds_only(tmp_path, monkeypatch):
    from ordinate.models.regressors.boosting import LightGBM

    def broken(*_):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(LightGBM, "_train_booster", broken)
    result = tune(smooth(), tmp_path, Settings(model="lightgbm,poly_ridge", trials=1, folds=2))
    assert result.winner.model_type == "poly_ridge"
    (note,) = result.notes
    assert "lightgbm is installed, but cannot be loaded: libgomp.so.1" in note
