"""Texts of one's own, from labels to predictions, in Python: columns have the names they have."""

import pytest

from ordinate.classify import predict, tune

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
