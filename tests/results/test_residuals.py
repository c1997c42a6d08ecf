"""Residuals: what is said about errors is what loops over the items find."""

import json
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from scipy import stats

from ordinate.errors import BadInput, BadOption, BadValues, NoItems, UnequalLengths
from ordinate.render import RENDERERS, render
from ordinate.results.residuals import MISSING, MOST_LEVELS, OTHERS, analyse_residuals

Z = stats.norm.ppf(0.975)
N = 600


def sampled(n=N, seed=0, slope=0.0):
    """Targets and predictions, the errors of which are heavy-tailed and may spread more above."""
    rng = np.random.default_rng(seed)
    p = rng.normal(500, 40, n)
    spread = 5 + slope * (p - p.min())
    return p - rng.standard_t(5, n) * spread, p


Y, P = sampled()


# --- bins by prediction -----------------------------------------------------------------------


def test_bins_are_what_a_loop_over_sorted_items_finds():
    result = analyse_residuals(Y, P, bins=7)
    order = sorted(range(N), key=lambda k: P[k])
    start = 0
    for bin_ in result.bins:
        rows = order[start : start + bin_.n]
        start += bin_.n
        e = [P[k] - Y[k] for k in rows]
        mean = sum(e) / len(e)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in e) / len(e))
        assert (bin_.low, bin_.high) == (P[rows].min(), P[rows].max())
        assert bin_.target == pytest.approx(Y[rows].mean())
        assert bin_.prediction == pytest.approx(P[rows].mean())
        assert bin_.bias.value == pytest.approx(mean)
        assert bin_.spread == pytest.approx(deviation)
        assert bin_.rmse == pytest.approx(math.sqrt(sum(x * x for x in e) / len(e)))
        assert bin_.share == pytest.approx(sum(x * x for x in e) / ((P - Y) ** 2).sum())
        half = stats.t.ppf(0.975, len(e) - 1) * deviation / math.sqrt(len(e) - 1)
        assert bin_.bias.low == pytest.approx(mean - half)
        assert bin_.bias.high == pytest.approx(mean + half)
    assert start == N


def test_bins_of_integers_are_named_by_integers():
    items = np.arange(40.0)
    found = analyse_residuals(items, items, {"age": np.arange(40) % 20}, bins=4)
    names = [bin_.name for bin_ in found.features[0].bins]
    assert names == ["0 to 4", "5 to 9", "10 to 14", "15 to 19"]


def test_bins_have_equal_counts_where_nothing_ties():
    assert {bin_.n for bin_ in analyse_residuals(Y, P, bins=7).bins} <= {85, 86}
    assert [bin_.n for bin_ in analyse_residuals(Y, P).bins] == [60] * 10


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.integers(1, 12),
)
@examples(60)
def test_equal_predictions_are_in_one_bin(predictions, bins):
    result = analyse_residuals(np.zeros(len(predictions)), predictions, bins=bins)
    ends = [(bin_.low, bin_.high) for bin_ in result.bins]
    assert len(ends) <= bins
    assert all(high < low for (_, high), (low, _) in pairwise(ends))
    counts = [sum(low <= p <= high for p in predictions) for low, high in ends]
    assert counts == [bin_.n for bin_ in result.bins]
    assert sum(counts) == len(predictions)


def test_a_value_that_most_items_share_leaves_the_others_their_bins():
    p = np.r_[np.full(80, 5.0), np.arange(20) / 10]
    result = analyse_residuals(np.zeros(100), p, bins=10)
    assert [bin_.n for bin_ in result.bins] == [10, 10, 80]


def test_few_distinct_predictions_have_a_bin_each():
    p = np.array([1.0] * 50 + [2.0] * 3 + [3.0] * 2)
    assert [bin_.n for bin_ in analyse_residuals(p * 0, p).bins] == [50, 3, 2]


def test_fewer_items_than_bins_are_alone_and_have_no_limits():
    result = analyse_residuals([1.0, 2.0, 3.0], [1.5, 2.0, 2.0], bins=10)
    assert [bin_.n for bin_ in result.bins] == [1, 2]
    assert result.bins[0].bias.note == "there is one item only"
    assert "fewer than 30 items" in render(result)


def test_mean_square_is_bias_and_spread():
    for bin_ in analyse_residuals(Y, P).bins:
        assert bin_.rmse**2 == pytest.approx(bin_.bias.value**2 + bin_.spread**2)
    assert sum(bin_.share for bin_ in analyse_residuals(Y, P).bins) == pytest.approx(1.0)


def test_the_report_counts_clear_biases_beside_chance():
    assert (
        "of 10 bins the confidence interval of the bias excludes 0; chance alone would do "
        "that in about" in (" ".join(render(analyse_residuals(Y + 40, P)).split()))
    )
    assert "In 10 of 10 bins" in " ".join(render(analyse_residuals(Y + 40, P)).split())


