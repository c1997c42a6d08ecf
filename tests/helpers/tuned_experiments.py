"""Experiments that are tuned, quickly."""

import json

from ordinate.classify.settings import Settings
from ordinate.classify.tuning import tune
from ordinate.experiment.folder import Experiment

QUICK = Settings(models="logistic,regression", stage2_trials=3, folds=3, top_k=1)


def tuned(root, settings=QUICK, **options):
    return tune(Experiment.open(root), settings, **options)


def stage2(root) -> dict:
    return json.loads((root / "ho_multifeat_results/stage2_optimization_results.json").read_text())
