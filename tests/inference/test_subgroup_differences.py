"""Subgroups that differ from all other items: dealt anew, written out, and when nothing is said."""

import itertools
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from naive import NAIVE

from helpers.studies import load_study
from ordinate import evaluate
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference import subgroup_differences as differences
from ordinate.inference.estimates import estimate_difference
from ordinate.inference.resampling import Resampling
from ordinate.inference.subgroup_differences import (
    FEW_CLUSTERS,
    FEW_ITEMS_NOTE,
    MANY_SUBGROUPS,
    MIXED_CLUSTERS,
    MUCH_WORK,
    NOT_COUNTED,
    UNDEFINED,
    SubgroupTest,
    choose_deal_count,
    estimate_difference_from_rest,
    randomize_subgroups,
)
from ordinate.metrics import find_metric
from ordinate.results import Evaluation
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

SCALE = Scale.of("0..2")
QUICK = ConfidenceIntervals(resamples=200)
MAE = [find_metric("mae")]


def count(by, gold, predicted, clusters=None, scale=SCALE):
    """Return the matrices of subgroups, or of their clusters."""
    shape = (max(by) + 1, 1 if clusters is None else max(clusters) + 1, len(scale), len(scale))
    cells = np.zeros(shape)
    np.add.at(cells, (by, 0 if clusters is None else clusters, gold, predicted), 1)
    return ConfusionMatrix.from_counts(cells[:, 0] if clusters is None else cells, scale)


# --- dealing -------------------------------------------------------------------------------------


def list_deals(by, clusters):
    """Return every deal: of items, of whole clusters, or of items within their clusters."""
    units = sorted(set(clusters)) if clusters else []
    of_unit = {unit: [k for k, x in enumerate(clusters) if x == unit] for unit in units}
    lies_in = {unit: {by[k] for k in items} for unit, items in of_unit.items()}
    if not units:
        yield from itertools.permutations(by)
    elif all(len(parts) == 1 for parts in lies_in.values()):
        for parts in itertools.permutations(min(lies_in[unit]) for unit in units):
            to = dict(zip(units, parts, strict=True))
            yield tuple(to[x] for x in clusters)
    else:
        for each in itertools.product(
            *(itertools.permutations([by[k] for k in of_unit[unit]]) for unit in units)
        ):
            to = {
                k: part
                for unit, parts in zip(units, each, strict=True)
                for k, part in zip(of_unit[unit], parts, strict=True)
            }
            yield tuple(to[k] for k in range(len(by)))


BY, GOLD, PREDICTED = [0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2, 0], [0, 1, 1, 0, 2, 2, 1]
WITHIN, ACROSS = [0, 1, 1, 2, 3, 4, 5], [0, 0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("clusters", "by_number"),
    [
        (None, False),
        (None, True),
        (WITHIN, False),
        (ACROSS, False),
    ],
)
def test_every_deal_is_as_likely_as_a_list_of_all_says(clusters, by_number, monkeypatch):
    monkeypatch.setattr(differences, "ITEMS_PER_CELL", 0 if by_number else 100)
    expected = Counter(
        count(deal, GOLD, PREDICTED).weights.tobytes() for deal in list_deals(BY, clusters)
    )
    size = 10_000
    deal = differences._make_dealer(count(BY, GOLD, PREDICTED, clusters).weights).deal
    found = Counter(cells.tobytes() for cells in deal(np.random.default_rng(3), size))
    assert found.keys() <= expected.keys()
    for cells, ways in expected.items():
        share = ways / expected.total()
        sigma = math.sqrt(share * (1 - share) / size)
        assert found[cells] / size == pytest.approx(share, abs=4.5 * sigma)


def test_many_items_are_dealt_in_numbers_and_keep_every_total():
    cells = np.random.default_rng(0).multinomial(200_000, np.full(12, 1 / 12)).reshape(3, 4)
    deal = differences._deal_counts(cells)
    dealt = deal(np.random.default_rng(1), 400)
    assert (dealt.sum(axis=1) == cells.sum(axis=0)).all()
    assert (dealt.sum(axis=2) == cells.sum(axis=1)).all()
    expected = cells.sum(axis=1)[:, None] * cells.sum(axis=0) / cells.sum()
    assert dealt.mean(axis=0) == pytest.approx(expected, abs=40)  # of a deviation of about 100


