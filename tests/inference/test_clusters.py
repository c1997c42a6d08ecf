"""Groups: items of one writer are not independent, and few writers are few."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from oracles import (
    TEN,
    confusion,
    corrected_limits,
    group_bootstrap,
    labels,
    naive_value,
    sample,
    skewness,
    spelled,
    without_each,
)
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from strategies import scale_of

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.clusters import (
    compute_design_effect,
    compute_level_bounds,
    delete_each_cluster,
    list_level_trials,
)
from ordinate.inference.delta_method import compute_bounded_interval, linearised_standard_error
from ordinate.inference.distributions import student_quantile
from ordinate.inference.resampling import (
    Resampling,
    make_resampler,
    resample_clusters,
    resample_metrics,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import ConfusionMatrix

SIZE = 4


def grouped(count, per_group=8, seed=0, shared=0.0):
    """Items in groups of unequal size; `shared` is how strongly a group's items err alike."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 2 * per_group, count)
    groups = np.repeat(np.arange(count), sizes)
    gold = rng.choice(SIZE, len(groups), p=[0.15, 0.25, 0.3, 0.3])
    noise = rng.normal(0, 1, len(groups)) + shared * rng.normal(0, 1, count)[groups]
    predicted = np.clip(np.rint(gold + noise), 0, SIZE - 1).astype(int)
    batch = ConfusionMatrix.count_by_group(
        labels(gold), labels(predicted), scale_of(SIZE), factorize_column([f"g{k}" for k in groups])
    )
    return gold, predicted, groups, batch


def test_a_batch_by_group_holds_the_tables_of_the_groups():
    gold, predicted, groups, batch = grouped(12)
    for group in range(12):
        cells = np.zeros((SIZE, SIZE))
        np.add.at(cells, (gold[groups == group], predicted[groups == group]), 1)
        assert np.array_equal(batch.counts[group], cells)


# --- many groups: whole groups are drawn ---------------------------------------------------------


@pytest.mark.parametrize("name", ["accuracy", "mae", "quadratic_kappa", "f1_macro", "purity"])
def test_limits_of_many_groups_are_those_of_drawing_groups_of_items(name):
    """Each limit within 4.5 Monte-Carlo errors of a naive bootstrap, as shares of its values."""
    gold, predicted, groups, batch = grouped(60, seed=1, shared=0.7)
    count = 5000
    cells = group_bootstrap(SIZE, gold, predicted, groups, count=count, seed=3)
    values = np.asarray(find_metric(name)(batch.pooled.with_cells(cells)))
    how = ConfidenceIntervals(method="percentile", resamples=count)
    found = estimate_metrics([find_metric(name)], batch, how)[name]
    assert found.method == "percentile"
    assert found.note is None
    allowed = 4.5 * math.sqrt(2 * 0.025 * 0.975 / count)
    for end, tail in ((found.low, 0.025), (found.high, 0.975)):
        below, upto = (values < end - 1e-9).mean(), (values <= end + 1e-9).mean()
        assert below - allowed <= tail <= upto + allowed


@given(count=st.integers(1, 40), seed=st.integers(0, 99))
@examples(30)
def test_as_many_groups_are_drawn_as_there_are(count, seed):
    drawn = resample_clusters(np.random.default_rng(seed), count, 20)
    assert drawn.shape == (20, count)
    assert (drawn.sum(axis=1) == count).all()
    assert (drawn == np.floor(drawn)).all()


def test_drawn_tables_are_sums_of_group_tables():
    batch = grouped(9, seed=2)[3]
    drawn = make_resampler(batch)(np.random.default_rng(4), 30)
    times = resample_clusters(np.random.default_rng(4), 9, 30)
    for table, often in zip(drawn, times, strict=True):
        expected = sum(n * cells for n, cells in zip(often, batch.weights, strict=True))
        assert np.array_equal(table, expected)


@pytest.mark.parametrize("count", [40, 12])
@pytest.mark.parametrize("name", ["accuracy", "mae", "quadratic_kappa", "cem_ord"])
def test_correlated_groups_have_wider_intervals_than_their_items(count, name):
    gold, predicted, _, batch = grouped(count, per_group=20, seed=3, shared=2.0)
    alone = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(SIZE))
    how = ConfidenceIntervals(method="percentile" if count >= 30 else None)
    together = estimate_metrics([find_metric(name)], batch, how)[name]
    single = estimate_metrics([find_metric(name)], alone, how)[name]
    assert together.value == pytest.approx(single.value)
    assert together.width > 1.2 * single.width


