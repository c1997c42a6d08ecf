"""Models that tuning chooses from: one list of kinds, one way to fit, ask, save and load them."""

from pathlib import Path
from typing import Any

from ordinate.errors import BadOption, suggest
from ordinate.models.classifiers.bayes_and_forest import FOREST, NAIVE_BAYES
from ordinate.models.classifiers.boosting import LIGHTGBM, XGBOOST
from ordinate.models.classifiers.classifier import Model, restored
from ordinate.models.classifiers.learner import Kind
from ordinate.models.classifiers.linear import FRANK_HALL, LOGISTIC, REGRESSION, SVM, THRESHOLD

__all__ = ["KINDS", "Kind", "Model", "create", "load"]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
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


def create(name: str, params: dict[str, Any] | None = None, *, size: int, seed: int = 0) -> Model:
    """Return a model that has learned nothing yet; parameters not given have their defaults.

    >>> import numpy as np
    >>> model = create("logistic", {"C": 100.0}, size=4)
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> fitted = model.fit(features, np.array([0, 0, 1, 1, 3, 3]))
    >>> fitted.answers(features).argmax(axis=1).tolist()
    [0, 0, 1, 1, 3, 3]
    """
    if name not in KINDS:
        raise BadOption(
            f"There is no model {name!r}. Known are {', '.join(KINDS)}.{suggest(name, list(KINDS))}"
        )
    kind, given = KINDS[name], params or {}
    for wanted in given:
        if wanted not in kind.defaults:
            raise BadOption(
                f"{name} has no parameter {wanted!r}. It has {', '.join(kind.defaults)}."
                f"{suggest(wanted, list(kind.defaults))}"
            )
    kind.check()
    return Model(kind, kind.defaults | given, size=size, seed=seed)


def load(folder: Path) -> Model:
    """Return the model saved in a folder, whose manifest is checked before anything is opened."""
    return restored(folder, KINDS)
