"""Plans: what a pilot foresees is what more items then show."""

import json
import math

import numpy as np
import pytest
from command import read_values
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from panels import by_label, labels, panel_of, sampled
from scipy import stats
from statsmodels.stats.power import NormalIndPower
from strategies import scale_of

from ordinate.errors import BadOption, NotApplicable, OrdinateError, UnequalLengths
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results.label_evaluation import evaluate
from ordinate.results.sample_size import (
    SampleSizePlan,
    SampleSizeSettings,
    compute_needed_items,
    compute_power,
    power,
)

SIZE = 4
SCALE = scale_of(SIZE)
Z = stats.norm.ppf(0.975)
GOLD, SYSTEMS = sampled(SIZE, 400, 3, [0.6, 0.9])
DRAWS = 2000


def planned(metric="mae", difference=None, gold=GOLD, systems=SYSTEMS, **options):
    options = {"scale": SCALE, "resamples": DRAWS} | options
    return power(labels(gold), by_label(systems), metric, difference, **options)


def item_gaps(gold=GOLD, systems=SYSTEMS):
    """For each item, how much farther off the first system is than the second."""
    first, second = (np.abs(np.array(x) - gold) for x in systems.values())
    return first - second


def simulated(metric, n, count, seed, gold=GOLD, systems=SYSTEMS):
    """Values [count, S] of a metric on n items, drawn one by one from those of the pilot."""
    rng = np.random.default_rng(seed)
    gold = np.array(gold)
    cells = np.zeros((count, len(systems), SIZE, SIZE + 1))
    for draw in range(count):
        who = rng.integers(len(gold), size=n)
        for place, answers in enumerate(systems.values()):
            np.add.at(cells[draw, place], (gold[who], np.array(answers)[who]), 1.0)
    table = panel_of(GOLD, SYSTEMS, SIZE).confusion_matrix("s0")
    return np.asarray(find_metric(metric)(table.with_cells(cells)))


# --- standard errors -----------------------------------------------------------------------------


def test_the_spread_of_a_mean_is_the_deviation_of_what_items_add():
    gaps = item_gaps()
    assert planned().spread == pytest.approx(gaps.std(), rel=1e-6)


@pytest.mark.parametrize("metric", ["quadratic_kappa", "cem_ord", "macro_mae", "f1_macro"])
def test_the_spread_of_other_metrics_is_the_deviation_of_what_a_little_of_each_item_adds(metric):
    panel = panel_of(GOLD, SYSTEMS, SIZE)
    pulls = []
    for name, answers in SYSTEMS.items():
        table = panel.confusion_matrix(name)
        more = np.repeat(table.weights[None], 400, axis=0)
        more[np.arange(400), GOLD, answers] += 1e-4
        values = [find_metric(metric)(table.with_cells(cells)) for cells in (more, table.weights)]
        pulls.append((values[0] - values[1]) / 1e-4 * 400)
    assert planned(metric).spread == pytest.approx((pulls[0] - pulls[1]).std(), rel=1e-4)


@pytest.mark.parametrize("metric", ["mae", "quadratic_kappa", "cem_ord", "accuracy", "macro_mae"])
@pytest.mark.parametrize("n", [200, 1200])
def test_foreseen_errors_are_those_of_samples_of_that_size(metric, n):
    """Two deviations, of 2,000 resamples and 800 samples: 4 errors are 12 %; 5 % for curvature."""
    plan = planned(metric, items=[n])
    found = simulated(metric, n, 800, seed=n)
    room = 4 * math.hypot(1 / math.sqrt(2 * DRAWS), 1 / math.sqrt(2 * 800)) + 0.05
    (outlook,) = plan.outlooks
    expected = 2 * Z * (found[:, 0] - found[:, 1]).std()
    assert outlook.difference_width == pytest.approx(expected, rel=room)
    assert plan.spread / math.sqrt(n) == pytest.approx(expected / 2 / Z, rel=room)
    for place, system in enumerate(SYSTEMS):
        assert outlook.widths[system] == pytest.approx(2 * Z * found[:, place].std(), rel=room)


