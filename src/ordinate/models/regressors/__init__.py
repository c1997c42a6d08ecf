"""Models of surrogates: one list of kinds, one way to fit, ask, save and load them."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ordinate.errors import BadOption, BadStore, brief, suggest
from ordinate.models.regressors.regressor import Model, Tick, facts_of, installed

__all__ = ["KINDS", "Model", "Tick", "available", "create_model", "kind_of", "load_model"]

# Each kind is imported when it is asked for: that of networks needs torch.
KINDS: dict[str, str] = {
    "mlp": "mlp:MLP",
    "lightgbm": "boosting:LightGBM",
    "hist_boosting": "boosting:HistBoosting",
    "gp": "kernels:GaussianProcess",
    "kernel_ridge": "kernels:KernelRidge",
    "svr": "kernels:SupportVectors",
    "poly_ridge": "polynomial:PolyRidge",
}


def create_model(name: str, params: Mapping[str, Any] | None = None, *, seed: int = 0) -> Model:
    """Return a model that has learned nothing yet; parameters not given have their defaults.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> model = create_model("poly_ridge", {"degree": 2, "penalty": 1e-6})
    >>> model.fit(x, x[:, 0] ** 2).predict([[0.5]]).round(3).tolist()
    [0.25]
    """
    return kind_of(name)(params, seed=seed)


def kind_of(name: str) -> type[Model]:
    """Return the class of a kind, with its `space`, `defaults` and `title`."""
    if name not in KINDS:
        raise BadOption(
            f"There is no model {name!r}. Known are {', '.join(KINDS)}.{suggest(name, list(KINDS))}"
        )
    module, _, called = KINDS[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), called)


def available() -> tuple[str, ...]:
    """Return the kinds whose libraries are installed."""
    needs = {"mlp": ("torch", "safetensors"), "lightgbm": ("sklearn", "lightgbm")}
    usual = ("sklearn", "skops")
    return tuple(name for name in KINDS if all(map(installed, needs.get(name, usual))))


def load_model(folder: Path) -> Model:
    """Return the model saved in a folder; the caller has verified the manifest over it."""
    facts = facts_of(folder)
    if facts["model"] not in KINDS:
        raise BadStore(
            f"{folder} holds a model {brief(facts['model'])}. Known are {', '.join(KINDS)}."
        )
    try:
        model = create_model(facts["model"], facts["params"], seed=facts["seed"])
    except BadOption as reason:
        raise BadStore(f"{folder} is refused: {reason}") from None
    return model.restore(folder, facts)
