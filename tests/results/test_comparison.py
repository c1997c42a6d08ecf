"""Comparing: each system is what it is alone, and the leaderboard says what the resamples say."""

import itertools

import pytest
from comparisons import DRAWS, GOLD, SCALE, SIZE, SYSTEMS, WAYS, board_of, compared
from panels import by_label, labels, panel_of, sampled, value

from ordinate.errors import BadOption, MissingLabels
from ordinate.inference import ConfidenceIntervals, system_differences
from ordinate.metrics import find_metric
from ordinate.results.arguments import DEFAULT_METRICS
from ordinate.results.comparison import compare
from ordinate.results.label_evaluation import evaluate
from ordinate.summaries.regression import Moments

# --- each system is what it is alone --------------------------------------------------------------


def check_estimates(found, expected):
    """The same but for the last digit: sums of weights may be taken in another order."""
    assert (found.method, found.note) == (expected.method, expected.note)
    numbers = ((one.value, one.low, one.high) for one in (found, expected))
    assert next(numbers) == pytest.approx(next(numbers), rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [0, 5])
def test_each_system_has_the_values_and_limits_that_it_has_alone(way, seed):
    result = compared(GOLD, SYSTEMS, None, seed=seed, interval=0.9, **WAYS[way])
    how = ConfidenceIntervals(0.9, resamples=DRAWS, seed=seed)
    for name, answers in SYSTEMS.items():
        alone = evaluate(labels(GOLD), labels(answers), SCALE, interval=how, **WAYS[way])
        for metric in DEFAULT_METRICS:
            found = result.leaderboards[metric].get_standing(name).estimate
            check_estimates(found, alone.metrics[metric].estimate)


def test_each_system_has_the_usual_values_and_limits_without_further_options():
    result = compare(labels(GOLD), by_label(SYSTEMS), SCALE, "mae,cem_ord,min_sensitivity")
    for name, answers in SYSTEMS.items():
        alone = evaluate(labels(GOLD), labels(answers), SCALE).metrics
        for metric, board in result.leaderboards.items():
            assert board.get_standing(name).estimate == alone[metric].estimate


@pytest.mark.parametrize("metric", ["mae", "accuracy", "quadratic_kappa", "bias", "cem_ord"])
def test_values_are_those_of_the_items(metric):
    board = board_of(GOLD, SYSTEMS, metric)
    for name, answers in SYSTEMS.items():
        expected = value(metric, GOLD, answers, SCALE)
        assert board.get_standing(name).estimate.value == pytest.approx(expected, abs=1e-12)


def test_missing_predictions_count_as_the_worst_answer_or_the_items_are_left_out():
    systems = SYSTEMS | {"s1": [None if k % 9 == 0 else p for k, p in enumerate(SYSTEMS["s1"])]}
    worst = board_of(GOLD, systems, missing="worst")
    for name, answers in systems.items():
        alone = evaluate(labels(GOLD), labels(answers), SCALE, "mae", missing="worst")
        expected = alone.metrics["mae"].value
        assert worst.get_standing(name).estimate.value == expected
    result = compared(GOLD, systems, missing="drop")
    kept = [k for k in range(150) if k % 9]
    inner = {name: [answers[k] for k in kept] for name, answers in systems.items()}
    alone = compared([GOLD[k] for k in kept], inner)
    assert result.panel.dropped == 150 - len(kept)
    assert result.leaderboards["mae"].to_dict() == alone.leaderboards["mae"].to_dict()
    with pytest.raises(MissingLabels, match="17 of 150 predictions of s1 are missing"):
        compared(GOLD, systems)


@pytest.mark.parametrize("metric", ["mae", "cem_ord", "macro_accuracy"])
def test_constants_to_beat_are_those_of_an_evaluation(metric):
    found = board_of(GOLD, SYSTEMS, metric).baselines
    expected = evaluate(labels(GOLD), labels(SYSTEMS["s0"]), SCALE, metric).metrics[metric]
    assert found.best_constant == expected.baselines.best_constant
    assert found.majority == expected.baselines.majority


# --- order and names ------------------------------------------------------------------------------


