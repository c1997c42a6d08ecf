"""Lattice features: which rows they mark, and when models are given them."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from regression_tables import open_task, smooth

from ordinate.errors import BadStore, BadValues
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.models.regressors import create_regressor
from ordinate.tuning.regress import lattice_features
from ordinate.tuning.regress.fitting import Lattice, ModelInputs, check_targets_vary
from ordinate.tuning.regress.lattice_features import detect_lattice
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import Split, split_k_fold
from ordinate.tuning.regress.table import make_table
from ordinate.tuning.regress.task import RegressionTask
from ordinate.tuning.regress.trained_model import load_regression_model
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.fits import OutOfTime

N = 240


def half_on_a_lattice():
    """Return features of which every other row lies on a lattice, and a target."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 4.0, (N, 2))
    x[::2] = np.round(x[::2])
    return x, np.sin(x[:, 0]) + x[:, 1]


def make_task(table, folder, workers, folds):
    split = Split(np.arange(N - 20), np.arange(N - 20, N - 10), np.arange(N - 10, N), "by hand")
    settings = Settings(models="poly_ridge", folds=folds)
    return RegressionTask(
        root=folder,
        table=table,
        split=split,
        settings=settings,
        workers=workers,
        find_lattice=detect_lattice,
    )


@pytest.mark.parametrize(("most", "evaluated"), [(80, True), (20, False)])
def test_an_evaluation_on_fewer_rows_takes_the_folds_that_are_left(
    tmp_path, monkeypatch, most, evaluated
):
    """The small groups stand last, where an evaluation on fewer rows does not see them."""
    monkeypatch.setattr(lattice_features, "MOST_ROWS", most)
    groups = ["a"] * 40 + ["b"] * 176 + list("cdef") + ["a"] * 10 + ["g"] * 10
    table = make_table(*half_on_a_lattice(), groups=groups)
    with WorkerPool(1) as workers:
        task = make_task(table, tmp_path, workers, folds=6)
        assert len(split_k_fold(table, 6, 0, of=task.split)) == 6
        found = detect_lattice(task)
    assert (found is not None) == evaluated
    if found is not None:
        assert found.mae_with_indicator > 0.0


# --- rows on a lattice ---------------------------------------------------------------------------


def test_inputs_are_stored_to_the_last_digit_with_their_lattice():
    x = np.array([[0.1, 2.0]] * 6 + [[0.3, 2.0], [0.7, 1 / 3]])
    before = ModelInputs.fit(x, np.arange(8.0), lattice=True)
    after = ModelInputs.from_dict(json.loads(json.dumps(before.to_dict())))
    assert np.array_equal(before.of(x), after.of(x))
    assert before.of(x)[:, 2].tolist() == [1.0] * 6 + [-1.0] * 2


@pytest.mark.parametrize("lattice", [[[1.0]], ["a", "b"], 3, [[10**400], [1.0]], [[1.0], [None]]])
def test_a_stored_lattice_that_is_none_is_refused(lattice):
    x = np.array([[0.1, 2.0], [0.3, 1.0]])
    stored = ModelInputs.fit(x, np.arange(2.0), lattice=False).to_dict()
    with pytest.raises(BadStore, match="no lattice of the features"):
        ModelInputs.from_dict(stored | {"lattice": lattice})


def test_a_value_is_on_the_lattice_only_if_training_repeats_it():
    train = np.array([[1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [2.0], [2.0]])
    assert Lattice.fit(train).mark_rows([[1.0], [2.0], [3.0]]).tolist() == [True, False, False]


def test_a_stored_lattice_may_be_in_any_order_and_empty():
    stored = ModelInputs.fit(
        np.array([[0.1, 2.0], [0.3, 1.0]]), np.arange(2.0), lattice=False
    ).to_dict()
    lattice = ModelInputs.from_dict(stored | {"lattice": [[3.0, 1.0, 2.0], []]}).lattice
    assert lattice.values[0].tolist() == [1.0, 2.0, 3.0]
    assert lattice.mark_rows([[1.0, 0.0], [np.nan, np.inf]]).tolist() == [False, False]


@pytest.mark.parametrize(
    "again",
    [
        lambda x: x.astype(np.float32),
        lambda x: np.array([[float(f"{value:.10g}") for value in row] for row in x]),
    ],
    ids=["float32", "typed"],
)
def test_a_value_is_on_the_lattice_whatever_its_last_digits(again):
    steps = np.arange(-3.0, 9.0) * 0.1
    grid = np.array([(a, 300.0 + 50.0 * b) for a in steps for b in steps])
    grid[:, 0] += 0.3 - 3 * 0.1  # 0 and what is 0 up to rounding
    lattice = Lattice.fit(grid)
    assert lattice.mark_rows(again(grid)).all()
    assert not lattice.mark_rows(grid + np.array([1e-4, 0.0])).any()
    assert not lattice.mark_rows(grid + np.array([0.0, 1e-3])).any()
    assert Lattice.fit(np.vstack([grid[:48], again(grid[:48])])).mark_rows(grid[:48]).all()


def test_values_that_lie_close_are_told_apart():
    days = np.repeat(20240101.0 + 100 * np.arange(8), 6)[:, None]
    assert not Lattice.fit(days).mark_rows(days + 1.0).any()
    sizes = np.repeat(np.geomspace(1e-9, 1e3, 13), 6)[:, None]
    assert Lattice.fit(sizes).mark_rows(sizes).all()
    assert not Lattice.fit(sizes).mark_rows(sizes[6:] * 1.01).any()
    once = np.random.default_rng(0).uniform(size=(100_000, 1))
    assert not Lattice.fit(once).mark_rows(once).any()
    half = np.vstack([np.full((50, 1), 0.3), once[:50]])  # one value repeats
    assert (
        Lattice.fit(half).mark_rows(half.astype(np.float32)).tolist() == [True] * 50 + [False] * 50
    )


def test_a_lattice_asks_nothing_of_what_never_varied():
    train = np.column_stack([np.repeat([1.0, 2.0], 6), np.full(12, 5.0)])
    inputs = ModelInputs.fit(train, np.arange(12.0), lattice=True)
    assert inputs.mark_rows([[1.0, 5.0], [2.0, 6.0], [1.5, 5.0]]).tolist() == [
        True,
        True,
        False,
    ]


# --- whether models are told ---------------------------------------------------------------------


def two_sources(gap: float):
    """Rows on a lattice whose targets are lower by a gap, and rows between."""
    rng = np.random.default_rng(0)
    on = rng.integers(0, 4, (150, 2)) / 2.0
    between = rng.uniform(0.0, 1.5, (150, 2))
    x = np.vstack([on, between])
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] + rng.normal(0.0, 0.02, 300)
    y[:150] -= gap
    return make_table(x, y, names=["a", "b"], target_name="y")


