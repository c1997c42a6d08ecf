"""Saved surrogates that are asked for rows unlike those that they have learned from."""

import warnings

import numpy as np
import pytest
from surrogates import columns, smooth

from ordinate.errors import BadValues
from ordinate.models.regressors import MODEL_TYPES
from ordinate.regress.settings import Settings
from ordinate.regress.table import make_table
from ordinate.regress.trained_model import load_surrogate
from ordinate.regress.tuning import tune_table


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One surrogate of each model type, and the blend of them."""
    root = tmp_path_factory.mktemp("asked")
    small = {"mlp": {"members": 2, "width": 8, "depth": 1, "epochs": 2}}
    fixed = {model_type: small.get(model_type, {}) for model_type in MODEL_TYPES}
    tuned = tune_table(smooth(), root, Settings(models=list(MODEL_TYPES), folds=2, params=fixed))
    return {one.model_type: load_surrogate(root, one.name) for one in tuned.finalists}


@pytest.mark.parametrize("model_type", [*MODEL_TYPES, "blend"])
@pytest.mark.parametrize("value", [1e120, -1e300, 1.7e308])
def test_a_row_beyond_all_measure_is_named_by_every_model_type(found, model_type, value):
    rows = np.zeros((3, 3))
    rows[1, 2] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BadValues, match=r"Row 2 lies too far from what was learned: .* in 'c'"):
            found[model_type].predict(rows)


def test_a_row_that_is_as_far_as_far_goes_is_answered_with_a_note(found):
    rows = np.zeros((3, 3))
    rows[:, 0] = 0.0, 1e5, 1e60  # networks hold the last one as infinite
    for model_type, one in found.items():
        answer = one.predict(rows)
        assert np.isfinite(answer.values).all(), model_type
        assert answer.values[1] == pytest.approx(answer.values[2])
        assert "2 of 3 rows lie more than 10 standard deviations" in answer.notes[-1]


def test_numbers_that_run_over_inside_a_model_are_told_by_the_row(found, monkeypatch):
    from ordinate.regress import model_inputs

    monkeypatch.setattr(model_inputs, "REACH", np.inf)
    rows = np.zeros((3, 3))
    rows[2, 0] = 1e60
    with pytest.raises(BadValues, match=r"Row 3 lies too far .* in 'a'"):
        found["mlp"].predict(rows)
    assert np.isfinite(found["lightgbm"].predict(rows).values).all()


@pytest.mark.parametrize("model_type", [*MODEL_TYPES, "blend"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_finite_number_is_named_by_row_and_feature(found, model_type, value):
    rows = np.zeros((3, 3))
    rows[1, 2] = value
    with pytest.raises(BadValues, match=rf"Row 2 has {value} in 'c', which is no finite number"):
        found[model_type].predict(rows)


@pytest.mark.parametrize("model_type", [*MODEL_TYPES, "blend"])
def test_rows_far_from_training_are_counted_with_their_features(found, model_type):
    rows = np.zeros((5, 3))
    rows[1, 0], rows[3] = 50.0, (-50.0, 0.0, 50.0)
    (note,) = found[model_type].predict(rows).notes[-1:]
    assert note.startswith("2 of 5 rows lie more than 10 standard deviations from the mean of the ")
    assert "in 'a', 'c':" in note
    assert not [note for note in found[model_type].predict(rows[:1]).notes if "deviations" in note]


@pytest.mark.parametrize("model_type", [*MODEL_TYPES, "blend"])
def test_no_rows_have_no_predictions_but_the_same_columns(found, model_type, tmp_path):
    none, some = (found[model_type].predict(np.zeros((n, 3))) for n in (0, 2))
    assert len(none) == 0
    assert none.csv() == some.csv().splitlines()[0] + "\n"
    for name in ("none.csv", "none.parquet"):
        none.write(tmp_path / name)
    assert (tmp_path / "none.csv").read_text() == none.csv()


@pytest.mark.parametrize("model_type", ["gp", "mlp"])
def test_what_never_varied_in_training_changes_nothing_and_is_told(tmp_path, model_type):
    x, y = columns(60)
    table = make_table(np.column_stack([x, np.full(60, 7.0)]), y, names=["a", "b", "c", "still"])
    small = {"mlp": {"members": 2, "width": 8, "depth": 1, "epochs": 2}}
    tune_table(
        table,
        tmp_path,
        Settings(
            models=model_type, folds=2, trials=1, params={model_type: small.get(model_type, {})}
        ),
    )
    asked = load_surrogate(tmp_path)
    rows = np.column_stack([x[:4], [7.0, 7.0, 8.0, 7e9]])
    found, plain = asked.predict(rows), asked.predict(table.features[:4])
    assert (found.values == plain.values).all()
    assert not [note for note in plain.notes if "still" in note]
    assert [note for note in found.notes if note.startswith("2 of 4 rows differ in 'still' from")]