def facts(board, names):
    """What a board says of each system and of each pair, by other names, whatever the order."""
    alone = {
        names[one.system]: (
            one.estimate, one.rank, one.rank_low, one.rank_high, one.rank_shares,
        )
        for one in board.standings
    }  # fmt: skip
    pairs = {}
    for pair in board.pairs:
        both = names[pair.first], names[pair.second]
        turn = both[0] > both[1]
        numbers = (pair.difference.value, pair.difference.low, pair.difference.high)
        if turn:
            numbers = (-pair.difference.value, -pair.difference.high, -pair.difference.low)
        verdict = {"better": "worse", "worse": "better"}.get(pair.verdict, pair.verdict)
        said = verdict if turn else pair.verdict
        pairs[tuple(sorted(both))] = (*numbers, pair.p, pair.p_adjusted), said
    return alone, pairs


def check_same(board, other, names, other_names):
    (alone, pairs), (alone2, pairs2) = facts(board, names), facts(other, other_names)
    assert alone.keys() == alone2.keys()
    assert pairs.keys() == pairs2.keys()
    for name, (estimate, *ranks, shares) in alone.items():
        estimate2, *ranks2, shares2 = alone2[name]
        check_estimates(estimate, estimate2)
        assert ranks == ranks2
        assert shares == pytest.approx(shares2, abs=1e-12)
    for pair, (numbers, said) in pairs.items():
        assert said == pairs2[pair][1]
        assert numbers == pytest.approx(pairs2[pair][0], abs=1e-9)


SAME = {name: name for name in SYSTEMS}


@pytest.mark.parametrize("metric", ["mae", "quadratic_kappa", "bias"])
def test_other_names_change_nothing_but_the_names(metric):
    board = board_of(GOLD, SYSTEMS, metric)
    names = dict(zip(SYSTEMS, ["zeta", "beta", "alpha", "γ"], strict=True))
    renamed = {names[name]: answers for name, answers in SYSTEMS.items()}
    back = {new: old for old, new in names.items()}
    other = board_of(GOLD, renamed, metric)
    check_same(board, other, SAME, back)
    assert [names[one.system] for one in board.standings] == [x.system for x in other.standings]
    assert [one.compact_letter_display for one in board.standings] == [
        one.compact_letter_display for one in other.standings
    ]


@pytest.mark.parametrize("metric", ["mae", "bias"])
@pytest.mark.parametrize("way", WAYS)
def test_another_order_of_the_systems_changes_nothing_but_the_order(metric, way):
    board = board_of(GOLD, SYSTEMS, metric, **WAYS[way])
    turned = dict(reversed(SYSTEMS.items()))
    check_same(board, board_of(GOLD, turned, metric, **WAYS[way]), SAME, SAME)


def test_another_order_of_the_items_changes_nothing():
    board = board_of(GOLD, SYSTEMS)
    turned = {name: answers[::-1] for name, answers in SYSTEMS.items()}
    assert board.to_dict() == board_of(GOLD[::-1], turned).to_dict()


def test_intervals_with_all_choices_say_level_resamples_and_seed_and_nothing_contradicts_them():
    few = ConfidenceIntervals(0.9, "bca", DRAWS, seed=5)
    options = {"scale": SCALE, "metrics": "mae"}
    found = compare(labels(GOLD), by_label(SYSTEMS), interval=few, **options)
    plain = compare(
        labels(GOLD), by_label(SYSTEMS), interval=0.9, resamples=DRAWS, seed=5, **options
    )
    assert found.leaderboards["mae"].pairs == plain.leaderboards["mae"].pairs
    methods = [{x.estimate.method for x in x.leaderboards["mae"].standings} for x in (found, plain)]
    assert methods == [{"bca"}, {"delta"}]
    for wrong, match in (
        ({"interval": few, "seed": 6}, "seed=6 contradicts the seed=5"),
        ({"interval": few, "resamples": 7}, f"resamples=7 contradicts the resamples={DRAWS}"),
        ({"interval": None}, "compared at a confidence level"),
        ({"interval": ConfidenceIntervals(stratified=True)}, "not stratified"),
        ({"metrics": [find_metric("rmse", Moments)]}, "a metric of labels is needed here"),
    ):
        with pytest.raises(BadOption, match=match):
            compare(labels(GOLD), by_label(SYSTEMS), **options | wrong)


