"""Regressors: one list of model types, one way to fit, predict, save and load them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ordinate.tuning.models.base import ModelTypes
from ordinate.tuning.models.regressors.boosting import HistBoosting, LightGBM
from ordinate.tuning.models.regressors.kernels import (
    GaussianProcess,
    KernelRidge,
    SupportVectorRegression,
)
from ordinate.tuning.models.regressors.mlp import MLP
from ordinate.tuning.models.regressors.polynomial import PolyRidge
from ordinate.tuning.models.regressors.regressor import Regressor, StepCallback

__all__ = [
    "MODEL_TYPES",
    "Regressor",
    "StepCallback",
    "create_regressor",
    "find_model_type",
    "load_regressor",
]

MODEL_TYPES: ModelTypes[Regressor] = ModelTypes(
    MLP, LightGBM, HistBoosting, GaussianProcess, KernelRidge, SupportVectorRegression, PolyRidge
)


def create_regressor(
    name: str, params: Mapping[str, Any] | None = None, *, seed: int = 0
) -> Regressor:
    """Return a model that has learned nothing yet; parameters not given have their defaults.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> model = create_regressor("poly_ridge", {"degree": 2, "penalty": 1e-6})
    >>> model.fit(x, x[:, 0] ** 2).predict([[0.5]]).round(3).tolist()
    [0.25]
    """
    return MODEL_TYPES[name](params, seed=seed)


def find_model_type(name: str) -> type[Regressor]:
    """Return the class of a model type, with its `space`, `defaults` and `title`."""
    return MODEL_TYPES[name]


def load_regressor(folder: Path) -> Regressor:
    """Return the model saved in a folder; the caller has verified the manifest over it."""
    return MODEL_TYPES.load(folder)
