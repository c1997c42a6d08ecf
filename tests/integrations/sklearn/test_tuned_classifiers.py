"""Classifiers that learn out of fold: each step beside the same step by hand."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordinate.errors import BadOption, BadScale, OffScale, UnknownMetric
from ordinate.integrations.sklearn import (
    ConformalClassifierCV,
    CutPointClassifierCV,
    FrankHallClassifier,
    MetricTunedClassifierCV,
    OrdinalThresholdClassifier,
    RecalibratedClassifierCV,
    scorer,
)
from ordinate.postprocess import CutPoints, Decoder, OrdinalConformalSets, make_recalibration

LEVELS = ["low", "mid", "high", "top"]  # sorted: high, low, mid, top
COLUMNS = [2, 0, 1, 3]  # of the sorted labels, by level
FOLDS = StratifiedKFold(4)
each_classifier = pytest.mark.parametrize(
    "model",
    [
        MetricTunedClassifierCV(GaussianNB(), scale=LEVELS),
        RecalibratedClassifierCV(GaussianNB(), scale=LEVELS),
        ConformalClassifierCV(GaussianNB(), scale=LEVELS),
        CutPointClassifierCV(Ridge(), scale=LEVELS),
        OrdinalThresholdClassifier(scale=LEVELS),
        FrankHallClassifier(scale=LEVELS),
    ],
    ids=lambda model: type(model).__name__,
)


def items(n=300, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 2))
    latent = features @ [1.5, -0.5] + rng.logistic(size=n)
    codes = np.searchsorted([0.5, 1.5, 3.0], latent)
    return features, codes, np.array(LEVELS)[codes]


@pytest.mark.parametrize("method", [None, "temperature", "vector", "isotonic"])
@pytest.mark.parametrize("metric", ["quadratic_kappa", "mae", "f1_macro"])
def test_a_tuned_classifier_is_what_its_steps_are_by_hand(method, metric):
    features, codes, labels = items()
    tuned = MetricTunedClassifierCV(
        GaussianNB(), metric, scale=LEVELS, recalibration=method, cv=FOLDS
    ).fit(features, labels)
    rows = cross_val_predict(GaussianNB(), features, codes, cv=FOLDS, method="predict_proba")
    new = GaussianNB().fit(features, codes).predict_proba(features)
    if method:
        recalibration = make_recalibration(method, range(4)).fit(rows, codes)
        rows, new = recalibration.predict_proba(rows), recalibration.predict_proba(new)
    decoder = Decoder(metric, range(4)).fit(rows, codes)
    assert tuned.predict(features).tolist() == [LEVELS[k] for k in decoder.predict_positions(new)]
    assert tuned.classes_.tolist() == sorted(LEVELS)
    assert tuned.predict_proba(features) == pytest.approx(new[:, COLUMNS])


def test_tuning_for_accuracy_is_argmax_and_for_kappa_is_better_by_it():
    features, _, labels = items()
    new, _, gold = items(2000, seed=1)
    model = LogisticRegression().fit(features, labels)
    plain = MetricTunedClassifierCV(LogisticRegression(), "accuracy", scale=LEVELS)
    assert plain.fit(features, labels).predict(new).tolist() == model.predict(new).tolist()
    tuned = MetricTunedClassifierCV(LogisticRegression(), scale=LEVELS).fit(features, labels)
    kappa = scorer("quadratic_kappa", scale=LEVELS)
    assert kappa(tuned, new, gold) > kappa(model, new, gold) + 0.02


def test_a_label_that_is_absent_is_no_class_and_never_predicted():
    features, codes, _ = items()
    there = codes != 1
    labels = np.array([1, 2, 3, 5])[codes]  # 4 does not occur either
    tuned = MetricTunedClassifierCV(LogisticRegression(), "mse", scale="1..5")
    tuned.fit(features[there], labels[there])
    assert tuned.classes_.tolist() == [1, 3, 5]
    assert set(tuned.predict(features)) <= {1, 3, 5}
    assert tuned.predict_proba(features).sum(axis=1) == pytest.approx(1.0)


def test_where_no_rule_beats_chance_the_most_probable_label_is_predicted():
    features, _, labels = items()
    constant = FrozenEstimator(DummyClassifier().fit(features, labels))
    blind = MetricTunedClassifierCV(constant, scale=LEVELS)
    with pytest.warns(UserWarning, match="no better than chance.*The most probable label is"):
        blind.fit(features, labels)
    assert set(blind.predict(features)) == {"low"}


def test_a_recalibrated_classifier_scores_right_with_scikit_learns_own_scorer():
    features, _, labels = items()
    for method in ("temperature", "vector", "isotonic"):
        model = RecalibratedClassifierCV(LogisticRegression(), method, scale=LEVELS, cv=FOLDS)
        model.fit(features, labels)
        rows = model.predict_proba(features)
        assert rows.sum(axis=1) == pytest.approx(1.0)
        by_level = rows[:, np.argsort(COLUMNS)]
        assert model.predict(features).tolist() == [LEVELS[k] for k in by_level.argmax(axis=1)]
        own = get_scorer("neg_log_loss")(model, features, labels)
        assert scorer("log_loss", LEVELS)(model, features, labels) == pytest.approx(own)


def test_a_frozen_classifier_is_not_fitted_again():
    features, _, labels = items()
    held, _, gold = items(200, seed=2)
    fitted = LogisticRegression().fit(features, labels)
    before = fitted.coef_.copy()
    model = ConformalClassifierCV(FrozenEstimator(fitted), alpha=0.2, scale=LEVELS)
    model.fit(held[gold != "top"], gold[gold != "top"])  # a label that only the model knows
    assert model.classes_.tolist() == sorted(LEVELS)
    assert fitted.coef_.tolist() == before.tolist()
    sets = OrdinalConformalSets(0.2, scale=LEVELS, columns=fitted.classes_)
    sets.fit(fitted.predict_proba(held[gold != "top"]), gold[gold != "top"])
    expected = sets.predict(fitted.predict_proba(features))
    predicted = model.predict_sets(features)
    assert predicted.members.tolist() == expected.members.tolist()
    assert model.predict(features).tolist() == fitted.predict(features).tolist()


def test_conformal_sets_cover_new_items():
    features, _, labels = items(600)
    new, _, gold = items(2000, seed=3)
    model = ConformalClassifierCV(LogisticRegression(), alpha=0.1, scale=LEVELS)
    sets = model.fit(features, labels).predict_sets(new)
    assert 0.86 < sets.contains(gold).mean() < 0.94
    assert sets.sizes.mean() < 3


def test_cuts_are_those_of_out_of_fold_predictions():
    features, codes, labels = items()
    model = CutPointClassifierCV(Ridge(), "mae", scale=LEVELS, cv=FOLDS).fit(features, labels)
    scores = cross_val_predict(Ridge(), features, codes, cv=FOLDS.split(features, codes))
    cuts = CutPoints("mae", scale=range(4)).fit(scores, codes)
    assert model.cuts_ == pytest.approx(cuts.cuts_)
    new = Ridge().fit(features, codes).predict(features)
    assert model.predict(features).tolist() == [LEVELS[k] for k in cuts.predict(new)]
    assert not hasattr(model, "predict_proba")


def test_the_splitter_may_leave_items_out():
    features, _, labels = items()
    once = ShuffleSplit(1, test_size=0.3, random_state=0)
    tuned = MetricTunedClassifierCV(LogisticRegression(), "mae", scale=LEVELS, cv=once)
    assert tuned.fit(features, labels).decoder_.n_ == 0 or tuned.decoder_.n_ == 90


def test_weights_reach_the_steps_of_a_pipeline_by_routing():
    features, _, labels = items()
    weights = np.random.default_rng(4).integers(1, 4, len(labels)).astype(float)
    options = {"scale": LEVELS, "cv": FOLDS, "recalibration": "vector"}
    plain = MetricTunedClassifierCV(
        make_pipeline(StandardScaler(), LogisticRegression()), **options
    )
    with pytest.warns(UserWarning, match="Pipeline takes no sample_weight"):
        unrouted = clone(plain).fit(features, labels, sample_weight=weights)
    unweighted = clone(plain).fit(features, labels)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = MetricTunedClassifierCV(make_pipeline(scaler, model), **options)
        routed.fit(features, labels, sample_weight=weights)
    inner = routed.estimator_[-1].coef_
    scaled = StandardScaler().fit_transform(features)
    by_hand = LogisticRegression().fit(scaled, labels, sample_weight=weights)
    assert inner == pytest.approx(by_hand.coef_)
    assert unrouted.estimator_[-1].coef_ == pytest.approx(unweighted.estimator_[-1].coef_)
    slopes = [x.recalibration_.slopes_ for x in (unrouted, unweighted)]
    assert np.abs(slopes[0] - slopes[1]).max() > 1e-3


@each_classifier
@pytest.mark.parametrize("routing", [False, True])
def test_weights_are_taken_by_place_and_by_name_with_routing_and_without(model, routing):
    features, _, labels = items()
    weights = np.where(labels == "low", 1.0, 5.0)
    plain = clone(model).fit(features, labels).predict(features)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing and hasattr(model, "estimator"):
            inner = clone(model.estimator).set_fit_request(sample_weight=True)
            model = clone(model).set_params(estimator=inner)
        placed = clone(model).fit(features, labels, weights).predict(features)
        named = clone(model).fit(features, labels, sample_weight=weights).predict(features)
    assert named.tolist() == placed.tolist()
    assert (named == "low").sum() < (plain == "low").sum()


@pytest.mark.parametrize("routing", [False, True])
def test_prediction_sets_are_those_of_an_estimator_with_weights(routing):
    features, codes, labels = items()
    weights = np.random.default_rng(4).integers(1, 9, len(labels)).astype(float)
    options = {"alpha": 0.2, "scale": LEVELS, "cv": FOLDS}
    with sklearn.config_context(enable_metadata_routing=routing):
        inner = GaussianNB().set_fit_request(sample_weight=True) if routing else GaussianNB()
        model = ConformalClassifierCV(inner, **options).fit(features, labels, sample_weight=weights)
    folds = [
        GaussianNB()
        .fit(features[train], codes[train], weights[train])
        .predict_proba(features[test])
        for train, test in FOLDS.split(features, codes)
    ]
    rest = np.concatenate([test for _, test in FOLDS.split(features, codes)])
    sets = OrdinalConformalSets(0.2, scale=range(4)).fit(np.concatenate(folds), codes[rest])
    new = GaussianNB().fit(features, codes, weights).predict_proba(features)
    members = model.predict_sets(features).members
    assert members.tolist() == sets.predict(new).members.tolist()
    unweighted = ConformalClassifierCV(GaussianNB(), **options).fit(features, labels)
    assert members.tolist() != unweighted.predict_sets(features).members.tolist()


@each_classifier
def test_it_works_where_estimators_of_scikit_learn_do(model):
    features, _, labels = items()
    frame = pd.DataFrame(features, columns=["length", "age"])
    pipeline = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas")
    pipeline.fit(frame, labels)
    assert pipeline[-1].feature_names_in_.tolist() == ["length", "age"]
    direct = clone(model).fit(StandardScaler().fit_transform(features), labels)
    scaled = StandardScaler().fit_transform(features)
    assert pipeline.predict(frame).tolist() == direct.predict(scaled).tolist()
    html = pipeline._repr_html_()
    assert type(model).__name__ in html
    assert type(getattr(model, "estimator", model)).__name__ in html
    values = cross_val_score(clone(model), features, labels, scoring=scorer("mae", LEVELS))
    assert (values > -1.0).all()


def test_its_options_can_be_searched():
    features, _, labels = items()
    grid = {"metric": ["accuracy", "mae"], "estimator__C": [0.01, 1.0]}
    model = MetricTunedClassifierCV(LogisticRegression(), scale=LEVELS, cv=3)
    search = GridSearchCV(model, grid, scoring=scorer("mae", LEVELS), cv=3).fit(features, labels)
    assert search.best_params_["metric"] in {"accuracy", "mae"}
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_what_cannot_be_learned_says_why():
    features, _, labels = items(40)
    tuned = MetricTunedClassifierCV(LogisticRegression(), scale=LEVELS)
    with pytest.raises(BadScale, match="No scale was declared for the labels"):
        clone(tuned).set_params(scale=None).fit(features, labels)
    with pytest.raises(OffScale, match=r"Label 'top' \(row \d+ of gold\) is not on the scale low"):
        clone(tuned).set_params(scale="low,mid,high").fit(features, labels)
    with pytest.raises(ValueError, match="one class only: 'low'"):
        clone(tuned).set_params(estimator=GaussianNB()).fit(features, ["low"] * 40)
    with pytest.raises(BadOption, match="bias cannot be decoded"):
        clone(tuned).set_params(metric="bias").fit(features, labels)
    for name in ("rps", "ece(bins=5)"):
        with pytest.raises(UnknownMetric, match="is a metric of probabilities, and a metric of la"):
            clone(tuned).set_params(metric=name).fit(features, labels)
    with pytest.raises(BadOption, match="There is no recalibration 'temp'"):
        clone(tuned).set_params(recalibration="temp").fit(features, labels)
    with pytest.raises(ValueError, match="Unknown label type"):  # as scikit-learn has it
        clone(tuned).fit(features, [None, *labels[1:]])
