"""Subgroups, clusters and a second rater: each with the confidence intervals that it has alone."""

import json
import math

import numpy as np
import pytest
from interval_evaluations import (
    ANSWERS,
    GOLD,
    QUICK,
    SCALE,
    SECOND,
    SIZE,
    N,
    estimates,
    evaluated,
    without,
)
from panels import labels, sampled
from rendered_reports import words
from strategies import scale_of

from ordinate.errors import MissingLabels, UnequalLengths
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.inference.subgroup_differences import NOT_COUNTED, UNDEFINED
from ordinate.metrics import find_metric
from ordinate.render import text
from ordinate.results.label_evaluation import evaluate
from ordinate.results.regression_sources import evaluate_regression
from ordinate.summaries import ConfusionMatrix


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


# --- subgroups ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("how", [QUICK, None])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_second_rater_is_evaluated_in_each_subgroup_as_if_it_were_alone(grouped, how):
    writers = [k % 12 for k in range(N)] if grouped else None
    options = {"metrics": "mae,quadratic_kappa", "interval": how}
    result = evaluated(by=PARTS, second_rater=labels(SECOND), groups=writers, **options)
    for name, part in result.by.items():
        inside = [x == name for x in PARTS]
        alone = of_part(
            inside,
            second_rater=labels(chosen(SECOND, inside)),
            groups=chosen(writers, inside) if grouped else None,
            **options,
        )
        check(part.second_rater, alone.second_rater)
    shown = words(result)
    assert "mae of the second rater" in shown
    assert f"{result.by['west'].second_rater['mae'].value:.3f}" in shown


def test_each_subgroup_shows_the_agreement_of_its_raters_below_that_of_the_system():
    result = evaluated(by=PARTS, second_rater=labels(SECOND), metrics="mae,quadratic_kappa")
    grids = [x for x in result.document().list_body() if getattr(x, "title", "") == "Subgroups"]
    heads = [[row[0] for row in grid.rows] for grid in grids]
    expected = [row for name in result.metrics for row in (name, f"{name} of the second rater")]
    assert heads == [["items", *expected]] * len(grids)
    shown = words(result)
    for group, part in result.to_dict()["by"].items():
        inside = [x == group for x in PARTS]
        gold, second = chosen(GOLD, inside), chosen(SECOND, inside)
        human = evaluated(gold, second, metrics="mae,quadratic_kappa").to_dict()["metrics"]
        for name, found in part["second_rater"].items():
            assert found["value"] == human[name]["value"]
            assert (found["low"], found["high"]) == (human[name]["low"], human[name]["high"])
            assert f"{found['value']:.3f} ({found['low']:.2f} to {found['high']:.2f})" in shown


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
    assert shown.count("difference from the rest") == 1
    found = next(iter(result.by.values())).difference_from_rest["mae"]
    assert f"{found.value:z.3f} ({found.low:z.2f} to {found.high:z.2f})" in shown
    for name in result.metrics:
        each = [part.metrics[name].estimate for part in result.by.values()]
        row = " ".join(f"{x.value:z.3f} ({x.low:z.2f} to {x.high:z.2f})" for x in each)
        assert f"{name} {row}" in shown


def test_a_single_subgroup_has_no_rest():
    (part,) = evaluated(by=["all"] * N).by.values()
    assert part.difference_from_rest == {}
    assert "difference from the rest" not in words(evaluated(by=["all"] * N))


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


@pytest.mark.slow
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


