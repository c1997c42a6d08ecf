"""The task: which rows are learned from, held out, stopped by and kept apart."""

import numpy as np
import pytest
from regression_tables import columns, open_task, smooth

from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import split_randomly
from ordinate.tuning.regress.table import make_table
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.task import Candidate


def apart(y, root):
    """Search a table that is long enough for validation rows that are apart."""
    x = columns(600)[0]
    table = make_table(x, y, names=["a", "b", "c"], target_name="y")
    fixed = {"poly_ridge": {"degree": 3}, "kernel_ridge": {}}
    settings = Settings(models="poly_ridge,kernel_ridge", folds=2, params=fixed)
    return table, tune_table(table, root, settings)


def test_enough_validation_rows_are_for_the_intervals_alone(tmp_path):
    y = columns(600)[1]
    table, first = apart(y, tmp_path / "a")
    assert first.source.apart
    assert first.winner.evaluation.summary.n == first.source.sizes["training"]
    rows = split_randomly(table, 0).validation
    other = y.copy()
    other[rows] += np.random.default_rng(0).normal(0.0, 50.0, len(rows))
    _, second = apart(other, tmp_path / "b")
    name, again = first.winner.name, second.winner.name
    one, two = first.tests[0], second.tests[0]
    assert one.columns["predictions"][name] == two.columns["predictions"][again]
    narrow, wide = (
        np.subtract(test.columns["upper"], test.columns["lower"]) for test in (one, two)
    )
    assert (wide > 10.0 * narrow).all()


def test_intervals_of_rows_apart_are_those_of_the_saved_models(tmp_path):
    from ordinate.tuning.regress.trained_model import load_regression_model

    table, result = apart(columns(600)[1], tmp_path)
    rows = split_randomly(table, 0).validation
    for one in result.finalists:
        loaded = load_regression_model(tmp_path, one.name)
        answers = loaded.predict(table.features[rows])
        assert np.array_equal(loaded.calibration.targets, table.target[rows])
        assert np.allclose(loaded.calibration.predictions, answers.values, rtol=1e-12)
    held = np.mean((answers.lower <= table.target[rows]) & (table.target[rows] <= answers.upper))
    assert 0.9 <= held <= 0.92  # of 60 rows that calibrate, 55 are the 90 % of 61


def test_groups_stay_whole_in_folds_and_rows_for_stopping(tmp_path):
    table = smooth(groups=12)
    task = open_task(table, tmp_path, Settings(models="lightgbm", trials=1, folds=3))
    for fold in task.fold_splits:
        assert not set(table.groups[fold.train]) & set(table.groups[fold.validation])
        rows, stop = task._split_early_stopping(fold.train, 0)
        assert len(stop)
        assert not set(table.groups[rows]) & set(table.groups[stop])


@pytest.mark.parametrize("sizes", [[420, *[20] * 9], [200] * 3, [85] * 6 + [1] * 90], ids=str)
def test_a_large_group_is_learned_from_and_stops_no_fit(tmp_path, sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    table = make_table(*columns(600), groups=groups)
    task = open_task(table, tmp_path, Settings(models="lightgbm", trials=1, folds=3))
    for number in range(20):
        rows, stop = task._split_early_stopping(np.arange(600), number)
        assert len(rows) + len(stop) == 600
        assert 15 <= len(stop) <= max(105, min(sizes))


def test_rows_that_all_differ_stop_fits_as_ever(tmp_path):
    task = open_task(smooth(), tmp_path, Settings(models="lightgbm", trials=1, folds=3, seed=4))
    rows = task.fold_splits[0].train
    chosen = np.random.default_rng([4, 7]).permutation(len(rows))[: round(0.1 * len(rows))]
    assert set(task._split_early_stopping(rows, 7)[1]) == set(rows[chosen])


def test_groups_are_the_units_of_folds_and_of_intervals(tmp_path):
    result = tune_table(
        smooth(groups=12), tmp_path, Settings(models="poly_ridge", trials=1, folds=3)
    )
    assert result.source.groups == 12
    assert result.winner.evaluation.groups == 12 - result.tests[0].groups
    assert result.winner.evaluation.metrics["rmse"].method == "jackknife"


def test_validation_rows_are_apart_if_their_groups_are_enough(tmp_path):
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    few = tune_table(smooth(600, groups=30), tmp_path / "few", settings)
    assert few.source.sizes["validation"] >= 50
    assert not few.source.apart
    told = " ".join(str(few).split())
    assert "of too few groups to keep some apart" in told
    assert "take them as approximate" in told
    many = tune_table(smooth(600, groups=600), tmp_path / "many", settings)
    assert many.source.apart
    told = " ".join(str(many).split())
    assert "they hold what they promise" not in told
    assert "approximate, for rows of one cluster are alike" in told


def test_rows_for_stopping_are_never_held_out(tmp_path):
    task = open_task(smooth(), tmp_path, Settings(models="lightgbm", trials=1, folds=4))
    fits = task.make_fold_fits(Candidate("", "lightgbm", {}))
    for fit, fold in zip(fits, task.fold_splits, strict=True):
        learned = {*fit.rows, *fit.stop}
        assert len(learned) == len(fit.rows) + len(fit.stop)
        assert not learned & {*fold.validation, *fold.test}