def test_a_foreseen_width_is_that_of_the_interval_of_the_pilot():
    plan = planned("quadratic_kappa", items=[400])
    for name, answers in SYSTEMS.items():
        score = evaluate(labels(GOLD), labels(answers), SCALE, "quadratic_kappa").metrics
        found = score["quadratic_kappa"].estimate
        assert plan.outlooks[0].widths[name] == pytest.approx(found.width, rel=0.1)


def test_four_times_the_items_halve_the_widths():
    plan = planned(items=[100, 400, 1600], difference=0.1)
    one, two, three = plan.outlooks
    assert one.difference_width == pytest.approx(2 * two.difference_width)
    assert two.widths["s1"] == pytest.approx(2 * three.widths["s1"])
    assert one.power < two.power < three.power


def test_the_level_of_the_interval_widens_it():
    narrow, wide = planned(items=[100], interval=0.8), planned(items=[100], interval=0.99)
    ratio = stats.norm.ppf(0.995) / stats.norm.ppf(0.9)
    assert wide.outlooks[0].difference_width == pytest.approx(
        ratio * narrow.outlooks[0].difference_width
    )


def test_systems_that_share_their_answers_need_fewer_items():
    near = SYSTEMS["s0"][:350] + SYSTEMS["s1"][350:]
    close = planned(systems={"a": SYSTEMS["s0"], "b": near}, difference=0.05)
    apart = planned(difference=0.05)
    assert close.needed < apart.needed / 2


def test_items_that_come_in_groups_are_worth_less():
    gold, systems = sampled(SIZE, 60, 8, [0.6, 0.9])
    many = {name: answers * 10 for name, answers in systems.items()}
    groups = list(range(60)) * 10
    alone = planned("mae", 0.1, gold, systems)
    grouped = planned("mae", 0.1, gold * 10, many, groups=groups)
    assert grouped.spread == pytest.approx(math.sqrt(10) * alone.spread, rel=0.1)
    assert grouped.needed == pytest.approx(10 * alone.needed, rel=0.2)
    assert "clusters like these" in " ".join(str(grouped).split())


@pytest.mark.parametrize("count", [3, 5, 12, 29])
def test_few_groups_spread_like_the_sums_of_groups_and_not_like_the_tails_of_students_t(count):
    """More groups of the same kind have no such tails; those of few groups have no deviation."""
    gaps, groups = item_gaps(), np.arange(400) % count
    pulls = np.array([(gaps - gaps.mean())[groups == g].sum() for g in range(count)]) / 400
    error = math.sqrt(count / (count - 1) * ((pulls - pulls.mean()) ** 2).sum())
    for seed in (0, 1):
        plan = planned(groups=groups.tolist(), seed=seed)
        assert plan.spread == pytest.approx(error * math.sqrt(400), rel=1e-6)


def test_one_group_is_nothing_to_plan_from():
    with pytest.raises(NotApplicable, match=r"two clusters or more"):
        planned(groups=["one"] * 400)


def test_real_weights_spread_like_weighted_items():
    weights = np.random.default_rng(1).lognormal(0, 0.7, 400)
    gaps = item_gaps()
    centred = gaps - np.average(gaps, weights=weights)
    expected = math.sqrt((weights**2 * centred**2).sum()) / weights.sum() * math.sqrt(400)
    assert planned(weights=weights).spread == pytest.approx(expected, rel=1e-6)


# --- power ---------------------------------------------------------------------------------------


@given(
    spread=st.floats(0.05, 3),
    difference=st.floats(0.01, 1),
    chance=st.floats(0.5, 0.99),
    level=st.floats(0.8, 0.99),
)
@examples(100)
def test_the_items_needed_are_the_fewest_that_have_the_power(spread, difference, chance, level):
    asked = SampleSizeSettings(difference, chance, level)
    needed = compute_needed_items(spread, asked)
    reach = stats.norm.ppf((1 + level) / 2)
    assert compute_power(difference, spread / math.sqrt(needed), reach) >= chance - 1e-9
    if needed > 1:
        fewer = spread / math.sqrt(needed - 1)
        beyond = stats.norm.cdf(difference / fewer - reach)  # in the right direction
        assert beyond < chance


