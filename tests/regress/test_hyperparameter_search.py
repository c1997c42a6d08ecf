"""The search: every kind in turn, the same for any number of workers, and blind to the test."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from surrogates import columns, left_by, smooth

from ordinate.errors import BadInput, BadOption, BadValues, FolderLocked
from ordinate.experiment.lock import hold_lock
from ordinate.regress import hyperparameter_search, tuning
from ordinate.regress.bench import Candidate
from ordinate.regress.hyperparameter_search import TimeBudget
from ordinate.regress.settings import PRESETS, Settings
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
    assert [one.kind for one in result.finalists] == ["poly_ridge", "kernel_ridge", "blend"]
    assert result.winner.kind == "blend"


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
        _bench(odd_row("test", 1e30), tmp_path, settings), TimeBudget(None)
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
    kinds = [result.winner.kind for result in found.values()]
    assert kinds == ["poly_ridge", "poly_ridge"]


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
    assert result.winner.evaluation.table.n == result.source.sizes["validation"]
    assert "calibrated on validation rows" in " ".join(str(result).split())


def apart(y, root):
    """Search a table that is long enough for validation rows that are apart."""
    x = columns(600)[0]
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    fixed = {"poly_ridge": {"degree": 3}, "kernel_ridge": {}}
    settings = Settings(model="poly_ridge,kernel_ridge", folds=2, fixed=fixed)
    return table, tune(table, root, settings)


def test_enough_validation_rows_are_for_the_intervals_alone(tmp_path):
    y = columns(600)[1]
    table, first = apart(y, tmp_path / "a")
    assert first.source.apart
    assert first.winner.evaluation.table.n == first.source.sizes["training"]
    rows = split_randomly(table, 0).validation
    other = y.copy()
    other[rows] += np.random.default_rng(0).normal(0.0, 50.0, len(rows))
    _, second = apart(other, tmp_path / "b")
    name, again = first.winner.name, second.winner.name
    one, two = first.tests[0], second.tests[0]
    assert np.array_equal(one.predictions[name], two.predictions[again])
    assert (two.upper - two.lower > 10.0 * (one.upper - one.lower)).all()


def test_intervals_of_rows_apart_are_those_of_the_saved_models(tmp_path):
    from ordinate.regress.trained_model import load_surrogate

    table, result = apart(columns(600)[1], tmp_path)
    rows = split_randomly(table, 0).validation
    for one in result.finalists:
        surrogate = load_surrogate(tmp_path, one.name)
        answers = surrogate.predict(table.features[rows])
        assert np.array_equal(surrogate.calibration.targets, table.target[rows])
        assert np.allclose(surrogate.calibration.predictions, answers.values, rtol=1e-12)
    held = np.mean((answers.lower <= table.target[rows]) & (table.target[rows] <= answers.upper))
    assert 0.9 <= held <= 0.92  # of 60 rows that calibrate, 55 are the 90 % of 61


def test_groups_stay_whole_in_folds_and_rows_for_stopping(tmp_path):
    table = smooth(groups=12)
    bench = _bench(table, tmp_path, Settings(model="lightgbm", trials=1, folds=3))
    for part in bench.parts:
        assert not set(table.groups[part.train]) & set(table.groups[part.validation])
        rows, stop = bench._split_early_stopping(part.train, 0)
        assert len(stop)
        assert not set(table.groups[rows]) & set(table.groups[stop])


@pytest.mark.parametrize("sizes", [[420, *[20] * 9], [200] * 3, [85] * 6 + [1] * 90], ids=str)
def test_a_large_group_is_learned_from_and_stops_no_fit(tmp_path, sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    table = make_table(*columns(600), groups=groups)
    bench = _bench(table, tmp_path, Settings(model="lightgbm", trials=1, folds=3))
    for number in range(20):
        rows, stop = bench._split_early_stopping(np.arange(600), number)
        assert len(rows) + len(stop) == 600
        assert 15 <= len(stop) <= max(105, min(sizes))


def test_rows_that_all_differ_stop_fits_as_ever(tmp_path):
    bench = _bench(smooth(), tmp_path, Settings(model="lightgbm", trials=1, folds=3, seed=4))
    rows = bench.parts[0].train
    chosen = np.random.default_rng([4, 7]).permutation(len(rows))[: round(0.1 * len(rows))]
    assert set(bench._split_early_stopping(rows, 7)[1]) == set(rows[chosen])


def test_groups_are_the_units_of_folds_and_of_intervals(tmp_path):
    result = tune(smooth(groups=12), tmp_path, Settings(model="poly_ridge", trials=1, folds=3))
    assert result.source.groups == 12
    assert result.winner.evaluation.groups == 12 - result.tests[0].values.groups
    assert result.winner.rmse.method == "t"


def test_validation_rows_are_apart_if_their_groups_are_enough(tmp_path):
    settings = Settings(model="poly_ridge", trials=1, folds=2)
    few = tune(smooth(600, groups=30), tmp_path / "few", settings)
    assert few.source.sizes["validation"] >= 50
    assert not few.source.apart
    told = " ".join(str(few).split())
    assert "of too few groups to keep some apart" in told
    assert "take them as approximate" in told
    many = tune(smooth(600, groups=600), tmp_path / "many", settings)
    assert many.source.apart
    told = " ".join(str(many).split())
    assert "they hold what they promise" not in told
    assert "approximate, for rows of one group are alike" in told


def test_rows_for_stopping_are_never_held_out(tmp_path):
    bench = _bench(smooth(), tmp_path, Settings(model="lightgbm", trials=1, folds=4))
    for task, part in zip(bench.tasks(_candidate()), bench.parts, strict=True):
        learned = {*task.rows, *task.stop}
        assert len(learned) == len(task.rows) + len(task.stop)
        assert not learned & {*part.validation, *part.test}


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
    assert " 0% test" not in note


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
    assert always.winner.kind == "blend"
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


# --- a lattice -----------------------------------------------------------------------------------


def two_sources(gap: float):
    """Rows on a lattice whose targets are lower by a gap, and rows between."""
    rng = np.random.default_rng(0)
    on = rng.integers(0, 4, (150, 2)) / 2.0
    between = rng.uniform(0.0, 1.5, (150, 2))
    x = np.vstack([on, between])
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] + rng.normal(0.0, 0.02, 300)
    y[:150] -= gap
    return make_table(x, y, names=["a", "b"], target_name="y")


def test_models_are_told_of_a_lattice_on_which_targets_differ(tmp_path):
    settings = {"model": "kernel_ridge", "trials": 1, "folds": 2}
    told = tune(two_sources(1.0), tmp_path / "a", Settings(**settings))
    untold = tune(two_sources(1.0), tmp_path / "b", Settings(**settings, lattice="never"))
    assert told.winner.rmse.value < 0.5 * untold.winner.rmse.value
    assert "49% of the rows lie on a lattice" in told.notes[0]
    gap = float(re.search(r"lower by ([0-9.]+)", told.notes[0])[1])
    assert abs(gap - 1.0) < 0.15
    assert not untold.notes


def test_what_chance_gains_is_no_reason_to_tell_of_a_lattice(tmp_path, monkeypatch):
    from ordinate.regress import lattice
    from ordinate.regress.lattice import _improves_significantly

    def gains(signs, groups=None):
        """Judge errors of 4 that are 4 + 1 or 4 - 1 for a model that is not told."""
        return _improves_significantly(
            SimpleNamespace(groups=groups), 4.0 + signs, np.full(len(signs), 4.0)
        )

    signs = np.where(np.arange(400) % 2 == 0, 1.0, -1.0)
    signs[1] = 1.0  # told is better, by 2 in all, and the standard error of that is 20
    assert not gains(signs)
    signs[:101] = 1.0
    assert gains(signs)
    # in two groups, one of which gains what the other loses, that is chance again
    assert not gains(np.sort(signs), np.repeat(["a", "b"], 200))
    settings = Settings(model="svr", folds=2)
    assert lattice.detect_lattice(_bench(two_sources(1.0), tmp_path / "a", settings)).used
    monkeypatch.setattr(lattice, "_improves_significantly", lambda *_: False)
    found = lattice.detect_lattice(_bench(two_sources(1.0), tmp_path / "b", settings))
    assert found.told < found.untold
    assert not found.used
    assert "not told: the gain is no more than its standard error" in found.note("kg")


def test_a_lattice_that_there_was_no_time_to_judge_is_judged_by_the_next_run(tmp_path):
    settings = {"model": "kernel_ridge", "trials": 1, "folds": 2}
    whole = tune(two_sources(1.0), tmp_path / "whole", Settings(**settings))
    root = tmp_path / "cut"
    cut = tune(two_sources(1.0), root, Settings(**settings, timeout=0.0))
    untold = tune(two_sources(1.0), tmp_path / "untold", Settings(**settings, lattice="never"))
    assert "no time to look whether that matters, so models are not told" in cut.notes[0]
    assert cut.winner.name == untold.winner.name
    again = tune(two_sources(1.0), root, Settings(**settings))
    assert again.to_dict() == whole.to_dict()
    assert again.winner.name != cut.winner.name
    hasty = tune(two_sources(1.0), root, Settings(**settings, timeout=0.0))
    assert hasty.winner.name == whole.winner.name  # what was judged is kept
    assert hasty.notes == whole.notes


def test_a_kept_judgement_that_is_damaged_is_made_again(tmp_path):
    from ordinate.regress.lattice import detect_lattice

    bench = _bench(two_sources(1.0), tmp_path, Settings(model="svr", folds=2))
    found = detect_lattice(bench)
    (path,) = (tmp_path / "lattices").iterdir()
    whole = path.read_bytes()
    for damaged in (b"{", b"[]", b"{}", whole.replace(b"true", b'"yes"')):
        path.write_bytes(damaged)
        assert detect_lattice(bench) == found
        assert path.read_bytes() == whole


def test_predictions_say_that_a_lattice_is_used(tmp_path):
    from ordinate.regress.trained_model import load_surrogate

    settings = Settings(model="kernel_ridge", trials=1, folds=2)
    tune(two_sources(1.0), tmp_path / "a", settings)
    tune(smooth(), tmp_path / "b", settings)
    new = [[0.5, 1.0], [0.123, 0.456], [1.0, 1.0]]
    (note,) = load_surrogate(tmp_path / "a").predict(new).notes
    assert note.startswith("2 of 3 rows lie on the lattice of the training rows")
    assert not load_surrogate(tmp_path / "b").predict([[0.0, 0.0, 0.0]]).notes


def test_nothing_is_told_where_there_is_no_lattice(tmp_path):
    result = tune(smooth(), tmp_path, Settings(model="poly_ridge", trials=1, folds=2))
    assert not result.notes


def test_what_is_to_be_known_of_a_model_stands_in_the_report(tmp_path):
    x, y = columns(200)
    y[:3] -= 30.0  # rows that nobody can predict
    table = make_table(x, y, target_name="y")
    result = tune(table, tmp_path, Settings(model="gp", trials=1, folds=2))
    (note,) = result.notes
    assert note.startswith("gp: 2 of 180 training rows are left out")


# --- time ----------------------------------------------------------------------------------------


class _Time:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_a_timeout_leaves_every_kind_its_defaults_first(tmp_path, monkeypatch):
    order = []
    make = hyperparameter_search._run_batch

    def logged(bench, kind, batch, progress, end):
        order.append((kind, [one.number for one in batch.pending]))
        make(bench, kind, batch, progress, end)

    monkeypatch.setattr(hyperparameter_search, "_run_batch", logged)
    tune(smooth(), tmp_path, Settings(**QUICK | {"trials": 6}))
    assert order[:2] == [("poly_ridge", [0]), ("kernel_ridge", [0])]
    assert order[2:] == [
        ("poly_ridge", [1, 2, 3]),
        ("kernel_ridge", [1, 2, 3]),
        ("poly_ridge", [4, 5]),
        ("kernel_ridge", [4, 5]),
    ]


def test_no_time_at_all_leaves_one_model_and_says_so(tmp_path):
    result = tune(smooth(), tmp_path, Settings(**QUICK, timeout=0.0))
    assert [len(one.trials) for one in result.searched] == [1, 0]
    assert any("There was no time for kernel_ridge" in note for note in result.notes)
    assert any("The timeout ended the search" in note for note in result.notes)


def test_a_clock_affords_what_there_is_time_for(monkeypatch):
    time = _Time()
    monkeypatch.setattr(hyperparameter_search, "time", time)
    clock = TimeBudget(100.0, parts=5, jobs=1)
    assert clock.count_affordable_trials("slow", 4) == 1  # nobody knows how long it takes
    clock.note("slow", 20.0)
    time.now = 20.0
    assert (
        clock.count_affordable_trials("slow", 4) == 2
    )  # 80 seconds less 8 for the last fit, with caution
    time.now = 90.0
    assert clock.count_affordable_trials("slow", 4) == 0
    assert TimeBudget(None, parts=5, jobs=1).count_affordable_trials("slow", 4) == 4


@pytest.mark.parametrize(("parts", "last"), [(1, 30.0), (2, 120.0), (5, 11.71875)])
def test_the_time_of_a_last_fit_is_that_of_costs_which_grow_as_cubes(monkeypatch, parts, last):
    """Without folds it is the fit that was judged; with 5, on five rows instead of four."""
    monkeypatch.setattr(hyperparameter_search, "time", _Time())
    clock = TimeBudget(1000.0, parts=parts)
    clock.note("gp", 30.0)
    assert clock.end == pytest.approx(1000.0 - last)


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "lightgmb"}, "Did you mean 'lightgbm'"),
        ({"model": "auto,svr"}, "auto alone"),
        ({"preset": "huge"}, "--preset takes minimal, balanced or thorough"),
        ({"trials": 0}, "--trials takes an integer of at least 1"),
        ({"folds": 1}, "--folds takes 2 or more, or 0"),
        ({"jobs": 0}, "--jobs takes"),
        ({"timeout": -1.0}, "--timeout takes a finite number of at least 0"),
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"blend": "maybe"}, "--blend takes auto, always or never"),
        ({"lattice": "maybe"}, "--lattice takes"),
        ({"shift_share": 0.9}, "--shift-share takes a finite number of 0 to 0.5"),
        ({"model": "svr", "blend": "always"}, "two kinds of models or more"),
        ({"model": "svr", "fixed": {"gp": {}}}, "parameters of gp"),
    ],
)
def test_settings_are_checked_before_any_work(wrong, said):
    with pytest.raises(BadOption, match=said):
        Settings(**wrong)


def test_presets_can_be_said_otherwise():
    assert Settings(preset="minimal").folds == PRESETS["minimal"].folds
    assert Settings(preset="minimal", folds=7).folds == 7


def test_auto_does_without_networks_where_torch_is_missing(monkeypatch, tmp_path):
    from ordinate.models import regressors

    monkeypatch.setattr(regressors, "list_available_types", lambda: ("poly_ridge", "svr"))
    asked = Settings(preset="minimal", folds=2)
    assert asked.kinds == ("poly_ridge", "svr")
    result = tune(smooth(40), tmp_path, asked)
    assert any("Not installed, so not tried: hist_boosting" in note for note in result.notes)


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


@pytest.mark.parametrize("kind", ["lightgbm", "hist_boosting", "kernel_ridge"])
def test_without_folds_the_model_that_was_judged_is_the_one_that_is_saved(tmp_path, kind):
    from ordinate.regress.trained_model import load_surrogate

    table = smooth(120)
    result = tune(table, tmp_path, Settings(model=kind, trials=1, folds=0))
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
    assert result.winner.kind == "poly_ridge"
    (note,) = result.notes
    assert "lightgbm is installed, but cannot be loaded: libgomp.so.1" in note


def test_no_fit_begins_when_its_time_is_over(tmp_path, monkeypatch):
    from dataclasses import replace

    from ordinate.regress import fitting

    bench = _bench(smooth(), tmp_path, Settings(model="lightgbm,poly_ridge", folds=2))
    over = [replace(bench.tasks(Candidate(kind, {}))[0], end=-1.0) for kind in bench.settings.kinds]
    monkeypatch.setattr(fitting, "_train_model", None)  # nobody comes so far
    found = bench.workers.attempt(fitting.fit_model, over)
    assert [type(one) for one in found] == [fitting.OutOfTime] * 2


def test_a_fit_that_runs_ends_with_its_time_unless_it_is_one_step(tmp_path, monkeypatch):
    from dataclasses import replace

    from ordinate.regress import fitting

    bench = _bench(smooth(), tmp_path, Settings(model="lightgbm,poly_ridge", folds=2))
    tasks = [replace(bench.tasks(Candidate(kind, {}))[0], end=1.0) for kind in bench.settings.kinds]
    learn, time = fitting._train_model, _Time()
    monkeypatch.setattr(fitting, "time", time)

    def late(*given):
        time.now = 2.0
        learn(*given)

    monkeypatch.setattr(fitting, "_train_model", late)
    found = []
    for task in tasks:
        time.now = 0.0
        found += bench.workers.attempt(fitting.fit_model, [task])
    assert isinstance(found[0], fitting.OutOfTime)
    assert len(found[1].predictions[0])


def test_a_trial_without_time_is_left_for_the_next_run(tmp_path, monkeypatch):
    settings = {"model": "poly_ridge,lightgbm", "trials": 2, "folds": 2}
    whole = tune(smooth(), tmp_path / "whole", Settings(**settings))
    with monkeypatch.context() as patch:
        patch.setattr(TimeBudget, "end", -1.0)
        cut = tune(smooth(), tmp_path / "cut", Settings(**settings, timeout=1e6))
    assert [len(one.trials) for one in cut.searched] == [1, 0]
    assert cut.notes == (tuning.UNFINISHED_NOTE, "There was no time for lightgbm.")
    again = tune(smooth(), tmp_path / "cut", Settings(**settings))
    assert again.to_dict() == whole.to_dict()


class Killed(BaseException):
    """Ends a run as a kill would."""


def test_a_network_that_was_killed_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.models.networks.trainer import Trainer

    epochs, train = [], Trainer.train_epoch

    def counted(self, part):
        if len(epochs) == 35:
            raise Killed
        epochs.append(self.epoch)
        return train(self, part)

    settings = Settings(model="mlp", trials=1, folds=2, epochs=25)
    whole = tune(smooth(), tmp_path / "whole", settings)
    monkeypatch.setattr(Trainer, "train_epoch", counted)
    root = tmp_path / "killed"
    with pytest.raises(Killed):
        tune(smooth(), root, settings)
    assert len(list((root / "checkpoints").iterdir())) == 2  # of the first part, which is done, too
    epochs[:] = [-1] * 36  # no more kills
    again = tune(smooth(), root, settings)
    assert epochs[36:][:3] == [10, 11, 12]  # of the second part; the first is not trained again
    assert len(epochs[36:]) == 15 + 25
    assert left_by(root) == left_by(tmp_path / "whole")
    assert again.to_dict() == whole.to_dict()
    assert not (root / "checkpoints").exists()


def test_a_checkpoint_that_is_of_no_use_is_made_again(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ordinate.models.networks.trainer import Trainer

    settings, write = Settings(model="mlp", trials=1, folds=2, epochs=2), Trainer._write
    whole = tune(smooth(), tmp_path / "whole", settings)

    def killed(self, path):
        write(self, path)
        path.write_bytes(b"damaged")
        raise Killed

    root = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_write", killed)
        with pytest.raises(Killed):
            tune(smooth(), root, settings)
    assert tune(smooth(), root, settings).to_dict() == whole.to_dict()


# --- parts ---------------------------------------------------------------------------------------


def _candidate():
    return Candidate("lightgbm", {})


def _bench(table, root, settings):
    from ordinate.experiment.workers import WorkerPool
    from ordinate.regress.bench import Bench
    from ordinate.regress.splits import split_table

    return Bench(root, table, split_table(table, 0), settings, WorkerPool(1))
