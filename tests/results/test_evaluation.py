"""An evaluation: its baselines, subgroups, missing labels and weights."""

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from rendered_reports import GOLD, PREDICTED, words
from strategies import METRICS, same, scale_of, scales, tables

import ordinate
from ordinate.errors import NotApplicable, OrdinateError
from ordinate.render import RENDERERS, render, text
from ordinate.results import Evaluation
from ordinate.results.metric_catalogue import MetricCatalogue
from ordinate.summaries import ConfusionMatrix

# --- baselines ------------------------------------------------------------------------------------


def _constant(table: ConfusionMatrix, level: int) -> ConfusionMatrix:
    """Return the table of predicting one level for everything."""
    cells = np.zeros((len(table.scale),) * 2)
    cells[:, level] = table.gold
    return ConfusionMatrix.from_counts(cells, table.scale)


def _value(metric, table: ConfusionMatrix) -> float:
    try:
        return float(metric(table))
    except NotApplicable:
        return math.nan


def _best(metric, values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    key = {"maximize": lambda x: x, "minimize": lambda x: -x, "zero": lambda x: -abs(x)}
    return max(defined, key=key[metric.direction], default=math.nan)


@given(table=tables())
@examples(12)
def test_the_best_constant_is_the_best_of_all_constants(table):
    for score in Evaluation.from_summary(table, METRICS).metrics.values():
        metric, point = score.metric, score.baselines.best_constant
        values = [_value(metric, _constant(table, k)) for k in range(len(table.scale))]
        best = _best(metric, values)
        if metric.direction == "zero":
            assert same(abs(point.value), abs(best)), metric.expression
        else:
            assert same(point.value, best), metric.expression
        if not math.isnan(best):
            level = table.scale.labels.index(point.level)
            assert same(point.value, values[level]), metric.expression


@given(table=tables())
@examples(12)
def test_the_majority_is_the_constant_of_the_commonest_gold_level(table):
    for score in Evaluation.from_summary(table, METRICS).metrics.values():
        point = score.baselines.majority
        level = table.scale.labels.index(point.level)
        assert table.gold[level] == table.gold.max()
        expected = _value(score.metric, _constant(table, level))
        assert same(point.value, expected), score.metric.expression


@given(table=tables())
@examples(12)
def test_chance_is_the_metric_of_independent_labels(table):
    cells = np.outer(table.gold, table.predicted) / table.total
    independent = ConfusionMatrix.from_counts(cells, table.scale)
    for score in Evaluation.from_summary(table, METRICS).metrics.values():
        metric, point = score.metric, score.baselines.chance
        expected = float(metric.compute_from_expected(independent, table))
        assert same(point.value, expected), metric.expression
        assert math.isnan(expected) == bool(point.undefined), metric.expression


LINEAR = [metric for metric in METRICS if metric.linear]
GOLDS = [(2,), (0, 1), (0, 0, 2), (0, 1, 2), (0, 1, 1, 2), (0, 0, 0, 1), (0, 1, 2, 2, 2), (1,) * 5]


@pytest.mark.parametrize("positions", [None, [0, 1, 5]])
@each_case("gold", GOLDS)
def test_the_attainable_range_is_that_of_all_predictions(positions, gold):
    scale = scale_of(3, positions)
    cells = np.zeros((3 ** len(gold), 3, 3))
    for table, answers in zip(cells, itertools.product(range(3), repeat=len(gold)), strict=True):
        np.add.at(table, (gold, answers), 1)
    everything = ConfusionMatrix.from_counts(cells, scale)
    result = Evaluation.from_summary(ConfusionMatrix.from_counts(cells[-1], scale), LINEAR)
    for metric in LINEAR:
        values, found = metric(everything), result.metrics[metric.expression].baselines.attainable
        if np.isnan(values).all():
            assert found is None, metric.expression
        else:
            expected = (values.min(), values.max())
            assert found == pytest.approx(expected, abs=1e-12), metric.expression
    json.dumps(result.to_dict(), allow_nan=False)


@given(table=tables())
@examples(20)
def test_the_attainable_range_stays_within_the_bounds_and_holds_the_value(table):
    for score in Evaluation.from_summary(table, LINEAR).metrics.values():
        metric, attainable = score.metric, score.baselines.attainable
        if attainable is None:
            assert math.isnan(score.value), metric.expression
        else:
            low, high = attainable
            assert metric.bounds[0] - 1e-12 <= low <= high <= metric.bounds[1] + 1e-12
            assert low - 1e-12 <= score.value <= high + 1e-12, metric.expression


def test_only_linear_metrics_have_an_attainable_range():
    table = ConfusionMatrix.from_counts([[3, 1, 0], [1, 2, 1], [0, 1, 3]], scale_of(3))
    for score in Evaluation.from_summary(table, METRICS).metrics.values():
        has_range = score.baselines.attainable is not None
        assert has_range == score.metric.linear, score.metric.expression


@given(table=tables())
@examples(60)
def test_that_a_constant_is_not_beaten_is_said_exactly_where_it_is_so(table):
    result = Evaluation.from_summary(table, METRICS)
    text = words(result)
    beaten = []
    for metric in METRICS:
        value = _value(metric, table)
        constants = [_value(metric, _constant(table, k)) for k in range(len(table.scale))]
        best = _best(metric, constants)
        comparable = not (math.isnan(value) or math.isnan(best))
        no_better = comparable and (same(value, best, 1e-12) or not metric.is_better(value, best))
        judged = metric.direction != "zero"
        score = result.metrics[metric.expression]
        as_good = no_better or (comparable and score.estimate.low <= best <= score.estimate.high)
        if (test := score.against_constant) is not None:
            as_good = test.verdict != "better"
        assert (f" {metric.expression} (always " in text) == (as_good and judged)
        assert score.beats_constant == (not no_better if comparable else None)
        beaten.append(not (as_good and judged))
    assert ("Better than every constant" in text) == all(beaten)


@given(table=tables(), metric=st.sampled_from(METRICS))
@examples(2000)
def test_the_first_sentence_does_not_contradict_itself(table, metric):
    result = Evaluation.from_summary(table, [metric])
    verdict = " ".join(result.document().verdict.split())
    better = re.search(r"(: |, )better than always predicting", verdict) is not None
    listed = "beat a constant on" in verdict
    assert not (better and listed)
    assert better == ("Better than every constant" in verdict)


def test_one_name_has_one_number_where_decoded_levels_stand_beside_probabilities():
    rows = [[0.6, 0.4], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]
    found = ordinate.evaluate([0, 1, 1, 1], [0, 1, 1, 1], "0..1", probabilities=rows, interval=None)
    verdict = " ".join(found.document().verdict.split())
    assert "the most probable level is right for 0.750 of the items" in verdict
    assert "accuracy 0.750" not in verdict


def test_always_the_majority_does_not_beat_a_constant():
    result = ordinate.evaluate(GOLD, ["B1"] * 6, "cefr")
    assert re.search(
        r"Does not significantly beat a constant on .* accuracy \(always B1: 0\.333\)",
        words(result),
    )
    assert "Better than every constant" not in words(result)


def test_perfect_predictions_beat_every_constant():
    result = ordinate.evaluate(GOLD, GOLD, "cefr", interval=None)
    assert "Does not beat" not in words(result)
    assert "Better than every constant" in words(result)


# --- groups, missing labels, weights --------------------------------------------------------------


def _facts(result: Evaluation) -> dict:
    found = result.to_dict()
    for score in found["metrics"].values():
        score.pop("against_constant")  # subgroups are not tested, which are many
    return {
        key: value
        for key, value in found.items()
        if key not in {"source", "by", "difference_from_rest"}
    }


def _close(one, two) -> bool:
    """Tell whether two documents agree, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_close(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_close, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one == pytest.approx(two, rel=1e-12, abs=1e-12)
    return one == two


@given(data=st.data(), scale=scales())
@examples(30)
def test_a_group_is_what_it_is_alone(data, scale):
    label = st.sampled_from(scale.labels)
    row = st.tuples(label, label, st.sampled_from("xyz"), st.sampled_from([1.0, 2.0, 0.5, 0.25]))
    rows = data.draw(st.lists(row, min_size=1, max_size=15))
    gold, predicted, groups, weights = (list(column) for column in zip(*rows, strict=True))
    whole = ordinate.evaluate(gold, predicted, scale, weights=weights, by=groups, interval=None)
    assert set(whole.by) == set(groups)
    for group, part in whole.by.items():
        kept = [k for k, name in enumerate(groups) if name == group]
        alone = ordinate.evaluate(
            *([column[k] for k in kept] for column in (gold, predicted)),
            scale,
            weights=[weights[k] for k in kept],
            interval=None,
        )
        assert _close(_facts(part), _facts(alone))
    together = ordinate.evaluate(gold, predicted, scale, weights=weights)
    assert _facts(whole)["confusion_matrix"] == _facts(together)["confusion_matrix"]


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_a_group_with_missing_labels_is_what_it_is_alone(missing):
    predicted = ["A2", None, "B1", "C1", None, None]
    groups = ["x", "x", "y", "y", "y", "z"]
    whole = ordinate.evaluate(GOLD, predicted, "cefr", by=groups, missing=missing)
    assert list(whole.by) == (["x", "y"] if missing == "drop" else ["x", "y", "z"])
    for group, part in whole.by.items():
        kept = [k for k, name in enumerate(groups) if name == group]
        alone = ordinate.evaluate(
            [GOLD[k] for k in kept], [predicted[k] for k in kept], "cefr", missing=missing
        )
        assert _facts(part) == _facts(alone)


def test_groups_whose_names_look_alike_are_not_lost():
    result = ordinate.evaluate(["A1", "A2"], ["A1", "A2"], "cefr", by=[1, "1"])
    assert len(result.to_dict()["by"]) == 2


def test_the_proximities_behind_cem_are_shown_with_the_details_and_by_the_catalogue():
    matrix = ConfusionMatrix.of(GOLD, PREDICTED, "cefr")
    cells = [f"{x:.3f}" for x in matrix.proximities()[0]]
    shown = [render(ordinate.evaluate(matrix), "text", details=x) for x in (False, True)]
    assert [" ".join(["A1", *cells]) in words(x) for x in shown] == [False, True]
    page = str(MetricCatalogue.of("cem_ord"))
    assert "positive 0.074 0.737 2.737" in words(page)


@pytest.mark.parametrize("top", [20, 21])
def test_many_levels_are_shown_in_files(top):
    gold = [k % top + 1 for k in range(40 * top)]
    document = ordinate.evaluate(gold, gold, f"1..{top}", "mae", interval=None).document()
    for details in (True, False):
        shown = text.render(document, details=details)
        assert ("The confusion matrix and the levels, which are many" in shown) == (
            top == 21 and not details
        )
        assert ("gold \\ predicted" in shown) == (top == 20 or details)


def test_many_groups_are_all_shown_in_files_whose_lines_are_no_longer_for_them():
    widths = set()
    for count in (20, 40):
        names = [f"group {k:02}" for k in range(count)]
        gold, predicted = ["A1", "B1"] * (count // 2), ["A1", "B2"] * (count // 2)
        result = ordinate.evaluate(gold, predicted, "cefr", by=names, interval=None)
        shown = render(result, "text")
        assert all(re.search(rf"{name}\b", shown) for name in names)
        widths.add(max(map(len, shown.splitlines())))
    assert len(widths) == 1


HARD = {
    "missing": {"missing": "worst"},
    "fractional weights": {"weights": [0.5, 1, 2.25, 0.1, 1, 1]},
    "both": {"missing": "worst", "weights": [0.5, 1, 2.25, 0.1, 1, 1]},
    "groups": {"missing": "worst", "weights": [0.5, 1, 2.25, 0.1, 1, 1], "by": list("xyxyxz")},
}


@pytest.mark.parametrize("case", HARD)
def test_all_metrics_are_evaluated_and_those_that_refuse_say_why(case):
    predicted = PREDICTED if case == "fractional weights" else [*PREDICTED[:-1], None]
    result = ordinate.evaluate(GOLD, predicted, "cefr", "all", **HARD[case])
    expected = ConfusionMatrix.of(GOLD, predicted, "cefr", HARD[case].get("weights"), "worst")
    for name, score in result.metrics.items():
        refuses = (score.metric.needs_integer_counts and not expected.has_integer_weights) or (
            expected.has_unanswered and not score.metric.takes_unanswered
        )
        assert not refuses or math.isnan(score.value), name
        assert math.isnan(score.value) == bool(score.undefined), name
        assert same(score.value, _value(score.metric, expected)), name
    for form in RENDERERS:
        assert render(result, form)


@given(scale=scales(), data=st.data())
@examples(25)
def test_all_metrics_of_any_weighted_table_with_missing_answers_have_value_or_reason(scale, data):
    size = len(scale)
    weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    cells = data.draw(st.lists(weight, min_size=size * (size + 1), max_size=size * (size + 1)))
    full = np.reshape(cells, (size, size + 1))
    if not full.any():
        return
    table = ConfusionMatrix.from_counts(full[:, :-1], scale, full[:, -1])
    result = Evaluation.from_summary(table, METRICS)
    for name, score in result.metrics.items():
        assert math.isnan(score.value) == bool(score.undefined), name
    json.dumps(result.to_dict(), allow_nan=False)
    assert str(result)


def test_reports_are_the_same_on_every_run(tmp_path):
    first = render(ordinate.evaluate(GOLD, PREDICTED, "cefr", "all", by=list("xyxyxy")), "json")
    again = render(ordinate.evaluate(GOLD, PREDICTED, "cefr", "all", by=list("xyxyxy")), "json")
    assert first == again
    Path(tmp_path / "report.json").write_text(first, encoding="utf-8")
    assert json.loads(Path(tmp_path / "report.json").read_text("utf-8"))["n"] == 6


@pytest.mark.parametrize("metric", ["rmse", "r2", "relative_accuracy"])
def test_a_score_of_a_regression_names_the_function_that_has_it(metric):
    """`score("rmse", …)` said that no scale was declared, and nothing else."""
    with pytest.raises(OrdinateError, match=r"metric of regression.*evaluate_regression"):
        ordinate.score(metric, [1.5, 2.5, 4.0], [1.0, 2.0, 4.5])
