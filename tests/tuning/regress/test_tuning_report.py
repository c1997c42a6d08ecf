"""Reports of tuning on tables: every measure with its interval and unit, and what to mind."""

import json
import re

import numpy as np
import pytest
from regression_tables import columns, smooth

from ordinate.render import Grid
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import Split
from ordinate.tuning.regress.table import make_table
from ordinate.tuning.regress.trained_model import load_regression_model
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.analysis import analyze_search


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("reported")
    settings = Settings(models="kernel_ridge,lightgbm", trials=1, folds=2, shift="a")
    return root, tune_table(smooth(), root, settings, unit="kg/m³")


def test_every_measure_of_the_wish_list_is_there_with_its_interval(found):
    rows = {row["title"]: row for row in found[1].summarize()}
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
        if row["method"] is None:  # such as the width of intervals that are all as wide
            assert row["note"] == "it is the same for all items"
        elif None in {row["low"], row["high"]}:
            assert row["note"].startswith("open on a side, as one of"), name
        else:
            assert row["low"] <= row["value"] <= row["high"], name
        if "held-out" not in name:
            assert f"shifted: {name}" in rows
    assert rows["test MAE"]["unit"] == "kg/m³"
    assert rows["R²"]["unit"] is None
    said = str(found[1])
    assert all(name in said for name in wanted)


def test_the_measures_are_what_they_are_called(found):
    rows = {row["title"]: row["value"] for row in found[1].summarize()}
    tested = found[1].tests[0].columns
    targets = np.array(tested["targets"])
    errors = targets - tested["predictions"][found[1].winner.name]
    rmse, sigma = np.sqrt(np.mean(errors**2)), np.std(targets)
    assert rows["test RMSE"] == pytest.approx(rmse)
    assert rows["test MAE"] == pytest.approx(np.abs(errors).mean())
    assert rows["σ of the test targets"] == pytest.approx(sigma)
    assert rows["R²"] == pytest.approx(1 - rmse**2 / sigma**2)
    assert rows["relative accuracy, 1 - RMSE/σ"] == pytest.approx(1 - rmse / sigma)
    baseline = rows["baseline error: RMSE of the training mean"]
    assert rows["improvement over the baseline"] == pytest.approx(1 - rmse / baseline)


def test_the_verdict_has_the_unit_of_all_errors(found):
    result = found[1]
    verdict = result.document().verdict
    for test in result.tests:
        gap = f"{result.report.format_value(abs(test.optimism))} kg/m³"
        side = "worse" if test.optimism > 0 else "better"
        assert f": {gap} {side} than by cross-validation." in verdict


def test_the_lowest_error_stands_beside_that_of_the_winner(found):
    rows = {row["title"]: row["value"] for row in found[1].summarize()}
    (lowest,) = (name for name in rows if name.startswith("lowest held-out RMSE ("))
    values = {one.model_type: one.value for one in found[1].finalists}
    assert rows[lowest] == min(values.values()) == values[lowest.split("(")[1][:-1]]
    assert rows["held-out RMSE of the winner"] == found[1].winner.value


def test_measures_have_keys_that_do_not_depend_on_the_winner(found):
    keys = [row["key"] for row in found[1].summarize()]
    of_test = [
        *("test_rmse", "test_mae", "test_sigma", "r2", "relative_accuracy", "baseline_rmse"),
        *("improvement", "interval_coverage", "interval_width"),
    ]
    shifted = [f"shifted_{key}" for key in of_test]
    assert keys == ["validation_rmse", "lowest_validation_rmse", *of_test, *shifted]


def test_widths_of_intervals_and_baselines_have_their_unit(found):
    root, result = found
    stored = json.loads((root / "results/results.json").read_text())
    (test, _) = stored["tests"]
    assert {one["unit"] for one in test["test"]["baselines"]} == {"kg/m³"}
    intervals = test["test"]["prediction_intervals"]
    units = {name: one["unit"] for name, one in intervals.items()}
    assert units.pop("interval_coverage") is None
    assert set(units) == {"mean_interval_width", "winkler(alpha=0.1)"}
    assert set(units.values()) == {"kg/m³"}
    rows = result.rows()
    assert all(row["model"] for row in rows)
    (width,) = (
        row for row in rows if (row["stage"], row["metric"]) == ("test", "mean_interval_width")
    )
    assert width["unit"] == "kg/m³"


def test_every_error_of_the_report_has_its_interval(found):
    grids = [x for x in found[1].document().blocks if isinstance(x, Grid) and "95 % CI" in x.title]
    assert len(grids) == 1 + len(found[1].tests)
    for grid in grids:
        errors = [k for k, name in enumerate(grid.header) if re.match(r"RMSE|MAE|R²", name)]
        cells = [row[k] for row in grid.rows for k in errors]
        assert cells
        assert all(re.fullmatch(r"\S+ \((\S+ to|[≥≤]) \S+\)", cell) for cell in cells), cells


