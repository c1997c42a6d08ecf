"""Tuned models: loaded by name, verified before they are opened, and used for prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.decision_rules import OutputCalibration
from ordinate.classify.predictions import Predictions
from ordinate.errors import BadInput, BadOption, BadStore, OrdinateError, shorten, suggest_names
from ordinate.experiment.feature_rows import DatasetFeatures
from ordinate.experiment.folder import Experiment
from ordinate.experiment.manifest import Manifest, read_verified_manifest
from ordinate.experiment.safe_files import compute_digest, resolve_inside
from ordinate.experiment.stored_json import DISTINCT, decode, read_json
from ordinate.experiment.workers import limit_to_one_thread
from ordinate.features.extraction import find_extractor_identity
from ordinate.models.classifiers import Classifier, load_classifier
from ordinate.scale import Scale

Floats = NDArray[np.float64]
MODELS_FOLDER, LATEST_FOLDER = "models", "ho_multifeat_results"
WINNER_FILE = "stage2_optimization_results.json"
CALIBRATION_FILE = "calibration.json"
SHOWN_MODELS = 12  # models named in an error
# What the manifest of a model has to say.
MANIFEST_FIELDS = {"set": str, "features": int, "feature_names": str}


class _Winner(TypedDict):
    winner: str


class _Members(TypedDict):
    members: NotRequired[Annotated[list[str], DISTINCT]]


@dataclass(frozen=True, eq=False)
class TunedModel:
    """A saved model with its calibration; a vote has members in the place of a model."""

    name: str
    manifest: Manifest = field(repr=False)
    calibration: OutputCalibration = field(repr=False)
    model: Classifier | None = field(repr=False)
    members: tuple["TunedModel", ...] = ()

    @property
    def scale(self) -> Scale:
        """The full scale, levels included that the model never saw."""
        return self.calibration.scale

    @property
    def config(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return self.manifest.config

    @property
    def sets(self) -> tuple[str, ...]:
        """The feature sets that it needs."""
        if self.members:
            return tuple(dict.fromkeys(name for one in self.members for name in one.sets))
        return (str(self.config["set"]),)

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


# --- names ---------------------------------------------------------------------------------------


def list_model_names(experiment: Experiment) -> list[str]:
    """Return the names of the saved models."""
    folder = experiment.folder(MODELS_FOLDER)
    if not folder.is_dir():
        return []
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._")


def load_models(experiment: Experiment, requested: Sequence[str] = ()) -> list[TunedModel]:
    """Load all saved models, or the requested ones, each once."""
    names = [resolve_model_name(experiment, name) for name in requested]
    names = names or list_model_names(experiment)
    if not names:
        raise _explain_no_models(experiment)
    return [load_model(experiment, name) for name in dict.fromkeys(names)]


def load_model(experiment: Experiment, name: str | None = None) -> TunedModel:
    """Load a saved model by its name, or what its name alone begins with.

    Without a name it is the winner of the latest run. Nothing is opened before the manifest says
    that it is what was saved.
    """
    return _load_by_name(
        experiment,
        find_winner(experiment) if name is None else resolve_model_name(experiment, name),
    )


def resolve_model_name(experiment: Experiment, requested: str) -> str:
    """Return the full name of a model."""
    # First of all: a name may lead elsewhere.
    resolve_inside(experiment.folder(MODELS_FOLDER), requested)
    known = list_model_names(experiment)
    if requested in known:
        return requested
    matches = [name for name in known if name.startswith(requested)]
    if len(matches) == 1:
        return matches[0]
    if not known:
        raise _explain_no_models(experiment)
    problem = "Several models begin with" if matches else "There is no model"
    near = "" if matches else suggest_names(requested, known)
    listed = matches or known
    more = ", …" if len(listed) > SHOWN_MODELS else ""
    raise BadOption(
        f"{problem} {shorten(requested)} (--model).{near} There are: "
        f"{', '.join(listed[:SHOWN_MODELS])}{more}."
    )


def find_winner(experiment: Experiment) -> str:
    """Return the name of the model that won the latest run, or the only one."""
    known = list_model_names(experiment)
    if not known:
        raise _explain_no_models(experiment)
    path = resolve_inside(experiment.folder(LATEST_FOLDER), WINNER_FILE)
    if not path.is_file():
        if len(known) == 1:
            return known[0]
        raise BadOption(
            f"There is no {path}, which says which model won. Name one with --model: "
            f"{', '.join(known[:SHOWN_MODELS])}."
        )
    won = read_json(path, _Winner, advice="Name one with --model.")["winner"]
    if won not in known:
        raise BadStore(
            f"{path} says that {shorten(won)} won, and there is no such model in "
            f"{experiment.folder(MODELS_FOLDER)}. Name another one with --model, or tune again."
        )
    return won


def _explain_no_models(experiment: Experiment) -> BadInput:
    return BadInput(
        f"There are no saved models in {experiment.folder(MODELS_FOLDER)}. Make some: ordinate "
        f"tune -e {experiment.root}"
    )


# --- loading -------------------------------------------------------------------------------------


def _load_by_name(experiment: Experiment, name: str, *, member: bool = False) -> TunedModel:
    folder = resolve_inside(experiment.folder(MODELS_FOLDER), name)
    if not folder.is_dir():
        raise BadStore(f"There is no model {shorten(name)} in {experiment.folder(MODELS_FOLDER)}.")
    manifest = read_verified_manifest(folder)
    if manifest.artifact != "model":
        raise BadStore(f"{folder} holds {shorten(manifest.artifact)} by its manifest, not a model.")
    calibration = _load_calibration(folder / CALIBRATION_FILE)
    members = _read_members(folder, manifest)
    if members and member:
        raise BadStore(f"{folder} is a vote among the members of a vote.")
    if members:
        votes = tuple(_load_by_name(experiment, one, member=True) for one in members)
        sizes = {len(one.scale) for one in votes}
        tuned = TunedModel(name, manifest, calibration, None, votes)
    else:
        model = load_classifier(folder)
        sizes = {model.size}
        tuned = TunedModel(name, manifest, calibration, model)
    fields = MANIFEST_FIELDS.items()
    complete = all(isinstance(manifest.config.get(name), type_) for name, type_ in fields)
    if sizes != {len(calibration.scale)} or not (members or complete):
        raise BadStore(
            f"The manifest, the model and the calibration in {folder} do not fit together."
        )
    return tuned


def _read_members(folder: Path, manifest: Manifest) -> list[str]:
    """Return the names of the members of a vote; a model by itself has none."""
    config = decode(manifest.config, _Members, f"The manifest of {folder}", advice="Tune again.")
    return config.get("members", [])


def _load_calibration(path: Path) -> OutputCalibration:
    try:
        return OutputCalibration.from_dict(read_json(path, dict[str, Any]))
    except OrdinateError as problem:
        raise BadStore(
            f"{path} is no calibration ({problem}). Tune again, or restore the folder."
        ) from None
