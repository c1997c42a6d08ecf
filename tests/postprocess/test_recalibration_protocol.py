"""Recalibration as scikit-learn and people use it, and what it refuses."""

import pickle

import numpy as np
import pytest
from recalibration_cases import EVERY, LIKELIHOOD, THREE, log_loss, numbered, simulated, softmax
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

from ordinate.errors import (
    BadOption,
    BadProbabilities,
    BadScale,
    BadWeights,
    MissingLabels,
    NoItems,
    NotFitted,
    OffScale,
    UnequalLengths,
)
from ordinate.postprocess.recalibration import (
    RECALIBRATION_METHODS,
    TemperatureScaling,
    VectorScaling,
    make_recalibration,
)
from ordinate.scale import Scale

# --- as scikit-learn and people use it ------------------------------------------------------------


@EVERY
def test_a_clone_has_the_same_parameters_and_no_fit(method):
    fitted = make_recalibration(method, "low,mid,high", renormalize=True, columns="scale")
    fitted.fit([[0.2, 0.3, 0.505], [0.5, 0.3, 0.2]], ["low", "high"])
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert type(copy) is RECALIBRATION_METHODS[method]
    with pytest.raises(NotFitted, match="is not fitted yet: call fit first"):
        copy.predict_proba([[0.2, 0.3, 0.5]])


@EVERY
def test_it_ends_a_pipeline_and_can_stand_within_one(method):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    rng = np.random.default_rng(14)
    logits = rng.normal(size=(50, 3))
    gold = np.array(THREE.labels)[logits.argmax(axis=1)]
    steps = FunctionTransformer(softmax), make_recalibration(method, THREE, columns="scale")
    last = make_pipeline(*steps).fit(logits, gold)
    within = make_pipeline(*steps, FunctionTransformer()).fit(logits, gold)
    rows = softmax(logits)
    direct = make_recalibration(method, THREE, columns="scale").fit(rows, gold).predict_proba(rows)
    assert np.array_equal(last.predict_proba(logits), direct)
    assert np.array_equal(within.transform(logits), direct)


@EVERY
def test_columns_in_another_order_change_nothing(method):
    import pandas as pd

    gold, p, _ = simulated(60, 3, np.random.default_rng(15), power=2.0)
    gold = np.array(THREE.labels)[gold]
    expected = make_recalibration(method, THREE, columns="scale").fit(p, gold).predict_proba(p)
    names = ["high", "low", "mid"]
    mixed = p[:, [2, 0, 1]]
    named = make_recalibration(method, THREE, columns=names).fit(mixed, gold).predict_proba(mixed)
    frame = pd.DataFrame(mixed, columns=[f"p_{name}" for name in names])
    framed = make_recalibration(method, THREE).fit(frame, pd.Series(gold)).predict_proba(frame)
    assert np.array_equal(named, expected)
    assert np.array_equal(framed, expected)


def test_the_scale_of_a_preset_is_found_in_gold():
    p = np.full((3, 6), 1 / 6)
    assert TemperatureScaling().fit(p, ["A1", "B1", "C2"]).scale_ == Scale.of("cefr")
    with pytest.raises(BadScale, match="No scale was declared"):
        TemperatureScaling().fit(p, [1, 2, 3])


# --- errors ---------------------------------------------------------------------------------------

FINE = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]


@pytest.mark.parametrize(
    ("p", "gold", "weights", "error", "match"),
    [
        (FINE, ["low", "top"], None, OffScale, r"Label 'top' \(row 2 of gold\) is not on the"),
        (FINE, ["low", None], None, MissingLabels, r"1 of 2 gold labels are missing \(row 2\)"),
        (FINE, ["low"], None, UnequalLengths, "1 gold labels and 2 rows of probabilities"),
        (FINE, ["low", "mid"], [1], UnequalLengths, "2 labels and 1 weights"),
        (FINE, ["low", "mid"], [1, -1], BadWeights, r"Weight -1.0 \(row 2\) is neither 0 nor"),
        (FINE, ["low", "mid"], [1, np.nan], BadWeights, r"Weight nan \(row 2\)"),
        (FINE, ["low", "mid"], ["a", "b"], BadWeights, "Weights must be numbers"),
        (FINE, ["low", "mid"], [0, 0], NoItems, "recalibrate with: all weights are 0"),
        (np.empty((0, 3)), [], None, NoItems, "recalibrate with: there are no rows"),
        ([[0.5, 0.5]], ["low"], None, BadProbabilities, "2 columns of probabilities for the 3"),
        ([[0.5, 0.5, 0.5]], ["low"], None, BadProbabilities, "row 1, .* sum to 1.5, not to 1"),
    ],
)
@EVERY
def test_a_bad_fit_says_why_and_leaves_nothing_fitted(method, p, gold, weights, error, match):
    scaling = make_recalibration(method, THREE, columns="scale")
    with pytest.raises(error, match=match):
        scaling.fit(p, gold, weights)
    with pytest.raises(NotFitted, match="not fitted yet"):
        scaling.predict_proba(FINE)


def test_an_item_of_weight_0_may_lack_a_label():
    more, gold = [*FINE, FINE[0]], ["low", "mid", None]
    weighted = VectorScaling(THREE, columns="scale").fit(more, gold, [1, 1, 0])
    plain = VectorScaling(THREE, columns="scale").fit(FINE, ["low", "mid"])
    assert np.array_equal(weighted.predict_proba(FINE), plain.predict_proba(FINE))