# --- spread against prediction -------------------------------------------------------------------


def naive_trend(y, p, bins):
    """The rank correlation of SciPy, with errors about the mean of their bin_."""
    e, result = p - y, analyse_residuals(y, p, bins=bins)
    away = np.zeros(len(e))
    for bin_ in result.bins:
        inside = (p >= bin_.low) & (p <= bin_.high)
        away[inside] = np.abs(e[inside] - e[inside].mean())
    return stats.spearmanr(p, away).statistic


def test_the_trend_is_the_rank_correlation_of_distance_and_prediction():
    y, p = sampled(300, 3, 0.05)
    p = np.round(p)  # with ties
    assert analyse_residuals(y, p).trend.value == pytest.approx(naive_trend(y, p, 10))


@pytest.mark.parametrize(("sign", "verb"), [(1, "grows"), (-1, "falls")])
def test_the_report_says_whether_the_spread_grows_or_falls(sign, verb):
    y, p = sampled(seed=1, slope=0.2)
    text = " ".join(render(analyse_residuals(sign * y, sign * p)).split())
    assert f"The spread {verb} with the prediction: rank correlation" in text


def test_a_bias_that_grows_is_no_spread_that_grows():
    y, p = sampled(2000, 4)
    result = analyse_residuals(y - (p - p.min()) * 2, p, bins=20)
    assert result.bins[-1].bias.value > result.bins[0].bias.value + 100
    assert abs(result.trend.value) < 0.1


@pytest.mark.slow
def test_a_trend_is_rarely_claimed_where_there_is_none():
    """At most 5 % and 4 Monte-Carlo errors of 200 replicates."""
    rng = np.random.default_rng(8)
    claims = 0
    for _ in range(200):
        p = rng.normal(size=80)
        trend = analyse_residuals(p - rng.standard_t(4, 80), p, bins=5).trend
        claims += not trend.low <= 0 <= trend.high
    assert claims / 200 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200)


def test_limits_of_a_trend_are_those_of_bonett_and_wright():
    found = analyse_residuals(*sampled(200, 2, 0.1)).trend
    half = Z * math.sqrt((1 + found.value**2 / 2) / 197)
    limits = np.tanh(np.arctanh(found.value) + np.array([-half, half]))
    assert [found.low, found.high] == pytest.approx(limits.tolist())


def test_a_trend_needs_predictions_that_vary():
    result = analyse_residuals(Y, np.full(N, 500.0))
    assert math.isnan(result.trend.value)
    assert "is undefined: the predictions or the errors do not vary" in " ".join(
        str(result).split()
    )


# --- features ------------------------------------------------------------------------------------


def shuffled(share_of, e, rng, times=2000):
    return np.array([share_of(rng.permutation(e)) for _ in range(times)])


def test_a_feature_explains_the_squares_of_the_biases_of_its_bins():
    x = np.random.default_rng(5).normal(size=N)
    y = Y - 6 * (x > 1)
    found = analyse_residuals(y, P, {"x": x}).features[0]
    e = P - y
    total = 0.0
    for bin_ in found.bins:
        inside = (x >= bin_.low) & (x <= bin_.high)
        assert bin_.bias.value == pytest.approx(e[inside].mean())
        total += inside.sum() * e[inside].mean() ** 2
    assert found.explained == pytest.approx(total / (e**2).sum())
    assert found.beyond_chance


def test_chance_is_what_shuffled_errors_explain():
    """The mean within 4 Monte-Carlo errors, and the limit exceeded in about 5 %."""
    rng = np.random.default_rng(6)
    codes = rng.permutation(np.arange(N) % 7)
    y = Y - 3  # with a bias of all items, which no feature explains
    found = analyse_residuals(y, P, {"x": codes.astype(str)}).features[0]
    e, counts = P - y, np.bincount(codes)

    def share(errors):
        return (counts * (np.bincount(codes, errors) / counts) ** 2).sum() / (e @ e)

    drawn = shuffled(share, e, rng)
    assert found.by_chance == pytest.approx(drawn.mean(), abs=4 * drawn.std() / math.sqrt(2000))
    assert (drawn > found.limit).mean() == pytest.approx(
        0.05, abs=4 * math.sqrt(0.05 * 0.95 / 2000)
    )


@pytest.mark.slow
def test_of_many_features_without_meaning_none_is_named():
    """In 95 % of 80 replicates or more, less 4 Monte-Carlo errors."""
    rng = np.random.default_rng(7)
    named = 0
    for seed in range(80):
        y, p = sampled(150, seed)
        noise = {str(k): rng.normal(size=150) for k in range(3)}
        named += any(x.beyond_chance for x in analyse_residuals(y, p, noise, bins=5).features)
    assert named / 80 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 80)


