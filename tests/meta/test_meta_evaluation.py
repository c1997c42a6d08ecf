"""Meta-evaluation: values, resamples and intervals are those of plain loops over pairs."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from meta_cases import NAN, NOISES, panel_with_cases, rank_correlation
from naive import NAIVE
from panels import panel_of, sampled
from scipy import stats

import ordinate
from ordinate.errors import BadOption, NotApplicable
from ordinate.inference.resampling import Resampling
from ordinate.meta.coverage import compute_coverage
from ordinate.meta.meta_evaluation import (
    COMPARED_METRICS,
    EVALUATED_METRICS,
    REFERENCE_METRICS,
    compute_merits,
    draw_case_sizes,
    evaluate_metrics,
    split_into_cases,
)
from ordinate.meta.robustness import average_merits, compute_robustness
from ordinate.meta.system_resampling import (
    HALF_SPLITS,
    compare_with_best,
    compute_resampled_coverage,
    compute_resampled_stability,
    draw_multiplicities,
    draw_pairs,
    estimate_intervals,
    resample_statistics,
)
from ordinate.meta.unanimity import compute_improvements, compute_unanimous_improvement
from ordinate.metrics import find_metric


def merits_with(seed, holes=0.0, shape=(4, 6, 5)):
    """Merits of metrics, systems and test cases, with ties and undefined values."""
    rng = np.random.default_rng(seed)
    merits = (rng.integers(0, 5, (1, shape[1], 1)) + rng.integers(0, 5, shape)) / 10.0
    return np.where(rng.random(shape) < holes, NAN, merits)


# --- in plain loops ------------------------------------------------------------------------------


def mean(values):
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else NAN


def naive_ratio(references, one, other, cases, *, strict=False):
    """The unanimous improvement ratio of two systems over a list of test cases."""

    def improves(first, second, case):
        gains = [table[first][case] - table[second][case] for table in references]
        if any(map(math.isnan, gains)):
            return False
        return all(gain > 1e-9 if strict else gain > -1e-9 for gain in gains)

    wins = sum(improves(one, other, case) for case in cases)
    return (wins - sum(improves(other, one, case) for case in cases)) / len(cases)


def naive_coverage(table, references, systems, cases, *, strict=False):
    """Coverage over lists of systems and test cases, in which some may stand several times."""
    means = {s: mean([table[s][case] for case in cases]) for s in systems}
    gains, ratios = [], []
    for one, other in permutations(systems, 2):
        if one != other and not math.isnan(means[one] - means[other]):
            gains.append(means[one] - means[other])
            ratios.append(naive_ratio(references, one, other, cases, strict=strict))
    return rank_correlation(gains, ratios)


# --- unanimous improvement and coverage ----------------------------------------------------------


@pytest.mark.parametrize("unanimity", ["weak", "strict"])
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_coverage_is_the_correlation_of_gains_and_unanimous_improvements(seed, holes, unanimity):
    merits = merits_with(seed, holes)
    ratios = compute_unanimous_improvement(compute_improvements(merits[:2], unanimity))
    strict = unanimity == "strict"
    for one, other in permutations(range(6), 2):
        expected = naive_ratio(merits[:2], one, other, range(5), strict=strict)
        assert ratios[one, other] == pytest.approx(expected)
    found = compute_coverage(average_merits(merits), ratios)
    for table, value in zip(merits, found, strict=True):
        expected = naive_coverage(table, merits[:2], range(6), range(5), strict=strict)
        assert value == pytest.approx(expected, nan_ok=True)


# --- resamples
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.0, 0.25])
@pytest.mark.parametrize("seed", range(3))
def test_a_draw_is_what_copies_of_systems_and_test_cases_would_give(seed, holes):
    """Self-pairs, of systems and of test cases, are left out; nothing else is."""
    merits = merits_with(seed, holes)
    drawn = resample_statistics(merits, compute_improvements(merits[:2]), Resampling(100, seed))
    times = draw_multiplicities(np.random.default_rng([seed, 0]), merits, 100)
    for draw in range(15):
        systems, cases = (np.repeat(range(n.shape[1]), n[draw].astype(int)) for n in times)
        pairs = [(a, b) for a, b in combinations(cases, 2) if a != b]
        for index, table in enumerate(merits):
            expected = naive_coverage(table, merits[:2], systems.tolist(), cases.tolist())
            assert drawn.coverage[draw, index] == pytest.approx(expected, nan_ok=True)
            robust = []
            for a, b in pairs:
                both = [s for s in systems if not math.isnan(table[s, a] + table[s, b])]
                robust.append(rank_correlation(table[both, a], table[both, b]))
            assert drawn.robustness[draw, index] == pytest.approx(mean(robust), nan_ok=True)
        means = [[mean(table[s, cases]) for s in systems] for table in merits]
        for one, other in combinations(range(len(merits)), 2):
            both = [k for k in range(6) if not math.isnan(means[one][k] + means[other][k])]
            alike = rank_correlation(*([means[m][k] for k in both] for m in (one, other)))
            assert drawn.agreement[draw, one, other] == pytest.approx(alike, nan_ok=True)


@pytest.mark.parametrize("holes", [0.0, 0.25])
def test_stability_of_a_draw_splits_its_distinct_test_cases(holes):
    merits = merits_with(5, holes, (2, 6, 9))
    systems, cases = draw_multiplicities(np.random.default_rng(1), merits, 20)
    found = compute_resampled_stability(np.random.default_rng(2), merits, systems, cases)
    rng = np.random.default_rng(2)
    keys = np.stack([rng.random(cases.shape) for _ in range(HALF_SPLITS)])
    for draw in range(20):
        there = np.flatnonzero(cases[draw])
        drawn = np.repeat(range(6), systems[draw].astype(int))
        half = len(there) // 2
        for index, table in enumerate(merits):
            values = []
            for key in keys[:, draw]:
                order = there[np.argsort(key[there])]
                halves = (order[:half], order[half : 2 * half])
                copies = [np.repeat(part, cases[draw, part].astype(int)) for part in halves]
                means = [[mean(table[s, part]) for s in drawn] for part in copies]
                both = [k for k in range(6) if not math.isnan(means[0][k] + means[1][k])]
                values.append(rank_correlation(*([side[k] for k in both] for side in means)))
            assert found[draw, index] == pytest.approx(mean(values), nan_ok=True)


def test_pairs_of_a_draw_are_of_its_test_cases_as_often_as_they_are_drawn():
    cases = np.array([[0, 3, 1, 0], [1, 1, 1, 1]])
    pairs = draw_pairs(np.random.default_rng(0), cases, 4000)
    shares = np.stack([np.bincount(row.ravel(), minlength=4) for row in pairs]) / 8000
    assert shares == pytest.approx(cases / 4, abs=0.03)
    assert (shares[0, [0, 3]] == 0).all()


def test_drawing_everything_once_gives_the_values_themselves():
    merits = merits_with(2, 0.2)
    improved = compute_improvements(merits[:2])
    gained = improved[np.triu_indices(6, 1)]
    found = compute_resampled_coverage(average_merits(merits), gained, np.ones(6), np.ones(5))
    ratios = compute_unanimous_improvement(improved)
    assert found == pytest.approx(compute_coverage(average_merits(merits), ratios), nan_ok=True)


def test_draws_are_the_same_for_the_same_seed_and_for_whatever_metrics():
    merits = merits_with(4)
    improved = compute_improvements(merits[:2])
    whole = resample_statistics(merits, improved, Resampling(250, 3))
    again = resample_statistics(merits, improved, Resampling(250, 3))
    alone = resample_statistics(merits[2:3], improved, Resampling(250, 3))
    other = resample_statistics(merits, improved, Resampling(250, 4))
    assert np.array_equal(whole.coverage, again.coverage, equal_nan=True)
    assert whole.coverage[:, 2] == pytest.approx(alone.coverage[:, 0], nan_ok=True)
    assert whole.robustness[:, 2] == pytest.approx(alone.robustness[:, 0], nan_ok=True)
    assert not np.array_equal(whole.coverage, other.coverage, equal_nan=True)


def test_each_draw_takes_as_many_systems_and_test_cases_as_there_are():
    systems, cases = draw_multiplicities(np.random.default_rng(0), merits_with(0), 50)
    assert (systems.sum(axis=1) == 6).all()
    assert (cases.sum(axis=1) == 5).all()


# --- limits --------------------------------------------------------------------------------------


def test_limits_are_shifted_percentiles_of_the_defined_draws_and_the_others_are_counted():
    drawn = np.arange(100.0)[:, None] / 150.0
    drawn[::5] = NAN
    (found,) = estimate_intervals(np.array([0.5]), drawn, 0.9, "none")
    defined = drawn[np.isfinite(drawn)]
    low, high = np.quantile(defined, [0.05, 0.95]) + 0.5 - defined.mean()
    assert (found.low, found.high) == pytest.approx((low, high))
    (near,) = estimate_intervals(np.array([0.95]), drawn, 0.9, "none")
    assert near.low == pytest.approx(low + 0.45)
    assert near.high == 1.0
    assert found.undefined_share == pytest.approx(0.2)


def test_there_are_no_limits_where_most_draws_are_undefined():
    drawn = np.full((100, 1), NAN)
    drawn[:40] = 0.5
    (found,) = estimate_intervals(np.array([0.5]), drawn, 0.9, "none")
    assert (math.isnan(found.low), found.value) == (True, 0.5)
    assert found.note == "it is undefined in most of the resamples"


def test_the_gap_to_the_best_has_limits_that_hold_for_all_pairs_of_metrics():
    rng = np.random.default_rng(0)
    values = np.array([0.5, 0.9, NAN, 0.8, 0.1])
    drawn = np.where(np.isnan(values), 0.0, values) + rng.normal(
        0, [0.1, 0.02, 1, 0.05, 0.3], (500, 5)
    )
    found = compare_with_best(values, drawn, 0.9, 1, [3, 0, 4])
    assert set(found) == {0, 3, 4}
    pairs = list(combinations([0, 1, 3, 4], 2))
    errors = {(a, b): np.std(drawn[:, a] - drawn[:, b], ddof=1) for a, b in pairs}
    reach = [
        np.abs(drawn[:, a] - drawn[:, b] - (values[a] - values[b])) / errors[a, b] for a, b in pairs
    ]
    widest = np.quantile(np.max(reach, axis=0), 0.9, method="higher")
    for index in (0, 3, 4):
        half = widest * errors[min(index, 1), max(index, 1)]
        gap = values[index] - 0.9
        assert found[index].value == pytest.approx(gap)
        assert (found[index].low, found[index].high) == pytest.approx((gap - half, gap + half))


def test_metrics_that_never_differ_have_no_gap():
    values = np.array([0.9, 0.9])
    drawn = np.repeat(np.random.default_rng(0).normal(0.9, 0.1, (200, 1)), 2, axis=1)
    gap = compare_with_best(values, drawn, 0.95, 0, [1])[1]
    assert (gap.value, gap.low, gap.high) == (0.0, 0.0, 0.0)


def test_no_gap_is_wider_than_two_correlations_can_be_apart():
    drawn = np.random.default_rng(0).normal(0, 1, (200, 2)).clip(-1, 1)
    gap = compare_with_best(np.array([0.9, -0.9]), drawn, 0.95, 0, [1])[1]
    assert gap.low == -2.0


def test_there_are_no_gaps_where_most_draws_lack_a_metric():
    drawn = np.random.default_rng(0).normal(0, 1, (200, 2))
    drawn[:101, 1] = NAN
    assert compare_with_best(np.array([0.9, 0.8]), drawn, 0.95, 0, [1]) == {}


# --- test cases at random ------------------------------------------------------------------------


def test_every_item_goes_to_one_test_case_and_all_are_of_equal_size():
    gold, systems = sampled(4, 203, 0, NOISES[:3])
    panel = panel_of(gold, systems, 4)
    found = split_into_cases(panel, 10, 0)
    sizes = np.bincount(found.groups, weights=found.items)
    assert sorted(sizes) == [20] * 7 + [21] * 3
    assert found.n == 203
    for system in panel.systems:
        assert np.array_equal(
            found.count_by_group(system).pooled.weights, panel.confusion_matrix(system).weights
        )
    assert split_into_cases(panel, 10, 0) == found
    assert split_into_cases(panel, 10, 1) != found


def test_items_are_shared_out_as_if_they_were_dealt_one_by_one():
    counts = np.array([6, 3, 1])
    rng = np.random.default_rng(1)
    dealt = np.array([draw_case_sizes(counts, 2, rng)[0] for _ in range(4000)])
    assert (dealt.sum(axis=1) == 5).all()
    seen = np.bincount(dealt[:, 0], minlength=7)[2:6]
    expected = stats.hypergeom(10, 6, 5).pmf(range(2, 6)) * 4000
    assert np.abs(seen - expected).max() < 4 * math.sqrt(4000 * 0.25)


def test_weights_that_are_whole_count_as_items_and_others_are_refused():
    gold, systems = sampled(3, 30, 0, NOISES[:3])
    twice = panel_of(gold * 2, {k: v * 2 for k, v in systems.items()}, 3)
    assert split_into_cases(
        panel_of(gold, systems, 3, weights=[2.0] * 30), 5, 0
    ) == split_into_cases(twice, 5, 0)
    with pytest.raises(NotApplicable, match="no integer counts cannot be split"):
        evaluate_metrics(panel_of(gold, systems, 3, weights=[1.5] * 30))


def test_real_weights_are_fine_where_test_cases_are_named():
    panel = panel_with_cases(cases=4, weights=np.linspace(0.5, 1.5, 100))
    found = evaluate_metrics(panel, "cem_ord,mae", "accuracy,pearson", resamples=100)
    assert 0 < found.best.coverage.value <= 1
    with pytest.raises(NotApplicable, match=r"integer counts, .*\. Name other references\.$"):
        evaluate_metrics(panel, resamples=100)


@pytest.mark.parametrize("cases", [1, 31, 2.5, True])
def test_a_number_of_parts_that_makes_no_sense_is_refused(cases):
    gold, systems = sampled(3, 30, 0, NOISES[:3])
    with pytest.raises(BadOption, match="split into 2 to 30 "):
        evaluate_metrics(panel_of(gold, systems, 3), cases=cases)


# --- judging -------------------------------------------------------------------------------------


def test_values_are_those_of_each_test_case_turned_so_that_larger_is_better(panel):
    gold, systems = sampled(4, 300, 1, NOISES)
    positions = panel.scale.at
    for name, turn in (("cem_ord", 1), ("mae", -1), ("bias", 0)):
        found = compute_merits(
            find_metric(name), [panel.count_by_group(system) for system in panel.systems]
        )
        for row, answers in zip(found, systems.values(), strict=True):
            for case in range(12):
                part = slice(25 * case, 25 * case + 25)
                value = NAIVE[name](gold[part], answers[part], positions)
                expected = turn * value if turn else -abs(value)
                assert row[case] == pytest.approx(expected)


def test_a_judgement_has_the_values_of_its_parts(panel, result):
    tables = [panel.count_by_group(system) for system in panel.systems]
    merits = np.stack([compute_merits(one.metric, tables) for one in result.metrics])
    ideal = np.stack([compute_merits(find_metric(name), tables) for name in REFERENCE_METRICS])
    names = [one.metric.expression for one in result.metrics]
    assert names == list(EVALUATED_METRICS)
    assert set(COMPARED_METRICS) | set(REFERENCE_METRICS) <= set(names)
    improved = compute_improvements(ideal)
    covered = compute_coverage(average_merits(merits), compute_unanimous_improvement(improved))
    assert [one.coverage.value for one in result.metrics] == pytest.approx(covered.tolist())
    assert [one.robustness.value for one in result.metrics] == pytest.approx(
        compute_robustness(merits).tolist()
    )
    drawn = resample_statistics(merits, improved, Resampling(200, 0))
    low, high = np.nanquantile(drawn.robustness[:, 0], [0.025, 0.975])
    shift = result.metrics[0].robustness.value - np.nanmean(drawn.robustness[:, 0])
    low, high = (np.clip(end + shift, -1, 1) for end in (low, high))
    assert (
        result.metrics[0].robustness.low,
        result.metrics[0].robustness.high,
    ) == pytest.approx((low, high))
    assert result.unanimous_improvement == pytest.approx(compute_unanimous_improvement(improved))
    assert [one.coverage.value for one in result.ranked] == sorted(covered, reverse=True)


def test_the_same_seed_gives_the_same_judgement(panel):
    once, again = (
        evaluate_metrics(panel, "cem_ord,mae", resamples=100, seed=3).to_dict() for _ in range(2)
    )
    assert once == again
    assert evaluate_metrics(panel, "cem_ord,mae", resamples=100, seed=4).to_dict() != once


def test_a_metric_of_my_own_is_judged_like_any_other(panel):
    @ordinate.metric(direction="minimize")
    def surprising_misses(table):
        """Share of items that are off by two levels or more."""
        return (table.counts * (table.scale.gaps >= 2)).sum(axis=(-2, -1)) / table.total

    mine = evaluate_metrics(panel, [surprising_misses, "mse"], resamples=100)
    assert mine.metrics[0].metric is surprising_misses
    assert 0 < mine.metrics[0].coverage.value <= 1


def test_strict_unanimity_takes_a_gain_for_every_reference(panel):
    weak, strict = (
        evaluate_metrics(panel, "mae", resamples=100, unanimity=kind) for kind in ("weak", "strict")
    )
    tables = [panel.count_by_group(system) for system in panel.systems]
    ideal = [compute_merits(find_metric(name), tables) for name in REFERENCE_METRICS]
    for one, other in permutations(range(5), 2):
        ratio = naive_ratio(ideal, one, other, range(12), strict=True)
        assert strict.unanimous_improvement[one, other] == pytest.approx(ratio)
    assert (weak.unanimous_improvement != strict.unanimous_improvement).any()


def test_a_perfect_order_of_systems_is_captured_by_all():
    """Where each system beats the next one everywhere, every pair is told by everybody."""
    gold = [0, 1, 2, 3] * 60
    systems = {
        f"s{k}": [3 - g if (i // 4) % 6 < k else g for i, g in enumerate(gold)] for k in range(4)
    }
    panel = panel_of(gold, systems, 4, groups=[i // 24 for i in range(240)])
    found = evaluate_metrics(panel, "accuracy,mae,cem_ord", resamples=100)
    assert [one.robustness.value for one in found.metrics] == pytest.approx([1.0] * 3)
    assert [one.stability.value for one in found.metrics] == pytest.approx([1.0] * 3)
    for one in found.metrics:
        assert one.stability.low == one.stability.high == 1.0
        assert one.robustness.low <= one.robustness.value <= one.robustness.high == 1.0
    assert found.unanimous_improvement[np.triu_indices(4, 1)].tolist() == [1.0] * 6
