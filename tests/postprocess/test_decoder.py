"""Decoding: the answers are the best that the probabilities lead to expect, and stay so alone."""

from itertools import product

import numpy as np
import pytest
from decoding_cases import BY_SHARES, COSTS, KAPPAS, SHARES, SIX, THREE, rows_of, simulated, table
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import NAIVE

from ordinate import Scale
from ordinate.errors import (
    BadOption,
    BadWeights,
    NoItems,
    UnequalLengths,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.postprocess.decoder import Decoder, make_label_array
from ordinate.postprocess.decoding_costs import (
    EQUIVALENT_METRICS,
    SEARCHED_METRICS,
    choose_levels,
    compute_credits,
    compute_expected_matrix,
    find_fixed_credits,
    plan_decoding,
)
from ordinate.summaries import ConfusionMatrix

ITEM_SUMS = [
    "accuracy",
    "accuracy_within",
    "accuracy_within(n=2)",
    "mae",
    "mse",
    "ordinal_distance_linear",
    "ordinal_distance_quadratic",
    "ordinal_mse",
    "rennie_srebro",
    "rennie_srebro(kind='immediate',penalty='logistic')",
    f"expected_cost(matrix={COSTS})",
]


# --- weighted items ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["mae", "macro_mae", "cem_ord", "quadratic_kappa", "f1_macro"])
def test_whole_weights_are_items_that_come_so_often(metric):
    p, gold = simulated(200)
    times = np.random.default_rng(1).integers(0, 4, 200)
    labels, again = make_label_array(SIX)[gold], np.repeat(np.arange(200), times)
    weighted = Decoder(metric, SIX).fit(p, labels, times)
    repeated = Decoder(metric, SIX).fit(p[again], labels[again])
    assert np.allclose(weighted.gain_, repeated.gain_, rtol=1e-9, atol=1e-9)
    assert np.allclose(weighted.shares_, repeated.shares_)
    alike = Decoder(metric, SIX).fit(p, labels, np.full(200, 0.5))
    assert np.allclose(alike.gain_, Decoder(metric, SIX).fit(p, labels).gain_, atol=1e-9)


def test_weights_of_levels_make_other_answers_the_best():
    p, gold = simulated(3000, seed=4)
    weights = 1.0 / SHARES / 6.0
    rows = p * weights / (p * weights).sum(axis=1, keepdims=True)
    merits = []
    for decoder, asked in (
        (
            Decoder("quadratic_kappa", SIX).fit(rows, make_label_array(SIX)[gold], weights[gold]),
            rows,
        ),
        (Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold]), p),
    ):
        cells = np.zeros((6, 6))
        np.add.at(cells, (gold, decoder.predict_positions(asked)), weights[gold])
        merits.append(
            float(find_metric("quadratic_kappa")(ConfusionMatrix.from_counts(cells, SIX)))
        )
        assert decoder.notes_ == ()
    assert merits[0] > merits[1] + 0.02


@pytest.mark.parametrize(
    ("weights", "error", "said"),
    [
        ([0.0, 0.0], NoItems, "all weights are 0"),
        ([1.0, -1.0], BadWeights, "row 2"),
        ([1.0, np.nan], BadWeights, "row 2"),
        ([1.0], UnequalLengths, "weights"),
    ],
    ids=["none", "negative", "nan", "length"],
)
def test_weights_that_are_none_are_refused(weights, error, said):
    with pytest.raises(error, match=said):
        Decoder("macro_mae", THREE, columns="scale").fit(
            np.full((2, 3), 1 / 3), ["low", "mid"], weights
        )


# --- exact where it says so ----------------------------------------------------------------------


def expected_value(metric, scale, p, answered):
    """Return the mean of a metric over every gold that could be, by its probability."""
    total = 0.0
    for gold in product(range(len(scale)), repeat=len(p)):
        chance = np.prod([p[row, level] for row, level in enumerate(gold)])
        if chance:
            total += chance * float(metric(table(scale, np.array(gold), np.array(answered))))
    return total


