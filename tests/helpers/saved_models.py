"""Saved models for tests that only need some: fitted and written as tuning does, but not tuned."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.metrics import find_metric
from ordinate.tuning.classify.decision_rules import CalibrationPlan, OutputCalibration
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.safe_files import compute_digest, create_folder, write_json
from ordinate.tuning.features.extraction import find_extractor_identity
from ordinate.tuning.models.classifiers import create_classifier


def save_model(
    root: Path,
    set_name: str,
    model_type: str = "logistic",
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
    model = create_classifier(model_type, size=len(scale)).fit(features.matrix, gold)
    plan = CalibrationPlan.of(model_type, scale, find_metric(metric), weighted=False)
    calibration = _calibrate(plan, model.predict(features.matrix), gold)
    name = f"{set_name}-{model_type}-{compute_digest([set_name, model_type, metric, suffix])}"
    described = {
        "sets": [set_name],
        "scale": list(scale.labels),
        "features": len(features.names),
        "feature_names": compute_digest(list(features.names)),
        "extractor": find_extractor_identity(features.manifest),
    }
    with create_folder(root / "models" / name) as folder:
        (folder / "model").mkdir()
        model.save(folder / "model")
        _seal(folder, name, calibration, described | {"model": model_type, "metric": metric})
    return name


def save_vote(
    root: Path,
    members: list[str],
    metric: str = "cem_ord",
    *,
    columns: DataColumns | None = None,
) -> str:
    """Save a vote of saved models; return its name."""
    from ordinate.tuning.classify.trained_model import load_model

    experiment = Experiment.open(root, columns=columns)
    scale = experiment.scale()
    loaded = [load_model(experiment, name) for name in members]
    sets = {one.sets[0]: experiment.features(one.sets[0], "train") for one in loaded}
    each = [one.calibration.probabilities(one.compute_outputs(sets)) for one in loaded]
    gold = experiment.dataset("train").gold(scale)
    plan = CalibrationPlan(scale, find_metric(metric))
    calibration = _calibrate(plan, np.mean(each, axis=0), gold)
    name = f"vote-{compute_digest(members)}"
    described = {"scale": list(scale.labels), "members": members, "sets": list(sets)}
    with create_folder(root / "models" / name) as folder:
        _seal(folder, name, calibration, described | {"model": "vote", "metric": metric})
    return name


def _calibrate(plan: CalibrationPlan, outputs: Any, gold: Any) -> OutputCalibration:
    """Learn it on the same items: how good it is does not matter here."""
    found = plan.fit(outputs, gold)
    return found.calibrate_sets(found.probabilities(outputs), gold)


def crown(root: Path, name: str) -> None:
    """Say that a model won the latest run."""
    folder = root / "results"
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(json.dumps({"winner": name}), "utf-8")


def _seal(folder, name, calibration, described) -> None:
    write_json(folder / "calibration.json", calibration.to_dict())
    write_json(folder / "description.json", {"task": "classification"} | described)
    config = {name: described[name] for name in ("model", "metric")} | {"task": "classification"}
    Manifest.of(folder, "model", name, config=config, data={}, seed=0, command="test").write(folder)
