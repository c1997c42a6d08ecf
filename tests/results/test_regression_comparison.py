"""Models of a quantity: differences are those of loops, of repeated rows and of redrawn items."""

import json
import math
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from regression_models import N, Z, sampled
from scipy import stats

from ordinate.errors import (
    BadInput,
    BadOption,
    BadValues,
    BadWeights,
    MissingLabels,
    NoItems,
    UnequalLengths,
)
from ordinate.inference import ConfidenceIntervals, regression
from ordinate.inference.multiple_testing import holm
from ordinate.inference.regression_delta_method import standard_error
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results.regression_comparison import compare_regression
from ordinate.results.regression_sources import evaluate_regression
from ordinate.summaries.regression import Moments

METRICS = ("rmse", "mae", "r2")


Y, MODELS = sampled()


def value(metric, y, p, w=None):
    w = np.ones(len(y)) if w is None else np.asarray(w, float)
    w = w / w.sum()
    e = p - y
    if metric == "mae":
        return w @ np.abs(e)
    if metric == "r2":
        return 1 - (w @ e**2) / (w @ (y - w @ y) ** 2)
    return math.sqrt(w @ e**2)


def pulls(metric, y, p, w=None):
    """What each item adds to a metric, by the formula of a textbook."""
    w = np.ones(len(y)) if w is None else np.asarray(w, float)
    w = w / w.sum()
    e, d = p - y, y - w @ y
    mse, variance = w @ e**2, w @ d**2
    if metric == "mae":
        return np.abs(e) - w @ np.abs(e)
    if metric == "r2":
        return -(e**2 - mse) / variance + mse * (d**2 - variance) / variance**2
    return (e**2 - mse) / (2 * math.sqrt(mse))


def one(result, metric):
    (found,) = [x for x in result.differences if x.metric == metric]
    return found


def error_of(found, reach=Z):
    return (found.estimate.high - found.estimate.low) / (2 * reach)


def oriented(found):
    """The sign that makes first less second that of a less b."""
    return 1.0 if found.first == "a" else -1.0


def test_metrics_and_intervals_are_given_as_to_an_evaluation():
    with pytest.raises(BadOption, match="No metric was named"):
        compare_regression(Y, MODELS, [])
    with pytest.raises(BadOption, match="mae is a metric of labels, and a metric of regression"):
        compare_regression(Y, MODELS, find_metric("mae"))
    result = compare_regression(Y, MODELS, interval=0.9)
    assert compare_regression(Y, MODELS, interval=ConfidenceIntervals(0.9)) == result
    assert compare_regression(Y, MODELS, METRICS, interval=0.9) == result
    with pytest.raises(BadOption, match="does not fit regression"):
        compare_regression(Y, MODELS, interval=ConfidenceIntervals(0.9, "bca"))


# --- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_difference_is_that_of_a_loop_over_items(metric):
    result = compare_regression(Y, MODELS)
    found = one(result, metric)
    gap = value(metric, Y, MODELS["a"]) - value(metric, Y, MODELS["b"])
    assert oriented(found) * found.estimate.value == pytest.approx(gap)
    apart = pulls(metric, Y, MODELS["a"]) - pulls(metric, Y, MODELS["b"])
    error = math.sqrt(sum(x * x for x in apart) / (N - 1) / N)
    assert error_of(found) == pytest.approx(error, rel=1e-6)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(gap) / error), rel=1e-4)


@pytest.mark.parametrize("metric", [*METRICS, "ccc", "bias", "skill"])
def test_the_error_of_a_difference_is_that_of_redrawn_items(metric):
    """Within 4 Monte-Carlo errors of 800 resamples and 2 % for what is bent."""
    y, models = sampled(1500, 1, (10.0, 13.0))
    found = one(compare_regression(y, models, metric), metric)
    rng, wanted = np.random.default_rng(2), find_metric(metric, Moments)
    drawn = []
    for _ in range(800):
        rows = rng.integers(len(y), size=len(y))
        first, second = (Moments.of(y[rows], p[rows], order=2) for p in models.values())
        drawn.append(float(wanted(first)) - float(wanted(second)))
    assert error_of(found) == pytest.approx(np.std(drawn), rel=4 / math.sqrt(2 * 800) + 0.02)


STUDENT = ConfidenceIntervals(method="t")  # of values: differences are never resampled


def test_differences_do_not_depend_on_the_method_of_values():
    many = ConfidenceIntervals(method="studentized", resamples=100, seed=3)
    first, second = (compare_regression(Y, MODELS, interval=x) for x in (STUDENT, many))
    assert first.differences == second.differences
    assert {first.models["a"]["rmse"].method, second.models["a"]["rmse"].method} == {
        "t",
        "studentized",
    }


