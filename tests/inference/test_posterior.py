"""The posterior of a table: its samples, and the intervals of tables that no bootstrap can move."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from naive import NAIVE
from oracles import confusion, labels, usual
from scipy import stats
from small_sample_cases import MEANS, RECALLS, WORSTS, cost_of, silent_tables
from statsmodels.stats.proportion import proportion_confint
from strategies import METRICS, every_metric, scale_of, tables

from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.distributions import student_quantile
from ordinate.inference.interval_methods import NONDEGENERATE_METHODS
from ordinate.inference.small_samples import (
    are_rare,
    make_posterior_sampler,
    scale_to_effective_size,
)
from ordinate.metrics import find_metric
from ordinate.summaries import ConfusionMatrix

pytestmark = pytest.mark.usefixtures("no_coverage_warnings")


# --- the posterior -------------------------------------------------------------------------------

CELLS = np.array([[3.0, 1, 0], [2, 0, 6], [0, 0, 0]])


PRIORS = {"dirichlet": None, "jeffreys": 0.5}  # the first: one item's weight for a whole row


def naive_posterior(cells, silent, prior, count, seed, *, stratified=False):
    """Cells [count, K, K + 1] from NumPy's Dirichlet resamples, level by level."""
    rng = np.random.default_rng(seed)
    columns = cells if silent is None else np.column_stack([cells, silent])
    little = 1 / columns.shape[1] if prior is None else prior
    gold = columns.sum(axis=1)
    there = [level for level, n in enumerate(gold) if n > 0]
    drawn = np.zeros((count, len(cells), len(cells) + 1))
    shares = rng.dirichlet(gold[there], count)
    for place, level in enumerate(there):
        share = gold[level] / gold.sum() if stratified else shares[:, place, None]
        predictions = rng.dirichlet(columns[level] + little, count)
        drawn[:, level, : columns.shape[1]] = share * predictions
    return drawn


def check_quantiles(found, values, level=0.95):
    """Each limit but the value itself is within 5 Monte-Carlo errors of a naive quantile."""
    tail = (1 - level) / 2
    allowed = 5 * math.sqrt(2 * tail * (1 - tail) / len(values))
    free = 0
    for end, share in ((found.low, tail), (found.high, 1 - tail)):
        if not math.isclose(end, found.value, abs_tol=1e-12):
            free += 1
            below, upto = (values < end - 1e-9).mean(), (values <= end + 1e-9).mean()
            assert below - allowed <= share <= upto + allowed
    assert free


@pytest.mark.parametrize("prior", [None, 0.5, 2.0])
def test_the_posterior_has_the_moments_of_dirichlet_rows(prior):
    """Row shares follow Dirichlet(n + prior): means within 4.5 Monte-Carlo errors, variances too.

    The default prior is 1/3 for each of three predictions: a row's prior weighs one item.
    """
    table, count = confusion(CELLS), 40_000
    little = 1 / 3 if prior is None else prior
    cells = make_posterior_sampler(table, prior)(np.random.default_rng(1), count)
    assert cells.shape == (count, 3, 4)
    for row in (0, 1):
        share = cells[:, row, :3] / cells[:, row].sum(axis=-1, keepdims=True)
        theory = stats.dirichlet(CELLS[row] + little)
        error = np.sqrt(theory.var() / count)
        assert (np.abs(share.mean(axis=0) - theory.mean()) <= 4.5 * error).all()
        assert share.var(axis=0) == pytest.approx(theory.var(), rel=0.05)
        for column in range(3):
            own, all_ = CELLS[row, column] + little, CELLS[row].sum() + 3 * little
            beta = stats.beta(own, all_ - own)
            assert stats.kstest(share[:4000, column], beta.cdf).pvalue > 0.01 / 18


def test_the_default_prior_of_a_row_weighs_one_item_with_silence_as_well():
    """Where somebody is silent, no answer is a prediction like any other: 1/4 each."""
    table = ConfusionMatrix.from_counts(CELLS, scale_of(3), [0, 2, 0])
    cells = make_posterior_sampler(table)(np.random.default_rng(4), 40_000)
    for row, weights in ((0, [3, 1, 0, 0]), (1, [2, 0, 6, 2])):
        share = cells[:, row] / cells[:, row].sum(axis=-1, keepdims=True)
        theory = stats.dirichlet(np.array(weights) + 0.25)
        error = np.sqrt(theory.var() / 40_000)
        assert (np.abs(share.mean(axis=0) - theory.mean()) <= 4.5 * error).all()
        assert share.var(axis=0) == pytest.approx(theory.var(), rel=0.05)


