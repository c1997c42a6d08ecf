"""Scorers: the right values whatever the labels sort to, and what scikit-learn's own would give."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate

import ordinate
from ordinate.errors import BadOption, BadProbabilities, BadScale, UnknownMetric
from ordinate.integrations.sklearn import rps, scorer, scorers

LEVELS = ["low", "mid", "high", "top"]  # sorted: high, low, mid, top
FOLDS = StratifiedKFold(3)


def items(n=180, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 2))
    latent = features @ [1.5, -0.5] + rng.logistic(size=n)
    return features, np.array(LEVELS)[np.searchsorted([-1.0, 0.5, 2.0], latent)]


def naive_quadratic_kappa(gold, predicted, order):
    x, y = (np.array([order.index(label) for label in side]) for side in (gold, predicted))
    observed = np.mean((x - y) ** 2)
    by_chance = np.mean((x[:, None] - y[None, :]) ** 2)
    return 1.0 - observed / by_chance


def naive_rps(gold, rows, columns, order):
    total = 0.0
    for label, row in zip(gold, rows, strict=True):
        probability = dict(zip(columns, row, strict=True))
        for k in range(len(order) - 1):
            below = sum(probability[level] for level in order[: k + 1])
            total += (below - (order.index(label) <= k)) ** 2
    return total / (len(gold) * (len(order) - 1))


def by_fold(value_of, features, labels, strength):
    """Return a number of the model and the test items of each fold."""
    values = []
    for train, test in FOLDS.split(features, labels):
        model = LogisticRegression(C=strength).fit(features[train], labels[train])
        values.append(value_of(model, features[test], labels[test]))
    return values


NAIVE = {
    "quadratic_kappa": lambda m, x, y: naive_quadratic_kappa(y, m.predict(x), LEVELS),
    "mae": lambda m, x, y: (
        -np.mean(
            [abs(LEVELS.index(a) - LEVELS.index(b)) for a, b in zip(y, m.predict(x), strict=True)]
        )
    ),
    "rps": lambda m, x, y: -naive_rps(y, m.predict_proba(x), list(m.classes_), LEVELS),
    "log_loss": lambda m, x, y: -log_loss(y, m.predict_proba(x), labels=m.classes_),
}


@pytest.mark.parametrize("metric", NAIVE)
def test_a_grid_search_has_the_right_value_of_words_that_sort_to_another_order(metric):
    features, labels = items()
    grid = {"C": [0.01, 1.0]}
    search = GridSearchCV(
        LogisticRegression(), grid, scoring=ordinate.scorer(metric, scale=LEVELS), cv=FOLDS
    ).fit(features, labels)
    for place, strength in enumerate(grid["C"]):
        expected = by_fold(NAIVE[metric], features, labels, strength)
        measured = [search.cv_results_[f"split{k}_test_score"][place] for k in range(3)]
        assert measured == pytest.approx(expected, abs=1e-9)
    best = np.argmax([np.mean(by_fold(NAIVE[metric], features, labels, c)) for c in grid["C"]])
    assert search.best_index_ == best


def test_scikit_learns_own_kappa_takes_words_in_alphabetical_order():
    features, labels = items()
    own = make_scorer(cohen_kappa_score, weights="quadratic")
    theirs = cross_val_score(LogisticRegression(), features, labels, scoring=own, cv=FOLDS)
    ours = cross_val_score(
        LogisticRegression(), features, labels, cv=FOLDS, scoring=scorer("quadratic_kappa", LEVELS)
    )
    alphabetical = by_fold(
        lambda m, x, y: naive_quadratic_kappa(y, m.predict(x), sorted(LEVELS)), features, labels, 1
    )
    assert theirs == pytest.approx(alphabetical)
    assert (np.abs(theirs - ours) > 0.05).all()


class InOrderOfTheScale(LogisticRegression):
    """A classifier whose columns stand in the order of the scale, as `classes_` says."""

    def fit(self, X, y):  # noqa: N803 - scikit-learn's name
        super().fit(X, y)
        order = [self.classes_.tolist().index(level) for level in LEVELS]
        self.classes_, self.coef_ = self.classes_[order], self.coef_[order]
        self.intercept_ = self.intercept_[order]
        return self


def test_probabilities_follow_classes_where_scikit_learns_own_scorer_does_not():
    features, labels = items()
    sorted_one, ordered = (
        kind().fit(features, labels) for kind in (LogisticRegression, InOrderOfTheScale)
    )
    assert ordered.classes_.tolist() == LEVELS
    for metric in ("rps", "log_loss"):
        ours = scorer(metric, scale=LEVELS)
        expected = NAIVE[metric](sorted_one, features, labels)
        assert ours(ordered, features, labels) == pytest.approx(expected)
        assert ours(sorted_one, features, labels) == pytest.approx(expected)
    own = sklearn.metrics.get_scorer("neg_log_loss")
    right = -log_loss(labels, sorted_one.predict_proba(features), labels=sorted(LEVELS))
    assert own(sorted_one, features, labels) == pytest.approx(right)
    assert own(ordered, features, labels) < right - 0.4  # columns taken for those of sorted labels


def test_two_classes_and_a_level_that_the_model_never_saw():
    features, labels = items()
    seen = np.isin(labels, ["low", "top"])
    model = LogisticRegression().fit(features[seen], labels[seen])
    rows = model.predict_proba(features)
    padded = np.column_stack([rows[:, 0], np.zeros((len(rows), 2)), rows[:, 1]])
    expected = naive_rps(labels, padded, LEVELS, LEVELS)
    assert -scorer("rps", LEVELS)(model, features, labels) == pytest.approx(expected)


def test_several_scorers_predict_once():
    calls = []

    class Counted(LogisticRegression):
        def predict(self, X):  # noqa: N803 - scikit-learn's name
            calls.append("predict")
            return super().predict(X)

    features, labels = items()
    chosen = scorers("cem_ord,weighted_kappa(power=1),mae,rps,brier", scale=LEVELS)
    assert list(chosen) == ["cem_ord", "weighted_kappa(power=1)", "mae", "rps", "brier"]
    found = cross_validate(Counted(), features, labels, scoring=chosen, cv=FOLDS)
    assert len(calls) == 3
    model_of = {name: f"test_{name}" for name in NAIVE if name in chosen}
    for name, key in model_of.items():
        assert found[key].tolist() == pytest.approx(by_fold(NAIVE[name], features, labels, 1.0))


@pytest.mark.parametrize("metric", ["quadratic_kappa", "rps"])
def test_sample_weights_are_routed_where_they_are_requested(metric):
    features, labels = items()
    weights = np.random.default_rng(1).integers(0, 4, len(labels))
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        weighted = scorer(metric, LEVELS).set_score_request(sample_weight=True)
        found = cross_validate(
            model, features, labels, scoring=weighted, cv=FOLDS, params={"sample_weight": weights}
        )["test_score"]
    for place, (train, test) in enumerate(FOLDS.split(features, labels)):
        fitted = LogisticRegression().fit(features[train], labels[train])
        repeated = test.repeat(weights[test])
        expected = NAIVE[metric](fitted, features[repeated], labels[repeated])
        assert found[place] == pytest.approx(expected)


def test_a_scorer_can_be_pickled_and_shows_how_it_was_made():
    made = scorer("weighted_kappa(power=1)", scale="low,mid,high,top")
    assert repr(made) == "scorer('weighted_kappa(power=1)', scale='low,mid,high,top')"
    features, labels = items()
    model = LogisticRegression().fit(features, labels)
    copy = pickle.loads(pickle.dumps(made))  # noqa: S301 - what this test has made
    assert copy(model, features, labels) == made(model, features, labels)


def test_the_scale_is_declared_or_carried():
    features, labels = items()
    model = LogisticRegression().fit(features, labels)
    with pytest.raises(BadScale, match="No scale was declared for the labels high, low, mid, top"):
        scorer("mae")(model, features, labels)
    named = np.array(["A1", "A2", "B1", "B2"])[[LEVELS.index(label) for label in labels]]
    cefr = LogisticRegression().fit(features, named)
    assert scorer("rps")(cefr, features, named) > -1.0


def test_what_cannot_be_scored_says_why():
    features, labels = items()
    model = LogisticRegression().fit(features, labels)
    with pytest.raises(UnknownMetric, match="no metric 'kapa'"):
        scorer("kapa")
    with pytest.raises(BadOption, match="probabilities of 'top', which is not on the scale low"):
        scorer("rps", LEVELS[:3])(model, features[labels != "top"], labels[labels != "top"])


def test_a_sorted_models_probabilities_need_the_names_of_their_columns():
    features, labels = items()
    model = LogisticRegression().fit(features, labels)
    rows = model.predict_proba(features)
    named = rps(labels, rows, labels=LEVELS, columns=model.classes_)
    assert named == pytest.approx(naive_rps(labels, rows, list(model.classes_), LEVELS))
    with pytest.raises(BadProbabilities, match=r"Add columns=model\.classes_"):
        rps(labels, rows, labels=LEVELS)
