"""Models of a quantity: differences are those of loops, of repeated rows and of redrawn items."""

import json
import math
from dataclasses import replace
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
from ordinate.results.comparison import compare
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


def compared(y, models, metrics=None, **options):
    return compare(target=y, systems=models, metrics=metrics, **options)


def pairs_of(result):
    return [pair for board in result.leaderboards.values() for pair in board.pairs]


def value_of(result, system, metric):
    return result.leaderboards[metric].get_standing(system).estimate


def one(result, metric):
    (found,) = result.leaderboards[metric].pairs
    return found


def error_of(found, reach=Z):
    return (found.difference.high - found.difference.low) / (2 * reach)


def oriented(found):
    """The sign that makes first less second that of a less b."""
    return 1.0 if found.first == "a" else -1.0


def test_metrics_and_intervals_are_given_as_to_an_evaluation():
    with pytest.raises(BadOption, match="No metric was named"):
        compared(Y, MODELS, [])
    with pytest.raises(BadOption, match="mae is a metric of labels, and a metric of regression"):
        compared(Y, MODELS, find_metric("mae"))
    result = compared(Y, MODELS, interval=0.9)
    assert compared(Y, MODELS, interval=ConfidenceIntervals(0.9)) == result
    assert compared(Y, MODELS, METRICS, interval=0.9) == result
    with pytest.raises(BadOption, match="does not fit regression"):
        compared(Y, MODELS, interval=ConfidenceIntervals(0.9, "bca"))


# --- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_difference_is_that_of_a_loop_over_items(metric):
    result = compared(Y, MODELS)
    found = one(result, metric)
    gap = value(metric, Y, MODELS["a"]) - value(metric, Y, MODELS["b"])
    assert oriented(found) * found.difference.value == pytest.approx(gap)
    apart = pulls(metric, Y, MODELS["a"]) - pulls(metric, Y, MODELS["b"])
    error = math.sqrt(sum(x * x for x in apart) / (N - 1) / N)
    assert error_of(found) == pytest.approx(error, rel=1e-6)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(gap) / error), rel=1e-4)


@pytest.mark.parametrize("metric", [*METRICS, "ccc", "bias", "skill"])
def test_the_error_of_a_difference_is_that_of_redrawn_items(metric):
    """Within 4 Monte-Carlo errors of 800 resamples and 2 % for what is bent."""
    y, models = sampled(1500, 1, (10.0, 13.0))
    models = {name: p + 5 for name, p in models.items()}  # far from 0, where bias turns
    found = one(compared(y, models, metric), metric)
    rng, wanted = np.random.default_rng(2), find_metric(metric, Moments)
    drawn = []
    for _ in range(800):
        rows = rng.integers(len(y), size=len(y))
        first, second = (Moments.of(y[rows], p[rows], order=2) for p in models.values())
        drawn.append(float(wanted(first)) - float(wanted(second)))
    assert error_of(found) == pytest.approx(np.std(drawn), rel=4 / math.sqrt(2 * 800) + 0.02)


STUDENT = ConfidenceIntervals(method="t", resamples=1_000)  # no more than tests need


def test_differences_do_not_depend_on_the_method_of_values():
    many = ConfidenceIntervals(method="studentized", resamples=100, seed=3)
    first, second = (compared(Y, MODELS, interval=x) for x in (STUDENT, many))
    assert pairs_of(first) == pairs_of(second)
    assert {value_of(first, "a", "rmse").method, value_of(second, "a", "rmse").method} == {
        "t",
        "studentized",
    }


def test_many_models_have_students_t(monkeypatch):
    monkeypatch.setattr(regression, "MOST_RESAMPLED_PARTS", len(MODELS) - 1)
    assert value_of(compared(Y, MODELS), "a", "rmse").method == "t"
    monkeypatch.setattr(regression, "MOST_RESAMPLED_PARTS", len(MODELS))
    assert value_of(compared(Y, MODELS), "a", "rmse").method == "studentized"
    monkeypatch.setattr(regression, "MOST_RESAMPLED_ITEMS", len(MODELS) * len(Y) - 1)
    assert value_of(compared(Y, MODELS), "a", "rmse").method == "t"