QUICK = {"models": "kernel_ridge", "trials": 1, "folds": 2}


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    """Return a folder with a search whose models have the feature, and one without it."""
    root = tmp_path_factory.mktemp("searches")
    told = tune_table(two_sources(1.0), root / "told", Settings(**QUICK))
    untold = tune_table(two_sources(1.0), root / "untold", Settings(**QUICK, lattice="never"))
    return root, told, untold


def test_models_are_told_of_a_lattice_on_which_targets_differ(searches):
    _, told, untold = searches
    assert told.winner.value < 0.5 * untold.winner.value
    assert "49 % of the rows lie on a lattice" in told.notes[0]
    gap = float(re.search(r"lower by ([0-9.]+)", told.notes[0])[1])
    assert abs(gap - 1.0) < 0.15
    assert not untold.notes


def test_what_chance_gains_is_no_reason_to_tell_of_a_lattice(tmp_path, monkeypatch):
    def gains(signs, groups=None):
        """Evaluate errors of 4 that are 4 + 1 or 4 - 1 for a model that is not told."""
        return lattice_features._improves_significantly(
            SimpleNamespace(groups=groups), 4.0 + signs, np.full(len(signs), 4.0)
        )

    signs = np.where(np.arange(400) % 2 == 0, 1.0, -1.0)
    signs[1] = 1.0  # told is better, by 2 in all, and the standard error of that is 20
    assert not gains(signs)
    signs[:101] = 1.0
    assert gains(signs)
    # in two groups, one of which gains what the other loses, that is chance again
    assert not gains(np.sort(signs), np.repeat(["a", "b"], 200))
    settings = Settings(models="svr", folds=2)
    assert detect_lattice(open_task(two_sources(1.0), tmp_path / "a", settings)).used
    monkeypatch.setattr(lattice_features, "_improves_significantly", lambda *_: False)
    found = detect_lattice(open_task(two_sources(1.0), tmp_path / "b", settings))
    assert found.mae_with_indicator < found.mae_without_indicator
    assert not found.used
    assert "not told: the gain is no more than its standard error" in found.note("kg")


def test_a_lattice_that_there_was_no_time_to_evaluate_is_evaluated_by_the_next_run(
    tmp_path, searches, monkeypatch
):
    def have_no_time(_task, _share):
        raise OutOfTime("There was no time left for this fit.")

    _, told, untold = searches
    with monkeypatch.context() as patched:
        patched.setattr(lattice_features, "_evaluate_lattice", have_no_time)
        cut = tune_table(two_sources(1.0), tmp_path, Settings(**QUICK))
    assert "no time to look whether that matters, so models are not told" in cut.notes[0]
    assert cut.winner.name == untold.winner.name
    again = tune_table(two_sources(1.0), tmp_path, Settings(**QUICK))
    assert again.to_dict() == told.to_dict()
    assert again.winner.name != cut.winner.name
    hasty = tune_table(two_sources(1.0), tmp_path, Settings(**QUICK, timeout=0.0))
    assert hasty.winner.name == told.winner.name  # what was evaluated is stored
    assert hasty.notes == told.notes


def test_a_stored_finding_that_is_damaged_is_made_again(tmp_path):
    task = open_task(two_sources(1.0), tmp_path, Settings(models="svr", folds=2))
    found = detect_lattice(task)
    (path,) = (tmp_path / "results" / "lattices").iterdir()
    whole = path.read_bytes()
    for damaged in (b"{", b"[]", b"{}", whole.replace(b"true", b'"yes"')):
        path.write_bytes(damaged)
        assert detect_lattice(task) == found
        assert path.read_bytes() == whole


def test_predictions_say_that_a_lattice_is_used(tmp_path, searches):
    tune_table(smooth(), tmp_path, Settings(**QUICK))
    new = [[0.5, 1.0], [0.123, 0.456], [1.0, 1.0]]
    (note,) = load_regression_model(searches[0] / "told").predict(new).notes
    assert note.startswith("2 of 3 rows lie on the lattice of the training rows")
    assert not load_regression_model(tmp_path).predict([[0.0, 0.0, 0.0]]).notes


def test_nothing_is_told_where_there_is_no_lattice(tmp_path):
    result = tune_table(smooth(), tmp_path, Settings(models="poly_ridge", trials=1, folds=2))
    assert not result.notes


# --- fits ----------------------------------------------------------------------------------------


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