@given(effect=st.floats(0.01, 2), n=st.integers(1, 10_000), level=st.floats(0.8, 0.99))
@examples(100)
def test_power_is_that_of_statsmodels(effect, n, level):
    """One sample of differences: a second sample of no weight, ratio 0, as statsmodels has it."""
    expected = NormalIndPower().power(effect, n, 1 - level, ratio=0)
    found = compute_power(effect, 1 / math.sqrt(n), stats.norm.ppf((1 + level) / 2))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("chance", "level"), [(0.8, 0.95), (0.9, 0.95), (0.6, 0.9)])
def test_with_the_items_needed_the_difference_is_seen_as_often_as_was_asked(chance, level):
    """A z-test of drawn items, whose true difference is that of the pilot; 3 binomial errors."""
    gaps = item_gaps()
    plan = planned("mae", abs(gaps.mean()), power=chance, interval=level)
    assert abs(plan.observed_difference) == pytest.approx(plan.settings.difference)
    rng = np.random.default_rng(5)
    drawn = rng.choice(gaps, (2000, plan.needed))
    error = drawn.std(axis=1, ddof=1) / math.sqrt(plan.needed)
    seen = np.abs(drawn.mean(axis=1)) > stats.norm.ppf((1 + level) / 2) * error
    room = 3 * math.sqrt(chance * (1 - chance) / 2000) + 0.03  # and 6 % of the spread
    assert abs(seen.mean() - chance) < room
    outlook = next(one for one in plan.outlooks if one.items == plan.needed)
    assert outlook.power == pytest.approx(chance, abs=0.02)


def test_without_a_difference_power_is_the_level_of_the_test():
    assert compute_power(1e-12, 1.0, Z) == pytest.approx(0.05, abs=1e-9)
    assert compute_power(0.1, 0.0, Z) == 1


NO_VARIATION = {
    "systems that answer the same": (GOLD, {"a": SYSTEMS["s0"], "b": SYSTEMS["s0"]}),
    "one item": ([1], {"a": [1], "b": [2]}),
    "one item of one system": ([1], {"a": [1]}),
    "a system that is always right": (GOLD, {"a": GOLD}),
    "systems that are always as far apart": ([0, 1] * 9, {"a": [0, 1] * 9, "b": [1, 0] * 9}),
}


@pytest.mark.parametrize(("gold", "systems"), NO_VARIATION.values(), ids=NO_VARIATION)
def test_a_pilot_without_variation_is_nothing_to_plan_from(gold, systems):
    with pytest.raises(NotApplicable, match="no variation"):
        planned("mae", 0.1 if len(systems) == 2 else None, gold, systems)


def test_one_system_without_variation_beside_another_is_a_pilot():
    plan = planned("mae", 0.1, systems={"right": GOLD, "s0": SYSTEMS["s0"]})
    alone = planned("mae", systems={"s0": SYSTEMS["s0"]})
    assert {one.widths["right"] for one in plan.outlooks} == {0.0}
    assert plan.outlooks[0].widths["s0"] == pytest.approx(alone.outlooks[0].widths["s0"], rel=0.1)


def test_whole_weights_are_items():
    """Each item three times: the spread of one item is as it was, and n is the sum of weights."""
    weighted, plain = planned("mae", 0.05, weights=[3] * 400), planned("mae", 0.05)
    repeated = {name: answers * 3 for name, answers in SYSTEMS.items()}
    again = planned("mae", 0.05, GOLD * 3, repeated)
    assert weighted.to_dict() | {"n": 1200} == again.to_dict()
    assert weighted.needed_low > plain.needed_low  # three times the items are more sure of it
    assert weighted.spread == pytest.approx(plain.spread, rel=4 / math.sqrt(DRAWS))
    assert [one.items for one in planned(weights=[3] * 400).outlooks] == [
        600,
        1200,
        2400,
        6000,
        12000,
    ]


@pytest.mark.parametrize("items", [500, [500], (500,), np.array([500]), iter([500])])
def test_a_number_of_items_may_stand_alone_or_in_any_row(items):
    assert [one.items for one in planned(items=items).outlooks] == [500]


