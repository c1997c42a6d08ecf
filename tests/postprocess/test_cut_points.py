"""Cut points are as good as trying all of them, and follow the order of the scores alone."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from naive import NAIVE
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from strategies import scale_of

from ordinate.errors import (
    BadInput,
    BadOption,
    BadWeights,
    MissingLabels,
    NoItems,
    NotApplicable,
    NotFitted,
    OffScale,
    UnequalLengths,
    UnknownMetric,
)
from ordinate.metrics import find_metric, list_metrics, metric
from ordinate.metrics.catalogue import CATALOGUE
from ordinate.postprocess import cut_search
from ordinate.postprocess.cut_points import CutPoints
from ordinate.postprocess.cut_search import (
    COLUMN_METRICS,
    ScoreOrderedItems,
    maximise_column_worth,
    search_best_cuts,
)
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

COSTS = [[0, 1, 5, 9], [2, 0, 1, 3], [4, -1, 0, 1], [9, 5, 1, 0]]  # one wrong answer is best
EXACT = [
    "accuracy",
    "accuracy_within",
    "accuracy_within(n=2)",
    "macro_accuracy",
    "ordinal_distance_linear",
    "ordinal_mse",
    "mae",
    "mse",
    "rmse",
    "macro_mae",
    "macro_mse",
    "rennie_srebro",
    "rennie_srebro(kind='immediate',penalty='logistic')",
    "cem_ord",
    "cem_ord_flat",
    "cem_nom",
    "cem_nom(ties='half')",
    "cem_int",
    "cohen_kappa",
    "linear_kappa",
    "quadratic_kappa",
    "weighted_kappa(power=0.5)",
    "ccc",
    "cem_ord_chance_corrected",
    "precision_macro",
    "recall_macro",
    "f1_macro",
    "f1_weighted",
    "f1_micro",
    "mutual_information",
    "normalized_mutual_information",
    "purity",
]
SEARCHED = sorted(
    {m.name for m in list_metrics() if not m.required}
    - {find_metric(x).alias_of or find_metric(x).name for x in EXACT}
)


# --- oracles in plain Python ---------------------------------------------------------------------


def labellings(scores, size):
    """Every way to give levels that do not fall while scores rise, equal to equal scores."""
    distinct = sorted(set(scores))
    for places in combinations_with_replacement(range(len(distinct) + 1), size - 1):
        level = {s: sum(p <= rank for p in places) for rank, s in enumerate(distinct)}
        yield [level[s] for s in scores]


def merit(metric, value):
    if np.isnan(value):
        return -np.inf
    return {"maximize": value, "minimize": -value, "zero": -abs(value)}[metric.direction]


def best_by_definition(metric, scores, gold, scale):
    """The best merit of all labellings, by the definition of the metric over items."""
    function = NAIVE[metric.alias_of or metric.name]
    options = dict(metric.options)
    return max(
        merit(metric, function(gold, predicted, scale.at, **options))
        for predicted in labellings(scores, len(scale))
    )


def best_by_tables(metric, scores, gold, scale, weights=None):
    tried = list(labellings(scores, len(scale)))
    weights = np.ones(len(gold)) if weights is None else np.asarray(weights)
    cells = np.zeros((len(tried), len(scale), len(scale)))
    for table, predicted in zip(cells, tried, strict=True):
        np.add.at(table, (gold, predicted), weights)
    values = metric(ConfusionMatrix.from_counts(cells, scale))
    return max(merit(metric, value) for value in values)


def fitted(expression, scores, gold, scale, **options):
    labels = [scale.labels[level] for level in gold]
    return CutPoints(expression, scale=scale).fit(scores, labels, **options)


@st.composite
def problems(draw, max_levels=4, max_items=7, max_scores=5):
    size = draw(st.integers(2, max_levels))
    steps = draw(st.lists(st.sampled_from([1, 1, 0.5, 3]), min_size=size - 1, max_size=size - 1))
    n = draw(st.integers(2, max_items))
    gold = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    if len(set(gold)) == 1:
        gold[0] = (gold[0] + 1) % size
    scores = draw(st.lists(st.integers(1, max_scores), min_size=n, max_size=n))
    scale = scale_of(size, [0, *np.cumsum(steps)])
    return [float(s) for s in scores], gold, scale


# --- as good as trying everything ----------------------------------------------------------------


@pytest.mark.parametrize("expression", EXACT)
@examples(8)
@given(problem=problems())
def test_exact_cuts_are_as_good_as_all_labellings_by_definition(expression, problem):
    scores, gold, scale = problem
    cuts = fitted(expression, scores, gold, scale)
    wanted = find_metric(expression)
    assert cuts.exact_
    assert merit(wanted, cuts.value_) == pytest.approx(
        best_by_definition(wanted, scores, gold, scale), abs=1e-9
    )


@pytest.mark.parametrize(
    "expression",
    [
        "quadratic_kappa",
        "cem_ord_chance_corrected",
        "f1_macro",
        "macro_mae",
        "normalized_mutual_information",
    ],
)
@examples(60)
@given(problem=problems(max_levels=5, max_items=14, max_scores=8))
def test_exact_cuts_are_as_good_as_all_labellings_of_more_items(expression, problem):
    scores, gold, scale = problem
    cuts = fitted(expression, scores, gold, scale)
    wanted = find_metric(expression)
    assert merit(wanted, cuts.value_) == pytest.approx(
        best_by_tables(wanted, scores, gold, scale), abs=1e-9
    )


@given(problems(), st.data())
def test_costs_of_ones_own_need_not_favour_the_right_level(problem, data):
    scores, gold, scale = problem
    size = len(scale)
    costs = find_metric("expected_cost").with_options(matrix=[row[:size] for row in COSTS[:size]])
    if data.draw(st.booleans()):
        gold = [gold[0]] * len(gold)
    cuts = fitted(costs, scores, gold, scale)
    assert cuts.exact_
    assert -cuts.value_ == pytest.approx(best_by_tables(costs, scores, gold, scale), abs=1e-9)


@pytest.mark.parametrize("expression", ["quadratic_kappa", "mae", "f1_macro", "purity", "cem_ord"])
@examples(20)
@given(problem=problems(max_items=9, max_scores=6), data=st.data())
def test_exact_cuts_with_weights_are_as_good_as_all_labellings(expression, problem, data):
    scores, gold, scale = problem
    weight = st.sampled_from([0.25, 1.0, 1.75, 4.0])
    weights = data.draw(st.lists(weight, min_size=len(gold), max_size=len(gold)))
    cuts = fitted(expression, scores, gold, scale, sample_weight=weights)
    wanted = find_metric(expression)
    assert merit(wanted, cuts.value_) == pytest.approx(
        best_by_tables(wanted, scores, gold, scale, weights), abs=1e-9
    )


@pytest.mark.parametrize("expression", SEARCHED)
def test_a_search_is_near_the_best_and_does_not_call_itself_exact(expression):
    rng = np.random.default_rng(5)
    wanted, scale = find_metric(expression), scale_of(4)
    shortfalls = []
    for _ in range(5):
        gold = rng.integers(0, 4, 25)
        scores = np.round(gold + rng.normal(0, 1, 25), 1)
        cuts = fitted(wanted, scores, gold, scale)
        best = best_by_tables(wanted, scores.tolist(), gold, scale)
        shortfalls.append(best - merit(wanted, cuts.value_))
        assert not cuts.exact_ or shortfalls[-1] == pytest.approx(0, abs=1e-9)
    assert min(shortfalls) >= -1e-9
    assert np.mean(np.array(shortfalls) < 1e-9) >= 0.5
    assert max(shortfalls) < 0.05


def test_a_search_that_reaches_the_best_possible_value_is_exact():
    cuts = CutPoints("min_sensitivity", scale="1..3").fit([1, 2, 3, 4], [1, 2, 2, 3])
    assert (cuts.value_, cuts.exact_) == (1.0, True)


@pytest.mark.parametrize("expression", ["quadratic_kappa", "mae", "cem_ord", "linear_kappa"])
@pytest.mark.parametrize("seed", range(4))
def test_exact_cuts_are_never_below_nelder_mead(expression, seed):
    rng = np.random.default_rng(seed)
    scale, wanted = scale_of(5), find_metric(expression)
    gold = rng.choice(5, 300, p=[0.1, 0.2, 0.4, 0.2, 0.1])
    scores = 0.6 * gold + rng.normal(0.8, 0.9, 300)

    def loss(thresholds):
        predicted = np.searchsorted(np.sort(thresholds), scores)
        cells = np.zeros((5, 5))
        np.add.at(cells, (gold, predicted), 1)
        return -merit(wanted, float(wanted(ConfusionMatrix.from_counts(cells, scale))))

    usual = minimize(loss, [0.5, 1.5, 2.5, 3.5], method="Nelder-Mead", options={"maxiter": 400})
    cuts = fitted(expression, scores, gold, scale)
    assert merit(wanted, cuts.value_) >= -usual.fun - 1e-12
    assert merit(wanted, cuts.value_) == pytest.approx(-loss(cuts.cuts_), abs=1e-12)


def test_the_value_is_that_of_the_predictions_on_the_same_items():
    rng = np.random.default_rng(1)
    gold = rng.integers(1, 7, 150)
    scores = gold + rng.normal(0, 1, 150)
    for expression in [*EXACT, *SEARCHED]:
        cuts = CutPoints(expression, scale="1..6").fit(scores, gold)
        table = ConfusionMatrix.of(gold, cuts.predict(scores), "1..6")
        assert float(find_metric(expression)(table)) == pytest.approx(cuts.value_, abs=1e-12)


# --- many scores ---------------------------------------------------------------------------------


def many(n, seed=3):
    rng = np.random.default_rng(seed)
    gold = rng.choice(6, n, p=[0.05, 0.2, 0.3, 0.25, 0.15, 0.05])
    return gold + rng.normal(0, 1, n), gold


def many_items(n):
    scores, gold = many(n)
    ranks = np.unique(scores, return_inverse=True)[1]
    return ScoreOrderedItems.of(Scale.of("0..5"), ranks, gold, np.ones(n))


@pytest.mark.parametrize("expression", ["f1_macro", "mutual_information", "purity"])
def test_grouped_scores_are_not_exact_and_lose_little(expression):
    items, metric = many_items(600), find_metric(expression)
    places, exact = search_best_cuts(metric, items)
    grouped_places, grouped_exact = search_best_cuts(metric, items, most_scores=100)
    best, grouped = (float(metric(items.tabulate_cuts(x))) for x in (places, grouped_places))
    assert exact
    assert not grouped_exact
    assert best - 0.01 < grouped <= best + 1e-12


def test_columns_in_blocks_are_the_same_as_at_once():
    items = many_items(200)
    gold = (items.gold / 200)[:, None, None]

    def worth(segments):
        return COLUMN_METRICS["f1_macro"](segments / 200, gold, 0.0)

    at_once = maximise_column_worth(worth, items.below)
    in_blocks = maximise_column_worth(worth, items.below, most_cells=1 << 12)
    assert in_blocks.tolist() == at_once.tolist()


def test_a_search_over_many_scores_ends_between_neighbouring_scores(monkeypatch):
    items, metric = many_items(900), find_metric("mcc")

    def best_value(**limits):
        return float(metric(items.tabulate_cuts(search_best_cuts(metric, items, **limits)[0])))

    coarse = best_value(most_candidates=60)
    assert coarse > best_value() - 0.01
    monkeypatch.setattr(cut_search, "_refine_cuts", lambda _metric, _items, places, _stops: places)
    assert coarse > best_value(most_candidates=60)


def test_a_hundred_thousand_distinct_scores_are_fitted_exactly():
    scores, gold = many(100_000)
    assert len(set(scores)) == 100_000
    for expression in ("quadratic_kappa", "cem_ord", "macro_mae"):
        assert CutPoints(expression, scale="0..5").fit(scores, gold).exact_


# --- laws ----------------------------------------------------------------------------------------

SOME = st.sampled_from(["quadratic_kappa", "mae", "f1_macro", "mutual_information", "mcc"])


@examples(50)
@given(problems(), SOME)
def test_order_preserving_transforms_leave_predictions_unchanged(problem, expression):
    scores, gold, scale = problem
    plain = fitted(expression, scores, gold, scale).predict(scores)
    for moved in (np.exp(scores), np.array(scores) * 0.3 - 7, np.array(scores) ** 3):
        assert fitted(expression, moved, gold, scale).predict(moved).tolist() == plain.tolist()


@examples(50)
@given(problems(), SOME, st.randoms(use_true_random=False))
def test_the_order_of_the_items_changes_nothing(problem, expression, random):
    scores, gold, scale = problem
    weights = [0.1 + random.random() for _ in gold]
    order = random.sample(range(len(gold)), len(gold))
    first = fitted(expression, scores, gold, scale, sample_weight=weights)
    second = fitted(
        expression,
        [scores[k] for k in order],
        [gold[k] for k in order],
        scale,
        sample_weight=[weights[k] for k in order],
    )
    assert first.cuts_.tolist() == second.cuts_.tolist()
    assert str(first.value_) == str(second.value_)  # nan where nothing can be distinguished


@examples(40)
@given(problems(), SOME)
def test_weights_are_the_same_as_repeated_items(problem, expression):
    scores, gold, scale = problem
    times = [k % 3 for k in range(1, len(gold) + 1)]
    if not any(times):
        times[0] = 1
    weighted = fitted(expression, scores, gold, scale, sample_weight=times)
    repeated = fitted(expression, np.repeat(scores, times), np.repeat(gold, times), scale)
    assert weighted.cuts_.tolist() == repeated.cuts_.tolist()


@examples(40)
@given(problems(), SOME)
def test_cuts_never_fall_and_higher_scores_never_get_lower_levels(problem, expression):
    scores, gold, scale = problem
    cuts = fitted(expression, scores, gold, scale)
    assert len(cuts.cuts_) == len(scale) - 1
    assert (cuts.cuts_[1:] >= cuts.cuts_[:-1]).all()  # inf - inf has no difference
    levels = [scale.labels.index(x) for x in cuts.predict(np.linspace(-10, 10, 41))]
    assert levels == sorted(levels)


# --- where cuts are ------------------------------------------------------------------------------


def test_cuts_are_midway_between_distinct_scores():
    cuts = CutPoints("accuracy", scale="low,mid,high").fit(
        [1, 1, 2, 5, 9], ["low", "low", "low", "mid", "high"]
    )
    assert cuts.cuts_.tolist() == [3.5, 7.0]


def test_levels_that_are_never_predicted_have_equal_or_infinite_cuts():
    cuts = CutPoints("accuracy", scale="1..5").fit([1, 2, 3, 4], [2, 2, 4, 4])
    assert cuts.cuts_.tolist() == [-np.inf, 2.5, 2.5, np.inf]
    assert cuts.predict([-99, 2, 3, 99]).tolist() == [2, 2, 4, 4]


def test_equal_scores_are_never_split():
    cuts = CutPoints("accuracy", scale="1..2").fit([3, 3, 3], [1, 2, 2])
    assert cuts.predict([3]).tolist() == [2]
    assert cuts.value_ == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "low", [1.0, 1 - 2**-53, 5e-324, 0.0, -1e308, 1.7976931348623155e308, 1e16, -5e-324]
)
def test_neighbouring_numbers_can_be_told_apart(low):
    scores = [low, np.nextafter(low, np.inf)]
    cuts = CutPoints("accuracy", scale="1..2").fit(scores, [1, 2])
    assert cuts.predict(scores).tolist() == [1, 2]


def test_the_widest_scores_have_a_midpoint():
    cuts = CutPoints("accuracy", scale="1..2").fit([-1.7e308, 1.7e308], [1, 2])
    assert cuts.cuts_.tolist() == [0.0]


def test_of_equally_good_cuts_the_lowest_are_taken():
    tied = CutPoints("accuracy", scale="1..2").fit([1, 2, 3, 4], [1, 2, 1, 2])
    assert tied.cuts_.tolist() == [1.5]


def test_a_level_that_gold_lacks_is_not_predicted_where_that_does_harm():
    cuts = CutPoints("recall_macro", scale="1..3").fit([1, 2, 3], [2, 2, 1])
    assert cuts.value_ == 0.5
    assert 3 not in cuts.predict([1, 2, 3])


def test_a_score_that_falls_is_taken_as_it_is():
    cuts = CutPoints("quadratic_kappa", scale="1..3").fit([3, 2, 1], [1, 2, 3])
    assert cuts.exact_
    assert cuts.value_ == pytest.approx(0)
    assert len(set(cuts.predict([1, 2, 3]).tolist())) == 1


@pytest.mark.parametrize("expression", ["quadratic_kappa", "cem_nom", "mutual_information", "mcc"])
def test_gold_of_one_level_gives_that_level(expression):
    cuts = CutPoints(expression, scale="1..3").fit([1.0, 2.0], [2, 2])
    assert cuts.predict([-5, 1, 2, 5]).tolist() == [2, 2, 2, 2]
    assert not cuts.exact_


def test_one_item_is_enough():
    cuts = CutPoints("mae", scale="1..3").fit([0.5], [3])
    assert cuts.predict([0.5, -1]).tolist() == [3, 3]
    assert (cuts.value_, cuts.exact_) == (0.0, True)


# --- the doors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [list, np.array, lambda x: np.array(x)[:, None]])
def test_scores_come_as_one_column(shape):
    cuts = CutPoints("mae", scale="1..2").fit(shape([1.0, 2.0]), [1, 2])
    assert cuts.predict(shape([0.0, 3.0])).tolist() == [1, 2]


def test_scores_and_gold_come_from_frames():
    import pandas as pd
    import polars as pl

    for frame in (pd.DataFrame, pl.DataFrame):
        data = frame({"score": [0.1, 0.9], "gold": ["A2", "B1"]})
        cuts = CutPoints("mae").fit(data["score"], data["gold"])
        assert cuts.scale_.preset == "cefr"
        assert cuts.predict(data[["score"]]).tolist() == ["A2", "B1"]


def test_labels_come_back_as_they_were_declared():
    assert CutPoints("mae", scale="1..2").fit([1, 2], [1, 2]).predict([1]).dtype.kind == "i"
    mixed = CutPoints("mae", scale=Scale([1, "two"])).fit([1, 2], [1, "two"]).predict([1, 2])
    assert mixed.tolist() == [1, "two"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None])
def test_a_score_that_is_no_number_is_named_by_its_row(bad):
    with pytest.raises(BadInput, match=r"Score -?\w+ \(row 2\) is not a finite number"):
        CutPoints("mae", scale="1..2").fit([1, bad, 2], [1, 2, 2])
    cuts = CutPoints("mae", scale="1..2").fit([1, 2], [1, 2])
    with pytest.raises(BadInput, match=r"row 3"):
        cuts.predict([1, 2, bad])


@pytest.mark.parametrize(
    ("scores", "gold", "error", "message"),
    [
        (["a", "b"], [1, 2], BadInput, "must be numbers"),
        ([[1, 2], [3, 4]], [1, 2], BadInput, r"one column of numbers, not of the shape \(2, 2\)"),
        ([1, 2, 3], [1, 2], UnequalLengths, "2 gold labels and 3 scores"),
        ([1, 2], [1, 7], OffScale, r"Label 7 \(row 2 of gold\)"),
        ([1, 2], [1, None], MissingLabels, r"1 of 2 gold labels are missing \(row 2\)"),
        ([], [], NoItems, "there are no scores"),
    ],
)
def test_bad_columns_are_refused(scores, gold, error, message):
    with pytest.raises(error, match=message):
        CutPoints("mae", scale="1..2").fit(scores, gold)


def test_items_of_weight_0_do_not_exist():
    cuts = CutPoints("mae", scale="1..2").fit([1, 2, 3], [1, None, 2], sample_weight=[1, 0, 1])
    assert cuts.cuts_.tolist() == [2.0]
    with pytest.raises(NoItems, match="all weights are 0"):
        CutPoints("mae", scale="1..2").fit([1, 2], [1, 2], sample_weight=[0, 0])
    with pytest.raises(BadWeights, match=r"Weight -1.0 \(row 2\)"):
        CutPoints("mae", scale="1..2").fit([1, 2], [1, 2], sample_weight=[1, -1])


def test_metrics_that_cannot_be_had_are_refused():
    with pytest.raises(UnknownMetric, match="no metric 'maee'"):
        CutPoints("maee", scale="1..2").fit([1, 2], [1, 2])
    with pytest.raises(BadOption, match="expected_cost needs matrix"):
        CutPoints("expected_cost", scale="1..2").fit([1, 2], [1, 2])
    with pytest.raises(NotApplicable, match="No cuts for krippendorff_alpha: the weights are no"):
        CutPoints("krippendorff_alpha", scale="1..2").fit([1, 2], [1, 2], sample_weight=[0.5, 1.5])


def test_metrics_of_ones_own_are_searched_or_exact_where_linear():
    @metric(direction="minimize", linear=True)
    def too_high(table):
        return np.triu(table.share, 1).sum(axis=(-2, -1))

    try:
        cuts = CutPoints("too_high", scale="1..3").fit([1, 2, 3], [1, 1, 2])
        assert (cuts.value_, cuts.exact_) == (0.0, True)
    finally:
        del CATALOGUE["too_high", ConfusionMatrix]


def test_it_is_an_estimator():
    cuts = CutPoints("mae", scale="1..3")
    with pytest.raises(NotFitted, match="This CutPoints is not fitted yet"):
        cuts.predict([1.0])
    assert clone(cuts).get_params() == {"metric": "mae", "scale": "1..3"}
    assert repr(clone(cuts)) == "CutPoints(metric='mae', scale='1..3')"
    scores = np.tile([[0.0], [1.0], [2.0]], (10, 1))
    found = cross_val_predict(cuts, scores, np.tile([1, 2, 3], 10), cv=3)
    assert found.tolist() == [1, 2, 3] * 10


def test_a_score_of_weight_0_may_be_missing():
    scores, gold = [0.1, np.nan, 0.7, 0.9], ["low", "low", "mid", "high"]
    cuts = CutPoints("mae", scale="low,mid,high").fit(scores, gold, [1, 0, 1, 1])
    assert cuts.cuts_ == pytest.approx([0.4, 0.8])
    with pytest.raises(BadInput, match=r"Score nan \(row 2\) is not a finite number"):
        CutPoints("mae", scale="low,mid,high").fit(scores, gold, [1, 1, 1, 0])