def test_many_models_have_students_t(monkeypatch):
    monkeypatch.setattr(regression, "MOST_RESAMPLED_PARTS", len(MODELS) - 1)
    assert compare_regression(Y, MODELS).models["a"]["rmse"].method == "t"
    monkeypatch.setattr(regression, "MOST_RESAMPLED_PARTS", len(MODELS))
    assert compare_regression(Y, MODELS).models["a"]["rmse"].method == "studentized"
    monkeypatch.setattr(regression, "MOST_RESAMPLED_ITEMS", len(MODELS) * len(Y) - 1)
    assert compare_regression(Y, MODELS).models["a"]["rmse"].method == "t"


def test_limits_cover_the_true_difference_on_heavy_tails():
    """Models alike but for a part of their own: the truth is 0; at least 95 % less 4 errors."""
    covered = dict.fromkeys(METRICS, 0)
    for seed in range(200):
        result = compare_regression(*sampled(120, seed, (10.0, 10.0)), interval=STUDENT)
        for found in result.differences:
            covered[found.metric] += found.estimate.low <= 0 <= found.estimate.high
    for metric in METRICS:
        assert covered[metric] / 200 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 200), metric


def test_a_pair_is_surer_than_two_models_apart():
    y, models = sampled(shared=30.0)
    result = compare_regression(y, models, "rmse")
    alone = [x["rmse"] for x in result.models.values()]
    assert one(result, "rmse").estimate.width < min(x.width for x in alone)


def test_a_model_alone_has_the_interval_of_its_own_evaluation():
    result = compare_regression(Y, MODELS)
    own = evaluate_regression(Y, MODELS["a"], METRICS).metrics
    for metric in METRICS:
        assert result.models["a"][metric] == own[metric]


def test_identical_models_are_not_told_apart():
    result = compare_regression(
        Y, {"a": MODELS["a"], "b": MODELS["a"].copy()}, "rmse,mae,r2,pearson"
    )
    for found in result.differences:
        assert (found.estimate.low, found.estimate.value, found.estimate.high) == (0, 0, 0)
        assert (found.p, found.p_adjusted, found.verdict) == (1.0, 1.0, "identical")
    assert result.conclusions["rmse"] == "a and b have the same rmse."


@pytest.mark.parametrize("off", [0.7, 1.1, 1.3, 2.9])
def test_rounding_is_no_difference(off):
    result = compare_regression(Y, {"above": Y + off, "below": Y - off}, "rmse,mae")
    assert {found.verdict for found in result.differences} == {"identical"}


def test_a_difference_without_any_spread_is_not_tested():
    found = one(compare_regression(Y, {"a": Y + 1.1, "b": Y + 2.2}, "rmse"), "rmse")
    assert (found.verdict, found.estimate.note) == ("untested", "it is the same for all items")
    assert found.estimate.value == pytest.approx(-1.1)


def test_a_perfect_model_leaves_the_error_of_the_other():
    result = compare_regression(Y, {"perfect": Y, "a": MODELS["a"]})
    table = Moments.of(Y, MODELS["a"])
    for found in result.differences:
        assert found.first == "perfect"
        assert found.verdict == "better"
        own = standard_error(find_metric(found.metric, Moments), table)
        assert error_of(found) == pytest.approx(own, rel=1e-6)


def test_the_order_of_models_does_not_matter():
    y, models = sampled(scales=(10.0, 12.0, 10.5))
    first = compare_regression(y, models)
    for names in permutations(models):
        other = compare_regression(y, {name: models[name] for name in names})
        assert other.differences == first.differences
        assert other.conclusions == first.conclusions
        assert other.models == first.models
    same = {"x": models["a"], "y": models["a"], "b": models["b"]}
    there, back = (
        compare_regression(y, dict(sorted(same.items(), reverse=r))) for r in (True, False)
    )
    assert there.differences == back.differences


def test_holm_is_over_the_pairs_within_a_metric():
    y, models = sampled(scales=(10.0, 12.0, 10.5, 11.0))
    result = compare_regression(y, models)
    assert len(result.differences) == 3 * 6
    for metric in METRICS:
        pairs = [found for found in result.differences if found.metric == metric]
        assert [x.p_adjusted for x in pairs] == holm([x.p for x in pairs]).tolist()
        assert [x.verdict for x in pairs] == [
            "better" if x.p_adjusted <= 0.05 else "inconclusive" for x in pairs
        ]


