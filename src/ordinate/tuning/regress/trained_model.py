"""Saved regression models: read with care, and asked for predictions with their intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadInput,
    BadStore,
    BadValues,
    OrdinateError,
    shorten,
)
from ordinate.postprocess.conformal_sets import check_alpha
from ordinate.summaries.tabulation import RowPolicy
from ordinate.tuning.experiment.stored_json import DISTINCT, Check, at_least, at_most, decode
from ordinate.tuning.models.regressors import Regressor, load_regressor
from ordinate.tuning.regress.fitting import Floats, ModelInputs, predict_in_unit
from ordinate.tuning.regress.prediction_intervals import (
    IntervalCalibration,
    compute_spread,
    load_calibration,
)
from ordinate.tuning.regress.table import read_new_rows
from ordinate.tuning.search.prediction_table import PredictionTable
from ordinate.tuning.search.saved_models import (
    DESCRIPTION_FILE,
    MODEL_FOLDER,
    read_description,
    resolve_model_name,
)
from ordinate.tuning.search.tuning_result import TuningResult

TASK, BLEND = "regression", "blend"
ADVICE = "Train again, or restore the folder."
WEIGHT_SUM_TOLERANCE = 1e-6  # how far weights may be from 1 in sum
# In standard deviations of a feature in training: what a note names, and what no model answers.
FAR_DISTANCE, FURTHEST_DISTANCE = 10.0, 1e100
SHOWN_FEATURES = 5  # features that a note lists


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(PredictionTable):
    """Predictions with their intervals, row by row; `spread` is how far members lie apart.

    `places` are the rows of the data that they are of, from 1; `kept` are columns of ids, and of
    targets where there are some.
    """

    values: Floats
    lower: Floats
    upper: Floats
    spread: Floats | None
    alpha: float
    notes: tuple[str, ...] = ()
    places: NDArray[np.intp] | None = None
    kept: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a file of predictions."""
        rows = np.arange(1, len(self) + 1) if self.places is None else self.places
        found = {"prediction": self.values, "lower": self.lower, "upper": self.upper}
        found |= {} if self.spread is None else {"spread": self.spread}
        return {"row": rows} | dict(self.kept) | found


def _describe_rows(where: NDArray[np.bool_]) -> str:
    """Say how many rows have one of some values [N, d]."""
    return f"{int(where.any(axis=1).sum()):,} of {len(where):,} rows"


