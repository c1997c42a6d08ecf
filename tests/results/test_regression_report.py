"""What the report of a regression says, and where it has nothing to say."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from regression_items import IN_UNIT, TRAINING, heavy
from rendered_reports import drop_code, words

from ordinate.errors import (
    BadInput,
    BadOption,
    BadValues,
    NoItems,
    UnequalLengths,
    UnknownMetric,
)
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.regression import NO_ERROR_NOTE
from ordinate.render import RENDERERS, Grid, render
from ordinate.results.regression import DEFAULT_METRICS, RegressionEvaluation
from ordinate.results.regression_sources import evaluate_regression, regression_report
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import regression
from ordinate.summaries.regression import Moments

# --- where there is nothing to say ----------------------------------------------------------------


@pytest.mark.parametrize("interval", [0.95, None])
def test_equal_targets_are_undefined_with_the_reason(interval):
    result = evaluate_regression([0.1] * 7, np.linspace(0, 1, 7), interval=interval)
    for name in ("r2", "relative_accuracy", "nrmse"):
        assert math.isnan(result.metrics[name].value)
        assert result.metrics[name].note == "all targets are equal"
    assert result.metrics["skill"].note == "the baseline makes no error"
    assert all(one.rmse == one.mae == 0.0 for one in result.baselines)
    assert result.sigma == 0.0
    plain = json.loads(render(result, "json"))
    assert plain["metrics"]["r2"]["value"] is None
    assert plain["metrics"]["r2"]["note"] == "all targets are equal"
    assert "undefined" in str(result)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_items_are_reported(n):
    y, p = [0.1, 0.3, 0.9][:n], [0.2, 0.2, 0.2][:n]
    for options in (
        {},
        {"interval": ConfidenceIntervals(method="studentized", resamples=100)},
        {"groups": "abc"[:n]},
    ):
        if "groups" in options:
            options["groups"] = list(options["groups"])
        result = evaluate_regression(y, p, "all", **options)
        for form in RENDERERS:
            assert render(result, form)
        if n == 1:
            assert all(math.isnan(one.low) for one in result.metrics.values())


def test_perfect_predictions_are_reported():
    y = np.linspace(0.1, 9.9, 25)
    result = evaluate_regression(y, y, "all", normalization=TRAINING)
    assert result.metrics["r2"].value == 1.0
    assert result.metrics["rmse"].note == "it is at its bound"
    assert result.metrics["bias"].note == NO_ERROR_NOTE
    for form in RENDERERS:
        assert render(result, form)


def test_bad_input_is_refused_with_its_row():
    y, p = [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]
    for args, options, error, match in (
        (([1.0, np.nan, 3.0], p), {}, BadValues, "target of row 2 is nan"),
        ((y, [1.0, 2.0, -np.inf]), {}, BadValues, "prediction of row 3 is -inf"),
        ((y, p[:2]), {}, UnequalLengths, "3 targets and 2 predictions"),
        ((y, p), {"weights": [1, 2]}, UnequalLengths, "3 targets and 2 weights"),
        ((y, p), {"by": ["a"]}, UnequalLengths, "3 targets and 1 values of by"),
        ((y, p), {"groups": ["a"]}, UnequalLengths, "3 targets and 1 groups"),
        (([], []), {}, NoItems, "columns are empty"),
        ((y, p), {"weights": [0, 0, 0]}, NoItems, "all weights are 0"),
        ((["a", "b", "c"], p), {}, BadValues, "targets must be numbers"),
        ((np.ones((3, 2)), p), {}, BadInput, "one column"),
        (([1e200, 2.0, 3.0], p), {}, BadValues, "too large"),
        (([1e308] * 3, p), {}, BadValues, "too large"),
        (([1e-300, 2e-300, 0], [0, 0, 0]), {}, BadValues, "too small"),
        ((y, p), {"metrics": []}, BadOption, "No metric was named"),
        ((y, p), {"metrics": "accuracy"}, UnknownMetric, "accuracy"),
        ((y, p), {"interval": ConfidenceIntervals(method="bca")}, BadOption, "does not fit"),
        ((y, p), {"interval": 1.5}, BadOption, "level"),
    ):
        with pytest.raises(error, match=match):
            evaluate_regression(*args, **options)


def test_a_batch_is_not_one_summary():
    batch = Moments.of([1.0, 2.0], [1.0, 3.0], groups=factorize_column(["a", "b"]))
    with pytest.raises(BadOption, match="one summary"):
        RegressionEvaluation.from_summary(batch)


def test_a_summary_alone_is_enough():
    y, p = heavy()
    table = Moments.of(y[:200], p[:200], histogram=True) + Moments.of(
        y[200:], p[200:], histogram=True
    )
    found = RegressionEvaluation.from_summary(table)
    wanted = evaluate_regression(y, p, interval=ConfidenceIntervals(method="t"))
    for name in set(DEFAULT_METRICS) - {"median_absolute_error"}:
        for part in ("value", "low", "high"):
            assert getattr(found.metrics[name], part) == pytest.approx(
                getattr(wanted.metrics[name], part), rel=1e-9, nan_ok=True
            )
    batch = Moments.of(y, p, groups=factorize_column(np.arange(300) % 50), histogram=True)
    parts = [("a", batch[:20]), ("b", batch[20:]), ("empty", Moments.of([1.0], [1.0]))]
    result = RegressionEvaluation.from_summary(table, groups=batch, by=parts[:2])
    assert result.groups == 50
    assert [part.groups for part in result.by.values()] == [20, 30]


def test_how_many_rows_are_looked_at_does_not_matter(monkeypatch):
    y, p = heavy()
    usual = evaluate_regression(y, p, "all", by=np.arange(300) % 3)
    monkeypatch.setattr(regression, "ROWS_PER_BLOCK", 16)
    monkeypatch.setattr(regression, "ROWS_PER_SUM", 64)
    other = evaluate_regression(y, p, "all", by=np.arange(300) % 3)
    assert str(other) == str(usual)


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=3, max_size=20))
@examples(30)
def test_identities_hold_in_every_report(rows):
    y, p = np.array(rows, float).T / 8
    result = evaluate_regression(y, p)
    value = {name: found.value for name, found in result.metrics.items()}
    if len(set(y)) > 1:
        assert value["r2"] == pytest.approx(1 - value["rmse"] ** 2 / result.sigma**2, abs=1e-8)
        assert value["relative_accuracy"] + value["nrmse"] == pytest.approx(1.0)
        baseline = result.baselines[0].rmse
        assert value["skill"] == pytest.approx(1 - value["rmse"] / baseline, abs=1e-9)
    for found in result.metrics.values():
        if not math.isnan(found.low):
            assert found.low <= found.value + 1e-12
            assert found.value <= found.high + 1e-12


# --- the report -----------------------------------------------------------------------------------


def test_json_says_what_it_is():
    y, p = heavy()
    options = {"unit": "kg/m³", "normalization": TRAINING, "order": np.arange(300)}
    plain = json.loads(render(evaluate_regression(y, p, by=["a", "b"] * 150, **options), "json"))
    assert (plain["schema"], plain["task"], plain["n"]) == (1, "regression", 300)
    assert plain["unit"] == "kg/m³"
    assert plain["interval"] == 0.95
    assert plain["normalization"] == {"mean": 673.27, "std": 104.26}
    assert plain["targets"]["sigma"] == pytest.approx(np.std(y))
    assert set(plain["by"]) == {"a", "b"}
    assert plain["by"]["a"]["n"] == 150
    for name, found in plain["metrics"].items():
        assert {"value", "low", "high", "method", "note", "direction", "unit"} <= set(found)
        assert found["unit"] == ("kg/m³" if name in IN_UNIT else None)
        assert (found["low"] is None) == bool(found["note"])
    assert set(plain["normalized"]) == set(IN_UNIT)
    assert [b["name"] for b in plain["baselines"]][-1] == "previous value"


def test_squares_have_the_squared_unit():
    result = evaluate_regression(*heavy(), "mse,rmse", unit="kg/m³")
    assert result.to_dict()["metrics"]["mse"]["unit"] == "(kg/m³)²"
    assert "(kg/m³)²" in str(result)


@pytest.mark.parametrize("form", RENDERERS)
def test_every_form_renders_everything(form):
    y, p = heavy()
    result = evaluate_regression(
        y, p, "all", by=["a", "b"] * 150, groups=np.arange(300) % 8, order=np.arange(300),
        unit="kg", normalization=TRAINING,
    )  # fmt: skip
    text = render(result, form)
    for name in ("rmse", "relative", "skill"):
        assert name in text
    assert "nan" not in drop_code(text).replace("finance", "")
    assert result._repr_html_().startswith("<div")


def test_csv_has_a_row_for_each_metric_of_each_group():
    y, p = heavy()
    result = evaluate_regression(y, p, by=["a", "b"] * 150, unit="kg")
    rows = list(csv.DictReader(io.StringIO(render(result, "csv"))))
    assert len(rows) == 3 * len(DEFAULT_METRICS)
    baselines = result.list_tables()["baselines"]
    assert [row["name"] for row in baselines] == [b.name for b in result.baselines]
    assert {row["group"] for row in rows} == {"", "a", "b"}
    assert float(rows[0]["value"]) == result.metrics["rmse"].value
    assert rows[0]["unit"] == "kg"


UNITS = [
    "<b>kg</b>",
    "kg/m³",
    r"$\mu$",
    "=1+1",
    "a|b",
    "\x1b[31mred\x07",
    "%_&#{}~^\\",
    "a\nb\r\tc",
]


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_shown_and_never_obeyed(unit):
    y, p = heavy(40)
    by = [f"group {unit}", "other"] * 20
    result = evaluate_regression(y, p, "mse,rmse,r2", by=by, unit=unit, normalization=TRAINING)
    page = result._repr_html_()
    assert "<b>" not in page
    assert json.loads(render(result, "json"))["unit"] == unit
    for form in ("text", "markdown", "latex"):
        text = render(result, form)
        assert "\x1b" not in text
        assert "\x07" not in text
    latex = render(result, "latex").split("\n", 1)[1]
    assert "<b>" not in latex
    assert r"$\mu$" not in latex
    assert "<b>" not in render(result, "markdown")
    rows = list(csv.DictReader(io.StringIO(render(result, "csv"))))
    assert all(unit in row["unit"] for row in rows if row["unit"])
    if unit == "a|b":
        assert r"a\|b" in render(result, "markdown")


def test_no_interval_is_said():
    result = evaluate_regression(*heavy(), interval=None)
    assert "interval" not in str(result)
    assert result.to_dict()["interval"] is None
    assert all(math.isnan(found.low) for found in result.metrics.values())


def test_other_levels_give_other_limits():
    y, p = heavy()
    narrow, wide = (evaluate_regression(y, p, "rmse", interval=level) for level in (0.8, 0.99))
    assert narrow.metrics["rmse"].width < wide.metrics["rmse"].width
    assert "99 % CI" in str(wide)


def test_the_text_report_is_one_call():
    y, p = heavy()
    text = regression_report(y, p, unit="kg/m³", by=["a", "b"] * 150)
    assert text == str(evaluate_regression(y, p, unit="kg/m³", by=["a", "b"] * 150))
    assert text.startswith("300 items, target in kg/m³\n")
    assert "r2 is R², 1 - RMSE²/σ², the share of the variance that is explained;" in words(text)
    assert "No interval for max_error: no method covers it." in words(text)


def test_all_that_is_said_beside_tables_is_the_verdict_or_a_note():
    document = evaluate_regression(*heavy(), by=["a", "b"] * 150).document()
    verdict, *others = document.list_body()
    assert verdict == document.verdict
    assert all(isinstance(block, Grid) for block in others)


def test_reports_do_not_change():
    y, p = heavy()
    assert str(evaluate_regression(y, p)) == str(evaluate_regression(y.copy(), p.copy()))
    how = ConfidenceIntervals(resamples=300, seed=9)
    first, second = (evaluate_regression(y, p, interval=how) for _ in range(2))
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def test_bounds_of_predictive_intervals_join_the_report():
    y, p = heavy()
    result = evaluate_regression(y, p, lower=p - 30, upper=p + 30, alpha=0.2, unit="kg")
    inside = float((np.abs(y - p) <= 30).mean())
    assert result.prediction_intervals["interval_coverage"].value == pytest.approx(inside)
    assert "winkler(alpha=0.2)" in result.to_dict()["prediction_intervals"]
    groups = np.arange(len(y)) // 10
    clustered = evaluate_regression(y, p, lower=p - 30, upper=p + 30, groups=groups)
    assert clustered.prediction_intervals["interval_coverage"].value == pytest.approx(inside)
    assert clustered.prediction_intervals["interval_coverage"].method != "wilson"
    plain = evaluate_regression(y, p, lower=p - 30, upper=p + 30, interval=None)
    assert plain.prediction_intervals["interval_coverage"].note == "no interval was asked for"
    assert "Prediction intervals" in render(result)


def test_weights_are_counts_for_all_subgroups_or_for_none():
    rng = np.random.default_rng(0)
    y, p = heavy()
    by = np.arange(len(y)) < 100
    weights = np.where(by, 20.0, rng.uniform(1, 9, len(y)))
    result = evaluate_regression(y, p, weights=weights, by=by)
    alone = evaluate_regression(y[by], p[by])  # equal weights weigh nothing
    for name in ("rmse", "r2", "mae"):
        found, wanted = result.by[True].metrics[name], alone.metrics[name]
        assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-6)


@pytest.mark.parametrize("n", [4, 5])
def test_weighted_medians_are_those_of_repeated_items(n):
    rng = np.random.default_rng(n)
    y, p, times = rng.normal(size=n), rng.normal(size=n), rng.integers(1, 4, n)
    weighted = evaluate_regression(y, p, weights=times)
    repeated = evaluate_regression(np.repeat(y, times), np.repeat(p, times))
    name = "median_absolute_error"
    assert weighted.metrics[name].value == pytest.approx(repeated.metrics[name].value)
    medians = [{b.name: b.constant for b in r.baselines} for r in (weighted, repeated)]
    assert medians[0] == pytest.approx(medians[1])


def test_a_percentile_of_the_errors_is_half_a_per_cent_away():
    y, p = heavy()
    name = "error_percentile(share=0.9)"
    found = evaluate_regression(y, p, metrics=[name]).metrics[name].value
    assert found == pytest.approx(
        np.quantile(np.abs(y - p), 0.9, method="averaged_inverted_cdf"), rel=0.006
    )
    with pytest.raises(BadOption, match="is not a number between 0 and 1"):
        evaluate_regression(y, p, metrics=["error_percentile(share=2.0)"])