def test_with_many_models_alike_few_are_told_apart():
    """Holm keeps the share of replicates with any claim at 5 %, and 4 Monte-Carlo errors."""
    claims = 0
    for seed in range(120):
        result = compare_regression(*sampled(100, seed, (10.0,) * 4), "mae", interval=STUDENT)
        claims += any(found.verdict == "better" for found in result.differences)
    assert claims / 120 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 120)


def test_a_far_away_origin_changes_nothing():
    near, far = (compare_regression(Y + s, {k: p + s for k, p in MODELS.items()}) for s in (0, 1e9))
    for x, other in zip(near.differences, far.differences, strict=True):
        assert other.estimate.value == pytest.approx(x.estimate.value, rel=1e-5)
        assert other.p == pytest.approx(x.p, rel=1e-4)


def test_another_unit_scales_the_limits():
    result = compare_regression(Y * 1e-3, {k: p * 1e-3 for k, p in MODELS.items()})
    before = one(compare_regression(Y, MODELS), "rmse")
    assert one(result, "rmse").estimate.low == pytest.approx(before.estimate.low * 1e-3)
    assert one(result, "rmse").p == pytest.approx(before.p)


# --- groups and weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [8, 60])
def test_groups_are_units_with_students_t(metric, count):
    groups = np.random.default_rng(4).integers(count, size=N)
    found = one(compare_regression(Y, MODELS, groups=groups), metric)
    apart = pulls(metric, Y, MODELS["a"]) - pulls(metric, Y, MODELS["b"])
    sums = np.array([apart[groups == g].sum() for g in np.unique(groups)])
    units = len(sums)
    error = math.sqrt(units / (units - 1) * (sums**2).sum()) / N
    assert error_of(found, stats.t.ppf(0.975, units - 1)) == pytest.approx(error, rel=1e-6)
    ratio = abs(found.estimate.value) / error
    assert found.p == pytest.approx(2 * stats.t.sf(ratio, units - 1), rel=1e-4)
    assert found.estimate.method == "t"


def test_copies_of_items_in_a_group_add_no_surety():
    groups = np.arange(N)
    twice = {k: np.repeat(p, 2) for k, p in MODELS.items()}
    once = compare_regression(Y, MODELS, groups=groups)
    both = compare_regression(np.repeat(Y, 2), twice, groups=np.repeat(groups, 2))
    for x, other in zip(once.differences, both.differences, strict=True):
        assert other.estimate.low == pytest.approx(x.estimate.low)
        assert other.p == pytest.approx(x.p)


def test_one_group_compares_nothing():
    result = compare_regression(Y, MODELS, groups=["same"] * N)
    assert {found.estimate.note for found in result.differences} == {"there is one cluster only"}
    assert {found.verdict for found in result.differences} == {"untested"}


@pytest.mark.parametrize("grouped", [False, True])
def test_whole_weights_are_repeated_rows(grouped):
    rng = np.random.default_rng(5)
    times, groups = rng.integers(0, 4, N), rng.integers(12, size=N)
    rows = np.repeat(np.arange(N), times)
    options = [{"groups": groups}, {"groups": groups[rows]}] if grouped else [{}, {}]
    weighted = compare_regression(Y, MODELS, weights=times, **options[0])
    repeated = compare_regression(Y[rows], {k: p[rows] for k, p in MODELS.items()}, **options[1])
    for x, other in zip(weighted.differences, repeated.differences, strict=True):
        assert x.estimate.value == pytest.approx(other.estimate.value)
        assert x.estimate.low == pytest.approx(other.estimate.low)
        assert x.p_adjusted == pytest.approx(other.p_adjusted)
    for name in MODELS:
        for metric in METRICS:
            found, other = weighted.models[name][metric], repeated.models[name][metric]
            assert (found.low, found.high) == pytest.approx((other.low, other.high))
    assert weighted.weight == len(rows)


@pytest.mark.parametrize("metric", METRICS)
def test_of_real_weights_the_squares_count(metric):
    w = np.random.default_rng(6).exponential(size=N)
    found = one(compare_regression(Y, MODELS, weights=w), metric)
    gap = value(metric, Y, MODELS["a"], w) - value(metric, Y, MODELS["b"], w)
    assert oriented(found) * found.estimate.value == pytest.approx(gap)
    apart = pulls(metric, Y, MODELS["a"], w) - pulls(metric, Y, MODELS["b"], w)
    error = math.sqrt((w**2 * apart**2).sum() * N / (N - 1)) / w.sum()
    assert error_of(found) == pytest.approx(error, rel=1e-6)
    scaled = one(compare_regression(Y, MODELS, weights=w * 7.3), metric)
    assert scaled.estimate.low == pytest.approx(found.estimate.low)


