"""Judging metrics: values, resamples and limits equal what plain loops over pairs and cases say."""

import json
import math
from itertools import combinations, permutations

import numpy as np
import pytest
from naive import NAIVE
from panels import panel_of, sampled
from scipy import stats

import ordinate
from ordinate.errors import BadOption, NotApplicable, UnknownMetric
from ordinate.inference.resampling import Resampling
from ordinate.meta.coverage import compute_coverage
from ordinate.meta.meta_evaluation import (
    COMPARED_METRICS,
    EVALUATED_METRICS,
    REFERENCE_METRICS,
    compute_merits,
    evaluate_metrics,
)
from ordinate.meta.random_cases import draw_case_sizes, split_into_cases
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
from ordinate.metrics.catalogue import CATALOGUE
from ordinate.render import render

NAN = math.nan
NOISES = (0.4, 0.6, 0.8, 1.1, 1.6)


def merits_with(seed, holes=0.0, shape=(4, 6, 5)):
    """Merits of metrics, systems and test cases, with ties and undefined values."""
    rng = np.random.default_rng(seed)
    merits = (rng.integers(0, 5, (1, shape[1], 1)) + rng.integers(0, 5, shape)) / 10.0
    return np.where(rng.random(shape) < holes, NAN, merits)


def panel_with_cases(cases=12, size=25, seed=1, **options):
    gold, systems = sampled(4, cases * size, seed, NOISES)
    groups = [f"t{index // size:02}" for index in range(cases * size)]
    return panel_of(gold, systems, 4, groups=groups, **options)


@pytest.fixture(scope="module")
def panel():
    return panel_with_cases()


@pytest.fixture(scope="module")
def result(panel):
    return evaluate_metrics(panel, resamples=200)


# --- in plain loops ------------------------------------------------------------------------------


def mean(values):
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else NAN


def rank_correlation(first, second):
    one, other = [round(a, 9) for a in first], [round(b, 9) for b in second]
    if len(set(one)) < 2 or len(set(other)) < 2:
        return NAN
    return float(stats.spearmanr(one, other).statistic)


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
    with pytest.raises(NotApplicable, match="no whole counts cannot be split"):
        evaluate_metrics(panel_of(gold, systems, 3, weights=[1.5] * 30))


def test_real_weights_are_fine_where_test_cases_are_named():
    panel = panel_with_cases(cases=4, weights=np.linspace(0.5, 1.5, 100))
    found = evaluate_metrics(panel, "cem_ord,mae", "accuracy,pearson", resamples=100)
    assert 0 < found.best.coverage.value <= 1
    with pytest.raises(NotApplicable, match=r"whole counts, .*\. Name other references\.$"):
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
    merits = np.stack([compute_merits(one.metric, tables) for one in result.evaluation])
    ideal = np.stack([compute_merits(find_metric(name), tables) for name in REFERENCE_METRICS])
    names = [one.metric.expression for one in result.evaluation]
    assert names == list(EVALUATED_METRICS)
    assert set(COMPARED_METRICS) | set(REFERENCE_METRICS) <= set(names)
    improved = compute_improvements(ideal)
    covered = compute_coverage(average_merits(merits), compute_unanimous_improvement(improved))
    assert [one.coverage.value for one in result.evaluation] == pytest.approx(covered.tolist())
    assert [one.robustness.value for one in result.evaluation] == pytest.approx(
        compute_robustness(merits).tolist()
    )
    drawn = resample_statistics(merits, improved, Resampling(200, 0))
    low, high = np.nanquantile(drawn.robustness[:, 0], [0.025, 0.975])
    shift = result.evaluation[0].robustness.value - np.nanmean(drawn.robustness[:, 0])
    low, high = (np.clip(end + shift, -1, 1) for end in (low, high))
    assert (
        result.evaluation[0].robustness.low,
        result.evaluation[0].robustness.high,
    ) == pytest.approx((low, high))
    assert result.unanimous == pytest.approx(compute_unanimous_improvement(improved))
    assert [one.coverage.value for one in result.ranked] == sorted(covered, reverse=True)


def test_the_same_seed_gives_the_same_judgement(panel):
    once, again = (
        evaluate_metrics(panel, "cem_ord,mae", resamples=100, seed=3).to_dict() for _ in range(2)
    )
    assert once == again
    assert evaluate_metrics(panel, "cem_ord,mae", resamples=100, seed=4).to_dict() != once


@pytest.fixture
def catalogue():
    known = dict(CATALOGUE)
    yield
    CATALOGUE.clear()
    CATALOGUE.update(known)


