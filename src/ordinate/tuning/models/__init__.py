"""Models: classifiers, regressors and networks; arrays in, arrays out, saved without pickles."""

from ordinate.tuning.models.classifiers import Classifier, create_classifier, load_classifier
from ordinate.tuning.models.regressors import Regressor, create_regressor, load_regressor

__all__ = [
    "Classifier",
    "Regressor",
    "create_classifier",
    "create_regressor",
    "load_classifier",
    "load_regressor",
]
