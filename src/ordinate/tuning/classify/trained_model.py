"""Tuned models: loaded by name, verified before they are opened, and used for prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadStore, OrdinateError, shorten
from ordinate.postprocess.conformal_sets import PredictionSets
from ordinate.postprocess.decoder import make_label_array
from ordinate.readers.item_query import make_names_distinct
from ordinate.scale import Scale
from ordinate.scale.labels import normalize_label
from ordinate.tuning.classify.decision_rules import METRIC_OPTIMAL, DecisionRule, OutputCalibration
from ordinate.tuning.experiment.feature_rows import DatasetFeatures
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.safe_files import compute_digest
from ordinate.tuning.experiment.stored_json import DISTINCT, decode, read_json
from ordinate.tuning.experiment.workers import limit_to_one_thread
from ordinate.tuning.features.extraction import find_extractor_identity
from ordinate.tuning.models.classifiers import Classifier, load_classifier
from ordinate.tuning.search.prediction_table import PredictionTable
from ordinate.tuning.search.saved_models import (
    MODEL_FOLDER,
    explain_no_models,
    list_model_names,
    read_description,
    resolve_model_name,
)

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(PredictionTable):
    """Levels, probabilities and prediction sets, as positions on the scale.

    `levels` are those of the rule that the model was tuned with; `ids` are None where the items
    have none.
    """

    model: str
    scale: Scale
    ids: tuple[str, ...] | None
    by_decision_rule: dict[DecisionRule, Positions]
    probabilities: Floats  # [N, K]
    sets: PredictionSets

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def levels(self) -> Positions:
        """The levels by the metric-optimal rule."""
        return self.by_decision_rule[METRIC_OPTIMAL]

    def select_rows(self, rows: NDArray[Any]) -> "Predictions":
        """Return the predictions for some of the items."""
        places = np.arange(len(self))[rows]
        sets = PredictionSets(
            self.scale, self.sets.low_positions[places], self.sets.high_positions[places]
        )
        return replace(
            self,
            ids=None if self.ids is None else tuple(self.ids[k] for k in places),
            by_decision_rule={rule: x[places] for rule, x in self.by_decision_rule.items()},
            probabilities=self.probabilities[places],
            sets=sets,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a file, in order: labels are strings."""
        labels = np.array([str(normalize_label(x)) for x in make_label_array(self.scale)], object)
        columns: dict[str, NDArray[Any]] = (
            {"row": np.arange(1, len(self) + 1)}
            if self.ids is None
            else {"id": np.array([*self.ids, None], object)[:-1]}
        )
        for rule, levels in self.by_decision_rule.items():
            columns["level" if rule == METRIC_OPTIMAL else rule] = labels[levels]
        names = make_names_distinct(*(f"p_{label}" for label in labels))
        columns |= {name: self.probabilities[:, k] for k, name in enumerate(names)}
        columns["set_low"] = labels[self.sets.low_positions]
        columns["set_high"] = labels[self.sets.high_positions]
        return columns


def compute_level_shares(predictions: Predictions) -> list[tuple[str, Sequence[float]]]:
    """Return how often each level is predicted, by each decision rule."""
    size, n = len(predictions.scale), max(1, len(predictions))
    return [
        (rule, (np.bincount(levels, minlength=size) / n).tolist())
        for rule, levels in predictions.by_decision_rule.items()
    ]


# --- models --------------------------------------------------------------------------------------

TASK = "classification"
CALIBRATION_FILE = "calibration.json"
ADVICE = "Tune again, or restore the folder."


class _Described(TypedDict):
    sets: list[str]
    scale: list[Any]
    members: NotRequired[Annotated[list[str], DISTINCT]]
    features: NotRequired[int]
    feature_names: NotRequired[str]


