"""Experiments that are tuned, quickly."""

import json

from ordinate.classify.settings import Settings
from ordinate.classify.tuning import tune_experiment
from ordinate.experiment.folder import Experiment

QUICK = Settings(models="logistic,regression", trials=3, folds=3, top_k=1)


def tuned(root, settings=QUICK, **options):
    return tune_experiment(Experiment.open(root), settings, **options)


def read_results(root) -> dict:
    return json.loads((root / "results/results.json").read_text())
