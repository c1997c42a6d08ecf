"""Analysis: all measures with their intervals, parameters that mattered, learning curves."""

import json
import re
import shutil

import numpy as np
import pytest
from surrogates import columns, smooth

from ordinate.errors import BadInput, BadStore
from ordinate.regress.analysis import analyze_search, compare_searches
from ordinate.regress.settings import Settings
from ordinate.regress.table import make_table
from ordinate.regress.tuning import tune_table
from ordinate.render import Grid, render


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("analyzed")
    settings = Settings(models="kernel_ridge,lightgbm", trials=5, folds=2, shift="a")
    return root, tune_table(smooth(), root, settings, unit="kg/m³")


def test_every_measure_of_the_wish_list_is_there_with_its_interval(found):
    rows = {row["measure"]: row for row in analyze_search(found[0]).summary}
    wanted = [
        "held-out RMSE of the winner",
        "test RMSE",
        "test MAE",
        "σ of the test targets",
        "R²",
        "relative accuracy, 1 - RMSE/σ",
        "baseline error: RMSE of the training mean",
        "improvement over the baseline",
        "coverage of prediction intervals",
        "mean width of prediction intervals",
    ]
    for name in wanted:
        row = rows[name]
        assert row["value"] is not None
        if row["low"] is None:  # such as the width of intervals that are all as wide
            assert row["note"] == "it is the same for all items"
        else:
            assert row["low"] <= row["value"] <= row["high"], name
        if "held-out" not in name:
            assert f"shifted: {name}" in rows
    assert rows["test MAE"]["unit"] == "kg/m³"
    assert rows["R²"]["unit"] is None


def test_the_measures_are_what_they_are_called(found):
    rows = {row["measure"]: row["value"] for row in analyze_search(found[0]).summary}
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


def test_the_lowest_error_stands_beside_that_of_the_winner(found):
    rows = {row["measure"]: row["value"] for row in analyze_search(found[0]).summary}
    (lowest,) = (name for name in rows if name.startswith("lowest held-out RMSE ("))
    judged = {one.model_type: one.value for one in found[1].finalists}
    assert rows[lowest] == min(judged.values()) == judged[lowest.split("(")[1][:-1]]
    assert rows["held-out RMSE of the winner"] == found[1].winner.value


def test_importance_sums_to_one_and_names_only_what_varied(found):
    importance = analyze_search(found[0]).importance
    for model_type, shares in importance.items():
        assert sum(shares.values()) == pytest.approx(1.0), model_type
    assert set(importance["kernel_ridge"]) == {"kernel", "width", "penalty"}
    assert "rounds" not in importance["lightgbm"]


def test_importance_takes_some_trials(tmp_path):
    tune_table(smooth(), tmp_path, Settings(models="poly_ridge", trials=2, folds=2))
    found = analyze_search(tmp_path)
    assert found.importance == {"poly_ridge": None}
    assert "that takes 4 complete trials" in str(found)


def test_learning_curves_are_data_in_the_unit_of_the_target(found):
    curves = analyze_search(found[0]).curves
    assert set(curves) == {"lightgbm"}
    assert len(curves["lightgbm"]) == 2
    steps, values = zip(*curves["lightgbm"][0], strict=True)
    assert list(steps) == sorted(steps)
    assert 0.01 < min(values) < 2.0


def test_measures_have_keys_that_do_not_depend_on_the_winner(found):
    keys = [row["key"] for row in analyze_search(found[0]).summary]
    of_test = [
        *("test_rmse", "test_mae", "test_sigma", "r2", "relative_accuracy", "baseline_rmse"),
        *("improvement", "interval_coverage", "interval_width"),
    ]
    shifted = [f"shifted_{key}" for key in of_test]
    assert keys == ["validation_rmse", "lowest_validation_rmse", *of_test, *shifted]


def test_widths_of_intervals_and_baselines_have_their_unit(found):
    told = json.loads((found[0] / "results.json").read_text())["tests"]["test"]
    assert {one["unit"] for one in told["baselines"]} == {"kg/m³"}
    units = {name: one["unit"] for name, one in told["prediction_intervals"].items()}
    assert units.pop("interval_coverage") is None
    assert set(units) == {"mean_interval_width", "winkler(alpha=0.1)"}
    assert set(units.values()) == {"kg/m³"}
    rows = found[1].rows()
    assert all(row["model"] for row in rows)
    assert all((row["part"] == "baselines") == bool(row["baseline"]) for row in rows)
    (width,) = (
        row for row in rows if (row["stage"], row["metric"]) == ("test", "mean_interval_width")
    )
    assert width["unit"] == "kg/m³"


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_what_is_wrong_with_the_data_stands_beside_its_measures(found, tmp_path, form):
    for name in ("results.json", "trials.json"):
        shutil.copy(found[0] / name, tmp_path)
    path = tmp_path / "results.json"
    told = json.loads(path.read_text())
    leak, constant = "6 of 16 test rows also stand in training.", "The feature c is constant."
    told["leaks"]["notes"] = [leak]
    told["data"]["notes"] = [constant, leak]
    path.write_text(json.dumps(told))
    text = render(analyze_search(tmp_path), form)
    assert constant in text
    assert text.count(leak) == (2 if form == "json" else 1)