# --- groups ---------------------------------------------------------------------------------------


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
        tables.append(ConfusionMatrix.of(*columns, SCALE).weights)
    batch = result.confusion_matrix.with_cells(np.stack(tables))
    metrics = [find_metric(name) for name in result.metrics]
    check(estimates(result), estimate_metrics(metrics, batch, QUICK))
    assert f"Items come in {count} clusters. With clusters, levels have no intervals" in words(
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
    assert "So few clusters leave the intervals unsure" in words(few)
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


# --- a second rater -------------------------------------------------------------------------------


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
    with pytest.raises(MissingLabels, match=r"1 of 300 predictions are missing .row 3"):
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


# --- in words -------------------------------------------------------------------------------------


def test_the_verdict_names_the_subgroups_that_differ_most_first():
    parts = [f"part {k % 8}" for k in range(320)]
    gold = [k % 3 for k in range(320)]
    errors = [0, 2, 4, 6, 34, 36, 38, 40]  # of the 40 items of each
    wrong = [k // 8 < errors[k % 8] for k in range(320)]
    answers = [(x + 1) % 3 if no else x for x, no in zip(gold, wrong, strict=True)]
    result = evaluate(gold, answers, "0,1,2", "accuracy", by=parts)
    gaps = {name: part.difference_from_rest["accuracy"] for name, part in result.by.items()}
    clear = [name for name, gap in gaps.items() if gap.low > 0 or gap.high < 0]
    first, second, *_ = sorted(clear, key=lambda name: -abs(gaps[name].value))
    named = f"{first} ({gaps[first].value:.3f}), {second} ({gaps[second].value:.3f}), "
    verdict = result.document().verdict
    assert len(clear) == 8
    assert f"different from the rest by accuracy (max-T over 8 subgroups): {named}" in verdict
    assert " and 3 more." in verdict
    alike = evaluate(gold, gold, "0,1,2", "mae", by=parts)
    assert "No subgroup is significantly different from the rest by mae (max-T" in (
        alike.document().verdict
    )


def test_a_subgroup_of_one_item_has_p_values_but_few_intervals():
    gold, answers = [k % 6 for k in range(60)], [k % 6 for k in range(60)]
    answers[::4] = [5 - x for x in gold[::4]]
    by = ["many"] * 57 + ["one", "two", "three"]
    gold[-3:], answers[-3:] = [2, 2, 2], [0, 2, 5]
    result = evaluate(gold, answers, "0..5", by=by)
    for name in ("one", "two", "three"):
        part = result.by[name]
        for metric, score in part.metrics.items():
            gap = part.difference_from_rest[metric]
            assert score.estimate.low < score.estimate.high or math.isnan(score.estimate.low)
            assert math.isnan(gap.low) != score.metric.share
            assert gap.note or score.metric.share
            assert math.isnan(gap.p) == math.isnan(gap.p_adjusted) == math.isnan(gap.value)
            assert math.isnan(gap.value) == (gap.p_note == UNDEFINED)
        assert part.metrics["cem_ord"].estimate.note == "there is one item only"
        assert part.metrics["accuracy"].estimate.method == "wilson"
    three = result.by["three"].difference_from_rest["mae"]
    assert three.p > 0.05  # as many items are as wrong


def test_the_verdict_counts_the_subgroups_without_one():
    gold, by = [k % 3 for k in range(120)], ["a"] * 60 + ["b"] * 50 + ["c"] * 10
    answers = [0 if 60 <= k < 110 else x for k, x in enumerate(gold)]
    gold[110:] = answers[110:] = [1] * 10
    verdicts = evaluate(gold, answers, "0,1,2", "mae,quadratic_kappa", by=by).document().verdicts
    assert "from the rest by mae (max-T over 3 subgroups): b (" in verdicts["mae"]
    left = f" Without a verdict: 1 subgroup ({UNDEFINED})."
    assert (left in verdicts["quadratic_kappa"], left in verdicts["mae"]) == (True, False)


def test_a_report_says_how_verdicts_on_subgroups_were_found_or_why_there_are_none():
    options = {"by": PARTS, "metrics": "mae", "interval": QUICK}
    found = words(evaluated(**options))
    assert "Verdicts on subgroups: randomisation max-T, 1,999 times with the items dealt" in found
    assert "A subgroup with another mix of levels may be found by that alone." in found
    half = evaluated(weights=[0.5] * N, **options).document()
    assert f"No subgroup has a verdict by mae: {NOT_COUNTED}." in half.verdict
    assert not any("Verdicts on subgroups" in note for note in half.notes)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_p_values_of_subgroups_are_in_json_and_decide_verdicts(level):
    options = {"by": PARTS, "metrics": "mae,bias", "interval": level}
    result = evaluated(**options)
    assert result == evaluated(**options)
    for name, part in result.to_dict()["by"].items():
        for metric, gap in part["difference_from_rest"].items():
            assert 0 < gap["p"] <= gap["p_adjusted"] <= 1
            assert gap["p_note"] is None
            said = result.document().verdicts[metric]
            assert (f"{name} (" in said) == (gap["p_adjusted"] <= 1 - level + 1e-12)
    rows = result.list_tables()["difference_from_rest"]
    assert {"p", "p_adjusted", "p_note", "low"} <= {*rows[0]}


def test_a_value_that_no_table_can_change_has_no_interval():
    found = evaluate([2] * 30, [0, 1] * 15, "0..3", "quadratic_kappa").metrics["quadratic_kappa"]
    assert found.value == 0.0
    assert math.isnan(found.estimate.low)
    assert found.estimate.note == "no items with these gold levels give another value"


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize(("count", "shown"), [(12, True), (13, False)])
def test_many_subgroups_are_for_files(regression, count, shown):
    by = [f"part {k % count}" for k in range(130)]
    values = [float(k % 3) for k in range(130)]
    if regression:
        result = evaluate_regression(values, values[1:] + values[:1], by=by, interval=None)
    else:
        result = evaluate(values, values, "0,1,2", "mae", by=by, interval=None)
    document = result.document()
    assert ("part 11" in text.render(document, details=False)) == shown
    assert "part 11" in text.render(document)
    assert (f"The {count} subgroups" in text.render(document, details=False)) != shown
    assert "which are many" not in text.render(document)


@pytest.mark.parametrize("regression", [False, True])
def test_many_subgroups_stand_one_below_the_other(regression):
    by = [f"part {k % 60}" for k in range(600)]
    values = [float(k % 3) for k in range(600)]
    if regression:
        result = evaluate_regression(values, values[1:] + values[:1], by=by, interval=None)
    else:
        result = evaluate(values, values[1:] + values[:1], "0,1,2", by=by)
    body = (x for x in result.document().list_body() if not isinstance(x, str))
    grids = [x for x in body if x.title.startswith("Subgroups")]
    names = [name for name, _ in result.list_subgroups()]
    assert [grid.title for grid in grids] == [
        "Subgroups",
        *(["Subgroups: difference from the rest"] if not regression else []),
    ]
    for grid in grids:
        assert [row[0] for row in grid.rows] == names
        assert {*result.metrics} <= {*grid.header}