def test_the_same_seed_gives_the_same_and_another_one_another():
    first, second, third = (
        compared(GOLD, SYSTEMS, "mae,purity", seed=seed).to_dict() for seed in (1, 1, 2)
    )
    assert first == second
    assert first["metrics"]["mae"]["pairs"] != third["metrics"]["mae"]["pairs"]


# --- ranks ----------------------------------------------------------------------------------------


LEADS = {
    "accuracy": lambda values: max(values, key=values.get),
    "mae": lambda values: min(values, key=values.get),
    "bias": lambda values: min(values, key=lambda name: abs(values[name])),
}


@pytest.mark.parametrize("metric", LEADS)
@pytest.mark.parametrize("seed", range(4))
def test_the_leader_is_best_whichever_direction_is_good(metric, seed):
    gold, systems = sampled(SIZE, 80, seed, [0.9, 0.6, 1.4, 0.7])
    systems["low"] = [max(0, p - 1) for p in systems["s1"]]
    systems["high"] = [min(SIZE - 1, p + 1) for p in systems["s1"]]
    values = {name: value(metric, gold, answers, SCALE) for name, answers in systems.items()}
    board = board_of(gold, systems, metric)
    assert board.standings[0].system == LEADS[metric](values)
    merit = {
        "accuracy": lambda x: x,
        "mae": lambda x: -x,
        "bias": lambda x: -abs(x),
    }[metric]
    for one in board.standings:
        mine = merit(values[one.system])
        better = sum(merit(x) > mine + 1e-12 for x in values.values())
        assert one.rank == 1 + better
        assert one.rank_low <= one.rank <= one.rank_high
        assert sum(one.rank_shares) == pytest.approx(1)
    assert [one.rank for one in board.standings] == sorted(one.rank for one in board.standings)


@pytest.mark.parametrize("metric", ["accuracy", "mae", "bias"])
def test_a_far_better_system_is_better_whichever_direction_is_good(metric):
    far = [min(SIZE - 1, g + 1) for g in GOLD]
    near = [min(SIZE - 1, g + 1) if k % 25 == 0 else g for k, g in enumerate(GOLD)]
    for systems in ({"near": near, "far": far}, {"far": far, "near": near}):
        (pair,) = board_of(GOLD, systems, metric).pairs
        assert (pair.first, pair.second, pair.verdict) == ("near", "far", "better")
        assert (pair.difference.value > 0) == (metric == "accuracy")
        (other,) = board_of(GOLD, systems, metric, against="near").pairs
        assert (other.first, other.second, other.verdict) == ("far", "near", "worse")
        assert other.difference.value == pytest.approx(-pair.difference.value)


def test_of_each_pair_the_better_system_comes_first():
    gold, systems = sampled(SIZE, 80, 4, [0.9, 0.6, 1.4, 0.7, 0.8])
    for metric in ("mae", "accuracy", "bias"):
        board = board_of(gold, systems, metric)
        place = {one.system: k for k, one in enumerate(board.standings)}
        assert all(place[pair.first] < place[pair.second] for pair in board.pairs)
        assert len({frozenset((pair.first, pair.second)) for pair in board.pairs}) == 10
        assert all(pair.verdict != "worse" for pair in board.pairs)


def test_a_bias_below_0_and_one_above_it_are_compared_by_their_size():
    high = [min(SIZE - 1, g + 1) if k % 2 else g for k, g in enumerate(GOLD)]
    low = [max(0, g - 1) if k % 10 == 0 else g for k, g in enumerate(GOLD)]
    board = board_of(GOLD, {"low": low, "high": high}, "bias")
    assert board.get_standing("low").estimate.value < 0 < board.get_standing("high").estimate.value
    (pair,) = board.pairs
    expected = abs(value("bias", GOLD, low, SCALE)) - abs(value("bias", GOLD, high, SCALE))
    assert pair.difference.value == pytest.approx(expected)
    assert pair.verdict == "better"
    assert board.standings[0].system == "low"


