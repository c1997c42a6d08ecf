"""Ordinal regression as estimators of scikit-learn: thresholds, and Frank–Hall decomposition."""

from collections.abc import Hashable, Iterable
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ordinate.errors import BadOption, shorten
from ordinate.postprocess.cumulative_logits import (
    LOSSES,
    Floats,
    compute_level_probabilities,
    fit_cumulative_logits,
    sigmoid,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries.tabulation import encode_positions

ScaleDeclaration = Scale | str | Iterable[Hashable] | None


class _OrdinalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # - untyped
    """What both have: labels of a scale, sparse features, the most probable label.

    `classes_` are the sorted labels, as everywhere in scikit-learn, and so are the columns of
    `predict_proba`; `ranks_` say where each of them stands among the levels.
    """

    classes_: NDArray[Any]
    ranks_: NDArray[np.intp]
    coef_: Floats
    cuts_: Floats
    n_features_in_: int
    n_iter_: int

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the most probable label, the lowest of equals."""
        best = self._compute_level_probabilities(X).argmax(axis=1)
        return self.classes_[self.ranks_.argsort()[best]]

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the probability of each label of `classes_`."""
        return self._compute_level_probabilities(X)[:, self.ranks_]

    def _compute_level_probabilities(self, features: Any) -> Floats:
        """Return the probability of each level, lowest first."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OrdinalThresholdClassifier(_OrdinalClassifier):
    """Ordinal regression by cumulative logits, with a ridge penalty.

    P(level ≤ k) = σ(θ_k - x·β), θ rising: `coef_` [d] is β, `cuts_` [P - 1] are θ. It minimises the
    sum of the items' losses and penalty / 2 · |β|². `loss` is 'proportional_odds', minus the log
    likelihood, or 'all_threshold', the log losses of all K - 1 events "above this cut". Dense and
    sparse features are taken as they are: standardise them first. `scale` declares the order of the
    labels; numbers need none, and neither do ordered categoricals and labels of one preset.

    An item of weight w counts as w items; of weight 0, as none.

    >>> model = OrdinalThresholdClassifier(penalty=0.1)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2])
    OrdinalThresholdClassifier(penalty=0.1)
    >>> model.predict([[-1.0], [2.5], [9.0]]).tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        *,
        scale: ScaleDeclaration = None,
        penalty: float = 1.0,
        loss: str = "proportional_odds",
        max_iter: int = 1000,
    ) -> None:
        self.scale = scale
        self.penalty = penalty
        self.loss = loss
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Fit to features [N, d] and labels."""
        if self.loss not in LOSSES:
            raise BadOption(f"loss={shorten(self.loss)} is none of {', '.join(LOSSES)}.")
        data = TrainingArrays.of(self, X, y, sample_weight)
        self.coef_, self.cuts_, self.n_iter_ = fit_cumulative_logits(
            data.matrix,
            data.codes,
            data.weights,
            penalty=check_penalty(self.penalty),
            loss=LOSSES[self.loss],
            steps=check_steps(self.max_iter),
        )
        self.classes_, self.ranks_ = data.classes, data.ranks
        return self

    def predict_latent(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the latent score of each row: the higher, the higher the level."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=float, reset=False) @ self.coef_

    def _compute_level_probabilities(self, features: Any) -> Floats:
        return compute_level_probabilities(
            sigmoid(self.predict_latent(features)[:, None] - self.cuts_)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on classes without an order, which checks use
        return tags


class FrankHallClassifier(_OrdinalClassifier):
    """Ordinal classification by P - 1 logistic regressions, each for "above this level".

    Each has its own coefficients: `coef_` [P - 1, d], and its own cut: `cuts_` [P - 1]. Where the
    probabilities of a row rise from one event to the next, which cannot be, they are replaced by
    the nearest ones that do not. `penalty` is that of each regression: penalty / 2 · |β|² beside
    the sum of the items' losses. `scale` declares the order of the labels, as in
    `OrdinalThresholdClassifier`.

    >>> model = FrankHallClassifier(penalty=0.1)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2])
    FrankHallClassifier(penalty=0.1)
    >>> model.predict([[-1.0], [2.5], [9.0]]).tolist()
    [0, 1, 2]
    """

    def __init__(
        self, *, scale: ScaleDeclaration = None, penalty: float = 1.0, max_iter: int = 1000
    ) -> None:
        self.scale = scale
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
        self.classes_, self.ranks_ = data.classes, data.ranks
        return self

    def _compute_level_probabilities(self, features: Any) -> Floats:
        check_is_fitted(self)
        matrix = validate_data(self, features, accept_sparse="csr", dtype=float, reset=False)
        return compute_level_probabilities(
            project_to_falling(sigmoid(matrix @ self.coef_.T - self.cuts_))
        )


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


# --- training data -------------------------------------------------------------------------------


class TrainingArrays(NamedTuple):
    """Items with a weight above 0: features, places among the levels, weights."""

    matrix: Any
    codes: NDArray[np.intp]
    weights: NDArray[np.float64]
    classes: NDArray[Any]  # sorted
    ranks: NDArray[np.intp]  # of the sorted labels among the levels

    @classmethod
    def of(cls, estimator: Any, features: Any, labels: Any, weights: Any) -> Self:
        """Check features, labels and weights, and leave out items of weight 0."""
        matrix, column = validate_data(
            estimator, features, labels, accept_sparse="csr", dtype=float, multi_output=False
        )
        check_classification_targets(column)
        item_weights = _check_sample_weight(weights, matrix, dtype=float, ensure_non_negative=True)
        if not (there := item_weights > 0).all():
            matrix, column, item_weights = matrix[there], column[there], item_weights[there]
        classes, places = np.unique(column, return_inverse=True)
        if len(classes) < 2:
            only = (
                f"one class only: {shorten(classes[0])}" if len(classes) else "no class: no weight"
            )
            name = type(estimator).__name__
            raise ValueError(f"{name} cannot learn from {only}. Pass items of two classes or more.")
        ranks = rank_classes(classes, estimator.scale, labels)
        return cls(matrix, ranks[places], item_weights, classes, ranks)


def rank_classes(classes: NDArray[Any], scale: ScaleDeclaration, labels: Any) -> NDArray[np.intp]:
    """Return where each of the sorted labels stands among them in the order of the scale.

    Numbers have an order of their own, and the distances between levels play no part here.

    >>> rank_classes(np.array(["high", "low", "mid"]), "low,mid,high", None).tolist()
    [2, 0, 1]
    """
    if scale is None and all(isinstance(label, Real | np.bool) for label in classes):
        return np.arange(len(classes))
    positions = encode_positions(resolve_scale(scale, labels), classes, "the sorted labels")
    return positions.argsort().argsort()


def check_penalty(penalty: Any) -> float:
    """Return the ridge penalty as a number."""
    if not isinstance(penalty, Real) or not 0.0 <= float(penalty) < np.inf:
        raise BadOption(f"penalty={shorten(penalty)} is not a finite number of at least 0.")
    return float(penalty)


def check_steps(steps: Any) -> int:
    """Return the largest number of steps as a number."""
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise BadOption(f"max_iter={shorten(steps)} is not an integer of at least 1.")
    return int(steps)