def test_an_item_of_weight_0_does_not_exist():
    w = np.ones(N)
    w[3] = 0
    broken = {k: np.where(np.arange(N) == 3, np.nan, p) for k, p in MODELS.items()}
    there = np.arange(N) != 3
    result = compare_regression(
        Y, broken, weights=w, groups=[None if k == 3 else k for k in range(N)]
    )
    other = compare_regression(
        Y[there], {k: p[there] for k, p in MODELS.items()}, groups=np.flatnonzero(there)
    )
    assert result.n == N - 1
    for x, same in zip(result.differences, other.differences, strict=True):
        assert x.estimate.low == pytest.approx(same.estimate.low)


# --- what is said ---------------------------------------------------------------------------------


def test_the_better_model_is_named_with_the_amount():
    y, models = sampled(scales=(10.0, 20.0))
    result = compare_regression(y, models, unit="kg/m³")
    gap = one(result, "rmse").estimate
    assert gap.value < 0
    assert result.conclusions["rmse"] == (
        f"a has the smaller rmse: by {-gap.value:.2f} kg/m³ ({-gap.high:.3f} to {-gap.low:.2f})."
    )
    assert result.conclusions["r2"].startswith("a has the larger r2: by 0.")


def test_models_that_cannot_be_told_apart_are_called_so():
    y, models = sampled(60, 2, (10.0, 10.1))
    text = compare_regression(y, models, unit="m").conclusions["mae"]
    assert "are not significantly different by mae: they differ by" in text


def test_of_several_models_the_leader_is_told_from_some():
    y, models = sampled(scales=(10.0, 10.2, 25.0))
    text = compare_regression(y, models).conclusions["rmse"]
    leader = text[0]
    other = {"a": "b", "b": "a"}[leader]
    assert text == (
        f"{leader} has the smallest rmse; it is ahead of c; it is not significantly different "
        f"from {other}."
    )
    y, models = sampled(scales=(10.0, 20.0, 40.0))
    text = compare_regression(y, models).conclusions["rmse"]
    assert text.startswith("a has the smallest rmse: ahead of b, the next, by ")


def test_biases_differ_and_none_is_called_better():
    y, models = sampled()
    models = {"a": models["a"], "b": models["a"] + np.sin(np.arange(N)) + 5}
    result = compare_regression(y, models, "bias", unit="m")
    assert one(result, "bias").verdict == "different"
    assert result.conclusions["bias"].startswith("a and b differ in bias: by 5.")


def test_metrics_without_a_derivative_are_not_tested():
    result = compare_regression(Y, MODELS, "max_error,median_absolute_error,baseline_rmse")
    assert {found.verdict for found in result.differences} == {"untested"}
    assert one(result, "max_error").estimate.note == "no method covers it"
    assert one(result, "baseline_rmse").estimate.note == "it is a baseline"
    assert "which is not tested: no method covers it." in result.conclusions["max_error"]


def test_constant_targets_leave_r2_undefined_with_its_reason():
    result = compare_regression(np.full(N, 5.0), {k: p - Y for k, p in MODELS.items()})
    assert result.conclusions["r2"] == "r2 compares nothing: all targets are equal."
    assert [found.metric for found in result.differences] == ["rmse", "mae"]
    assert json.dumps(result.to_dict(), allow_nan=False)
    assert "No interval for r2 of a and b: all targets are equal." in " ".join(str(result).split())


def test_ten_models_have_differences_in_every_metric():
    rng = np.random.default_rng(0)
    result = compare_regression(Y, {f"m{k}": Y + rng.normal(0, 1, len(Y)) for k in range(10)})
    grids = [x for x in result.document().blocks if str(getattr(x, "title", "")).startswith("Diff")]
    assert [len(grid.rows) for grid in grids] == [30, 30, 30]
    assert "45 more differences are in the JSON report." in str(result)


def test_so_few_items_are_called_unsure():
    assert "Fewer than 30 items" in str(
        compare_regression(Y[:5], {k: p[:5] for k, p in MODELS.items()})
    )
    single = compare_regression(Y[:1], {k: p[:1] for k, p in MODELS.items()}, "rmse")
    assert one(single, "rmse").estimate.note == "there is one item only"


