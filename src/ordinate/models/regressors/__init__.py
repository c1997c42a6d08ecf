"""Regressors: one list of model types, one way to fit, predict, save and load them."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ordinate.errors import BadOption, BadStore, shorten, suggest_names
from ordinate.models.regressors.regressor import Regressor, StepCallback, is_installed, read_facts

__all__ = [
    "MODEL_TYPES",
    "Regressor",
    "StepCallback",
    "create_regressor",
    "find_model_type",
    "list_available_types",
    "load_regressor",
]

# Each model type is imported when it is asked for: that of networks needs torch.
MODEL_TYPES: dict[str, str] = {
    "mlp": "mlp:MLP",
    "lightgbm": "boosting:LightGBM",
    "hist_boosting": "boosting:HistBoosting",
    "gp": "kernels:GaussianProcess",
    "kernel_ridge": "kernels:KernelRidge",
    "svr": "kernels:SupportVectorRegression",
    "poly_ridge": "polynomial:PolyRidge",
}


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
    return find_model_type(name)(params, seed=seed)


def find_model_type(name: str) -> type[Regressor]:
    """Return the class of a model type, with its `space`, `defaults` and `title`."""
    if name not in MODEL_TYPES:
        raise BadOption(
            f"There is no model {name!r}. Known are "
            f"{', '.join(MODEL_TYPES)}.{suggest_names(name, list(MODEL_TYPES))}"
        )
    module, _, called = MODEL_TYPES[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), called)


def list_available_types() -> tuple[str, ...]:
    """Return the model types whose libraries are installed."""
    needs = {
        "mlp": ["torch", "safetensors"],
        "lightgbm": ["lightgbm"],
        "hist_boosting": ["sklearn"],
    }
    usual = ["sklearn", "skops"]
    return tuple(name for name in MODEL_TYPES if all(map(is_installed, needs.get(name, usual))))


def load_regressor(folder: Path) -> Regressor:
    """Return the model saved in a folder; the caller has verified the manifest over it."""
    facts = read_facts(folder)
    if facts["model"] not in MODEL_TYPES:
        raise BadStore(
            f"{folder} holds a model {shorten(facts['model'])}. Known are {', '.join(MODEL_TYPES)}."
        )
    try:
        model = create_regressor(facts["model"], facts["params"], seed=facts["seed"])
    except BadOption as reason:
        raise BadStore(f"{folder} is refused: {reason}") from None
    return model.restore(folder, facts)
