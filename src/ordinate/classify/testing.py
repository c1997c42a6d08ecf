"""The test: the winner on data that nothing was chosen by, asked once."""

import hashlib
import math
from pathlib import Path

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cached_results import Record, kept, levels_of, plain_levels
from ordinate.classify.decision_rules import WAYS, Positions
from ordinate.classify.scoring import judged
from ordinate.classify.trained_model import load_tuned
from ordinate.classify.training_data import Training, same_features
from ordinate.classify.tuning_result import Finalist, HeldOut, optimism
from ordinate.experiment.feature_rows import Features
from ordinate.experiment.safe_files import digest, inside


def check_tests(training: Training) -> None:
    """Complain now, and not after hours, about test data that nothing could be tested on."""
    experiment = training.experiment
    for stem in experiment.tests:
        experiment.dataset(stem).gold(training.scale, missing="keep")
        for name in training.sets:
            if stem in experiment.stems_of(name):
                first = experiment.features(name, training.stems[0])
                same_features(first, experiment.features(name, stem))


def held_out(bench: Bench, winner: Finalist, folder: Path) -> tuple[HeldOut, ...]:
    """Test the winner on each test set; what was answered is kept in the folder of the run."""
    return tuple(_held_out(bench, winner, stem, folder) for stem in bench.training.experiment.tests)


def _held_out(bench: Bench, winner: Finalist, stem: str, folder: Path) -> HeldOut:
    experiment, scale = bench.training.experiment, bench.training.scale
    data = experiment.dataset(stem)
    gold = data.gold(scale, missing="keep")
    known = gold < len(scale)
    if not known.any():
        return HeldOut(stem, 0, None, math.nan, "it has no levels, so nothing was tested on it.")
    lacking = [name for name in winner.sets if stem not in experiment.stems_of(name)]
    if lacking:
        what = f"it has no features of {', '.join(lacking)}, so nothing was tested on it."
        return HeldOut(stem, 0, None, math.nan, what)
    features = {name: experiment.features(name, stem) for name in winner.sets}
    levels = _answered(winner, stem, gold, features, folder, bench)
    groups = None if data.groups is None else data.groups[known]
    asked = bench.settings
    found = judged(
        bench.judging(gold[known], groups),
        {way: levels[way][known] for way in WAYS},
        asked.measure,
        seed=asked.seed,
    )
    left_out = int((~known).sum())
    note = f"{left_out:,} items without a level were left out." if left_out else None
    lost = optimism(asked.measure, winner.judged.value, found.value)
    units = None if groups is None else len(np.unique(groups.astype(str)))
    return HeldOut(stem, int(known.sum()), found, lost, note, units)


def _answered(
    winner: Finalist,
    stem: str,
    gold: Positions,
    features: dict[str, Features],
    folder: Path,
    bench: Bench,
) -> dict[str, Positions]:
    """Return the levels that the saved winner gives; once for the same data and the same gold."""
    code = digest(
        {
            "model": winner.name,
            "features": {name: one.digest for name, one in features.items()},
            "gold": hashlib.sha256(gold.tobytes()).hexdigest(),
        }
    )

    def make() -> Record:
        found = load_tuned(bench.training.experiment, winner.name).predict(features).ways
        return {"levels": plain_levels(found)}

    path, size = inside(folder, f"test-{stem}-{code}.json"), len(bench.training.scale)
    return levels_of(kept(path, len(gold), size, make))