@pytest.mark.usefixtures("catalogue")
def test_a_metric_of_my_own_is_judged_like_any_other(panel):
    @ordinate.metric(direction="minimize")
    def surprising_misses(table):
        """Share of items that are off by two levels or more."""
        return (table.counts * (table.scale.gaps >= 2)).sum(axis=(-2, -1)) / table.total

    mine = evaluate_metrics(panel, [surprising_misses, "mse"], resamples=100)
    assert mine.evaluation[0].metric is surprising_misses
    assert 0 < mine.evaluation[0].coverage.value <= 1


def test_strict_unanimity_takes_a_gain_for_every_reference(panel):
    weak, strict = (
        evaluate_metrics(panel, "mae", resamples=100, unanimity=kind) for kind in ("weak", "strict")
    )
    tables = [panel.count_by_group(system) for system in panel.systems]
    ideal = [compute_merits(find_metric(name), tables) for name in REFERENCE_METRICS]
    for one, other in permutations(range(5), 2):
        ratio = naive_ratio(ideal, one, other, range(12), strict=True)
        assert strict.unanimous[one, other] == pytest.approx(ratio)
    assert (weak.unanimous != strict.unanimous).any()


def test_a_perfect_order_of_systems_is_captured_by_all():
    """Where each system beats the next one everywhere, every pair is told by everybody."""
    gold = [0, 1, 2, 3] * 60
    systems = {
        f"s{k}": [3 - g if (i // 4) % 6 < k else g for i, g in enumerate(gold)] for k in range(4)
    }
    panel = panel_of(gold, systems, 4, groups=[i // 24 for i in range(240)])
    found = evaluate_metrics(panel, "accuracy,mae,cem_ord", resamples=100)
    assert [one.robustness.value for one in found.evaluation] == pytest.approx([1.0] * 3)
    assert [one.stability.value for one in found.evaluation] == pytest.approx([1.0] * 3)
    for one in found.evaluation:
        assert one.stability.low == one.stability.high == 1.0
        assert one.robustness.low <= one.robustness.value <= one.robustness.high == 1.0
    assert found.unanimous[np.triu_indices(4, 1)].tolist() == [1.0] * 6


# --- what is undefined ---------------------------------------------------------------------------


def test_a_metric_that_refuses_has_a_row_with_the_reason():
    gold, systems = sampled(4, 200, 1, NOISES)
    systems["s0"] = [None, *systems["s0"][1:]]
    panel = panel_of(gold, systems, 4, groups=[i // 20 for i in range(200)])
    found = evaluate_metrics(panel, "cem_ord,pearson,mae", "accuracy,cem_ord", resamples=100)
    last = found.ranked[-1]
    assert last.metric.name == "pearson"
    assert last.reason == "it has no meaning for items without a prediction"
    plain = found.to_dict()["metrics"]["pearson"]
    values = (plain["coverage"]["value"], plain["stability"]["value"], plain["undefined"])
    assert values == (None,) * 3
    assert plain["ranked"] is False
    assert plain["reason"] in render(found)
    assert found.to_dict()["agreement"]["pearson"]["mae"]["value"] is None
    with pytest.raises(NotApplicable, match="reference kendall_tau_a cannot be taken: it has no"):
        evaluate_metrics(panel, resamples=100)
    with pytest.raises(
        NotApplicable, match=r"None of the metrics can be taken\. pearson: it has no"
    ):
        evaluate_metrics(panel, "pearson", "accuracy", resamples=100)


def test_a_metric_that_is_constant_is_nan_with_reasons_and_last():
    gold, systems = sampled(4, 200, 1, NOISES)
    panel = panel_of(gold, systems, 4, groups=[i // 20 for i in range(200)])
    found = evaluate_metrics(panel, ["accuracy_within(n=3)", "mae"], resamples=100)
    last = found.ranked[-1]
    assert last.metric.expression == "accuracy_within(n=3)"
    assert last.reason.count(";") == 2
    assert math.isnan(last.coverage.value)
    assert last.discriminative_power == 0.0
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["metrics"]["accuracy_within(n=3)"]["robustness"]["value"] is None
    assert "undefined" in render(found)


def test_values_that_are_undefined_in_a_test_case_are_counted():
    gold = [0, 1, 2] * 40
    systems = {
        "a": [1] * 12 + gold[12:],  # constant in the first two test cases
        "b": [(g + (i % 5 == 0)) % 3 for i, g in enumerate(gold)],
        "c": [(g + (i % 3 == 0)) % 3 for i, g in enumerate(gold)],
    }
    panel = panel_of(gold, systems, 3, groups=[i // 6 for i in range(120)])
    found = evaluate_metrics(panel, "kendall_tau_b,accuracy", resamples=100)
    assert found.evaluation[0].undefined == pytest.approx(2 / 60)
    assert found.evaluation[1].undefined == 0.0
    silent = evaluate_metrics(panel, "accuracy", "kendall_tau_b", resamples=100)
    assert any("A reference is undefined in 3.3 %" in note for note in silent.to_dict()["notes"])


def partial_panel():
    """Four systems; two of them answer always the same, and so have no correlation."""
    gold, systems = sampled(4, 240, 3, (0.5, 0.9))
    systems |= {"s2": [1] * 240, "s3": [2] * 240}
    return panel_of(gold, systems, 4, groups=[i // 20 for i in range(240)])


def test_a_metric_that_is_undefined_for_systems_is_listed_apart_and_leads_nobody():
    found = evaluate_metrics(partial_panel(), "kendall_tau_b,mae,accuracy", resamples=200)
    partial, whole, _ = found.evaluation
    assert partial.coverage.value == 1.0 >= whole.coverage.value  # over two systems it is 1 or -1
    assert found.best is not partial
    assert found.ranked[-1] is partial
    assert partial.unranked == "it is defined for 2 of 4 systems"
    assert partial.behind is None
    plain = found.to_dict()["metrics"]["kendall_tau_b"]
    assert plain["ranked"] is False
    assert "it is defined for 2 of 4 systems" in plain["reason"]
    assert found.to_dict()["metrics"]["mae"]["ranked"] is True
    text = " ".join(str(found).split())
    apart = text.partition("Metrics that are not ranked")[2].partition("Coverage is")[0]
    assert "kendall_tau_b 1.000" in apart
    assert "it is defined for 2 of 4 systems" in apart
    assert "mae" not in apart
    alike = text.partition("JSON has all pairs")[2].partition("Unanimous improvement")[0]
    assert "mae accuracy" in alike
    assert "mae kendall_tau_b" not in alike  # over two systems
    assert text.partition("captures most")[0].endswith(
        f"{found.best.metric.expression}, one of them, "
    )


def test_the_best_metric_is_the_one_that_others_are_behind():
    found = evaluate_metrics(partial_panel(), "kendall_tau_b,mae,accuracy,pearson", resamples=200)
    behind = [one for one in found.evaluation if one.behind is not None]
    assert len(behind) == 1
    for one in behind:
        gap = one.coverage.value - found.best.coverage.value
        assert one.behind.value == pytest.approx(gap)


def test_where_no_metric_knows_the_systems_of_all_others_none_is_best():
    gold, systems = sampled(4, 240, 3, (0.5, 0.9, 1.3))
    panel = panel_of(gold, systems | {"s3": [1] * 240}, 4, groups=[i // 20 for i in range(240)])
    found = evaluate_metrics(panel, "kendall_tau_b", resamples=100)
    assert found.best is found.evaluation[0]  # nobody knows the fourth system
    assert evaluate_metrics(panel, "kendall_tau_b,mae", resamples=100).best.metric.name == "mae"


def test_without_limits_nothing_is_best_and_the_reason_is_said():
    """The reference is defined for two systems, and most resamples lack one of them."""
    found = evaluate_metrics(partial_panel(), "mae,accuracy", "kendall_tau_b", resamples=200)
    assert found.best is None
    assert [one.behind for one in found.evaluation] == [None, None]
    most = "it is undefined in most of the resamples"
    for one in found.evaluation:
        assert (math.isnan(one.coverage.value), one.coverage.note) == (False, most)
        assert one.reason == f"its coverage has no limits: {most}"
    plain = found.to_dict()
    assert most in plain["metrics"]["mae"]["reason"]
    assert f"mae and accuracy: its coverage has no limits: {most}." in plain["notes"]
    text = " ".join(str(found).split())
    assert f"Of no metric can be said that it captures most of kendall_tau_b: {most}." in text


def test_the_note_on_draws_without_coverage_names_the_metrics():
    gold, systems = sampled(4, 240, 3, (0.5, 0.9, 1.2, 1.5))
    panel = panel_of(gold, systems | {"s4": [1] * 240}, 4, groups=[i // 20 for i in range(240)])
    notes = evaluate_metrics(panel, "mae,kendall_tau_b,bias", resamples=300).to_dict()["notes"]
    (note,) = [note for note in notes if "have no coverage" in note]
    assert note.endswith("left out, of mae, kendall_tau_b and bias.")


# --- infinite values -----------------------------------------------------------------------------


@pytest.mark.usefixtures("catalogue")
def test_nobody_gains_by_being_infinitely_bad(panel):
    """Without its worst test case the worst system would be the best one."""

    @ordinate.metric(direction="minimize")
    def endless(table):
        """Mean error, infinite where fewer than a third of the items are right."""
        right = np.trace(table.counts, axis1=-2, axis2=-1) / table.total
        error = (table.counts * table.scale.gaps).sum(axis=(-2, -1)) / table.total
        return np.where(right < 0.34, np.inf, np.where(right < 0.5, 0.0, error))

    tables = [panel.count_by_group(system) for system in panel.systems]
    merits = compute_merits(endless, tables)
    worst = np.isneginf(merits).any(axis=1)
    assert worst.any()
    assert not worst.all()
    assert not np.isnan(merits).any()
    means = average_merits(merits[None])[0]
    assert np.isneginf(means[worst]).all()
    assert np.isfinite(means[~worst]).all()
    found = evaluate_metrics(panel, [endless, "mae"], resamples=100)
    own = found.evaluation[0]
    assert own.undefined == 0.0
    assert own.infinite == pytest.approx(np.isinf(merits).mean())
    assert own.discriminative_power == 0.0
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["metrics"]["endless"]["coverage"]["value"] == pytest.approx(own.coverage.value)
    assert any("Infinite for a system in a test case, endless" in n for n in plain["notes"])


def test_infinite_means_are_ranked_and_two_of_them_have_no_difference():
    merits = np.array([[0.9, -math.inf, 0.5, -math.inf], [0.4, 0.3, 0.2, 0.1]])
    ratios = np.array([[0, 1, 0.5, 1], [-1, 0, 0, 0], [-0.5, 0, 0, 0.5], [-1, 0, -0.5, 0]])
    gains, wanted = [], []
    for one, other in permutations(range(4), 2):
        if {one, other} != {1, 3}:
            high = {0: 0.9, 1: -99.0, 2: 0.5, 3: -99.0}
            gap = high[one] - high[other]
            gains.append(math.copysign(99.0, gap) if abs(gap) > 9 else gap)
            wanted.append(ratios[one, other])
    expected = rank_correlation(gains, wanted)
    assert compute_coverage(merits, ratios)[0] == pytest.approx(expected)
    gained = np.repeat(ratios[np.triu_indices(4, 1)][:, None], 3, axis=1)
    drawn = compute_resampled_coverage(merits, gained, np.ones(4), np.ones(3))
    assert drawn == pytest.approx(compute_coverage(merits, ratios))


# --- too little, and bad options -----------------------------------------------------------------


def test_two_systems_are_too_few():
    gold, systems = sampled(3, 30, 0, NOISES[:2])
    with pytest.raises(BadOption, match="takes 3 systems or more, not 2"):
        evaluate_metrics(panel_of(gold, systems, 3))
    gold, systems = sampled(3, 30, 0, NOISES[:3])


def test_a_single_test_case_is_split_at_random_like_none():
    gold, systems = sampled(3, 60, 0, NOISES[:3])
    one = evaluate_metrics(
        panel_of(gold, systems, 3, groups=["only"] * 60), "mae", resamples=100, cases=6
    )
    none = evaluate_metrics(panel_of(gold, systems, 3), "mae", resamples=100, cases=6)
    assert one.panel == none.panel
    assert one.to_dict()["metrics"] == none.to_dict()["metrics"]
    assert one.was_split
    note = "only is the only test case: the items were split at random into 6 parts"
    assert any(text.startswith(note) for text in one.to_dict()["notes"])


def test_few_systems_or_test_cases_are_said_to_be_rough(result):
    assert "5 systems are few: all limits are rough." in result.to_dict()["notes"]
    few = evaluate_metrics(panel_with_cases(cases=3), "mae", resamples=100).to_dict()["notes"]
    assert "5 systems and 3 test cases are few: all limits are rough." in few


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level": 1.0}, BadOption, "level of intervals is 0.5 to below 1"),
        ({"resamples": 10}, BadOption, "10 resamples are too few"),
        ({"seed": -1}, BadOption, "seed must be a whole number"),
        ({"alpha": 0.0}, BadOption, "alpha is the level of tests"),
        ({"alpha": 0.001, "resamples": 100}, BadOption, "from 1 / \\(resamples \\+ 1\\)"),
        ({"unanimity": "loose"}, BadOption, "not one of weak, strict"),
        ({"metrics": "nothing"}, UnknownMetric, "no metric 'nothing'"),
        ({"references": ()}, BadOption, "No metric was named"),
    ],
)
def test_options_that_make_no_sense_are_refused(panel, options, error, message):
    with pytest.raises(error, match=message):
        evaluate_metrics(panel, **options)


# --- reports -------------------------------------------------------------------------------------


def test_the_json_report_has_everything_under_its_name(panel, result):
    found = json.loads(render(result, "json"))
    assert (found["schema"], found["task"], found["test_cases"]) == (1, "meta", 12)
    assert found["systems"] == list(panel.systems)
    assert found["references"] == list(REFERENCE_METRICS)
    assert list(found["metrics"]) == list(EVALUATED_METRICS)
    one = found["metrics"]["cem_ord"]
    for measure in (one["coverage"], one["robustness"], one["stability"]):
        assert {"value", "low", "high"} <= set(measure)
        assert measure["low"] <= measure["value"] <= measure["high"]
    assert one["coverage"]["low"] <= one["coverage"]["value"] <= one["coverage"]["high"]
    assert 0 <= one["discriminative_power"] <= 1
    assert one["reason"] is None
    assert found["agreement"]["mae"]["mae"]["value"] == 1.0
    alike = found["agreement"]["mae"]["bias"]
    assert alike["low"] <= alike["value"] <= alike["high"]
    ratios = found["unanimous_improvement"]
    assert ratios["s0"]["s4"] == -ratios["s4"]["s0"] > 0
    best = [name for name, row in found["metrics"].items() if row["behind_best"] is None]
    assert best == [result.best.metric.expression]


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
def test_every_form_names_every_metric(result, form):
    text = render(result, form).replace("\\_", "_")
    assert all(name in text for name in EVALUATED_METRICS)


def test_the_text_says_what_leads_and_whether_that_is_sure(result):
    text = " ".join(str(result).split())
    best = result.best
    assert f"{best.metric.expression}" in text
    assert "captures most of accuracy, kendall_tau_a and mutual_information: coverage 0." in text
    assert "is not significantly different from" in text
    assert "never of pairs" in text
    assert result._repr_html_().startswith("<")


def test_many_systems_are_ranked_instead_of_shown_in_pairs():
    gold, systems = sampled(4, 240, 1, np.linspace(0.3, 2.0, 33))
    panel = panel_of(gold, systems, 4, groups=[i // 20 for i in range(240)])
    text = str(evaluate_metrics(panel, "mae", resamples=100))
    assert "3 more systems are in the JSON report" in text
    assert "is improved by" in text


def test_irregular_lines_are_shown_by_kind_with_their_counts():
    lacking = {"kind": "id that the run lacks", "line": None}
    kinds = [
        {"file": "a.tsv", "kind": "label off the scale", "count": 1234, "line": 7, "example": "x"},
        {"file": "b.tsv", "count": 2, "example": "y", **lacking},
        {"file": "c.tsv", "count": 3, "example": "z", **lacking},
    ]
    found = evaluate_metrics(panel_with_cases(), "mae", resamples=100, irregular=kinds)
    assert found.to_dict()["irregular"] == kinds
    lines = [line.split("  ") for line in str(found).splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["label off the scale", "1,234", "1", "a.tsv:7", "x"] in rows
    assert ["id that the run lacks", "5", "2", "b.tsv", "y"] in rows


def test_a_reference_that_leads_is_called_one_and_the_best_other_is_named(panel):
    found = evaluate_metrics(panel, "mae,bias", "mae", resamples=100)
    text = " ".join(str(found).split())
    assert "mae, one of them, captures most of mae: coverage" in text
    assert "Of the metrics that are no references, bias does: coverage" in text


def test_a_metric_without_coverage_is_no_leader():
    gold = [0, 1, 2] * 20
    systems = dict.fromkeys(("a", "b", "c"), gold)  # all perfect
    panel = panel_of(gold, systems, 3, groups=[i // 6 for i in range(60)])
    found = evaluate_metrics(panel, "mae", resamples=100)
    text = " ".join(str(found).split())
    assert "Of no metric can be said that it captures most of accuracy, kendall_tau_a and" in text
    assert "mutual_information: the metric, or the unanimous improvement, is the same for" in text
    assert found.unanimous.tolist() == [[0.0] * 3] * 3
    assert found.best is None
    assert found.evaluation[0].discriminative_power == 0.0
