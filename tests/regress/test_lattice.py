"""The judgement of lattices, on few rows; and what a fit refuses to learn from."""

import numpy as np
import pytest

from ordinate.errors import BadValues
from ordinate.experiment.workers import WorkerPool
from ordinate.models.regressors import create_regressor
from ordinate.regress import lattice
from ordinate.regress.bench import Bench
from ordinate.regress.fitting import check_targets_vary
from ordinate.regress.lattice import detect_lattice
from ordinate.regress.settings import Settings
from ordinate.regress.splits import Split, split_k_fold
from ordinate.regress.table import make_table

N = 240


def half_on_a_lattice():
    """Return features of which every other row lies on a lattice, and a target."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 4.0, (N, 2))
    x[::2] = np.round(x[::2])
    return x, np.sin(x[:, 0]) + x[:, 1]


def bench_of(table, folder, workers, folds):
    split = Split(np.arange(N - 20), np.arange(N - 20, N - 10), np.arange(N - 10, N), "by hand")
    settings = Settings(model="poly_ridge", folds=folds)
    return Bench(folder, table, split, settings, workers)


@pytest.mark.parametrize(("most", "judged"), [(80, True), (20, False)])
def test_a_judgement_on_fewer_rows_takes_the_folds_that_are_left(
    tmp_path, monkeypatch, most, judged
):
    """The small groups stand last, where a judgement on fewer rows does not see them."""
    monkeypatch.setattr(lattice, "MOST_ROWS", most)
    groups = ["a"] * 40 + ["b"] * 176 + list("cdef") + ["a"] * 10 + ["g"] * 10
    table = make_table(*half_on_a_lattice(), groups=groups)
    with WorkerPool(1) as workers:
        bench = bench_of(table, tmp_path, workers, folds=6)
        assert len(split_k_fold(table, 6, 0, of=bench.split)) == 6
        found = detect_lattice(bench)
    assert (found is not None) == judged
    if found is not None:
        assert found.told > 0.0


@pytest.mark.parametrize(("scale", "told"), [(1e-170, "too small"), (1e200, "too large")])
def test_targets_that_differ_are_not_called_equal(scale, told):
    targets = np.arange(5.0) * scale
    with pytest.raises(BadValues, match=f"targets are {told} to be squared twice. Give them in"):
        check_targets_vary(targets, "the training rows")
    with pytest.raises(BadValues, match=r"in all 5 of the training rows"):
        check_targets_vary(targets * 0.0 + scale, "the training rows")


def test_a_seed_of_more_than_32_bits_is_taken():
    x, y = half_on_a_lattice()
    params = {"rounds": 3}
    large, small = (create_regressor("hist_boosting", params, seed=seed) for seed in (2**32 + 5, 5))
    assert (large.fit(x, y).predict(x) == small.fit(x, y).predict(x)).all()