def test_limits_cover_the_true_difference_on_heavy_tails():
    """Models alike but for a part of their own: the truth is 0; at least 95 % less 4 errors."""
    covered = dict.fromkeys(METRICS, 0)
    for seed in range(200):
        result = compared(*sampled(120, seed, (10.0, 10.0)), interval=STUDENT)
        for found in pairs_of(result):
            covered[found.metric] += found.difference.low <= 0 <= found.difference.high
    for metric in METRICS:
        assert covered[metric] / 200 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 200), metric


def test_a_pair_is_surer_than_two_models_apart():
    y, models = sampled(shared=30.0)
    result = compared(y, models, "rmse")
    alone = [x.estimate for x in result.leaderboards["rmse"].standings]
    assert one(result, "rmse").difference.width < min(x.width for x in alone)


def test_a_model_alone_has_the_interval_of_its_own_evaluation():
    result = compared(Y, MODELS)
    own = evaluate_regression(Y, MODELS["a"], METRICS).metrics
    for metric in METRICS:
        assert value_of(result, "a", metric) == own[metric]


def test_identical_models_are_not_told_apart():
    result = compared(Y, {"a": MODELS["a"], "b": MODELS["a"].copy()}, "rmse,mae,r2,pearson")
    for found in pairs_of(result):
        assert (found.difference.low, found.difference.value, found.difference.high) == (0, 0, 0)
        assert (found.p, found.p_adjusted, found.verdict) == (1.0, 1.0, "identical")
    assert "no difference from b" in result.leaderboards["rmse"].conclusion


@pytest.mark.parametrize("off", [0.7, 1.1, 1.3, 2.9])
def test_rounding_is_no_difference(off):
    result = compared(Y, {"above": Y + off, "below": Y - off}, "rmse,mae")
    assert {found.verdict for found in pairs_of(result)} == {"identical"}


def test_a_difference_without_any_spread_is_not_tested():
    found = one(compared(Y, {"a": Y + 1.1, "b": Y + 2.2}, "rmse"), "rmse")
    assert (found.verdict, found.difference.note) == ("untested", "it is the same for all items")
    assert found.difference.value == pytest.approx(-1.1)


def test_a_perfect_model_leaves_the_error_of_the_other():
    result = compared(Y, {"perfect": Y, "a": MODELS["a"]})
    table = Moments.of(Y, MODELS["a"])
    for found in pairs_of(result):
        assert found.first == "perfect"
        assert found.verdict == "better"
        own = standard_error(find_metric(found.metric, Moments), table)
        assert error_of(found) == pytest.approx(own, rel=1e-6)


def test_the_order_of_models_does_not_matter():
    y, models = sampled(scales=(10.0, 12.0, 10.5))
    first = compared(y, models, resamples=200)
    for names in permutations(models):
        other = compared(y, {name: models[name] for name in names}, resamples=200)
        assert other.leaderboards == first.leaderboards


def test_systems_that_are_the_same_share_every_rank():
    board = compared(Y, {"x": MODELS["a"], "y": MODELS["a"], "b": MODELS["b"]}).leaderboards["rmse"]
    first, second = board.get_standing("x"), board.get_standing("y")
    assert replace(first, system="y") == second


# --- all pairs at once ----------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, np.arange(N) % 40])
def test_holm_is_over_the_pairs_within_a_metric_and_max_t_asks_for_less(groups):
    y, models = sampled(scales=(10.0, 12.0, 10.5, 11.0))
    by_holm, by_max_t = (
        compared(y, models, groups=groups, correction=x) for x in ("holm", "max_t")
    )
    for metric in METRICS:
        pairs, others = (x.leaderboards[metric].pairs for x in (by_holm, by_max_t))
        assert len(pairs) == 6
        assert [x.p_adjusted for x in pairs] == holm([x.p for x in pairs]).tolist()
        for x, other in zip(pairs, others, strict=True):
            assert (x.p, x.difference) == (other.p, other.difference)
            assert x.p <= other.p_adjusted <= x.p_adjusted
            assert x.verdict == ("better" if x.p_adjusted <= 0.05 else "inconclusive")


