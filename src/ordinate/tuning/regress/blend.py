"""Blends: a weighted average of models whose weights are learned on rows that none has seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, NoItems

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
SHRINKAGE = (
    0.02  # of the mean square of the members: pulls weights that hardly matter to equal ones
)
SQUARED_SHARE = 0.99  # the share of errors that count squared; larger ones count as they are
TINY = np.finfo(float).tiny
REWEIGHTING_ROUNDS = 12  # of weighing rows again


@dataclass(frozen=True, eq=False)
class Blend:
    """Weights of the members: none is negative, and they sum to 1.

    >>> y = np.array([1.0, 2.0, 3.0, 4.0])
    >>> above, below = y + [1, 2, 1, 2], y - [1, 2, 1, 2]
    >>> Blend.fit(np.column_stack([above, below]), y).weights.round(3).tolist()
    [0.5, 0.5]
    """

    weights: Floats  # [M]

    @classmethod
    def fit(cls, predictions: Any, targets: Any) -> "Blend":
        """Return the weights with the smallest errors on predictions [N, M] of new rows.

        Errors count squared up to the 99th percentile of their size and in proportion beyond it
        (Huber's loss), so that a few rows that nobody can predict do not decide. A little of a
        ridge leads to equal weights where members are alike.
        """
        table, y = _check_predictions(predictions), np.asarray(targets, float)
        if not len(y):
            raise NoItems("There are no rows to learn the weights of a blend from.")
        if len(table) != len(y):
            raise BadInput(f"There are {len(y)} targets, and {len(table)} rows of predictions.")
        return cls(_fit_robust_weights(table - y[:, None]))

    def predict(self, predictions: Any) -> Floats:
        """Return the weighted averages of predictions [N, M]."""
        return np.asarray(_check_predictions(predictions) @ self.weights, float)


def blend_out_of_fold(predictions: Any, targets: Any, folds: Sequence[Rows]) -> Floats:
    """Return blended predictions, those of each fold with weights that the other folds taught.

    With one part alone there is nobody else to learn from: it is halved.
    """
    table, y = _check_predictions(predictions), np.asarray(targets, float)
    folds = list(folds) if len(folds) > 1 else [folds[0][::2], folds[0][1::2]]
    found = np.full(len(y), np.nan)
    for k, own in enumerate(folds):
        others = np.concatenate([fold for j, fold in enumerate(folds) if j != k])
        found[own] = Blend.fit(table[others], y[others]).predict(table[own])
    return found


def _check_predictions(predictions: Any) -> Floats:
    table = np.asarray(predictions, float)
    if table.ndim != 2 or not table.shape[1]:
        raise BadInput(
            f"A blend takes predictions with a column for each model, not {table.shape}."
        )
    return table


def _fit_robust_weights(errors: Floats) -> Floats:
    """Return the weights for errors [N, M]; as they sum to 1, those of the blend are errors @ w."""
    weights = np.full(errors.shape[1], 1.0 / errors.shape[1])
    for _ in range(REWEIGHTING_ROUNDS):
        size = np.abs(errors @ weights)
        large = float(np.quantile(size, SQUARED_SHARE))
        counted = (
            np.minimum(1.0, large / np.maximum(size, TINY)) if large > 0.0 else np.ones(len(size))
        )
        weights = _minimize_on_simplex((errors * counted[:, None]).T @ errors / len(errors))
    return weights


def _minimize_on_simplex(gram: Floats) -> Floats:
    """Return the weights w >= 0 with sum 1 for which w'Gw is smallest.

    Whatever weights minimise w'Gw + c² (Σw - 1)² without being held to a sum are the wanted ones
    times a number: of all weights in one direction, the best have a value that grows with w'Gw.
    """
    from scipy.optimize import nnls

    size = len(gram)
    scale = float(np.trace(gram)) / size
    if scale <= 0.0:  # every member is right everywhere
        return np.full(size, 1.0 / size)
    held = gram / scale + SHRINKAGE * np.eye(size)
    root = np.linalg.cholesky(held).T
    system = np.vstack([root, np.ones(size)])
    found, _ = nnls(system, np.append(np.zeros(size), 1.0))
    weights: Floats = found / found.sum()
    return weights
