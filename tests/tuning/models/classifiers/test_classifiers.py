import subprocess
import sys

import numpy as np
import optuna
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge

from ordinate.errors import BadInput, BadOption, MissingExtra, NoItems, NotFitted, OffScale
from ordinate.postprocess.class_priors import undo_class_weights
from ordinate.tuning.models import base
from ordinate.tuning.models.classifiers import MODEL_TYPES, create_classifier

SIZE = 6
QUICK = {"forest": {"n_estimators": 5}, "lightgbm": {"rounds": 5}, "xgboost": {"rounds": 5}}
NAMES = [name for name in MODEL_TYPES if name != "xgboost"]


@pytest.fixture(params=MODEL_TYPES)
def name(request):
    if request.param == "xgboost":
        pytest.importorskip("xgboost")
    return request.param


def made(name, size=SIZE, seed=0, **params):
    return create_classifier(name, QUICK.get(name, {}) | params, size=size, seed=seed)


def dense(n=90, seed=0, levels=(0, 1, 2, 3, 4, 5)):
    rng = np.random.default_rng(seed)
    gold = np.array(levels)[np.arange(n) % len(levels)]
    matrix = rng.normal(size=(n, 5))
    matrix[:, 0] += gold
    matrix[:, 1] *= 1000.0  # says nothing, on a large scale
    matrix[:, 2] = 7.0  # constant
    return matrix, gold


def sparse(n=90, seed=0):
    rng = np.random.default_rng(seed)
    gold = np.arange(n) % SIZE
    matrix = rng.random((n, 40)) * (rng.random((n, 40)) < 0.1)
    matrix[np.arange(n), gold] = 1.0
    matrix[:, 39] = 1.0  # constant
    return csr_matrix(matrix), gold


DATA = {"dense": dense, "sparse": sparse}


@pytest.mark.parametrize("form", DATA)
def test_probabilities_are_on_the_full_scale_and_sum_to_one(name, form):
    matrix, gold = DATA[form]()
    given = made(name).fit(matrix, gold).predict(matrix)
    if MODEL_TYPES[name].output_type == "scores":
        assert given.shape == (90,)
        assert np.corrcoef(given, gold)[0, 1] > 0.5
    else:
        assert given.shape == (90, SIZE)
        assert given.sum(axis=1) == pytest.approx(1.0)
        assert given.min() >= 0
        assert np.isfinite(given).all()
        assert (given.argmax(axis=1) == gold).mean() > 0.3  # by chance: 1/6


def test_a_level_never_seen_has_probability_zero(name):
    matrix, gold = dense(levels=(1, 3, 4))
    given = made(name).fit(matrix, gold).predict(matrix)
    if MODEL_TYPES[name].output_type == "probabilities":
        assert (given[:, [0, 2, 5]] == 0).all()
        assert (given[:, [1, 3, 4]].sum(axis=1)) == pytest.approx(1.0)
    elif name == "regression":
        assert given.mean() == pytest.approx(gold.mean(), abs=0.1)
    else:
        assert np.corrcoef(given, gold)[0, 1] > 0.5


def test_two_levels_are_enough(name):
    matrix, gold = dense(levels=(0, 5))
    given = made(name).fit(matrix, gold).predict(matrix)
    if MODEL_TYPES[name].output_type == "probabilities":
        assert given[gold == 5, 5].mean() > given[gold == 0, 5].mean()
        assert (given[:, 1:5] == 0).all()


def test_one_item_of_a_level_is_enough(name):
    matrix, gold = dense(30, levels=(0, 1))
    gold[-1] = 4
    given = made(name).fit(matrix, gold).predict(matrix)
    assert np.isfinite(given).all()


def test_thirty_rows_are_enough_to_learn_from(name):
    matrix, gold = dense(30)
    given = create_classifier(name, size=SIZE).fit(matrix, gold).predict(matrix)
    found = given if MODEL_TYPES[name].output_type == "scores" else given @ np.arange(SIZE)
    assert np.corrcoef(found, gold)[0, 1] > 0.5


def test_features_that_are_all_constant_do_not_fail(name):
    _, gold = dense(30)
    given = made(name).fit(np.ones((30, 2)), gold).predict(np.ones((4, 2)))
    assert np.isfinite(given).all()


def test_one_level_alone_is_refused(name):
    matrix, _ = dense(20)
    with pytest.raises(BadInput, match=r"All 20 training items .*position 3 of 0 to 5"):
        made(name).fit(matrix, np.full(20, 3))