def test_intervals_hold_for_all_pairs_at_once():
    """One pair has its own; of six, as max-T widens it, less than Bonferroni would."""
    y, models = sampled(scales=(10.0, 12.0, 10.5, 11.0))
    all_pairs = compared(y, models, "mae").leaderboards["mae"].pairs
    for pair in all_pairs:
        own = one(compared(y, {x: models[x] for x in (pair.first, pair.second)}, "mae"), "mae")
        wider = pair.difference.width / own.difference.width
        assert 1.1 < wider < stats.norm.isf(0.025 / 6) / Z
    against = compared(y, models, "mae", against="a").leaderboards["mae"].pairs
    assert len(against) == 3
    widths = {frozenset((x.first, x.second)): x.difference.width for x in all_pairs}
    for pair in against:
        assert pair.difference.width < widths[frozenset((pair.first, pair.second))]


def test_two_systems_have_the_interval_and_the_p_value_of_their_pair():
    for correction in ("max_t", "holm", "bh", "by", "none"):
        found = one(compared(Y, MODELS, "rmse", correction=correction), "rmse")
        assert found.p_adjusted == found.p
        assert error_of(found) == pytest.approx(
            abs(found.difference.value) / stats.norm.isf(found.p / 2), rel=1e-6
        )


def test_margins_ranks_and_letters_are_those_of_any_comparison():
    y, models = sampled(scales=(10.0, 10.2, 25.0))
    result = compared(y, models, "rmse", margins={"rmse": 5})
    board = result.leaderboards["rmse"]
    assert [x.rank_interval for x in board.standings] == ["1 to 2", "1 to 2", "3 to 3"]
    assert [x.compact_letter_display for x in board.standings] == ["a", "a", "b"]
    assert sum(x.top_share for x in board.standings) == pytest.approx(1)
    close = next(x for x in board.pairs if {x.first, x.second} == {"a", "b"})
    assert close.margin_verdict == "equivalent"
    assert len(result.list_charts()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, 25])
def test_among_equal_models_any_claim_is_rare(groups):
    """5 % of the replicates, and 4 Monte-Carlo errors; of correlated models, by item or cluster."""
    claims, rounds, units = 0, 600, np.arange(600) % (groups or 600)
    for seed in range(rounds):
        rng = np.random.default_rng([seed, 7])
        y, shared = rng.normal(900, 50, len(units)), rng.normal(0, 7, len(units))
        models = {
            f"m{k}": y + shared + rng.normal(0, 7, len(units)) + rng.normal(0, 3, len(units))[units]
            for k in range(5)
        }
        found = compared(y, models, "mae", groups=units if groups else None, interval=STUDENT)
        claims += any(x.verdict == "better" for x in found.leaderboards["mae"].pairs)
    assert abs(claims / rounds - 0.05) < 4 * math.sqrt(0.05 * 0.95 / rounds)


def test_a_far_away_origin_changes_nothing():
    near, far = (compared(Y + s, {k: p + s for k, p in MODELS.items()}) for s in (0, 1e9))
    for x, other in zip(pairs_of(near), pairs_of(far), strict=True):
        assert other.difference.value == pytest.approx(x.difference.value, rel=1e-5)
        assert other.p == pytest.approx(x.p, rel=1e-4)


@pytest.mark.parametrize("odd", [1e20, -1e40])
def test_one_odd_value_breaks_nothing(odd):
    y, models = sampled(scales=(10.0, 12.0, 10.5))
    y[3] = odd
    found = compared(y, models | {"odd": np.where(np.arange(N) == 3, -odd, Y)}, interval=STUDENT)
    assert all(len(board.pairs) == 6 for board in found.leaderboards.values())


def test_another_unit_scales_the_limits():
    result = compared(Y * 1e-3, {k: p * 1e-3 for k, p in MODELS.items()})
    before = one(compared(Y, MODELS), "rmse")
    assert one(result, "rmse").difference.low == pytest.approx(before.difference.low * 1e-3)
    assert one(result, "rmse").p == pytest.approx(before.p)


