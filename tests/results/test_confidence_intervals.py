"""Evaluations with intervals: levels, subgroups, groups and a second rater, each as if alone."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panels import labels, sampled
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from strategies import counts, scale_of

from ordinate.errors import BadOption, MissingLabels, UnequalLengths
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results.arguments import DEFAULT_METRICS
from ordinate.results.evaluation import Evaluation, evaluate
from ordinate.summaries import ConfusionMatrix

SIZE, N = 4, 300
SCALE = scale_of(SIZE)
GOLD, SYSTEMS = sampled(SIZE, N, 3, [0.7, 0.4])
ANSWERS, SECOND = SYSTEMS.values()
QUICK = ConfidenceIntervals(resamples=200, seed=4)
SOME = "mae,quadratic_kappa,macro_mae,purity,min_sensitivity,accuracy"


def evaluated(gold=GOLD, answers=ANSWERS, metrics=SOME, **options):
    options = {"scale": SCALE, "interval": QUICK} | options
    return evaluate(labels(gold), labels(answers), metrics=metrics, **options)


def words(result):
    return " ".join(str(result).split())


def estimates(result):
    return {name: score.estimate for name, score in result.metrics.items()}


def chosen(column, inside):
    return [x for x, wanted in zip(column, inside, strict=True) if wanted]


def check(found, expected):
    """The same estimates, but for rounding."""
    assert found.keys() == expected.keys()
    for name, one in found.items():
        other = expected[name]
        assert (one.method, one.note) == (other.method, other.note), name
        numbers = (one.value, one.low, one.high, one.undefined_share)
        others = (other.value, other.low, other.high, other.undefined_share)
        assert numbers == pytest.approx(others, rel=1e-9, abs=1e-12, nan_ok=True), name


# --- the whole -----------------------------------------------------------------------------------


def test_intervals_are_there_without_being_asked_for():
    result = evaluate(labels(GOLD), labels(ANSWERS), SCALE)
    assert list(result.metrics) == list(DEFAULT_METRICS)
    table = ConfusionMatrix.of(SCALE, labels(GOLD), labels(ANSWERS))
    expected = estimate_metrics(
        [find_metric(name) for name in DEFAULT_METRICS], table, ConfidenceIntervals()
    )
    assert estimates(result) == expected
    for score in result.metrics.values():
        assert score.estimate.low <= score.value <= score.estimate.high
        assert score.value == score.estimate.value
    assert result.interval == ConfidenceIntervals(0.95)


def test_a_level_is_enough_to_choose_an_interval():
    narrow, wide = (evaluate(labels(GOLD), labels(ANSWERS), SCALE, interval=x) for x in (0.8, 0.99))
    for name in DEFAULT_METRICS:
        assert narrow.metrics[name].estimate.width < wide.metrics[name].estimate.width
    assert (narrow.interval.level, wide.interval.level) == (0.8, 0.99)


def test_without_an_interval_there_is_none_anywhere():
    by = [k % 3 for k in range(N)]
    result = evaluated(interval=None, by=by, second_rater=labels(SECOND), error_attribution="mae")
    for part in (result, *result.by.values()):
        assert part.interval is None
        assert part.difference_from_rest == {}
        for score in part.metrics.values():
            assert score.estimate is None
            plain = score.to_dict()
            assert plain["low"] is plain["high"] is plain["method"] is None
        for row in part.per_level:
            ends = [key for key in row if key.endswith(("_low", "_high"))]
            assert all(math.isnan(row[key]) for key in ends)
    expected = evaluate(labels(GOLD), labels(SECOND), SCALE, SOME).metrics
    for name, one in result.second_rater.items():
        assert one.value == expected[name].value
        assert math.isnan(one.low)
        assert one.method is None
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["interval"] is None
    assert "interval" not in words(result)
    assert "Intervals by" not in words(result)
    values = {name: score.value for name, score in result.metrics.items()}
    assert values == {name: score.value for name, score in evaluated().metrics.items()}


def test_the_seed_decides_the_draws():
    def of(seed):
        return estimates(evaluated(metrics="oci,purity", interval=0.95, seed=seed))

    assert of(1) == of(1)
    assert of(1) != of(2)
    assert of(0) == estimates(evaluated(metrics="oci,purity", interval=0.95))


def test_intervals_with_all_choices_keep_their_own_seed():
    how = ConfidenceIntervals(0.9, "percentile", 300, seed=7)
    result = evaluated(interval=how, seed=99)
    assert result.interval == how
    assert {one.method for one in estimates(result).values()} == {"percentile"}
    assert estimates(result) == estimates(evaluated(interval=how))
    assert result.to_dict()["interval"] == 0.9


@pytest.mark.parametrize("level", [0.2, 1.0, True, math.nan, "wide", -1])
def test_what_is_no_level_is_refused(level):
    with pytest.raises(BadOption, match=r"level of an interval is 0\.5 to below 1"):
        evaluated(interval=level)


def test_a_method_that_does_not_fit_is_refused():
    with pytest.raises(BadOption, match="'delta' does not fit purity"):
        evaluated(metrics="purity", interval=ConfidenceIntervals(method="delta"))


def test_the_json_has_limits_and_methods():
    plain = json.loads(render(evaluated(by=[k % 2 for k in range(N)]), "json"))
    assert plain["interval"] == 0.95
    assert plain["groups"] is None
    for part in (plain, *plain["by"].values()):
        for name, score in part["metrics"].items():
            assert score.keys() >= {"low", "high", "method", "undefined_share", "note"}, name
            assert score["low"] <= score["value"] <= score["high"]
            assert isinstance(score["method"], str)
        assert len(part["per_level"]) == SIZE
        for row in part["per_level"]:
            for name in ("precision", "recall", "f1", "mae"):
                assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert plain["by"]["0"]["difference_from_rest"]["mae"].keys() >= {
        "value",
        "low",
        "high",
        "method",
    }


def test_the_csv_has_limits_and_methods():
    result = evaluated()
    for record in csv.DictReader(io.StringIO(render(result, "csv"))):
        found = result.metrics[record["metric"]].estimate
        assert (float(record["low"]), float(record["high"])) == (found.low, found.high)
        assert record["method"] == found.method
    without = list(csv.DictReader(io.StringIO(render(evaluated(interval=None), "csv"))))
    assert {record["low"] for record in without} == {""}


def test_an_undefined_metric_has_a_reason_and_no_interval():
    result = evaluated(answers=[1] * N, metrics="kendall_tau_b")
    score = result.metrics["kendall_tau_b"]
    assert math.isnan(score.estimate.low)
    assert score.estimate.method is None
    assert score.estimate.note == score.undefined
    json.dumps(result.to_dict(), allow_nan=False)


def test_counts_that_nobody_can_number_have_values_and_no_intervals():
    table = ConfusionMatrix.from_counts(SCALE, np.array(np.eye(SIZE) * 5.5 + 0.25))
    result = Evaluation.from_summary(table, "mae,accuracy")
    assert result.metrics["mae"].value > 0
    assert result.metrics["mae"].estimate.method is None
    assert "No interval for mae: nobody knows how many items" in words(result)
    assert all(math.isnan(row["recall_low"]) for row in result.per_level)


def test_one_table_is_evaluated_at_a_time():
    table = ConfusionMatrix.of(SCALE, labels(GOLD), labels(ANSWERS))
    batch = table.with_cells(np.stack([table.weights, table.weights]))
    with pytest.raises(BadOption, match="Evaluate one confusion matrix"):
        Evaluation.from_summary(batch)


# --- the report ----------------------------------------------------------------------------------


def test_the_report_shows_each_interval():
    result = evaluated()
    shown = words(result)
    assert "95 % CI" in shown
    for name, score in result.metrics.items():
        one = score.estimate
        assert f"{name} " in shown
        assert f"{score.value:.3f} {one.low:.3f} to {one.high:.3f}" in shown
    for row in result.per_level:
        ends = f"({row['recall_low']:.2f} to {row['recall_high']:.2f})"
        assert f"{row['recall']:.3f} {ends}" in shown
    assert "90 % CI" in words(evaluated(interval=0.9))


def test_the_report_names_the_methods():
    shown = words(evaluated(metrics="accuracy,mae,purity"))
    assert "Intervals by Wilson: accuracy." in shown
    assert "Intervals by the delta method: mae." in shown
    assert "Intervals by BCa bootstrap: purity." in shown


def test_the_report_says_that_a_level_is_rare():
    gold = [0] * 4 + [1] * 60 + [2] * 60
    answers = [0, 0, 0, 1] + [1] * 50 + [2] * 20 + [1] * 10 + [2] * 40
    result = evaluate(labels(gold), labels(answers), scale_of(3), "f1_macro,macro_mae,mae")
    notes = {name: score.estimate.note for name, score in result.metrics.items()}
    assert "fewer than 10 items of L0" in notes["f1_macro"]
    assert "fewer than" not in (notes["mae"] or "")
    assert f"Intervals by percentile bootstrap ({notes['f1_macro']}): f1_macro" in words(result)
    macro = result.metrics["macro_mae"].estimate
    assert macro.method not in {"bca", "delta"}
    enough = [0] * 10 + gold[4:], [0] * 9 + [1] + answers[4:]
    plain = evaluate(*map(labels, enough), scale_of(3), "f1_macro,macro_mae,mae")
    assert "fewer than" not in words(plain)


def test_the_report_says_that_perfect_predictions_have_no_bootstrap():
    result = evaluate(labels(GOLD), labels(GOLD), SCALE, "quadratic_kappa,accuracy")
    one = result.metrics["quadratic_kappa"].estimate
    assert one.low < one.value == one.high == 1
    assert one.note == "it has no standard error here"
    assert one.note in words(result)


def test_the_report_says_that_weights_are_real():
    result = evaluated(weights=np.linspace(0.3, 2.0, N), metrics="mae")
    assert "(real weights): mae" in words(result)


@pytest.mark.parametrize("form", [*RENDERERS, "html"])
def test_every_form_can_be_rendered(form):
    result = evaluated(
        by=[k % 3 for k in range(N)],
        groups=[k % 35 for k in range(N)],
        second_rater=labels(SECOND),
        error_attribution="mae",
    )
    shown = result._repr_html_() if form == "html" else render(result, form)
    assert "quadratic" in shown


# --- levels --------------------------------------------------------------------------------------


@given(cells=st.integers(2, 5).flatmap(lambda size: counts(size, 30)), level=st.floats(0.5, 0.99))
@settings(max_examples=80)
def test_precision_and_recall_of_levels_have_the_limits_of_wilson(cells, level):
    size = len(cells)
    result = Evaluation.from_summary(
        ConfusionMatrix.from_counts(scale_of(size), cells), "accuracy", interval=level
    )
    for k, row in enumerate(result.per_level):
        right = cells[k, k]
        tried = {"precision": cells[:, k].sum(), "recall": cells[k].sum()}
        for name, n in tried.items():
            found = row[f"{name}_low"], row[f"{name}_high"]
            if math.isnan(row[name]):
                assert all(map(math.isnan, found))
            elif n:
                expected = proportion_confint(right, n, alpha=1 - level, method="wilson")
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
                assert row[name] == pytest.approx(right / n)


@given(cells=st.integers(2, 5).flatmap(lambda size: counts(size, 30)), level=st.floats(0.5, 0.99))
@settings(max_examples=80)
def test_f1_of_levels_has_the_limits_of_the_share_that_it_is_made_of(cells, level):
    """F1 = 2J / (1 + J), where J is the share of right items among those of either side."""
    size = len(cells)
    result = Evaluation.from_summary(
        ConfusionMatrix.from_counts(scale_of(size), cells), "accuracy", interval=level
    )
    for k, row in enumerate(result.per_level):
        right, either = cells[k, k], cells[k].sum() + cells[:, k].sum() - cells[k, k]
        if not either or math.isnan(row["f1"]):
            continue
        ends = proportion_confint(right, either, alpha=1 - level, method="wilson")
        expected = [2 * end / (1 + end) for end in ends]
        share = right / either
        assert row["f1"] == pytest.approx(2 * share / (1 + share))
        assert (row["f1_low"], row["f1_high"]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(cells=st.integers(2, 5).flatmap(lambda size: counts(size, 30)))
@settings(max_examples=80)
def test_limits_of_levels_hold_their_values_and_stay_within_the_scale(cells):
    size = len(cells)
    result = Evaluation.from_summary(ConfusionMatrix.from_counts(scale_of(size), cells), "accuracy")
    for k, row in enumerate(result.per_level):
        for name in ("precision", "recall", "f1", "mae"):
            if math.isnan(row[name]):
                continue
            most = max(k, size - 1 - k) if name == "mae" else 1
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            assert 0 <= low <= row[name] + 1e-12
            assert row[name] - 1e-12 <= high <= most + 1e-12
            assert low < high


def test_a_level_of_many_items_has_the_usual_limits_of_its_mean_error():
    cells = np.array([[4000, 2500, 1500], [0, 10, 0], [0, 0, 10]])
    result = Evaluation.from_summary(ConfusionMatrix.from_counts(scale_of(3), cells), "accuracy")
    errors = np.repeat([0, 1, 2], cells[0])
    half = stats.norm.ppf(0.975) * errors.std() / math.sqrt(len(errors))
    row = result.per_level[0]
    assert row["mae_low"] == pytest.approx(errors.mean() - half, abs=2e-4)
    assert row["mae_high"] == pytest.approx(errors.mean() + half, abs=2e-4)


def test_real_weights_count_as_as_many_items_as_they_are_worth():
    weights = np.random.default_rng(2).lognormal(0, 0.8, N)
    result = evaluated(weights=weights)
    gold, answers = np.array(GOLD), np.array(ANSWERS)
    for k, row in enumerate(result.per_level):
        sides = {"recall": gold == k, "precision": answers == k}
        for name, inside in sides.items():
            heavy = weights[inside]
            worth = heavy.sum() ** 2 / (heavy**2).sum()
            share = weights[inside & (gold == answers)].sum() / heavy.sum()
            expected = proportion_confint(share * worth, worth, method="wilson")
            found = row[f"{name}_low"], row[f"{name}_high"]
            assert found == pytest.approx(expected, rel=1e-9)


def test_items_without_an_answer_are_missed_and_not_mistaken():
    answers = [None if k < 30 else p for k, p in enumerate(ANSWERS)]
    result = evaluated(answers=answers, metrics="mae", missing="worst")
    for k, row in enumerate(result.per_level):
        right = sum(g == p == k for g, p in zip(GOLD, answers, strict=True))
        recall = proportion_confint(right, GOLD.count(k), method="wilson")
        precision = proportion_confint(right, answers.count(k), method="wilson")
        assert (row["recall_low"], row["recall_high"]) == pytest.approx(recall)
        assert (row["precision_low"], row["precision_high"]) == pytest.approx(precision)


# --- subgroups -----------------------------------------------------------------------------------

PARTS = np.random.default_rng(5).choice(["north", "south", "west"], N).tolist()


def of_part(inside, **options):
    return evaluated(chosen(GOLD, inside), chosen(ANSWERS, inside), **options)


def mover(first, second):
    """The limits of a difference of independent values, from the limits of each."""
    value = first.value - second.value
    below = math.sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
    above = math.sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
    return value, value - below, value + above


def test_a_subgroup_is_what_it_is_alone():
    result = evaluated(by=PARTS)
    assert set(result.by) == {"north", "south", "west"}
    for name, part in result.by.items():
        alone = of_part([x == name for x in PARTS])
        check(estimates(part), estimates(alone))
        for row, other in zip(part.per_level, alone.per_level, strict=True):
            assert row == pytest.approx(other, nan_ok=True)


def test_a_subgroup_differs_from_the_rest_by_mover_of_both():
    result = evaluated(by=PARTS)
    for name, part in result.by.items():
        inside = [x == name for x in PARTS]
        alone = estimates(of_part(inside))
        rest = estimates(of_part([not x for x in inside]))
        for metric, found in part.difference_from_rest.items():
            expected = mover(alone[metric], rest[metric])
            assert (found.value, found.low, found.high) == pytest.approx(expected, abs=1e-12)
            assert found.method == "mover"
            assert found.low <= found.value <= found.high


def test_two_subgroups_are_each_the_rest_of_the_other():
    result = evaluated(by=["one" if k % 3 else "two" for k in range(N)])
    one, two = (result.by[name].difference_from_rest for name in ("one", "two"))
    for metric, there in one.items():
        back = two[metric]
        assert there.value == pytest.approx(-back.value)
        assert there.low == pytest.approx(-back.high)
        assert there.high == pytest.approx(-back.low)
    shown = words(result)
    assert shown.count("difference from all other items") == 1
    found = next(iter(result.by.values())).difference_from_rest["mae"]
    assert f"{found.value:z.3f} ({found.low:z.2f} to {found.high:z.2f})" in shown
    for name, score in result.metrics.items():
        parts = (score, *(part.metrics[name] for part in result.by.values()))
        each = [x.estimate for x in parts]
        row = " ".join(f"{x.value:z.3f} ({x.low:z.2f} to {x.high:z.2f})" for x in each)
        assert f"{name} {row}" in shown


def test_a_single_subgroup_has_no_rest():
    (part,) = evaluated(by=["all"] * N).by.values()
    assert part.difference_from_rest == {}
    assert "difference from all other items" not in words(evaluated(by=["all"] * N))


def test_many_subgroups_differ_each_from_all_others():
    parts = [k % 9 for k in range(N)]
    result = evaluated(by=parts, metrics="mae")
    for name, part in result.by.items():
        rest = estimates(of_part([x != name for x in parts], metrics="mae"))["mae"]
        expected = part.metrics["mae"].value - rest.value
        assert part.difference_from_rest["mae"].value == pytest.approx(expected)


def test_a_difference_without_a_value_on_one_side_has_none():
    answers = [1 if part == "north" else p for part, p in zip(PARTS, ANSWERS, strict=True)]
    result = evaluated(answers=answers, by=PARTS, metrics="kendall_tau_b,mae")
    found = result.by["north"].difference_from_rest["kendall_tau_b"]
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.note
    assert not math.isnan(result.by["north"].difference_from_rest["mae"].low)
    json.dumps(result.to_dict(), allow_nan=False)


def test_limits_of_a_difference_cover_it():
    """Two halves of equal items differ in 1 of 20 samples; 3 binomial errors of 300 samples."""
    missed = 0
    for seed in range(300):
        gold, systems = sampled(3, 200, 1000 + seed, [0.8])
        result = evaluate(
            labels(gold), labels(systems["s0"]), scale_of(3), "mae", by=[k % 2 for k in range(200)]
        )
        found = result.by[0].difference_from_rest["mae"]
        missed += not found.low <= 0 <= found.high
    assert abs(missed / 300 - 0.05) <= 3 * math.sqrt(0.05 * 0.95 / 300)


# --- groups --------------------------------------------------------------------------------------

UNITS = [f"w{k * k % 37}" for k in range(N)]  # 19 of them, for which no resamples are needed
SMOOTH = "mae,quadratic_kappa,macro_mae,accuracy,f1_macro"


def test_groups_are_units():
    result = evaluated(groups=UNITS, metrics=SMOOTH)
    count = len(set(UNITS))
    assert result.groups == count == result.to_dict()["groups"]
    tables = []
    for unit in dict.fromkeys(UNITS):
        inside = [other == unit for other in UNITS]
        columns = (labels(chosen(column, inside)) for column in (GOLD, ANSWERS))
        tables.append(ConfusionMatrix.of(SCALE, *columns).weights)
    batch = result.confusion_matrix.with_cells(np.stack(tables))
    metrics = [find_metric(name) for name in result.metrics]
    check(estimates(result), estimate_metrics(metrics, batch, QUICK))
    assert f"Items come in {count} groups, taken as clusters; levels have no intervals" in words(
        result
    )
    assert all(math.isnan(row["recall_low"]) for row in result.per_level)


def test_groups_of_copies_are_as_unsure_as_one_of_each():
    gold, answers = GOLD[:60], ANSWERS[:60]
    alone = (
        evaluated(gold, answers, "mae", interval=ConfidenceIntervals(resamples=2000))
        .metrics["mae"]
        .estimate
    )
    units = list(range(60)) * 10
    copies = evaluated(
        gold * 10, answers * 10, "mae", groups=units, interval=ConfidenceIntervals(resamples=2000)
    ).metrics["mae"]
    assert copies.estimate.width == pytest.approx(alone.width, rel=0.12)


def test_few_groups_are_said_to_be_few():
    few = evaluated(groups=[k % 5 for k in range(N)])
    assert "So few groups leave the intervals unsure" in words(few)
    assert "So few groups" not in words(evaluated(groups=UNITS))


def test_subgroups_of_groups_are_what_they_are_alone():
    result = evaluated(by=PARTS, groups=UNITS, metrics=SMOOTH)
    for name, part in result.by.items():
        inside = [x == name for x in PARTS]
        alone = of_part(inside, groups=chosen(UNITS, inside), metrics=SMOOTH)
        check(estimates(part), estimates(alone))
        assert part.groups == len(set(chosen(UNITS, inside)))
        assert np.array_equal(part.confusion_matrix.weights, alone.confusion_matrix.weights)
    check(estimates(result), estimates(evaluated(groups=UNITS, metrics=SMOOTH)))


def check_rest(result, gold, answers, units):
    """Each subgroup against all other items, both evaluated alone, with their own groups."""
    for name, part in result.by.items():
        inside = [x == name for x in PARTS]
        alone, rest = (
            estimates(
                evaluated(
                    chosen(gold, side), chosen(answers, side), SMOOTH, groups=chosen(units, side)
                )
            )
            for side in (inside, [not x for x in inside])
        )
        assert part.difference_from_rest.keys() == alone.keys()
        for metric, found in part.difference_from_rest.items():
            expected = mover(alone[metric], rest[metric])
            assert (found.value, found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_subgroups_of_groups_differ_from_the_rest_by_mover_of_both():
    nested = [f"{part}{k % 8}" for k, part in enumerate(PARTS)]  # 24 groups
    check_rest(evaluated(by=PARTS, groups=nested, metrics=SMOOTH), GOLD, ANSWERS, nested)


def test_groups_that_cross_subgroups_stay_whole_in_the_rest():
    """What a writer has in south and in west is one unit of all that is not north."""
    shift = np.random.default_rng(8).integers(-1, 2, N)
    three = [(g, shift[int(unit[1:])]) for g, unit in zip(GOLD, UNITS, strict=True)]
    answers = [min(SIZE - 1, max(0, int(g + move))) for g, move in three]
    result = evaluated(answers=answers, by=PARTS, groups=UNITS, metrics=SMOOTH)
    check_rest(result, GOLD, answers, UNITS)


def test_items_without_a_group_are_refused_with_their_rows_or_dropped():
    units = [None if k in (3, 8) else unit for k, unit in enumerate(UNITS)]
    with pytest.raises(MissingLabels, match=r"2 of 300 items have no group \(row 4, row 9"):
        evaluated(groups=units)
    result = evaluated(groups=units, missing="drop", metrics=SMOOTH)
    inside = [unit is not None for unit in units]
    alone = of_part(inside, groups=chosen(units, inside), metrics=SMOOTH)
    check(estimates(result), estimates(alone))
    assert result.confusion_matrix.dropped == 2
    assert result.confusion_matrix.n == N - 2


def test_groups_whose_items_are_all_dropped_are_no_groups():
    answers = [None if k < 200 else p for k, p in enumerate(ANSWERS)]
    units = [f"lost{k}" if k < 200 else f"kept{k % 6}" for k in range(N)]
    result = evaluated(answers=answers, groups=units, missing="drop", metrics="mae")
    alone = evaluated(GOLD[200:], answers[200:], groups=units[200:], metrics="mae")
    check(estimates(result), estimates(alone))
    assert result.groups == alone.groups == 6
    assert result.confusion_matrix.dropped == 200


def test_groups_and_subgroups_of_another_length_are_refused():
    with pytest.raises(UnequalLengths, match="groups"):
        evaluated(groups=UNITS[:-1])
    with pytest.raises(UnequalLengths, match="subgroups"):
        evaluated(by=PARTS[:-1], groups=UNITS)


# --- a second rater ------------------------------------------------------------------------------


def human(answers=ANSWERS, second=SECOND, **options):
    return evaluated(answers=answers, second_rater=labels(second), **options)


@pytest.mark.parametrize(
    "more",
    [{}, {"weights": np.linspace(0.3, 2, N)}, {"by": PARTS}, {"interval": None}],
    ids=["plain", "weights", "by", "no interval"],
)
def test_a_second_human_is_what_an_evaluation_of_the_human_is(more):
    result = human(**more)
    alone = evaluated(answers=SECOND, **more)
    plain = evaluated(**more)
    if "interval" in more:
        assert {name: one.value for name, one in result.second_rater.items()} == {
            name: score.value for name, score in alone.metrics.items()
        }
    else:
        check(result.second_rater, estimates(alone))
        check(estimates(result), estimates(plain))
        for name, part in result.by.items():
            check(estimates(part), estimates(plain.by[name]))
    assert np.allclose(result.confusion_matrix.weights, plain.confusion_matrix.weights)


def test_a_second_human_has_the_same_groups_as_the_system():
    result = human(groups=UNITS, metrics=SMOOTH)
    check(result.second_rater, estimates(evaluated(answers=SECOND, groups=UNITS, metrics=SMOOTH)))
    check(estimates(result), estimates(evaluated(groups=UNITS, metrics=SMOOTH)))


def test_a_second_human_is_evaluated_on_the_items_of_the_system():
    units = [None if k < 20 else unit for k, unit in enumerate(UNITS)]
    result = human(groups=units, missing="drop", metrics="mae")
    inner = [k >= 20 for k in range(N)]
    expected = evaluated(
        chosen(GOLD, inner), chosen(SECOND, inner), "mae", groups=chosen(units, inner)
    )
    assert result.second_rater["mae"].value == pytest.approx(expected.metrics["mae"].value)


def test_without_a_second_human_there_is_no_column_for_one():
    assert evaluated().second_rater is None
    assert evaluated().to_dict()["second_rater"] is None
    assert "second rater" not in words(evaluated())


def test_the_report_and_the_json_show_the_second_human_beside_the_system():
    result = human(metrics="mae")
    one, other = result.metrics["mae"].estimate, result.second_rater["mae"]
    row = (
        f"mae {one.value:.3f} {one.low:.3f} to {one.high:.3f} "
        f"{other.value:.3f} {other.low:.3f} to {other.high:.3f}"
    )
    assert row in words(result)
    assert result.to_dict()["second_rater"]["mae"] == other.to_dict()


def without(column, places):
    return [None if k in places else x for k, x in enumerate(column)]


def test_missing_labels_of_either_are_named():
    with pytest.raises(
        MissingLabels, match=r"2 of 300 labels of the second rater are missing .row 3, row 6"
    ):
        human(second=without(SECOND, {2, 5}))
    weights = [0 if k == 2 else 1 for k in range(N)]
    with pytest.raises(
        MissingLabels, match=r"1 of 300 labels of the second rater are missing .row 6"
    ):
        human(second=without(SECOND, {2, 5}), weights=weights)
    with pytest.raises(MissingLabels, match=r"1 of 300 predictions of predicted .*row 3"):
        human(answers=without(ANSWERS, {2}))


def test_items_that_either_lacks_are_dropped_for_both():
    lost = {2, 5, 9, 100}
    result = human(without(ANSWERS, {2, 5}), without(SECOND, {5, 9, 100}), missing="drop")
    inner = [k not in lost for k in range(N)]
    gold, answers, second = (chosen(x, inner) for x in (GOLD, ANSWERS, SECOND))
    check(estimates(result), estimates(evaluated(gold, answers)))
    check(result.second_rater, estimates(evaluated(gold, second)))
    assert result.confusion_matrix.dropped == 4
    assert result.confusion_matrix.n == N - 4


def test_the_worst_answer_is_for_systems_and_not_for_humans():
    result = human(without(ANSWERS, {2, 5}), missing="worst", metrics="mae")
    alone = evaluated(answers=without(ANSWERS, {2, 5}), missing="worst", metrics="mae")
    check(estimates(result), estimates(alone))
    check(result.second_rater, estimates(evaluated(answers=SECOND, metrics="mae")))
    with pytest.raises(
        MissingLabels, match=r"2 of 300 labels of the second rater are missing .row 3, row 6"
    ):
        human(second=without(SECOND, {2, 5}), missing="worst")


def test_each_subgroup_says_how_many_of_its_own_items_were_dropped():
    lost = {k for k in range(N) if PARTS[k] == "south"}
    lost = set(sorted(lost)[-4:])
    plain = evaluated(answers=without(ANSWERS, lost), by=PARTS, missing="drop", metrics="mae")
    beside = human(without(ANSWERS, lost), by=PARTS, missing="drop", metrics="mae")
    expected = {name: 4 * (name == "south") for name in set(PARTS)}
    for result in (plain, beside):
        assert {
            name: int(part.confusion_matrix.dropped) for name, part in result.by.items()
        } == expected
        assert result.confusion_matrix.dropped == 4


def test_a_second_human_of_another_length_is_refused():
    with pytest.raises(UnequalLengths, match="second_rater"):
        human(second=SECOND[:-1])
