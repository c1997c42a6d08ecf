"""Saved models: found by name, verified before they are opened, asked for levels."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.decision_rules import Decision
from ordinate.classify.predictions import Predictions
from ordinate.errors import BadInput, BadOption, BadStore, OrdinateError, brief, suggest
from ordinate.experiment.feature_rows import Features
from ordinate.experiment.folder import Experiment
from ordinate.experiment.manifest import Manifest, whole
from ordinate.experiment.safe_files import digest, inside
from ordinate.experiment.workers import one_thread
from ordinate.features.extraction import made_by
from ordinate.models.classifiers import Model, load
from ordinate.scale import Scale

Floats = NDArray[np.float64]
MODELS, LATEST = "models", "ho_multifeat_results"
WINNER = "stage2_optimization_results.json"
DECISION = "decision.json"
SHOWN = 12  # models named in an error
SHAPE = {"set": str, "features": int, "feature_names": str}  # of what a manifest says of a model


@dataclass(frozen=True, eq=False)
class Tuned:
    """A saved model with its decision; a vote has members in the place of a model."""

    name: str
    manifest: Manifest = field(repr=False)
    decision: Decision = field(repr=False)
    model: Model | None = field(repr=False)
    members: tuple["Tuned", ...] = ()

    @property
    def scale(self) -> Scale:
        """The full scale, levels included that the model never saw."""
        return self.decision.scale

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
        self, features: Mapping[str, Features], ids: Sequence[str] | None = None
    ) -> Predictions:
        """Return levels, probabilities and sets for the items of features, by feature set."""
        with one_thread():  # so that the last digits are those of any other machine's threads
            answers, decision = self.answers(features), self.decision
            return Predictions(
                self.name,
                self.scale,
                None if ids is None else tuple(ids),
                decision.levels(answers),
                decision.levels(answers, "argmax"),
                decision.levels(answers, "average"),
                decision.probabilities(answers),
                decision.sets(answers),
            )

    def answers(self, features: Mapping[str, Features]) -> Floats:
        """Return what the model itself answers; a vote averages the members' probabilities."""
        if self.model is None:
            parts = [one.decision.probabilities(one.answers(features)) for one in self.members]
            return np.asarray(np.mean(parts, axis=0))
        (name,) = self.sets
        if name not in features:
            raise BadInput(f"The model {self.name} needs the feature set {name!r}.")
        self._check(features[name])
        return self.model.answers(features[name].matrix)

    def _check(self, given: Features) -> None:
        """Refuse features that are not those of training, whatever their number."""
        count, names = self.config["features"], list(given.names)
        if len(names) == count and digest(names) == self.config["feature_names"]:
            self._check_maker(given)
            return
        shown = ", ".join(brief(name) for name in names[:3])
        raise BadInput(
            f"The model {self.name} was fitted to {count:,} features of the set {given.set!r} "
            f"(names {self.config['feature_names']}), and {given.path} has {len(names):,} others "
            f"(names {digest(names)}: {shown}, …). Make the features with the maker of the "
            "training data, or tune again."
        )

    def _check_maker(self, given: Features) -> None:
        """Refuse features of the same names by another maker; who made some is not known."""
        own, its = self.config.get("maker"), made_by(given.manifest)
        if own is None or its is None or own == its:
            return
        raise BadInput(
            f"The model {self.name} was fitted to features of the set {given.set!r} by the maker "
            f"{brief(str(own)[:12])}, and those of {given.path} are by another one, "
            f"{brief(str(its)[:12])}: the set was made anew, by another request or of other data. "
            "Put the former set back, or tune again."
        )


# --- finding -------------------------------------------------------------------------------------


def model_names(experiment: Experiment) -> list[str]:
    """Return the names of the saved models."""
    folder = experiment.folder(MODELS)
    if not folder.is_dir():
        return []
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._")


def load_all(experiment: Experiment, wanted: Sequence[str] = ()) -> list[Tuned]:
    """Load all saved models, or those that were asked for, each once."""
    names = [named(experiment, one) for one in wanted] or model_names(experiment)
    if not names:
        raise _none(experiment)
    return [load_tuned(experiment, name) for name in dict.fromkeys(names)]