def test_groups_of_one_item_have_the_interval_of_items():
    table = confusion(sample(SIZE, 120, seed=5))
    gold, predicted = spelled(table)
    cells = np.zeros((120, SIZE, SIZE))
    cells[np.arange(120), gold, predicted] = 1
    how = ConfidenceIntervals(method="percentile", resamples=6000)
    for name in ("mae", "quadratic_kappa", "cem_ord"):
        single = estimate_metrics([find_metric(name)], table, how)[name]
        alone = estimate_metrics([find_metric(name)], confusion(cells), how)[name]
        assert alone.width == pytest.approx(single.width, rel=0.08), name  # 4 errors of 2 %


def test_copies_of_groups_narrow_nothing_that_copies_of_items_would():
    """Every group's items four times over: the groups are as many, and the interval is the same.

    Items of a group err alike here, so that no variance is that of independent items.
    """
    batch = grouped(35, seed=6, shared=1.5)[3]
    four = confusion(batch.counts * 4)
    for name in TEN:
        first, second = (
            estimate_metrics([find_metric(name)], b, ConfidenceIntervals(resamples=300))[name]
            for b in (batch, four)
        )
        assert (second.low, second.high) == pytest.approx((first.low, first.high), rel=1e-9)


@pytest.mark.parametrize("name", ["accuracy", "mae", "f1_macro"])
def test_bca_of_groups_is_efrons_with_groups_left_out(name):
    gold, predicted, groups, batch = grouped(15, per_group=5, seed=7, shared=0.5)
    values = resample_metrics(
        [find_metric(name)], batch.pooled, make_resampler(batch), Resampling(2000, 0)
    )[name]
    skew = skewness(without_each(name, gold, predicted, groups, SIZE))
    value = naive_value(name, gold, predicted, SIZE)
    found = estimate_metrics([find_metric(name)], batch, ConfidenceIntervals(method="bca"))[name]
    assert found.method == "bca"
    expected = corrected_limits(values, value, skew, 0.95)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-6)


# --- the jackknife -------------------------------------------------------------------------------

DEFAULTS = (*TEN, "linear_kappa", "kendall_tau_b", "min_sensitivity", "bias", "purity")


@pytest.mark.parametrize("name", ["mae", "bias", "quadratic_kappa", "cem_ord", "purity", "uoc"])
@pytest.mark.parametrize(("count", "level"), [(2, 0.8), (9, 0.95), (40, 0.9)])
def test_the_jackknife_leaves_out_one_group_after_the_other(name, count, level):
    gold, predicted, groups, batch = grouped(count, per_group=3, seed=20, shared=0.7)
    value = naive_value(name, gold, predicted, SIZE)
    apart = [v - value for v in without_each(name, gold, predicted, groups, SIZE)]
    error = math.sqrt((count - 1) / count * sum(x * x for x in apart))
    how = ConfidenceIntervals(level=level, method="jackknife")
    found = estimate_metrics([find_metric(name)], batch, how)[name]
    low, high = find_metric(name).bounds
    reach = stats.t.ppf((1 + level) / 2, count - 1)
    expected = compute_bounded_interval(value, error, (low, high), reach)
    assert found.method == "jackknife"
    assert (found.low, found.high) == pytest.approx(np.clip(expected, *ATTAINABLE[name]), rel=1e-7)


ATTAINABLE = {
    **dict.fromkeys(("cem_ord", "purity", "uoc"), (0, 1)),
    "quadratic_kappa": (-1, 1),
    "mae": (0, SIZE - 1),
    "bias": (1 - SIZE, SIZE - 1),
}


def test_information_is_taken_around_the_jackknifes_value_without_bias():
    name, (gold, predicted, groups, batch) = "mutual_information", grouped(9, per_group=3, seed=20)
    value = naive_value(name, gold, predicted, SIZE)
    without = without_each(name, gold, predicted, groups, SIZE)
    error = math.sqrt(8 / 9 * sum((v - value) ** 2 for v in without))
    centre = 9 * value - 8 * sum(without) / 9
    low, high = compute_bounded_interval(centre, error, (0, math.inf), stats.t.ppf(0.975, 8))
    found = estimate_metrics([find_metric(name)], batch)[name]
    assert found.method == "jackknife"
    assert 0 < centre < value
    assert (found.low, found.high) == pytest.approx((low, max(high, value)))