def test_a_bias_is_compared_by_its_size():
    low = [max(0, p - 1) for p in SYSTEMS["s0"]]
    high = [min(SIZE - 1, p + 1) for p in SYSTEMS["s0"]]
    plan = planned("bias", 0.1, systems={"low": low, "high": high})
    values = plan.values
    assert values["low"] < 0 < values["high"]
    assert plan.observed_difference == pytest.approx(abs(values["low"]) - abs(values["high"]))


def test_values_are_those_of_the_pilot():
    plan = planned("cem_ord")
    for name, answers in SYSTEMS.items():
        expected = evaluate(labels(GOLD), labels(answers), SCALE, "cem_ord").metrics["cem_ord"]
        assert plan.values[name] == expected.value


def test_plans_come_from_the_seed():
    one, two, three = (planned("mae", 0.05, seed=seed).to_dict() for seed in (1, 1, 2))
    assert one == two
    assert one["needed"] == three["needed"]
    assert one["needed_high"] != three["needed_high"]


def test_missing_predictions_are_treated_as_asked():
    systems = SYSTEMS | {"s1": [None if k < 40 else p for k, p in enumerate(SYSTEMS["s1"])]}
    dropped = planned(systems=systems, missing="drop")
    inner = {name: answers[40:] for name, answers in systems.items()}
    assert dropped.to_dict() == planned(gold=GOLD[40:], systems=inner).to_dict()
    assert planned(systems=systems, missing="worst").spread > dropped.spread


# --- how sure a pilot is of the items ------------------------------------------------------------


def naive_log_variances(gaps, count=2000):
    """Logarithms of the variance of items drawn one by one."""
    drawn = np.random.default_rng(8).choice(gaps, (count, len(gaps)))
    return np.log(drawn.var(axis=1))


def test_the_interval_of_the_items_is_that_of_the_variance_of_resampled_pilots():
    """The deviations of 500 and 2,000 resamples: 4 errors are 14 %."""
    gaps = item_gaps()
    plan = planned("mae", 0.01)
    half = Z * naive_log_variances(gaps).std()
    room = 4 * math.hypot(1 / math.sqrt(2 * 500), 1 / math.sqrt(2 * 2000))
    assert math.log(plan.needed / plan.needed_low) == pytest.approx(half, rel=room)
    assert math.log(plan.needed_high / plan.needed) == pytest.approx(half, rel=room)


def test_whole_groups_are_resampled_for_the_interval():
    """As above, from the sums of groups, whose sizes vary: 4 errors are 14 %, and 5 % for these."""
    gaps, groups = item_gaps(), np.random.default_rng(3).integers(0, 40, 400)
    plan = planned("mae", 0.01, groups=groups.tolist())
    sums = np.array([[(groups == g).sum(), gaps[groups == g].sum()] for g in range(40)])
    n, total = np.moveaxis(sums[np.random.default_rng(4).integers(0, 40, (4000, 40))], 2, 0)
    mean = total.sum(axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
    variances = ((total - mean * n) ** 2).sum(axis=1) / n.sum(axis=1)
    half = Z * np.log(variances).std()
    assert math.log(plan.needed_high / plan.needed) == pytest.approx(half, rel=0.19)


@pytest.mark.parametrize("metric", ["kendall_tau_a", "krippendorff_alpha"])
def test_metrics_that_need_integer_counts_have_an_interval(metric):
    plan = planned(metric, 0.05)
    assert plan.needed_low < plan.needed < plan.needed_high


def test_neither_the_difference_nor_the_power_changes_how_sure_the_pilot_is():
    ratios = [
        plan.needed_high / plan.needed_low
        for plan in (planned("mae", 0.01), planned("mae", 0.001), planned("mae", 0.01, power=0.95))
    ]
    assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-3)
    surer = planned("mae", 0.01, interval=0.99)
    wider = stats.norm.ppf(0.995) / Z * math.log(ratios[0])
    assert math.log(surer.needed_high / surer.needed_low) == pytest.approx(wider, rel=1e-3)