def load_tuned(experiment: Experiment, name: str | None = None) -> Tuned:
    """Load a saved model by its name, or what its name alone begins with.

    Without a name it is the winner of the latest run. Nothing is opened before the manifest says
    that it is what was saved.
    """
    return _loaded(experiment, winner(experiment) if name is None else named(experiment, name))


def named(experiment: Experiment, wanted: str) -> str:
    """Return the full name of a model."""
    inside(experiment.folder(MODELS), wanted)  # first of all: a name may lead elsewhere
    known = model_names(experiment)
    if wanted in known:
        return wanted
    found = [name for name in known if name.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not known:
        raise _none(experiment)
    what = "Several models begin with" if found else "There is no model"
    near = "" if found else suggest(wanted, known)
    listed = found or known
    more = ", …" if len(listed) > SHOWN else ""
    raise BadOption(
        f"{what} {brief(wanted)} (--model).{near} There are: {', '.join(listed[:SHOWN])}{more}."
    )


def winner(experiment: Experiment) -> str:
    """Return the name of the model that won the latest run, or the only one."""
    known = model_names(experiment)
    if not known:
        raise _none(experiment)
    path = inside(experiment.folder(LATEST), WINNER)
    if not path.is_file():
        if len(known) == 1:
            return known[0]
        raise BadOption(
            f"There is no {path}, which says which model won. Name one with --model: "
            f"{', '.join(known[:SHOWN])}."
        )
    try:
        won = json.loads(path.read_text("utf-8"))["winner"]
    except (OSError, ValueError, KeyError, TypeError):
        raise BadStore(f"{path} does not say which model won. Name one with --model.") from None
    if won not in known:
        raise BadStore(
            f"{path} says that {brief(won)} won, and there is no such model in "
            f"{experiment.folder(MODELS)}. Name another one with --model, or tune again."
        )
    return str(won)


def _none(experiment: Experiment) -> BadInput:
    return BadInput(
        f"There are no saved models in {experiment.folder(MODELS)}. Make some: ordinate tune -e "
        f"{experiment.root}"
    )


# --- opening -------------------------------------------------------------------------------------


def _loaded(experiment: Experiment, name: str, *, member: bool = False) -> Tuned:
    folder = inside(experiment.folder(MODELS), name)
    if not folder.is_dir():
        raise BadStore(f"There is no model {brief(name)} in {experiment.folder(MODELS)}.")
    manifest = whole(folder)
    if manifest.kind != "model":
        raise BadStore(f"{folder} holds {brief(manifest.kind)} by its manifest, not a model.")
    decision = _decision(folder / DECISION)
    members = _members(folder, manifest)
    if members and member:
        raise BadStore(f"{folder} is a vote among the members of a vote.")
    if members:
        votes = tuple(_loaded(experiment, one, member=True) for one in members)
        sizes = {len(one.scale) for one in votes}
        tuned = Tuned(name, manifest, decision, None, votes)
    else:
        model = load(folder)
        sizes = {model.size}
        tuned = Tuned(name, manifest, decision, model)
    known = all(isinstance(manifest.config.get(x), kind) for x, kind in SHAPE.items())
    if sizes != {len(decision.scale)} or not (members or known):
        raise BadStore(f"The manifest, the model and the decision in {folder} do not fit together.")
    return tuned


def _members(folder: Path, manifest: Manifest) -> list[str]:
    """Return the names of the members of a vote; a model by itself has none."""
    found = manifest.config.get("members", [])
    named = isinstance(found, list) and all(isinstance(one, str) for one in found)
    if not named or ("members" in manifest.config and not found):
        raise BadStore(f"The manifest of {folder} does not say which models vote. Tune again.")
    return found


def _decision(path: Path) -> Decision:
    try:
        return Decision.from_dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        why = f" ({problem})" if isinstance(problem, OrdinateError) else ""
        raise BadStore(f"{path} is no decision{why}. Tune again, or restore the folder.") from None
