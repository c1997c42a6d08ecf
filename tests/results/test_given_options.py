"""What is given to `evaluate` and has no meaning there, or hides something, is said."""

import duckdb
import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import ordinate
from ordinate.errors import BadOption, BadProbabilities, BadWeights, MissingLabels, OffScale

GOLD = np.array(["low", "mid", "high", "mid"] * 30)
CODES = np.array([0, 1, 2, 1] * 30)
ROWS = np.full((120, 3), 0.1) + 0.7 * np.eye(3)[CODES]  # in the order of the scale
SORTED = ["high", "low", "mid"]
SCALE = "low,mid,high"
LEVELS = SCALE.split(",")
MATRIX = ordinate.ConfusionMatrix.of([0, 1, 1], [0, 1, 0], "0..1")

TAKERS = {
    "evaluate": lambda rows, **more: (
        ordinate.evaluate(
            GOLD, scale=SCALE, probabilities=rows, interval=None, **more
        ).probabilities
    ),
    "beside predictions": lambda rows, **more: (
        ordinate.evaluate(
            GOLD, GOLD, scale=SCALE, probabilities=rows, interval=None, **more
        ).probabilities
    ),
    "Calibration.of": lambda rows, **more: ordinate.Calibration.of(
        GOLD, rows, scale=SCALE, interval=None, **more
    ),
    "RecalibrationEvaluation.of": lambda rows, **more: (
        ordinate.RecalibrationEvaluation.of(
            *(GOLD, rows, ROWS), scale=SCALE, metrics="brier", after_columns="scale", **more
        ).before
    ),
    "RecalibrationEvaluation.of after": lambda rows, *, columns=None: (
        ordinate.RecalibrationEvaluation.of(
            *(GOLD, ROWS, rows), scale=SCALE, columns=list(LEVELS), after_columns=columns
        ).after
    ),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_columns_in_the_order_of_scikit_learn_are_not_read_in_that_of_the_scale(taker):
    take, sorted_rows = TAKERS[taker], ROWS[:, [2, 0, 1]]
    for rows in (ROWS, sorted_rows):
        with pytest.raises(BadProbabilities, match=r"Add (after_)?columns=model\.classes_"):
            take(rows)
    for found in (take(sorted_rows, columns=SORTED), take(ROWS, columns="scale")):
        assert found.metrics["brier"].value == pytest.approx(0.06)


def test_the_text_reports_take_columns_too():
    named = ordinate.calibration_report(GOLD, ROWS[:, [2, 0, 1]], SCALE, columns=SORTED)
    assert named == ordinate.calibration_report(GOLD, ROWS, SCALE, columns="scale")
    with pytest.raises(BadProbabilities, match="have no names"):
        ordinate.calibration_report(GOLD, ROWS, SCALE)


def test_the_report_of_the_cefr_has_all_its_levels():
    text = ordinate.cefr_calibration_report(["A1"], [[0.8, 0.2]], columns=["A1", "A2"])
    assert text.splitlines()[4] == "Expected Calibration Error (ECE): 0.20"
    assert "No column, or no item, has a probability of B1, B2, C1 and C2" in text
    assert ordinate.cefr_calibration_report(["A1"], [[0.8, 0.2, 0, 0, 0, 0]]) == text


def test_a_most_probable_level_that_seldom_agrees_with_predictions_is_told():
    found = TAKERS["beside predictions"](ROWS[:, [2, 0, 1]], columns="scale")
    assert found.notes[0].startswith("The most probable level is the predicted one for 0.0 %")
    assert TAKERS["beside predictions"](ROWS, columns="scale").notes == ()


@pytest.mark.parametrize("engine", ["frame", "lazy frame", "relation", "query"])
def test_every_engine_tells_that_probabilities_do_not_agree_with_predictions(engine):
    swapped = {"p_low": ROWS[:, 1], "p_mid": ROWS[:, 2], "p_high": ROWS[:, 0]}
    names = {"gold": "gold", "predicted": "guess", "probabilities": "p_", "scale": SCALE}
    notes = []
    for table in (frame(**swapped), frame()):
        connection = duckdb.connect()
        connection.register("items", table.to_arrow())
        found = {
            "frame": lambda table=table: ordinate.evaluate(table, **names),
            "lazy frame": lambda table=table: ordinate.evaluate(table.lazy(), **names),
            "relation": lambda c=connection: ordinate.evaluate(c.sql("from items"), **names),
            "query": lambda c=connection: ordinate.evaluate_sql(c, "from items", **names),
        }[engine]()
        notes.append(" ".join(found.probabilities.notes))
    assert "the predicted one for 0.0 %" in notes[0]
    assert "the predicted one" not in notes[1]


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_without_probabilities_agree_with_no_prediction(lazy):
    holes = {f"p_{x}": np.where(CODES == 1, np.nan, ROWS[:, k]) for k, x in enumerate(LEVELS)}
    table = frame(**holes)
    found = ordinate.evaluate(
        table.lazy() if lazy else table,
        gold="gold",
        predicted="guess",
        probabilities="p_",
        scale=SCALE,
        missing="drop",
        interval=None,
    )
    assert found.probabilities.agreement == 1.0


def test_levels_without_a_column_are_told():
    rows = ROWS[:, :2] / ROWS[:, :2].sum(axis=1, keepdims=True)
    (note,) = TAKERS["evaluate"](rows, columns=["low", "mid"]).notes
    assert "has a probability of high" in note


def frame(**columns):
    probabilities = {f"p_{name}": ROWS[:, k] for k, name in enumerate(LEVELS)}
    return pl.DataFrame({"gold": GOLD, "guess": GOLD} | probabilities | columns)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("role", ["predicted", "groups", "second_rater"])
def test_what_labels_leave_out_probabilities_leave_out_too(role, lazy):
    holes = [None if k % 4 == 0 else x for k, x in enumerate(GOLD)]
    table = frame(holes=holes)
    names = {"gold": "gold", "predicted": "guess", "probabilities": "p_"} | {role: "holes"}
    found = ordinate.evaluate(
        table.lazy() if lazy else table, **names, scale=SCALE, missing="drop", interval=None
    )
    assert found.confusion_matrix.n == found.probabilities.summary.n == 90
    assert found.confusion_matrix.dropped == found.probabilities.summary.dropped == 30


def test_an_array_beside_a_table_is_refused():
    for options in ({"probabilities": ROWS}, {"probabilities": "p_", "columns": SORTED}):
        with pytest.raises(BadOption, match="columns"):
            ordinate.evaluate(frame(), gold="gold", scale=SCALE, **options)


@pytest.mark.parametrize(
    "option",
    [{"missing": "bogus"}, {"bins": 3}, {"columns": ["a"]}, {"renormalize": True}],
    ids=str,
)
def test_an_option_without_a_meaning_is_refused(option):
    with pytest.raises(BadOption, match="a confusion matrix is counted already"):
        ordinate.evaluate(MATRIX, **option)
    with pytest.raises(BadOption, match=r"not one of|and there are none"):
        ordinate.evaluate([0, 1], [0, 1], "0..1", **option)


@pytest.mark.parametrize("taker", ["Calibration.of", "RecalibrationEvaluation.of"])
def test_an_unknown_policy_for_missing_items_is_refused(taker):
    with pytest.raises(BadOption, match="missing='bogus' is not one of error, drop"):
        TAKERS[taker](ROWS, columns="scale", missing="bogus")


def test_a_model_is_no_column():
    model = make_pipeline(LogisticRegression())
    for take in (ordinate.evaluate, ordinate.evaluate_regression, ordinate.compare):
        with pytest.raises(BadOption, match=r"Pipeline is a model\. Predict first"):
            take(model, [[1.0]], [0])


def test_a_misspelt_metric_of_a_result_proposes_the_near_one():
    labels = ordinate.evaluate([0, 1, 1], [0, 1, 0], "0..1", interval=None)
    regression = ordinate.evaluate_regression([0.0, 1.0, 3.0], [0.0, 1.0, 2.0], interval=None)
    compared = ordinate.compare([0, 1, 1], {"a": [0, 1, 0], "b": [0, 0, 0]}, "0..1", resamples=200)
    for found in (labels.metrics, compared.leaderboards):
        with pytest.raises(KeyError, match=r"no metric 'acuracy'\. Did you mean 'accuracy'"):
            found["acuracy"]
    with pytest.raises(KeyError, match="Did you mean 'rmse'"):
        regression.metrics["rsme"]
    assert labels.metrics.get("acuracy") is None


@pytest.mark.parametrize("role", ["gold", "predicted", "groups", "second_rater"])
def test_what_a_mask_hides_is_missing(role):
    masked = np.ma.array([0, 1, 1, 0], mask=[0, 0, 0, 1])
    columns = {"gold": [0, 1, 1, 0], "predicted": [0, 1, 0, 0]} | {role: masked}
    with pytest.raises(MissingLabels, match="row 4"):
        ordinate.evaluate(**columns, scale="0..1", interval=None)
    found = ordinate.evaluate(**columns, scale="0..1", missing="drop", interval=None)
    assert found.confusion_matrix.n == 3


def test_a_hidden_weight_is_none_and_a_hidden_subgroup_is_that_of_the_others():
    masked, labels = np.ma.array([1, 1, 1, 9], mask=[0, 0, 0, 1]), [0, 1, 1, 0]
    with pytest.raises(BadWeights, match="row 4"):
        ordinate.evaluate(labels, labels, "0..1", weights=masked)
    assert list(ordinate.evaluate(labels, labels, "0..1", by=masked).by) == [1, None]


def test_items_of_weight_0_may_have_labels_off_the_scale_beside_probabilities():
    guess, weights = ["strange", *GOLD[1:]], [0, *[1] * 119]
    options = {"probabilities": ROWS, "columns": "scale", "interval": None}
    found = ordinate.evaluate(GOLD, guess, SCALE, weights=weights, **options)
    assert found.confusion_matrix.n == 119
    assert found.probabilities.agreement == 1.0


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_one_error_lists_unknown_labels_of_all_sides_beside_probabilities(missing):
    gold, guess = ["Low", *GOLD[1:]], [*GOLD[:-1], "MID"]
    with pytest.raises(OffScale, match="label_map=") as caught:
        ordinate.evaluate(gold, guess, SCALE, probabilities=ROWS, columns="scale", missing=missing)
    assert caught.value.proposed_map == {"Low": "low", "MID": "mid"}