def test_the_verdict_has_the_unit_and_what_the_test_says(found):
    result = found[1]
    assert result.document().verdict.startswith(
        f"The best model is {result.winner.title}: RMSE {result.winner.value:.4g} kg/m³ (95 % CI "
    )
    assert "On test, by which nothing was selected, it has" in result.document().verdict
    assert "On shifted, by which nothing was selected, it has" in result.document().verdict


def test_the_verdict_says_that_a_model_is_no_better_than_the_mean(found, tmp_path):
    assert "always predicting" not in found[1].document().verdict
    rng = np.random.default_rng(0)
    table = make_table(rng.normal(size=(80, 2)), rng.normal(size=80), target_name="y")
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    verdict = tune_table(table, tmp_path, settings, unit="mm").document().verdict
    first, tested = verdict.split(" On test, ")
    said = (
        r"by MAE (not significantly better|worse) than always predicting the training mean "
        r"\(\S+ mm\)"
    )
    assert re.search(rf"by cross-validation, {said}\.$", first)
    assert re.search(rf"than by cross-validation, {said}\.$", tested)


def test_rows_that_were_learned_from_make_no_test(tmp_path):
    x, y = columns(60)
    table = make_table(np.tile(x, (2, 1)), np.tile(y, 2), target_name="y")
    rows = np.arange(120)
    split = Split(rows[:60], rows[:0], rows[60:], "twice the same")
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    result = tune_table(table, tmp_path, settings, split=split)
    assert result.to_dict()["tests"][0]["seen"] == 60
    verdict = result.document().verdict
    assert "optimistically biased: it has learned from all its 60 items." in verdict


def test_new_measurements_of_features_that_repeat_make_a_test(tmp_path):
    """Replicates of a design: 12 points, each with new noise in training and test."""
    design = np.array([[a, b] for a in range(4) for b in range(3)], float)
    target = np.tile(design.sum(axis=1), 10) + np.random.default_rng(0).normal(size=120)
    table = make_table(np.tile(design, (10, 1)), target, target_name="y")
    rows = np.arange(120)
    split = Split(rows[:96], rows[:0], rows[96:], "replicates")
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    result = tune_table(table, tmp_path, settings, split=split)
    assert sum(leak.part == "test" for leak in result.source.leaks.leaks) == 24
    assert "learned from" not in result.document().verdict
    assert "than by cross-validation" in result.document().verdict


def test_a_target_without_a_unit_has_no_column_of_units(found, tmp_path):
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    result = tune_table(smooth(60), tmp_path, settings)
    for one, head in ((found[1], ("metric", "value", "95 % CI", "unit")), (result, None)):
        (grid,) = (x for x in one.document().blocks if getattr(x, "title", "") == "Summary")
        assert grid.header == (head or ("metric", "value", "95 % CI"))
    predicted = load_regression_model(tmp_path).predict(np.ones((2, len(result.source.features))))
    assert repr(predicted) == "<Predictions: 2 rows of row, prediction, lower and upper>"


def test_tables_have_four_digits_and_the_unit_whatever_the_size(tmp_path):
    x, y = columns()
    settings = Settings(models="lightgbm", trials=1, folds=2)
    result = tune_table(make_table(x, 1e-9 * y, target_name="y"), tmp_path, settings, unit="mol")
    analysis = str(analyze_search(tmp_path))
    assert "RMSE (mol)" in analysis
    assert "RMSE (mol) there" in analysis
    for said in (analysis, str(result)):
        assert f"{result.winner.value:.4g}" in said
        assert "0.000 " not in said


def test_intervals_without_end_and_few_test_rows_are_told(tmp_path):
    result = tune_table(smooth(30), tmp_path, Settings(models="poly_ridge", folds=0, trials=1))
    said = " ".join(str(result).split())
    assert "90 % prediction intervals of the winner have no end on test, so that they hold" in said
    assert "alpha=0.1 needs 9 items, and there were fewer" in said
    assert "Fewer than 30 rows leave the confidence intervals of test unsure." in said
    assert "by which models were chosen, too: take them as too narrow." in said
    assert result.to_dict()["tests"][0]["notes"] == list(result.tests[0].notes)


def test_groups_are_the_units_of_every_measure_of_the_test(tmp_path):
    settings = Settings(models="poly_ridge", trials=1, folds=2)
    result = tune_table(smooth(groups=20), tmp_path, settings)
    rows = {row["title"]: row for row in result.summarize()}
    for name in ("σ of the test targets", "baseline error: RMSE of the training mean"):
        assert rows[name]["method"] == rows["test RMSE"]["method"] == "jackknife"
    assert "intervals take groups, not rows, as independent" in " ".join(str(result).split())
