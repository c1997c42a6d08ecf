"""scikit-learn's check_estimator on every classifier of `ordinate.integrations.sklearn`."""

import warnings
from collections import Counter
from typing import Any, NamedTuple

import sklearn
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

from ordinate.integrations.sklearn import (
    ConformalClassifierCV,
    CutPointClassifierCV,
    FrankHallClassifier,
    MetricTunedClassifierCV,
    OrdinalThresholdClassifier,
    RecalibratedClassifierCV,
)

# The labels that the checks use, on a declared scale: the words are not in alphabetical order.
SCALE = (*range(-3, 10), "one", "two", "three")
NOT_ARGMAX = (
    "`predict` is to be the argmax of `predict_proba`; it is optimal for the metric instead"
)


class Case(NamedTuple):
    """An estimator, and the checks that cannot apply to it, each with its reason."""

    estimator: Any
    cannot_apply: dict[str, str]

    @property
    def name(self) -> str:
        """How the estimator is made, without its scale."""
        unscaled = self.estimator.__class__(**self.estimator.get_params(deep=False))
        return repr(unscaled.set_params(scale=None))


CASES = (
    Case(OrdinalThresholdClassifier(scale=SCALE), {}),
    Case(OrdinalThresholdClassifier(loss="all_threshold", scale=SCALE), {}),
    Case(FrankHallClassifier(scale=SCALE), {}),
    Case(
        MetricTunedClassifierCV(GaussianNB(), scale=SCALE), {"check_classifiers_train": NOT_ARGMAX}
    ),
    Case(RecalibratedClassifierCV(GaussianNB(), scale=SCALE), {}),
    Case(ConformalClassifierCV(GaussianNB(), scale=SCALE), {}),
    Case(CutPointClassifierCV(Ridge(), scale=SCALE), {}),
)


def run_checks(case: Case) -> list[dict[str, Any]]:
    """Return what check_estimator found, one record for each check."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data that the checks make bad on purpose
        return check_estimator(
            case.estimator,
            expected_failed_checks=case.cannot_apply,
            on_skip=None,
            on_fail=None,
        )


def format_row(case: Case, results: list[dict[str, Any]]) -> str:
    """Return the row of an estimator in the table."""
    counts = Counter(one["status"] for one in results)
    reasons = [f"`{check}`: {reason}" for check, reason in case.cannot_apply.items()]
    cells = [f"`{case.name}`", *(str(counts[x]) for x in ("passed", "failed", "xfail", "skipped"))]
    return f"| {' | '.join([*cells, '; '.join(reasons)])} |"


def format_table() -> str:
    """Return the table of all estimators."""
    head = ["estimator", "passed", "failed", "cannot apply", "skipped", "which, and why"]
    lines = [
        f"With scikit-learn {sklearn.__version__}:",
        "",
        f"| {' | '.join(head)} |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *(format_row(case, run_checks(case)) for case in CASES),
    ]
    return "\n".join(lines)
