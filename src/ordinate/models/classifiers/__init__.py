"""Classifiers: one list of model types, one way to fit, predict, save and load them."""

from pathlib import Path
from typing import Any

from ordinate.errors import BadOption, suggest_names
from ordinate.models.classifiers.boosting import LIGHTGBM, XGBOOST
from ordinate.models.classifiers.classifier import Classifier, restore_classifier
from ordinate.models.classifiers.forest import FOREST
from ordinate.models.classifiers.learner import ModelType
from ordinate.models.classifiers.linear import (
    FRANK_HALL,
    LOGISTIC,
    NAIVE_BAYES,
    REGRESSION,
    SVM,
    THRESHOLD,
)

__all__ = ["MODEL_TYPES", "Classifier", "ModelType", "create_classifier", "load_classifier"]

MODEL_TYPES: dict[str, ModelType] = {
    model_type.name: model_type
    for model_type in (
        LOGISTIC,
        THRESHOLD,
        FRANK_HALL,
        NAIVE_BAYES,
        SVM,
        FOREST,
        LIGHTGBM,
        XGBOOST,
        REGRESSION,
    )
}


def create_classifier(
    name: str, params: dict[str, Any] | None = None, *, size: int, seed: int = 0
) -> Classifier:
    """Return a model that has learned nothing yet; parameters not given have their defaults.

    >>> import numpy as np
    >>> model = create_classifier("logistic", {"C": 100.0}, size=4)
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> fitted = model.fit(features, np.array([0, 0, 1, 1, 3, 3]))
    >>> fitted.predict(features).argmax(axis=1).tolist()
    [0, 0, 1, 1, 3, 3]
    """
    if name not in MODEL_TYPES:
        raise BadOption(
            f"There is no model {name!r}. Known are "
            f"{', '.join(MODEL_TYPES)}.{suggest_names(name, list(MODEL_TYPES))}"
        )
    model_type, given = MODEL_TYPES[name], params or {}
    for parameter in given:
        if parameter not in model_type.defaults:
            raise BadOption(
                f"{name} has no parameter {parameter!r}. It has {', '.join(model_type.defaults)}."
                f"{suggest_names(parameter, list(model_type.defaults))}"
            )
    model_type.check()
    return Classifier(model_type, model_type.defaults | given, size=size, seed=seed)


def load_classifier(folder: Path) -> Classifier:
    """Return the model saved in a folder, whose manifest is checked before anything is opened."""
    return restore_classifier(folder, MODEL_TYPES)
