"""What a model type is made of: how it is fitted, what it predicts, where it searches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import MissingExtra

Floats = NDArray[np.float64]
OutputType = Literal["probabilities", "scores"]
Params = Mapping[str, Any]

INSTALL_COMMANDS = {"xgboost": "pip install xgboost"}  # others come with the extra
INSTALL_EXTRA = "pip install 'ordinate[tune]'"


class Learner(Protocol):
    """Fits one model type with given parameters, and asks what was fitted."""

    def fit(self, matrix: Any, targets: NDArray[Any], weights: Floats | None) -> Any:
        """Return what was fitted: something that `ordinate.models.model_files` can save."""

    def predict(self, fitted: Any, matrix: Any) -> Floats:
        """Return probabilities [N, P] of the P levels seen in fitting, or scores [N]."""

    def is_valid(self, fitted: Any, *, features: int, seen: int, sparse: bool) -> bool:
        """Tell whether `fit` returns such a thing for so many features and levels seen."""


@dataclass(frozen=True)
class ModelType:
    """A model type that tuning can choose, with its search space.

    `space` asks an Optuna trial for every parameter and returns them; `defaults` is one point of
    it. `likelihood` says that class weights can be undone by division; `calibrated` that its
    probabilities are the model's own, and no guess. Scores become levels by their odds, or are
    `cut` where the metric is best.
    """

    name: str
    title: str
    learner: Callable[[Params, int], Learner]
    space: Callable[[Any], dict[str, Any]]
    defaults: dict[str, Any]
    output_type: OutputType = "probabilities"
    likelihood: bool = False
    calibrated: bool = True
    cut: bool = False
    library: str = "sklearn"

    def check(self) -> None:
        """Complain if the library that it is made with is not installed."""
        if find_spec(self.library) is None:
            line = INSTALL_COMMANDS.get(self.library, INSTALL_EXTRA)
            raise MissingExtra(f"Models of type {self.name} need {self.library}: {line}")


def limit_feature_share(share: float, matrix: Any, most: int) -> float:
    """Return the share of the features to look at: the given one, if these are not too many."""
    return min(share, most / matrix.shape[1])