def test_a_larger_pilot_is_more_sure():
    small = planned("quadratic_kappa", 0.05, GOLD[:100], {k: x[:100] for k, x in SYSTEMS.items()})
    large = planned("quadratic_kappa", 0.05)
    small, large = (math.log(plan.needed_high / plan.needed_low) for plan in (small, large))
    assert 1.4 < small / large < 2.9  # about the root of 4


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["mae", "cem_ord", "quadratic_kappa"])
def test_the_interval_has_the_items_that_all_pilots_together_ask_for(metric):
    """200 pilots of 150 items from 400; 90 % of the intervals less 3 binomial errors."""
    truth, rng = planned(metric, 0.02).needed, np.random.default_rng(1_000)
    hits = 0
    for seed in range(200):
        who = rng.integers(0, 400, 150)
        pilot = {name: [answers[k] for k in who] for name, answers in SYSTEMS.items()}
        plan = planned(metric, 0.02, [GOLD[k] for k in who], pilot, seed=seed, resamples=100)
        hits += plan.needed_low <= truth <= plan.needed_high
    assert hits / 200 > 0.9 - 3 * math.sqrt(0.9 * 0.1 / 200)


def test_a_metric_without_a_derivative_has_its_spread_by_resamples_and_no_interval():
    plan = planned("min_sensitivity", 0.05)
    drawn = simulated("min_sensitivity", 400, 800, seed=2)
    expected = (drawn[:, 0] - drawn[:, 1]).std() * math.sqrt(400)
    assert plan.spread == pytest.approx(expected, rel=0.15)
    assert plan.needed is not None
    assert (plan.needed_low, plan.needed_high) == (None, None)
    (said,) = plan.notes
    assert said == (
        "The number of items has no interval: min_sensitivity has no derivative, and its spread is "
        "that of bootstrap resamples."
    )
    assert said in " ".join(str(plan).split())


def test_a_pilot_whose_resamples_show_no_variation_has_no_interval():
    plan = planned("mae", 0.1, gold=[1, 1], systems={"a": [1, 1], "b": [1, 2]})
    assert (plan.needed_low, plan.needed_high) == (None, None)
    assert plan.notes == (
        "The number of items has no interval: some resamples of the pilot show no variation.",
    )


def test_matrices_too_large_to_differentiate_in_every_resample_keep_the_influences_of_the_pilot(
    monkeypatch,
):
    """The variance of a mean does not depend on its own value but by 1/N."""
    plan = planned("mae", 0.01)
    monkeypatch.setattr("ordinate.inference.sample_size.MOST_NUMBERS", 1)
    kept = planned("mae", 0.01)
    assert kept.needed == plan.needed
    assert kept.needed_low == pytest.approx(plan.needed_low, rel=0.01)
    assert "influences are those of the pilot in all its resamples" in " ".join(kept.notes)


def test_a_plan_says_how_far_it_can_be_trusted():
    (said,) = planned("macro_mae", 0.05).notes
    assert "how sure a pilot of 400 items is of the spread" in said
    few = [k for k in range(400) if GOLD[k] < SIZE - 1 or k < 20]
    gold = [GOLD[k] for k in few]
    systems = {name: [answers[k] for k in few] for name, answers in SYSTEMS.items()}
    assert 0 < gold.count(SIZE - 1) < 10
    (rare,) = planned("macro_mae", 0.05, gold, systems).notes
    assert f"of {len(few)} items is" in rare
    assert "It has few items of L3, and macro_mae averages over levels" in rare
    assert rare.count("95 % intervals") == 1  # one range, that of such pilots
    often = planned("macro_mae", 0.05, gold * 5, {k: x * 5 for k, x in systems.items()})
    assert 10 < (gold * 5).count(SIZE - 1) < 50  # still rare beside the others
    assert "few items of L3" in often.notes[0]
    assert len(planned("mae", 0.05, gold, systems).notes) == 1
    (grouped,) = planned("mae", 0.05, groups=[k % 12 for k in range(400)]).notes
    assert "how sure a pilot of 12 clusters is" in grouped
    assert "It is smaller than any studied (20 clusters" in grouped
    (tiny,) = planned("mae", 0.05, GOLD[:20], {k: x[:20] for k, x in SYSTEMS.items()}).notes
    assert "a pilot of 20 items is" in tiny
    assert "It is smaller than any studied (100 items" in tiny
    assert planned().notes == ()


