"""Experiments that are tuned, quickly."""

import json

from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import ClassificationTask
from ordinate.tuning.classify.training_data import TrainingData
from ordinate.tuning.classify.tuning import tune_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.search.time_budget import TimeBudget

QUICK = Settings(models="logistic,regression", trials=3, folds=3, top_k=1)


def tuned(root, settings=QUICK, **options):
    return tune_experiment(Experiment.open(root), settings, **options)


def open_task(root, *, budget=None, **settings) -> ClassificationTask:
    """Return the task of an experiment with one worker, as tuning opens it."""
    return ClassificationTask(
        root=root,
        settings=Settings(**{"models": "logistic", "folds": 3} | settings),
        workers=WorkerPool(1),
        budget=budget or TimeBudget(),
        training=TrainingData.of(Experiment.open(root)),
    )


def read_results(root) -> dict:
    return json.loads((root / "results/results.json").read_text())
