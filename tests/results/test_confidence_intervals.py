"""Evaluations with intervals: levels, subgroups, groups and a second rater, each as if alone."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interval_evaluations import (
    ANSWERS,
    GOLD,
    SCALE,
    SECOND,
    SIZE,
    SOME,
    N,
    estimates,
    evaluated,
)
from law_examples import examples
from panels import labels
from rendered_reports import words
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from strategies import counts, scale_of

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, estimate_metrics
from ordinate.metrics import find_metric
from ordinate.render import RENDERERS, render
from ordinate.results.arguments import DEFAULT_METRICS
from ordinate.results.evaluation import Evaluation
from ordinate.results.label_evaluation import evaluate
from ordinate.summaries import ConfusionMatrix

# --- the whole ------------------------------------------------------------------------------------


def test_intervals_are_there_without_being_asked_for():
    result = evaluate(labels(GOLD), labels(ANSWERS), SCALE)
    assert list(result.metrics) == list(DEFAULT_METRICS)
    table = ConfusionMatrix.of(labels(GOLD), labels(ANSWERS), SCALE)
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
    with pytest.raises(BadOption, match=r"seed=99 contradicts the seed=7 of interval=Conf"):
        evaluated(interval=how, seed=99)
    result = evaluated(interval=how, seed=7)
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
    table = ConfusionMatrix.from_counts(np.array(np.eye(SIZE) * 5.5 + 0.25), SCALE)
    result = Evaluation.from_summary(table, "mae,accuracy")
    assert result.metrics["mae"].value > 0
    assert result.metrics["mae"].estimate.method is None
    assert "No interval for mae: the number of items" in words(result)
    assert all(math.isnan(row["recall_low"]) for row in result.per_level)


def test_one_table_is_evaluated_at_a_time():
    table = ConfusionMatrix.of(labels(GOLD), labels(ANSWERS), SCALE)
    batch = table.with_cells(np.stack([table.weights, table.weights]))
    with pytest.raises(BadOption, match="Evaluate one confusion matrix"):
        Evaluation.from_summary(batch)


# --- the report -----------------------------------------------------------------------------------


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
        assert f"{row['recall']:.2f} {ends}" in shown
    assert "90 % CI" in words(evaluated(interval=0.9))


def test_the_report_names_the_methods():
    shown = words(evaluated(metrics="accuracy,mae,purity"))
    said = "Intervals by Wilson: accuracy; by the delta method: mae; by BCa bootstrap: purity."
    assert said in shown


def test_the_report_says_that_a_level_is_rare():
    gold = [0] * 4 + [1] * 60 + [2] * 60
    answers = [0, 0, 0, 1] + [1] * 50 + [2] * 20 + [1] * 10 + [2] * 40
    result = evaluate(labels(gold), labels(answers), scale_of(3), "f1_macro,macro_mae,mae")
    notes = {name: score.estimate.note for name, score in result.metrics.items()}
    assert "fewer than 10 items of L0" in notes["f1_macro"]
    assert "fewer than" not in (notes["mae"] or "")
    assert "by percentile bootstrap: f1_macro" in words(result)
    assert "Keep in mind: fewer than 10 items of L0 (f1_macro)" in words(result)
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
    assert "by the delta method. - Keep in mind: fractional weights." in words(result)


@pytest.mark.parametrize("form", RENDERERS)
def test_every_form_can_be_rendered(form):
    result = evaluated(
        by=[k % 3 for k in range(N)],
        groups=[k % 35 for k in range(N)],
        second_rater=labels(SECOND),
        error_attribution="mae",
    )
    shown = render(result, form)
    assert "quadratic" in shown


# --- levels ---------------------------------------------------------------------------------------


@given(cells=st.integers(2, 5).flatmap(lambda size: counts(size, 30)), level=st.floats(0.5, 0.99))
@examples(80)
def test_precision_and_recall_of_levels_have_the_limits_of_wilson(cells, level):
    size = len(cells)
    result = Evaluation.from_summary(
        ConfusionMatrix.from_counts(cells, scale_of(size)), "accuracy", interval=level
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
@examples(80)
def test_f1_of_levels_has_the_limits_of_the_share_that_it_is_made_of(cells, level):
    """F1 = 2J / (1 + J), where J is the share of right items among those of either side."""
    size = len(cells)
    result = Evaluation.from_summary(
        ConfusionMatrix.from_counts(cells, scale_of(size)), "accuracy", interval=level
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
@examples(80)
def test_limits_of_levels_hold_their_values_and_stay_within_the_scale(cells):
    size = len(cells)
    result = Evaluation.from_summary(ConfusionMatrix.from_counts(cells, scale_of(size)), "accuracy")
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
    result = Evaluation.from_summary(ConfusionMatrix.from_counts(cells, scale_of(3)), "accuracy")
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
