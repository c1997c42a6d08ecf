"""Metric functions with scikit-learn's signatures."""

import inspect

import numpy as np
import pytest
from naive import NAIVE
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import cross_val_score

import ordinate
from ordinate.errors import BadScale
from ordinate.integrations.sklearn import (
    accuracy_within,
    cem_ord,
    macro_mae,
    quadratic_kappa,
    rps,
    scorer,
)

OF_LABELS = [accuracy_within, macro_mae, cem_ord, quadratic_kappa]
RNG = np.random.default_rng(0)
GOLD, PREDICTED = RNG.integers(1, 6, (2, 60))
WEIGHTS = RNG.integers(0, 4, 60)


@pytest.mark.parametrize("function", OF_LABELS, ids=lambda x: x.__name__)
def test_they_are_the_metrics_of_the_catalogue(function):
    name = function.__name__
    assert function(GOLD, PREDICTED, labels="1..5") == ordinate.score(
        name, GOLD, PREDICTED, scale="1..5"
    )
    weighted = function(GOLD, PREDICTED, labels=[1, 2, 3, 4, 5], sample_weight=WEIGHTS)
    again = function(GOLD.repeat(WEIGHTS), PREDICTED.repeat(WEIGHTS), labels=range(1, 6))
    assert weighted == pytest.approx(again)
    assert type(weighted) is float
    assert name in NAIVE  # so the catalogue's value is that of the definition
    with pytest.raises(BadScale, match="No scale was declared for the labels 1, 2, 3, 4, 5"):
        function(GOLD, PREDICTED)


@pytest.mark.parametrize("function", [*OF_LABELS, rps], ids=lambda x: x.__name__)
def test_signatures_are_those_of_scikit_learn(function):
    first, second, *rest = inspect.signature(function).parameters.values()
    assert first.name == "y_true"
    assert second.name == ("y_prob" if function is rps else "y_pred")
    assert [x.name for x in rest[:2]] == ["labels", "sample_weight"]
    assert all(x.kind is x.KEYWORD_ONLY for x in rest)


def test_kappa_is_scikit_learns_where_that_is_told_all_labels():
    theirs = cohen_kappa_score(GOLD, PREDICTED, labels=[1, 2, 3, 4, 5], weights="quadratic")
    assert quadratic_kappa(GOLD, PREDICTED, labels="1..5") == pytest.approx(theirs)


def test_accuracy_within_takes_a_number_of_levels():
    gaps = np.abs(GOLD - PREDICTED)
    for n in range(5):
        share = accuracy_within(GOLD, PREDICTED, labels="1..5", n=n)
        assert share == pytest.approx(np.mean(gaps <= n))


def test_rps_is_that_of_cumulative_probabilities():
    rows = RNG.dirichlet(np.ones(5), 60)
    below = rows.cumsum(axis=1)[:, :-1]
    expected = ((below - (GOLD[:, None] <= np.arange(1, 5))) ** 2).mean(axis=1)
    assert rps(GOLD, rows, labels="1..5") == pytest.approx(expected.mean())
    assert rps(GOLD, rows, labels="1..5", columns=iter(range(1, 6))) == rps(
        GOLD, rows, labels="1..5"
    )
    weighted = rps(GOLD, rows, labels="1..5", sample_weight=WEIGHTS)
    assert weighted == pytest.approx(np.average(expected, weights=WEIGHTS))


def test_make_scorer_takes_them():
    features = np.column_stack([GOLD + RNG.normal(size=60), RNG.normal(size=60)])
    made = make_scorer(cem_ord, labels="1..5")
    found = cross_val_score(LogisticRegression(), features, GOLD, scoring=made, cv=3)
    ours = cross_val_score(
        LogisticRegression(), features, GOLD, scoring=scorer("cem_ord", "1..5"), cv=3
    )
    assert found.tolist() == ours.tolist()