# --- p-values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["mae", "quadratic_kappa", "macro_mae", "f1_macro"])
@pytest.mark.parametrize("clusters", [None, WITHIN, ACROSS])
def test_p_values_are_those_of_all_deals(metric, clusters, monkeypatch):
    """Drawn spreads are not quite those of all deals, and so statistics near each other may tie."""
    monkeypatch.setattr(differences, "FEWEST_CLUSTERS", 1)
    observed = np.abs(subtract_by_hand(metric, tuple(BY)))
    every = np.abs([subtract_by_hand(metric, deal) for deal in list_deals(BY, clusters)])
    spread = np.sqrt(np.nanmean(every**2, axis=0))
    statistic, reached = observed / spread, np.where(np.isnan(every), np.inf, every / spread)
    steps = [k for k in np.argsort(-statistic) if not np.isnan(observed[k])]
    deals, least, most = 9_999, 0.0, 0.0
    noise = 4.5 * math.sqrt(0.25 / deals)
    parts = count(BY, GOLD, PREDICTED, clusters)
    found = randomize_subgroups([find_metric(metric)], parts, Resampling(deals))[metric]
    for step, part in enumerate(steps):
        own = (reached[:, part] >= statistic[part] * (1 - 1e-9)).mean()
        assert found[part].p == pytest.approx(own, abs=noise)
        rivals = reached[:, steps[step:]].max(axis=1)
        least = max(least, (rivals >= statistic[part] * 1.03).mean())
        most = max(most, (rivals >= statistic[part] * 0.97).mean())
        assert least - noise <= found[part].p_adjusted <= most + noise
        assert found[part].p <= found[part].p_adjusted
    assert [k for k in range(3) if found[k].note is None] == sorted(steps)


@cache
def subtract_by_hand(metric, deal):
    """Return each subgroup less the rest, from their items."""
    values = []
    for part in range(3):
        sides = []
        for side in (True, False):
            inside = [k for k, x in enumerate(deal) if (x == part) == side]
            columns = ([column[k] for k in inside] for column in (GOLD, PREDICTED))
            sides.append(NAIVE[metric](*columns, [0, 1, 2]))
        values.append(sides[0] - sides[1])
    return values


def test_the_same_seed_gives_the_same_p_values_to_the_last_digit():
    rng = np.random.default_rng(2)
    columns = (rng.integers(0, 9, 900), rng.integers(0, 3, 900), rng.integers(0, 3, 900))
    parts = count(*(column.tolist() for column in columns))
    once, again, other = (randomize_subgroups(MAE, parts, Resampling(1_999, k)) for k in (7, 7, 8))
    assert once == again
    assert once != other


@pytest.mark.parametrize("clusters", [None, "within", "across"])
def test_p_values_depend_on_no_order_and_no_name(clusters):
    rng = np.random.default_rng(4)
    by = np.arange(360) % 4
    units = np.arange(360) // 20 if clusters == "across" else np.arange(360) // 20 * 4 + by
    columns = [by, rng.integers(0, 3, 360), rng.integers(0, 3, 360), units]
    orders = [np.arange(360), rng.permutation(360)]
    names = rng.permutation(4)
    found = []
    for order, name in zip(orders, (np.arange(4), names), strict=True):
        parts, gold, predicted, unit = (column[order] for column in columns)
        groups = {} if clusters is None else {"groups": [f"u{x}" for x in unit]}
        report = evaluate(gold, predicted, "0..2", "mae", by=name[parts].tolist(), **groups)
        found.append([report.by[int(k)].difference_from_rest["mae"] for k in name])
    assert [(x.p, x.p_adjusted) for x in found[0]] == [(x.p, x.p_adjusted) for x in found[1]]


def test_counts_are_the_items_that_they_stand_for():
    columns = (BY, GOLD, PREDICTED)
    parts = count(*columns).weights
    twice = ConfusionMatrix.from_counts(2 * parts[..., :-1], SCALE)
    expanded = count(*(column * 2 for column in columns))
    found, expected = (randomize_subgroups(MAE, x, Resampling(999)) for x in (twice, expanded))
    assert found == expected


@pytest.mark.slow
def test_a_report_does_not_name_one_of_many_small_equal_subgroups_with_rare_levels():
    """Of 12 samples, 5 % may name one; by intervals it was 7."""
    study, named = load_study("subgroup_verdicts"), 0
    cell = study.Cell("equal", 200, 20, "none", "rare", 12)
    for seed in range(12):
        parts = study.simulate_parts(cell, np.random.default_rng(seed))
        by = [(k, parts[k]) for k in range(200)]
        found = Evaluation.from_summary(parts.pooled, "quadratic_kappa", by=by, interval=QUICK)
        named += "Significantly different from the rest" in found.document().verdict
    assert named <= 3


@pytest.mark.slow
@pytest.mark.parametrize("clusters", ["none", "within", "across"])
@pytest.mark.parametrize("balance", ["rare", "balanced"])
def test_equal_subgroups_are_rarely_told_apart(clusters, balance):
    """Of 400 samples 5 % may name one: with 3.5 binomial errors more that is 35."""
    study = load_study("subgroup_verdicts")
    cell = study.Cell("equal", 8, 40, clusters, balance, 400)
    named = {row.metric: row.error * 400 for row in study.study(cell, 199)}
    assert max(named.values()) <= 35, named


# --- no verdict ----------------------------------------------------------------------------------


def test_the_resamples_depend_on_the_number_of_subgroups_alone():
    assert [choose_deal_count(k) for k in (2, 50, 51, 200)] == [1_999, 1_999, 999, 999]


def get_notes(parts, metrics=MAE):
    (tests,) = randomize_subgroups(metrics, parts, Resampling(100)).values()
    assert all(math.isnan(x.p) == math.isnan(x.p_adjusted) == (x.note is not None) for x in tests)
    return [test.note for test in tests]


