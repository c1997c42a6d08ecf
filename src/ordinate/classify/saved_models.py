"""Saving models: their names, manifests, calibration, and out-of-fold outputs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.classify.cross_validation import Candidate
from ordinate.classify.decision_rules import Floats, OutputCalibration
from ordinate.classify.finalists import EvaluatedCandidate
from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.search_context import SearchContext
from ordinate.classify.settings import VOTE
from ordinate.classify.soft_vote import VoteCandidate
from ordinate.classify.trained_model import CALIBRATION_FILE
from ordinate.errors import BadStore
from ordinate.experiment.manifest import Manifest, is_model_saved
from ordinate.experiment.safe_files import compute_digest, create_folder, resolve_inside, write_json
from ordinate.features.extraction import find_extractor_identity, read_extractor_manifest
from ordinate.inference.estimates import to_json_number
from ordinate.models.classifiers import MODEL_TYPES
from ordinate.results.base import to_json_label

OUT_OF_FOLD_FILE = "out_of_fold.npy"
LIBRARIES = ("scipy", "scikit-learn", "skops")
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def name_model(context: SearchContext, candidate: Candidate) -> str:
    """Return the name of a model: its data and all its settings decide it."""
    set_name, model_type = candidate.data, candidate.model_type
    extractor = _identify_extractor(context, set_name)
    further = {} if extractor is None else {"extractor": extractor}
    digest = context.compute_digest(
        set_name, model_type=model_type, params=dict(candidate.params), **further
    )
    return f"{set_name}-{model_type}-{digest}"


def name_vote(context: SearchContext, vote: VoteCandidate) -> str:
    """Return the name of a vote, which its members decide."""
    members = [name_model(context, member.candidate) for member in vote.members]
    return f"{VOTE}-{compute_digest(members)}"


def load_out_of_fold(context: SearchContext, candidate: Candidate) -> Floats | None:
    """Return the out-of-fold outputs of a model that an earlier run saved, if one did."""
    folder = _locate_model(context, name_model(context, candidate))
    if context.subset or not is_model_saved(folder):
        return None
    try:
        outputs: Floats = np.load(folder / OUT_OF_FOLD_FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        outputs = np.empty(0)
    n, size = len(context.levels), len(context.training.scale)
    shape = (n, size) if _gives_probabilities(candidate) else (n,)
    if outputs.dtype != np.float64 or outputs.shape != shape or not np.isfinite(outputs).all():
        raise BadStore(
            f"{folder / OUT_OF_FOLD_FILE} does not hold the out-of-fold predictions for {n:,} "
            "items. Remove the folder, and it is made again."
        )
    return outputs


def save_candidate(
    context: SearchContext, one: EvaluatedCandidate, *, run: str, command: str
) -> str:
    """Fit a model on all items and save it, unless that was done before; return its name."""
    name = name_model(context, one.candidate)
    if is_model_saved(_locate_model(context, name)):
        return name
    fitted = one.fit(context)
    known = context.training.sets[one.candidate.data]
    config = {
        "set": one.candidate.data,
        "model_type": one.candidate.model_type,
        "params": dict(one.candidate.params),
        "features": len(known.names),
        "feature_names": known.names_digest,
        "extractor": _identify_extractor(context, one.candidate.data),
        "class_weights": context.class_weights.tolist(),
    }
    with create_folder(_locate_model(context, name)) as folder:
        fitted.model.save(folder)
        np.save(folder / OUT_OF_FOLD_FILE, one.outputs, allow_pickle=False)
        libraries = MODEL_TYPES[one.candidate.model_type].library
        about = config | _describe_model(context, one.evaluation, run)
        _write_manifest(
            context, folder, name, fitted.calibration, about, one.sets, command, [libraries]
        )
    return name


def save_vote(context: SearchContext, vote: VoteCandidate, *, run: str, command: str) -> str:
    """Save a vote, whose members are saved already; return its name."""
    name = name_vote(context, vote)
    if is_model_saved(_locate_model(context, name)):
        return name
    members = [name_model(context, member.candidate) for member in vote.members]
    config = {"model_type": VOTE, "members": members, "sets": list(vote.sets)}
    with create_folder(_locate_model(context, name)) as folder:
        about = config | _describe_model(context, vote.evaluation, run)
        _write_manifest(
            context, folder, name, vote.fit_calibration(context), about, vote.sets, command, []
        )
    return name


def _identify_extractor(context: SearchContext, set_name: str) -> str | None:
    """Return the identity of a set's extractor: new texts have to get their features from it."""
    return find_extractor_identity(read_extractor_manifest(context.training.experiment, set_name))


def _locate_model(context: SearchContext, name: str) -> Path:
    return resolve_inside(context.training.experiment.folder("models"), name)


def _gives_probabilities(candidate: Candidate) -> bool:
    return MODEL_TYPES[candidate.model_type].output_type == "probabilities"


def _describe_model(
    context: SearchContext, evaluation: DecisionRuleScores, run: str
) -> dict[str, Any]:
    """Return what a manifest says of any model."""
    settings, scale = context.settings, context.training.scale
    low, high = evaluation.bounds
    return {
        "metric": settings.metric,
        "decode": settings.decode,
        "weight_strategy": settings.weight_strategy,
        "weight_alpha": settings.weight_alpha,
        "weight_metric": settings.weight_metric,
        "scale": [to_json_label(label) for label in scale.labels],
        "positions": list(scale.at),
        "folds": settings.folds,
        "cv": {
            "value": to_json_number(evaluation.value),
            "low": to_json_number(low),
            "high": to_json_number(high),
        },
        "no_better_than_chance": evaluation.by_chance,
        "run": run,
    }


def _write_manifest(
    context: SearchContext,
    folder: Path,
    name: str,
    calibration: OutputCalibration,
    config: dict[str, Any],
    sets: Sequence[str],
    command: str,
    libraries: Sequence[str],
) -> None:
    """Write the calibration, and last of all the manifest."""
    write_json(folder / CALIBRATION_FILE, calibration.to_dict())
    used = [DISTRIBUTIONS.get(library, library) for library in libraries]
    Manifest.of(
        folder,
        "model",
        name,
        config=config,
        data=context.training.fingerprints(*sets),
        seed=context.settings.seed,
        command=command,
        libraries=list(dict.fromkeys([*LIBRARIES, *used])),
    ).write(folder)