def test_the_gold_shares_of_the_posterior_follow_the_gold_counts():
    table, count = confusion(CELLS), 40_000
    gold = make_posterior_sampler(table)(np.random.default_rng(2), count).sum(axis=-1)
    share = gold[:, 0] / gold.sum(axis=-1)
    assert stats.kstest(share[:4000], stats.beta(4, 8).cdf).pvalue > 0.01


@given(table=silent_tables(), prior=st.sampled_from([None, 0.5]), stratified=st.booleans())
@examples(40)
def test_posterior_tables_have_the_total_of_the_table(table, prior, stratified):
    drawn = make_posterior_sampler(table, prior, stratified=stratified)(
        np.random.default_rng(0), 20
    )
    assert drawn.sum(axis=(1, 2)) == pytest.approx(np.full(20, table.total), rel=1e-12)
    if stratified:
        gold = np.broadcast_to(table.gold, (20, len(table.scale)))
        assert drawn.sum(axis=-1) == pytest.approx(gold, rel=1e-12)
    elif (table.gold > 0).sum() > 1:
        assert np.ptp(drawn.sum(axis=-1), axis=0).max() > 1e-3


def test_the_posterior_leaves_levels_without_gold_and_silence_alone():
    drawn = make_posterior_sampler(confusion(CELLS))(np.random.default_rng(0), 50)
    assert not drawn[:, 2].any()
    assert not drawn[..., 3].any()
    assert (drawn[:, :2, :3] > 0).all()
    silent = ConfusionMatrix.from_counts(CELLS, scale_of(3), [1, 0, 0])
    assert (make_posterior_sampler(silent)(np.random.default_rng(0), 50)[:, :2] > 0).all()


@pytest.mark.parametrize("method", PRIORS)
@pytest.mark.parametrize("name", ["macro_mae", "mae", "quadratic_kappa", "purity"])
@pytest.mark.parametrize("stratified", [False, True])
def test_limits_of_the_posterior_are_quantiles_of_a_naive_one(method, name, stratified):
    """5 Monte-Carlo errors of a quantile."""
    cells, count = np.array([[4, 1, 1], [3, 30, 5], [1, 6, 50]]), 8000
    drawn = naive_posterior(cells, None, PRIORS[method], count, seed=6, stratified=stratified)
    values = np.asarray(find_metric(name)(confusion(cells).with_cells(drawn)))
    how = ConfidenceIntervals(method=method, resamples=count, stratified=stratified)
    found = estimate_metrics([find_metric(name)], confusion(cells), how)[name]
    assert found.method == method
    check_quantiles(found, values)


@pytest.mark.parametrize("method", PRIORS)
def test_limits_of_the_posterior_of_silent_items_are_quantiles_of_a_naive_one(method):
    cells, silent = np.array([[4, 1, 1], [3, 30, 5], [1, 6, 50]]), [0, 2, 5]
    table = ConfusionMatrix.from_counts(cells, scale_of(3), silent)
    drawn = naive_posterior(cells, silent, PRIORS[method], 8000, seed=7)
    for name in ("mae", "accuracy", "f1_macro"):
        values = np.asarray(find_metric(name)(table.with_cells(drawn)))
        check_quantiles(
            estimate_metrics(
                [find_metric(name)], table, ConfidenceIntervals(method=method, resamples=8000)
            )[name],
            values,
        )


def test_the_same_rule_tells_the_two_priors_apart():
    table, mae = confusion(np.diag([12, 12, 12])), find_metric("mae")
    found = estimate_metrics([mae], table, ConfidenceIntervals(method="jeffreys", resamples=8000))[
        "mae"
    ]
    drawn = (naive_posterior(table.counts, None, prior, 8000, seed=1) for prior in (0.5, None))
    own, other = (np.asarray(mae(table.with_cells(cells))) for cells in drawn)
    check_quantiles(found, own)
    with pytest.raises(AssertionError):
        check_quantiles(found, other)


