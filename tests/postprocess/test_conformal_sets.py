"""Ordinal prediction sets hold what they promise, are in one piece and are never empty."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sklearn.base import clone
from strategies import scale_of

from ordinate.errors import (
    BadInput,
    BadOption,
    BadProbabilities,
    MissingLabels,
    NoItems,
    NotFitted,
    OffScale,
    UnequalLengths,
)
from ordinate.inference.small_samples import wilson_interval
from ordinate.postprocess.conformal_sets import (
    OrdinalConformalSets,
    PredictionSets,
    compute_nonconformity_scores,
    conformal_quantile,
    evaluate_prediction_sets,
    find_threshold,
)
from ordinate.scale import Scale

# --- oracles in plain Python ---------------------------------------------------------------------


def grown(row):
    """The levels of a row in the order in which they join, with what is held before each."""
    low = high = max(range(len(row)), key=lambda k: (row[k], -k))
    joined, held = [(low, 0)], row[low]
    while high - low + 1 < len(row):
        below = row[low - 1] if low > 0 else -1
        above = row[high + 1] if high + 1 < len(row) else -1
        if below >= above:
            low -= 1
            joined.append((low, held))
        else:
            high += 1
            joined.append((high, held))
        held = held + row[joined[-1][0]]
    return joined


def widened(row):
    """The same by the best windows of 1, 2, … levels, each set with all levels between them."""
    size, joined, held = len(row), {}, 0
    low, high = size, -1
    for length in range(1, size + 1):
        sums = [sum(row[first : first + length]) for first in range(size - length + 1)]
        first = sums.index(max(sums))
        low, high = min(low, first), max(high, first + length - 1)
        joined |= {k: held for k in range(low, high + 1) if k not in joined}
        held = max(sums)
    return list(joined.items())


ORACLES = {"greedy": grown, "shortest": widened}


def naive_threshold(scores, alpha):
    rank = math.ceil((len(scores) + 1) * (1 - Fraction(str(alpha))))
    return sorted(scores)[rank - 1] if rank <= len(scores) else math.inf


def naive_sets(rows, gold, new, alpha, *, rule, per_level):
    size, join = len(new[0]), ORACLES[rule]
    scores = [dict(join(row))[level] for row, level in zip(rows, gold, strict=True)]
    limits = [
        naive_threshold(
            [s for s, g in zip(scores, gold, strict=True) if g == k or not per_level], alpha
        )
        for k in range(size)
    ]
    found = []
    for row in new:
        inside = [level for level, score in join(row) if score <= limits[level]]
        found.append((min(inside), max(inside)))
    return found


@st.composite
def rows(draw, size, max_rows=12, parts=64):
    """Probabilities in few parts, so that ties are common; sums of 64ths are exact."""
    n = draw(st.integers(1, max_rows))
    found = []
    for _ in range(n):
        ends = sorted(draw(st.lists(st.integers(0, parts), min_size=size - 1, max_size=size - 1)))
        found.append([(b - a) / parts for a, b in zip([0, *ends], [*ends, parts], strict=True)])
    return found


@st.composite
def problems(draw):
    size = draw(st.integers(2, 5))
    calibration, new = draw(rows(size)), draw(rows(size, max_rows=5))
    n = len(calibration)
    gold = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    return size, calibration, gold, new


RULES = st.sampled_from(["greedy", "shortest"])
ALPHAS = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5, 0.9])


def fitted(size, calibration, gold, alpha, **options):
    scale = scale_of(size)
    labels = [scale.labels[k] for k in gold]
    groups = options.pop("groups", None)
    return OrdinalConformalSets(alpha, scale=scale, **options).fit(calibration, labels, groups)


def spans(sets):
    return list(zip(sets.low_positions.tolist(), sets.high_positions.tolist(), strict=True))


# --- by definition -------------------------------------------------------------------------------


@given(problems(), ALPHAS, st.booleans(), RULES)
def test_sets_are_those_of_the_definition(problem, alpha, per_level, rule):
    size, calibration, gold, new = problem
    found = fitted(size, calibration, gold, alpha, rule=rule, per_level=per_level).predict(new)
    wanted = naive_sets(calibration, gold, new, alpha, rule=rule, per_level=per_level)
    assert spans(found) == wanted


def test_of_equals_the_lower_level_joins_first():
    scores = compute_nonconformity_scores(
        np.array([[0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.0, 0.5]])
    )
    assert scores.tolist() == [[0.5, 0.0, 0.75], [0.75, 0.5, 0.0], [0.0, 0.5, 0.5]]


@given(st.integers(2, 6).flatmap(lambda size: rows(size, parts=8)), RULES)
def test_levels_join_in_the_order_of_the_definition(found, rule):
    for row, scores in zip(found, compute_nonconformity_scores(np.array(found), rule), strict=True):
        assert [dict(ORACLES[rule](row))[k] for k in range(len(row))] == scores.tolist()


@given(st.integers(2, 6).flatmap(lambda size: rows(size, parts=8)), st.integers(0, 6))
def test_both_rules_are_the_same_where_rows_have_one_peak(found, peak):
    parts = [(sorted(row[:peak]), sorted(row[peak:], reverse=True)) for row in found]
    one_peak = np.array([up + down for up, down in parts])
    greedy, shortest = (compute_nonconformity_scores(one_peak, r) for r in ("greedy", "shortest"))
    assert greedy.tolist() == shortest.tolist()


@given(
    st.integers(2, 6).flatmap(lambda size: rows(size, parts=8)), RULES, st.sampled_from(range(9))
)
def test_a_set_is_in_one_piece_and_holds_more_than_the_threshold(found, rule, eighths):
    given_rows, threshold = np.array(found), eighths / 8
    members = compute_nonconformity_scores(given_rows, rule) <= threshold
    assert members[np.arange(len(found)), given_rows.argmax(axis=1)].all()
    assert (np.abs(np.diff(members.astype(int), axis=1)).sum(axis=1) <= 2).all()
    held = (given_rows * members).sum(axis=1)
    assert ((held > threshold) | members.all(axis=1)).all()


@pytest.mark.parametrize(
    ("row", "threshold", "sizes"),
    [
        ([0.4, 0.0, 0.3, 0.3], 0.5, (3, 4)),  # the best two levels are not beside the best one
        ([0.01, 0.05, 0.49, 0.0, 0.45], 0.6, (5, 4)),  # greed goes down, and has to come back
    ],
)
def test_neither_rule_has_the_shorter_set_at_every_threshold(row, threshold, sizes):
    scores = [compute_nonconformity_scores(np.array([row]), rule) for rule in ORACLES]
    assert tuple((score <= threshold).sum() for score in scores) == sizes


def test_windows_that_are_equal_but_for_rounding_are_equal():
    row = [0.3, 0.1, 0.2, 0.1, 0.3]  # 0.3 + 0.1 + 0.2 is 0.2 + 0.1 + 0.3
    scores = compute_nonconformity_scores(np.array([row]), "shortest")
    assert scores[0].round(12).tolist() == [0.0, 0.3, 0.4, 0.6, 0.7]
    row = [0.02, 0.04, 0.92, 0.02]
    assert row[0] + row[1] + row[2] < row[1] + row[2] + row[3]  # and yet the lower one is taken
    scores = compute_nonconformity_scores(np.array([row]), "shortest")
    assert scores[0].round(12).tolist() == [0.96, 0.92, 0.0, 0.98]


@examples(50)
@given(problems(), ALPHAS, st.booleans(), st.data())
def test_groups_are_the_same_as_fitting_each_alone(problem, alpha, per_level, data):
    size, calibration, gold, new = problem
    group = st.sampled_from(["x", "y"])
    groups = data.draw(st.lists(group, min_size=len(gold), max_size=len(gold)))
    asked = data.draw(st.lists(group, min_size=len(new), max_size=len(new)))
    sets = fitted(size, calibration, gold, alpha, per_level=per_level, groups=groups)
    found = spans(sets.predict(new, asked))
    for name in set(asked):
        mine = [k for k, value in enumerate(groups) if value == name]
        rows_of = [row for row, value in zip(new, asked, strict=True) if value == name]
        got = [span for span, value in zip(found, asked, strict=True) if value == name]
        if not mine:
            assert got == [(0, size - 1)] * len(rows_of)
            continue
        alone = fitted(
            size,
            [calibration[k] for k in mine],
            [gold[k] for k in mine],
            alpha,
            per_level=per_level,
        )
        assert got == spans(alone.predict(rows_of))


@given(problems(), ALPHAS, st.booleans())
def test_sets_have_the_most_probable_level_and_are_never_empty(problem, alpha, per_level):
    size, calibration, gold, new = problem
    sets = fitted(size, calibration, gold, alpha, per_level=per_level).predict(new)
    modes = np.argmax(new, axis=1)
    assert sets.members[np.arange(len(new)), modes].all()
    assert (sets.sizes >= 1).all()
    assert (np.abs(np.diff(sets.members.astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert (sets.members.sum(axis=1) == sets.sizes).all()


@given(problems(), st.booleans())
def test_sets_of_a_smaller_alpha_have_all_levels_of_those_of_a_larger(problem, per_level):
    size, calibration, gold, new = problem
    last = np.ones((len(new), size), bool)
    for alpha in (0.05, 0.1, 0.3, 0.5, 0.9):
        found = fitted(size, calibration, gold, alpha, per_level=per_level).predict(new).members
        assert (found <= last).all()
        last = found


@examples(50)
@given(problems(), ALPHAS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_items_changes_nothing(problem, alpha, per_level, random):
    size, calibration, gold, new = problem
    order = random.sample(range(len(gold)), len(gold))
    plain = fitted(size, calibration, gold, alpha, per_level=per_level).predict(new)
    turned = fitted(
        size,
        [calibration[k] for k in order],
        [gold[k] for k in order],
        alpha,
        per_level=per_level,
    ).predict(new)
    assert spans(plain) == spans(turned)


@examples(30)
@given(problems(), ALPHAS)
def test_the_items_of_the_fit_are_covered_as_often_as_promised(problem, alpha):
    size, calibration, gold, _ = problem
    labels = [f"L{k}" for k in gold]
    held = fitted(size, calibration, gold, alpha).predict(calibration).contains(labels)
    assert held.mean() >= 1 - alpha - 1e-12


# --- the promise, on fresh resamples
# -----------------------------------------------------------------


def draw_items(rng, n, size=5, lean=0.0):
    """Items whose truth follows softmax(z), while the model is too sure and leans to the lowest."""
    logits = -((rng.normal(0, 1.6, (n, 1)) - np.linspace(-2, 2, size)) ** 2) / 1.5
    truth = np.exp(logits)
    truth /= truth.sum(axis=1, keepdims=True)
    gold = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    said = np.exp(2 * logits - lean * np.arange(size) + rng.normal(0, 0.5, (n, size)))
    return said / said.sum(axis=1, keepdims=True), np.minimum(gold, size - 1)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_mean_coverage_over_fresh_draws_is_as_promised(alpha):
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(200):
        sets = OrdinalConformalSets(alpha, scale="0..4").fit(*draw_items(rng, 150))
        new, gold = draw_items(rng, 300)
        covered.append(sets.predict(new).contains(gold).mean())
    error = np.std(covered, ddof=1) / np.sqrt(len(covered))
    assert np.mean(covered) >= 1 - alpha - 3 * error
    assert np.mean(covered) < 1  # not by taking everything


def test_mean_coverage_of_each_level_is_as_promised():
    rng = np.random.default_rng(12)
    alpha, covered, marginal = 0.1, [], []
    for _ in range(200):
        calibration, new = draw_items(rng, 300, lean=1.0), draw_items(rng, 600, lean=1.0)
        gold = new[1]
        for each, per_level in ((covered, True), (marginal, False)):
            sets = OrdinalConformalSets(alpha, scale="0..4", per_level=per_level).fit(*calibration)
            assert not sets.notes_
            held = sets.predict(new[0]).contains(gold)
            each.append([held[gold == k].mean() for k in range(5)])
    errors = np.std(covered, axis=0, ddof=1) / np.sqrt(len(covered))
    assert (np.mean(covered, axis=0) >= 1 - alpha - 3 * errors).all()
    assert np.mean(marginal, axis=0).min() < 1 - alpha - 0.02  # which one threshold does not do


def test_mean_coverage_of_each_group_is_as_promised():
    rng = np.random.default_rng(13)
    alpha, covered = 0.1, []
    for _ in range(200):
        (first, gold), (second, blind) = draw_items(rng, 100), draw_items(rng, 100)
        blind = rng.permutation(blind)  # a group for which the model knows nothing
        groups = ["known"] * 100 + ["unknown"] * 100
        both, truth = np.vstack([first, second]), np.concatenate([gold, blind])
        sets = OrdinalConformalSets(alpha, scale="0..4").fit(both[::2], truth[::2], groups[::2])
        held = sets.predict(both[1::2], groups[1::2]).contains(truth[1::2])
        covered.append([held[:50].mean(), held[50:].mean()])
    errors = np.std(covered, axis=0, ddof=1) / np.sqrt(len(covered))
    assert (np.mean(covered, axis=0) >= 1 - alpha - 3 * errors).all()


# --- risk control --------------------------------------------------------------------------------


def naive_risk_threshold(rows, gold, gaps, alpha, rule):
    """The least threshold at which the mean distance and one worst item are within alpha."""
    scores = [dict(ORACLES[rule](row)) for row in rows]
    worst, n = Fraction(max(map(max, gaps))), len(rows)
    for threshold in sorted({0, *(score for each in scores for score in each.values())}):
        losses = [
            min(Fraction(gaps[g][k]) for k, score in each.items() if score <= threshold)
            for each, g in zip(scores, gold, strict=True)
        ]
        if (sum(losses) + worst) / (n + 1) <= Fraction(str(alpha)):
            return threshold
    return math.inf


@given(problems(), st.sampled_from([0.25, 0.5, 0.75, 1.5, 3.0]), RULES, st.booleans())
def test_the_threshold_of_risk_control_is_that_of_the_definition(problem, alpha, rule, stretched):
    size, calibration, gold, new = problem
    at = [0.0, 1.0, 5.0, 5.5, 9.0][:size] if stretched else list(map(float, range(size)))
    alpha = min(alpha, at[-1] * 0.75)
    scale = Scale([f"L{k}" for k in range(size)], positions=at)
    sets = OrdinalConformalSets(alpha, scale=scale, rule=rule, control="distance")
    sets.fit(calibration, [scale.labels[k] for k in gold])
    wanted = naive_risk_threshold(calibration, gold, scale.gaps.tolist(), alpha, rule)
    assert sets.thresholds_.tolist() == [[wanted] * size]
    assert (len(gold) < scale.span / alpha - 1) == bool(sets.notes_)
    found = sets.predict(new)
    for (low, high), row in zip(spans(found), new, strict=True):
        inside = [level for level, score in ORACLES[rule](row) if score <= wanted]
        assert (low, high) == (min(inside), max(inside))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), ALPHAS)
def test_coverage_is_risk_control_of_a_loss_of_1_outside_the_set(scores, alpha):
    ordered, n = np.sort(np.array(scores, float)), len(scores)
    assert find_threshold(ordered, np.ones(n), n, alpha, 1.0) == conformal_quantile(ordered, alpha)


def test_rounding_asks_for_no_larger_threshold():
    assert 0.29 * 100 < 29  # of the losses of 100 items, the new one among them
    scores = np.arange(1.0, 100.0)
    assert find_threshold(scores, np.ones(99), 99, 0.29, 1.0) == 71.0


@pytest.mark.parametrize("rule", ["greedy", "shortest"])
@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_the_mean_distance_over_fresh_draws_is_as_promised(rule, alpha):
    rng, times = np.random.default_rng(14), 200
    (known, gold), (new, truth) = draw_items(rng, 150 * times), draw_items(rng, 300 * times)
    fits, uses = np.repeat(np.arange(times), 150), np.repeat(np.arange(times), 300)
    sets = OrdinalConformalSets(alpha, scale="0..4", rule=rule, control="distance")
    found = sets.fit(known, gold, fits).predict(new, uses)
    reached = found.compute_distances(truth).reshape(times, -1).mean(axis=1)
    error = np.std(reached, ddof=1) / np.sqrt(times)
    assert reached.mean() <= alpha + 3 * error
    assert reached.mean() > alpha / 2  # not by taking everything


def test_a_larger_distance_is_allowed_by_smaller_sets():
    known, gold = draw_items(np.random.default_rng(15), 400)
    last = np.ones_like(known, bool)
    for alpha in (0.05, 0.2, 0.5, 1.0, 3.9):
        sets = OrdinalConformalSets(alpha, scale="0..4", control="distance").fit(known, gold)
        found = sets.predict(known).members
        assert (found <= last).all()
        last = found
    assert (last.sum(axis=1) == 1).all()


def test_too_few_items_for_a_distance_give_full_sets_and_a_note():
    rows = [[0.8, 0.1, 0.1]] * 6
    sets = OrdinalConformalSets(0.25, scale="1..3", control="distance")
    (note,) = sets.fit(rows, [1] * 6).notes_
    assert note == "alpha=0.25 needs 7 items, and there were fewer: every level is in each set."
    assert sets.predict(rows[:1]).sizes.tolist() == [3]
    assert sets.fit([*rows, rows[0]], [1] * 7).predict(rows[:1]).sizes.tolist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "longest"}, "rule='longest' is not one of greedy, shortest"),
        ({"control": "width"}, "control='width' is not one of coverage, distance"),
        ({"control": "distance", "per_level": True}, "per_level=True is for coverage"),
        ({"control": "distance", "alpha": 2}, "alpha=2 is not a distance between 0 and 2, the"),
        ({"control": "distance", "alpha": 0}, "alpha=0 is not a distance between 0 and 2, the"),
        ({"control": "distance", "alpha": "1"}, "alpha='1' is not a distance between 0 and 2"),
    ],
)
def test_what_sets_cannot_be_is_refused(options, message):
    with pytest.raises(BadOption, match=message):
        OrdinalConformalSets(**{"scale": "1..3"} | options).fit([[0.5, 0.3, 0.2]] * 20, [1] * 20)


# --- few items -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "needed"), [(0.1, 9), (0.05, 19), (0.3, 3), (1e-6, 999_999)])
def test_too_few_items_give_full_sets_and_a_note(alpha, needed):
    n = min(needed - 1, 30)
    few = OrdinalConformalSets(alpha, scale="1..3").fit([[0.8, 0.1, 0.1]] * n, [1] * n)
    sets = few.predict([[0.8, 0.1, 0.1]])
    assert sets.sizes.tolist() == [3]
    (note,) = sets.notes
    assert note == (
        f"alpha={alpha:g} needs {needed} items, and there were fewer: every level is in each set."
    )
    if needed < 30:
        enough = OrdinalConformalSets(alpha, scale="1..3").fit(
            [[0.8, 0.1, 0.1]] * needed, [1] * needed
        )
        assert enough.predict([[0.8, 0.1, 0.1]]).sizes.tolist() == [1]
        assert enough.notes_ == ()


def test_a_rare_level_is_in_every_set_and_so_are_those_between():
    rows = [[0.7, 0.2, 0.1]] * 40
    sets = OrdinalConformalSets(0.1, scale="1..3", per_level=True).fit(rows, [1] * 35 + [3] * 5)
    found = sets.predict([[0.7, 0.2, 0.1], [0.05, 0.05, 0.9]])
    assert found.low.tolist() == [1, 2]
    assert found.high.tolist() == [3, 3]
    (note,) = found.notes
    assert note.endswith("there were fewer of 2, 3: such a level is in each set.")


def test_groups_with_few_items_and_new_groups_have_full_sets_and_a_note():
    rows = [[0.7, 0.2, 0.1]] * 20
    sets = OrdinalConformalSets(0.1, scale="1..3").fit(rows, [1] * 20, ["a"] * 15 + ["b"] * 5)
    found = sets.predict(rows[:3], ["a", "b", "c"])
    assert found.sizes.tolist() == [1, 3, 3]
    few, new = found.notes
    assert few.startswith("alpha=0.1 needs 9 items of each group, and there were fewer of b: ")
    assert few.endswith("every level is in each set of the group.")
    assert new == "Not seen in fit, so all levels are in their sets: c."


# --- what comes out ------------------------------------------------------------------------------


def test_coverage_and_sizes_are_counted():
    sets = PredictionSets(Scale.of("1..4"), np.array([0, 1, 2, 0]), np.array([0, 2, 3, 3]))
    found = evaluate_prediction_sets(sets, [1, 1, 3, 2])
    assert found.n == 4
    assert found.coverage.value == 0.75
    assert (found.coverage.low, found.coverage.high) == wilson_interval(3, 4)
    assert [e.value for e in found.coverage_by_level.values()][:3] == [0.5, 1.0, 1.0]
    assert math.isnan(found.coverage_by_level[4].value)
    assert found.coverage_by_level[4].note == "gold has no item of this level"
    assert found.mean_distance.value == 0.25
    assert 0 <= found.mean_distance.low < 0.25 < found.mean_distance.high < 3
    assert found.mean_size == 2.25
    assert found.size_shares == {1: 0.25, 2: 0.5, 3: 0.0, 4: 0.25}
    assert found.empty_share == 0.0
    plain = found.to_dict()
    assert plain["mean_distance"] == found.mean_distance.to_dict()
    assert plain["coverage_by_level"]["4"]["value"] is None
    assert plain["size_shares"]["2"] == 0.5


def test_distances_are_those_from_the_nearest_level_of_the_set():
    scale = Scale(["a", "b", "c", "d"], positions=[0, 1, 5, 7])
    sets = PredictionSets(scale, np.array([1, 1, 1]), np.array([1, 2, 2]))
    assert sets.compute_distances(["a", "b", "d"]).tolist() == [1, 0, 2]
    inside = evaluate_prediction_sets(sets, ["b", "b", "c"]).mean_distance
    assert inside.value == 0
    assert math.isnan(inside.low)
    assert inside.note == "it is the same for all items"


def test_limits_follow_their_level():
    sets = PredictionSets(Scale.of("1..2"), np.array([0, 0]), np.array([0, 1]))
    narrow, wide = (evaluate_prediction_sets(sets, [2, 2], level).coverage for level in (0.5, 0.99))
    assert wide.width > narrow.width


def test_labels_positions_and_lengths():
    sets = PredictionSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 2]))
    assert (len(sets), sets.low.tolist(), sets.high.tolist()) == (
        2,
        ["low", "mid"],
        ["mid", "high"],
    )
    with pytest.raises(UnequalLengths, match="1 gold labels and 2 sets"):
        sets.contains(["low"])
    with pytest.raises(OffScale, match="'top'"):
        sets.contains(["low", "top"])


# --- the doors -----------------------------------------------------------------------------------


def test_columns_are_found_by_their_names():
    rows, gold = [[0.1, 0.8, 0.1]] * 12, ["low"] * 12
    named = ["mid", "low", "high"]
    sets = OrdinalConformalSets(0.1, scale="low,mid,high", columns=named).fit(rows, gold)
    assert sets.predict(rows[:1]).low.tolist() == sets.predict(rows[:1]).high.tolist() == ["low"]
    loose = OrdinalConformalSets(0.1, scale="low,mid,high", columns=named[::-1], renormalize=True)
    assert loose.fit([[0.1, 0.8, 0.095]] * 9, ["low"] * 9).notes_ == ()


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan, "0.1"])
def test_alpha_is_between_0_and_1(alpha):
    with pytest.raises(BadOption, match="is not a number between 0 and 1"):
        OrdinalConformalSets(alpha, scale="1..2").fit([[0.5, 0.5]], [1])


@pytest.mark.parametrize(
    ("rows", "gold", "error", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], [1, 2], BadProbabilities, "row 2"),
        ([[0.5, 0.5]], [1, 2], UnequalLengths, "2 gold labels and 1 rows"),
        ([[0.5, 0.5]], [3], OffScale, "Label 3"),
        ([[0.5, 0.5]], [None], MissingLabels, r"\(row 1\)"),
        (np.empty((0, 2)), [], NoItems, "there are no rows"),
    ],
)
def test_bad_columns_are_refused(rows, gold, error, message):
    with pytest.raises(error, match=message):
        OrdinalConformalSets(scale="1..2").fit(rows, gold)


def test_groups_are_given_to_both_or_to_neither():
    rows = [[0.5, 0.5]] * 2
    with pytest.raises(BadInput, match="given to fit, so predict needs them"):
        OrdinalConformalSets(scale="1..2").fit(rows, [1, 2], ["a", "b"]).predict(rows)
    with pytest.raises(BadInput, match="given to predict, but not to fit"):
        OrdinalConformalSets(scale="1..2").fit(rows, [1, 2]).predict(rows, ["a", "b"])
    with pytest.raises(MissingLabels, match="group of row 2 is missing"):
        OrdinalConformalSets(scale="1..2").fit(rows, [1, 2], ["a", None])
    with pytest.raises(UnequalLengths, match="2 rows of probabilities and 1 groups"):
        OrdinalConformalSets(scale="1..2").fit(rows, [1, 2], ["a"])


def test_no_rows_have_no_sets():
    sets = (
        OrdinalConformalSets(scale="1..2").fit([[0.5, 0.5]] * 9, [1] * 9).predict(np.empty((0, 2)))
    )
    assert len(sets) == 0
    with pytest.raises(NoItems, match="there are no sets"):
        evaluate_prediction_sets(sets, [])


def test_it_is_an_estimator():
    sets = OrdinalConformalSets(0.2, scale="1..3", per_level=True)
    with pytest.raises(NotFitted, match="This OrdinalConformalSets is not fitted yet"):
        sets.predict([[1, 0, 0]])
    assert clone(sets).get_params() == sets.get_params()
    assert repr(clone(sets)) == "OrdinalConformalSets(alpha=0.2, scale='1..3', per_level=True)"


@pytest.mark.parametrize("alpha", [np.float32(0.2), Fraction(1, 5)])
def test_alpha_is_any_real_number(alpha):
    p, gold = [[0.6, 0.3, 0.1]] * 9, ["A1"] * 6 + ["A2"] * 3
    found, plain = (OrdinalConformalSets(x, scale="A1,A2,B1").fit(p, gold) for x in (alpha, 0.2))
    assert (found.thresholds_ == plain.thresholds_).all()
    few = OrdinalConformalSets(alpha, scale="A1,A2,B1").fit(p[:3], gold[:3])
    assert few.notes_[0].startswith("alpha=0.2 needs 4 items, and there were fewer: every level")


def test_columns_without_names_are_refused_where_labels_sort_otherwise():
    p, gold = [[0.6, 0.3, 0.1]] * 9, ["low"] * 6 + ["mid"] * 3
    with pytest.raises(BadProbabilities, match="The columns of probabilities have no names"):
        OrdinalConformalSets(scale="low,mid,high").fit(p, gold)
    named = OrdinalConformalSets(scale="low,mid,high", columns=iter(["low", "mid", "high"])).fit(
        p, gold
    )
    assert named.predict(p).low.tolist() == ["low"] * 9


def test_an_evaluation_is_shown_in_records_and_in_words():
    sets = PredictionSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]), ("Few.",))
    found = evaluate_prediction_sets(sets, ["mid", "low"])
    assert [(row["metric"], row["of"], row["value"]) for row in found.rows()] == [
        ("coverage", "all items", 0.5),
        ("coverage", "low", 0.0),
        ("coverage", "mid", 1.0),
        ("coverage", "high", None),
        ("mean_distance", "all items", 0.5),
        ("mean_size", "all items", 1.5),
        ("share", "0", 0.0),
        ("share", "1", 0.5),
        ("share", "2", 0.5),
        ("share", "3", 0.0),
    ]
    json.dumps(found.rows(), allow_nan=False)
    lines = str(found).splitlines()
    assert lines[0] == "2 sets, 1.50 levels on average"
    assert "  all items  0.500  [0.095, 0.905]" in lines
    assert "  high       undefined: gold has no item of this level" in lines
    assert lines[-1] == "Few."


@pytest.mark.parametrize("level", [0.4, 1.0, True, "0.9", np.nan])
def test_the_level_of_limits_is_checked(level):
    sets = PredictionSets(Scale.of("low,mid"), np.array([0]), np.array([1]))
    with pytest.raises(BadOption, match=r"The level of an interval is 0\.5 to below 1, not"):
        evaluate_prediction_sets(sets, ["mid"], level)


def test_missing_gold_cannot_be_evaluated():
    sets = PredictionSets(Scale.of("low,mid"), np.array([0, 0]), np.array([1, 1]))
    with pytest.raises(MissingLabels, match=r"\(row 2\)\. Leave .* have the gold level cannot be"):
        evaluate_prediction_sets(sets, ["mid", None])