# --- groups and weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [8, 60])
def test_groups_are_units_with_students_t(metric, count):
    groups = np.random.default_rng(4).integers(count, size=N)
    found = one(compared(Y, MODELS, groups=groups), metric)
    apart = pulls(metric, Y, MODELS["a"]) - pulls(metric, Y, MODELS["b"])
    sums = np.array([apart[groups == g].sum() for g in np.unique(groups)])
    units = len(sums)
    error = math.sqrt(units / (units - 1) * (sums**2).sum()) / N
    assert error_of(found, stats.t.ppf(0.975, units - 1)) == pytest.approx(error, rel=1e-6)
    ratio = abs(found.difference.value) / error
    assert found.p == pytest.approx(2 * stats.t.sf(ratio, units - 1), rel=1e-4)
    assert found.difference.method == "t"


def test_copies_of_items_in_a_group_add_no_surety():
    groups = np.arange(N)
    twice = {k: np.repeat(p, 2) for k, p in MODELS.items()}
    once = compared(Y, MODELS, groups=groups)
    both = compared(np.repeat(Y, 2), twice, groups=np.repeat(groups, 2))
    for x, other in zip(pairs_of(once), pairs_of(both), strict=True):
        assert other.difference.low == pytest.approx(x.difference.low)
        assert other.p == pytest.approx(x.p)


def test_one_group_compares_nothing():
    result = compared(Y, MODELS, groups=["same"] * N)
    assert {found.difference.note for found in pairs_of(result)} == {"there is one cluster only"}
    assert {found.verdict for found in pairs_of(result)} == {"untested"}


@pytest.mark.parametrize("grouped", [False, True])
def test_whole_weights_are_repeated_rows(grouped):
    rng = np.random.default_rng(5)
    times, groups = rng.integers(0, 4, N), rng.integers(12, size=N)
    rows = np.repeat(np.arange(N), times)
    options = [{"groups": groups}, {"groups": groups[rows]}] if grouped else [{}, {}]
    weighted = compared(Y, MODELS, weights=times, **options[0])
    repeated = compared(Y[rows], {k: p[rows] for k, p in MODELS.items()}, **options[1])
    for x, other in zip(pairs_of(weighted), pairs_of(repeated), strict=True):
        assert x.difference.value == pytest.approx(other.difference.value)
        assert x.difference.low == pytest.approx(other.difference.low)
        assert x.p_adjusted == pytest.approx(other.p_adjusted)
    for name in MODELS:
        for metric in METRICS:
            found, other = value_of(weighted, name, metric), value_of(repeated, name, metric)
            assert (found.low, found.high) == pytest.approx((other.low, other.high))
    assert weighted.weight == len(rows)


@pytest.mark.parametrize("metric", METRICS)
def test_of_real_weights_the_squares_count(metric):
    w = np.random.default_rng(6).exponential(size=N)
    found = one(compared(Y, MODELS, weights=w), metric)
    gap = value(metric, Y, MODELS["a"], w) - value(metric, Y, MODELS["b"], w)
    assert oriented(found) * found.difference.value == pytest.approx(gap)
    apart = pulls(metric, Y, MODELS["a"], w) - pulls(metric, Y, MODELS["b"], w)
    error = math.sqrt((w**2 * apart**2).sum() * N / (N - 1)) / w.sum()
    assert error_of(found) == pytest.approx(error, rel=1e-6)
    scaled = one(compared(Y, MODELS, weights=w * 7.3), metric)
    assert scaled.difference.low == pytest.approx(found.difference.low)


def test_an_item_of_weight_0_does_not_exist():
    w = np.ones(N)
    w[3] = 0
    broken = {k: np.where(np.arange(N) == 3, np.nan, p) for k, p in MODELS.items()}
    there = np.arange(N) != 3
    result = compared(Y, broken, weights=w, groups=[None if k == 3 else k for k in range(N)])
    other = compared(
        Y[there], {k: p[there] for k, p in MODELS.items()}, groups=np.flatnonzero(there)
    )
    assert result.n == N - 1
    for x, same in zip(pairs_of(result), pairs_of(other), strict=True):
        assert x.difference.low == pytest.approx(same.difference.low)


