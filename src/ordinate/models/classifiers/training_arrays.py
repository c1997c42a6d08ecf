"""What the estimators of this package are fitted to, checked as scikit-learn does."""

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from ordinate.errors import BadOption, shorten


class TrainingArrays(NamedTuple):
    """Items with a weight above 0: features, places among the sorted labels, weights."""

    matrix: Any
    codes: NDArray[np.intp]
    weights: NDArray[np.float64]
    classes: NDArray[Any]

    @classmethod
    def of(cls, estimator: Any, features: Any, labels: Any, weights: Any) -> Self:
        """Check features, labels and weights, and leave out items of weight 0."""
        matrix, column = validate_data(
            estimator, features, labels, accept_sparse="csr", dtype=float, multi_output=False
        )
        check_classification_targets(column)
        weighed = _check_sample_weight(weights, matrix, dtype=float, ensure_non_negative=True)
        if not (there := weighed > 0).all():
            matrix, column, weighed = matrix[there], column[there], weighed[there]
        classes, codes = np.unique(column, return_inverse=True)
        if len(classes) < 2:
            only = (
                f"one class only: {shorten(classes[0])}" if len(classes) else "no class: no weight"
            )
            name = type(estimator).__name__
            raise ValueError(f"{name} cannot learn from {only}. Pass items of two classes or more.")
        return cls(matrix, codes, weighed, classes)


def check_penalty(penalty: Any) -> float:
    """Return the ridge penalty as a number."""
    if not isinstance(penalty, Real) or not 0.0 <= float(penalty) < np.inf:
        raise BadOption(f"penalty={shorten(penalty)} is not a finite number of at least 0.")
    return float(penalty)


def check_steps(steps: Any) -> int:
    """Return the largest number of steps as a number."""
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise BadOption(f"max_iter={shorten(steps)} is not a whole number of at least 1.")
    return int(steps)
