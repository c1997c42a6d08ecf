"""The evaluation of quantities: what the report says, which σ is which, and whom it believes."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from regression_items import IN_UNIT, TRAINING, heavy
from rendered_reports import words

from ordinate.errors import (
    BadOption,
    MissingLabels,
)
from ordinate.inference import ConfidenceIntervals, regression
from ordinate.metrics import find_metric
from ordinate.results import evaluate
from ordinate.results.regression import DEFAULT_METRICS, RegressionEvaluation
from ordinate.results.regression_sources import evaluate_regression
from ordinate.summaries.regression import Moments

SHARES = ("r2", "relative_accuracy", "nrmse", "skill")


# --- values ---------------------------------------------------------------------------------------


def test_the_default_set_has_what_the_document_asks_for():
    result = evaluate_regression(*heavy())
    wanted = {"rmse", "mae", "r2", "relative_accuracy", "skill", "bias", "max_error"}
    assert wanted <= set(result.metrics) == set(DEFAULT_METRICS)


def test_values_are_those_of_scikit_learn():
    y, p = heavy()
    found = evaluate_regression(y, p).metrics
    for name, peer in (
        ("rmse", sk.root_mean_squared_error),
        ("mae", sk.mean_absolute_error),
        ("median_absolute_error", sk.median_absolute_error),
        ("max_error", sk.max_error),
        ("r2", sk.r2_score),
    ):
        assert found[name].value == pytest.approx(peer(y, p), rel=1e-12), name


@pytest.mark.parametrize("method", ["t", "studentized"])
@pytest.mark.parametrize("n", [6, 7, 301])
def test_the_median_is_exact_and_within_its_limits(method, n):
    y, p = heavy(n)
    by = ["a", "b"] * n
    result = evaluate_regression(
        y, p, by=by[:n], interval=ConfidenceIntervals(method=method, resamples=100)
    )
    parts = [
        (result, slice(None)),
        *((part, np.array(by[:n]) == k) for k, part in result.by.items()),
    ]
    for part, rows in parts:
        found = part.metrics["median_absolute_error"]
        assert found.value == np.median(np.abs(p - y)[rows])
        assert math.isnan(found.low) or found.low <= found.value <= found.high


def test_equal_errors_are_within_the_limits_of_their_median():
    found = evaluate_regression(np.zeros(50), np.ones(50)).metrics["median_absolute_error"]
    assert found.low <= found.value == 1.0 <= found.high


@pytest.mark.parametrize("kind", [list, pd.Series, pl.Series, pa.array])
def test_any_column_gives_the_same_report(kind):
    y, p = (x.tolist() for x in heavy(40))
    by, w, order = ["a", "b"] * 20, [1.5, 2.0] * 20, list(range(40))
    found = evaluate_regression(*map(kind, (y, p)), weights=kind(w), by=kind(by), order=kind(order))
    assert str(found) == str(evaluate_regression(y, p, weights=w, by=by, order=order))


# --- the normalised scale -------------------------------------------------------------------------


def test_both_scales_tell_the_same_story():
    y, p = heavy()
    options = {"normalization": TRAINING, "unit": "kg/m³"}
    real = evaluate_regression(y, p, "all", **options)
    back = evaluate_regression(
        TRAINING.normalize(y), TRAINING.normalize(p), "all", normalized=True, **options
    )
    alone = evaluate_regression(TRAINING.normalize(y), TRAINING.normalize(p), "all")
    for name, found in real.metrics.items():
        other = back.metrics[name]
        for part in ("value", "low", "high"):
            wanted = getattr(found, part)
            assert getattr(other, part) == pytest.approx(wanted, rel=1e-9, nan_ok=True)
        if name in IN_UNIT:
            assert real.normalized()[name] == pytest.approx(alone.metrics[name].value, rel=1e-9)
            assert found.value == pytest.approx(104.26 * alone.metrics[name].value, rel=1e-9)
    assert real.normalized()["mse"] == pytest.approx(alone.metrics["mse"].value, rel=1e-9)
    assert set(real.normalized()) >= {"rmse", "mae", "bias", "mse"}
    assert not set(real.normalized()) & set(SHARES)
    assert alone.normalized() == {}


def test_r2_uses_the_spread_of_the_targets_and_not_that_of_training():
    y, p = heavy()
    result = evaluate_regression(y, p, normalization=TRAINING)
    rmse = result.metrics["rmse"].value
    assert result.sigma == pytest.approx(np.std(y), rel=1e-12)
    assert result.metrics["r2"].value == pytest.approx(1 - rmse**2 / np.var(y), rel=1e-12)
    assert result.metrics["r2"].value != pytest.approx(1 - rmse**2 / 104.26**2, abs=0.01)
    assert result.metrics["relative_accuracy"].value == pytest.approx(1 - rmse / np.std(y))
    baseline = math.sqrt(np.mean((y - 673.27) ** 2))
    assert result.metrics["skill"].value == pytest.approx(1 - rmse / baseline)
    plain = evaluate_regression(y, p)
    assert plain.metrics["r2"].value == result.metrics["r2"].value


def test_the_report_names_which_sigma_is_which():
    y = np.array([-100.0, 100.0] * 50) + 673.27
    text = words(str(evaluate_regression(y, y + 10, unit="kg/m³", normalization=TRAINING)))
    assert "σ of the evaluated targets is 100.0 kg/m³ (in R², relative accuracy)." in text
    assert "σ of the training targets is 104.3 kg/m³, which turns errors" in text
    assert "their mean is not added to an error" in text
    assert "not R²" in text
    without = words(str(evaluate_regression(y, y + 10)))
    assert "training" not in without


def test_the_numbers_of_the_document():
    y = np.array([-104.26, 104.26] * 50) + 673.27
    p = y + np.array([41.46, -41.46, -41.46, 41.46] * 25)
    result = evaluate_regression(y, p, unit="kg/m³", normalization=TRAINING)
    text = str(result)
    for name, shown in (
        ("r2", "0.8419"),
        ("relative_accuracy", "0.6023"),
        ("nrmse", "0.3977"),
    ):
        assert f"{result.metrics[name].value:.4f}" == shown
        assert shown in text
    assert "41.46" in text
    assert result.normalized()["rmse"] == pytest.approx(0.39766, abs=1e-5)
    assert 0.3973 * TRAINING.std == pytest.approx(41.42, abs=0.005)


def test_normalised_columns_need_their_normalisation():
    with pytest.raises(BadOption, match="normalization="):
        evaluate_regression([1.0], [2.0], normalized=True)


# --- baselines ------------------------------------------------------------------------------------


def test_baselines_are_constant_predictors():
    y, p = heavy()
    result = evaluate_regression(y, p, normalization=TRAINING)
    constants = {"training mean": 673.27, "mean of the targets": y.mean()}
    constants["median of the targets"] = np.median(y)
    assert [one.name for one in result.baselines] == list(constants)
    for one in result.baselines:
        gap = y - constants[one.name]
        assert one.constant == pytest.approx(constants[one.name])
        assert one.rmse == pytest.approx(math.sqrt(np.mean(gap**2)))
        assert one.mae == pytest.approx(np.mean(np.abs(gap)))
        assert (one.note is None) == (one.name == "training mean")
    assert str(result).count("computed from the evaluated targets") == 2


def test_subgroups_have_the_same_baseline_as_the_whole():
    y, p = heavy()
    by = np.where(y > 670, "high", "low")
    result = evaluate_regression(y, p, "rmse,skill,baseline_rmse,baseline_mae", by=by)
    for name, part in result.by.items():
        gap = y[by == name] - y.mean()
        assert part.metrics["baseline_rmse"].value == pytest.approx(math.sqrt(np.mean(gap**2)))
        assert part.metrics["baseline_mae"].value == pytest.approx(np.mean(np.abs(gap)))
        assert part.baselines[0].rmse == pytest.approx(part.metrics["baseline_rmse"].value)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_previous_value_is_a_baseline_where_time_is_declared(weighted):
    rng = np.random.default_rng(1)
    y, p = heavy(50)
    w = rng.integers(0, 3, 50) + 0.5 * (rng.random(50) < 0.5) if weighted else None
    time = rng.permutation(50)
    found = evaluate_regression(y, p, weights=w, order=time).baselines[-1]
    there = np.argsort(time) if w is None else [k for k in np.argsort(time) if w[k] > 0]
    inorder = y[there]
    weights = None if w is None else w[there][1:]
    errors = np.diff(inorder)
    assert found.name == "previous value"
    assert found.constant is None
    assert found.rmse == pytest.approx(math.sqrt(np.average(errors**2, weights=weights)))
    assert found.mae == pytest.approx(np.average(np.abs(errors), weights=weights))
    assert "previous value" in str(evaluate_regression(y, p, order=time))
    assert "previous value" not in str(evaluate_regression(y, p))


@pytest.mark.parametrize(
    "order",
    [
        pd.date_range("2024-01-01", periods=4),
        [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)],
        pl.Series([1.5, 2.5, 3.5, 4.5]),
        pa.array([1, 2, 3, 4]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_anything_that_has_an_order_is_a_time(order):
    found = evaluate_regression([1.0, 3.0, 2.0, 7.0], [0.0, 0, 0, 0], order=order).baselines[-1]
    assert found.mae == pytest.approx((2 + 1 + 5) / 3)


def test_times_must_tell_items_apart():
    y, p = [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]
    for order, match in (
        ([1, 1, 2], "same time"),
        ([1, 2], "2 times for 3 targets"),
        ([1.0, np.nan, 2.0], "Row 2 has no time"),
        (np.array(["2024-01-01", "NaT", "2024-01-02"], "datetime64[D]"), "Row 2 has no time"),
        ([1, None, 2], "cannot be compared"),
        (["9", "10", "11"], "strings"),
        (np.ones((3, 1)), "3 times"),
    ):
        with pytest.raises(BadOption, match=match):
            evaluate_regression(y, p, order=order)
    assert [b.name for b in evaluate_regression([1.0], [2.0], order=[1]).baselines][
        -1
    ] != "previous value"


# --- weights and groups ---------------------------------------------------------------------------


def test_whole_weights_are_repeated_rows_in_every_number():
    y, p = heavy(80)
    times = np.random.default_rng(5).integers(0, 4, 80)
    weighted = evaluate_regression(y, p, "all", weights=times)
    repeated = evaluate_regression(np.repeat(y, times), np.repeat(p, times), "all")
    for name, found in weighted.metrics.items():
        other = repeated.metrics[name]
        near = 0.006 if name == "median_absolute_error" else 1e-9
        for part in ("value", "low", "high"):
            wanted = getattr(other, part)
            assert getattr(found, part) == pytest.approx(wanted, rel=near, nan_ok=True), name


@pytest.mark.parametrize("method", ["t", "studentized"])
def test_a_weight_of_zero_is_no_item(method):
    y, p = heavy(60)
    w = np.random.default_rng(5).gamma(1.0, 1.0, 60)
    options = {"interval": ConfidenceIntervals(method=method, resamples=200)}
    by = ["a", "b"] * 30
    kept = evaluate_regression(y, p, weights=w, by=by, order=np.arange(60), **options)
    y, p, w = (np.append(x, bad) for x, bad in ((y, np.nan), (p, np.inf), (w, 0.0)))
    more = evaluate_regression(
        y, p, weights=w, by=[*by, "c"], order=[*range(60), np.nan], **options
    )
    assert json.dumps(more.to_dict()) == json.dumps(kept.to_dict())


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("level", [0.95, None])
def test_subgroups_have_prediction_intervals_as_if_alone(grouped, level):
    y, p = heavy(200)
    by, writers = np.array(["x", "y", "y", "z"] * 50), np.arange(200) % 37
    weights = np.random.default_rng(5).integers(1, 4, 200)

    def of(rows, **options):
        groups = writers[rows] if grouped else None
        bounds = {"lower": p[rows] - 1, "upper": p[rows] + 1, "weights": weights[rows]}
        return evaluate_regression(
            y[rows], p[rows], "rmse", groups=groups, alpha=0.2, interval=level, **bounds, **options
        )

    result = of(slice(None), by=by)
    assert list(result.by) == ["x", "y", "z"]
    for name, part in result.by.items():
        alone = of(by == name)
        assert list(alone.prediction_intervals) == list(result.prediction_intervals)
        for metric, one in alone.prediction_intervals.items():
            found = part.prediction_intervals[metric]
            assert found.method == one.method
            numbers = (found.value, found.low, found.high)
            assert numbers == pytest.approx((one.value, one.low, one.high), nan_ok=True)


def test_a_seed_is_that_of_the_resamples_and_may_not_contradict_the_intervals():
    y, p = heavy(60)
    few = ConfidenceIntervals(resamples=200, seed=5)
    told = evaluate_regression(y, p, "rmse", interval=few)
    assert evaluate_regression(y, p, "rmse", interval=few, seed=5) == told
    other = evaluate_regression(y, p, "rmse", seed=5)
    assert other.interval == ConfidenceIntervals(seed=5)
    with pytest.raises(BadOption, match="seed=6 contradicts the seed=5"):
        evaluate_regression(y, p, interval=few, seed=6)


def test_a_metric_of_another_summary_is_refused_with_what_is_needed():
    with pytest.raises(BadOption, match="accuracy is a metric of labels, and a metric of regress"):
        evaluate_regression([1.0, 2.0], [1.0, 2.5], [find_metric("accuracy")])


def test_subgroups_are_evaluated_as_if_alone():
    y, p = heavy(200)
    by = np.array(["x", "y", "y", "z"] * 50)
    writers = np.arange(200) % 37
    result = evaluate_regression(y, p, "all", by=by, groups=writers, normalization=TRAINING)
    assert list(result.by) == ["x", "y", "z"]
    for name, part in result.by.items():
        rows = by == name
        alone = evaluate_regression(
            y[rows], p[rows], "all", groups=writers[rows], normalization=TRAINING
        )
        assert part.summary.n == rows.sum()
        assert part.groups == len(set(writers[rows]))
        for metric, found in part.metrics.items():
            for side in ("value", "low", "high"):
                assert getattr(found, side) == pytest.approx(
                    getattr(alone.metrics[metric], side), rel=1e-9, nan_ok=True
                )


def test_groups_widen_the_limits():
    rng = np.random.default_rng(8)
    codes = np.arange(400) % 20
    y = rng.normal(0, 1, 400)
    p = y + rng.normal(0, 1, 20)[codes]
    items, grouped = (evaluate_regression(y, p, "bias,rmse", groups=g) for g in (None, codes))
    assert grouped.metrics["bias"].width > 3 * items.metrics["bias"].width
    assert grouped.metrics["bias"].value == pytest.approx(items.metrics["bias"].value)
    assert grouped.metrics["bias"].method == "jackknife"
    assert "Items come in 20 clusters." in words(str(grouped))
    assert "So few clusters" not in words(str(grouped))
    few = evaluate_regression(y, p, "bias", groups=np.arange(400) % 5)
    assert "So few clusters leave the intervals unsure." in words(str(few))


def test_groups_have_the_same_values_as_items():
    y, p = heavy()
    grouped = evaluate_regression(y, p, "all", groups=np.arange(300) % 40)
    for name, found in evaluate_regression(y, p, "all").metrics.items():
        assert grouped.metrics[name].value == pytest.approx(found.value, rel=1e-12)


def test_an_item_without_a_group_is_named():
    with pytest.raises(MissingLabels, match=r"1 of 3 items have no group \(row 2\)"):
        evaluate_regression([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], groups=["a", None, "b"])
    found = evaluate_regression(
        [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], weights=[1, 0, 1], groups=["a", None, "b"]
    )
    assert found.groups == 2


def test_draws_of_items_are_not_drawn_of_groups():
    how = ConfidenceIntervals(method="studentized")
    with pytest.raises(BadOption, match="Leave out groups=…, or the method 'studentized'"):
        evaluate_regression([1.0, 2.0], [1.0, 3.0], groups=["a", "b"], interval=how)
    y, p = heavy(60)
    clustered = evaluate_regression(y, p, "rmse", groups=np.arange(60) % 30)
    assert clustered.metrics["rmse"].method == "jackknife"


def test_summaries_and_labels_have_no_items_to_resample():
    how = ConfidenceIntervals(method="studentized")
    with pytest.raises(BadOption, match="for single items without clusters 'studentized'"):
        RegressionEvaluation.from_summary(Moments.of(*heavy(60)), interval=how)
    with pytest.raises(BadOption, match="it is for the metrics of a regression"):
        evaluate([1, 2, 3], [1, 3, 3], scale=[1, 2, 3], interval=how)


def test_many_items_and_many_subgroups_have_students_t_unless_asked(monkeypatch):
    y, p = heavy(120)
    by, few = np.arange(120) % 3, ConfidenceIntervals(resamples=100)

    def methods(weights=None, interval=few):
        found = evaluate_regression(y, p, "rmse", by=by, weights=weights, interval=interval)
        return [x.metrics["rmse"].method for x in (found, *found.by.values())]

    assert methods() == ["studentized"] * 4
    assert methods(interval=replace(few, method="delta")) == ["delta"] * 4
    monkeypatch.setattr(regression, "MOST_RESAMPLED_PARTS", 2)
    assert methods() == ["studentized", "t", "t", "t"]
    assert "Intervals of subgroups by Student's t: 3 are too many to resample." in words(
        str(evaluate_regression(y, p, by=by, interval=few))
    )
    monkeypatch.setattr(regression, "MOST_RESAMPLED_ITEMS", 120)
    assert methods()[0] == "studentized"
    assert methods(weights=np.full(120, 1.5))[0] == "studentized"
    assert methods(weights=np.full(120, 2)) == ["t"] * 4
    asked = replace(few, method="studentized")
    assert methods(np.full(120, 2), asked) == ["studentized"] * 4


def test_subgroups_are_resampled_as_if_alone():
    y, p = heavy(200)
    by, weights = np.array(["x", "y"] * 100), np.random.default_rng(5).integers(1, 4, 200)
    few = ConfidenceIntervals(resamples=100)
    result = evaluate_regression(y, p, "rmse", by=by, weights=weights, interval=few)
    for name, part in result.by.items():
        own = by == name
        alone = evaluate_regression(y[own], p[own], "rmse", weights=weights[own], interval=few)
        found, usual = part.metrics["rmse"], alone.metrics["rmse"]
        numbers = (found.value, found.low, found.high)
        assert numbers == pytest.approx((usual.value, usual.low, usual.high), rel=1e-12)
        assert replace(found, value=0.0, low=0.0, high=0.0) == replace(
            usual, value=0.0, low=0.0, high=0.0
        )


def test_subgroups_of_few_items_say_that_they_have_students_t():
    y, p = heavy(60)
    few = ConfidenceIntervals(resamples=100)
    result = evaluate_regression(y, p, by=["a"] * 50 + ["b"] * 10, interval=few)
    assert [x.metrics["rmse"].method for x in result.by.values()] == ["studentized", "t"]
    assert "Subgroups of fewer than 20 items have intervals by Student's t." in words(str(result))


def test_studentised_limits_of_normal_errors_are_near_those_of_the_delta_method():
    rng = np.random.default_rng(3)
    y = rng.normal(670, 104, 400)
    p = y + rng.normal(0, 50, 400)
    how = ConfidenceIntervals(resamples=1_000, seed=1)
    by = ["a", "b"] * 200
    delta = evaluate_regression(y, p, by=by, interval=replace(how, method="delta"))
    drawn = evaluate_regression(y, p, by=by, interval=how)
    for one, other in ((delta, drawn), *zip(delta.by.values(), drawn.by.values(), strict=True)):
        for name in ("rmse", "mae", "r2", "relative_accuracy", "skill", "bias"):
            wanted, found = one.metrics[name], other.metrics[name]
            assert found.method == "studentized"
            assert found.value == wanted.value
            assert found.low == pytest.approx(wanted.low, abs=0.2 * wanted.width), name
            assert found.high == pytest.approx(wanted.high, abs=0.2 * wanted.width), name
    assert "Intervals by the studentised bootstrap of N^¾ items: rmse" in words(str(drawn))
    assert evaluate_regression(y, p, interval=None).metrics["rmse"].method is None


def test_groups_that_look_alike_are_told_apart():
    result = evaluate_regression([1.0, 2, 3, 4], [1.0, 2, 4, 1], by=[1, "1", None, "(none)"])
    assert len(result.to_dict()["by"]) == 4
    assert {row["group"] for row in result.rows()} == {"", *result.to_dict()["by"]}
