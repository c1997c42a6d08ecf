"""The synthetic experiment: mistakes by their definitions, and results that plain loops confirm."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ordinate.metrics import find_metric
from ordinate.render import text
from ordinate.summaries import ConfusionMatrix
from studies import load_study

replication = load_study("cem_replication")
CHOICES, FITTED, LITERAL = replication.CHOICES, replication.FITTED, replication.LITERAL
LEVELS, METRICS, RATIOS = replication.LEVELS, replication.METRICS, replication.RATIOS
MISTAKE_TYPES, SyntheticRun = replication.MISTAKE_TYPES, replication.SyntheticRun
TABLE_3, TABLE_3_COLUMNS = replication.TABLE_3, replication.TABLE_3_COLUMNS
count_matrices, draw_gold_levels = replication.count_matrices, replication.draw_gold_levels
descend_readings, ReadingFit = replication.descend_readings, replication.ReadingFit
simulate_predictions = replication.simulate_predictions
PAGE = Path(__file__).parents[2] / "docs/studies/cem-replication.md"
SIZE = 40  # documents of a small test case


@pytest.fixture(scope="module")
def gold():
    drawn = np.random.default_rng(1).integers(1, LEVELS + 1, (3, SIZE))
    return np.sort(drawn, axis=-1)


@pytest.fixture(scope="module")
def chance():
    return np.random.default_rng(2).random((len(RATIOS), 3, SIZE))


# --- readings ------------------------------------------------------------------------------------


def test_the_literal_reading_has_the_first_choice_of_every_option():
    assert LITERAL.options == {name: choices[0] for name, choices in CHOICES.items()}


def test_literally_random_values_are_rounded_as_gold_is():
    assert LITERAL.random == "rounded"


# --- gold ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", CHOICES["outside"])
@pytest.mark.parametrize("deviation", CHOICES["deviation"])
def test_gold_is_normal_around_four_and_on_the_scale(deviation, outside):
    gold = draw_gold_levels(0, deviation, outside)
    assert gold.shape == (100, 200)
    assert (gold.min(), gold.max()) == (1, 11)
    assert (np.diff(gold, axis=-1) >= 0).all()
    narrow, wide = gold[:10], gold[-10:]
    assert narrow.mean() == pytest.approx(4, abs=0.15)
    assert narrow.std() == pytest.approx(1.1, abs=0.15)
    assert wide.std() > 1.9


def test_gold_beyond_the_scale_goes_to_the_end_or_is_drawn_again():
    nearest, redrawn = (
        draw_gold_levels(0, "grid", outside)[-20:] for outside in CHOICES["outside"]
    )
    normal = stats.norm(4, 2.8)
    inside = normal.cdf(11.5) - normal.cdf(0.5)
    assert (nearest == 1).mean() == pytest.approx(normal.cdf(1.5), abs=0.03)
    within = (normal.cdf(1.5) - normal.cdf(0.5)) / inside
    assert (redrawn == 1).mean() == pytest.approx(within, abs=0.03)


def test_the_deviation_rises_evenly_or_is_drawn():
    even, drawn = (draw_gold_levels(0, deviation, "nearest") for deviation in CHOICES["deviation"])
    assert not np.array_equal(even, drawn)
    for cases, deviation in ((slice(0, 10), 1.09), (slice(45, 55), 2.0), (slice(90, 100), 2.91)):
        share = (even[cases] > 5.5).mean()
        assert share == pytest.approx(stats.norm(4, deviation).sf(5.5), abs=0.03)


# --- mistakes, document by document --------------------------------------------------------------


def mistakes(kind, gold, chance, **options):
    made = MISTAKE_TYPES[kind].mistakes(gold, chance, replace(LITERAL, **options))
    return np.broadcast_to(made, chance.shape)


def each(gold, chance):
    """Every document: its place in the result, its gold level, position, test case and chance."""
    for place in itertools.product(*map(range, chance.shape)):
        _, case, document = place
        yield place, gold[case, document], document + 1, gold[case], chance[place]


def test_majority_assigns_the_fourth_level(gold, chance):
    assert (mistakes("maj", gold, chance) == 4).all()


def test_majority_assigns_the_most_frequent_level_of_the_test_case(gold, chance):
    made = mistakes("maj", gold, chance, majority="most_frequent")
    for place, _, _, case, _ in each(gold, chance):
        levels = list(case)
        assert levels.count(made[place]) == max(map(levels.count, levels))


def test_random_levels_are_uniform_or_have_rare_ends_or_are_never_right():
    gold = np.full((1, 110_000), 3)
    drawn = np.random.default_rng(3).random((1, *gold.shape))
    expected = {
        "discrete": [10] * 11,
        "rounded": [5.5, *[11] * 9, 5.5],
        "other": [11, 11, 0, *[11] * 8],
    }
    for choice, shares in expected.items():
        made = MISTAKE_TYPES["rand"].mistakes(gold, drawn, replace(LITERAL, random=choice))
        found = np.bincount(made.ravel(), minlength=12)[1:] / 1_000
        assert found == pytest.approx(shares, abs=0.6)
        assert len(found) == LEVELS


@pytest.mark.parametrize(("end", "last"), [("clamp", 11), ("wrap", 1)])
def test_tag_displacement_assigns_the_next_level(gold, chance, end, last):
    made = mistakes("tdisp", gold, chance, tag_end=end)
    for place, level, *_ in each(gold, chance):
        assert made[place] == (last if level == 11 else level + 1)


@pytest.mark.parametrize("end", CHOICES["ordinal_end"])
def test_ordinal_displacement_assigns_the_level_a_tenth_of_the_documents_further(gold, chance, end):
    made = mistakes("odisp", gold, chance, ordinal_end=end)
    for place, level, position, case, _ in each(gold, chance):
        target = position + SIZE // 10
        if target <= SIZE:
            expected = case[target - 1]
        else:
            beyond = {"clamp": case[-1], "wrap": case[target - SIZE - 1], "stay": level}
            expected = beyond[end]
        assert made[place] == expected


def test_proximity_assigns_the_level_half_way_to_a_random_position(gold, chance):
    made = mistakes("prox", gold, chance)
    for place, _, position, case, luck in each(gold, chance):
        other = 1 + int(luck * SIZE)
        assert made[place] == case[(position + other) // 2 - 1]


@pytest.mark.parametrize(
    ("choice", "rounded"), [("level_down", math.floor), ("level_up", math.ceil)]
)
def test_proximity_assigns_the_level_half_way_to_a_random_level(gold, chance, choice, rounded):
    made = mistakes("prox", gold, chance, proximity=choice)
    for place, level, _, _, luck in each(gold, chance):
        assert made[place] == rounded((level + 1 + int(luck * LEVELS)) / 2)


def test_half_a_position_up_or_down_makes_no_difference_that_can_be_seen(monkeypatch):
    def upwards(gold, chance, _):
        position = np.arange(1, gold.shape[-1] + 1)
        other = 1 + np.floor(gold.shape[-1] * chance)
        place = np.ceil((position + other) / 2).astype(int) - 1
        return np.take_along_axis(np.broadcast_to(gold, place.shape), place, axis=-1)

    def means():
        trials = [SyntheticRun(seed) for seed in range(5)]
        return np.array([[t.compute_coverages(r) for r in (LITERAL, FITTED)] for t in trials]).mean(
            axis=0
        )

    down = means()
    monkeypatch.setitem(
        MISTAKE_TYPES,
        "prox",
        replication.MistakeType(upwards, "proximity", MISTAKE_TYPES["prox"].stream),
    )
    assert 0 < np.abs(means() - down).max() < 0.001


# --- ratios --------------------------------------------------------------------------------------


def test_an_exact_ratio_is_exact_in_each_test_case(gold):
    made = simulate_predictions(0, "rand", gold, replace(LITERAL, random="other"))
    wrong = (made != gold).sum(axis=-1)
    assert wrong.tolist() == [[round(ratio * SIZE)] * 3 for ratio in RATIOS]


def test_an_independent_ratio_holds_on_average():
    gold = draw_gold_levels(0, "grid", "nearest")
    reading = replace(LITERAL, errors="independent", random="other")
    wrong = (simulate_predictions(0, "rand", gold, reading) != gold).sum(axis=-1)
    assert wrong.mean(axis=-1) / 200 == pytest.approx(RATIOS, abs=0.02)
    assert (wrong[:-1].std(axis=-1) > 3).all()


@pytest.mark.parametrize("errors", CHOICES["errors"])
@pytest.mark.parametrize("kind", MISTAKE_TYPES)
def test_a_ratio_of_one_makes_every_mistake_and_other_documents_keep_gold(gold, kind, errors):
    reading = replace(LITERAL, errors=errors)
    made = simulate_predictions(5, kind, gold, reading)
    chance = np.random.default_rng([5, MISTAKE_TYPES[kind].stream]).random((2, *made.shape))[1]
    wrong = mistakes(kind, gold, chance)
    assert np.array_equal(made[-1], wrong[-1])
    assert ((made == wrong) | (made == gold)).all()


def test_total_tag_displacement_keeps_the_order_and_loses_every_match(gold):
    low = np.minimum(gold, 10)
    table = count_matrices(low, simulate_predictions(0, "tdisp", low, LITERAL))[-1]
    assert find_metric("accuracy")(table).tolist() == [0.0] * 3
    assert find_metric("kendall_tau_b")(table) == pytest.approx([1.0] * 3)


def test_tables_count_each_system_and_test_case(gold):
    made = simulate_predictions(0, "prox", gold, LITERAL)
    counted = count_matrices(gold, made)
    assert counted.shape == (len(RATIOS), 3)
    for system, case in itertools.product(range(len(RATIOS)), range(3)):
        alone = ConfusionMatrix.of(gold[case].tolist(), made[system, case].tolist(), counted.scale)
        assert np.array_equal(counted[system, case].counts, alone.counts)


# --- coverages -----------------------------------------------------------------------------------


def naive_coverages(seed, reading, size):
    """Return coverages by plain loops over systems, test cases and metrics."""
    gold = draw_gold_levels(seed, reading.deviation, reading.outside, **size)
    made = [(k, p) for k in MISTAKE_TYPES for p in simulate_predictions(seed, k, gold, reading)]
    names = [{"kendall_tau_a": f"kendall_{reading.kendall}"}.get(name, name) for name in METRICS]
    measures = [find_metric(name) for name in names]

    def value(metric, rows, answers):
        table = ConfusionMatrix.of(
            rows.ravel().tolist(), answers.ravel().tolist(), replication.SCALE
        )
        found = float(metric.merit(metric(table)))
        return 0.0 if math.isnan(found) and reading.undefined == "zero" else found

    by_case = [
        [[value(m, gold[t], p[t]) for t in range(len(gold))] for _, p in made] for m in measures
    ]
    if reading.values == "pooled":
        overall = [[value(m, gold, p) for _, p in made] for m in measures]
    else:
        overall = [[mean_of_defined(cases) for cases in systems] for systems in by_case]

    def improves(s, o, t):
        gains = [round(m[s][t] - m[o][t], 12) for m in by_case[:3]]
        return all(g > 0 if reading.unanimity == "strict" else g >= 0 for g in gains)

    def ratio(s, o):
        cases = range(len(gold))
        return sum(improves(s, o, t) - improves(o, s, t) for t in cases) / len(gold)

    ratios = {(s, o): ratio(s, o) for s, o in itertools.permutations(range(len(made)), 2)}
    return [
        [naive_column(row, ratios, [k != column for k, _ in made]) for column in TABLE_3_COLUMNS]
        for row in overall
    ]


def mean_of_defined(values):
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def naive_column(values, ratios, kept):
    there = [k for k, value in enumerate(values) if kept[k] and not math.isnan(value)]
    pairs = list(itertools.permutations(there, 2))
    gains = [round(values[a] - values[b], 12) for a, b in pairs]
    return stats.spearmanr(gains, [ratios[pair] for pair in pairs]).statistic


@pytest.mark.parametrize("reading", [LITERAL, FITTED, replace(LITERAL, kendall="tau_b")])
def test_coverages_are_those_of_plain_loops(reading):
    size = {"cases": 2, "documents": 30}
    expected = naive_coverages(3, reading, size)
    found = SyntheticRun(3, **size).compute_coverages(reading)
    assert found == pytest.approx(np.array(expected), abs=1e-9)


def test_the_f_measure_is_averaged_over_the_levels_that_a_reading_names(gold):
    table = count_matrices(gold, simulate_predictions(0, "tdisp", np.minimum(gold, 5), LITERAL))
    f1 = np.nan_to_num(2 * np.diagonal(table.counts, axis1=-2, axis2=-1))
    total = table.gold + table.predicted
    by_level = np.divide(f1, total, out=np.zeros_like(f1), where=total > 0)
    over = {
        name: replication.MEASURES[replication.F_LEVELS[name]](table)
        for name in CHOICES["f_levels"]
    }
    assert over["all"] == pytest.approx(by_level.sum(axis=-1) / LEVELS)
    assert over["gold"] == pytest.approx(by_level.sum(axis=-1) / (table.gold > 0).sum(axis=-1))
    assert over["either"] == pytest.approx(by_level.sum(axis=-1) / (total > 0).sum(axis=-1))


def test_the_same_seed_gives_the_same_numbers_whatever_was_tried_before():
    trial = SyntheticRun(7)
    trial.compute_coverages(FITTED)
    found = trial.compute_coverages(LITERAL)
    assert np.array_equal(found, SyntheticRun(7).compute_coverages(LITERAL))
    assert not np.array_equal(found, SyntheticRun(8).compute_coverages(LITERAL))


def test_every_option_makes_a_difference():
    trial = SyntheticRun(0)
    found = trial.compute_coverages(LITERAL)
    for reading in LITERAL.list_neighbours():
        assert not np.array_equal(trial.compute_coverages(reading), found), reading.changes(LITERAL)


# --- the published table -------------------------------------------------------------------------


def test_the_published_table_has_the_metrics_and_columns_of_the_experiment():
    assert ("all", *MISTAKE_TYPES) == TABLE_3_COLUMNS
    assert all(find_metric(name).name == name for name in TABLE_3)
    assert {len(row) for row in TABLE_3.values()} == {len(TABLE_3_COLUMNS)}


def test_the_published_table_has_the_figures_of_the_paper():
    columns = replication.get_published_coverages().sum(axis=0).round(2).tolist()
    assert columns == [12.32, 11.95, 12.07, 12.24, 13.31, 12.12]
    assert TABLE_3["cem_ord"] == (0.91, 0.89, 0.90, 0.90, 0.95, 0.89)
    assert TABLE_3["spearman"] == (0.72, 0.67, 0.69, 0.77, 0.76, 0.70)
    assert TABLE_3["macro_mae"][0] == 0.74
    assert TABLE_3["mse"][0] == 0.89


def test_in_print_cem_ord_is_first_and_ahead_of_flat_in_every_column():
    others = [row for name, row in TABLE_3.items() if name != "cem_ord"]
    assert all(
        max(column) < mine for *column, mine in zip(*others, TABLE_3["cem_ord"], strict=True)
    )


def test_exchanged_rows_are_two_rows_and_nothing_else():
    plain, changed = (
        replication.get_published_coverages(),
        replication.get_published_coverages(replication.EXCHANGED_ROWS),
    )
    first, second = map(METRICS.index, replication.EXCHANGED_ROWS)
    assert np.array_equal(plain[[first, second]], changed[[second, first]])
    assert (plain != changed).any(axis=-1).sum() == 2


# --- the study -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return replication.run_replication(seeds=[0, 1])


def test_the_headline_is_what_the_table_says(result):
    for outcome in result.outcomes.values():
        for c, (column, lead) in enumerate(outcome.compute_leads().items()):
            assert column == TABLE_3_COLUMNS[c]
            by_name = dict(zip(METRICS, outcome.mean[:, c], strict=True))
            mine, flat = by_name.pop("cem_ord"), by_name["cem_ord_flat"]
            best = max(by_name, key=by_name.__getitem__)
            assert lead.best_other == best
            assert lead.margin == pytest.approx(mine - by_name[best])
            assert lead.margin_over_flat == pytest.approx(mine - flat)
            by_seed = [dict(zip(METRICS, seed[:, c], strict=True)) for seed in outcome.values]
            assert lead.seeds_first == sum(max(v, key=v.get) == "cem_ord" for v in by_seed)
            ahead = sum(v["cem_ord"] > v["cem_ord_flat"] for v in by_seed)
            assert lead.seeds_ahead_of_flat == ahead


def test_exchanging_the_two_rows_lowers_the_deviation_more_than_any_other_exchange(result):
    for outcome in result.outcomes.values():
        exchanges = outcome.rank_exchanges()
        assert len(exchanges) == 105
        assert next(iter(exchanges)) == replication.EXCHANGED_ROWS
        plain = outcome.compute_deviations().mean()
        assert exchanges[replication.EXCHANGED_ROWS] == pytest.approx(
            outcome.compute_deviations(replication.EXCHANGED_ROWS).mean()
        )
        assert exchanges[replication.EXCHANGED_ROWS] < plain - 0.01


def test_the_fitted_reading_fits_seeds_that_it_was_not_chosen_by(result):
    assert not {*replication.SEARCH_SEEDS} & {*result.seeds}
    literal, fitted = (
        result.outcomes[name].compute_deviations().mean() for name in replication.READINGS
    )
    assert fitted < literal - 0.01


# --- the search ----------------------------------------------------------------------------------


def fit_to(target):
    """A fit that is better the nearer a reading is to a target; two options help only together."""

    def fit(reading):
        missed = len(reading.changes(target))
        half_way = (reading.errors == target.errors) != (reading.values == target.values)
        return ReadingFit(missed + 1.5 * half_way, 0.0, 0, 0)

    return fit


def test_the_search_takes_two_steps_at_once_where_one_does_not_help():
    target = replace(FITTED, pairs="unordered")
    best, tried = descend_readings(LITERAL, fit_to(target))
    assert best == target
    assert tried[best].deviation == min(fit.deviation for fit in tried.values())


def test_the_search_tries_every_reading_within_two_options_once():
    asked = []

    def fit(reading):
        asked.append(reading)
        return ReadingFit(float(reading != LITERAL), 0.0, 0, 0)

    best, tried = descend_readings(LITERAL, fit)
    assert best == LITERAL
    assert len(asked) == len(set(asked)) == len(tried)
    sizes = [len(choices) - 1 for choices in CHOICES.values()]
    two = sum(a * b for a, b in itertools.combinations(sizes, 2))
    assert len(tried) == 1 + sum(sizes) + two


def test_equal_fits_are_no_reason_to_leave_the_literal_reading():
    assert descend_readings(LITERAL, lambda _: ReadingFit(0.5, 0.0, 0, 0))[0] == LITERAL


def test_a_fit_counts_the_columns_that_the_claim_holds_in(result):
    outcome = result.outcomes["literal"]
    leads = outcome.compute_leads().values()
    fit = ReadingFit.of(outcome)
    assert fit.columns_first == sum(lead.margin > 0 for lead in leads)
    assert fit.columns_ahead == sum(lead.margin_over_flat > 0 for lead in leads)
    assert fit[:2] == pytest.approx(
        (
            outcome.compute_deviations().mean(),
            outcome.compute_deviations(replication.EXCHANGED_ROWS).mean(),
        )
    )


def test_the_page_says_how_far_coverages_are_and_how_they_vary():
    page = " ".join(PAGE.read_text("utf-8").split())
    literal, fitted = replication.run_replication().outcomes.values()
    spread = np.array([literal.spread, fitted.spread])
    far = [f"{outcome.compute_deviations().mean():.3f}" for outcome in (literal, fitted)]
    assert f"over seeds is {spread.min():.4f} to {spread.max():.4f}," in page
    assert f"is {far[0]} under the literal reading and {far[1]} under the fitted one" in page


def test_the_page_has_the_output_of_the_study():
    page = PAGE.read_text("utf-8")
    report = text.render(replication.describe_study(replication.run_replication()))
    assert replication.replace_output(page, "study", report) == page


@pytest.mark.slow
def test_the_fitted_reading_is_what_the_search_finds():
    found, page = replication.search_readings(), PAGE.read_text("utf-8")
    assert found.best == FITTED
    report = text.render(replication.describe_search(found))
    assert replication.replace_output(page, "search", report) == page