@EVERY
@pytest.mark.parametrize("unit", [1e149, 1e-100, 1e-300])
def test_weights_of_all_sizes_are_possible(method, unit):
    p, gold = [*FINE, [0, 0, 1]], ["low", "mid", "high"]
    tiny, none = (
        make_recalibration(method, THREE, columns="scale")
        .fit(p, gold, [1.3 * unit, 0.7 * unit, last])
        .predict_proba(FINE)
        for last in (1e-320 if unit < 1 else 1e-200, 0.0)
    )
    assert tiny == pytest.approx(none, abs=1e-9)
    assert tiny.sum(axis=1) == pytest.approx(1.0)


@LIKELIHOOD
@pytest.mark.parametrize("ridge", [-1, np.nan, np.inf, "1", None])
def test_a_bad_ridge_is_refused(method, ridge):
    with pytest.raises(BadOption, match=r"ridge=.* is not a finite number of at least 0"):
        make_recalibration(method, THREE, ridge=ridge, columns="scale").fit(FINE, ["low", "mid"])


def test_unknown_methods_and_parameters_are_refused():
    with pytest.raises(BadOption, match=r"no recalibration 'temp'.*Did you mean 'temperature'"):
        make_recalibration("temp")
    with pytest.raises(BadOption, match="CumulativeIsotonic has no parameter 'ridge'"):
        make_recalibration("isotonic", THREE, ridge=1.0, columns="scale")


# --- what scikit-learn asks ----------------------------------------------------------------------


@EVERY
def test_the_most_probable_level_is_predicted(method):
    gold, p, _ = simulated(300, 3, np.random.default_rng(40))
    labels = np.array(THREE.labels)
    scaling = make_recalibration(method, THREE, columns="scale")
    after = scaling.fit_transform(p, labels[gold])
    assert scaling.classes_.tolist() == ["low", "mid", "high"]
    assert (scaling.predict(p) == labels[after.argmax(axis=1)]).all()
    assert (scaling.predict_proba(p) == after).all()
    assert not hasattr(clone(scaling), "classes_")
    assert is_classifier(scaling)


@EVERY
def test_predictions_are_cross_validated(method):
    gold, p, _ = simulated(400, 3, np.random.default_rng(41), power=2.0)
    scaling = make_recalibration(method, "0..2")
    found = cross_val_predict(scaling, p, gold, cv=KFold(2), method="predict_proba")
    first = clone(scaling).fit(p[200:], gold[200:]).predict_proba(p[:200])
    assert found[:200] == pytest.approx(first)
    labels = np.array(["A1", "A2", "B1"])[gold]
    with pytest.raises(OffScale, match="is not on the scale A1 < A2 < B1"):  # it numbers them
        cross_val_predict(make_recalibration(method, "A1,A2,B1"), p, labels, method="predict_proba")


def test_a_grid_of_ridges_is_searched():
    gold, p, _ = simulated(400, 3, np.random.default_rng(42), power=3.0)
    labels = np.array(["A1", "A2", "B1"])[gold]
    grid = GridSearchCV(
        TemperatureScaling("A1,A2,B1"), {"ridge": [0.0, 1e6]}, scoring="neg_log_loss"
    )
    grid.fit(p, labels)
    assert grid.best_params_ == {"ridge": 0.0}
    best = grid.best_estimator_.predict_proba(p)
    assert grid.score(p, labels) == pytest.approx(-log_loss(best, gold))


@EVERY
def test_a_bad_row_of_weight_0_does_not_exist(method):
    gold, p, _ = simulated(50, 3, np.random.default_rng(43))
    bad = np.vstack([[[np.nan, 7.0, -1.0]], p])
    weights = np.append(0.0, np.ones(50))
    found = make_recalibration(method, numbered(3)).fit(bad, np.append(0, gold), weights)
    assert found.predict_proba(p) == pytest.approx(
        make_recalibration(method, numbered(3)).fit(p, gold).predict_proba(p)
    )
    bad[2, 0] = 3.0
    with pytest.raises(BadProbabilities, match="row 3, "):
        make_recalibration(method, numbered(3)).fit(bad, np.append(0, gold), weights)


def test_columns_in_the_order_of_scikit_learn_are_refused():
    gold, p, _ = simulated(50, 3, np.random.default_rng(44))
    labels = np.array(THREE.labels)[gold]
    with pytest.raises(BadProbabilities, match="The columns of probabilities have no names"):
        TemperatureScaling(THREE).fit(p, labels)
    turned = p[:, [2, 0, 1]]
    once = TemperatureScaling(THREE, columns=iter(["high", "low", "mid"])).fit(turned, labels)
    assert once.predict_proba(turned) == pytest.approx(
        TemperatureScaling(THREE, columns="scale").fit(p, labels).predict_proba(p)
    )


def test_an_unpickled_estimator_shows_what_was_chosen():
    scaling = VectorScaling("low,high", ridge=1.0)
    copy = pickle.loads(pickle.dumps(scaling))  # noqa: S301 - written one call before
    assert repr(copy) == "VectorScaling(scale='low,high')"
    assert "columns=array" in repr(VectorScaling("low,high", columns=np.array(["low", "high"])))
