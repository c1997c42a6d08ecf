"""The bench: which rows are learned from, held out, stopped by and kept apart."""

import numpy as np
import pytest
from surrogates import columns, open_bench, smooth

from ordinate.regress.bench import Candidate
from ordinate.regress.settings import Settings
from ordinate.regress.splits import split_randomly
from ordinate.regress.table import make_table
from ordinate.regress.tuning import tune


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
    assert first.winner.evaluation.summary.n == first.source.sizes["training"]
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
    bench = open_bench(table, tmp_path, Settings(model="lightgbm", trials=1, folds=3))
    for part in bench.folds:
        assert not set(table.groups[part.train]) & set(table.groups[part.validation])
        rows, stop = bench._split_early_stopping(part.train, 0)
        assert len(stop)
        assert not set(table.groups[rows]) & set(table.groups[stop])


@pytest.mark.parametrize("sizes", [[420, *[20] * 9], [200] * 3, [85] * 6 + [1] * 90], ids=str)
def test_a_large_group_is_learned_from_and_stops_no_fit(tmp_path, sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    table = make_table(*columns(600), groups=groups)
    bench = open_bench(table, tmp_path, Settings(model="lightgbm", trials=1, folds=3))
    for number in range(20):
        rows, stop = bench._split_early_stopping(np.arange(600), number)
        assert len(rows) + len(stop) == 600
        assert 15 <= len(stop) <= max(105, min(sizes))


def test_rows_that_all_differ_stop_fits_as_ever(tmp_path):
    bench = open_bench(smooth(), tmp_path, Settings(model="lightgbm", trials=1, folds=3, seed=4))
    rows = bench.folds[0].train
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
    bench = open_bench(smooth(), tmp_path, Settings(model="lightgbm", trials=1, folds=4))
    for task, part in zip(bench.tasks(Candidate("lightgbm", {})), bench.folds, strict=True):
        learned = {*task.rows, *task.stop}
        assert len(learned) == len(task.rows) + len(task.stop)
        assert not learned & {*part.validation, *part.test}
