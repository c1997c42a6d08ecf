"""Saved models: they predict as they were tested, name odd rows, and are refused when forged."""

import json
import shutil
import warnings

import numpy as np
import pytest
from regression_tables import columns, smooth
from search_cases import seal

from ordinate.errors import BadInput, BadStore, BadValues
from ordinate.tuning.models.regressors import MODEL_TYPES
from ordinate.tuning.regress.fitting import ModelInputs
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.table import make_table
from ordinate.tuning.regress.trained_model import load_regression_model, predict_regression
from ordinate.tuning.regress.tuning import tune_table

SETTINGS = {"models": "svr,kernel_ridge", "trials": 1, "folds": 2, "blend": "always"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    root = tmp_path_factory.mktemp("saved")
    return root, tune_table(smooth(), root, Settings(**SETTINGS), unit="kg")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    tune_table(smooth(), root, Settings(models="poly_ridge", trials=1, folds=2))
    return root


@pytest.fixture
def fresh(made, tmp_path):
    root = tmp_path / "fresh"
    shutil.copytree(made, root)
    (folder,) = (root / "models").iterdir()
    return root, folder


def test_the_winner_is_loaded_by_default_and_predicts_as_it_was_tested(saved):
    root, result = saved
    loaded = load_regression_model(root)
    assert loaded.name == result.winner.name
    assert loaded.unit == "kg"
    test = result.tests[0]
    features = smooth().features[np.array(test.columns["rows"]) - 1]
    found = loaded.predict(features)
    assert found.values.tolist() == test.columns["predictions"][loaded.name]
    assert found.lower.tolist() == test.columns["lower"]


def test_a_frame_is_predicted_by_a_folder_and_a_name(saved):
    pandas = pytest.importorskip("pandas")
    root, result = saved
    x = columns(5, seed=9)[0]
    frame = pandas.DataFrame(x[:, ::-1], columns=["c", "b", "a"])
    for one in result.finalists:
        expected = load_regression_model(root, one.name).predict(x, 0.2)
        found = predict_regression(root, frame, model=one.name, alpha=0.2)
        assert found.rows() == expected.rows()


def test_a_blend_is_the_weighted_average_of_its_members(saved):
    root, result = saved
    x = columns(30, seed=9)[0]
    members = [
        load_regression_model(root, name).predict(x).values for name in result.winner.members
    ]
    expected = np.column_stack(members) @ np.array(result.winner.weights)
    found = load_regression_model(root).predict(x)
    assert np.allclose(found.values, expected, rtol=0, atol=1e-12)
    assert (found.spread > 0).all()


def test_a_smaller_alpha_makes_wider_intervals(saved):
    loaded = load_regression_model(saved[0])
    x = columns(5, seed=9)[0]
    narrow, wide = (loaded.predict(x, alpha) for alpha in (0.5, 0.1))
    assert ((wide.upper - wide.lower) > (narrow.upper - narrow.lower)).all()
    assert loaded.predict(x).alpha == 0.1


def test_intervals_hold_new_targets_about_as_often_as_promised(tmp_path):
    tune_table(smooth(300), tmp_path, Settings(models="poly_ridge", trials=1, folds=5))
    x, y = columns(4000, seed=5)
    found = load_regression_model(tmp_path).predict(x)
    held = np.mean((found.lower <= y) & (y <= found.upper))
    assert 0.87 < held < 0.94


def test_rows_that_were_learned_from_and_rows_for_stopping_are_counted_apart(tmp_path):
    settings = Settings(models="lightgbm,svr", trials=1, folds=2, blend="never")
    result = tune_table(smooth(), tmp_path, settings)
    folders = [tmp_path / "models" / one.name for one in result.finalists]
    early, once = (json.loads((folder / "description.json").read_text()) for folder in folders)
    assert early["rows"] + early["stopping_rows"] == once["rows"] == 72
    assert 0 < early["stopping_rows"] < early["rows"]
    assert once["stopping_rows"] == 0


def test_a_model_that_does_not_say_its_stopping_rows_is_loaded(fresh):
    root, folder = fresh
    about = json.loads((folder / "description.json").read_text())
    del about["stopping_rows"]  # as it was written once
    (folder / "description.json").write_text(json.dumps(about))
    seal(folder)
    assert len(load_regression_model(root).predict([[0.0, 0.0, 0.0]])) == 1


def test_rows_of_another_width_are_refused(saved):
    with pytest.raises(BadInput, match=r"takes rows of 3 features \(a, b, c\)"):
        load_regression_model(saved[0]).predict([[1.0, 2.0]])


@pytest.mark.parametrize(
    "change", [{"means": [10**400, 0]}, {"target": {"mean": 0, "std": 10**400}}]
)
def test_a_stored_normalisation_that_is_none_is_refused(change):
    x = np.array([[0.1, 2.0], [0.3, 1.0]])
    stored = ModelInputs.fit(x, np.arange(2.0), lattice=False).to_dict()
    with pytest.raises(BadStore, match=r"The normalisation: .* must be a finite number"):
        ModelInputs.from_dict({"scaled": stored["scaled"] | change})


# --- rows unlike those of training ---------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One model of each model type, and the blend of them."""
    root = tmp_path_factory.mktemp("asked")
    small = {"mlp": {"members": 2, "width": 8, "depth": 1, "epochs": 2}}
    fixed = {model_type: small.get(model_type, {}) for model_type in MODEL_TYPES}
    tuned = tune_table(smooth(), root, Settings(models=list(MODEL_TYPES), folds=2, params=fixed))
    return {one.model_type: load_regression_model(root, one.name) for one in tuned.finalists}


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
    from ordinate.tuning.regress import fitting

    monkeypatch.setattr(fitting, "REACH", np.inf)
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
    asked = load_regression_model(tmp_path)
    rows = np.column_stack([x[:4], [7.0, 7.0, 8.0, 7e9]])
    found, plain = asked.predict(rows), asked.predict(table.features[:4])
    assert (found.values == plain.values).all()
    assert not [note for note in plain.notes if "still" in note]
    assert [note for note in found.notes if note.startswith("2 of 4 rows differ in 'still' from")]


# --- what is forged or damaged, and sealed again -------------------------------------------------


def forge(folder, **values):
    path = folder / "description.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    seal(folder)


FORGED = {
    "model": (["svr"], 3, None, "forest", "blend"),
    "features": (["a", "b"], ["a", "b", "c", "d"], ["a", "a", "b"], [1, 2, 3], "abc", []),
    "unit": (3,),
    "alpha": ("0.1", 0.0, 1.5, float("nan"), True, None),
    "inputs": ([], {}, {"scaled": 3}, {"scaled": {"means": "x"}}),
    "params": (None, [1]),
}


@pytest.mark.parametrize(
    ("key", "value"), [(k, x) for k, some in FORGED.items() for x in some], ids=str
)
def test_a_forged_description_is_refused_in_words(fresh, key, value):
    root, folder = fresh
    forge(folder, **{key: value})
    with pytest.raises(BadStore, match=r"description\.json|The normalisation|holds no model"):
        load_regression_model(root)


def test_a_normalisation_of_other_features_is_refused(fresh):
    root, folder = fresh
    about = json.loads((folder / "description.json").read_text())
    scaled = about["inputs"]["scaled"]
    fewer = scaled | {"means": scaled["means"][:2], "stds": scaled["stds"][:2]}
    forge(folder, inputs={"scaled": fewer, "extra": None})
    with pytest.raises(BadStore, match="not about the same features"):
        load_regression_model(root)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"weights": [0.5, 0.6]}, "'weights.* must be"),
        ({"weights": [1.5, -0.5]}, "'weights.* must be"),
        ({"weights": [float("nan"), 1.0]}, "NaN is no number"),
        ({"weights": ["1", 0]}, "'weights.* must be"),
        ({"weights": [10**400, 0]}, "'weights.* must be"),
        ({"weights": [1.0]}, "weights of other members"),
        ({"members": "svr"}, "'members.* must be"),
        ({"members": [["svr"], 3]}, "'members.* must be"),
    ],
    ids=str,
)
def test_a_forged_blend_is_refused(saved, tmp_path, values, said):
    root, result = saved
    shutil.copytree(root, tmp_path / "copy")
    forge(tmp_path / "copy" / "models" / result.winner.name, **values)
    with pytest.raises(BadStore, match=said):
        load_regression_model(tmp_path / "copy")


CALIBRATIONS = {
    "no numbers": {"targets": np.array([np.nan] * 3)},
    "other lengths": {"predictions": np.zeros(2)},
    "no rows": {"targets": np.empty(0), "predictions": np.empty(0)},
    "a table": {"targets": np.zeros((3, 2))},
    "a spread below 0": {"spread": np.array([-1.0, 0.0, 1.0])},
    "several floors": {"floor": np.zeros(2)},
    "an infinite floor": {"floor": np.inf},
    "one number": {"targets": np.array(3.0)},
}


@pytest.mark.parametrize("change", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_a_forged_calibration_is_refused(fresh, change):
    root, folder = fresh
    usual = {"targets": np.zeros(3), "predictions": np.zeros(3), "spread": np.ones(3), "floor": 1.0}
    np.savez(folder / "calibration.npz", **usual | change)
    seal(folder)
    with pytest.raises(BadStore, match=r"calibration\.npz"):
        load_regression_model(root)