@pytest.mark.parametrize("method", PRIORS)
@given(table=tables(largest=6))
@examples(30)
def test_limits_of_the_posterior_hold_the_value(method, table):
    found = estimate_metrics(METRICS, table, ConfidenceIntervals(method=method, resamples=200))
    for metric in METRICS:
        result = found[metric.expression]
        if not math.isnan(result.low):
            assert result.low <= result.value <= result.high, metric.expression


# --- as many items as say as much ----------------------------------------------------------------


@given(table=silent_tables())
@examples(20)
def test_whole_counts_say_what_they_are(table):
    assert scale_to_effective_size(table) is table


def test_whole_weights_are_counts_of_items():
    table = ConfusionMatrix.of(["L0", "L1", "L1"], ["L0", "L1", "L0"], scale_of(2), [3, 2, 4])
    assert scale_to_effective_size(table) is table


@given(
    items=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.floats(0.01, 9)), min_size=1, max_size=20
    )
)
@examples(60)
def test_real_weights_are_as_many_items_as_their_mean_has_the_variance_of(items):
    gold, predicted, weights = zip(*items, strict=True)
    weights = [weight + (weight == round(weight)) / 8 for weight in weights]
    table = ConfusionMatrix.of(labels(gold), labels(predicted), scale_of(3), weights)
    found = scale_to_effective_size(table)
    n = math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)
    assert 1 - 1e-12 <= n <= len(items) + 1e-9
    assert float(found.total) == pytest.approx(n, rel=1e-12)
    expected = table.weights / table.weights.sum()
    assert found.weights / found.total == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weight", [0.5, 1.5, 0.01, 1e-7])
def test_equal_weights_are_as_many_items_as_there_are(weight):
    gold, predicted = ["L0", "L1", "L1", "L0", "L0"], ["L0", "L1", "L0", "L0", "L0"]
    found = scale_to_effective_size(ConfusionMatrix.of(gold, predicted, scale_of(2), [weight] * 5))
    plain = ConfusionMatrix.of(gold, predicted, scale_of(2))
    assert found.weights == pytest.approx(plain.weights, rel=1e-12)


@pytest.mark.parametrize("factor", [1, 0.3, 1000])
def test_a_group_says_as_much_as_one_item(factor):
    cells = np.random.default_rng(0).integers(1, 9, (7, 3, 3)) * factor
    found = scale_to_effective_size(confusion(cells))
    assert found.shape == ()
    assert found.counts == pytest.approx(cells.sum(axis=0) / cells.sum() * 7, rel=1e-12)


# --- tables that no draw can move ----------------------------------------------------------------

SAME = {"every resample gives the same value", "it has no standard error here"}


@pytest.mark.parametrize("gold", [[20, 30, 25], [1, 1, 1], [3, 0, 400], [1000, 1000, 1000]])
@every_metric
def test_a_perfect_table_has_an_interval_of_some_width_that_holds_its_value(metric, gold):
    table = confusion(np.diag(gold))
    found = estimate_metrics([metric], table, ConfidenceIntervals(resamples=300))[metric.expression]
    if found.method != "percentile":  # which may leave out a value that resamples cannot exceed
        assert found.low <= found.value <= found.high
    assert found.high - found.low > 1e-6
    low, high = metric.bounds
    assert low - 1e-12 <= found.low <= found.high <= high + 1e-12
    by_rule = {"mean": "mover", "worst": "simultaneous"}.get(metric.macro)
    by_rule = "wilson" if metric.share else by_rule
    if by_rule is not None:
        assert (found.method, found.note) == (by_rule, None)
    if found.method == "dirichlet":
        rare = metric.macro == "other" and are_rare(table).any()  # always resampled
        how = ConfidenceIntervals(resamples=300, method="percentile")
        still = estimate_metrics([metric], table, how)[metric.expression].width < 1e-12
        if usual(metric) in NONDEGENERATE_METHODS and not rare:
            assert found.note is None
        elif still:
            assert found.note in SAME
        else:
            assert found.note  # only the slopes are flat there
    else:
        assert found.method in {by_rule, usual(metric), "percentile"}


