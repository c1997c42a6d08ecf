"""Decoding: the answers are the best that the probabilities lead to expect, and stay so alone."""

import pickle
from itertools import product

import naive
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ordinate import Scale
from ordinate.errors import (
    BadOption,
    BadProbabilities,
    BadWeights,
    MissingLabels,
    NoItems,
    NotFitted,
    UnequalLengths,
    UnknownMetric,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.postprocess.class_priors import undo_class_weights
from ordinate.postprocess.decoder import Decoder, make_label_array
from ordinate.postprocess.decoding_costs import (
    EQUIVALENT_METRICS,
    SEARCHED_METRICS,
    choose_levels,
    compute_credits,
    compute_expected_matrix,
    find_fixed_credits,
    minimise_cost_ratio,
    plan_decoding,
)
from ordinate.summaries import ConfusionMatrix

# Arrays are in the order of the scale here; what warns of another order is tested below.
pytestmark = pytest.mark.filterwarnings("ignore:Columns without names")

THREE = Scale.of("low,mid,high")
SIX = Scale.of("cefr")
SHARES = np.array([0.03, 0.07, 0.3, 0.35, 0.2, 0.05])
COSTS = [[0, 5, 1, 1], [2, 0, 1, 3], [1, 4, 0, 1], [9, 1, 1, 0]]
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
BY_SHARES = [
    "macro_accuracy",
    "macro_mae",
    "macro_mse",
    "cem_ord",
    "cem_ord_flat",
    "cem_nom",
    "cem_nom(ties='half')",
    "cem_int",
]
KAPPAS = [
    "cohen_kappa",
    "linear_kappa",
    "quadratic_kappa",
    "weighted_kappa(power=1.5)",
    "weighted_kappa(power=0)",
    "cem_ord_chance_corrected",
]


def simulated(n, seed=0, shares=SHARES, sharpness=5.0):
    """Return posteriors, and gold levels that are drawn from them: nobody can know more."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(sharpness * shares, n) if sharpness else np.tile(shares, (n, 1))
    p = (p + 1e-6) / (p + 1e-6).sum(axis=1, keepdims=True)
    gold = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return p, gold


def table(scale, gold, answered):
    size = len(scale)
    cells = np.bincount(gold * size + answered, minlength=size * size)
    return ConfusionMatrix.from_counts(scale, cells.reshape(size, size))


def rows_of(levels, least=1, most=4):
    """Return a strategy for a few rows of probabilities with exact twentieths."""
    row = st.lists(st.integers(0, 20), min_size=levels, max_size=levels)
    return st.lists(row.filter(any), min_size=least, max_size=most).map(
        lambda rows: np.array(rows, float) / np.sum(rows, axis=1, keepdims=True)
    )


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
            float(find_metric("quadratic_kappa")(ConfusionMatrix.from_counts(SIX, cells)))
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
        Decoder("macro_mae", THREE).fit(np.full((2, 3), 1 / 3), ["low", "mid"], weights)


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
    found = Decoder(expression, scale).fit().predict_positions(p)
    for row in range(len(p)):
        merits = [metric.merit(expected_value(metric, scale, p[[row]], (a,))) for a in range(4)]
        assert merits[found[row]] == pytest.approx(max(merits), abs=1e-9)


@pytest.mark.parametrize("expression", ["accuracy", "mse", f"expected_cost(matrix={COSTS})"])
def test_the_best_of_all_labelings_is_that_of_every_row_alone(expression):
    scale, metric = Scale.of("1..4"), find_metric(expression)
    p, _ = simulated(3, 1, np.full(4, 0.25))
    found = Decoder(metric, scale).fit().predict_positions(p)
    merits = {
        answered: metric.merit(expected_value(metric, scale, p, answered))
        for answered in product(range(4), repeat=3)
    }
    assert merits[tuple(found)] == pytest.approx(max(merits.values()))


def naive_credit(expression, gold, level, answer):
    """Return what an answer to one item adds to a metric, from the naive definitions."""
    metric = find_metric(expression)
    oracle = getattr(naive, metric.alias_of or metric.name)
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
    decoder = Decoder(expression, scale).fit(p, gold + 1)
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
    decoder = Decoder(expression, THREE)
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
    decoder = Decoder(expression, scale).fit(p, make_label_array(scale)[gold])
    answered = decoder.predict_positions(p)
    cells = np.stack([np.bincount(answered, p[:, k], 6) for k in range(6)])
    value = float(metric(ConfusionMatrix.from_counts(scale, cells)))
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
        merits.append(metric.merit(metric(ConfusionMatrix.from_counts(SIX, cells))))
    assert merits[1] >= merits[0]


def test_a_search_over_many_rows_looks_at_some_and_says_so():
    p, gold = simulated(25_000, 7)
    decoder = Decoder("f1_macro", SIX).fit(p, make_label_array(SIX)[gold])
    assert any("over 20,000 rows" in note for note in decoder.notes_)


# --- ties ----------------------------------------------------------------------------------------


def test_of_equal_answers_the_most_probable_is_given_and_then_the_lowest():
    decoder = Decoder("accuracy_within", THREE).fit()
    assert decoder.predict([[0.2, 0.5, 0.3]]).tolist() == ["mid"]
    within_two = Decoder("accuracy_within(n=2)", THREE).fit()  # every answer is right
    rows = [[0.2, 0.3, 0.5], [0.4, 0.2, 0.4], [1 / 3, 1 / 3, 1 / 3]]
    assert within_two.predict(rows).tolist() == ["high", "low", "low"]
    assert Decoder("mae", THREE).fit().predict([[0.5, 0.0, 0.5]]).tolist() == ["low"]


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
    assert Decoder("mse", far).fit().predict(row).tolist() == ["mid"]
    assert Decoder("mae", far).fit().predict([[0.6, 0.0, 0.4]]).tolist() == ["low"]
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


# --- class weights and shares --------------------------------------------------------------------


def tilted(p, weights):
    q = p * weights
    return q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("expression", ["accuracy", "mae", "quadratic_kappa", "cem_ord"])
def test_class_weights_are_undone(expression):
    p, gold = simulated(3000, 12)
    weights = np.array([8.0, 4.0, 1.0, 1.0, 2.0, 5.0])
    labels = make_label_array(SIX)[gold]
    plain = Decoder(expression, SIX).fit(p, labels)
    by_order = Decoder(expression, SIX, class_weights=weights).fit(tilted(p, weights), labels)
    by_level = Decoder(
        expression, SIX, class_weights=dict(zip(SIX.labels, weights.tolist(), strict=True))
    ).fit(tilted(p, weights), labels)
    assert (plain.predict(p) == by_order.predict(tilted(p, weights))).all()
    assert (plain.predict(p) == by_level.predict(tilted(p, weights))).all()
    assert by_order.notes_ == plain.notes_ == ()


def test_balanced_weights_are_one_over_the_shares_of_gold():
    p, gold = simulated(3000, 13)
    weights = 1.0 / (np.bincount(gold) / len(gold))
    labels = make_label_array(SIX)[gold]
    plain = Decoder("mae", SIX).fit(p, labels)
    balanced = Decoder("mae", SIX, class_weights="balanced").fit(tilted(p, weights), labels)
    assert (plain.predict(p) == balanced.predict(tilted(p, weights))).all()


def test_balanced_weights_leave_a_level_that_gold_lacks_at_nothing():
    p = np.array([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]])
    decoder = Decoder("accuracy", THREE, class_weights="balanced").fit(p, ["low", "mid", "mid"])
    assert decoder.predict(p).tolist() == ["mid", "mid", "high"]


def test_mean_probabilities_far_from_the_shares_of_gold_are_noted():
    p, gold = simulated(3000, 14)
    weights = np.array([8.0, 4.0, 1.0, 1.0, 2.0, 5.0])
    labels = make_label_array(SIX)[gold]
    notes = Decoder("mae", SIX).fit(tilted(p, weights), labels).notes_
    assert len(notes) == 1
    assert "away from the shares of gold" in notes[0]
    assert "fitted with class weights (pass them" in notes[0]
    wrong = Decoder("mae", SIX, class_weights=weights).fit(p, labels).notes_
    assert "not the ones of a weighted-likelihood fit" in wrong[0]


def test_a_shift_of_the_levels_is_warned_of_where_their_shares_decide():
    p, gold = simulated(3000, 15)
    other, _ = simulated(3000, 16, SHARES[::-1] * [1, 1, 1, 1, 1, 3] / 1.06)
    decoder = Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold])
    assert decoder.describe_shift(p) is None
    with pytest.warns(UserWarning, match="away from the shares of the levels"):
        decoder.predict(other)
    assert "fit it on items like these" in decoder.describe_shift(other)
    assert Decoder("mae", SIX).fit(p, make_label_array(SIX)[gold]).describe_shift(other) is None


def test_a_few_rows_do_not_look_like_a_shift():
    p, gold = simulated(3000, 17)
    decoder = Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold])
    assert all(decoder.describe_shift(row[None]) is None for row in p[:50])


@given(p=rows_of(3), weights=st.lists(st.floats(0.1, 10), min_size=3, max_size=3))
def test_undone_probabilities_sum_to_one_and_weighing_them_again_restores_them(p, weights):
    found = undo_class_weights(p, np.array(weights))
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert tilted(found, np.array(weights)) == pytest.approx(p)


# --- levels that gold lacks ----------------------------------------------------------------------


@pytest.mark.parametrize("expression", [*BY_SHARES, *KAPPAS, *SEARCHED_METRICS])
def test_a_level_that_gold_lacks_does_no_harm(expression):
    p, gold = simulated(600, 18, np.array([0.3, 0.4, 0.28, 0.02]))
    gold = np.minimum(gold, 2)
    scale = Scale.of("1..4")
    decoder = Decoder(expression, scale).fit(p, gold + 1)
    assert np.isfinite(decoder.gain_).all()
    assert any("no item of 4" in note for note in decoder.notes_)
    if expression not in KAPPAS:  # which go to the ends, where chance errs most
        assert (decoder.predict_positions(p) == 3).sum() <= (p[:, 3] > 0.2).sum()


def test_a_level_that_gold_lacks_is_still_an_answer_where_shares_play_no_part():
    p = [[0.0, 0.1, 0.9], [0.9, 0.1, 0.0], [0.1, 0.9, 0.0]]
    decoder = Decoder("mae", THREE).fit(p, ["mid", "low", "mid"])
    assert decoder.predict(p).tolist() == ["high", "low", "mid"]


# --- doors ---------------------------------------------------------------------------------------


def test_columns_are_found_by_name():
    import pandas as pd

    p, gold = simulated(300, 19)
    labels = make_label_array(SIX)[gold]
    order = [3, 0, 5, 1, 4, 2]
    names = [SIX.labels[k] for k in order]
    plain = Decoder("quadratic_kappa", SIX).fit(p, labels).predict(p)
    named = Decoder("quadratic_kappa", SIX, columns=names).fit(p[:, order], labels)
    framed = pd.DataFrame(p[:, order], columns=[f"p_{name}" for name in names])
    assert (named.predict(p[:, order]) == plain).all()
    assert (Decoder("quadratic_kappa", SIX).fit(framed, labels).predict(framed) == plain).all()


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["low", "mid", "high"], "U"),
        ([1, 2, 3], "i"),
        ([0.5, 1.0, 2.0], "f"),
        (["low", 2, "high"], "O"),
        ([(1, 2), (2, 3), (3, 4)], "O"),
    ],
)
def test_predictions_are_labels_of_the_scale(labels, kind):
    found = Decoder("mae", Scale(labels)).fit().predict([[0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])
    assert found.dtype.kind == kind
    assert found.tolist() == [labels[1], labels[2]]


def test_the_scale_may_come_with_gold():
    p, gold = simulated(300, 20)
    assert Decoder("cem_ord").fit(p, make_label_array(SIX)[gold]).scale_.preset == "cefr"


def test_a_cost_matrix_of_ones_own_is_a_metric_too():
    p, _ = simulated(500, 21, np.full(4, 0.25))
    scale = Scale.of("1..4")
    named = Decoder(f"expected_cost(matrix={COSTS})", scale).fit().predict(p)
    assert (Decoder(cost=COSTS, scale=scale).fit().predict(p) == named).all()
    assert (Decoder(cost=np.array(COSTS), scale=scale).fit().predict(p) == named).all()
    brute = (p @ np.array(COSTS)).argmin(axis=1)
    assert (Decoder(cost=COSTS, scale=scale).fit().predict_positions(p) == brute).all()


def test_rows_that_nearly_sum_to_one_are_taken_where_asked_for():
    row = [[0.2, 0.5, 0.305]]
    with pytest.raises(BadProbabilities, match=r"sum to 1\.005"):
        Decoder("mae", THREE).fit().predict(row)
    assert Decoder("mae", THREE, renormalize=True).fit().predict(row).tolist() == ["mid"]


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kendall_tau_b", "pearson", "oci", "gwet_ac2", "purity"])
def test_what_cannot_be_decoded_is_refused_with_the_reason(name):
    with pytest.raises(BadOption, match=f"{name} cannot be decoded: it is neither a sum"):
        Decoder(name, SIX).fit()


def test_every_metric_is_decoded_or_refused():
    p, gold = simulated(300, 22)
    labels = make_label_array(SIX)[gold]
    for metric in list_metrics():
        try:
            Decoder(metric, SIX).fit(p, labels)
        except BadOption as problem:
            assert "cannot be decoded" in str(problem) or metric.required  # noqa: PT017 - either


def test_bias_is_best_at_zero_and_so_refused():
    with pytest.raises(BadOption, match="bias cannot be decoded: it is best at 0"):
        Decoder("bias", SIX).fit()


def test_probabilities_that_say_nothing_are_refused_for_kappas():
    _, gold = simulated(1000, 23, sharpness=None)
    shares = np.bincount(gold, minlength=6) / len(gold)
    with pytest.raises(BadOption, match="which is no better than chance"):
        Decoder("quadratic_kappa", SIX).fit(np.tile(shares, (1000, 1)), make_label_array(SIX)[gold])


def test_a_kappa_that_is_not_above_zero_on_the_items_is_noted():
    p = np.tile([0.5, 0.2, 0.3], (60, 1))
    gold = ["low", "mid", "high"] * 20
    notes = Decoder("quadratic_kappa", THREE).fit(p, gold).notes_
    assert any("is not above 0 on the items fitted on" in note for note in notes)


def test_gold_of_one_level_is_refused_for_kappas():
    p = [[0.8, 0.1, 0.1]] * 5
    with pytest.raises(BadOption, match="gold has one level only"):
        Decoder("linear_kappa", THREE).fit(p, ["low"] * 5)
    with pytest.raises(BadOption, match="cem_nom cannot be decoded: it is undefined here"):
        Decoder("cem_nom", THREE).fit(p, ["low"] * 5)


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (Decoder(scale=THREE), "Say what to decode for"),
        (Decoder("mae", cost=COSTS, scale=THREE), "Say what to decode for"),
        (Decoder(cost=COSTS, scale=THREE), "matrix must be 3 x 3"),
        (Decoder("mae", THREE, class_weights="heavy"), "'heavy' are no weights"),
        (Decoder("mae", THREE, class_weights=[1, 2]), r"\[1, 2\] are no weights for low < mid"),
        (Decoder("mae", THREE, class_weights=[1, 0, 2]), "are no weights"),
        (Decoder("mae", THREE, class_weights=["a", 0, 2]), "are no weights"),
        (Decoder("mae", THREE, class_weights={"low": 1, "mid": 2}), "no class weight for 'high'"),
        (
            Decoder("mae", THREE, class_weights={"low": 1, "mid": 2, "high": 1, "top": 1}),
            "class weight for 'top', which is not on low < mid < high",
        ),
    ],
)
def test_bad_options_are_refused(decoder, message):
    with pytest.raises(BadOption, match=message):
        decoder.fit([[0.2, 0.5, 0.3]], ["mid"])


def test_gold_is_asked_for_where_it_decides():
    with pytest.raises(BadOption, match="cem_ord is learned from probabilities and gold labels"):
        Decoder("cem_ord", THREE).fit([[0.2, 0.5, 0.3]])
    with pytest.raises(BadOption, match="one over the shares of gold: pass gold"):
        Decoder("mae", THREE, class_weights="balanced").fit()
    with pytest.raises(UnknownMetric, match="There is no metric 'quadratic_kapa'"):
        Decoder("quadratic_kapa", THREE).fit()


def test_bad_items_are_refused():
    row = [[0.2, 0.5, 0.3]]
    with pytest.raises(UnequalLengths, match="2 gold labels and 1 rows of probabilities"):
        Decoder("mae", THREE).fit(row, ["low", "mid"])
    with pytest.raises(MissingLabels, match=r"1 of 2 gold labels are missing \(row 2\)"):
        Decoder("mae", THREE).fit(row * 2, ["low", None])
    with pytest.raises(NoItems, match="no items to learn decoding from"):
        Decoder("mae", THREE).fit(np.empty((0, 3)), [])
    with pytest.raises(NotFitted, match="call fit first"):
        Decoder("mae", THREE).predict(row)


def test_a_refused_fit_leaves_no_half_fitted_decoder():
    decoder = Decoder("quadratic_kappa", THREE)
    with pytest.raises(BadOption, match="no better than chance"):
        decoder.fit([[0.5, 0.25, 0.25]] * 4, ["low", "low", "mid", "high"])
    with pytest.raises(NotFitted, match="call fit first"):
        decoder.predict([[0.5, 0.25, 0.25]])


# --- as scikit-learn asks ------------------------------------------------------------------------


def test_a_decoder_is_cloned_by_its_parameters():
    from sklearn.base import clone

    decoder = Decoder("quadratic_kappa", SIX, class_weights=[1, 2, 3, 4, 5, 6])
    copy = clone(decoder)
    assert copy.get_params() == decoder.get_params()
    assert copy.set_params(metric="mae").metric == "mae"
    assert not hasattr(copy, "gain_")


def test_a_decoder_ends_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    p, gold = simulated(300, 24)
    labels = make_label_array(SIX)[gold]
    line = make_pipeline(FunctionTransformer(np.exp), Decoder("cem_ord", SIX))
    line.fit(np.log(p), labels)
    assert (line.predict(np.log(p)) == Decoder("cem_ord", SIX).fit(p, labels).predict(p)).all()


def test_a_fitted_decoder_survives_a_pickle():
    p, gold = simulated(300, 25)
    decoder = Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold])
    assert (pickle.loads(pickle.dumps(decoder)).predict(p) == decoder.predict(p)).all()  # noqa: S301 - our own


def test_dinkelbach_stops_at_the_ratio_of_its_own_answers():
    p, gold = simulated(2000, 26)
    shares = np.bincount(gold, minlength=6) / 2000
    found = minimise_cost_ratio(p, SIX.gaps**2, shares)
    worth = p @ found.gain
    assert worth.max(axis=1).mean() == pytest.approx(0.0, abs=1e-9)  # F(λ) = 0


def test_on_true_posteriors_no_other_decoder_does_better_on_a_metric():
    p, gold = simulated(8000, 27)
    fresh, truth = simulated(30_000, 28)
    names = ["quadratic_kappa", "mae", "cem_ord", "accuracy", "macro_mae", "f1_macro"]
    tables = {
        name: table(
            SIX,
            truth,
            Decoder(name, SIX).fit(p, make_label_array(SIX)[gold]).predict_positions(fresh),
        )
        for name in names
    }
    for name in names:
        merits = {
            other: float(find_metric(name).merit(find_metric(name)(tables[other])))
            for other in names
        }
        assert merits[name] >= max(merits.values()) - 0.002, name


def test_a_search_is_not_held_up_by_a_level_that_gold_lacks():
    p, gold = simulated(3000, 29, np.array([0.1, 0.5, 0.38, 0.02]))
    gold = np.minimum(gold, 2)
    scale, metric = Scale.of("1..4"), find_metric("min_sensitivity")
    decoder = Decoder(metric, scale).fit(p, gold + 1)
    argmax, decoded = (
        float(metric(table(scale, gold, answered)))
        for answered in (p.argmax(axis=1), decoder.predict_positions(p))
    )
    assert decoded > argmax + 0.05


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


@pytest.mark.parametrize("noise", [0.7, 1.2])
@pytest.mark.parametrize("shares", [[0.6, 0.25, 0.1, 0.04, 0.01], [0.05, 0.15, 0.5, 0.25, 0.05]])
def test_the_worst_level_fares_best_when_decoded_for(shares, noise):
    p, gold = posteriors(6000, np.array(shares), noise, 30)
    five = Scale.of("0..4")
    names = ["min_sensitivity", "max_mae"]
    bases = [compute_credits(find_metric(name), five, np.ones(5)) for name in ("accuracy", "mae")]
    gains = [Decoder(name, five).fit(p, gold).gain_ for name in names]
    gains += [levelled(p, credit) for credit in bases]
    cells = [compute_expected_matrix(p, choose_levels(p, gain)) for gain in gains]
    for place, name in enumerate(names):
        metric = find_metric(name)
        merits = [float(metric.merit(metric(ConfusionMatrix.from_counts(five, x)))) for x in cells]
        assert merits[place] >= max(merits) - 0.002, (name, merits)


# --- columns without names -----------------------------------------------------------------------


def test_columns_that_scikit_learn_would_sort_otherwise_are_doubted():
    rows = [[0.2, 0.3, 0.5]]
    with pytest.warns(UserWarning, match=r"the scale, low < mid < high; .* columns=model.classes_"):
        Decoder("mae", THREE).fit().predict(rows)
    with pytest.warns(UserWarning, match="Columns without names") as told:
        Decoder("macro_mae", THREE).fit(rows * 3, THREE.labels)
    assert told[0].filename == __file__


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("scale", "columns"),
    [
        ("low,mid,high", ["low", "mid", "high"]),
        ("low,mid,high", ["high", "low", "mid"]),
        ("A1,A2,B1", None),
        ("8..10", None),
    ],
)
def test_named_or_sorted_columns_are_not_doubted(scale, columns):
    assert len(Decoder("mae", scale, columns=columns).fit().predict([[0.2, 0.3, 0.5]])) == 1


def test_names_of_columns_may_be_told_once_only():
    decoder = Decoder("mae", THREE, columns=iter(["high", "low", "mid"]))
    decoder.fit([[0.1, 0.8, 0.1]], ["low"])
    assert decoder.predict([[0.1, 0.8, 0.1]]).tolist() == ["low"]
