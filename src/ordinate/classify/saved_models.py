"""Models on disk: what they are called, what is written beside them, and what is found again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cross_validation import Candidate
from ordinate.classify.decision_rules import Decision, Floats
from ordinate.classify.finalists import Contender
from ordinate.classify.scoring import Judged
from ordinate.classify.settings import VOTE
from ordinate.classify.soft_vote import Voting
from ordinate.classify.trained_model import DECISION
from ordinate.errors import BadStore
from ordinate.experiment.manifest import Manifest, is_kept
from ordinate.experiment.safe_files import digest, inside, replacing_folder, write_json
from ordinate.features.extraction import made_by, maker_manifest
from ordinate.inference.estimates import finite
from ordinate.models.classifiers import KINDS
from ordinate.results.baselines import json_label

ANSWERS = "out_of_fold.npy"
LIBRARIES = ("scipy", "scikit-learn", "skops")
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def name_of(bench: Bench, candidate: Candidate) -> str:
    """Return the name of a model: its data and all its settings decide it."""
    set_name, kind = candidate.data, candidate.kind
    maker = _maker(bench, set_name)
    made = {} if maker is None else {"maker": maker}
    code = bench.code(set_name, kind=kind, params=dict(candidate.params), **made)
    return f"{set_name}-{kind}-{code}"


def name_of_vote(bench: Bench, voting: Voting) -> str:
    """Return the name of a vote, which its members decide."""
    members = [name_of(bench, member.candidate) for member in voting.members]
    return f"{VOTE}-{digest(members)}"


def kept_answers(bench: Bench, candidate: Candidate) -> Floats | None:
    """Return the out-of-fold answers of a model that an earlier run saved, if one did."""
    folder = _folder(bench, name_of(bench, candidate))
    if bench.part or not is_kept(folder):
        return None
    try:
        found: Floats = np.load(folder / ANSWERS, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        found = np.empty(0)
    size = len(bench.training.scale)
    shape = (len(bench.levels), size) if _gives_probabilities(candidate) else (len(bench.levels),)
    if found.dtype != np.float64 or found.shape != shape or not np.isfinite(found).all():
        raise BadStore(
            f"{folder / ANSWERS} does not hold the answers for {len(bench.levels):,} items. Remove "
            "the folder, and it is made again."
        )
    return found


def save_contender(bench: Bench, one: Contender, *, run: str, command: str) -> str:
    """Fit a model on all items and save it, unless that was done before; return its name."""
    name = name_of(bench, one.candidate)
    if is_kept(_folder(bench, name)):
        return name
    fitted = one.fit(bench)
    known = bench.training.sets[one.candidate.data]
    config = {
        "set": one.candidate.data,
        "kind": one.candidate.kind,
        "params": dict(one.candidate.params),
        "features": len(known.names),
        "feature_names": known.names_digest,
        "maker": _maker(bench, one.candidate.data),
        "class_weights": bench.class_weights.tolist(),
    }
    with replacing_folder(_folder(bench, name)) as folder:
        fitted.model.save(folder)
        np.save(folder / ANSWERS, one.answers, allow_pickle=False)
        libraries = KINDS[one.candidate.kind].library
        about = config | _about(bench, one.judged, run)
        _seal(bench, folder, name, fitted.decision, about, one.sets, command, [libraries])
    return name


def save_vote(bench: Bench, voting: Voting, *, run: str, command: str) -> str:
    """Save a vote, whose members are saved already; return its name."""
    name = name_of_vote(bench, voting)
    if is_kept(_folder(bench, name)):
        return name
    members = [name_of(bench, member.candidate) for member in voting.members]
    config = {"kind": VOTE, "members": members, "sets": list(voting.sets)}
    with replacing_folder(_folder(bench, name)) as folder:
        about = config | _about(bench, voting.judged, run)
        _seal(bench, folder, name, voting.decision(bench), about, voting.sets, command, [])
    return name


def _maker(bench: Bench, set_name: str) -> str | None:
    """Return the identity of a set's maker: new texts have to get their features from that one."""
    return made_by(maker_manifest(bench.training.experiment, set_name))


def _folder(bench: Bench, name: str) -> Path:
    return inside(bench.training.experiment.folder("models"), name)


def _gives_probabilities(candidate: Candidate) -> bool:
    return KINDS[candidate.kind].gives == "probabilities"


def _about(bench: Bench, judged: Judged, run: str) -> dict[str, Any]:
    """Return what a manifest says of any model."""
    asked, scale = bench.settings, bench.training.scale
    low, high = judged.limits
    return {
        "metric": asked.metric,
        "decode": asked.decode,
        "weight_strategy": asked.weight_strategy,
        "weight_alpha": asked.weight_alpha,
        "weight_metric": asked.weight_metric,
        "scale": [json_label(label) for label in scale.labels],
        "positions": list(scale.at),
        "folds": asked.folds,
        "cv": {"value": finite(judged.value), "low": finite(low), "high": finite(high)},
        "no_better_than_chance": judged.by_chance,
        "run": run,
    }


def _seal(
    bench: Bench,
    folder: Path,
    name: str,
    decision: Decision,
    config: dict[str, Any],
    sets: Sequence[str],
    command: str,
    libraries: Sequence[str],
) -> None:
    """Write the decision, and last of all the manifest."""
    write_json(folder / DECISION, decision.to_dict())
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