@pytest.mark.parametrize("form", DATA)
def test_the_same_seed_gives_the_same_answers(name, form):
    matrix, gold = DATA[form]()
    first = made(name, seed=3).fit(matrix, gold).predict(matrix)
    again = made(name, seed=3).fit(matrix, gold).predict(matrix)
    assert first.tolist() == again.tolist()


@pytest.mark.parametrize("name", ["forest", "lightgbm"])
def test_another_seed_gives_other_answers(name):
    matrix, gold = dense()
    first, other = (made(name, seed=s).fit(matrix, gold).predict(matrix) for s in (0, 1))
    assert first.tolist() != other.tolist()


@pytest.mark.parametrize(
    "name", ["logistic", "threshold", "frank_hall", "naive_bayes", "svm", "regression"]
)
def test_weights_are_repetitions(name):
    matrix, gold = sparse()  # which are not scaled: the scale of dense ones knows no weights
    times = 1 + np.arange(len(gold)) % 3
    weighed = made(name).fit(matrix, gold, times.astype(float)).predict(matrix)
    rows = np.arange(len(gold)).repeat(times)
    repeated = made(name).fit(matrix[rows], gold[rows]).predict(matrix)
    assert weighed == pytest.approx(repeated, abs=1e-3)


def test_an_item_of_weight_zero_is_none(name):
    matrix, gold = dense(60, levels=(0, 1, 2))
    weights = (gold != 2).astype(float)
    kept = weights > 0
    with_zeros = made(name).fit(matrix, gold, weights).predict(matrix)
    without = made(name).fit(matrix[kept], gold[kept], weights[kept]).predict(matrix)
    assert with_zeros.tolist() == without.tolist()


@pytest.mark.parametrize("name", [name for name in NAMES if MODEL_TYPES[name].likelihood])
def test_class_weights_of_a_likelihood_are_undone_by_division(name):
    rng = np.random.default_rng(5)
    gold = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
    matrix = gold[:, None] + rng.normal(size=(600, 1))
    weights = np.array([0.5, 1.0, 4.0])
    plain = made(name, size=3).fit(matrix, gold).predict(matrix)
    weighed = made(name, size=3).fit(matrix, gold, weights[gold]).predict(matrix)
    before = np.abs(weighed - plain).mean()
    assert before > 0.1
    assert np.abs(undo_class_weights(weighed, weights) - plain).mean() < before / 3


def test_dense_features_are_scaled_inside():
    matrix, gold = dense()
    stretched = matrix * [1.0, 1e-3, 5.0, 100.0, 1e4]
    for name in ("logistic", "threshold", "frank_hall", "svm", "naive_bayes", "regression"):
        plain = made(name).fit(matrix, gold).predict(matrix)
        assert made(name).fit(stretched, gold).predict(stretched) == pytest.approx(plain, abs=2e-3)


def test_naive_bayes_takes_values_below_all_of_training_for_the_lowest_of_them():
    matrix, gold = dense()
    model, lowest = made("naive_bayes").fit(matrix, gold), matrix.min(axis=0, keepdims=True)
    assert model.predict(lowest - 100.0).tolist() == model.predict(lowest).tolist()


def test_naive_bayes_refuses_negative_sparse_features():
    matrix, gold = sparse()
    with pytest.raises(BadInput, match="negative values"):
        made("naive_bayes").fit(-matrix, gold)


def test_regression_gives_ridge_scores_of_positions():
    matrix, gold = sparse()
    peer = Ridge(alpha=0.5, solver="cholesky").fit(matrix.toarray(), gold)
    ours = made("regression", alpha=0.5).fit(matrix, gold).predict(matrix)
    assert ours == pytest.approx(peer.predict(matrix.toarray()), abs=1e-5)


def test_a_zero_that_is_stored_is_a_zero(name):
    matrix, gold = sparse()
    stored = matrix.copy()
    stored.data[::7] = 0.0
    plain = stored.copy()
    plain.eliminate_zeros()
    model = made(name).fit(stored, gold)
    assert model.predict(plain).tolist() == model.predict(stored).tolist()
    assert model.predict(plain.toarray()).tolist() == model.predict(plain).tolist()
    assert made(name).fit(plain, gold).predict(plain).tolist() == model.predict(stored).tolist()


def test_no_rows_have_no_answers(name):
    matrix, gold = dense()
    shape = (0,) if MODEL_TYPES[name].output_type == "scores" else (0, SIZE)
    assert made(name).fit(matrix, gold).predict(matrix[:0]).shape == shape


