"""Ordinal regression with thresholds: one latent score, ordered cuts (proportional odds)."""

from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ordinate.errors import BadOption, shorten
from ordinate.models.classifiers.training_arrays import TrainingArrays, check_penalty, check_steps
from ordinate.postprocess.cumulative_logits import (
    LOSSES,
    Floats,
    compute_level_probabilities,
    fit_cumulative_logits,
    sigmoid,
)


class OrdinalThreshold(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # - untyped
    """Ordinal regression by cumulative logits, with a ridge penalty.

    P(level ≤ k) = σ(θ_k - x·β), θ rising: `coef_` [d] is β, `cuts_` [P - 1] are θ. It minimises the
    sum of the items' losses and penalty / 2 · |β|². `loss` is 'proportional_odds', minus the log
    likelihood, or 'all_threshold', the log losses of all K - 1 events "above this cut". Dense and
    sparse features are taken as they are: scale them first. Labels have their sorted order.

    An item of weight w counts as w items; of weight 0, as none.

    >>> model = OrdinalThreshold(penalty=0.1)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2])
    OrdinalThreshold(penalty=0.1)
    >>> model.predict([[-1.0], [2.5], [9.0]]).tolist()
    [0, 1, 2]
    """

    classes_: NDArray[Any]
    coef_: Floats
    cuts_: Floats
    n_features_in_: int
    n_iter_: int

    def __init__(
        self, *, penalty: float = 1.0, loss: str = "proportional_odds", max_iter: int = 1000
    ) -> None:
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
        self.classes_ = data.classes
        return self

    def predict_latent(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the latent score of each row: the higher, the higher the level."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=float, reset=False) @ self.coef_

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the probability of each level of `classes_`."""
        return compute_level_probabilities(sigmoid(self.predict_latent(X)[:, None] - self.cuts_))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the most probable label, the lowest of equals."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # on classes without an order, which checks use
        return tags