@dataclass(frozen=True, eq=False)
class RegressionModel:
    """A saved regression model: one, or a blend of several, with what calibrates its intervals."""

    name: str
    config: Mapping[str, Any]
    calibration: IntervalCalibration
    models: tuple[tuple[Regressor, ModelInputs], ...]

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the columns that it needs, in their order."""
        return tuple(self.config["features"])

    @property
    def target(self) -> str:
        """The name of the column that it predicts."""
        return str(self.config["target"])

    @property
    def unit(self) -> str | None:
        """The unit of its predictions."""
        return self.config["unit"]

    @property
    def weights(self) -> Floats:
        """The weight of each model."""
        return np.asarray(self.config.get("weights", [1.0]), float)

    def predict(self, features: Any, alpha: float | None = None) -> Predictions:
        """Predict rows of features [N, d] in the order of the names.

        The intervals leave out a share alpha of new targets, if rows come from where those of the
        training data came from.
        """
        x = np.asarray(features, float)
        if x.ndim != 2 or x.shape[1] != len(self.features):
            raise BadInput(
                f"{self.name} takes rows of {len(self.features)} features "
                f"({', '.join(self.features)}), not an array of the shape {x.shape}."
            )
        level = float(self.config["alpha"]) if alpha is None else alpha
        self._check_finite(x)
        away = self._compute_distances(x)
        values, spread = self._predict_finite(x, away)
        band = self.calibration.intervals(values, spread, alpha=level)
        notes = (
            *band.notes,
            *self._describe_marked_rows(x),
            *self._describe_changed_constants(x),
            *self._describe_far_rows(away),
        )
        return Predictions(values, band.lower, band.upper, spread, level, notes)

    def predict_table(
        self,
        data: Any,
        alpha: float | None = None,
        *,
        id_column: str | None = None,
        missing: RowPolicy = "error",
        **files: Any,
    ) -> Predictions:
        """Predict the rows of a file or a data frame; ids and targets stay beside them.

        `files` say how a text file is written, as decimal="," does, or which sheet it is.
        """
        rows = read_new_rows(
            data,
            self.features,
            self.target,
            id_column=id_column,
            missing=missing,
            **files,
        )
        if twice := {"row", "prediction", "lower", "upper", "spread"} & rows.kept.keys():
            raise BadInput(
                f"The column {shorten(min(twice))} is called as one of the predictions is, and "
                "both would stand in one table. Rename it."
            )
        found = self.predict(rows.features, alpha)
        notes = (*rows.notes, *found.notes)
        return replace(found, notes=notes, places=rows.rows, kept=rows.kept)

    def _check_finite(self, x: Floats) -> None:
        """Refuse what no training row had: where it goes in a tree, say, is arbitrary."""
        for row, column in np.argwhere(~np.isfinite(x))[:1]:
            raise BadValues(
                f"Row {row + 1} has {x[row, column]} in {shorten(self.features[column])}, which is "
                "no finite number."
            )

    def _compute_distances(self, x: Floats) -> Floats:
        """Return how far values [N, d] lie from the means of training, in standard deviations."""
        with np.errstate(over="ignore"):  # what is too far even for a number is infinitely far
            return np.max([np.abs(one.scaled.features(x)) for _, one in self.models], axis=0)

    def _describe_far_rows(self, away: Floats) -> list[str]:
        """Say how many rows lie far from those that were learned from, and in what."""
        far = away > FAR_DISTANCE
        if not far.any():
            return []
        told = (
            f"{_describe_rows(far)} lie more than {FAR_DISTANCE:g} standard deviations from the "
            f"mean of the training rows, in {self._columns(far)}: nothing like them was learned "
            "from, and their intervals promise nothing."
        )
        return [told]

    def _describe_changed_constants(self, x: Floats) -> list[str]:
        """Say how many rows differ in what never varied in training."""
        changed = np.any([one.scaled.changed(x) for _, one in self.models], axis=0)
        if not changed.any():
            return []
        told = (
            f"{_describe_rows(changed)} differ in {self._columns(changed)} from all training rows, "
            "which are alike in it: what that changes is not known, and they are predicted as if "
            "it had not changed."
        )
        return [told]

    def _columns(self, where: NDArray[np.bool_]) -> str:
        """Name the columns of some values [N, d]."""
        names = [shorten(self.features[column]) for column in np.flatnonzero(where.any(axis=0))]
        more = f" and {len(names) - SHOWN_FEATURES:,} more" if len(names) > SHOWN_FEATURES else ""
        return f"{', '.join(names[:SHOWN_FEATURES])}{more}"

    def _describe_marked_rows(self, x: Floats) -> list[str]:
        """Say how many rows lie on the lattice, where models are told."""
        given = [inputs for _, inputs in self.models if inputs.lattice is not None]
        if not given or not len(x):
            return []
        marked = int(np.any([inputs.mark_rows(x) for inputs in given], axis=0).sum())
        note = (
            f"{marked:,} of {len(x):,} rows lie on the lattice of the training rows, and are "
            "predicted as rows from there, the others as rows from elsewhere: that says where rows "
            "come from, and is no law."
        )
        return [note]

    def _predict_finite(self, x: Floats, away: Floats) -> tuple[Floats, Floats | None]:
        """Return predictions and spreads, once all are finite."""
        if not len(x):
            return self._predict_no_rows()
        furthest = int(np.argmax(away.max(axis=1)))
        if away[furthest].max() > FURTHEST_DISTANCE:
            raise self._explain_distance(x, away, furthest)
        try:
            with np.errstate(all="ignore"):
                values, spread = self._predict_blend(x)
        except (ValueError, ArithmeticError) as problem:
            if isinstance(problem, OrdinateError) or away.max() <= FAR_DISTANCE:
                raise
            raise self._explain_distance(
                x, away, furthest
            ) from None  # numbers of a library ran over
        sound = np.isfinite(values if spread is None else values + spread)
        first = int(np.argmin(sound))
        if not sound[first] and away[first].max() > FAR_DISTANCE:
            raise self._explain_distance(x, away, first)
        return values, spread

    def _predict_no_rows(self) -> tuple[Floats, Floats | None]:
        """Return the answer to no rows, which not every library takes."""
        apart = "weights" in self.config or hasattr(self.models[0][0], "spread")
        return np.empty(0), np.empty(0) if apart else None

    def _explain_distance(self, x: Floats, away: Floats, row: int) -> BadValues:
        column = int(np.argmax(away[row]))
        name = shorten(self.features[column])
        return BadValues(
            f"Row {row + 1} lies too far from what was learned: {x[row, column]:g} in {name} is "
            f"{away[row, column]:.3g} standard deviations from the mean of the training rows."
        )

    def _predict_blend(self, x: Floats) -> tuple[Floats, Floats | None]:
        found = [predict_in_unit(model, inputs, x) for model, inputs in self.models]
        if "weights" not in self.config:
            return found[0]
        table = np.column_stack([values for values, _ in found])
        own = [np.zeros(len(x)) if spread is None else spread for _, spread in found]
        spread = compute_spread(table, self.weights, np.column_stack(own))
        return table @ self.weights, spread


def predict_regression(
    folder: Path | str | TuningResult,
    data: Any,
    *,
    model: str | None = None,
    alpha: float | None = None,
    **options: Any,
) -> Predictions:
    """Predict the rows of a file or a data frame with a saved model: the latest winner, or another.

    `model` is its name, or how that alone begins. Intervals leave out a share `alpha` of targets.
    `options` are those of `RegressionModel.predict_table`: `id_column`, `missing`, and how a text
    file is written.

    >>> from ordinate.examples import locate_example
    >>> from ordinate.tuning.regress import tune_regression
    >>> table = locate_example("densities")
    >>> tuned = tune_regression(table, "density", unit="kg/m³", models="poly_ridge", trials=1)
    >>> found = predict_regression(tuned, table, alpha=0.2)
    >>> bool(found.lower[0] < found.values[0] < found.upper[0])
    True
    """
    if alpha is not None:
        check_alpha(alpha)
    home = folder.folder if isinstance(folder, TuningResult) else folder
    return load_regression_model(home, model).predict_table(data, alpha, **options)


def load_regression_model(root: Path | str, name: str | None = None) -> RegressionModel:
    """Return a saved model by its name or how its name alone begins; else the latest winner."""
    home = Path(root)
    called = resolve_model_name(home, name)
    config, calibration, folder = _load_verified(home, called)
    members = config["members"] if config["model"] == BLEND else [called]
    models = []
    for member in members:
        own, _, folder = (
            (config, None, folder) if member == called else _load_verified(home, member)
        )
        if own["model"] == BLEND or own["features"] != config["features"]:
            raise BadStore(f"{folder} is no member of {called}: it has other features.")
        models.append(_load_model(folder, own))
    return RegressionModel(called, config, calibration, tuple(models))


def _load_model(folder: Path, config: Mapping[str, Any]) -> tuple[Regressor, ModelInputs]:
    """Return a model and what it is given, which must be about the same features."""
    model = load_regressor(folder / MODEL_FOLDER)
    inputs = ModelInputs.from_dict(config["inputs"])
    features = len(inputs.scaled.means)
    given = features + (inputs.lattice is not None)
    if model.name != config["model"] or features != len(config["features"]) or model.width != given:
        raise BadStore(
            f"{folder} is refused: its {DESCRIPTION_FILE} and its model are not about the same "
            f"features. {ADVICE}"
        )
    return model, inputs


def _load_verified(root: Path, name: str) -> tuple[dict[str, Any], IntervalCalibration, Path]:
    """Return what a folder says of itself, once it is what its manifest lists."""
    folder, _, plain = read_description(root, name, TASK)
    path = folder / DESCRIPTION_FILE
    if plain.get("model") != BLEND:
        return (
            dict(decode(plain, _StoredModel, path, advice=ADVICE)),
            load_calibration(folder),
            folder,
        )
    blend = decode(plain, _StoredBlend, path, advice=ADVICE)
    if len(blend["weights"]) != len(blend["members"]):
        raise BadStore(f"{path} has weights of other members. {ADVICE}")
    return dict(blend), load_calibration(folder), folder


class _StoredBase(TypedDict):
    model: str
    features: Annotated[list[str], DISTINCT]
    target: str
    unit: str | None
    alpha: Annotated[float, Check("between 0 and 1", lambda alpha: 0.0 < alpha < 1.0)]


class _StoredModel(_StoredBase):
    inputs: dict[str, Any]
    params: dict[str, Any]


class _StoredBlend(_StoredBase):
    members: Annotated[list[str], DISTINCT]
    weights: Annotated[
        list[Annotated[float, at_least(0.0), at_most(1.0)]],
        Check("that sum to 1", lambda weights: abs(sum(weights) - 1.0) < WEIGHT_SUM_TOLERANCE),
    ]
