"""One model on the full scale: fits features and levels, predicts, is saved and loaded."""

from pathlib import Path
from typing import Annotated, Any, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadStore, NoItems, NotFitted, OffScale
from ordinate.experiment import safe_files
from ordinate.experiment.library_warnings import collect_warnings
from ordinate.experiment.stored_json import Check, at_least, read_json
from ordinate.experiment.workers import limit_to_one_thread
from ordinate.models import model_files
from ordinate.models.classifiers.learner import Floats, ModelType

FACTS_FILE = "model.json"
RESTORE_HINT = "Tune again, or restore the folder."


class Classifier:
    """A model type with its parameters, for a scale of `size` levels.

    `fit` takes features [N, d], dense or sparse, and positions on the full scale; `predict` gives
    probabilities [N, size], 0 for levels that were never seen, or scores [N]. Both use one thread.
    `notes` has what libraries warned of in fitting.
    """

    present: NDArray[np.intp]  # positions of the levels that were seen, rising
    width: int  # features
    sparse: bool

    def __init__(
        self, model_type: ModelType, params: dict[str, Any], *, size: int, seed: int
    ) -> None:
        self.model_type = model_type
        self.params = params
        self.size = size
        self.seed = seed
        self.notes: tuple[str, ...] = ()
        self.fitted: Any = None
        self._learner = model_type.learner(params, seed)

    def fit(self, matrix: Any, levels: NDArray[Any], weights: Any = None) -> Self:
        """Learn levels from features; an item of weight 0 is none."""
        levels = np.asarray(levels)
        weights = None if weights is None else np.asarray(weights, float)
        self._check(matrix, levels)
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
        targets = codes if self.model_type.output_type == "probabilities" else levels.astype(float)
        self.present, self.width, self.sparse = present, matrix.shape[1], _is_sparse(matrix)
        with collect_warnings() as notes, limit_to_one_thread():
            self.fitted = self._learner.fit(
                _prepare_matrix(matrix, sparse=self.sparse), targets, weights
            )
        self.notes = tuple(notes)
        return self

    def predict(self, matrix: Any) -> Floats:
        """Return probabilities [N, size] of all levels of the scale, or scores [N]."""
        if self.fitted is None:
            raise NotFitted("This model has learned nothing yet: call fit first.")
        if matrix.shape[1] != self.width:
            raise BadInput(
                f"The model was fitted to {self.width:,} features, and these rows have "
                f"{matrix.shape[1]:,}. Make the features with the extractor of the training data."
            )
        if not matrix.shape[0]:
            return (
                np.empty((0, self.size))
                if self.model_type.output_type == "probabilities"
                else np.empty(0)
            )
        with collect_warnings(), limit_to_one_thread():
            given = self._learner.predict(self.fitted, _prepare_matrix(matrix, sparse=self.sparse))
        return (
            self._expand_to_scale(given)
            if self.model_type.output_type == "probabilities"
            else np.asarray(given)
        )

    def save(self, folder: Path) -> list[str]:
        """Write the model's files into a folder and return their names."""
        if self.fitted is None:
            raise NotFitted("This model has learned nothing yet, and cannot be saved.")
        facts = {
            "model_type": self.model_type.name,
            "params": self.params,
            "size": self.size,
            "seed": self.seed,
            "present": self.present.tolist(),
            "features": self.width,
            "sparse": self.sparse,
            "notes": list(self.notes),
        }
        safe_files.write_json(folder / FACTS_FILE, facts)
        return [FACTS_FILE, *model_files.save_fitted(self.fitted, folder)]

    def take(self, fitted: Any, folder: Path) -> None:
        """Take up what was loaded from a folder, if it is what this model type makes."""
        try:
            right = self._learner.is_valid(
                fitted, features=self.width, seen=len(self.present), sparse=self.sparse
            )
        except (AttributeError, TypeError, ValueError, KeyError):  # it is something else
            right = False
        if not right:
            raise BadStore(
                f"{folder} does not hold a {self.model_type.name} model of {self.width:,} features "
                f"and {len(self.present)} levels, as its {FACTS_FILE} says. Tune again, or "
                "restore the folder."
            )
        self.fitted = fitted

    # --- parts -------------------------------------------------------------------------------

    def _check(self, matrix: Any, levels: NDArray[Any]) -> None:
        if not len(levels) or not matrix.shape[1]:
            raise NoItems(
                f"There is nothing to fit: {len(levels):,} items with {matrix.shape[1]:,} features."
            )
        if levels.min() < 0 or levels.max() >= self.size:
            raise OffScale(
                f"Level positions run from {levels.min()} to {levels.max()}, and the scale has "
                f"{self.size} levels: 0 to {self.size - 1}."
            )

    def _expand_to_scale(self, seen: Floats) -> Floats:
        """Return the probabilities of the levels seen, each in its place on the full scale."""
        rows = np.zeros((len(seen), self.size))
        rows[:, self.present] = seen
        return rows / rows.sum(axis=1, keepdims=True)


def _rises(positions: list[int]) -> bool:
    return len(positions) >= 2 and positions == sorted(set(positions))


def restore_classifier(folder: Path, model_types: dict[str, ModelType]) -> Classifier:
    """Return the model in a folder, once its files are what the manifest says."""
    facts = _read_facts(folder / FACTS_FILE, model_types)
    model_type = model_types[facts["model_type"]]
    model_type.check()
    try:
        model = Classifier(model_type, facts["params"], size=facts["size"], seed=facts["seed"])
    except (KeyError, TypeError, ValueError):  # parameters that the model type cannot have
        raise _build_facts_error(folder / FACTS_FILE) from None
    model.present = np.array(facts["present"], np.intp)
    model.width, model.sparse = facts["features"], facts["sparse"]
    with collect_warnings() as notes:  # of a library that has another version now
        model.take(model_files.load_fitted(folder), folder)
    model.notes = (*facts["notes"], *notes)
    return model


class _Facts(TypedDict):
    model_type: str
    params: dict[str, Any]
    size: int
    seed: int
    present: Annotated[list[Annotated[int, at_least(0)]], Check("that rise", _rises)]
    features: int
    sparse: bool
    notes: list[str]


def _read_facts(path: Path, model_types: dict[str, ModelType]) -> _Facts:
    facts = read_json(path, _Facts, advice=RESTORE_HINT)
    known = facts["model_type"] in model_types and facts["present"][-1] < facts["size"]
    if not known or facts["params"].keys() != model_types[facts["model_type"]].defaults.keys():
        raise _build_facts_error(path)
    return facts


def _build_facts_error(path: Path) -> BadStore:
    return BadStore(f"{path} does not say what the model is. {RESTORE_HINT}")


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