def test_two_systems_without_a_difference_are_asked_for_one_unless_widths_were_asked_for():
    asked = "How many items it takes depends on the smallest difference that matters to you"
    assert asked in " ".join(str(planned()).split())
    assert planned().needed is None
    for plan in (planned(items=[500]), planned("mae", 0.1), planned(systems={"a": GOLD[::-1]})):
        assert asked not in " ".join(str(plan).split())


def test_the_difference_of_the_pilot_does_not_matter():
    """Two systems of equal errors in opposite halves, and the same with the roles exchanged."""
    one, other = SYSTEMS["s0"], SYSTEMS["s1"]
    gaps = item_gaps()
    assert gaps.mean() != 0
    plan = planned("mae", 0.05, systems={"a": one, "b": other})
    turned = planned("mae", 0.05, systems={"a": other, "b": one})
    assert plan.observed_difference == -turned.observed_difference
    assert plan.needed == turned.needed


# --- one system ----------------------------------------------------------------------------------


def test_one_system_is_enough_for_its_own_interval():
    plan = planned(systems={"s0": SYSTEMS["s0"]}, items=[100, 1000])
    error = np.abs(np.array(SYSTEMS["s0"]) - GOLD)
    assert (plan.spread, plan.needed, plan.observed_difference) == (None, None, None)
    for one in plan.outlooks:
        assert (one.difference_width, one.power) == (None, None)
        expected = 2 * Z * error.std() / math.sqrt(one.items)
        assert one.widths["s0"] == pytest.approx(expected, rel=4 / math.sqrt(2 * DRAWS))
    assert "difference" not in str(plan)
    json.dumps(plan.to_dict(), allow_nan=False)


# --- what is shown -------------------------------------------------------------------------------


def test_without_numbers_of_items_those_around_the_pilot_are_shown_and_those_needed():
    plan = planned("mae", 0.03)
    assert [one.items for one in plan.outlooks] == sorted({200, 400, 800, 2000, 4000, plan.needed})
    assert [one.items for one in planned().outlooks] == [200, 400, 800, 2000, 4000]


def test_numbers_of_items_that_were_named_are_the_ones_that_are_shown():
    assert [one.items for one in planned("mae", 0.03, items=[500, 20, 500]).outlooks] == [20, 500]


KEYS = {
    "schema", "task", "metric", "n", "values", "observed_difference", "difference", "power",
    "level", "spread", "needed", "needed_low", "needed_high", "outlooks", "notes", "source",
}  # fmt: skip


@pytest.mark.parametrize("systems", [SYSTEMS, {"s0": SYSTEMS["s0"]}], ids=["two", "one"])
@pytest.mark.parametrize("form", RENDERERS)
def test_every_form_can_be_rendered(form, systems):
    plan = planned(systems=systems, difference=0.1 if len(systems) == 2 else None)
    shown = render(plan, form)
    assert all(name in shown for name in systems)
    assert read_values(render(plan, "json")).keys() == KEYS


def test_the_report_says_how_many_items_it_takes():
    plan = planned("mae", 0.05)
    shown = " ".join(str(plan).split())
    assert "To see a difference of 0.05 between two systems like these in 80 %" in shown
    bounds = f"(95 % CI {plan.needed_low:,} to {plan.needed_high:,})"
    assert f"takes about {plan.needed:,} items {bounds}." in shown
    assert plan.needed_low < plan.needed < plan.needed_high
    assert "Width of 95 % confidence intervals" in shown
    for one in plan.outlooks:
        assert f"{one.items:,}" in shown
        assert f"{100 * one.power:.1f} %" in shown


def test_no_name_of_a_system_can_drive_the_terminal():
    plan = planned("mae", 0.05, systems={"\x1b[31mred": SYSTEMS["s0"], "b": SYSTEMS["s1"]})
    assert "\x1b" not in str(plan)


