"""LightGBM and XGBoost evaluate metrics of ordered levels while they train."""

import lightgbm
import numpy as np
import pytest
from shown_output import find_block
from sklearn.preprocessing import LabelEncoder

import ordinate
from ordinate.errors import BadInput, BadOption
from ordinate.integrations.boosting import LightGBMMetric, XGBoostMetric, stop_early

xgboost = pytest.importorskip("xgboost")  # which the oldest versions are tested without
pytestmark = pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
LEVELS = ["low", "mid", "high"]
SORTED = sorted(LEVELS)  # high, low, mid: the numbers that both libraries give them
RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 3))
CODES = np.searchsorted([-0.5, 0.8], X[:, 0] + RNG.normal(0, 0.5, 300))
LABELS = np.array(LEVELS)[CODES]
WEIGHTS = RNG.integers(1, 4, 300).astype(float)
FIT, HELD = slice(0, 200), slice(200, 300)
QUIET = {"verbosity": -1, "num_threads": 1}


def make_lightgbm(**options):
    return lightgbm.LGBMClassifier(n_estimators=8, n_jobs=1, verbosity=-1, **options)


@pytest.mark.parametrize("metric", ["cem_ord", "mae", "bias", "rps"])
def test_lightgbm_has_the_value_of_its_own_predictions(metric):
    measure = LightGBMMetric(metric, LEVELS, classes=SORTED)
    model = make_lightgbm().fit(
        X[FIT], LABELS[FIT], eval_set=[(X[HELD], LABELS[HELD])], eval_metric=measure
    )
    (values,) = (x[metric] for x in model.evals_result_.values())
    expected = abs(evaluate(metric, model))
    assert values[-1] == pytest.approx(expected, rel=1e-9)


def evaluate(metric, model):
    if metric != "rps":
        predicted = model.predict(X[HELD])
        return float(ordinate.score(metric, LABELS[HELD], predicted, scale=LEVELS))
    rows = model.predict_proba(X[HELD])
    found = ordinate.Calibration.of(
        LABELS[HELD], rows, scale=LEVELS, columns=SORTED, metrics="rps", interval=None
    )
    return found.metrics["rps"].value


@pytest.mark.parametrize(("metric", "best"), [("cem_ord", max), ("mae", min)])
def test_lightgbm_stops_in_the_direction_of_the_metric(metric, best):
    model = make_lightgbm(metric="None").fit(
        X[FIT],
        LABELS[FIT],
        eval_set=[(X[HELD], LABELS[HELD])],
        eval_metric=LightGBMMetric(metric, LEVELS, classes=SORTED),
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
    )
    (values,) = (x[metric] for x in model.evals_result_.values())
    assert values[model.best_iteration_ - 1] == best(values)


def test_lightgbm_train_takes_positions_and_weights():
    train = lightgbm.Dataset(X[FIT], CODES[FIT])
    held = lightgbm.Dataset(X[HELD], CODES[HELD], weight=WEIGHTS[HELD], reference=train)
    history = {}
    model = lightgbm.train(
        QUIET | {"objective": "multiclass", "num_class": 3, "metric": "None"},
        train,
        5,
        valid_sets=[held],
        feval=LightGBMMetric("mae", LEVELS, "scale"),
        callbacks=[lightgbm.record_evaluation(history)],
    )
    predicted = model.predict(X[HELD]).argmax(axis=1)
    expected = ordinate.score("mae", CODES[HELD], predicted, scale="0..2", weights=WEIGHTS[HELD])
    assert history["valid_0"]["mae"][-1] == pytest.approx(float(expected), rel=1e-6)


def test_lightgbm_of_two_classes_puts_out_one_column():
    passed = np.where(CODES > 0, "pass", "fail")
    measure = LightGBMMetric("accuracy", ["fail", "pass"])
    model = make_lightgbm().fit(
        X[FIT], passed[FIT], eval_set=[(X[HELD], passed[HELD])], eval_metric=measure
    )
    (values,) = (x["accuracy"] for x in model.evals_result_.values())
    assert values[-1] == pytest.approx(np.mean(model.predict(X[HELD]) == passed[HELD]))


