"""CatBoost evaluates metrics of ordered levels while it trains."""

import numpy as np
import pytest

import ordinate
from ordinate.integrations.boosting import CatBoostMetric

catboost = pytest.importorskip("catboost")  # `make test-integrations` has it
LEVELS = ["low", "mid", "high"]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 3))
CODES = np.searchsorted([-0.5, 0.8], X[:, 0] + RNG.normal(0, 0.5, 200))
LABELS = np.array(LEVELS)[CODES]


@pytest.mark.filterwarnings("ignore:Failed to import numba")  # without which it is slower
@pytest.mark.parametrize(("metric", "best"), [("cem_ord", np.argmax), ("mae", np.argmin)])
@pytest.mark.parametrize("names", [LEVELS, None], ids=["ordered", "sorted"])
def test_catboost_keeps_the_best_iteration_of_the_metric(tmp_path, metric, best, names):
    classes = "scale" if names else sorted(LEVELS)
    model = catboost.CatBoostClassifier(
        iterations=8,
        loss_function="MultiClass",
        class_names=names,
        eval_metric=CatBoostMetric(metric, LEVELS, classes=classes),
        train_dir=str(tmp_path),
        thread_count=1,
        verbose=False,
    )
    model.fit(X[:120], LABELS[:120], eval_set=(X[120:], LABELS[120:]))
    (values,) = (
        x for name, x in model.get_evals_result()["validation"].items() if name != "MultiClass"
    )
    assert model.get_best_iteration() == best(values)
    predicted = model.predict(X[120:]).ravel()
    expected = ordinate.score(metric, LABELS[120:], predicted, scale=LEVELS)
    assert values[best(values)] == pytest.approx(float(expected))