@dataclass(frozen=True, eq=False)
class TunedModel:
    """A saved model with its calibration; a vote has members in the place of a model."""

    name: str
    manifest: Manifest = field(repr=False)
    config: Mapping[str, Any] = field(repr=False)  # what its folder says of it
    calibration: OutputCalibration = field(repr=False)
    model: Classifier | None = field(repr=False)
    members: tuple["TunedModel", ...] = ()

    @property
    def scale(self) -> Scale:
        """The full scale, levels included that the model never saw."""
        return self.calibration.scale

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that it needs."""
        return tuple(self.config["sets"])

    def predict(
        self, features: Mapping[str, DatasetFeatures], ids: Sequence[str] | None = None
    ) -> Predictions:
        """Return levels, probabilities and prediction sets; features are by feature set."""
        with limit_to_one_thread():  # so that the last digits are those of any other machine
            outputs = self.compute_outputs(features)
            return Predictions(
                self.name,
                self.scale,
                None if ids is None else tuple(ids),
                by_decision_rule=self.calibration.levels_by_rule(outputs),
                probabilities=self.calibration.probabilities(outputs),
                sets=self.calibration.sets(outputs),
            )

    def compute_outputs(self, features: Mapping[str, DatasetFeatures]) -> Floats:
        """Return the outputs of the model itself; a vote averages the members' probabilities."""
        if self.model is None:
            each = [
                member.calibration.probabilities(member.compute_outputs(features))
                for member in self.members
            ]
            return np.asarray(np.mean(each, axis=0))
        (name,) = self.sets
        if name not in features:
            raise BadInput(f"The model {self.name} needs the feature set {name!r}.")
        self._check(features[name])
        return self.model.predict(features[name].matrix)

    def _check(self, given: DatasetFeatures) -> None:
        """Refuse features that are not those of training, whatever their number."""
        count, names = self.config["features"], list(given.names)
        if len(names) == count and compute_digest(names) == self.config["feature_names"]:
            self._check_extractor(given)
            return
        shown = ", ".join(shorten(name) for name in names[:3])
        raise BadInput(
            f"The model {self.name} was fitted to {count:,} features of the set {given.set!r} "
            f"(names {self.config['feature_names']}), and {given.path} has {len(names):,} others "
            f"(names {compute_digest(names)}: {shown}, …). Make the features with the extractor of "
            "the training data, or tune again."
        )

    def _check_extractor(self, given: DatasetFeatures) -> None:
        """Refuse features of the same names by another extractor, where both are known."""
        own, its = self.config.get("extractor"), find_extractor_identity(given.manifest)
        if own is None or its is None or own == its:
            return
        raise BadInput(
            f"The model {self.name} was fitted to features of the set {given.set!r} by the "
            f"extractor {shorten(str(own)[:12])}, and those of {given.path} are by another one, "
            f"{shorten(str(its)[:12])}: the set was made anew, by another request or of other "
            "data. Put the former set back, or tune again."
        )


# --- loading -------------------------------------------------------------------------------------


def load_models(experiment: Experiment, requested: Sequence[str] = ()) -> list[TunedModel]:
    """Load all saved models, or the requested ones, each once."""
    names = [resolve_model_name(experiment.root, name) for name in requested]
    names = names or list_model_names(experiment.root)
    if not names:
        raise explain_no_models(experiment.root)
    return [load_model(experiment, name) for name in dict.fromkeys(names)]


def load_model(experiment: Experiment, name: str | None = None) -> TunedModel:
    """Load a saved model by its name, or what its name alone begins with.

    Without a name it is the winner of the latest run. Nothing is opened before the manifest says
    that it is what was saved.
    """
    return _load_by_name(experiment.root, resolve_model_name(experiment.root, name))


def _load_by_name(root: Path, name: str, *, member: bool = False) -> TunedModel:
    folder, manifest, plain = read_description(root, name, TASK)
    config = decode(plain, _Described, f"The description in {folder}", advice=ADVICE)
    calibration = _load_calibration(folder / CALIBRATION_FILE)
    members = config.get("members", [])
    if members and member:
        raise BadStore(f"{folder} is a vote among the members of a vote.")
    if members:
        votes = tuple(_load_by_name(root, one, member=True) for one in members)
        sizes = {len(one.scale) for one in votes}
        complete = set(config["sets"]) == {name for one in votes for name in one.sets}
        tuned = TunedModel(name, manifest, plain, calibration, None, votes)
    else:
        model = load_classifier(folder / MODEL_FOLDER)
        sizes = {model.size}
        complete = len(config["sets"]) == 1 and {"features", "feature_names"} <= config.keys()
        tuned = TunedModel(name, manifest, plain, calibration, model)
    if sizes != {len(calibration.scale)} or not complete:
        raise BadStore(
            f"The description, the model and the calibration in {folder} do not fit together."
        )
    return tuned


def _load_calibration(path: Path) -> OutputCalibration:
    try:
        return OutputCalibration.from_dict(read_json(path, dict[str, Any]))
    except OrdinateError as problem:
        raise BadStore(f"{path} is no calibration ({problem}). {ADVICE}") from None
