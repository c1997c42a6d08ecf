"""scikit-learn's own checks, and the table that the page shows of them."""

import importlib.util
from pathlib import Path

import pytest
import sklearn

DOCS = Path(__file__).parents[3] / "docs"
SPEC = importlib.util.spec_from_file_location("estimator_checks", DOCS / "estimator_checks.py")
estimator_checks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(estimator_checks)


ALIKE = {"RecalibratedClassifierCV", "ConformalClassifierCV"}  # fitted as the tuned one is
CASES = [
    pytest.param(
        case,
        id=case.name,
        marks=[pytest.mark.slow] if type(case.estimator).__name__ in ALIKE else [],
    )
    for case in estimator_checks.CASES
]


@pytest.mark.parametrize("case", CASES)
def test_check_estimator_passes_but_for_what_cannot_apply(case):
    results = estimator_checks.run_checks(case)
    failed = [one["check_name"] for one in results if one["status"] == "failed"]
    assert not failed
    assert len(results) > 40
    skipped = {one["check_name"] for one in results if one["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # which needs SciPy told beforehand
    excused = {one["check_name"] for one in results if one["status"] == "xfail"}
    assert excused == set(case.cannot_apply)
    page = (DOCS / "sklearn.md").read_text("utf-8")
    if f"With scikit-learn {sklearn.__version__}:" in page:
        assert estimator_checks.format_row(case, results) in page