@pytest.mark.parametrize("name", ["mae", "bias", "accuracy", "cem_ord"])
def test_groups_of_one_item_have_the_jackknife_of_items_up_to_the_small_sample(name):
    """Student's t for the normal, and N - 1 for N: both are 1 in the limit. Means of items."""
    table = confusion(sample(SIZE, 400, seed=5))
    gold, predicted = spelled(table)
    cells = np.zeros((400, SIZE, SIZE))
    cells[np.arange(400), gold, predicted] = 1
    single = estimate_metrics([find_metric(name)], table, ConfidenceIntervals(method="delta"))[name]
    how = ConfidenceIntervals(method="jackknife")
    alone = estimate_metrics([find_metric(name)], confusion(cells), how)[name]
    assert alone.width == pytest.approx(single.width, rel=0.01)
    assert alone.width > single.width


@pytest.mark.parametrize("method", [None, "jackknife"])
def test_a_value_that_hangs_on_one_group_has_no_interval(method):
    """The other deletions change it little, and say nothing of the one that would."""
    cells = [[[5, 1], [0, 0]]] * 19 + [[[3, 0], [1, 4]]]
    how = ConfidenceIntervals(method=method)
    found = estimate_metrics([find_metric("kendall_tau_b")], confusion(cells), how)["kendall_tau_b"]
    assert found.value == pytest.approx(kendall([[98, 19], [1, 4]]))
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.method, found.undefined_share) == (None, 0.0)
    assert found.note == "it is undefined without one of the 20 clusters"


def kendall(cells):
    """Tau b of a table of two levels: phi."""
    (a, b), (c, d) = cells
    return (a * d - b * c) / math.sqrt((a + b) * (c + d) * (a + c) * (b + d))


def test_no_interval_where_a_value_needs_single_groups():
    cells = [[[5, 1], [0, 0]], [[0, 0], [1, 4]]]
    how = ConfidenceIntervals(method="jackknife")
    found = estimate_metrics([find_metric("kendall_tau_b")], confusion(cells), how)["kendall_tau_b"]
    assert found.method is None
    assert found.note == "it is undefined without one of the 2 clusters (any of 2)"


@pytest.mark.parametrize("name", DEFAULTS)
def test_samples_side_by_side_have_the_deletions_of_each(name):
    batches = [grouped(9, seed=seed, shared=0.5)[3] for seed in range(3)]
    together = confusion(np.stack([batch.counts for batch in batches]))
    found = delete_each_cluster(find_metric(name), together)
    for row, batch in zip(found, batches, strict=True):
        assert row == pytest.approx(delete_each_cluster(find_metric(name), batch), nan_ok=True)


# --- shares and levels at deflated sizes ---------------------------------------------------------


def naive_levels(name, gold, predicted, groups):
    """For each level, its items: the costs, and who they belong to; and how a mean counts."""
    if name in {"accuracy", "accuracy_within"}:
        reach = 0 if name == "accuracy" else 1
        return [((abs(gold - predicted) <= reach).astype(float), groups, 1.0)], float
    trials = []
    for level in range(SIZE):
        of_gold, of_predicted = gold == level, predicted == level
        among = {"f1_macro": of_gold | of_predicted, "precision_macro": of_predicted}
        items = among.get(name, of_gold)
        costs = (of_gold & of_predicted).astype(float)
        most = 1.0
        if name in {"macro_mae", "max_mae"}:
            costs, most = abs(gold - predicted).astype(float), float(max(level, SIZE - 1 - level))
        trials.append((costs[items], groups[items], most))
    return trials, (lambda j: 2 * j / (1 + j)) if name == "f1_macro" else float