@pytest.mark.parametrize(
    "name", ["quadratic_kappa", "mae", "cem_ord", "purity", "oci", "uoc", "f1_macro", "rmse"]
)
def test_a_perfect_table_says_why_its_interval_is_not_the_usual_one(name):
    found = estimate_metrics([find_metric(name)], confusion(np.diag([20, 30, 25])))[name]
    assert found.method == "dirichlet"
    assert found.note in ({None} if usual(find_metric(name)) in NONDEGENERATE_METHODS else SAME)
    best = {"mae": 0, "rmse": 0, "oci": 0, "uoc": 0}.get(name, 1)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert best in {round(found.low, 12), round(found.high, 12)}


@pytest.mark.parametrize("name", ["quadratic_kappa", "mae", "cem_ord", "purity", "f1_macro"])
@pytest.mark.parametrize("stratified", [False, True])
def test_a_perfect_table_has_the_limits_of_a_naive_posterior(name, stratified):
    cells = np.diag([20, 3, 25])
    drawn = naive_posterior(cells, None, None, 8000, seed=2, stratified=stratified)
    values = np.asarray(find_metric(name)(confusion(cells).with_cells(drawn)))
    found = estimate_metrics(
        [find_metric(name)],
        confusion(cells),
        ConfidenceIntervals(resamples=8000, stratified=stratified),
    )[name]
    assert found.method == "dirichlet"
    check_quantiles(found, values)


def test_items_that_are_all_one_step_off_could_be_nearer_or_farther():
    table = confusion([[0, 9, 0, 0], [9, 0, 0, 0], [0, 9, 0, 0], [0, 0, 9, 0]])
    found = estimate_metrics([find_metric("mae")], table)["mae"]
    assert found.method == "dirichlet"
    assert found.low < found.value < found.high
    assert found.value == 1