def test_tables_have_four_digits_and_the_unit_whatever_the_size(tmp_path):
    x, y = columns()
    settings = Settings(models="lightgbm", trials=1, folds=2)
    tune_table(make_table(x, 1e-9 * y, target_name="y"), tmp_path, settings, unit="mol")
    found = analyze_search(tmp_path)
    said = str(found)
    assert "held-out RMSE (mol)" in said
    assert "RMSE (mol) there" in said
    rmse = found.results["studies"][0]["best"]["validation"]["metrics"]["rmse"]["value"]
    assert f"{rmse:.4g}" in said
    assert "0.000 " not in said


def test_trials_that_are_all_alike_have_no_importance(found, tmp_path):
    for name in ("results.json", "trials.json"):
        shutil.copy(found[0] / name, tmp_path)
    path = tmp_path / "trials.json"
    told = json.loads(path.read_text())
    for trial in told["studies"][0]["trials"]:
        trial["value"] = 0.25
    path.write_text(json.dumps(told))
    analysis = analyze_search(tmp_path)
    assert analysis.importance["kernel_ridge"] is None
    assert analysis.importance["lightgbm"]
    assert "No importance of parameters for kernel_ridge" in str(analysis)


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_every_form_is_written(found, form):
    root, result = found
    for one in (analyze_search(root), result):
        text = render(one, form)
        assert "lightgbm" in text
        assert "nan" not in text.lower().replace("analy", "")


def test_the_analysis_is_silent(found, capfd):
    analyze_search(found[0])
    assert capfd.readouterr() == ("", "")


def test_the_analysis_is_the_same_every_time(found):
    assert json.dumps(analyze_search(found[0]).to_dict()) == json.dumps(
        analyze_search(found[0]).to_dict()
    )


def test_a_folder_without_a_finished_search_is_named(tmp_path):
    with pytest.raises(BadInput, match="no search was finished"):
        analyze_search(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [("no json", "is no JSON"), ("[]", "not written by"), ('{"task": "tune"}', "not written by")],
)
def test_files_of_others_are_refused(tmp_path, content, said):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(BadStore, match=said):
        analyze_search(tmp_path)


@pytest.mark.parametrize(
    "ask", [analyze_search, lambda root: compare_searches([root])], ids=["analyze", "compare"]
)
def test_files_of_two_runs_are_not_mixed(found, tmp_path, ask):
    for name in ("results.json", "trials.json", "test_predictions.json"):
        shutil.copy(found[0] / name, tmp_path)
    ask(tmp_path)
    path = tmp_path / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": "y-of-another"}))
    with pytest.raises(BadStore, match=r"of different runs, .* Run the search again"):
        ask(tmp_path)