def naive_bounds(name, gold, predicted, groups, level):
    """MOVER, or the worst of simultaneous bounds, with D written out."""
    trials, convert = naive_levels(name, gold, predicted, groups)
    everyone = np.unique(groups)
    count = len(everyone)
    moves, alone, binomial = dict.fromkeys(everyone, 0.0), 0.0, 0.0
    for costs, who, most in trials:
        mean = sum(costs) / len(costs)
        for group in everyone:
            rest = costs[who != group]
            moves[group] += mean - sum(rest) / len(rest) if len(rest) else 0.0
        alone += sum((costs - mean) ** 2) / len(costs) ** 2
        binomial += most**2 * (mean / most) * (1 - mean / most) / len(costs)
    clustered = (count - 1) / count * sum(move**2 for move in moves.values())
    effect = max(alone, clustered) / binomial
    worst = name in {"min_sensitivity", "max_mae"}
    tail = (1 + (level ** (1 / len(trials)) if worst else level)) / 2
    t = stats.t.ppf(tail, count - 1)
    found = []
    for costs, _, most in trials:
        n, p = len(costs) / effect, sum(costs) / len(costs) / most
        middle, half = n * p + t * t / 2, t * math.sqrt(n * p * (1 - p) + t * t / 4)
        ends = (p, (middle - half) / (n + t * t), (middle + half) / (n + t * t))
        found.append([convert(most * end) for end in ends])
    if worst:
        pick = min if name == "min_sensitivity" else max
        return pick(low for _, low, _ in found), pick(high for _, _, high in found)
    mean = sum(value for value, _, _ in found) / len(found)
    below = math.sqrt(sum((value - low) ** 2 for value, low, _ in found)) / len(found)
    above = math.sqrt(sum((high - value) ** 2 for value, _, high in found)) / len(found)
    return max(0.0, mean - below), mean + above


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("accuracy", "wilson"),
        ("accuracy_within", "wilson"),
        ("macro_accuracy", "mover"),
        ("macro_mae", "mover"),
        ("f1_macro", "mover"),
        ("precision_macro", "mover"),
        ("min_sensitivity", "simultaneous"),
        ("max_mae", "simultaneous"),
    ],
)
@pytest.mark.parametrize(("count", "shared", "level"), [(8, 0.0, 0.95), (25, 1.5, 0.8)])
def test_levels_of_groups_have_wilsons_bounds_at_deflated_sizes(name, method, count, shared, level):
    gold, predicted, groups, batch = grouped(count, seed=21, shared=shared)
    for asked in (None, method):
        how = ConfidenceIntervals(level=level, method=asked)
        found = estimate_metrics([find_metric(name)], batch, how)[name]
        assert found.method == method
        expected = naive_bounds(name, gold, predicted, groups, level)
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_the_value_of_levels_is_that_of_the_metric():
    """What the bounds are around: levels that are never predicted, or never gold, included."""
    cells = grouped(9, seed=22)[3].counts.copy()
    cells[:, 2, :] = 0
    cells[:, :, 0] = 0
    batch = confusion(cells)
    for name in ("accuracy", "macro_accuracy", "macro_mae", "f1_macro", "precision_macro"):
        trials = list_level_trials(find_metric(name), batch)
        value, low, high = compute_level_bounds(trials, 2.0)
        mean = np.nansum(value) / trials.levels
        assert mean == pytest.approx(float(find_metric(name)(batch.pooled))), name
        known = ~np.isnan(value)
        assert (low[known] <= value[known] + 1e-12).all()
        assert (high[known] >= value[known] - 1e-12).all()


@pytest.mark.parametrize("name", ["accuracy", "macro_accuracy", "min_sensitivity"])
def test_perfect_groups_count_as_one_item_each(name):
    batch = confusion(np.stack([np.diag([6.0, 6.0])] * 7))
    found = estimate_metrics([find_metric(name)], batch)[name]
    levels = 1 if name == "accuracy" else 2
    t2 = stats.t.ppf((1 + (0.95 ** (1 / 2) if name == "min_sensitivity" else 0.95)) / 2, 6) ** 2
    n = 7 / levels
    miss = 1 - n / (n + t2)
    expected = 1 - (miss / math.sqrt(2) if name == "macro_accuracy" else miss)
    assert (found.low, found.high) == (pytest.approx(expected), 1)


def test_perfect_groups_without_trials_have_wilsons_interval_of_one_item_each():
    """Counts that are no integers, many levels: nothing but the groups is known."""
    fractions = confusion(np.stack([np.diag([0.5, 0.7])] * 31))
    fine = confusion(np.stack([np.diag([1.0] * 31)] * 31))
    expected = proportion_confint(31, 31, method="wilson")
    for batch in (fractions, fine):
        found = estimate_metrics([find_metric("accuracy")], batch)["accuracy"]
        assert (found.low, found.high) == pytest.approx(expected)
        assert found.note.startswith("it has no standard error here")