# --- what cannot be planned ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"difference": 0}, "difference to be seen must be above 0"),
        ({"difference": -0.1}, "difference to be seen must be above 0"),
        ({"difference": math.nan}, "difference to be seen must be above 0"),
        ({"difference": math.inf}, "difference to be seen must be above 0"),
        ({"power": 0.3}, "The power is 0.5 to below 1, not 0.3"),
        ({"power": 1.0}, "The power is 0.5 to below 1"),
        ({"interval": 0.3}, "The level is 0.5 to below 1"),
        ({"difference": 1e-10}, "difference to be seen must be above 0"),
        ({"items": [0]}, "Numbers of items are integers, 1 or more"),
        ({"items": [100, -5]}, "Numbers of items are integers, 1 or more"),
        ({"items": [100, 2.5]}, "Numbers of items are integers, 1 or more"),
        ({"items": [200.0]}, "Numbers of items are integers, 1 or more"),
        ({"items": ["200"]}, "Numbers of items are integers, 1 or more"),
        ({"items": 0}, "Numbers of items are integers, 1 or more"),
        ({"resamples": 10}, "10 resamples are too few"),
        ({"seed": -1}, "seed must be an integer"),
        ({"metric": "mea"}, "There is no metric 'mea'"),
        ({"systems": {"s0": SYSTEMS["s0"]}, "difference": 0.1}, "between two systems: name both"),
        ({"systems": {f"s{k}": SYSTEMS["s0"] for k in range(3)}}, "one system or two, not 3"),
        ({"systems": {}}, "one system or two, not 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, said):
    with pytest.raises(BadOption if "metric" not in options else OrdinateError, match=said):
        planned(**options)


def test_systems_without_names_are_refused():
    with pytest.raises(BadOption, match="by name"):
        power(labels(GOLD), [labels(SYSTEMS["s0"])], scale=SCALE)


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(UnequalLengths, match="predictions of s1"):
        planned(systems={"s0": SYSTEMS["s0"], "s1": SYSTEMS["s1"][:-1]})


def test_a_metric_without_a_value_is_nothing_to_plan_from():
    flat = {"s0": SYSTEMS["s0"], "flat": [1] * 400}
    with pytest.raises(NotApplicable, match="kendall_tau_b of flat is undefined"):
        planned("kendall_tau_b", systems=flat)
    silent = {"s0": SYSTEMS["s0"], "silent": [None, *SYSTEMS["s1"][1:]]}
    with pytest.raises(NotApplicable, match="quadratic_kappa has no value for silent: it has no"):
        planned("quadratic_kappa", systems=silent, missing="worst")


def test_a_metric_that_most_draws_leave_undefined_is_nothing_to_plan_from():
    gold, one, other = ([int(k == place) for k in range(40)] for place in range(3))
    with pytest.raises(NotApplicable, match="kendall_tau_b is undefined in most resamples"):
        planned("kendall_tau_b", gold=gold, systems={"a": one, "b": other})
    assert planned("kendall_tau_b", gold=gold, systems={"a": one}).values["a"] < 0
    near = [1, 1, *gold[2:]]
    assert planned("kendall_tau_b", gold=gold, systems={"a": near}).values["a"] < 1


def test_a_pilot_of_two_items_is_small_but_a_pilot():
    plan = planned("mae", gold=[1, 1], systems={"a": [1, 1], "b": [1, 2]})
    assert plan.spread == pytest.approx(0.5, rel=0.1)
    assert [one.items for one in plan.outlooks] == [1, 2, 4, 10, 20]


def test_the_smallest_difference_that_can_be_asked_is_answered():
    assert planned("mae", 1e-9).needed > 10**15


def test_a_plan_can_be_made_from_a_panel():
    plan = SampleSizePlan.from_panel(panel_of(GOLD, SYSTEMS, SIZE), "mae", SampleSizeSettings(0.1))
    assert plan.needed == planned("mae", 0.1).needed
    assert SampleSizePlan.from_panel(panel_of(GOLD, SYSTEMS, SIZE)).metric.name == "cem_ord"
