"""Models on disk: what they are called, what is written beside them, and what is found again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import Candidate
from ordinate.classify.decision_rules import Floats, OutputCalibration
from ordinate.classify.finalists import EvaluatedCandidate
from ordinate.classify.scoring import DecisionRuleScores
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


def name_model(bench: Bench, candidate: Candidate) -> str:
    """Return the name of a model: its data and all its settings decide it."""
    set_name, kind = candidate.data, candidate.kind
    maker = _identify_extractor(bench, set_name)
    made = {} if maker is None else {"maker": maker}
    code = bench.code(set_name, kind=kind, params=dict(candidate.params), **made)
    return f"{set_name}-{kind}-{code}"


def name_vote(bench: Bench, voting: VoteCandidate) -> str:
    """Return the name of a vote, which its members decide."""
    members = [name_model(bench, member.candidate) for member in voting.members]
    return f"{VOTE}-{compute_digest(members)}"


def load_out_of_fold(bench: Bench, candidate: Candidate) -> Floats | None:
    """Return the out-of-fold answers of a model that an earlier run saved, if one did."""
    folder = _locate_model(bench, name_model(bench, candidate))
    if bench.part or not is_model_saved(folder):
        return None
    try:
        found: Floats = np.load(folder / OUT_OF_FOLD_FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        found = np.empty(0)
    size = len(bench.training.scale)
    shape = (len(bench.levels), size) if _gives_probabilities(candidate) else (len(bench.levels),)
    if found.dtype != np.float64 or found.shape != shape or not np.isfinite(found).all():
        raise BadStore(
            f"{folder / OUT_OF_FOLD_FILE} does not hold the answers for {len(bench.levels):,} "
            "items. Remove the folder, and it is made again."
        )
    return found


def save_candidate(bench: Bench, one: EvaluatedCandidate, *, run: str, command: str) -> str:
    """Fit a model on all items and save it, unless that was done before; return its name."""
    name = name_model(bench, one.candidate)
    if is_model_saved(_locate_model(bench, name)):
        return name
    fitted = one.fit(bench)
    known = bench.training.sets[one.candidate.data]
    config = {
        "set": one.candidate.data,
        "kind": one.candidate.kind,
        "params": dict(one.candidate.params),
        "features": len(known.names),
        "feature_names": known.names_digest,
        "maker": _identify_extractor(bench, one.candidate.data),
        "class_weights": bench.class_weights.tolist(),
    }
    with create_folder(_locate_model(bench, name)) as folder:
        fitted.model.save(folder)
        np.save(folder / OUT_OF_FOLD_FILE, one.answers, allow_pickle=False)
        libraries = MODEL_TYPES[one.candidate.kind].library
        about = config | _describe_model(bench, one.evaluation, run)
        _write_manifest(
            bench, folder, name, fitted.calibration, about, one.sets, command, [libraries]
        )
    return name


def save_vote(bench: Bench, voting: VoteCandidate, *, run: str, command: str) -> str:
    """Save a vote, whose members are saved already; return its name."""
    name = name_vote(bench, voting)
    if is_model_saved(_locate_model(bench, name)):
        return name
    members = [name_model(bench, member.candidate) for member in voting.members]
    config = {"kind": VOTE, "members": members, "sets": list(voting.sets)}
    with create_folder(_locate_model(bench, name)) as folder:
        about = config | _describe_model(bench, voting.evaluation, run)
        _write_manifest(
            bench, folder, name, voting.calibration(bench), about, voting.sets, command, []
        )
    return name


def _identify_extractor(bench: Bench, set_name: str) -> str | None:
    """Return the identity of a set's maker: new texts have to get their features from that one."""
    return find_extractor_identity(read_extractor_manifest(bench.training.experiment, set_name))


def _locate_model(bench: Bench, name: str) -> Path:
    return resolve_inside(bench.training.experiment.folder("models"), name)


def _gives_probabilities(candidate: Candidate) -> bool:
    return MODEL_TYPES[candidate.kind].output_type == "probabilities"


def _describe_model(bench: Bench, judged: DecisionRuleScores, run: str) -> dict[str, Any]:
    """Return what a manifest says of any model."""
    asked, scale = bench.settings, bench.training.scale
    low, high = judged.limits
    return {
        "metric": asked.metric,
        "decode": asked.decode,
        "weight_strategy": asked.weight_strategy,
        "weight_alpha": asked.weight_alpha,
        "weight_metric": asked.weight_metric,
        "scale": [to_json_label(label) for label in scale.labels],
        "positions": list(scale.at),
        "folds": asked.folds,
        "cv": {
            "value": to_json_number(judged.value),
            "low": to_json_number(low),
            "high": to_json_number(high),
        },
        "no_better_than_chance": judged.by_chance,
        "run": run,
    }


def _write_manifest(
    bench: Bench,
    folder: Path,
    name: str,
    decision: OutputCalibration,
    config: dict[str, Any],
    sets: Sequence[str],
    command: str,
    libraries: Sequence[str],
) -> None:
    """Write the decision, and last of all the manifest."""
    write_json(folder / CALIBRATION_FILE, decision.to_dict())
    used = [DISTRIBUTIONS.get(library, library) for library in libraries]
    Manifest.of(
        folder,
        "model",
        name,
        config=config,
        data=bench.training.fingerprints(*sets),
        seed=bench.settings.seed,
        command=command,
        libraries=list(dict.fromkeys([*LIBRARIES, *used])),
    ).write(folder)
