"""The test: the winner on data that nothing was chosen by, asked once."""

import hashlib
import math
from pathlib import Path

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cached_results import (
    CachedRecord,
    convert_levels_to_lists,
    load_or_compute,
    read_levels,
)
from ordinate.classify.decision_rules import DECISION_RULES, Positions
from ordinate.classify.scoring import evaluate_decision_rules
from ordinate.classify.trained_model import load_model
from ordinate.classify.training_data import TrainingData, check_same_features
from ordinate.classify.tuning_result import Finalist, HeldOutResult, compute_optimism
from ordinate.experiment.feature_rows import DatasetFeatures
from ordinate.experiment.safe_files import compute_digest, resolve_inside


def check_test_sets(training: TrainingData) -> None:
    """Complain now, and not after hours, about test data that nothing could be tested on."""
    experiment = training.experiment
    for stem in experiment.tests:
        experiment.dataset(stem).gold(training.scale, missing="keep")
        for name in training.sets:
            if stem in experiment.list_stems(name):
                first = experiment.features(name, training.stems[0])
                check_same_features(first, experiment.features(name, stem))


def evaluate_on_test_sets(
    bench: Bench, winner: Finalist, folder: Path
) -> tuple[HeldOutResult, ...]:
    """Test the winner on each test set; what was answered is kept in the folder of the run."""
    return tuple(
        _evaluate_on_test_set(bench, winner, stem, folder)
        for stem in bench.training.experiment.tests
    )


def _evaluate_on_test_set(bench: Bench, winner: Finalist, stem: str, folder: Path) -> HeldOutResult:
    experiment, scale = bench.training.experiment, bench.training.scale
    data = experiment.dataset(stem)
    gold = data.gold(scale, missing="keep")
    known = gold < len(scale)
    if not known.any():
        return HeldOutResult(
            stem, 0, None, math.nan, "it has no levels, so nothing was tested on it."
        )
    lacking = [name for name in winner.sets if stem not in experiment.list_stems(name)]
    if lacking:
        what = f"it has no features of {', '.join(lacking)}, so nothing was tested on it."
        return HeldOutResult(stem, 0, None, math.nan, what)
    features = {name: experiment.features(name, stem) for name in winner.sets}
    levels = _predict_test_set(winner, stem, gold, features, folder, bench)
    groups = None if data.groups is None else data.groups[known]
    asked = bench.settings
    found = evaluate_decision_rules(
        bench.judging(gold[known], groups),
        {way: levels[way][known] for way in DECISION_RULES},
        asked.measure,
        seed=asked.seed,
    )
    left_out = int((~known).sum())
    note = f"{left_out:,} items without a level were left out." if left_out else None
    lost = compute_optimism(asked.measure, winner.evaluation.value, found.value)
    units = None if groups is None else len(np.unique(groups.astype(str)))
    return HeldOutResult(stem, int(known.sum()), found, lost, note, units)


def _predict_test_set(
    winner: Finalist,
    stem: str,
    gold: Positions,
    features: dict[str, DatasetFeatures],
    folder: Path,
    bench: Bench,
) -> dict[str, Positions]:
    """Return the levels that the saved winner gives; once for the same data and the same gold."""
    code = compute_digest(
        {
            "model": winner.name,
            "features": {name: one.digest for name, one in features.items()},
            "gold": hashlib.sha256(gold.tobytes()).hexdigest(),
        }
    )

    def make() -> CachedRecord:
        found = (
            load_model(bench.training.experiment, winner.name).predict(features).by_decision_rule
        )
        return {"levels": convert_levels_to_lists(found)}

    path, size = resolve_inside(folder, f"test-{stem}-{code}.json"), len(bench.training.scale)
    return read_levels(load_or_compute(path, len(gold), size, make))