@pytest.mark.parametrize("expression", ITEM_SUMS)
@given(p=rows_of(4, most=3))
def test_no_answers_have_a_better_expected_metric(expression, p):
    scale, metric = Scale.of("1..4"), find_metric(expression)
    found = Decoder(expression, scale, columns="scale").fit().predict_positions(p)
    for row in range(len(p)):
        merits = [metric.merit(expected_value(metric, scale, p[[row]], (a,))) for a in range(4)]
        assert merits[found[row]] == pytest.approx(max(merits), abs=1e-9)


@pytest.mark.parametrize("expression", ["accuracy", "mse", f"expected_cost(matrix={COSTS})"])
def test_the_best_of_all_labelings_is_that_of_every_row_alone(expression):
    scale, metric = Scale.of("1..4"), find_metric(expression)
    p, _ = simulated(3, 1, np.full(4, 0.25))
    found = Decoder(metric, scale, columns="scale").fit().predict_positions(p)
    merits = {
        answered: metric.merit(expected_value(metric, scale, p, answered))
        for answered in product(range(4), repeat=3)
    }
    assert merits[tuple(found)] == pytest.approx(max(merits.values()))


def naive_credit(expression, gold, level, answer):
    """Return what an answer to one item adds to a metric, from the naive definitions."""
    metric = find_metric(expression)
    oracle = NAIVE[metric.alias_of or metric.name]
    place = gold.index(level)
    answered = [*gold]
    answered[place] = answer
    positions = list(range(4))
    return metric.merit(oracle(gold, answered, positions, **metric.options)) * len(gold)


@pytest.mark.parametrize("expression", ITEM_SUMS + BY_SHARES)
def test_credits_are_those_of_the_naive_definitions(expression):
    metric, gold = find_metric(expression), [0] * 2 + [1] * 7 + [2] * 4 + [3]
    found = compute_credits(metric, Scale.of("1..4"), np.array([2.0, 7.0, 4.0, 1.0]))
    for level, answer in product(range(4), repeat=2):
        beside = [naive_credit(expression, gold, level, a) for a in (answer, level)]
        assert found[level, answer] == pytest.approx(beside[0] - beside[1], abs=1e-9)


@pytest.mark.parametrize("expression", BY_SHARES)
def test_metrics_that_divide_by_gold_decide_by_the_shares_learned(expression):
    metric, scale = find_metric(expression), Scale.of("1..4")
    p, gold = simulated(300, 2, np.array([0.1, 0.5, 0.3, 0.1]))
    counts = np.bincount(gold, minlength=4)
    decoder = Decoder(expression, scale, columns="scale").fit(p, gold + 1)
    found = decoder.predict_positions(p)
    credit = compute_credits(metric, scale, counts.astype(float))
    worth = p @ credit
    assert worth[np.arange(300), found] == pytest.approx(worth.max(axis=1))
    assert decoder.uses_gold_


def ratio_of_expectations(p, answered, cost, shares):
    observed = sum(p[row] @ cost[:, a] for row, a in enumerate(answered))
    return observed / sum(shares @ cost[:, a] for a in answered)


