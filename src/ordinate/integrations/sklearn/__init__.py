"""Ordinate in scikit-learn: scorers, metric functions, and classifiers of ordered labels.

Needs scikit-learn: `pip install 'ordinate[sklearn]'`.
"""

from ordinate.errors import MissingExtra

try:
    import sklearn as _sklearn  # noqa: F401 - asked for here, so that its absence is explained
except ImportError as problem:
    raise MissingExtra(
        f"Scorers and estimators take scikit-learn, which cannot be imported ({problem}): "
        "pip install 'ordinate[sklearn]'"
    ) from None

from ordinate.integrations.sklearn.metric_functions import (
    accuracy_within,
    cem_ord,
    macro_mae,
    quadratic_kappa,
    rps,
)
from ordinate.integrations.sklearn.ordinal_regression import (
    FrankHallClassifier,
    OrdinalThresholdClassifier,
)
from ordinate.integrations.sklearn.scoring import OrdinalScorer, scorer, scorers
from ordinate.integrations.sklearn.tuned_classifiers import (
    ConformalClassifierCV,
    CutPointClassifierCV,
    MetricTunedClassifierCV,
    RecalibratedClassifierCV,
)

__all__ = [
    "ConformalClassifierCV",
    "CutPointClassifierCV",
    "FrankHallClassifier",
    "MetricTunedClassifierCV",
    "OrdinalScorer",
    "OrdinalThresholdClassifier",
    "RecalibratedClassifierCV",
    "accuracy_within",
    "cem_ord",
    "macro_mae",
    "quadratic_kappa",
    "rps",
    "scorer",
    "scorers",
]
