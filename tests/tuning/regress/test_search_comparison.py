"""Comparison of searches: their winners, or the finalists of one, on the same test rows."""

import json
import shutil

import pytest
from regression_tables import smooth

from ordinate.errors import BadInput, BadStore
from ordinate.tuning.regress.search_comparison import compare_searches
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.tuning import tune_table


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("compared")
    settings = Settings(models="poly_ridge,kernel_ridge", trials=1, folds=2)
    return root, tune_table(smooth(), root, settings, unit="kg/m³")


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    root = tmp_path_factory.mktemp("grouped")
    settings = Settings(models="poly_ridge,kernel_ridge", trials=1, folds=2, blend="never")
    return root, tune_table(smooth(groups=20), root, settings)


def test_finalists_of_one_search_are_compared(found):
    result = compare_searches([found[0]])
    assert set(result.models) == {one.model_type for one in found[1].finalists}
    test = found[1].tests[0].evaluation.metrics["rmse"].value
    assert result.models[found[1].winner.model_type]["rmse"].value == pytest.approx(test)


def test_winners_of_several_searches_are_compared_on_their_common_test_rows(tmp_path):
    found = [
        tune_table(
            smooth(), tmp_path / model, Settings(models=model, trials=1, folds=2), unit="kg/m³"
        )
        for model in ("poly_ridge", "kernel_ridge")
    ]
    result = compare_searches([tmp_path / "poly_ridge", tmp_path / "kernel_ridge"])
    assert compare_searches(found).to_dict() == result.to_dict()
    assert result.n == 8
    assert result.differences[0].metric == "rmse"


def test_groups_are_the_units_of_comparisons(grouped, tmp_path):
    count = grouped[1].tests[0].groups
    assert compare_searches([grouped[0]]).groups == count
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    tune_table(smooth(groups=20), tmp_path / "a", settings)
    assert compare_searches([grouped[0], tmp_path / "a"]).groups == count
    path = tmp_path / "a" / "results" / "test_predictions.json"
    told = json.loads(path.read_text())
    told["tests"][0]["groups"][0] = "another"
    path.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="has other groups in the same rows"):
        compare_searches([grouped[0], tmp_path / "a"])


def test_searches_that_have_nothing_in_common_are_not_compared(tmp_path):
    settings = {"models": "poly_ridge", "trials": 1, "folds": 2}
    tune_table(smooth(), tmp_path / "a", Settings(**settings))
    tune_table(smooth(), tmp_path / "b", Settings(**settings), unit="kg")
    with pytest.raises(BadInput, match=r"several units: 'kg', no unit\. .*same --unit"):
        compare_searches([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(BadInput, match="one finalist only"):
        compare_searches([tmp_path / "a"])
    tune_table(smooth(seed=3), tmp_path / "c", Settings(**settings))
    with pytest.raises(BadInput, match="it is another table"):
        compare_searches([tmp_path / "a", tmp_path / "c"])


def copy_results(found, folder):
    """Copy the files of a search; return that of the test rows."""
    shutil.copytree(found[0] / "results", folder / "results")
    return folder / "results" / "test_predictions.json"


def test_searches_without_common_test_rows_are_told_what_decides_them(found, tmp_path):
    path = copy_results(found, tmp_path)
    told = json.loads(path.read_text())
    told["tests"][0]["rows"] = [row + 1000 for row in told["tests"][0]["rows"]]
    path.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="the same data, --seed, --group-column and --shift"):
        compare_searches([found[0], tmp_path])


@pytest.mark.parametrize(
    "tests", [3, [{}], [{"data": "test"}], [{"data": "test", "predictions": 3}]], ids=str
)
def test_damaged_test_rows_are_told_in_words(found, tmp_path, tests):
    path = copy_results(found, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tests": tests}))
    for roots in ([tmp_path], [found[0], tmp_path]):
        with pytest.raises(BadStore, match="Run the search again"):
            compare_searches(roots)


def test_a_search_without_test_rows_is_not_compared(found, tmp_path):
    path = copy_results(found, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tests": []}))
    with pytest.raises(BadInput, match="has no test rows, so it cannot be compared"):
        compare_searches([tmp_path])


def test_a_search_of_classifiers_is_not_compared(found, tmp_path):
    copy_results(found, tmp_path)
    for name in ("results.json", "test_predictions.json"):
        path = tmp_path / "results" / name
        path.write_text(json.dumps(json.loads(path.read_text()) | {"task": "tune"}))
    with pytest.raises(BadInput, match=r"no search of regression models\..* ordinate rank -e"):
        compare_searches([tmp_path, found[0]])


def test_files_of_two_runs_are_not_mixed(found, tmp_path):
    path = copy_results(found, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": "y-of-another"}))
    with pytest.raises(BadStore, match=r"of different runs, .* Run the search again"):
        compare_searches([tmp_path])
