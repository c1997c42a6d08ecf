"""Texts of one's own, from labels to predictions, in Python: columns have the names they have."""

import pytest

from ordinate.classify import predict, tune
from ordinate.errors import BadInput
from ordinate.experiment.data_columns import DataColumns
from ordinate.experiment.folder import Experiment

WORDS = {"low": "the cat sat on a mat", "high": "notwithstanding objections of the committee"}


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
    found = predict(tuned, [WORDS["high"], WORDS["low"]])
    assert found.ids is None
    assert list(found.columns()["level"]) == ["high", "low"]


def test_a_frame_of_texts_is_read_by_the_columns_of_training(tuned):
    found = predict(tuned, {"essay": [WORDS["high"], WORDS["low"]], "nr": ["x", "y"]})
    assert found.ids == ("x", "y")
    assert list(found.columns()["level"]) == ["high", "low"]


def test_new_texts_need_no_ids_though_those_of_training_had_some(tuned):
    found = predict(tuned, {"essay": [WORDS["high"], WORDS["low"]]})
    assert found.ids is None
    assert list(found.columns()["row"]) == [1, 2]
    assert list(found.columns()["level"]) == ["high", "low"]


def test_a_column_of_ids_that_is_named_now_has_to_be_there(tuned):
    experiment = Experiment.open(tuned.folder, columns=DataColumns(id="number"))
    with pytest.raises(BadInput, match=r"no column 'number' \(--id-column\)"):
        predict(experiment, {"essay": [WORDS["high"]], "nr": ["x"]})
