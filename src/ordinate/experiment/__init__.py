"""Long work: folders, data sets, stored features, checks, manifests, locks, safe files, workers."""

from ordinate.experiment.check import check_experiment
from ordinate.experiment.check_report import CheckReport
from ordinate.experiment.folder import Experiment

__all__ = ["CheckReport", "Experiment", "check_experiment"]