def test_rank_limits_and_letters_are_those_of_the_adjusted_p_values():
    board = board_of(GOLD, SYSTEMS)
    apart = {}
    for pair in board.pairs:
        told = pair.p_adjusted <= 0.05
        apart[pair.first, pair.second] = apart[pair.second, pair.first] = told
        assert told == (pair.verdict in {"better", "worse"})
    values = {one.system: one.estimate.value for one in board.standings}
    shown = {one.system: set(one.compact_letter_display) for one in board.standings}
    for one in board.standings:
        others = [x for x in values if x != one.system and apart[one.system, x]]
        mine = values[one.system]
        assert one.rank_low == 1 + sum(values[x] < mine for x in others)
        assert one.rank_high == len(values) - sum(values[x] > mine for x in others)
    for first, second in itertools.combinations(values, 2):
        assert bool(shown[first] & shown[second]) == (not apart[first, second])
    assert "a" in shown[board.standings[0].system]
    assert len({text for one in board.standings for text in one.compact_letter_display}) > 1


def test_rank_frequencies_are_those_of_the_joint_draws():
    board = board_of(GOLD, SYSTEMS)
    values = system_differences.resample_jointly(
        panel_of(GOLD, SYSTEMS, SIZE), [find_metric("mae")], system_differences.Resampling(DRAWS, 0)
    )["mae"]
    for place, name in enumerate(SYSTEMS):
        seen = [1 + sum(x < row[place] - 1e-12 for x in row) for row in values]
        expected = [seen.count(rank) / DRAWS for rank in range(1, 5)]
        assert board.get_standing(name).rank_shares == pytest.approx(expected)


# --- equal systems --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("metric", ["mae", "cem_ord", "f1_macro", "bias", "kendall_tau_b"])
def test_systems_that_answer_the_same_are_identical(metric, way):
    systems = {"a": SYSTEMS["s1"], "b": SYSTEMS["s3"], "c": SYSTEMS["s1"]}
    board = board_of(GOLD, systems, metric, **WAYS[way])
    pair = next(pair for pair in board.pairs if (pair.first, pair.second) == ("a", "c"))
    assert (pair.difference.value, pair.difference.low, pair.difference.high) == (0, 0, 0)
    assert (pair.p, pair.p_adjusted, pair.verdict) == (1, 1, "identical")
    one, other = board.get_standing("a"), board.get_standing("c")
    assert one.rank == other.rank
    assert one.compact_letter_display == other.compact_letter_display
    assert one.rank_shares == other.rank_shares


def test_systems_that_answer_the_same_are_identical_wherever_they_stand():
    gold, systems = sampled(SIZE, 120, 5, [0.7] * 11)
    many = {f"x{k}": systems[f"s{k * 7 % 11}"] for k in range(40)}
    result = compared(gold, many, "mae,cem_ord,quadratic_kappa", resamples=150)
    for board in result.leaderboards.values():
        for pair in board.pairs:
            same = many[pair.first] == many[pair.second]
            assert (pair.verdict == "identical") == same


def test_two_identical_systems_have_tests_that_say_so():
    result = compared(GOLD, {"a": SYSTEMS["s1"], "b": SYSTEMS["s1"]})
    (tests,) = result.tests
    assert tests.permutation["mae"].p == 1
    assert {test.p for test in tests.others.values()} == {1.0}
    assert "no difference from b" in result.leaderboards["mae"].conclusion


def test_equal_values_of_different_answers_share_a_rank_and_are_not_identical():
    gold = [1] * 60
    up, down = [2] * 20 + [1] * 40, [1] * 40 + [0] * 20
    board = board_of(gold, {"up": up, "down": down, "far": [3] * 60})
    assert [one.rank for one in board.standings] == [1, 1, 3]
    pair = next(p for p in board.pairs if {p.first, p.second} == {"up", "down"})
    assert (pair.difference.value, pair.verdict) == (0, "inconclusive")
    assert pair.p == 1


@pytest.mark.parametrize("against", ["all", "leader"])
def test_a_system_that_is_always_right_is_better_than_one_that_never_is(against):
    gold = [0, 1] * 60
    systems = {"right": gold, "wrong": [1 - g for g in gold], "mixed": [0] * 120}
    board = board_of(gold, systems, "accuracy", against=against)
    pair = next(p for p in board.pairs if {p.first, p.second} == {"right", "wrong"})
    assert (abs(pair.difference.value), pair.verdict) == (1, "better")
    assert pair.p < 0.01
    assert not set(board.get_standing("right").compact_letter_display) & set(
        board.get_standing("wrong").compact_letter_display
    )
    assert board.get_standing("wrong").rank_low > 1
