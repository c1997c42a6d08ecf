"""Classifiers: one list of model types, one way to fit, predict, save and load them."""

from pathlib import Path
from typing import Any

from ordinate.tuning.models.base import ModelTypes
from ordinate.tuning.models.classifiers.classifier import Classifier
from ordinate.tuning.models.classifiers.linear import (
    SVM,
    FrankHallDecomposition,
    Logistic,
    NaiveBayes,
    RidgeWithCuts,
    Threshold,
)
from ordinate.tuning.models.classifiers.trees import Forest, LightGBM, XGBoost

__all__ = ["MODEL_TYPES", "Classifier", "create_classifier", "find_model_type", "load_classifier"]

MODEL_TYPES: ModelTypes[Classifier] = ModelTypes(
    Logistic,
    Threshold,
    FrankHallDecomposition,
    NaiveBayes,
    SVM,
    Forest,
    LightGBM,
    XGBoost,
    RidgeWithCuts,
)


def find_model_type(name: str) -> type[Classifier]:
    """Return the class of a model type, with its `space`, `defaults` and `title`."""
    return MODEL_TYPES[name]


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
    return MODEL_TYPES[name](params, size=size, seed=seed)


def load_classifier(folder: Path) -> Classifier:
    """Return the model saved in a folder; the caller has verified the manifest over it."""
    return MODEL_TYPES.load(folder)
