"""Every model type but the network: one interface, the same result for the same seed."""

import subprocess
import sys
from functools import partial

import numpy as np
import optuna
import pytest
from regression_tables import write
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR

from ordinate.errors import BadInput, BadOption, MissingExtra, NoItems, NotFitted
from ordinate.tuning.experiment.workers import limit_to_one_thread
from ordinate.tuning.models.regressors import (
    MODEL_TYPES,
    create_regressor,
    find_model_type,
    kernels,
)
from ordinate.tuning.models.regressors.kernels import compute_kernel

NAMES = [name for name in MODEL_TYPES if name != "mlp"]  # networks have tests of their own
QUICK = {"lightgbm": {"rounds": 200, "learning_rate": 0.1}, "hist_boosting": {"rounds": 100}}
BOOSTED = ["lightgbm", "hist_boosting"]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Many small systems are solved here: threads would only wait for each other."""
    with limit_to_one_thread():
        yield


def data(n=240, width=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, width))
    y = np.sin(1.5 * x[:, 0]) + (x[:, 1] * x[:, -1] * 0.3 if width > 1 else 0)
    return x, (y - y.mean()) / y.std() + rng.normal(0, 0.05, n)


def rmse(y, predicted):
    return float(np.sqrt(np.mean(np.square(predicted - y))))


def parts(**options):
    x, y = data(**options)
    cut = len(y) // 6
    return x[2 * cut :], y[2 * cut :], x[:cut], y[:cut], x[cut : 2 * cut], y[cut : 2 * cut]


def fitted(name, seed=0, **params):
    x, y, x_val, y_val, *_ = parts()
    return create_regressor(name, QUICK.get(name, {}) | params, seed=seed).fit(x, y, x_val, y_val)


# --- all model types -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_model_learns_what_can_be_learned(name):
    *_, x, y = parts()
    predicted = fitted(name).predict(x)
    assert predicted.shape == (40,)
    assert predicted.dtype == np.float64
    assert rmse(y, predicted) < 0.7 * y.std()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_predictions_to_the_last_digit(name):
    x = data(seed=1)[0]
    assert fitted(name, 3).predict(x).tolist() == fitted(name, 3).predict(x).tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1, 2])
def test_twenty_rows_and_one_feature_are_enough(name, width):
    x, y, x_val, y_val, x_test, _ = parts(n=20, width=width)
    model = create_regressor(name, QUICK.get(name)).fit(x, y, x_val, y_val)
    assert np.isfinite(model.predict(x_test)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_feature_and_equal_rows_do_no_harm(name):
    x, y = data(60)
    x[:, 1] = 0.0
    x[30:] = x[:30]
    assert np.isfinite(create_regressor(name, QUICK.get(name)).fit(x, y).predict(x)).all()


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_a_point_of_the_space_and_the_space_has_every_parameter(name):
    model_type = find_model_type(name)
    asked = model_type.space(optuna.trial.FixedTrial(dict(model_type.defaults)))
    assert asked == dict(model_type.defaults)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_trial_draws_can_be_fitted(name):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    x, y = data(80)
    for _ in range(3):
        params = find_model_type(name).space(study.ask())
        model = create_regressor(name, params | QUICK.get(name, {})).fit(x, y)
        assert np.isfinite(model.predict(x)).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_have_no_predictions(name):
    assert fitted(name).predict(np.empty((0, 3))).shape == (0,)


# --- what is refused -----------------------------------------------------------------------------


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(BadOption, match=r"no model 'lightgmb'.*Did you mean 'lightgbm'"):
        create_regressor("lightgmb")


def test_an_unknown_parameter_names_the_nearest():
    with pytest.raises(BadOption, match=r"svr has no parameter 'costs'.*Did you mean 'cost'"):
        create_regressor("svr", {"costs": 1.0})


def test_a_model_that_was_not_fitted_says_so(tmp_path):
    with pytest.raises(NotFitted, match="call fit first"):
        create_regressor("svr").predict(np.ones((1, 2)))
    with pytest.raises(NotFitted, match="cannot be saved"):
        create_regressor("svr").save(tmp_path)


def test_rows_of_another_width_are_refused():
    with pytest.raises(BadInput, match=r"fitted to 3 features.*\(5, 2\)"):
        fitted("poly_ridge").predict(np.ones((5, 2)))
    x, y = data()
    with pytest.raises(BadInput, match=r"fitted to 3 features.*\(5, 2\)"):
        create_regressor("svr").fit(x, y, np.ones((5, 2)), np.ones(5))


def test_training_rows_without_targets_are_refused():
    with pytest.raises(BadInput, match=r"training rows are features.*\(5, 2\) and \(4,\)"):
        create_regressor("svr").fit(np.ones((5, 2)), np.ones(4))
    with pytest.raises(NoItems, match="no training rows"):
        create_regressor("svr").fit(np.ones((0, 2)), np.ones(0))


@pytest.mark.parametrize(("name", "library"), [("lightgbm", "lightgbm"), ("gp", "sklearn")])
def test_a_missing_library_names_the_extra(monkeypatch, name, library):
    from ordinate.tuning.models import base

    monkeypatch.setattr(base, "find_spec", lambda wanted: None if wanted == library else True)
    with pytest.raises(MissingExtra, match=rf"{name} need {library}: pip install 'ordinate\[regr"):
        create_regressor(name)


def test_the_list_of_kinds_imports_no_heavy_library():
    code = (
        "import sys, ordinate.tuning.models.regressors as m, ordinate.tuning.regress.splits;"
        "heavy = {'torch', 'sklearn', 'lightgbm', 'scipy', 'optuna', 'skops'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# --- boosting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOOSTED)
def test_boosting_stops_early_and_predicts_with_the_best_rounds(name):
    x, y, x_val, y_val, *_ = parts()
    rng = np.random.default_rng(5)
    noisy = y + rng.normal(0, 1.5, len(y))  # learning this by heart makes validation worse
    params = {"rounds": 400, "patience": 20, "learning_rate": 0.3}
    model = create_regressor(name, params).fit(x, noisy, x_val, y_val)
    assert 1 <= model.steps < 380
    if name == "lightgbm":
        assert model.fitted.num_trees() == model.steps
    short = create_regressor(name, params | {"rounds": model.steps}).fit(x, noisy)
    assert np.allclose(short.predict(x_val), model.predict(x_val), rtol=0, atol=1e-12)
    for others in (model.steps + 20, max(1, model.steps - 5)):
        other = create_regressor(name, params | {"rounds": others}).fit(x, noisy)
        assert rmse(y_val, model.predict(x_val)) <= rmse(y_val, other.predict(x_val))


@pytest.mark.parametrize("name", BOOSTED)
def test_without_validation_rows_all_rounds_are_made(name):
    x, y = data()
    assert create_regressor(name, {"rounds": 37}).fit(x, y).steps == 37


def test_lightgbm_reports_validation_errors_and_stops_when_told():
    x, y, x_val, y_val, *_ = parts()
    seen = []

    def progress(step, value):
        seen.append((step, value))
        return step >= 30

    model = create_regressor("lightgbm").fit(x, y, x_val, y_val, progress=progress)
    assert [step for step, _ in seen] == [10, 20, 30]
    assert (model.stopped, model.curve) == (True, seen)
    assert model.steps <= 30
    short = create_regressor("lightgbm", {"rounds": 20}).fit(x, y)
    assert seen[1][1] == pytest.approx(
        rmse(y_val, short.predict(x_val)), rel=1e-6
    )  # targets are float32 in it
    again = model.fit(x, y, x_val, y_val)
    assert again.stopped is False


def test_a_target_that_cannot_be_split_is_predicted_by_its_mean():
    x, y = np.zeros((20, 1)), np.arange(20.0)
    for name in BOOSTED:
        assert create_regressor(name, {"rounds": 5}).fit(x, y).predict(x) == pytest.approx(9.5)


# --- kernels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "peer"),
    [("rbf", RBF), ("matern32", partial(Matern, nu=1.5)), ("matern52", partial(Matern, nu=2.5))],
    ids=["rbf", "matern32", "matern52"],
)
def test_kernels_are_those_of_the_library(name, peer):
    (a, _), (b, _), lengths = data(20), data(30, seed=2), np.array([0.5, 2.0, 7.0])
    assert np.allclose(compute_kernel(name, a, b, lengths), peer(lengths)(a, b), rtol=1e-12)


def test_kernel_ridge_predicts_as_the_library_does():
    (x, y), new = data(), data(seed=3)[0]
    own = create_regressor("kernel_ridge", {"kernel": "rbf", "width": 2.0, "penalty": 0.1}).fit(
        x, y
    )
    peer = KernelRidge(kernel="rbf", gamma=1 / 8, alpha=0.1).fit(x, y - y.mean())
    assert np.allclose(own.predict(new), peer.predict(new) + y.mean(), atol=1e-8)


def test_support_vectors_predict_as_the_library_does():
    (x, y), new = data(), data(seed=3)[0]
    own = create_regressor("svr", {"width": 2.0, "cost": 5.0, "epsilon": 0.1}).fit(x, y)
    peer = SVR(gamma=1 / 8, C=5.0, epsilon=0.1).fit(x, y)
    assert np.allclose(own.predict(new), peer.predict(new), atol=1e-10)
    assert len(own.fitted.centres) < len(x)


def test_a_gaussian_process_predicts_as_the_library_does():
    (x, y), new = data(120), data(seed=3)[0]
    own = create_regressor("gp", {"kernel": "rbf"}).fit(x, y)
    height, lengths, noise = own._maximize_likelihood(x, y - own.fitted.offset)
    shape = ConstantKernel(height, "fixed") * RBF(lengths, "fixed")
    peer = GaussianProcessRegressor(shape, alpha=noise, optimizer=None).fit(x, y - y.mean())
    assert np.allclose(own.predict(new), peer.predict(new) + y.mean(), atol=1e-6)
    assert own.fitted.lengths[2] > own.fitted.lengths[0]  # the first feature matters most


def process(n=120):
    """Return a kernel with noise, its lower factor, and targets of which three are failed."""
    x, y = data(n)
    y[[3, 17, 40]] += [6.0, -7.0, 8.0]
    whole = compute_kernel("rbf", x, x, np.ones(3)) + 0.05 * np.eye(n)
    return whole, np.linalg.cholesky(whole), y


def alone(whole, y, row, rest):
    """Return the error of a row that the rest predicts, and its standard deviation."""
    own = np.linalg.solve(whole[np.ix_(rest, rest)], whole[rest, row])
    return y[row] - own @ y[rest], np.sqrt(whole[row, row] - whole[row, rest] @ own)


def by_definition(whole, y, trim):
    """Leave out the worst row again and again; every fit is made anew."""
    found, rest = [], np.arange(len(y))
    while True:
        errors = [alone(whole, y, row, rest[rest != row]) for row in range(len(y))]
        sizes = np.array([abs(errors[row][0]) / errors[row][1] for row in rest])
        found.append((sum(error**2 for error, _ in errors), rest))
        if sizes.max() <= trim * kernels.MAD_TO_STD * np.median(sizes):
            return found
        rest = np.delete(rest, sizes.argmax())


def test_trimming_leaves_out_the_rows_without_which_errors_are_smallest():
    whole, factor, y = process()
    found = by_definition(whole, y, 2.0)
    steps = list(kernels._trim_one_by_one(factor, y, 2.0))[: len(found)]
    sums = [float(np.square(step.errors).sum()) for step in steps]
    assert sums == pytest.approx([total for total, _ in found[: len(sums)]], rel=1e-8)
    assert len(sums) == 7 > 1 + sums.index(min(sums))  # some that do not help are tried, too
    weights, kept = kernels.trim_outliers(factor, y, 6.0)
    rest = np.flatnonzero(kept)
    assert np.flatnonzero(~kept).tolist() == [3, 17, 40]
    assert weights == pytest.approx(np.linalg.solve(whole[np.ix_(rest, rest)], y[rest]), abs=1e-9)


def test_nothing_is_trimmed_unless_asked_for():
    whole, factor, y = process()
    weights, kept = kernels.trim_outliers(factor, y, 0.0)
    assert kept.all()
    assert weights == pytest.approx(np.linalg.solve(whole, y), abs=1e-9)


def failed(share):
    """Return the data with a share of its targets far below the others, and where they are."""
    x, y = data(400)
    rows = np.random.default_rng(1).permutation(400)[: round(share * 400)]
    y[rows] -= 5.0
    return x, y, rows


def test_a_gaussian_process_refuses_more_rows_than_it_would_use():
    with pytest.raises(BadOption, match="rows of gp takes an integer from 2 to 2000, not 100000"):
        create_regressor("gp", {"rows": 100_000})


def test_a_gaussian_process_leaves_failed_rows_out_and_says_how_many():
    (x, y, rows), (_, right) = failed(0.02), data(400)
    robust, plain = (
        create_regressor("gp", {"trim": trim, "rows": 200}).fit(x, y) for trim in (8.0, 0.0)
    )
    kept = set(map(tuple, robust.fitted.centres.tolist()))
    assert not kept & set(map(tuple, x[rows].tolist()))
    assert 385 <= len(kept) <= 392
    (note,) = robust.notes
    assert note.startswith(f"{400 - len(kept)} of 400 training rows are left out of the Gaussian")
    assert len(plain.fitted.centres) == 400
    assert not plain.notes
    robust_error, plain_error = (rmse(right[rows], one.predict(x[rows])) for one in (robust, plain))
    assert robust_error < 0.5 * plain_error


@pytest.mark.parametrize(
    "law",
    [
        lambda x: (x[:, 0] > 0.95).astype(float),
        lambda x: np.exp(4 * x[:, 0] + 2 * x[:, 1]),
        lambda x: 1 / (x[:, 0] + 1.03),
    ],
    ids=["a rare step", "exponential", "pole"],
)
def test_rows_that_know_what_no_other_does_stay(law):
    rng = np.random.default_rng(1)
    x, new = rng.uniform(-1, 1, (600, 2)), rng.uniform(-1, 1, (600, 2))
    mean, spread = law(x).mean(), law(x).std()
    y = (law(x) - mean) / spread + rng.normal(0, 0.01, 600)
    models = [create_regressor("gp", {"trim": trim, "rows": 300}).fit(x, y) for trim in (8.0, 0.0)]
    robust, plain = (rmse((law(new) - mean) / spread, one.predict(new)) for one in models)
    assert robust <= 1.1 * plain


def test_no_more_than_a_few_rows_are_left_out():
    _, factor, y = process()
    _, kept = kernels.trim_outliers(factor, y, 6.0, most_share=2 / len(y))
    assert (~kept).sum() == 2


def test_errors_up_to_so_many_times_the_usual_one_are_no_reason():
    whole, factor, y = process()
    rows = np.arange(len(y))
    errors = [alone(whole, y, row, rows[rows != row]) for row in rows]
    sizes = np.array([abs(error) / deviation for error, deviation in errors])
    times = sizes.max() / (kernels.MAD_TO_STD * np.median(sizes))
    assert len(list(kernels._trim_one_by_one(factor, y, 1.001 * times))) == 1
    assert len(list(kernels._trim_one_by_one(factor, y, 0.999 * times))) > 1


@pytest.mark.parametrize("name", ["gp", "kernel_ridge", "svr"])
def test_too_many_rows_are_drawn_from_and_noted(name):
    x, y = data()
    model = create_regressor(name)
    model.most_rows = 100
    model.fit(x, y)
    assert len(model.fitted.centres) <= 100
    assert any("Of 240 training rows 100 were used" in note for note in model.notes)


def test_prediction_in_blocks_changes_nothing():
    x = data(seed=3)[0]
    expansion = fitted("kernel_ridge").fitted
    assert np.allclose(expansion.predict(x, block_rows=7), expansion.predict(x), rtol=1e-12)


# --- polynomials ---------------------------------------------------------------------------------


def test_a_polynomial_of_the_right_degree_is_found():
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = 1 + 2 * x[:, 0] - x[:, 0] * x[:, 1] ** 2
    model = create_regressor("poly_ridge", {"degree": 3, "penalty": 1e-9}).fit(x, y)
    assert np.allclose(model.predict(x), y, atol=1e-6)


def test_a_polynomial_with_too_many_terms_takes_a_lower_degree_and_says_so():
    x, y = np.random.default_rng(0).normal(size=(60, 60)), np.arange(60.0)
    model = create_regressor("poly_ridge", {"degree": 4}).fit(x, y)
    assert any("degree 2 was taken" in note for note in model.notes)


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("poly_ridge", {"degree": "abc"}, "degree of poly_ridge takes an integer"),
        ("poly_ridge", {"degree": 2.5}, "takes an integer"),
        ("poly_ridge", {"degree": True}, "takes an integer"),
        ("poly_ridge", {"penalty": float("nan")}, "takes a number of at least 0"),
        ("svr", {"cost": -1}, "cost of svr takes a number from 1e-09"),
        ("svr", {"width": 10**400}, "width of svr takes a number"),
        ("lightgbm", {"num_leaves": -1}, "num_leaves of lightgbm takes an integer from 2"),
        ("lightgbm", {"feature_fraction": 2}, "from 0.01 to 1"),
        ("gp", {"kernel": "laplace"}, "kernel of gp takes matern52 or matern32 or rbf"),
        ("kernel_ridge", {"kernel": ["rbf"]}, "kernel of kernel_ridge takes"),
        ("mlp", {"bootstrap": 1}, "bootstrap of mlp takes true or false"),
        ("mlp", {"device": "tpu"}, "device of mlp takes cpu or cuda"),
    ],
    ids=str,
)
def test_parameters_of_another_type_or_beyond_all_sense_are_refused(name, params, said):
    with pytest.raises(BadOption, match=said):
        create_regressor(name, params)


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, RuntimeError, MemoryError])
def test_what_a_library_complains_of_is_told_in_words(monkeypatch, error):
    def complain(*_):
        raise error("no\nsuch kernel")

    model = create_regressor("svr")
    monkeypatch.setattr(model, "_fit", complain)
    with pytest.raises(BadOption, match=r"svr cannot be fitted with \{'width'.*: no such kernel"):
        model.fit(*data())


def test_complaints_of_lightgbm_are_told_in_words(monkeypatch):
    from lightgbm.basic import LightGBMError

    def complain(*_):
        raise LightGBMError("no such tree")

    model = create_regressor("lightgbm")
    monkeypatch.setattr(model, "_train_booster", complain)
    with pytest.raises(BadOption, match=r"lightgbm cannot be fitted .* no such tree"):
        model.fit(*data())


def test_histogram_boosting_tells_its_learning_curve():
    x, y = data()
    model = create_regressor("hist_boosting", {"rounds": 30, "patience": 30})
    model.fit(x[:-30], y[:-30], x[-30:], y[-30:])
    assert [step for step, _ in model.curve] == [10, 20, 30]
    short = create_regressor("hist_boosting", {"rounds": 10, "patience": 30})
    short.fit(x[:-30], y[:-30], x[-30:], y[-30:])
    assert short.steps == 10  # so its trees are all that step 10 has
    assert model.curve[0][1] == pytest.approx(rmse(y[-30:], short.predict(x[-30:])))


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from ordinate.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def hidden(libraries, *words):
    """Run the command in a process in which libraries cannot be imported."""
    code = HIDE.format(hidden=set(libraries))
    said = [sys.executable, "-c", code, "tune-regression", *map(str, words)]
    said += ["--folds", "2", "--trials", "1"]
    return subprocess.run(said, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("library", ["torch", "safetensors"])
def test_networks_name_the_extra_where_a_library_is_missing(tmp_path, library):
    table = write(tmp_path / "data.csv", 30)
    ran = hidden([library], table, "--target", "y", "--models", "mlp", "-e", tmp_path / "out")
    assert ran.returncode == 2
    assert f"need {library}: pip install 'ordinate[regression]'" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_other_kinds_do_without_torch(tmp_path):
    table = write(tmp_path / "data.csv", 30)
    ran = hidden(
        ["torch", "safetensors"], table, "--target", "y", "--models", "svr", "-e", tmp_path / "out"
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out/results/results.json").exists()
