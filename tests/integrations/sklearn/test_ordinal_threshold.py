import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ordinate.errors import BadOption, BadScale
from ordinate.integrations.sklearn.ordinal_regression import (
    FrankHallClassifier,
    OrdinalThresholdClassifier,
)
from ordinate.postprocess.cumulative_logits import LOSSES, penalised_loss


def ordinal_data(n=120, features=3, levels=4, seed=0):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, features))
    latent = matrix @ np.linspace(1.5, -1.0, features) + rng.logistic(size=n)
    return matrix, np.searchsorted(np.linspace(-1.5, 1.5, levels - 1), latent)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("levels", [2, 3, 6])
def test_the_gradient_is_the_slope_of_the_objective(loss, levels):
    matrix, _ = ordinal_data(30)
    rng = np.random.default_rng(1)
    codes = np.arange(30) % levels
    point = rng.normal(size=3 + levels - 1)
    given = (matrix, codes, rng.random(30), 0.7, LOSSES[loss])
    slope = approx_fprime(point, lambda where: penalised_loss(where, *given)[0], 1e-7)
    assert penalised_loss(point, *given)[1] == pytest.approx(slope, abs=1e-6)


def test_the_likelihood_is_that_of_the_probabilities():
    matrix, codes = ordinal_data()
    model = OrdinalThresholdClassifier(penalty=0.3).fit(matrix, codes)
    likely = model.predict_proba(matrix)[np.arange(len(codes)), codes]
    point = np.concatenate([model.coef_, model.cuts_[:1], np.log(np.diff(model.cuts_))])
    weights = np.ones(len(codes))
    value, slope = penalised_loss(point, matrix, codes, weights, 0.3, LOSSES["proportional_odds"])
    ridge = 0.15 * model.coef_ @ model.coef_
    assert value * len(codes) == pytest.approx(ridge - np.log(likely).sum())
    assert np.abs(slope).max() < 1e-7


def test_without_a_penalty_it_agrees_with_statsmodels():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from statsmodels.miscmodels.ordinal_model import OrderedModel

        matrix, codes = ordinal_data(300)
        peer = OrderedModel(codes, matrix, distr="logit").fit(method="bfgs", disp=0, gtol=1e-9)
        expected = peer.model.predict(peer.params, exog=matrix)
    ours = OrdinalThresholdClassifier(penalty=1e-9).fit(matrix, codes)
    assert ours.coef_ == pytest.approx(peer.params[:3], abs=1e-5)
    assert ours.predict_proba(matrix) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("penalty", [0.1, 5.0])
