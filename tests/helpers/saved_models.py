"""Saved models for tests that only need some: fitted and written as tuning does, but not tuned."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.classify.decision_rules import Decision, Plan
from ordinate.experiment.dataset import DataColumns
from ordinate.experiment.folder import Experiment
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import digest, replacing_folder, write_json
from ordinate.features.extraction import made_by
from ordinate.metrics import find
from ordinate.models.classifiers import create


def save_model(
    root: Path,
    set_name: str,
    kind: str = "logistic",
    *,
    metric: str = "cem_ord",
    suffix: str = "",
    columns: DataColumns | None = None,
) -> str:
    """Fit a model to the training data of an experiment and save it; return its name."""
    experiment = Experiment.open(root, columns=columns)
    scale = experiment.scale()
    features = experiment.features(set_name, "train")
    gold = experiment.dataset("train").gold(scale)
    model = create(kind, size=len(scale)).fit(features.matrix, gold)
    plan = Plan.of(kind, scale, find(metric), weighted=False)
    decision = _decision(plan, model.answers(features.matrix), gold)
    name = f"{set_name}-{kind}-{digest([set_name, kind, metric, suffix])}"
    config = {
        "set": set_name,
        "kind": kind,
        "features": len(features.names),
        "feature_names": digest(list(features.names)),
        "maker": made_by(features.manifest),
        "metric": metric,
    }
    with replacing_folder(root / "models" / name) as folder:
        model.save(folder)
        _seal(folder, name, decision, config)
    return name


def save_vote(
    root: Path,
    members: list[str],
    metric: str = "cem_ord",
    *,
    columns: DataColumns | None = None,
) -> str:
    """Save a vote of saved models; return its name."""
    from ordinate.classify.trained_model import load_tuned

    experiment = Experiment.open(root, columns=columns)
    scale = experiment.scale()
    loaded = [load_tuned(experiment, name) for name in members]
    sets = {one.sets[0]: experiment.features(one.sets[0], "train") for one in loaded}
    each = [one.decision.probabilities(one.answers(sets)) for one in loaded]
    gold = experiment.dataset("train").gold(scale)
    decision = _decision(Plan(scale, find(metric)), np.mean(each, axis=0), gold)
    name = f"vote-{digest(members)}"
    config = {"kind": "vote", "members": members, "sets": list(sets), "metric": metric}
    with replacing_folder(root / "models" / name) as folder:
        _seal(folder, name, decision, config)
    return name


def _decision(plan: Plan, answers: Any, gold: Any) -> Decision:
    """Learn it on the same items: how good it is does not matter here."""
    found = plan.fit(answers, gold)
    return found.with_sets(found.probabilities(answers), gold)


def crown(root: Path, name: str) -> None:
    """Say that a model won the latest run."""
    folder = root / "ho_multifeat_results"
    folder.mkdir(exist_ok=True)
    (folder / "stage2_optimization_results.json").write_text(json.dumps({"winner": name}), "utf-8")


def _seal(folder, name, decision, config) -> None:
    write_json(folder / "decision.json", decision.to_dict())
    made = Manifest.of(folder, "model", name, config=config, data={}, seed=0, command="test")
    made.write(folder)
