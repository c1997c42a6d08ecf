"""Texts of one's own, from labels to predictions, in Python: columns have the names they have."""

from dataclasses import replace

import pytest

from ordinate.errors import BadInput
from ordinate.postprocess.conformal_sets import PredictionSets
from ordinate.tuning.classify import predict, tune
from ordinate.tuning.classify.batch_prediction import (
    DatasetPredictions,
    PredictionInput,
    PredictionReport,
    load_data_items,
    predict_items,
)
from ordinate.tuning.classify.trained_model import load_model
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.frame_files import write_frame

WORDS = {"low": "the cat sat on a mat", "high": "notwithstanding objections of the committee"}
NEW = {level: f"{text}, number 99" for level, text in WORDS.items()}


@pytest.fixture(scope="module")
def tuned():
    levels = ["low", "high"] * 20
    essays = {
        "nr": [f"e{k}" for k in range(40)],
        "grade": levels,
        "essay": [f"{WORDS[level]}, number {k}" for k, level in enumerate(levels)],
    }
    named = {"text_column": "essay", "label_column": "grade", "id_column": "nr"}
    options = {"metric": "accuracy", "models": "logistic", "trials": 1, "folds": 2}
    return tune(essays, scale="low,high", **named, **options)


def test_a_list_of_texts_needs_no_names_of_columns_and_no_ids(tuned):
    found = predict(tuned, [NEW["high"], NEW["low"]])
    assert found.ids is None
    assert list(found.columns()["level"]) == ["high", "low"]


def test_a_frame_of_texts_is_read_by_the_columns_of_training(tuned):
    found = predict(tuned, {"essay": [NEW["high"], NEW["low"]], "nr": ["x", "y"]})
    assert found.ids == ("x", "y")
    assert list(found.columns()["level"]) == ["high", "low"]


def test_new_texts_need_no_ids_though_those_of_training_had_some(tuned):
    found = predict(tuned, {"essay": [NEW["high"], NEW["low"]]})
    assert found.ids is None
    assert list(found.columns()["row"]) == [1, 2]
    assert list(found.columns()["level"]) == ["high", "low"]


def test_a_column_of_ids_that_is_named_now_has_to_be_there(tuned):
    experiment = Experiment.open(tuned.folder, columns=DataColumns(id="number"))
    with pytest.raises(BadInput, match=r"no column 'number' \(id_column=…\)"):
        predict(experiment, {"essay": [NEW["high"]], "nr": ["x"]})


def test_data_that_have_gold_are_evaluated(tuned):
    experiment = Experiment.open(tuned.folder, columns=DataColumns(text="essay", label="grade"))
    model = load_model(experiment, None)

    def report(grades):
        texts = {"essay": [NEW["high"], NEW["low"], NEW["low"]], "grade": grades}
        with write_frame(texts) as path:
            items = load_data_items(experiment, model, str(path))
        return PredictionReport(model, (predict_items(model, items),))

    found = report(["high", "low", "high"])
    evaluation = found.done[0].evaluation
    assert evaluation.confusion_matrix.counts.tolist() == [[1, 0], [1, 1]]
    assert evaluation.probabilities.summary.n == 3
    assert found.to_dict()["data"][0]["evaluation"]["n"] == 3
    for part in ("Against the gold levels of", "Levels", "Confidence bins"):
        assert part in str(found)
    for others in ([None, None, None], ["A", "B", "C"]):
        assert report(others).done[0].evaluation is None


def test_levels_outside_their_own_prediction_sets_are_counted(tuned):
    """As those that quadratic kappa rewards can be, however sure a model is of another level."""
    found = predict(tuned, [NEW["high"], NEW["low"], NEW["low"]])
    data = PredictionInput("new", "new.csv", None, {}, "made", notes=("A note.",))
    within = replace(found, sets=PredictionSets(found.scale, found.levels, found.levels))
    assert DatasetPredictions(data, within).notes == ("A note.",)
    lows = PredictionSets(found.scale, 0 * found.levels, 0 * found.levels)
    done = DatasetPredictions(data, replace(found, sets=lows))
    first, second = done.notes
    assert second.startswith("1 of 3 predicted levels lie outside their own prediction sets: ")
    assert done.to_dict()["notes"] == [first, second]
    report = PredictionReport(load_model(Experiment.open(tuned.folder)), (done,))
    assert {first, second} <= set(report.document().notes)


def test_the_short_form_of_predictions_is_one_line(tuned):
    found = predict(tuned, [NEW["high"], NEW["low"]])
    assert repr(found) == (
        "<Predictions: 2 rows of row, level, argmax, rounded_mean, p_low, p_high and 2 more>"
    )