def test_all_thresholds_agree_with_skordinal(penalty):
    from skordinal.classifiers import LogisticAT

    matrix, codes = ordinal_data(200)
    peer = LogisticAT(alpha=penalty, tol=1e-12).fit(matrix, codes)
    ours = OrdinalThresholdClassifier(penalty=penalty, loss="all_threshold").fit(matrix, codes)
    assert ours.coef_ == pytest.approx(peer.coef_, abs=1e-5)
    assert ours.cuts_ == pytest.approx(peer.thresholds_, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_two_levels_are_logistic_regression(loss):
    matrix, codes = ordinal_data(levels=2)
    ours = OrdinalThresholdClassifier(penalty=0.5, loss=loss).fit(matrix, codes)
    peer = LogisticRegression(C=2.0, tol=1e-9, max_iter=1000).fit(matrix, codes)
    assert ours.predict_proba(matrix) == pytest.approx(peer.predict_proba(matrix), abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions_and_weight_zero_is_no_item(loss):
    matrix, codes = ordinal_data(60)
    times = np.arange(60) % 4
    weighed = OrdinalThresholdClassifier(loss=loss).fit(matrix, codes, sample_weight=times)
    repeated = OrdinalThresholdClassifier(loss=loss).fit(
        matrix.repeat(times, 0), codes.repeat(times)
    )
    assert weighed.coef_ == pytest.approx(repeated.coef_, rel=1e-6)
    assert weighed.cuts_ == pytest.approx(repeated.cuts_, rel=1e-6)


def test_sparse_and_dense_features_give_the_same():
    matrix, codes = ordinal_data()
    matrix[np.abs(matrix) < 0.5] = 0.0
    dense = OrdinalThresholdClassifier().fit(matrix, codes)
    sparse = OrdinalThresholdClassifier().fit(csr_matrix(matrix), codes)
    assert sparse.predict_proba(csr_matrix(matrix)) == pytest.approx(
        dense.predict_proba(matrix), abs=1e-8
    )


def test_turning_the_order_of_levels_turns_the_model():
    matrix, codes = ordinal_data()
    up = OrdinalThresholdClassifier().fit(matrix, codes).predict_proba(matrix)
    down = OrdinalThresholdClassifier().fit(matrix, 3 - codes).predict_proba(matrix)
    assert up == pytest.approx(down[:, ::-1], abs=1e-6)


def test_classes_stand_in_sorted_order_and_rows_sum_to_one():
    matrix, codes = ordinal_data(levels=3)
    names = np.array(["low", "mid", "high"])[codes]
    model = OrdinalThresholdClassifier(scale="low,mid,high").fit(matrix, names)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.predict_proba(matrix).sum(axis=1) == pytest.approx(1.0)
    assert (np.diff(model.cuts_) > 0).all()
    far = model.predict_proba(matrix * 1e6)
    assert np.isfinite(far).all()
    assert far.min() >= 0


@pytest.mark.parametrize("classifier", [OrdinalThresholdClassifier, FrankHallClassifier])
def test_the_order_of_words_is_declared_and_not_alphabetical(classifier):
    matrix, codes = ordinal_data(levels=3)
    names = np.array(["low", "mid", "high"])[codes]
    by_code = classifier().fit(matrix, codes)
    by_name = classifier(scale="low,mid,high").fit(matrix, names)
    assert by_name.predict_proba(matrix) == pytest.approx(
        by_code.predict_proba(matrix)[:, [2, 0, 1]]
    )
    assert by_name.predict(matrix).tolist() == names_of(by_code.predict(matrix))
    carried = pd.Categorical(names, ["low", "mid", "high"], ordered=True)
    assert (
        classifier().fit(matrix, carried).predict(matrix).tolist()
        == by_name.predict(matrix).tolist()
    )
    with pytest.raises(BadScale, match="No scale was declared for the labels high, low, mid"):
        classifier().fit(matrix, names)


def names_of(codes):
    return np.array(["low", "mid", "high"])[codes].tolist()


def test_a_class_without_weight_is_no_class():
    matrix, codes = ordinal_data(levels=3)
    model = OrdinalThresholdClassifier().fit(
        matrix, codes, sample_weight=(codes != 1).astype(float)
    )
    assert model.classes_.tolist() == [0, 2]


def test_separated_levels_have_a_finite_fit():
    matrix = np.arange(9.0)[:, None]
    model = OrdinalThresholdClassifier(penalty=1e-3).fit(matrix, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert model.predict(matrix).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert np.isfinite(model.coef_).all()


def test_steps_that_run_out_are_warned_of():
    matrix, codes = ordinal_data()
    with pytest.warns(ConvergenceWarning, match="not arrived after 2 steps"):
        OrdinalThresholdClassifier(max_iter=2).fit(matrix, codes)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"penalty": -1.0}, "penalty=-1.0 is not"),
        ({"penalty": float("nan")}, "penalty=nan is not"),
        ({"penalty": "much"}, "penalty='much' is not"),
        ({"loss": "hinge"}, "loss='hinge' is none of"),
        ({"max_iter": 0}, "max_iter=0 is not"),
    ],
    ids=["negative", "nan", "text", "loss", "steps"],
)
def test_options_are_checked(options, reason):
    matrix, codes = ordinal_data()
    with pytest.raises(BadOption, match=reason):
        clone(OrdinalThresholdClassifier(**options)).fit(matrix, codes)