def test_a_file_is_no_results_folder(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n")
    with pytest.raises(BadInput, match=r"data\.csv is a file, and the results folder"):
        analyze_search(path)


def test_files_that_lack_something_are_refused(tmp_path):
    for name in ("results.json", "trials.json"):
        (tmp_path / name).write_text('{"task": "surrogate"}')
    with pytest.raises(BadStore, match="lack 'studies'"):
        analyze_search(tmp_path)


# --- comparing -----------------------------------------------------------------------------------


def test_finalists_of_one_search_are_compared(found):
    result = compare_searches([found[0]])
    assert set(result.models) == {one.model_type for one in found[1].finalists}
    test = found[1].tests[0].values.metrics["rmse"].value
    assert result.models[found[1].winner.model_type]["rmse"].value == pytest.approx(test)


def test_winners_of_several_searches_are_compared_on_their_common_test_rows(tmp_path):
    tune_table(
        smooth(), tmp_path / "a", Settings(models="poly_ridge", trials=1, folds=2), unit="kg/m³"
    )
    tune_table(
        smooth(), tmp_path / "b", Settings(models="kernel_ridge", trials=1, folds=2), unit="kg/m³"
    )
    result = compare_searches([tmp_path / "a", tmp_path / "b"])
    assert result.n == 8
    assert result.differences[0].metric == "rmse"


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    root = tmp_path_factory.mktemp("grouped")
    settings = Settings(models="poly_ridge,kernel_ridge", trials=1, folds=2, blend="never")
    return root, tune_table(smooth(groups=20), root, settings)


def test_groups_are_the_units_of_every_measure_of_the_test(grouped):
    rows = {row["measure"]: row for row in analyze_search(grouped[0]).summary}
    for name in ("σ of the test targets", "baseline error: RMSE of the training mean"):
        assert rows[name]["method"] == rows["test RMSE"]["method"] == "t"
    assert "Intervals take groups, not rows, as independent" in " ".join(str(grouped[1]).split())


def test_groups_are_the_units_of_comparisons(grouped, tmp_path):
    count = grouped[1].tests[0].values.groups
    assert compare_searches([grouped[0]]).groups == count
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    tune_table(smooth(groups=20), tmp_path / "a", settings)
    assert compare_searches([grouped[0], tmp_path / "a"]).groups == count
    path = tmp_path / "a" / "test_predictions.json"
    told = json.loads(path.read_text())
    told["tests"]["test"]["groups"][0] = "another"
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


def test_searches_without_common_test_rows_are_told_what_decides_them(found, tmp_path):
    for name in ("results.json", "test_predictions.json"):
        shutil.copy(found[0] / name, tmp_path)
    path = tmp_path / "test_predictions.json"
    told = json.loads(path.read_text())
    told["tests"]["test"]["rows"] = [row + 1000 for row in told["tests"]["test"]["rows"]]
    path.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="the same data, --seed, --group and --shift"):
        compare_searches([found[0], tmp_path])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"summary": None}, "are damaged"),
        ({"summary": [{}]}, "lack 'value'"),
        ({"data": {}}, "lack 'unit'"),
        ({"studies": [3]}, "are damaged"),
        ({"notes": 3}, "are damaged"),
    ],
    ids=str,
)
def test_results_that_are_damaged_are_told_in_words(found, tmp_path, values, said):
    for name in ("results.json", "trials.json"):
        results = json.loads((found[0] / name).read_text())
        more = values if name == "results.json" else {}
        (tmp_path / name).write_text(json.dumps(results | more))
    with pytest.raises(BadStore, match=said):
        analyze_search(tmp_path)


@pytest.mark.parametrize("tests", [3, {"test": {}}, {"test": {"predictions": 3}}], ids=str)
def test_damaged_test_rows_are_told_in_words(found, tmp_path, tests):
    tested = json.loads((found[0] / "test_predictions.json").read_text()) | {"tests": tests}
    (tmp_path / "test_predictions.json").write_text(json.dumps(tested))
    shutil.copy(found[0] / "results.json", tmp_path)
    with pytest.raises(BadStore, match="Run the search again"):
        compare_searches([tmp_path])
    with pytest.raises(BadStore, match="Run the search again"):
        compare_searches([found[0], tmp_path])


@pytest.mark.parametrize("report", ["search", "analysis"])
def test_every_error_of_a_report_has_its_limits(found, report):
    root, result = found
    document = (result if report == "search" else analyze_search(root)).document()
    grids = [
        x for x in document.blocks if isinstance(x, Grid) and re.search("95 % (CI|int)", x.title)
    ]
    assert len(grids) == {"search": 1 + len(result.tests), "analysis": 1}[report]
    for grid in grids:
        errors = [k for k, name in enumerate(grid.header) if re.search(r"rmse|mae|r2|RMSE", name)]
        cells = [row[k] for row in grid.rows for k in errors]
        assert cells
        assert all(re.fullmatch(r"\S+ \(\S+ to \S+\)", cell) for cell in cells), cells


def test_intervals_without_end_and_few_test_rows_are_told(tmp_path):
    result = tune_table(smooth(30), tmp_path, Settings(models="poly_ridge", folds=0, trials=1))
    said = " ".join(str(result).split())
    assert "90 % intervals of the winner have no end, so that they hold anything." in said
    assert "alpha=0.1 needs 9 items, and there were fewer" in said
    assert "Fewer than 30 rows leave the confidence intervals of this test unsure." in said
    assert "by which models were chosen, too: take them as too narrow." in said
    assert result.to_dict()["tests"]["test"]["notes"] == list(result.tests[0].notes)


def test_the_blend_stands_beside_the_studies(found):
    grids = [x for x in analyze_search(found[0]).document().blocks if isinstance(x, Grid)]
    (grid,) = [one for one in grids if one.title.startswith("Studies")]
    assert [row[0] for row in grid.rows] == ["kernel_ridge", "lightgbm", "blend"]