def test_weights_that_are_all_the_same_change_no_interval_of_groups():
    gold, predicted, groups, batch = grouped(12, seed=23, shared=1.0)
    weights = np.full(len(gold), 0.37)
    heavy = ConfusionMatrix.count_by_group(
        labels(gold), labels(predicted), scale_of(SIZE), factorize_column(groups.tolist()), weights
    )
    metrics = [find_metric(name) for name in DEFAULTS if name != "purity"]
    first, second = (estimate_metrics(metrics, each) for each in (batch, heavy))
    for name, expected in first.items():
        assert (second[name].low, second[name].high) == pytest.approx((expected.low, expected.high))


def test_a_level_of_one_group_alone_is_gone_without_it_whatever_rounding_leaves():
    """Of weights 0.1 + 0.2 - 0.3 something is left; a level must not live on in it."""
    gold, predicted = ["L0", "L0", "L1"] * 6 + ["L2"] * 3, ["L0", "L1", "L1"] * 6 + ["L2"] * 3
    groups = [*range(6)] * 3 + [0] * 3
    weights = [0.1] * 18 + [0.1, 0.2, 0.3]
    batch = ConfusionMatrix.count_by_group(
        gold, predicted, scale_of(3), factorize_column(groups), weights
    )
    even = ConfusionMatrix.count_by_group(
        gold, predicted, scale_of(3), factorize_column(groups), [1] * 18 + [1, 2, 3]
    )
    for name in ("macro_accuracy", "macro_mae", "f1_macro"):
        metric = find_metric(name)
        expected = delete_each_cluster(metric, even)
        assert delete_each_cluster(metric, batch) == pytest.approx(expected)
        effects = [compute_design_effect(list_level_trials(metric, x)) for x in (batch, even)]
        assert np.isfinite(effects).all()


# --- doubts --------------------------------------------------------------------------------------


def evenly(count, holding=None, big=0):
    """Groups with an item of each level, right; the last level in some of them only."""
    cells = np.stack([np.eye(3)] * count)
    cells[:, 0, 1] = np.arange(count) % 2
    if holding is not None:
        cells[holding:, 2, 2] = 0
    cells[0, 0, 0] += big
    return confusion(cells)


@pytest.mark.parametrize(
    ("batch", "everywhere", "over_levels"),
    [
        (evenly(10), None, None),
        (evenly(9), "9 clusters only", None),
        (evenly(20, holding=8), None, None),
        (evenly(20, holding=7), None, "fewer than 8 clusters hold L2"),
        (evenly(20, holding=0), None, "gold without L2"),
        (evenly(20, big=30), "one cluster has 33 % of the items", None),
        (evenly(20, big=14), "one cluster has 20 % of the items", None),  # 17 of 84
        (evenly(20, big=13), None, None),  # 16 of 83
        (evenly(40, big=5), None, None),
        (evenly(9, holding=3), "9 clusters only", "fewer than 8 clusters hold L2"),
    ],
)
def test_intervals_of_groups_say_what_makes_them_unsure(batch, everywhere, over_levels):
    names = ("accuracy", "cem_ord", "macro_accuracy", "f1_macro", "min_sensitivity", "mae", "mcc")
    for name, found in estimate_metrics([find_metric(n) for n in names], batch).items():
        sure = name in {"accuracy", "cem_ord"}
        doubts = "; ".join(filter(None, [everywhere, None if sure else over_levels]))
        note, _, measured = (found.note or "").partition(
            "; default 95 % intervals covered as little as "
        )
        assert note == (f"unsure: {doubts}" if doubts else ""), name
        poorly = name not in {"accuracy", "cem_ord", "mcc"}  # below 93 % in the study
        assert bool(measured) == (bool(doubts) and poorly), name


@pytest.mark.parametrize("method", ["jackknife", "t", "percentile"])
def test_naming_a_method_takes_no_doubt_away(method):
    batch, how = evenly(9, holding=3), ConfidenceIntervals(method=method, resamples=200)
    usual, named = (estimate_metrics([find_metric("mae")], batch, x)["mae"] for x in (None, how))
    assert named.method == method
    assert named.note == usual.note
    assert named.note.startswith("unsure: 9 clusters only; fewer than 8 clusters hold L2")


def test_a_metric_that_nothing_covers_says_how_badly():
    found = estimate_metrics([find_metric("nmd")], evenly(40))["nmd"]
    assert found.note == "unsure: default 95 % intervals covered as little as 10 % in the study"


