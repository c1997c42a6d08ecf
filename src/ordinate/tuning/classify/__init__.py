"""The ordinal task: training data, decision rules, tuning, saved models, predictions, rankings."""

from ordinate.tuning.classify.batch_prediction import PredictionReport, predict, predict_datasets
from ordinate.tuning.classify.model_ranking import ModelRanking, rank
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.trained_model import TunedModel, load_model, load_models
from ordinate.tuning.classify.tuning import tune, tune_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.search.tuning_result import TuningResult

__all__ = [
    "Experiment",
    "ModelRanking",
    "PredictionReport",
    "Settings",
    "TunedModel",
    "TuningResult",
    "load_model",
    "load_models",
    "predict",
    "predict_datasets",
    "rank",
    "tune",
    "tune_experiment",
]
