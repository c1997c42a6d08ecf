"""Held-out evaluation: the winner on test data by which nothing was selected, once."""

import hashlib
import math
from pathlib import Path

import numpy as np

from ordinate.classify.decision_rules import DECISION_RULES, Positions
from ordinate.classify.prediction_cache import (
    CachedRecord,
    convert_levels_to_lists,
    load_or_compute,
    read_levels,
)
from ordinate.classify.scoring import evaluate_decision_rules
from ordinate.classify.search_context import SearchContext
from ordinate.classify.trained_model import load_model
from ordinate.classify.training_data import TrainingData, check_same_features
from ordinate.classify.tuning_result import Finalist, HeldOutResult, compute_optimism
from ordinate.experiment.safe_files import compute_digest, resolve_inside


def check_test_sets(training: TrainingData) -> None:
    """Refuse now, and not after hours, test data on which nothing could be tested."""
    experiment = training.experiment
    for stem in experiment.tests:
        experiment.dataset(stem).gold(training.scale, missing="keep")
        for name in training.sets:
            if stem in experiment.list_stems(name):
                first = experiment.features(name, training.stems[0])
                check_same_features(first, experiment.features(name, stem))


def evaluate_on_test_sets(
    context: SearchContext, winner: Finalist, folder: Path
) -> tuple[HeldOutResult, ...]:
    """Evaluate the winner on each test set; predictions are cached in the folder of the run."""
    return tuple(
        _evaluate_on_test_set(context, winner, stem, folder)
        for stem in context.training.experiment.tests
    )


def _evaluate_on_test_set(
    context: SearchContext, winner: Finalist, stem: str, folder: Path
) -> HeldOutResult:
    experiment, settings = context.training.experiment, context.settings
    data = experiment.dataset(stem)
    gold = data.gold(context.training.scale, missing="keep")
    labelled = gold < len(context.training.scale)
    if not labelled.any():
        return _skip_test_set(stem, "it has no levels, so nothing was tested on it.")
    lacking = [name for name in winner.sets if stem not in experiment.list_stems(name)]
    if lacking:
        reason = f"it has no features of {', '.join(lacking)}, so nothing was tested on it."
        return _skip_test_set(stem, reason)
    levels = _predict_test_set(context, winner, stem, gold, folder)
    groups = None if data.groups is None else data.groups[labelled]
    evaluation = evaluate_decision_rules(
        context.label_items(gold[labelled], groups),
        {rule: levels[rule][labelled] for rule in DECISION_RULES},
        settings.measure,
        seed=settings.seed,
    )
    unlabelled = int((~labelled).sum())
    return HeldOutResult(
        name=stem,
        n=int(labelled.sum()),
        evaluation=evaluation,
        optimism=compute_optimism(settings.measure, winner.evaluation.value, evaluation.value),
        note=f"{unlabelled:,} items without a level were left out." if unlabelled else None,
        groups=None if groups is None else len(np.unique(groups.astype(str))),
    )


def _skip_test_set(stem: str, reason: str) -> HeldOutResult:
    return HeldOutResult(name=stem, n=0, evaluation=None, optimism=math.nan, note=reason)


def _predict_test_set(
    context: SearchContext, winner: Finalist, stem: str, gold: Positions, folder: Path
) -> dict[str, Positions]:
    """Return the levels that the saved winner predicts; once for the same data and gold."""
    experiment, size = context.training.experiment, len(context.training.scale)
    features = {name: experiment.features(name, stem) for name in winner.sets}
    digest = compute_digest(
        {
            "model": winner.name,
            "features": {name: one.digest for name, one in features.items()},
            "gold": hashlib.sha256(gold.tobytes()).hexdigest(),
        }
    )

    def compute() -> CachedRecord:
        predictions = load_model(experiment, winner.name).predict(features)
        return {"levels": convert_levels_to_lists(predictions.by_decision_rule)}

    path = resolve_inside(folder, f"test-{stem}-{digest}.json")
    return read_levels(load_or_compute(path, len(gold), size, compute))