# --- Student's t of linearised groups ------------------------------------------------------------


def group_error(score, groups):
    """The error of a mean over items from the sums of what each group's items pull."""
    pulls = [(score[groups == g] - score.mean()).sum() / len(score) for g in np.unique(groups)]
    count = len(pulls)
    return math.sqrt(count / (count - 1) * sum((p - sum(pulls) / count) ** 2 for p in pulls))


def test_two_groups_get_students_t_with_one_degree_of_freedom():
    gold, predicted, groups, batch = grouped(2, seed=8, shared=0.5)
    shift = predicted - gold
    half = stats.t.ppf(0.975, 1) * group_error(shift, groups)
    found = estimate_metrics([find_metric("bias")], batch, ConfidenceIntervals(method="t"))["bias"]
    assert found.method == "t"
    assert found.note.startswith("unsure: 2 clusters only")
    assert half > 3  # Student's variable reaches beyond the scale, which has three steps
    assert (found.low, found.high) == (-3, 3)
    half = stats.t.ppf(0.8, 1) * group_error(shift, groups)
    how = ConfidenceIntervals(level=0.6, method="t")
    found = estimate_metrics([find_metric("bias")], batch, how)["bias"]
    expected = shift.mean() - half, shift.mean() + half
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("count", [3, 9, 10, 29])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_few_groups_get_students_t_with_one_degree_less_than_groups(count, level):
    gold, predicted, groups, batch = grouped(count, seed=8, shared=0.5)
    found = estimate_metrics(
        [find_metric(n) for n in ("mae", "bias", "accuracy")],
        batch,
        ConfidenceIntervals(level=level, method="t"),
    )
    t = stats.t.ppf((1 + level) / 2, count - 1)
    gaps, shift = np.abs(gold - predicted), predicted - gold
    half = t * group_error(shift, groups)
    expected = shift.mean() - half, shift.mean() + half
    assert (found["bias"].low, found["bias"].high) == pytest.approx(expected, rel=1e-6)
    factor = math.exp(t * group_error(gaps, groups) / gaps.mean())
    expected = gaps.mean() / factor, gaps.mean() * factor
    assert (found["mae"].low, found["mae"].high) == pytest.approx(expected, rel=1e-6)
    right = (gold == predicted).astype(float)
    share = right.mean()
    half = t * group_error(right, groups) / (share * (1 - share))
    expected = [1 / (1 + math.exp(-(math.log(share / (1 - share)) + s * half))) for s in (-1, 1)]
    assert [found["accuracy"].low, found["accuracy"].high] == pytest.approx(expected, rel=1e-6)
    for result in found.values():
        assert result.method == "t"


@pytest.mark.parametrize("name", TEN)
def test_linearised_errors_of_many_groups_are_the_deviation_of_drawing_them(name):
    """300 groups, 4,000 resamples: 4 Monte-Carlo errors of 1.2 %, and 3 % of smaller order."""
    batch = grouped(300, seed=10, shared=0.5)[3]
    values = resample_metrics(
        [find_metric(name)], batch.pooled, make_resampler(batch), Resampling(4000, 1)
    )[name]
    assert linearised_standard_error(find_metric(name), batch) == pytest.approx(
        values.std(), rel=0.08
    )


@pytest.mark.parametrize("groups", [2, 7, 29])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_reach_of_students_t_is_that_of_scipy(groups, level):
    expected = stats.t.ppf((1 + level) / 2, groups - 1)
    assert student_quantile(level, groups - 1) == pytest.approx(expected, rel=1e-9)


