"""Analysis: all measures with their intervals, parameters that mattered, learning curves."""

import json

import numpy as np
import pytest

from ordinate.errors import BadInput, BadStore
from ordinate.report import render
from ordinate.surrogate.analyze import analyze, compare
from ordinate.surrogate.settings import Settings
from ordinate.surrogate.tuning import tune
from surrogates import smooth


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("analyzed")
    settings = Settings(model="kernel_ridge,lightgbm", trials=5, folds=2, shift="a")
    return root, tune(smooth(), root, settings, unit="kg/m³")


def test_every_measure_of_the_wish_list_is_there_with_its_interval(found):
    rows = {row["measure"]: row for row in analyze(found[0]).summary}
    wanted = [
        "best validation RMSE",
        "test RMSE",
        "test MAE",
        "σ of the test targets",
        "R²",
        "relative accuracy, 1 - RMSE/σ",
        "baseline error: RMSE of the training mean",
        "improvement over the baseline",
        "coverage of the intervals",
        "their width",
    ]
    for name in wanted:
        row = rows[name]
        assert row["value"] is not None
        if row["low"] is None:  # such as the width of intervals that are all as wide
            assert row["note"] == "all items are alike"
        else:
            assert row["low"] <= row["value"] <= row["high"], name
        if name != "best validation RMSE":
            assert f"shifted: {name}" in rows
    assert rows["test MAE"]["unit"] == "kg/m³"
    assert rows["R²"]["unit"] is None


def test_the_measures_are_what_they_are_called(found):
    rows = {row["measure"]: row["value"] for row in analyze(found[0]).summary}
    test = found[1].tests[0]
    errors = test.targets - test.predictions[found[1].winner.name]
    rmse, sigma = np.sqrt(np.mean(errors**2)), np.std(test.targets)
    assert rows["test RMSE"] == pytest.approx(rmse)
    assert rows["test MAE"] == pytest.approx(np.abs(errors).mean())
    assert rows["σ of the test targets"] == pytest.approx(sigma)
    assert rows["R²"] == pytest.approx(1 - rmse**2 / sigma**2)
    assert rows["relative accuracy, 1 - RMSE/σ"] == pytest.approx(1 - rmse / sigma)
    baseline = rows["baseline error: RMSE of the training mean"]
    assert rows["improvement over the baseline"] == pytest.approx(1 - rmse / baseline)


def test_importance_sums_to_one_and_names_only_what_varied(found):
    importance = analyze(found[0]).importance
    for kind, shares in importance.items():
        assert sum(shares.values()) == pytest.approx(1.0), kind
    assert set(importance["kernel_ridge"]) == {"kernel", "width", "penalty"}
    assert "rounds" not in importance["lightgbm"]


def test_importance_takes_some_trials(tmp_path):
    tune(smooth(), tmp_path, Settings(model="poly_ridge", trials=2, folds=2))
    found = analyze(tmp_path)
    assert found.importance == {"poly_ridge": None}
    assert "that takes 4 complete trials" in str(found)


def test_learning_curves_are_data_in_the_unit_of_the_target(found):
    curves = analyze(found[0]).curves
    assert set(curves) == {"lightgbm"}
    assert len(curves["lightgbm"]) == 2
    steps, values = zip(*curves["lightgbm"][0], strict=True)
    assert list(steps) == sorted(steps)
    assert 0.01 < min(values) < 2.0


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_every_form_is_written(found, form):
    root, result = found
    for one in (analyze(root), result):
        text = render(one, form)
        assert "lightgbm" in text
        assert "nan" not in text.lower().replace("analy", "")


def test_the_analysis_is_silent(found, capfd):
    analyze(found[0])
    assert capfd.readouterr() == ("", "")


def test_the_analysis_is_the_same_every_time(found):
    assert json.dumps(analyze(found[0]).to_dict()) == json.dumps(analyze(found[0]).to_dict())


def test_a_folder_without_a_finished_search_is_named(tmp_path):
    with pytest.raises(BadInput, match="no search was finished"):
        analyze(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [("no json", "is no JSON"), ("[]", "not written by"), ('{"task": "tune"}', "not written by")],
)
def test_files_of_others_are_refused(tmp_path, content, said):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(BadStore, match=said):
        analyze(tmp_path)


def test_files_that_lack_something_are_refused(tmp_path):
    for name in ("results.json", "trials.json"):
        (tmp_path / name).write_text('{"task": "surrogate"}')
    with pytest.raises(BadStore, match="lack 'studies'"):
        analyze(tmp_path)


# --- comparing -----------------------------------------------------------------------------------


def test_finalists_of_one_search_are_compared(found):
    result = compare([found[0]])
    assert set(result.models) == {one.name for one in found[1].finalists}
    winner = found[1].winner.name
    test = found[1].tests[0].values.metrics["rmse"].value
    assert result.models[winner]["rmse"].value == pytest.approx(test)


def test_winners_of_several_searches_are_compared_on_their_common_test_rows(tmp_path):
    tune(smooth(), tmp_path / "a", Settings(model="poly_ridge", trials=1, folds=2), unit="kg/m³")
    tune(smooth(), tmp_path / "b", Settings(model="kernel_ridge", trials=1, folds=2), unit="kg/m³")
    result = compare([tmp_path / "a", tmp_path / "b"])
    assert result.n == 8
    assert result.differences[0].metric == "rmse"


def test_searches_that_have_nothing_in_common_are_not_compared(tmp_path):
    settings = {"model": "poly_ridge", "trials": 1, "folds": 2}
    tune(smooth(), tmp_path / "a", Settings(**settings))
    tune(smooth(), tmp_path / "b", Settings(**settings), unit="kg")
    with pytest.raises(BadInput, match="several units"):
        compare([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(BadInput, match="one finalist only"):
        compare([tmp_path / "a"])
    tune(smooth(seed=3), tmp_path / "c", Settings(**settings))
    with pytest.raises(BadInput, match="it is another table"):
        compare([tmp_path / "a", tmp_path / "c"])