def test_a_larger_perfect_table_has_a_narrower_interval():
    widths = [
        estimate_metrics([find_metric("quadratic_kappa")], confusion(np.diag([n, n, n])))[
            "quadratic_kappa"
        ].width
        for n in (10, 40, 160, 640)
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 10 * widths[-1]


def test_a_table_all_wrong_has_a_width_as_well():
    table = confusion([[0, 0, 20], [0, 0, 20], [20, 20, 0]])
    for name in ("macro_accuracy", "min_sensitivity", "f1_macro", "cem_nom"):
        found = estimate_metrics([find_metric(name)], table)[name]
        assert found.value == found.low == 0
        assert 0 < found.high < 0.3


# Right answers of forty items with weights, of 40 groups, and of 12 beside empty ones.
GOLD = np.array([0, 1, 2, 1] * 10)


WEIGHTS = np.linspace(0.5, 1.7, 40)


GROUPS = np.zeros((40, 3, 3))


GROUPS[:, [0, 1, 2], [0, 1, 2]] = np.random.default_rng(3).integers(1, 5, (40, 3))


def perfect_sources():
    """What it is, the source, and the table of as many items as say as much, over the items."""
    weighted = ConfusionMatrix.of(labels(GOLD), labels(GOLD), scale_of(3), WEIGHTS)
    sums = np.bincount(GOLD, WEIGHTS)
    few = np.concatenate([GROUPS[:12], np.zeros((9, 3, 3))])
    yield "weights", weighted, np.diag(sums * WEIGHTS.sum() / (WEIGHTS**2).sum())
    for name, groups, count in (("groups", GROUPS, 40), ("few groups", few, 12)):
        pooled = groups.sum(axis=0)
        yield name, confusion(groups), pooled / pooled.sum() * count


PERFECT = {name: (source, cells) for name, source, cells in perfect_sources()}


every_perfect = pytest.mark.parametrize(("source", "cells"), PERFECT.values(), ids=PERFECT)


@every_perfect
@pytest.mark.parametrize("name", ["accuracy", "accuracy_within"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_perfect_shares_of_weights_or_groups_have_wilsons_limits_of_what_they_say(
    source, cells, name, level
):
    found = estimate_metrics([find_metric(name)], source, ConfidenceIntervals(level=level))[name]
    n, tail = cells.sum(), (1 + level) / 2
    reach = student_quantile(level, n - 1) if source.shape else stats.norm.ppf(tail)
    assert found.method == "wilson"
    assert found.note in ({None} if source.shape else SAME)
    expected = n / (n + reach**2), 1
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@every_perfect
@pytest.mark.parametrize(
    "name", ["quadratic_kappa", "mae", "purity", "f1_macro", "macro_mae", "min_sensitivity"]
)
def test_perfect_weights_or_groups_have_the_limits_of_a_naive_posterior(source, cells, name):
    if find_metric(name).macro in {"mean", "worst"} or (source.shape and name == "f1_macro"):
        return  # they have limits level by level: the test below, and those of groups
    drawn = naive_posterior(cells, None, None, 4000, seed=5)
    values = np.asarray(find_metric(name)(confusion(np.eye(3)).with_cells(drawn)))
    found = estimate_metrics([find_metric(name)], source, ConfidenceIntervals(resamples=4000))[name]
    assert found.method == "dirichlet"
    assert found.note in SAME
    assert found.low <= found.value <= found.high
    check_quantiles(found, values)


@pytest.mark.parametrize("name", [*MEANS, *WORSTS])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_perfect_weights_have_limits_by_level_of_as_many_items_as_each_is_worth(name, level):
    source, recall = PERFECT["weights"][0], name in RECALLS
    each = level if name in MEANS else level ** (1 / 3)
    ends = []
    for gold in range(3):
        own = WEIGHTS[gold == GOLD]
        n = own.sum() ** 2 / (own**2).sum()
        far = {"macro_mse": max(gold, 2 - gold) ** 2}.get(name, max(gold, 2 - gold))
        miss = proportion_confint(0, n, alpha=1 - each, method="wilson")[1]
        ends.append(miss * (1 if recall else far))
    off = max(ends) if name in WORSTS else math.hypot(*ends) / 3
    found = estimate_metrics([find_metric(name)], source, ConfidenceIntervals(level=level))[name]
    assert found.method == ("mover" if name in MEANS else "simultaneous")
    assert found.note == "fractional weights"
    expected = (1 - off, 1) if recall else (0, off)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_stratified_perfect_weights_keep_the_weight_of_each_gold_level():
    source, cells = PERFECT["weights"]
    drawn = naive_posterior(cells, None, None, 8000, seed=5, stratified=True)
    values = np.asarray(find_metric("mae")(confusion(np.eye(3)).with_cells(drawn)))
    how = ConfidenceIntervals(resamples=8000, stratified=True)
    found = estimate_metrics([find_metric("mae"), find_metric("accuracy")], source, how)
    assert found["mae"].method == "dirichlet"
    assert found["mae"].note in SAME
    check_quantiles(found["mae"], values)
    assert found["accuracy"].method == "wilson"
    assert found["accuracy"].note in SAME


def test_weights_all_wrong_have_wilsons_upper_limit():
    weights = np.linspace(0.5, 1.7, 12)
    table = ConfusionMatrix.of(["L0", "L1"] * 6, ["L1", "L0"] * 6, scale_of(2), weights)
    n = weights.sum() ** 2 / (weights**2).sum()
    found = estimate_metrics([find_metric("accuracy")], table)["accuracy"]
    expected = proportion_confint(0, n, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", ["percentile", "delta"])
def test_a_method_that_was_asked_for_stays_though_nothing_moves(method):
    found = estimate_metrics(
        [find_metric("mae")], confusion(np.diag([9, 9])), ConfidenceIntervals(method=method)
    )["mae"]
    assert (found.method, found.low, found.high) == (method, 0, 0)


@pytest.mark.parametrize("kind", PERFECT)
@pytest.mark.parametrize("name", ["accuracy", "quadratic_kappa", "mae", "purity"])
def test_a_perfect_table_of_weights_or_groups_never_seems_certain(kind, name):
    found = estimate_metrics([find_metric(name)], PERFECT[kind][0])[name]
    assert found.width > 0.01
    assert found.note in SAME or found.method == "wilson"


def test_every_distance_of_this_file_is_that_of_the_naive_metrics():
    """The costs above are those that metrics are defined by elsewhere."""
    at = [0.0, 1.0, 2.75]
    for gold in range(3):
        for answer in (0, 1, 2, None):
            for name in [*MEANS, *WORSTS]:
                expected = NAIVE[name]([gold], [answer], at)
                assert cost_of(name, at, gold, answer) == pytest.approx(expected)