@given(order=st.permutations(range(12)))
@examples(15)
def test_the_order_of_few_groups_does_not_matter(order):
    batch = grouped(12, seed=11)[3]
    first = estimate_metrics([find_metric(name) for name in TEN], batch)
    second = estimate_metrics([find_metric(name) for name in TEN], batch[list(order)])
    for name in TEN:
        expected = first[name].low, first[name].high
        assert (second[name].low, second[name].high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", [m for m in list_metrics() if not m.required])
def test_every_metric_of_few_groups_has_an_interval_within_its_bounds(metric):
    for seed in range(3):
        batch = grouped(6, seed=seed)[3]
        found = estimate_metrics([metric], batch)[metric.name]
        low, high = metric.bounds
        assert found.method in {"jackknife", "wilson", "mover", "simultaneous"}
        assert low <= found.low <= found.value <= found.high <= high


@pytest.mark.parametrize("level", [0.99, 0.9999, 1 - 1e-6])
@pytest.mark.parametrize("name", ["accuracy", "mae", "quadratic_kappa", "mutual_information"])
def test_two_groups_have_an_interval_at_any_level(name, level):
    """Student's variable with one degree of freedom reaches far: 637,000 errors in a million."""
    batch = confusion([[[12, 3], [2, 12]], [[13, 9], [6, 13]]])
    found = estimate_metrics([find_metric(name)], batch, ConfidenceIntervals(level=level))[name]
    low, high = find_metric(name).bounds
    assert low <= found.low <= found.value <= found.high <= high


def test_nearly_independent_groups_have_an_interval_of_their_information():
    """The error is far beyond the value: the logarithm must not overflow."""
    batch = confusion([[[12, 13], [12, 12]], [[13, 13], [12, 13]]])
    found = estimate_metrics([find_metric("mutual_information")], batch)["mutual_information"]
    assert 0 <= found.low <= found.value <= found.high


# --- one group, and other corners ----------------------------------------------------------------


@pytest.mark.parametrize("method", [None, "percentile", "bca", "t", "delta"])
def test_one_group_has_no_interval_and_says_why(method):
    batch = grouped(1, per_group=30, seed=13)[3]
    for name in ("mae", "accuracy"):
        found = estimate_metrics([find_metric(name)], batch, ConfidenceIntervals(method=method))[
            name
        ]
        assert found.method is None
        assert found.note == "there is one cluster only"
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert found.value == pytest.approx(float(find_metric(name)(batch.pooled)))


@pytest.mark.parametrize("name", ["mae", "purity"])
def test_a_group_whose_items_were_all_dropped_is_no_group(name):
    gold, predicted = ["L0", "L1", "L0", "L1", "L1"], ["L0", "L1", "L1", "L0", None]
    groups = factorize_column(["a", "a", "a", "a", "b"])
    batch = ConfusionMatrix.count_by_group(gold, predicted, scale_of(2), groups, missing="drop")
    found = estimate_metrics([find_metric(name)], batch)[name]
    assert found.method is None
    assert found.note == "there is one cluster only"


def test_empty_groups_are_no_degrees_of_freedom():
    batch = grouped(8, seed=19)[3]
    empty = confusion(np.concatenate([batch.counts, np.zeros((30, SIZE, SIZE))]))
    first, second = (estimate_metrics([find_metric("mae")], b)["mae"] for b in (batch, empty))
    assert first.method == second.method == "jackknife"
    assert first.note == second.note
    assert first.note.startswith("unsure: 8 clusters only")
    assert (second.low, second.high) == pytest.approx((first.low, first.high), rel=1e-9)


@pytest.mark.parametrize("count", [8, 29, 40])
@pytest.mark.parametrize("method", [None, "percentile", "bca"])
def test_empty_groups_are_left_out_wherever_they_stand(count, method):
    batch = grouped(count, seed=19)[3]
    places = np.sort(np.random.default_rng(1).choice(count + 25, count, replace=False))
    cells = np.zeros((count + 25, SIZE, SIZE))
    cells[places] = batch.counts
    metrics = [
        find_metric(name) for name in ("mae", "accuracy", "macro_mae", "purity", "min_sensitivity")
    ]
    how = ConfidenceIntervals(method=method, resamples=300)
    assert estimate_metrics(metrics, confusion(cells), how) == estimate_metrics(metrics, batch, how)


@pytest.mark.parametrize("shape", [(6, 2), (1, 12), (2, 2, 3)])
@pytest.mark.parametrize("method", [None, "percentile", "bca", "t"])
def test_more_than_one_leading_axis_is_refused(shape, method):
    cells = np.random.default_rng(0).integers(1, 5, (*shape, SIZE, SIZE))
    with pytest.raises(BadOption, match="batch of confusion matrices with one leading axis"):
        estimate_metrics([find_metric("mae")], confusion(cells), ConfidenceIntervals(method=method))


def test_undefined_metrics_of_groups_say_so_first():
    batch = confusion([[[3, 0], [0, 0]], [[5, 0], [0, 0]]])
    found = estimate_metrics([find_metric("kendall_tau_b")], batch)["kendall_tau_b"]
    assert math.isnan(found.value)
    assert found.method is None
    assert found.note == "gold or predictions use one level only"


def test_groups_of_weighted_items_pull_with_their_weights():
    gold, predicted, groups, _ = grouped(10, seed=14)
    weights = np.random.default_rng(0).lognormal(0, 1, len(gold))
    batch = ConfusionMatrix.count_by_group(
        labels(gold), labels(predicted), scale_of(SIZE), factorize_column(groups.tolist()), weights
    )
    gaps = np.abs(gold - predicted)
    mean = (weights * gaps).sum() / weights.sum()
    pulls = np.array(
        [(weights * (gaps - mean))[groups == g].sum() / weights.sum() for g in range(10)]
    )
    error = math.sqrt(10 / 9 * ((pulls - pulls.mean()) ** 2).sum())
    assert linearised_standard_error(find_metric("mae"), batch) == pytest.approx(error, rel=1e-7)
    factor = math.exp(stats.t.ppf(0.975, 9) * error / mean)
    found = estimate_metrics([find_metric("mae")], batch, ConfidenceIntervals(method="t"))["mae"]
    assert (found.low, found.high) == pytest.approx((mean / factor, mean * factor), rel=1e-6)


@pytest.mark.parametrize("method", ["dirichlet", "jeffreys"])
def test_methods_for_independent_items_are_refused_for_groups(method):
    batch = grouped(40, seed=15)[3]
    with pytest.raises(
        BadOption, match=f"'{method}' does not fit accuracy: the items are no plain"
    ):
        estimate_metrics([find_metric("accuracy")], batch, ConfidenceIntervals(method=method))


@pytest.mark.parametrize(
    ("method", "name", "why"),
    [
        ("wilson", "macro_accuracy", "no plain share"),
        ("mover", "min_sensitivity", "no mean over gold levels"),
        ("mover", "uoc", "no mean over gold levels"),
        ("simultaneous", "macro_mae", "not the worst of gold levels"),
    ],
)
def test_methods_of_levels_are_refused_for_metrics_of_other_making(method, name, why):
    batch = grouped(40, seed=15)[3]
    with pytest.raises(BadOption, match=f"'{method}' does not fit {name}: it is {why}"):
        estimate_metrics([find_metric(name)], batch, ConfidenceIntervals(method=method))


def test_the_jackknife_is_refused_without_groups():
    table = confusion(sample(SIZE, 50, seed=1))
    with pytest.raises(BadOption, match="'jackknife' does not fit mae: there are no clusters"):
        estimate_metrics([find_metric("mae")], table, ConfidenceIntervals(method="jackknife"))


@pytest.mark.parametrize("count", [12, 40])
@pytest.mark.parametrize("method", [None, "percentile", "bca", "t"])
def test_stratified_intervals_of_groups_are_refused_whatever_the_method(count, method):
    batch = grouped(count, seed=16)[3]
    with pytest.raises(BadOption, match="Clusters are drawn whole"):
        estimate_metrics(
            [find_metric("mae")], batch, ConfidenceIntervals(method=method, stratified=True)
        )


@pytest.mark.parametrize("name", ["purity", "min_sensitivity", "oci", "max_mae"])
@pytest.mark.parametrize("method", ["t", "delta"])
def test_linearised_groups_are_refused_for_rough_metrics(name, method):
    batch = grouped(12, seed=17)[3]
    with pytest.raises(BadOption, match=f"'{method}' does not fit {name}: it has no derivative"):
        estimate_metrics([find_metric(name)], batch, ConfidenceIntervals(method=method))


@pytest.mark.slow
def test_the_default_interval_of_few_groups_covers_the_truth():
    """8 groups, 2,000 samples: the share of misses is within 4 errors of at most 8 %."""
    rng = np.random.default_rng(18)
    metric, misses, count = find_metric("bias"), 0, 2000
    for _ in range(count):
        gold = rng.integers(1, 3, (8, 10))
        shift = np.clip(np.rint(rng.normal(0, 0.5, (8, 1)) + rng.normal(0, 0.4, (8, 10))), -1, 1)
        cells = np.zeros((8, SIZE, SIZE))
        who = np.repeat(np.arange(8), 10)
        np.add.at(cells, (who, gold.ravel(), (gold + shift).astype(int).ravel()), 1)
        found = estimate_metrics([metric], confusion(cells))["bias"]
        misses += not found.low <= 0 <= found.high
    assert misses / count < 0.08 + 4 * math.sqrt(0.08 * 0.92 / count)