# --- what is said ---------------------------------------------------------------------------------


def test_the_leader_is_told_from_some_with_its_value_and_unit():
    y, models = sampled(scales=(10.0, 10.2, 25.0))
    board = compared(y, models, "rmse", unit="kg/m³").leaderboards["rmse"]
    leader, second = board.standings[0], board.standings[1]
    assert board.conclusion.startswith(f"{leader.system} leads on rmse with ")
    assert " kg/m³ (" in board.conclusion
    assert "It is significantly better than c." in board.conclusion
    assert f"It is not significantly different from {second.system}." in board.conclusion


def test_biases_are_compared_by_their_distances_from_0():
    models = {"a": MODELS["a"] - 5, "b": MODELS["a"] + np.sin(np.arange(N)) + 30}
    found = one(compared(Y, models, "bias", unit="m"), "bias")
    sizes = {name: abs(np.mean(p - Y)) for name, p in models.items()}
    assert (found.first, found.second, found.verdict) == ("a", "b", "better")
    assert found.difference.value == pytest.approx(sizes["a"] - sizes["b"])
    turned = (models["b"] - Y) + (models["a"] - Y)  # one of the two counts below 0
    assert error_of(found) == pytest.approx(np.std(turned, ddof=1) / math.sqrt(N), rel=1e-6)


def test_metrics_without_a_derivative_are_not_tested():
    result = compared(Y, MODELS, "max_error,median_absolute_error,baseline_rmse")
    assert {found.verdict for found in pairs_of(result)} == {"untested"}
    assert one(result, "max_error").difference.note == "no method covers it"
    assert one(result, "baseline_rmse").difference.note == "it is a baseline"
    board = result.leaderboards["max_error"]
    assert "It is not tested against a: no method covers it." in board.conclusion
    assert [(x.rank, x.rank_interval) for x in board.standings] == [(1, None), (2, None)]
    for form in RENDERERS:
        render(result, form)


def test_constant_targets_leave_r2_undefined_with_its_reason():
    result = compared(np.full(N, 5.0), {k: p - Y for k, p in MODELS.items()})
    assert "nothing to compare: all targets are equal" in result.leaderboards["r2"].conclusion
    assert [found.metric for found in pairs_of(result)] == ["rmse", "mae"]
    assert json.dumps(result.to_dict(), allow_nan=False)


def test_so_few_items_are_called_unsure():
    assert "Fewer than 30 items" in str(compared(Y[:5], {k: p[:5] for k, p in MODELS.items()}))
    single = compared(Y[:1], {k: p[:1] for k, p in MODELS.items()}, "rmse")
    assert one(single, "rmse").difference.note == "there is one item only"


def test_json_has_the_form_of_any_comparison_and_the_units():
    result = compared(Y, MODELS, unit="m")
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (plain["schema"], plain["task"], plain["unit"]) == (1, "compare_regression", "m")
    board = plain["metrics"]["rmse"]
    assert (board["unit"], list(board["systems"])) == ("m", ["a", "b"])
    assert board["pairs"][0]["method"] == "delta"
    assert {row["unit"] for row in result.list_tables()["pairs"]} == {"m", None}
    assert set(plain["tails"]) == {"a", "b"}


@pytest.mark.parametrize("form", RENDERERS)
def test_names_and_units_cannot_drive_anything(form):
    nasty = "=1+1\x1b[31m<b>\u202e木&_"
    result = compared(Y, {nasty: MODELS["a"], "b": MODELS["b"]}, unit="kg/m³ \x1b[0m")
    text = render(result, form)
    if form not in {"csv", "json"}:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "kg/m³" in text
    assert (form != "html") or "<b>" not in text
    assert (form != "csv") or f",{nasty}," in text  # as in the data


