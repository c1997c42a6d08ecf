"""A new model type is one class: all else follows from the base."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ordinate.errors import BadOption, BadStore
from ordinate.tuning.models.base import ModelTypes, Parameter
from ordinate.tuning.models.classifiers.classifier import Classifier
from ordinate.tuning.models.regressors.regressor import Regressor


class Line(Regressor):
    name, title = "line", "Straight line"
    parameters: ClassVar = {"penalty": Parameter(0.1, (0.01, 1.0), taken=(0.0, 10.0))}

    def _fit(self, x, y, _validation, _progress):
        return Ridge(alpha=self.params["penalty"]).fit(x, y)

    def _predict(self, fitted, rows):
        return fitted.predict(rows)

    def _is_valid(self, fitted):
        return fitted.n_features_in_ == self.width


class Plain(Classifier):
    name, title = "plain", "Logistic regression without scaling"
    parameters: ClassVar = {"C": Parameter(1.0, (0.1, 1.0))}

    def _fit(self, matrix, targets, weights):
        return LogisticRegression(C=self.params["C"]).fit(matrix, targets, weights)

    def _predict(self, fitted, rows):
        return fitted.predict_proba(rows)

    def _is_valid(self, fitted):
        return fitted.n_features_in_ == self.width


X = np.random.default_rng(0).normal(size=(40, 2))
LEVELS = np.digitize(X[:, 0], [-0.5, 0.5])
MODELS = {
    "regressor": lambda: Line({"penalty": 1.0}).fit(X, X[:, 0]),
    "classifier": lambda: Plain(size=4).fit(X, LEVELS),
}
TYPES = {"regressor": ModelTypes(Line), "classifier": ModelTypes(Plain)}


@pytest.mark.parametrize("kind", MODELS)
def test_a_new_model_type_is_saved_and_loaded(tmp_path, kind):
    model = MODELS[kind]()
    assert model.save(tmp_path) == ["model.json", "model.skops"]
    loaded = TYPES[kind].load(tmp_path)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.to_facts() == model.to_facts()


def test_a_model_type_that_is_not_listed_is_refused(tmp_path):
    MODELS["regressor"]().save(tmp_path)
    with pytest.raises(BadStore, match=r"no model 'line'\. Known are plain"):
        TYPES["classifier"].load(tmp_path)


def test_a_new_model_type_checks_its_parameters():
    with pytest.raises(BadOption, match="penalty of line takes a number from 0 to 10, not 11"):
        TYPES["regressor"]["line"]({"penalty": 11})
    with pytest.raises(BadOption, match="Did you mean 'line'"):
        TYPES["regressor"]["lines"]


def test_what_predicts_no_numbers_is_not_loaded(tmp_path):
    model = MODELS["classifier"]()
    model.fitted.coef_ = model.fitted.coef_ * np.nan
    model.save(tmp_path)
    with pytest.raises(BadStore, match="does not hold a plain model of 2 features and 3 levels"):
        TYPES["classifier"].load(tmp_path)
