"""One model on the full scale: fits features and levels, predicts, is saved and loaded."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, NoItems, OffScale
from ordinate.tuning.experiment.stored_json import Check, at_least
from ordinate.tuning.models.base import Floats, Model, StoredModel

OutputType = Literal["probabilities", "scores"]


class StoredClassifier(StoredModel):
    """What a folder says of the classifier in it."""

    size: int
    present: Annotated[
        list[Annotated[int, at_least(0)]],
        Check("that rise", lambda found: len(found) >= 2 and found == sorted(set(found))),
    ]
    sparse: bool


class Classifier(Model):
    """A classifier with its hyperparameters, for a scale of `size` levels.

    `fit` takes features [N, d], dense or sparse, and positions on the full scale; `predict` gives
    probabilities [N, size], 0 for levels that were never seen, or scores [N].

    `likelihood` says that class weights can be undone by division; `calibrated` that its
    probabilities are the model's own, and no guess. Scores become levels by their odds, or are
    `cut` where the metric is best.
    """

    install: ClassVar[str] = "pip install 'ordinate[tune]'"
    output_type: ClassVar[OutputType] = "probabilities"
    likelihood: ClassVar[bool] = False
    calibrated: ClassVar[bool] = True
    cut: ClassVar[bool] = False
    _stored: ClassVar[Any] = StoredClassifier

    present: NDArray[np.intp]  # positions of the levels that were seen, rising
    sparse: bool

    def __init__(
        self, params: Mapping[str, Any] | None = None, *, size: int, seed: int = 0
    ) -> None:
        super().__init__(params, seed=seed)
        self.size = size
        if self.output_type == "probabilities":
            self._output_shape = (size,)

    def fit(self, matrix: Any, levels: NDArray[Any], weights: Any = None) -> Self:
        """Learn levels from features; an item of weight 0 is none."""
        levels = np.asarray(levels)
        weights = None if weights is None else np.asarray(weights, float)
        self._check_items(matrix, levels)
        if weights is not None and not (there := weights > 0).all():
            matrix, levels, weights = matrix[there], levels[there], weights[there]
        present, codes = np.unique(levels, return_inverse=True)
        if len(present) < 2:
            raise BadInput(
                f"All {len(levels)} training items have one and the same level (position "
                f"{present[0]} of 0 to {self.size - 1}): there is nothing to tell apart. Add items "
                "of other levels, or use fewer folds."
                if len(present)
                else "No training item has a weight above 0: there is nothing to learn from."
            )
        targets = codes if self.output_type == "probabilities" else levels.astype(float)
        self.present, self.width, self.sparse = present, matrix.shape[1], _is_sparse(matrix)
        return self._learn(_prepare_matrix(matrix, sparse=self.sparse), targets, weights)

    def to_facts(self) -> dict[str, Any]:
        """Return what a folder says of the model in it."""
        own = {"size": self.size, "present": self.present.tolist(), "sparse": self.sparse}
        return super().to_facts() | own

    @classmethod
    def from_facts(cls, facts: Any, **options: Any) -> Self:
        """Return the model that a folder tells of; it has learned nothing yet."""
        model = super().from_facts(facts, size=facts["size"], **options)
        model.present, model.sparse = np.array(facts["present"], np.intp), facts["sparse"]
        if model.present[-1] >= model.size:
            raise BadOption(f"Level {model.present[-1]} is beyond its {model.size} levels.")
        return model

    # --- parts -------------------------------------------------------------------------------

    def _check_items(self, matrix: Any, levels: NDArray[Any]) -> None:
        if not len(levels) or not matrix.shape[1]:
            raise NoItems(
                f"There is nothing to fit: {len(levels):,} items with {matrix.shape[1]:,} features."
            )
        if levels.min() < 0 or levels.max() >= self.size:
            raise OffScale(
                f"Level positions run from {levels.min()} to {levels.max()}, and the scale has "
                f"{self.size} levels: 0 to {self.size - 1}."
            )

    def _compute_outputs(self, fitted: Any, x: Any) -> Floats:
        """Return scores, or the probabilities of the levels seen, each in its place."""
        outputs = np.asarray(self._predict(fitted, _prepare_matrix(x, sparse=self.sparse)))
        if self.output_type == "scores":
            return outputs
        rows = np.zeros((len(outputs), self.size))
        rows[:, self.present] = outputs
        return rows / rows.sum(axis=1, keepdims=True)

    def _describe_size(self) -> str:
        return f"{super()._describe_size()} and {len(self.present)} levels"


def _is_sparse(matrix: Any) -> bool:
    from scipy.sparse import issparse

    return bool(issparse(matrix))


def _prepare_matrix(matrix: Any, *, sparse: bool) -> Any:
    """Return features in the form that the model was fitted to, zeros not stored.

    XGBoost takes what a sparse matrix does not store for missing, and 0 in a dense one for 0.
    """
    from scipy.sparse import csr_matrix

    if not sparse:
        return matrix.toarray() if _is_sparse(matrix) else np.asarray(matrix)
    stored = csr_matrix(matrix)
    if stored.nnz and not stored.data.all():
        stored = stored.copy()
        stored.eliminate_zeros()
    return stored
