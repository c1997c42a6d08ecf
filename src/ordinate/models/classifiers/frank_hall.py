"""Frank–Hall decomposition: one logistic regression for each event "above this level"."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ordinate.models.classifiers.training_arrays import TrainingArrays, check_penalty, check_steps
from ordinate.postprocess.cumulative_logits import (
    Floats,
    compute_level_probabilities,
    fit_cumulative_logits,
    sigmoid,
)


class FrankHall(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # - untyped
    """Ordinal classification by P - 1 logistic regressions, each for "above this level".

    Each has its own coefficients: `coef_` [P - 1, d], and its own cut: `cuts_` [P - 1]. Where the
    probabilities of a row rise from one event to the next, which cannot be, they are replaced by
    the nearest ones that do not. `penalty` is that of each regression: penalty / 2 · |β|² beside
    the sum of the items' losses. Labels have their sorted order.

    >>> model = FrankHall(penalty=0.1)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2])
    FrankHall(penalty=0.1)
    >>> model.predict([[-1.0], [2.5], [9.0]]).tolist()
    [0, 1, 2]
    """

    classes_: NDArray[Any]
    coef_: Floats
    cuts_: Floats
    n_features_in_: int
    n_iter_: int

    def __init__(self, *, penalty: float = 1.0, max_iter: int = 1000) -> None:
        self.penalty = penalty
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Fit to features [N, d] and labels."""
        data = TrainingArrays.of(self, X, y, sample_weight)
        penalty, steps = check_penalty(self.penalty), check_steps(self.max_iter)
        fits = [
            fit_cumulative_logits(
                data.matrix,
                (data.codes > event).astype(np.intp),
                data.weights,
                penalty=penalty,
                steps=steps,
            )
            for event in range(len(data.classes) - 1)
        ]
        self.coef_ = np.array([coefficients for coefficients, _, _ in fits])
        self.cuts_ = np.concatenate([cut for _, cut, _ in fits])
        self.n_iter_ = max(steps for _, _, steps in fits)
        self.classes_ = data.classes
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the probability of each level of `classes_`."""
        check_is_fitted(self)
        matrix = validate_data(self, X, accept_sparse="csr", dtype=float, reset=False)
        return compute_level_probabilities(
            project_to_falling(sigmoid(matrix @ self.coef_.T - self.cuts_))
        )

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the most probable label, the lowest of equals."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def project_to_falling(rows: Floats) -> Floats:
    """Return the nearest rows (by squares) that never rise: isotonic regression of each row.

    Its value at k is the largest, over ends j ≥ k, of the smallest mean over starts i ≤ k.

    >>> project_to_falling(np.array([[0.9, 0.2, 0.4], [0.9, 0.5, 0.1]])).round(3).tolist()
    [[0.9, 0.3, 0.3], [0.9, 0.5, 0.1]]
    """
    count = rows.shape[1]
    sums = np.hstack([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)])
    repaired = np.empty_like(rows)
    for k in range(count):
        ends = np.arange(k + 1, count + 1)
        smallest = np.full((len(rows), len(ends)), np.inf)
        for start in range(k + 1):
            means = (sums[:, ends] - sums[:, [start]]) / (ends - start)
            np.minimum(smallest, means, out=smallest)
        repaired[:, k] = smallest.max(axis=1)
    crossing = (np.diff(rows, axis=1) > 0).any(axis=1, keepdims=True)
    return np.where(crossing, repaired, rows)