def test_warnings_of_libraries_become_notes(monkeypatch):
    from ordinate.tuning.models.classifiers import linear

    monkeypatch.setattr(linear, "MOST_STEPS", 2)
    matrix, gold = dense()
    model = made("threshold").fit(matrix, gold)
    assert any("not arrived after 2 steps" in note for note in model.notes)
    assert made("logistic").fit(matrix, gold).notes


def test_other_features_than_those_of_the_fit_are_refused(name):
    matrix, gold = dense()
    model = made(name).fit(matrix, gold)
    with pytest.raises(BadInput, match="fitted to 5 features, and these rows have 4"):
        model.predict(matrix[:, :4])


def test_a_level_off_the_scale_is_refused():
    matrix, gold = dense()
    with pytest.raises(OffScale, match="0 to 4"):
        made("logistic", size=5).fit(matrix, gold)


def test_nothing_to_fit_is_refused():
    with pytest.raises(NoItems, match="0 items with 3 features"):
        made("logistic").fit(np.empty((0, 3)), np.array([], int))


def test_weights_that_are_all_zero_are_refused():
    matrix, gold = dense()
    with pytest.raises(BadInput, match="weight above 0"):
        made("logistic").fit(matrix, gold, np.zeros(len(gold)))


def test_asking_before_fitting_is_refused(tmp_path):
    with pytest.raises(NotFitted, match="call fit first"):
        made("logistic").predict(np.ones((1, 2)))
    with pytest.raises(NotFitted, match="cannot be saved"):
        made("logistic").save(tmp_path)


def test_an_unknown_kind_is_refused_with_a_suggestion():
    with pytest.raises(BadOption, match="Did you mean 'logistic'"):
        create_classifier("logistics", size=3)


def test_an_unknown_parameter_is_refused():
    with pytest.raises(BadOption, match=r"logistic has no parameter 'penalty'\. It has C"):
        create_classifier("logistic", {"penalty": 1.0}, size=3)


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("logistic", {"C": 0}, "C of logistic takes a number from 1e-09 to 1e.09, not 0"),
        ("logistic", {"C": "1"}, "C of logistic takes a number"),
        ("svm", {"loss": "log"}, "loss of svm takes squared_hinge or hinge"),
        ("threshold", {"penalty": -1.0}, "penalty of threshold takes a number of at least 0"),
        ("threshold", {"loss": "mse"}, "takes proportional_odds or all_threshold"),
        ("naive_bayes", {"variant": "gaussian"}, "takes multinomial or complement"),
        ("forest", {"n_estimators": 2.5}, "takes an integer from 1"),
        ("forest", {"max_features": 2.0}, "takes a number from 1e-09 to 1"),
        ("lightgbm", {"num_leaves": 1}, "takes an integer from 2"),
        ("xgboost", {"subsample": 0.0}, "subsample of xgboost takes a number from"),
    ],
    ids=str,
)
def test_a_parameter_that_cannot_be_is_refused_with_its_bounds(name, params, said):
    with pytest.raises(BadOption, match=said):
        MODEL_TYPES[name]._check_parameters(params)


def test_what_a_library_complains_of_is_told_in_words(monkeypatch):
    def complain(*_):
        raise ValueError("no such solver")

    model = made("logistic")
    monkeypatch.setattr(model, "_fit", complain)
    with pytest.raises(BadOption, match=r"logistic cannot be fitted with \{'C'.*: no such solver"):
        model.fit(*dense())


@pytest.mark.parametrize(
    ("name", "line"),
    [("xgboost", "pip install xgboost"), ("lightgbm", r"pip install 'ordinate\[tune\]'")],
)
def test_a_library_that_is_missing_is_named_with_its_install_line(monkeypatch, name, line):
    monkeypatch.setattr(base, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=line):
        create_classifier(name, size=3)


# --- search spaces -------------------------------------------------------------------------------


def test_the_defaults_are_a_point_of_the_search_space(name):
    model_type = MODEL_TYPES[name]
    assert model_type.space(optuna.trial.FixedTrial(model_type.defaults)) == model_type.defaults


def test_every_point_of_the_search_space_can_be_fitted(name):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    matrix, gold = dense(36)
    for _ in range(4):
        trial = study.ask()
        params = MODEL_TYPES[name].space(trial)
        assert params == trial.params
        assert np.isfinite(made(name, **params).fit(matrix, gold).predict(matrix)).all()


def test_listing_kinds_loads_no_library():
    code = (
        "import sys, ordinate.tuning.models.classifiers;"
        "print({'sklearn', 'scipy', 'lightgbm', 'xgboost', 'optuna', 'skops'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