def test_more_features_take_more_to_stand_out():
    rng = np.random.default_rng(10)
    x = {str(k): rng.normal(size=N) for k in range(4)}
    alone = analyse_residuals(Y, P, {"0": x["0"]}).features[0]
    (among,) = [feature for feature in analyse_residuals(Y, P, x).features if feature.name == "0"]
    assert among.limit > alone.limit
    assert among.by_chance == alone.by_chance
    e = P - Y
    expected = (N * e.mean() ** 2 + N / (N - 1) * e.var() * stats.chi2.ppf(1 - 0.05 / 4, 9)) / (
        e @ e
    )
    assert among.limit == pytest.approx(expected, rel=0.01)


def test_features_are_in_the_order_of_what_they_explain():
    rng = np.random.default_rng(9)
    strong, weak = rng.normal(size=N), rng.choice(["a", "b"], N)
    y = Y - 10 * strong - 2 * (weak == "a")
    result = analyse_residuals(y, P, {"noise": rng.normal(size=N), "weak": weak, "strong": strong})
    assert result.features[0].name == "strong"
    assert [f.explained for f in result.features] == sorted(
        (f.explained for f in result.features), reverse=True
    )
    assert "The bias depends most on strong" in str(result)
    assert "No feature explains more" in " ".join(
        str(analyse_residuals(Y, P, {"x": strong})).split()
    )


def test_levels_are_bins():
    wood = np.array(["oak", "elm", "oak", "pine", "oak"])
    found = analyse_residuals(np.zeros(5), np.arange(5.0), {"wood": wood}).features[0]
    assert {bin_.name: bin_.bias.value for bin_ in found.bins} == {
        "oak": 2.0,
        "elm": 1.0,
        "pine": 3.0,
    }
    assert found.bins[0].name == "oak"  # the most frequent


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True, True],
        pd.Series([1, 0, 1, 1]).astype("category"),
        pl.Series(["1", "0", "1", "1"]),
        pd.Series(["1", "0", "1", "1"]),
        np.array(["1", "0", "1", "1"], object),
    ],
)
def test_booleans_categories_and_texts_are_levels(column):
    found = analyse_residuals(np.zeros(4), np.arange(4.0), {"x": column}).features[0]
    assert [bin_.n for bin_ in found.bins] == [3, 1]
    assert found.bins[0].low is None


def test_levels_that_have_an_order_keep_it():
    size = pd.Categorical(["big", "small", "big"], ["small", "big"], ordered=True)
    found = analyse_residuals(np.zeros(3), np.arange(3.0), {"size": pd.Series(size)}).features[0]
    assert [bin_.name for bin_ in found.bins] == ["small", "big"]


def test_rare_levels_of_a_column_with_very_many_are_taken_together():
    many = [f"id{k}" for k in range(N - 40)] + ["often"] * 40
    found = analyse_residuals(Y, P, {"id": many}).features[0]
    assert len(found.bins) == MOST_LEVELS
    assert found.bins[-1].name == OTHERS
    assert sum(bin_.n for bin_ in found.bins) == N


@pytest.mark.parametrize(
    "column",
    [
        [1.0, math.nan, 2.0, math.nan],
        pd.array([1, None, 2, None], "Int64"),
        pl.Series([1, None, 2, None]),
        [1, None, 2, None],
        ["1", None, "2", None],
        np.ma.array([1, 5, 2, 5], mask=[0, 1, 0, 1]),
    ],
)
def test_missing_values_of_a_feature_are_a_bin(column):
    found = analyse_residuals(np.zeros(4), np.arange(4.0), {"x": column}).features[0]
    (missing,) = [bin_ for bin_ in found.bins if bin_.name == MISSING]
    assert (missing.n, missing.bias.value) == (2, 2.0)