def test_beyond_200_subgroups_there_is_no_verdict():
    items = 2 * [*range(201)]
    levels = [k % 3 for k in range(402)]
    assert set(get_notes(count(items, levels, levels[::-1]))) == {MANY_SUBGROUPS}
    fewer = [k % 200 for k in items]
    assert set(get_notes(count(fewer, levels, levels[::-1]))) == {None}


def test_weights_that_are_no_counts_leave_no_verdict():
    parts = count(BY, GOLD, PREDICTED)
    half = ConfusionMatrix.from_counts(parts.counts / 2, SCALE)
    assert set(get_notes(half)) == {NOT_COUNTED}


def test_clusters_of_which_some_lie_in_one_subgroup_and_some_in_several_leave_no_verdict():
    by, levels = [0] * 12 + [1] * 12, [k % 3 for k in range(24)]
    clusters = [*range(12), 0, *range(12, 23)]
    assert get_notes(count(by, levels, levels[::-1], clusters)) == [MIXED_CLUSTERS] * 2


def test_six_clusters_inside_and_outside_are_enough():
    by = np.repeat([0, 1, 2], [12, 12, 10])
    levels, clusters = [k % 3 for k in range(34)], [k // 2 for k in range(34)]
    assert get_notes(count(by, levels, levels[::-1], clusters)) == [None, None, FEW_CLUSTERS]
    across = [k % 5 for k in range(34)]
    assert get_notes(count(by, levels, levels[::-1], across)) == [FEW_CLUSTERS] * 3


def test_too_much_work_leaves_no_verdict(monkeypatch):
    monkeypatch.setattr(differences, "MOST_NUMBERS", 1_000)
    assert set(get_notes(count(BY, GOLD, PREDICTED))) == {MUCH_WORK}
    most = np.full((2, 3, 3), 10**8)
    assert set(get_notes(ConfusionMatrix.from_counts(most, SCALE))) == {MUCH_WORK}


def test_a_subgroup_without_a_value_has_no_verdict_and_is_no_part_of_the_family():
    by, gold = [0] * 6 + [1] * 20 + [2] * 20, [1] * 6 + [0, 1, 2, 2] * 10
    predicted = [1] * 6 + [0, 1, 2, 1] * 5 + [0, 0, 2, 2] * 5
    kappa = [find_metric("quadratic_kappa")]
    assert get_notes(count(by, gold, predicted), kappa) == [UNDEFINED, None, None]


def test_a_metric_that_refuses_missing_predictions_has_no_verdict():
    parts = count(BY, GOLD, PREDICTED)
    unanswered = np.zeros((3, 3))
    unanswered[0, 1] = 1
    parts = ConfusionMatrix.from_counts(parts.counts, SCALE, unanswered)
    assert get_notes(parts, [find_metric("kendall_tau_b")]) == [UNDEFINED] * 3
    assert get_notes(parts) == [None] * 3


# --- intervals -----------------------------------------------------------------------------------


def estimate_of(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half, "delta")


def test_few_items_leave_an_interval_to_shares_alone():
    one, rest, test = estimate_of(0.5, 0.2), estimate_of(0.7, 0.1), SubgroupTest(0.01, 0.02)
    for name, items, known in (("mae", 20, True), ("mae", 19, False), ("accuracy", 1, True)):
        found = estimate_difference_from_rest(find_metric(name), one, rest, items, test)
        assert found.value == one.value - rest.value
        assert (found.low == estimate_difference(one, rest).low) == known
        assert found.note == (None if known else FEW_ITEMS_NOTE)
        assert (found.p, found.p_adjusted, found.p_note) == test


def test_integer_weights_are_counts_of_items():
    """In the rule of few items, and in deals."""
    columns = ([1, 1, 2, 2, 3, 3] * 2, [1, 1, 2, 2, 3, 2, 3, 1, 3, 2, 1, 1], ["a"] * 6 + ["b"] * 6)
    weights = [5] * 6 + [500] * 6
    gold, predicted, by = columns
    weighted = evaluate(gold, predicted, "1..3", ["mae"], by=by, weights=weights)
    gold, predicted, by = (np.repeat(column, weights) for column in columns)
    expanded = evaluate(gold, predicted, "1..3", ["mae"], by=by)
    assert weighted.document().verdict == expanded.document().verdict
    assert "Significantly different from the rest" in weighted.document().verdict


def test_items_of_fractional_weights_count_by_what_they_are_worth():
    """Of 40 items, 4 have all but the whole weight: of 20 in a subgroup, 2."""
    gold, by = [1, 2] * 20, ["a"] * 20 + ["b"] * 20
    predicted = [2, *gold[1:]]
    for heavy, light, note in ((0.1, 0.1, None), (100.5, 0.5, FEW_ITEMS_NOTE)):
        weights = ([heavy] * 2 + [light] * 18) * 2
        found = evaluate(gold, predicted, "1..3", ["mae"], by=by, weights=weights)
        assert found.by["a"].difference_from_rest["mae"].note == note