def test_json_has_models_and_differences():
    plain = json.loads(
        json.dumps(compare_regression(Y, MODELS, unit="m").to_dict(), allow_nan=False)
    )
    assert (plain["schema"], plain["task"]) == (1, "compare_regression")
    assert list(plain["models"]) == ["a", "b"]
    assert plain["models"]["a"]["rmse"]["unit"] == "m"
    assert {"first", "second", "difference", "low", "high", "p", "p_adjusted"} <= set(
        plain["differences"][0]
    )


@pytest.mark.parametrize("form", RENDERERS)
def test_names_and_units_cannot_drive_anything(form):
    nasty = "=1+1\x1b[31m<b>\u202e木&_"
    result = compare_regression(Y, {nasty: MODELS["a"], "b": MODELS["b"]}, unit="kg/m³ \x1b[0m")
    text = render(result, form)
    if form not in {"csv", "json"}:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "kg/m³" in text
    assert (form != "html") or "<b>" not in text
    assert (form != "csv") or f",{nasty}," in text  # as in the data


@pytest.mark.parametrize("interval", [0.9, None, ConfidenceIntervals(0.9), ConfidenceIntervals()])
def test_intervals_of_each_model_are_those_of_its_evaluation(interval):
    found = compare_regression(Y, MODELS, "rmse", interval=interval)
    for name, predicted in MODELS.items():
        alone = evaluate_regression(Y, predicted, "rmse", interval=interval).metrics["rmse"]
        assert found.models[name]["rmse"] == alone


@pytest.mark.parametrize(
    ("targets", "models", "options", "error", "message"),
    [
        ([1.0, 2.0], {"a": [1, 2], "b": [1, math.nan]}, {}, BadValues, "'b'.* row 2 is nan"),
        ([1.0, math.nan], {"a": [1, 2], "b": [1, 2]}, {}, BadValues, "target of row 2 is nan"),
        ([1.0, 2.0], {"a": [1, 2], "b": ["x", "y"]}, {}, BadValues, "'b' must be numbers"),
        ([1.0, 2.0], {"a": [1, 2], "b": [1]}, {}, UnequalLengths, "predictions of 'b'"),
        ([1.0, 2.0], {"a": [1, 2]}, {}, BadOption, "2 to 500 models, not 1"),
        ([1.0, 2.0], [[1, 2], [1, 2]], {}, BadOption, "models by name"),
        ([1.0, 2.0], {1: [1, 2], "1": [1, 2]}, {}, BadOption, "the same name"),
        ([], {"a": [], "b": []}, {}, NoItems, "no items"),
        ([1.0], {"a": [1], "b": [2]}, {"weights": [0]}, NoItems, "all weights are 0"),
        ([1.0], {"a": [1], "b": [2]}, {"weights": [-1]}, BadWeights, "row 1"),
        ([1.0, 2.0], {"a": [1, 2], "b": [2, 3]}, {"groups": ["g"]}, UnequalLengths, "groups"),
        ([1.0, 2.0], {"a": [1, 2], "b": [2, 3]}, {"groups": ["g", None]}, MissingLabels, "row 2"),
        ([1.0], {"a": [1], "b": [2]}, {"interval": 5}, BadOption, "level of an interval"),
        ([1.0], {"a": [1], "b": [2]}, {"metrics": []}, BadOption, "No metric was named"),
    ],
)
def test_bad_input_is_refused_by_name(targets, models, options, error, message):
    with pytest.raises(error, match=message):
        compare_regression(targets, models, **options)


# --- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_columns_of_a_table_are_compared_by_their_names(make):
    rng = np.random.default_rng(8)
    rows = {name: rng.normal(size=30) for name in ("y", "near", "far")}
    rows |= {"weight": rng.integers(1, 4, 30) / 2, "family": np.arange(30) % 6}
    columns = {"weights": rows["weight"], "groups": rows["family"]}
    models = {name: rows[name] for name in ("near", "far")}
    usual = compare_regression(rows["y"], models, "mae", **columns)
    named = {"target": "y", "weights": "weight", "groups": "family"}
    for given in (["near", "far"], {"near": "near", "far": "far"}):
        found = compare_regression(make(rows), given, "mae", **named)
        assert found.to_dict() == usual.to_dict()


def test_tables_that_say_too_little_are_refused():
    rows = {name: [1.0, 2.0, 4.0] for name in ("y", "a", "b")}
    with pytest.raises(BadOption, match=r"Which column of the table is target\?"):
        compare_regression(rows, ["a", "b"])
    with pytest.raises(BadInput, match="has no column 'c'"):
        compare_regression(rows, ["a", "c"], target="y")
    with pytest.raises(BadOption, match="the polars frame is not in memory: collect its rows"):
        compare_regression(pl.LazyFrame(rows), ["a", "b"], target="y")