def test_a_frame_is_a_mapping_of_features():
    frame = pd.DataFrame({"x": P, "wood": ["oak", "elm"] * (N // 2)})
    assert {feature.name for feature in analyse_residuals(Y, P, frame).features} == {"x", "wood"}


# --- the largest errors --------------------------------------------------------------------------


def test_the_largest_errors_are_those_of_a_loop():
    result = analyse_residuals(Y, P, largest=5, names=[f"item {k}" for k in range(N)])
    squares = (P - Y) ** 2
    rows = sorted(range(N), key=lambda k: -squares[k])[:5]
    together = 0.0
    for miss, row in zip(result.largest, rows, strict=True):
        together += squares[row] / squares.sum()
        assert (miss.row, miss.name) == (row + 1, f"item {row}")
        assert (miss.target, miss.prediction, miss.error) == (Y[row], P[row], P[row] - Y[row])
        assert miss.share == pytest.approx(squares[row] / squares.sum())
        assert miss.cumulative == pytest.approx(together)


def test_the_report_says_what_the_largest_errors_make():
    e = np.array([10.0] + [1.0] * 2999)
    text = str(analyse_residuals(np.zeros(3000), e, largest=10))
    assert f"The 10 largest of 3,000 errors make {100 * 109 / 3099:.2f} % of the squared" in text
    assert "The largest of 3,000 errors makes" in str(
        analyse_residuals(np.zeros(3000), e, largest=1)
    )
    assert "errors make" not in str(analyse_residuals(np.zeros(3000), e, largest=0))


def test_equal_errors_come_in_the_order_of_rows():
    assert [m.row for m in analyse_residuals([0, 0, 0], [-1, 2, 1]).largest] == [2, 1, 3]


# --- edges ---------------------------------------------------------------------------------------


def test_perfect_predictions_have_nothing_to_show():
    result = analyse_residuals(Y, Y, {"x": P})
    assert "There are no errors" in str(result)
    assert not result.features[0].beyond_chance
    assert result.to_dict()["features"][0]["explained"] is None


def test_constant_targets_are_no_trouble():
    assert analyse_residuals(np.full(N, 3.0), P).bins[0].n == 60


def test_one_item_is_enough():
    result = analyse_residuals([1.0], [2.0], {"x": [5.0]})
    assert result.largest[0].share == 1.0
    assert "Residuals of 1 item" in str(result)


@pytest.mark.parametrize("interval", [None, 0.9])
def test_intervals_are_as_asked(interval):
    result = analyse_residuals(Y, P, {"x": P}, interval=interval)
    assert ("90 % CI" in str(result)) == (interval is not None)
    assert math.isnan(result.bins[0].bias.low) == (interval is None)
    assert math.isnan(result.trend.low) == (interval is None)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1.0, math.nan], [1.0, 2.0]), {}, BadValues, "target of row 2 is nan"),
        (([1.0, 2.0], [1.0, math.nan]), {}, BadValues, "prediction of row 2 is nan"),
        (([1.0, 2.0], [math.inf, 2.0]), {}, BadValues, "prediction of row 1 is inf"),
        (([1.0], [1.0, 2.0]), {}, UnequalLengths, "1 targets and 2 predictions"),
        (([], []), {}, NoItems, "no items"),
        (([1.0], [2.0], {"x": [1, 2]}), {}, UnequalLengths, "2 values of the feature 'x'"),
        (([1.0], [2.0], {"x": [[1, 2]]}), {}, BadInput, "one column"),
        (([1.0], [2.0], [1.0]), {}, BadOption, "features by name"),
        (([1.0], [2.0]), {"names": []}, UnequalLengths, "0 names"),
        (([1.0], [2.0]), {"bins": 0}, BadOption, "bins must be an integer of at least 1"),
        (([1.0], [2.0]), {"largest": 1.5}, BadOption, "largest must be an integer"),
        (([1.0], [2.0]), {"interval": 2}, BadOption, "level of an interval"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, options, error, message):
    with pytest.raises(error, match=message):
        analyse_residuals(*arguments, **options)


@pytest.mark.parametrize("form", RENDERERS)
def test_names_and_units_cannot_drive_anything(form):
    nasty = "=1+1\x1b[31m<b>\u202e木&_"
    wood = [nasty, "oak"] * (N // 2)
    y = Y - 30 * (np.arange(N) % 2)
    result = analyse_residuals(y, P, {nasty: wood}, unit="kg/m³ \x1b[0m", names=[nasty] * N)
    text = render(result, form)
    if form not in {"csv", "json"}:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "kg/m³" in text
    assert (form != "html") or "<b>" not in text
    if form == "csv":  # which is data, and keeps every text
        assert nasty in result.to_csv("feature")


def test_json_has_no_nan_and_rows_have_the_same_columns():
    result = analyse_residuals(Y[:5], P[:5], {"x": P[:5]}, names="abcde")
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["task"] == "residuals"
    assert len(plain["by_prediction"]) == 5
    assert len(result.list_tables()["largest"]) == 5


def test_shifting_everything_changes_nothing_but_the_ranges():
    near, far = analyse_residuals(Y, P), analyse_residuals(Y + 1e9, P + 1e9)
    for one, other in zip(near.bins, far.bins, strict=True):
        assert other.bias.value == pytest.approx(one.bias.value, abs=1e-5)
        assert other.spread == pytest.approx(one.spread, rel=1e-6)
    assert far.trend.value == pytest.approx(near.trend.value, abs=1e-3)