@pytest.mark.parametrize("interval", [0.9, ConfidenceIntervals(0.9, "t"), ConfidenceIntervals()])
def test_intervals_of_each_model_are_those_of_its_evaluation(interval):
    found = compared(Y, MODELS, "rmse", interval=interval)
    for name, predicted in MODELS.items():
        alone = evaluate_regression(Y, predicted, "rmse", interval=interval).metrics["rmse"]
        assert value_of(found, name, "rmse") == alone


@pytest.mark.parametrize(
    ("targets", "models", "options", "error", "message"),
    [
        ([1.0, 2.0], {"a": [1, 2], "b": [1, math.nan]}, {}, BadValues, "'b'.* row 2 is nan"),
        ([1.0, math.nan], {"a": [1, 2], "b": [1, 2]}, {}, BadValues, "target of row 2 is nan"),
        ([1.0, 2.0], {"a": [1, 2], "b": ["x", "y"]}, {}, BadValues, "'b' must be numbers"),
        ([1.0, 2.0], {"a": [1, 2], "b": [1]}, {}, UnequalLengths, "predictions of 'b'"),
        ([1.0, 2.0], {"a": [1, 2]}, {}, BadOption, "2 to 500 systems, not 1"),
        ([1.0, 2.0], [[1, 2], [1, 2]], {}, BadOption, "systems by name"),
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
        compared(targets, models, **options)


# --- what a target has, and what only levels have -------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "1..6"}, "scale=… has no meaning"),
        ({"pairs": [("a", "b")]}, "pairs=… has no meaning"),
        ({"average_over": ["x"] * N}, "average_over=… has no meaning"),
        ({"edges": [600.0]}, "edges=… has no meaning"),
        ({"tidy_labels": True}, "tidy_labels=… has no meaning"),
        ({"missing": "worst"}, "no worst prediction"),
        ({"interval": None}, "at a confidence level"),
        ({"margins": {"ccc": 1}}, "ccc, which is not compared"),
        ({"against": "c"}, "no system 'c'"),
    ],
)
def test_what_a_target_cannot_have_is_refused(options, message):
    with pytest.raises(BadOption, match=message):
        compared(Y, MODELS, **options)
    with pytest.raises(BadOption, match="unit=… has no meaning"):
        compare(["a", "b"], {"x": ["a", "b"], "y": ["b", "a"]}, "a,b", unit="kg")


def test_items_that_lack_a_value_are_refused_or_dropped():
    models = {name: p.astype(object) for name, p in MODELS.items()}
    models["b"][[3, 4]] = None
    with pytest.raises(MissingLabels, match="row 4, row 5"):
        compared(Y, models)
    kept = np.delete(np.arange(N), [3, 4])
    found = compared(Y, models, missing="drop")
    other = compared(Y[kept], {name: p[kept] for name, p in MODELS.items()})
    assert found.to_dict() == other.to_dict() | {"dropped": 2}
    models["a"][9] = math.inf
    with pytest.raises(BadValues, match="'a': The prediction of row 10 is inf"):
        compared(Y, models, missing="drop")


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_columns_of_a_table_are_compared_by_their_names(make):
    rng = np.random.default_rng(8)
    rows = {name: rng.normal(size=30) for name in ("y", "near", "far")}
    rows |= {"weight": rng.integers(1, 4, 30) / 2, "family": np.arange(30) % 6}
    columns = {"weights": rows["weight"], "groups": rows["family"]}
    models = {name: rows[name] for name in ("near", "far")}
    usual = compared(rows["y"], models, "mae", **columns).to_dict()
    usual["source"]["gold"] = "y"
    named = {"target": "y", "weights": "weight", "groups": "family"}
    for given in (["near", "far"], {"near": "near", "far": "far"}):
        assert compare(make(rows), given, metrics="mae", **named).to_dict() == usual


def test_tables_that_say_too_little_are_refused():
    rows = {name: [1.0, 2.0, 4.0] for name in ("y", "a", "b")}
    with pytest.raises(BadInput, match="has no column 'c'"):
        compare(rows, ["a", "c"], target="y")
    with pytest.raises(BadOption, match="the polars frame is not in memory: collect its rows"):
        compare(pl.LazyFrame(rows), ["a", "b"], target="y")