@pytest.mark.parametrize(("metric", "best"), [("cem_ord", np.argmax), ("mae", np.argmin)])
def test_xgboost_stops_in_the_direction_of_the_metric(metric, best):
    measure = XGBoostMetric(metric, LEVELS, "scale")
    model = xgboost.XGBClassifier(
        n_estimators=8, n_jobs=1, eval_metric=measure, callbacks=[stop_early(measure, 2)]
    )
    model.fit(X[FIT], CODES[FIT], eval_set=[(X[HELD], CODES[HELD])], verbose=False)
    values = model.evals_result()["validation_0"][metric]
    assert model.best_iteration == best(values)
    expected = ordinate.score(metric, CODES[HELD], model.predict(X[HELD]), scale="0..2")
    assert values[model.best_iteration] == pytest.approx(float(expected))


def test_the_page_stops_xgboost_early():
    labels = np.array(["A1", "B1", "C2"])[CODES]
    encoder = LabelEncoder().fit(labels)
    known = {"encoder": encoder, "XGBClassifier": xgboost.XGBClassifier}
    known |= {"XGBoostMetric": XGBoostMetric, "stop_early": stop_early}
    code = find_block("docs/integrations.md", "measure = XGBoostMetric")
    exec(code.replace("\nXGBClassifier(", "\nmodel = XGBClassifier("), known)  # noqa: S102 - a page of ours
    model, codes = known["model"].set_params(n_jobs=1), encoder.transform(labels)
    model.fit(X[FIT], codes[FIT], eval_set=[(X[HELD], codes[HELD])], verbose=False)
    values = model.evals_result()["validation_0"]["cem_ord"]
    assert len(values) == model.best_iteration + 1 + 10
    predicted = encoder.inverse_transform(model.predict(X[HELD]))
    expected = ordinate.score("cem_ord", labels[HELD], predicted, scale="cefr")
    assert values[model.best_iteration] == max(values) == pytest.approx(float(expected))


def test_xgboost_train_takes_weights():
    held = xgboost.DMatrix(X[HELD], CODES[HELD], weight=WEIGHTS[HELD])
    history = {}
    model = xgboost.train(
        {"objective": "multi:softprob", "num_class": 3, "nthread": 1},
        xgboost.DMatrix(X[FIT], CODES[FIT]),
        5,
        evals=[(held, "held")],
        custom_metric=XGBoostMetric("mae", LEVELS, "scale"),
        evals_result=history,
        verbose_eval=False,
    )
    predicted = model.predict(held).argmax(axis=1)
    expected = ordinate.score("mae", CODES[HELD], predicted, scale="0..2", weights=WEIGHTS[HELD])
    assert history["held"]["mae"][-1] == pytest.approx(float(expected), abs=1e-6)  # six digits


@pytest.mark.parametrize(
    ("target", "outputs", "message"),
    [
        ([0, 3], np.eye(3)[:2], "class number 3, but there are 3 classes"),
        ([0, 1], np.eye(2), "not a column for each of the 3 classes"),
        ([0, 0.5], np.eye(3)[:2], "one class number for each of 2 rows"),
        ([0], np.eye(3)[:2], "one class number for each of 2 rows"),
    ],
    ids=["number", "columns", "no number", "length"],
)
def test_outputs_that_are_no_classes_of_the_scale_are_refused(target, outputs, message):
    with pytest.raises(BadInput, match=message):
        LightGBMMetric("mae", LEVELS, "scale")(target, outputs)


def test_classes_off_the_scale_are_refused():
    with pytest.raises(BadOption, match="'none', which is not on the scale low < mid < high"):
        XGBoostMetric("mae", LEVELS, classes=["low", "none"])