@pytest.mark.parametrize("expression", KAPPAS)
@given(p=rows_of(3, least=2, most=5), gold=st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_no_answers_have_a_better_ratio_of_expectations(expression, p, gold):
    gold = np.array(gold[: len(p)])
    shares = np.bincount(gold, minlength=3) / len(gold)
    assume((shares > 0).sum() > 1)
    base = plan_decoding(find_metric(expression), THREE).base
    fixed = find_fixed_credits(base, THREE)
    cost = -(compute_credits(base, THREE, shares * len(gold)) if fixed is None else fixed)
    ratios = {
        answered: ratio_of_expectations(p, answered, cost, shares)
        for answered in product(range(3), repeat=len(p))
    }
    least = min(ratios.values())
    decoder = Decoder(expression, THREE, columns="scale")
    if least >= 1.0 - 1e-9:
        with pytest.raises(BadOption, match="no better than chance"):
            decoder.fit(p, make_label_array(THREE)[gold])
        return
    decoder.fit(p, make_label_array(THREE)[gold])
    assert decoder.ratio_ == pytest.approx(least, abs=1e-9)
    assert ratios[tuple(decoder.predict_positions(p))] == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("expression", KAPPAS)
def test_one_minus_the_ratio_is_the_metric_of_the_expected_table(expression):
    p, _ = simulated(4000, 3)
    scale, metric = SIX, find_metric(expression)
    # gold as the probabilities expect it, so that both tables have the same rows
    counts = np.rint(p.sum(axis=0)).astype(int)
    gold = np.repeat(np.arange(6), counts)[: len(p)]
    gold = np.concatenate([gold, np.full(len(p) - len(gold), 3)])
    decoder = Decoder(expression, scale, columns="scale").fit(p, make_label_array(scale)[gold])
    answered = decoder.predict_positions(p)
    cells = np.stack([np.bincount(answered, p[:, k], 6) for k in range(6)])
    value = float(metric(ConfusionMatrix.from_counts(cells, scale)))
    assert value == pytest.approx(1.0 - decoder.ratio_, abs=2e-3)


# --- worth it ------------------------------------------------------------------------------------


DECODED = [m for m in list_metrics() if m.linear and m.direction != "zero" and not m.required]


DECODED += [find_metric(name) for name in (*KAPPAS, *EQUIVALENT_METRICS, *SEARCHED_METRICS)]


@pytest.mark.parametrize("metric", DECODED, ids=lambda metric: metric.expression)
def test_each_decoder_wins_or_ties_its_own_metric_on_true_posteriors(metric):
    p, gold = simulated(8000, 4)
    fresh, truth = simulated(20_000, 5)
    decoder = Decoder(metric, SIX).fit(p, make_label_array(SIX)[gold])
    merits = [
        float(metric.merit(metric(table(SIX, truth, answered))))
        for answered in (fresh.argmax(axis=1), decoder.predict_positions(fresh))
    ]
    assert merits[1] >= merits[0] - 0.002
    clear = {"quadratic_kappa": 0.05, "mse": 0.2, "macro_accuracy": 0.1, "min_sensitivity": 0.1}
    assert merits[1] >= merits[0] + clear.get(metric.name, -1.0)


@pytest.mark.parametrize("name", SEARCHED_METRICS)
def test_a_search_is_never_expected_to_do_worse_than_argmax(name):
    p, gold = simulated(500, 6)
    metric = find_metric(name)
    decoder = Decoder(name, SIX).fit(p, make_label_array(SIX)[gold])
    assert not decoder.exact_
    assert "A search found" in decoder.notes_[-1]
    seen = np.bincount(gold, minlength=6) > 0
    merits = []
    for answered in (p.argmax(axis=1), decoder.predict_positions(p)):
        cells = np.stack([np.bincount(answered, p[:, k] * seen[k], 6) for k in range(6)])
        merits.append(metric.merit(metric(ConfusionMatrix.from_counts(cells, SIX))))
    assert merits[1] >= merits[0]


def test_a_search_over_many_rows_looks_at_some_and_says_so():
    p, gold = simulated(25_000, 7)
    decoder = Decoder("f1_macro", SIX).fit(p, make_label_array(SIX)[gold])
    assert any("over 20,000 rows" in note for note in decoder.notes_)


# --- ties ----------------------------------------------------------------------------------------


def test_of_equal_answers_the_most_probable_is_given_and_then_the_lowest():
    decoder = Decoder("accuracy_within", THREE, columns="scale").fit()
    assert decoder.predict([[0.2, 0.5, 0.3]]).tolist() == ["mid"]
    within_two = Decoder(
        "accuracy_within(n=2)", THREE, columns="scale"
    ).fit()  # every answer is right
    rows = [[0.2, 0.3, 0.5], [0.4, 0.2, 0.4], [1 / 3, 1 / 3, 1 / 3]]
    assert within_two.predict(rows).tolist() == ["high", "low", "low"]
    assert Decoder("mae", THREE, columns="scale").fit().predict([[0.5, 0.0, 0.5]]).tolist() == [
        "low"
    ]


def test_accuracy_is_argmax():
    p, _ = simulated(2000, 8)
    assert (Decoder("accuracy", SIX).fit().predict_positions(p) == p.argmax(axis=1)).all()


def test_the_median_and_the_rounded_mean_are_what_mae_and_mse_ask_for():
    p, _ = simulated(2000, 9)
    median = (p.cumsum(axis=1) < 0.5).sum(axis=1)
    mean = np.rint(p @ np.arange(6))
    assert (Decoder("mae", SIX).fit().predict_positions(p) == median).all()
    assert (Decoder("mse", SIX).fit().predict_positions(p) == mean).all()
    assert (Decoder("rmse", SIX).fit().predict_positions(p) == mean).all()


def test_declared_positions_count():
    far = Scale(["low", "mid", "high"], positions=[0, 1, 10])
    row = [[0.5, 0.05, 0.45]]
    assert Decoder("mse", far, columns="scale").fit().predict(row).tolist() == ["mid"]
    assert Decoder("mae", far, columns="scale").fit().predict([[0.6, 0.0, 0.4]]).tolist() == ["low"]
    assert find_fixed_credits(find_metric("mae"), far)[0].tolist() == pytest.approx([0, -1, -10])


# --- alone as together ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The mean probabilities")
@pytest.mark.parametrize(
    "expression", ["mae", "cem_ord", "macro_mae", "quadratic_kappa", "f1_macro", "max_mae"]
)
def test_the_answer_to_a_row_does_not_depend_on_its_batch(expression):
    p, gold = simulated(200, 10)
    decoder = Decoder(expression, SIX).fit(p, make_label_array(SIX)[gold])
    together = decoder.predict(p)
    assert [decoder.predict(row[None])[0] for row in p] == together.tolist()
    assert decoder.predict(p[::-1]).tolist() == together[::-1].tolist()
    assert decoder.predict(p[:0]).tolist() == []


def test_many_rows_are_decided_in_parts():
    p, _ = simulated(1000, 11)
    decoder = Decoder("mse", SIX).fit()
    alone = decoder.predict_positions(p)
    assert (decoder.predict_positions(np.tile(p, (140, 1))) == np.tile(alone, 140)).all()


# --- the worst level -----------------------------------------------------------------------------


def posteriors(n, shares, noise, seed):
    """Return true posteriors of levels that are seen through a noise."""
    rng = np.random.default_rng(seed)
    levels = np.arange(len(shares))
    seen = rng.choice(levels, n, p=shares) + rng.normal(0, noise, n)
    joint = np.exp(-0.5 * ((seen[:, None] - levels) / noise) ** 2) * shares
    p = joint / joint.sum(axis=1, keepdims=True)
    return p, (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def levelled(p, credit, steps=500):
    """Return gains by plain multiplicative weights on the worst level alone."""
    totals = p.sum(axis=0)
    best, factors = (-np.inf, credit), 1.0 / totals
    for step in range(steps):
        fares = (
            compute_expected_matrix(p, choose_levels(p, factors[:, None] * credit)) * credit
        ).sum(axis=1)
        fares /= totals
        best = max(best, (fares.min(), factors[:, None] * credit), key=lambda found: found[0])
        factors = factors * np.exp(-2.0 / np.sqrt(step + 1) * (fares - fares.mean()))
    return best[1]


@pytest.mark.parametrize("noise", [pytest.param(0.7, marks=pytest.mark.slow), 1.2])
@pytest.mark.parametrize("shares", [[0.6, 0.25, 0.1, 0.04, 0.01], [0.05, 0.15, 0.5, 0.25, 0.05]])
def test_the_worst_level_fares_best_when_decoded_for(shares, noise):
    p, gold = posteriors(6000, np.array(shares), noise, 30)
    five = Scale.of("0..4")
    names = ["min_sensitivity", "max_mae"]
    bases = [compute_credits(find_metric(name), five, np.ones(5)) for name in ("accuracy", "mae")]
    gains = [Decoder(name, five, columns="scale").fit(p, gold).gain_ for name in names]
    gains += [levelled(p, credit) for credit in bases]
    cells = [compute_expected_matrix(p, choose_levels(p, gain)) for gain in gains]
    for place, name in enumerate(names):
        metric = find_metric(name)
        merits = [float(metric.merit(metric(ConfusionMatrix.from_counts(x, five)))) for x in cells]
        assert merits[place] >= max(merits) - 0.002, (name, merits)
